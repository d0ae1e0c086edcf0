// Covariances and correlations of variables.
#pragma once

#include <tenon/tensor/tensor.h>

#include <optional>

namespace tenon {

/// Covariances of the rows of `self`, (variables, observations), or of one variable, (observations) or a number:
/// (variables, variables), of one variable no dimension. Sums of products are divided by the number of observations
/// less `correction`, and where that is not above 0, by 0. `fweights` says how often each was observed (integers),
/// `aweights` how much each counts (floating), both (observations). Throws Error for more dims, bool, weights of other
/// dtypes or numbers, and weights that are negative or sum up to 0.
TENON_API Tensor cov(const Tensor& self, std::int64_t correction = 1,
                     const std::optional<Tensor>& fweights = std::nullopt,
                     const std::optional<Tensor>& aweights = std::nullopt);
/// cov() over the roots of the variances of both, clamped to [-1, 1]; of one variable 1, or NaN where its variance is 0
/// or not finite. Throws Error for more than two dims.
TENON_API Tensor corrcoef(const Tensor& self);

}  // namespace tenon
