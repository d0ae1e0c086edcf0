// Dropout of whole channels, alpha dropout, and normalisation of single pictures.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

TENON_API Tensor feature_dropout(const Tensor& input, double p, bool train);
TENON_API Tensor& feature_dropout_(Tensor& input, double p, bool train);
/// Keeps mean and variance of what SELU gives.
TENON_API Tensor alpha_dropout(const Tensor& input, double p, bool train);
TENON_API Tensor& alpha_dropout_(Tensor& input, double p, bool train);
TENON_API Tensor feature_alpha_dropout(const Tensor& input, double p, bool train);
TENON_API Tensor& feature_alpha_dropout_(Tensor& input, double p, bool train);
TENON_API Tensor instance_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                               const Tensor& running_mean, const Tensor& running_var, bool use_input_stats,
                               double momentum, double eps, bool cudnn_enabled = true);

}  // namespace tenon
