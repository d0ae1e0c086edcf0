// Losses. `reduction` is 0 (none), 1 (mean) or 2 (sum), as in at::Reduction; each throws Error for another number.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// -weight[t] * log_probabilities at each class t of the target: log_probabilities (C), (N, C) or (N, C, …), target
/// (int64, up to (N, C) also uint8) without the C dimension; weight (C) or undefined. Targets equal to ignore_index do
/// not count, and the mean is divided by the sum of the weights of the others. Throws Error for other sizes and dtypes,
/// and a target that is not a class.
TENON_API Tensor nll_loss_nd(const Tensor& log_probabilities, const Tensor& target, const Tensor& weight = {},
                             std::int64_t reduction = 1, std::int64_t ignore_index = -100);
inline Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target, const Tensor& weight = {},
                       std::int64_t reduction = 1, std::int64_t ignore_index = -100) {
  return nll_loss_nd(log_probabilities, target, weight, reduction, ignore_index);
}
/// nll_loss_nd() of log_softmax() of the logits; or the target holds probabilities of the logits' sizes, and the mean
/// is over the samples. label_smoothing moves this share of each target evenly to all classes: Szegedy et al.,
/// "Rethinking the Inception architecture", 2016. Throws Error for a share outside of 0 to 1.
TENON_API Tensor cross_entropy_loss(const Tensor& logits, const Tensor& target, const Tensor& weight = {},
                                    std::int64_t reduction = 1, std::int64_t ignore_index = -100,
                                    double label_smoothing = 0);

/// (input - target)^2, broadcast, dtypes promoted, reduced. Throws Error for sizes that do not broadcast, and a mean of
/// integers.
TENON_API Tensor mse_loss(const Tensor& input, const Tensor& target, std::int64_t reduction = 1);
/// |input - target|, broadcast, dtypes promoted, reduced. Throws Error for sizes that do not broadcast, and a mean of
/// integers.
TENON_API Tensor l1_loss(const Tensor& input, const Tensor& target, std::int64_t reduction = 1);
/// d^2 / (2 beta) where |d| is below beta, else |d| - beta / 2, with d = input - target, reduced; l1_loss() where beta
/// is 0. Girshick, "Fast R-CNN", 2015. Throws Error for a negative beta.
TENON_API Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, std::int64_t reduction = 1, double beta = 1);
/// d^2 / 2 where |d| is below delta, else delta * (|d| - delta / 2), with d = input - target, reduced. Huber, "Robust
/// estimation of a location parameter", 1964. Throws Error unless delta is positive.
TENON_API Tensor huber_loss(const Tensor& input, const Tensor& target, std::int64_t reduction = 1, double delta = 1);
/// -(t log x + (1 - t) log(1 - x)) times weight, reduced; a logarithm below -100 counts as -100. The target has the
/// input's sizes, or broadcasts to them once dims of size 1 are dropped from both. Throws Error for other sizes,
/// different dtypes, a weight that requires a gradient, and, on the CPU only, for x outside of 0 to 1.
TENON_API Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                                      std::int64_t reduction = 1);
/// binary_cross_entropy() of sigmoid(input), computed without overflow; pos_weight multiplies the term of t. Throws
/// Error where the input does not broadcast to the target's sizes, and for a weight that requires a gradient.
TENON_API Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                                                  const Tensor& pos_weight = {}, std::int64_t reduction = 1);

}  // namespace tenon
