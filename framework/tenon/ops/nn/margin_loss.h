// Losses of margins and counts, as libtorch's functions; `reduction` is at::Reduction's. The formulas stand at the
// options of nn/options/loss_options.h.
#pragma once

#include <tenon/ops/linalg/distance.h>

namespace tenon {

/// max(0, -y (a - b) + margin).
TENON_API Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                                     double margin = 0, std::int64_t reduction = Reduction::Mean);
/// x where y is 1, max(0, margin - x) where y is -1.
TENON_API Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin = 1,
                                      std::int64_t reduction = Reduction::Mean);
/// 1 - cos(a, b) where y is 1, max(0, cos(a, b) - margin) where y is -1. Inputs (N, D) or (D).
TENON_API Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                                       double margin = 0, std::int64_t reduction = Reduction::Mean);
/// log(1 + exp(-y x)).
TENON_API Tensor soft_margin_loss(const Tensor& self, const Tensor& target, std::int64_t reduction = Reduction::Mean);
/// Sums of max(0, margin - x[y] + x[i])^p over i != y, divided by the number of classes. Input (N, C) or (C), target
/// (N) or ().
TENON_API Tensor multi_margin_loss(const Tensor& self, const Tensor& target, const Scalar& p = 1,
                                   const Scalar& margin = 1, const std::optional<Tensor>& weight = std::nullopt,
                                   std::int64_t reduction = Reduction::Mean);
/// The same for several targets of one input, up to the first -1.
TENON_API Tensor multilabel_margin_loss(const Tensor& self, const Tensor& target,
                                        std::int64_t reduction = Reduction::Mean);
/// max(0, |a - p| - |a - n| + margin); with `swap` the negative's nearer distance, to anchor or positive, counts.
TENON_API Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                     double margin = 1, double p = 2, double eps = 1e-6, bool swap = false,
                                     std::int64_t reduction = Reduction::Mean);
/// exp(x) - y x of a logarithm x, else x - y log(x + eps); `full` adds Stirling's approximation of log(y!).
TENON_API Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps,
                                  std::int64_t reduction);

}  // namespace tenon
