// Convolution of integers, for which there are no convolution kernels: sums wrap in their dtype, without gradients.
#pragma once

#include <tenon/kernel/attributes/linear.h>
#include <tenon/tensor/tensor.h>

namespace tenon::ops {

/// x (N, C, …), w (O, C / groups, …), bias (O) or undefined, all of one integral dtype, to (N, O, …). Throws
/// NotImplementedError for kBool.
Tensor whole_convolution(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvAttributes& attributes);
/// Its adjoint in x (a transposed convolution): y (N, O, …) to x_sizes, (N, C, …). Throws NotImplementedError for
/// kBool.
Tensor whole_convolution_input(const Tensor& y, const Tensor& w, const Dims& x_sizes, const ConvAttributes& attributes);

}  // namespace tenon::ops
