// Losses of margins and counts, as libtorch's functions; `reduction` is at::Reduction's: not reduced a loss has the
// sizes named, else no dimension; for another number than its three each throws Error. y is the target.
#pragma once

#include <tenon/ops/linalg/distance.h>

#include <functional>

namespace tenon {

/// max(0, -y (input1 - input2) + margin), y being 1 or -1; all are broadcast, dtypes promoted. Throws Error for an
/// unknown reduction.
TENON_API Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                                     double margin = 0, std::int64_t reduction = Reduction::Mean);
/// x where y is 1, max(0, margin - x) where y is -1; both are broadcast, dtypes promoted. Throws Error for an
/// unknown reduction.
TENON_API Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin = 1,
                                      std::int64_t reduction = Reduction::Mean);
/// 1 - cos where y is 1, max(0, cos - margin) where y is -1, with the cosine of input1 and input2: inputs (N, D) and y
/// (N), or (D) and y of no dimension. Throws Error for an unknown reduction.
TENON_API Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                                       double margin = 0, std::int64_t reduction = Reduction::Mean);
/// log(1 + exp(-y x)), y being 1 or -1; both are broadcast, dtypes promoted. Throws Error for an
/// unknown reduction.
TENON_API Tensor soft_margin_loss(const Tensor& self, const Tensor& target, std::int64_t reduction = Reduction::Mean);
/// Sums of weight[y] * max(0, margin - x[y] + x[i])^p over i != y, divided by C: input (N, C) or (C), classes y (N) or
/// of no dimension, weight (C). Throws Error for another p than 1 and 2, and where the sizes do not fit.
TENON_API Tensor multi_margin_loss(const Tensor& self, const Tensor& target, const Scalar& p = 1,
                                   const Scalar& margin = 1, const std::optional<Tensor>& weight = std::nullopt,
                                   std::int64_t reduction = Reduction::Mean);
/// Sums of max(0, 1 - (x[y] - x[i])) over the classes y of an input and all other classes i, divided by C: input (N, C)
/// or (C), target of the input's sizes, of which the classes up to the first -1 count. Throws Error for other sizes,
/// and a target that is not a class.
TENON_API Tensor multilabel_margin_loss(const Tensor& self, const Tensor& target,
                                        std::int64_t reduction = Reduction::Mean);
/// max(0, d(anchor, positive) - d(anchor, negative) + margin) with d = pairwise_distance(); with `swap` d(positive,
/// negative) replaces the second distance where it is smaller. The three (…, D) are broadcast, and the loss is (…).
/// Balntas et al., "Learning local feature descriptors with triplets", 2016. Throws Error for an unknown reduction.
TENON_API Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                     double margin = 1, double p = 2, double eps = 1e-6, bool swap = false,
                                     std::int64_t reduction = Reduction::Mean);
/// triplet_margin_loss() of another distance of two tensors than pairwise_distance(). Throws Error for an unknown
/// reduction.
TENON_API Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                                   const std::function<Tensor(const Tensor&, const Tensor&)>& distance,
                                                   double margin = 1, bool swap = false,
                                                   std::int64_t reduction = Reduction::Mean);
/// exp(x) - y x where the input holds logarithms, else x - y log(x + eps); `full` adds Stirling's approximation of
/// log(y!) where y is above 1. Both are broadcast, dtypes promoted. Throws Error for an unknown reduction.
TENON_API Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps,
                                  std::int64_t reduction);

}  // namespace tenon
