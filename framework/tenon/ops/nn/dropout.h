// Dropout: in training, elements become 0 with probability p and the others are scaled; otherwise the input itself is
// the result. Throws Error where p is not in [0, 1].
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

/// Single elements; the others are divided by 1 - p.
TENON_API Tensor dropout(const Tensor& input, double p, bool train);
TENON_API Tensor& dropout_(Tensor& input, double p, bool train);
/// Whole channels of (N, C, …).
TENON_API Tensor feature_dropout(const Tensor& input, double p, bool train);
TENON_API Tensor& feature_dropout_(Tensor& input, double p, bool train);
/// Keeps mean and variance of what SELU gives: Klambauer et al., "Self-normalizing neural networks", 2017.
TENON_API Tensor alpha_dropout(const Tensor& input, double p, bool train);
TENON_API Tensor& alpha_dropout_(Tensor& input, double p, bool train);
/// The same for whole channels.
TENON_API Tensor feature_alpha_dropout(const Tensor& input, double p, bool train);
TENON_API Tensor& feature_alpha_dropout_(Tensor& input, double p, bool train);

}  // namespace tenon
