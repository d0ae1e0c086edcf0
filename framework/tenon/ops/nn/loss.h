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

/// (input - target)^2, reduced.
TENON_API Tensor mse_loss(const Tensor& input, const Tensor& target, std::int64_t reduction = 1);
/// |input - target|, reduced.
TENON_API Tensor l1_loss(const Tensor& input, const Tensor& target, std::int64_t reduction = 1);
/// d^2 / (2 beta) where |d| is below beta, else |d| - beta / 2, d = input - target, reduced. Girshick, 2015.
TENON_API Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, std::int64_t reduction = 1, double beta = 1);
/// d^2 / 2 where |d| is at most delta, else delta * (|d| - delta / 2), d = input - target, reduced. Huber, 1964.
TENON_API Tensor huber_loss(const Tensor& input, const Tensor& target, std::int64_t reduction = 1, double delta = 1);
/// -(t log x + (1 - t) log(1 - x)) times weight; the logarithms are at least -100. Throws Error for x outside of 0 to 1
/// on the host.
TENON_API Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                                      std::int64_t reduction = 1);
/// binary_cross_entropy() of sigmoid(input), without its overflow; pos_weight multiplies the first term.
TENON_API Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                                                  const Tensor& pos_weight = {}, std::int64_t reduction = 1);

}  // namespace tenon
