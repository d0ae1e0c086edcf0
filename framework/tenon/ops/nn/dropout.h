// Dropout of whole channels, alpha dropout, and normalisation of single pictures.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// Zeroes whole channels (N, C, …) with probability p in training, and scales the others by 1 / (1 - p).
TENON_API Tensor feature_dropout(const Tensor& input, double p, bool train);
TENON_API Tensor& feature_dropout_(Tensor& input, double p, bool train);
/// Keeps mean and variance of what SELU gives.
TENON_API Tensor alpha_dropout(const Tensor& input, double p, bool train);
TENON_API Tensor& alpha_dropout_(Tensor& input, double p, bool train);
/// alpha_dropout() of whole channels (N, C, …): mean and variance stay.
TENON_API Tensor feature_alpha_dropout(const Tensor& input, double p, bool train);
TENON_API Tensor& feature_alpha_dropout_(Tensor& input, double p, bool train);
/// (N, C, …): normalised over the spatial dims of each picture and channel. Ulyanov et al., 2016.
TENON_API Tensor instance_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                               const Tensor& running_mean, const Tensor& running_var, bool use_input_stats,
                               double momentum, double eps, bool cudnn_enabled = true);

}  // namespace tenon
