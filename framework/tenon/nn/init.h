// First values of parameters (libtorch: nn::init). Every function writes in place, without a gradient, and returns its
// tensor.
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/options/enum.h>
#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <tuple>

namespace tenon::nn::init {

using NonlinearityType =
    enumtype::OneOf<enumtype::kLinear, enumtype::kConv1D, enumtype::kConv2D, enumtype::kConv3D,
                    enumtype::kConvTranspose1D, enumtype::kConvTranspose2D, enumtype::kConvTranspose3D,
                    enumtype::kSigmoid, enumtype::kTanh, enumtype::kReLU, enumtype::kLeakyReLU>;
using FanModeType = enumtype::OneOf<enumtype::kFanIn, enumtype::kFanOut>;

struct Fan {
  std::int64_t in = 0;
  std::int64_t out = 0;
  explicit TENON_API Fan(Tensor& tensor);
};

/// The recommended gain: 1 for linear maps and sigmoid, 5/3 for tanh, sqrt(2) for ReLU, sqrt(2 / (1 + param^2)) for
/// leaky ReLU.
TENON_API double calculate_gain(NonlinearityType nonlinearity, double param = 0.01);

/// Fills the tensor with one value, without a gradient, and returns it; so do all functions here.
TENON_API Tensor constant_(Tensor tensor, Scalar value);
/// Fills with 0.
TENON_API Tensor zeros_(Tensor tensor);
/// Fills with 1.
TENON_API Tensor ones_(Tensor tensor);
/// Fills from N(mean, std^2).
TENON_API Tensor normal_(Tensor tensor, double mean = 0, double std = 1);
/// Fills from U(low, high).
TENON_API Tensor uniform_(Tensor tensor, double low = 0, double high = 1);
/// The identity matrix. Throws Error for another rank than 2.
TENON_API Tensor eye_(Tensor matrix);
/// Keeps the identity of as many channels as possible. Throws Error for another rank than 3 to 5.
TENON_API Tensor dirac_(Tensor tensor);
/// A (semi-)orthogonal matrix over the flattened trailing dimensions (Saxe et al., 2013). Throws Error below
/// rank 2.
TENON_API Tensor orthogonal_(Tensor tensor, double gain = 1.0);
/// From N(0, std^2), then ceil(sparsity * rows) places of each column, drawn anew for each, become 0 (Martens, 2010).
/// Throws Error for another rank than 2.
TENON_API Tensor sparse_(Tensor tensor, double sparsity, double std = 0.01);
/// From U(-b, b), b = gain * sqrt(3 / fan): fan as of _calculate_fan_in_and_fan_out() by the mode, gain as of
/// calculate_gain(nonlinearity, a). He et al., 2015. Throws Error below rank 2.
TENON_API Tensor kaiming_uniform_(Tensor tensor, double a = 0, FanModeType mode = kFanIn,
                                  NonlinearityType nonlinearity = kLeakyReLU);
/// As kaiming_uniform_(), from N(0, gain^2 / fan).
TENON_API Tensor kaiming_normal_(Tensor tensor, double a = 0, FanModeType mode = kFanIn,
                                 NonlinearityType nonlinearity = kLeakyReLU);
/// From U(-b, b), b = gain * sqrt(6 / (fan in + fan out)). Glorot and Bengio, 2010. Throws Error below rank 2.
TENON_API Tensor xavier_uniform_(Tensor tensor, double gain = 1.0);
/// As xavier_uniform_(), from N(0, 2 gain^2 / (fan in + fan out)).
TENON_API Tensor xavier_normal_(Tensor tensor, double gain = 1.0);

/// Fan in and fan out: columns and rows, times the size of the receptive field. Throws Error below rank 2.
TENON_API std::tuple<std::int64_t, std::int64_t> _calculate_fan_in_and_fan_out(const Tensor& tensor);

}  // namespace tenon::nn::init
