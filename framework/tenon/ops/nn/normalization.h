// Normalisations: over trailing dimensions, over groups of channels, over the batch.
#pragma once

#include <tenon/tensor/tensor.h>

#include <tuple>

namespace tenon {

/// (x - mean) / sqrt(variance + eps) * weight + bias, mean and variance (divided by n) over the trailing dimensions,
/// which have the sizes normalized_shape; weight and bias of that shape, or undefined. Ba et al., "Layer
/// normalization", 2016. Throws Error where the sizes do not fit, dtypes differ or are not floating.
TENON_API Tensor layer_norm(const Tensor& input, IntArrayRef normalized_shape, const Tensor& weight = {},
                            const Tensor& bias = {}, double eps = 1e-5, bool cudnn_enable = true);
/// As layer_norm(), mean and variance over each of num_groups groups of channels of each sample: input (N, C, …),
/// weight and bias (C) or undefined. Wu and He, "Group normalization", 2018. Throws Error where num_groups does not
/// divide C.
TENON_API Tensor group_norm(const Tensor& input, std::int64_t num_groups, const Tensor& weight = {},
                            const Tensor& bias = {}, double eps = 1e-5, bool cudnn_enabled = true);
/// As layer_norm(), mean and variance over all of a channel: input (N, C, …), the other tensors (C) or undefined. In
/// training they are the batch's, and running statistics become (1 - momentum) times themselves plus momentum times the
/// batch's, the variance divided by n - 1; otherwise the running ones are used. Ioffe and Szegedy, "Batch
/// normalization", 2015. Throws Error where these are missing then, and where sizes do not fit.
TENON_API Tensor batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                            const Tensor& running_var, bool training, double momentum, double eps,
                            bool cudnn_enabled = true);
/// batch_norm() of each sample by itself: input (N, C, …); use_input_stats is its `training`, and running statistics
/// become the mean of what each sample would make of them. Ulyanov et al., "Instance normalization", 2016. Throws Error
/// as batch_norm().
TENON_API Tensor instance_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                               const Tensor& running_mean, const Tensor& running_var, bool use_input_stats,
                               double momentum, double eps, bool cudnn_enabled = true);
/// x / sqrt(mean(x^2) + eps) * weight, the mean over the trailing dimensions, which have the sizes normalized_shape.
/// eps is by default the machine epsilon of float64 for float64, else of float32. Zhang and Sennrich, "Root mean square
/// layer normalization", 2019. Throws Error where the sizes do not fit, and for a dtype that is not floating.
TENON_API Tensor rms_norm(const Tensor& input, IntArrayRef normalized_shape, const Tensor& weight = {},
                          std::optional<double> eps = std::nullopt);

}  // namespace tenon
