// Losses. `reduction` is 0 (none), 1 (mean) or 2 (sum), as in at::Reduction.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// log_probabilities (C), (N, C) or (N, C, …), target of class indices without the C dimension; weight (C) or
/// undefined.
TENON_API Tensor nll_loss_nd(const Tensor& log_probabilities, const Tensor& target, const Tensor& weight = {},
                             std::int64_t reduction = 1, std::int64_t ignore_index = -100);
inline Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target, const Tensor& weight = {},
                       std::int64_t reduction = 1, std::int64_t ignore_index = -100) {
  return nll_loss_nd(log_probabilities, target, weight, reduction, ignore_index);
}
/// Of logits; target holds class indices, or probabilities of the logits' sizes.
TENON_API Tensor cross_entropy_loss(const Tensor& logits, const Tensor& target, const Tensor& weight = {},
                                    std::int64_t reduction = 1, std::int64_t ignore_index = -100,
                                    double label_smoothing = 0);

TENON_API Tensor mse_loss(const Tensor& input, const Tensor& target, std::int64_t reduction = 1);
TENON_API Tensor l1_loss(const Tensor& input, const Tensor& target, std::int64_t reduction = 1);
TENON_API Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, std::int64_t reduction = 1, double beta = 1);
TENON_API Tensor huber_loss(const Tensor& input, const Tensor& target, std::int64_t reduction = 1, double delta = 1);
TENON_API Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                                      std::int64_t reduction = 1);
TENON_API Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                                                  const Tensor& pos_weight = {}, std::int64_t reduction = 1);

}  // namespace tenon
