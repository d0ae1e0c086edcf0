// Distances and divergences.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// How a loss is summed up, as libtorch's constants.
struct Reduction {
  enum Value : std::int64_t { None = 0, Mean = 1, Sum = 2 };
};

/// target * (log target - input), with 0 log 0 = 0; the input holds logarithms, and the target too with log_target.
/// Both are broadcast, dtypes promoted; not reduced the result has the broadcast sizes. The mean is over all elements,
/// not over the batch. Kullback and Leibler, "On information and sufficiency", 1951. Throws Error for an unknown
/// reduction.
TENON_API Tensor kl_div(const Tensor& input, const Tensor& target, std::int64_t reduction = Reduction::Mean,
                        bool log_target = false);
/// The p-norm of a - b + eps along the last dim, (…, D) -> (…) or with keepdim (…, 1); a and b are broadcast, and
/// integers give the default dtype.
TENON_API Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p = 2, double eps = 1e-6,
                                   bool keepdim = false);
/// a . b / (max(|a|, eps) * max(|b|, eps)) along `dim`, without that dim; operands are broadcast, dtypes promoted.
/// Throws Error where the common dtype is not floating.
TENON_API Tensor cosine_similarity(const Tensor& a, const Tensor& b, std::int64_t dim = 1, double eps = 1e-8);

}  // namespace tenon
