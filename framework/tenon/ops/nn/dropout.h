// Dropout: in training, elements become 0 with probability p and the others are scaled; otherwise the input itself is
// the result. Each throws Error where p is not in [0, 1].
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// In training each element is 0 with probability p, and else divided by 1 - p; otherwise the input itself. Any sizes,
/// which the result has too. Srivastava et al., "Dropout", 2014. Throws Error where p is not in [0, 1].
TENON_API Tensor dropout(const Tensor& input, double p, bool train);
TENON_API Tensor& dropout_(Tensor& input, double p, bool train);
/// dropout() of whole channels of (N, C, …): Tompson et al., "Efficient object localization using convolutional
/// networks", 2015. Throws Error below 2 dims, and where p is not in [0, 1].
TENON_API Tensor feature_dropout(const Tensor& input, double p, bool train);
TENON_API Tensor& feature_dropout_(Tensor& input, double p, bool train);
/// Dropout after selu() that keeps mean 0 and variance 1: a dropped element gets selu()'s lowest value instead of 0,
/// and all are then scaled and shifted. Any sizes. Klambauer et al., "Self-normalizing neural networks", 2017. Throws
/// Error where p is not in [0, 1].
TENON_API Tensor alpha_dropout(const Tensor& input, double p, bool train);
TENON_API Tensor& alpha_dropout_(Tensor& input, double p, bool train);
/// alpha_dropout() of whole channels of (N, C, …). Throws Error below 2 dims, and where p is not in [0, 1].
TENON_API Tensor feature_alpha_dropout(const Tensor& input, double p, bool train);
TENON_API Tensor& feature_alpha_dropout_(Tensor& input, double p, bool train);

}  // namespace tenon
