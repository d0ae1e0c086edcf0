// Convolutions of 1, 2 and 3 spatial dimensions, and transposed ones. Names, shapes and errors are PyTorch's.
#pragma once

#include <tenon/tensor/tensor.h>

#include <string_view>

namespace tenon {

/// input (N, C, …) or (C, …), weight (O, C / groups, …), bias (O) or undefined. One number stands for all dimensions.
TENON_API Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias = {}, IntArrayRef stride = 1,
                        IntArrayRef padding = 0, IntArrayRef dilation = 1, std::int64_t groups = 1);
TENON_API Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias = {}, IntArrayRef stride = 1,
                        IntArrayRef padding = 0, IntArrayRef dilation = 1, std::int64_t groups = 1);
TENON_API Tensor conv3d(const Tensor& input, const Tensor& weight, const Tensor& bias = {}, IntArrayRef stride = 1,
                        IntArrayRef padding = 0, IntArrayRef dilation = 1, std::int64_t groups = 1);
/// padding is "valid" or "same" (stride 1: the output has the input's sizes).
TENON_API Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride,
                        std::string_view padding, IntArrayRef dilation = 1, std::int64_t groups = 1);
TENON_API Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride,
                        std::string_view padding, IntArrayRef dilation = 1, std::int64_t groups = 1);
TENON_API Tensor conv3d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride,
                        std::string_view padding, IntArrayRef dilation = 1, std::int64_t groups = 1);

/// input (N, C, …) or (C, …), weight (C, O / groups, …), bias (O) or undefined.
TENON_API Tensor conv_transpose1d(const Tensor& input, const Tensor& weight, const Tensor& bias = {}, IntArrayRef stride = 1,
                                  IntArrayRef padding = 0, IntArrayRef output_padding = 0, std::int64_t groups = 1,
                                  IntArrayRef dilation = 1);
TENON_API Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const Tensor& bias = {}, IntArrayRef stride = 1,
                                  IntArrayRef padding = 0, IntArrayRef output_padding = 0, std::int64_t groups = 1,
                                  IntArrayRef dilation = 1);
TENON_API Tensor conv_transpose3d(const Tensor& input, const Tensor& weight, const Tensor& bias = {}, IntArrayRef stride = 1,
                                  IntArrayRef padding = 0, IntArrayRef output_padding = 0, std::int64_t groups = 1,
                                  IntArrayRef dilation = 1);

}  // namespace tenon
