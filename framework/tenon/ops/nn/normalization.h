// Normalisations: over trailing dimensions, over groups of channels, over the batch.
#pragma once

#include <tenon/tensor/tensor.h>

#include <tuple>

namespace tenon {

/// Over the trailing dimensions normalized_shape; weight and bias of that shape, or undefined.
TENON_API Tensor layer_norm(const Tensor& input, IntArrayRef normalized_shape, const Tensor& weight = {},
                            const Tensor& bias = {}, double eps = 1e-5, bool cudnn_enable = true);
/// input (N, C, …); weight and bias (C) or undefined.
TENON_API Tensor group_norm(const Tensor& input, std::int64_t num_groups, const Tensor& weight = {},
                            const Tensor& bias = {}, double eps = 1e-5, bool cudnn_enabled = true);
/// input (N, C, …). In training the batch's statistics are used and the running ones updated in place; otherwise the
/// running ones are used.
TENON_API Tensor batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                            const Tensor& running_var, bool training, double momentum, double eps,
                            bool cudnn_enabled = true);
/// input (N, C, …): batch_norm() of each picture by itself; running statistics take the mean over the batch.
TENON_API Tensor instance_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                               const Tensor& running_mean, const Tensor& running_var, bool use_input_stats,
                               double momentum, double eps, bool cudnn_enabled = true);
/// x / sqrt(mean(x^2) + eps) * weight over the trailing dimensions.
TENON_API Tensor rms_norm(const Tensor& input, IntArrayRef normalized_shape, const Tensor& weight = {},
                          std::optional<double> eps = std::nullopt);

}  // namespace tenon
