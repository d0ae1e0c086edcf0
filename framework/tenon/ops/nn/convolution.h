// Convolutions of 1, 2 and 3 spatial dimensions, and transposed ones. Names, shapes and errors are PyTorch's.
#pragma once

#include <tenon/tensor/tensor.h>

#include <concepts>
#include <string_view>
#include <type_traits>

namespace tenon {

/// input (N, C, …) or (C, …), weight (O, C / groups, …), bias (O) or undefined -> (N, O, …) or (O, …); each spatial
/// size is floor((size + 2 padding - dilation (kernel - 1) - 1) / stride) + 1. Padding is zeros at both ends. One
/// number stands for all dimensions. Integers are convolved too, without a gradient. Throws Error for sizes that do not
/// fit, different dtypes, a kernel that is larger than the padded input, and bool.
TENON_API Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias = {}, IntArrayRef stride = 1,
                        IntArrayRef padding = 0, IntArrayRef dilation = 1, std::int64_t groups = 1);
/// input (N, C, H, W) or (C, H, W), weight (out, C / groups, kH, kW): see conv1d().
TENON_API Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias = {}, IntArrayRef stride = 1,
                        IntArrayRef padding = 0, IntArrayRef dilation = 1, std::int64_t groups = 1);
/// input (N, C, D, H, W) or (C, D, H, W), weight (out, C / groups, kD, kH, kW): see conv1d().
TENON_API Tensor conv3d(const Tensor& input, const Tensor& weight, const Tensor& bias = {}, IntArrayRef stride = 1,
                        IntArrayRef padding = 0, IntArrayRef dilation = 1, std::int64_t groups = 1);
namespace detail {
TENON_API Tensor conv1d_padded(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride,
                               std::string_view padding, IntArrayRef dilation, std::int64_t groups);
TENON_API Tensor conv2d_padded(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride,
                               std::string_view padding, IntArrayRef dilation, std::int64_t groups);
TENON_API Tensor conv3d_padded(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride,
                               std::string_view padding, IntArrayRef dilation, std::int64_t groups);
}  // namespace detail

/// What names a padding; not a number, so that a literal 0 (which is also a null pointer) is an amount.
template <class Name>
concept PaddingName = std::convertible_to<const Name&, std::string_view> && !std::is_arithmetic_v<Name>;
/// padding is "valid", which is none, or "same": the output has the input's sizes, and an odd number of zeros has one
/// more at the end. Throws Error for "same" with a stride above 1, and for another word.
template <PaddingName Name>
Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride, const Name& padding,
              IntArrayRef dilation = 1, std::int64_t groups = 1) {
  return detail::conv1d_padded(input, weight, bias, stride, padding, dilation, groups);
}
template <PaddingName Name>
Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride, const Name& padding,
              IntArrayRef dilation = 1, std::int64_t groups = 1) {
  return detail::conv2d_padded(input, weight, bias, stride, padding, dilation, groups);
}
template <PaddingName Name>
Tensor conv3d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride, const Name& padding,
              IntArrayRef dilation = 1, std::int64_t groups = 1) {
  return detail::conv3d_padded(input, weight, bias, stride, padding, dilation, groups);
}

/// The adjoint of a convolution: input (N, C, …) or (C, …), weight (C, O / groups, …), bias (O) or undefined -> (N, O,
/// …) or (O, …); each spatial size is (size - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1.
/// Throws Error for sizes that do not fit, and an output_padding that is not below the stride or the dilation.
TENON_API Tensor conv_transpose1d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                                  IntArrayRef stride = 1, IntArrayRef padding = 0, IntArrayRef output_padding = 0,
                                  std::int64_t groups = 1, IntArrayRef dilation = 1);
/// input (N, C, H, W) or (C, H, W), weight (C, out / groups, kH, kW): see conv_transpose1d().
TENON_API Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                                  IntArrayRef stride = 1, IntArrayRef padding = 0, IntArrayRef output_padding = 0,
                                  std::int64_t groups = 1, IntArrayRef dilation = 1);
/// input (N, C, D, H, W) or (C, D, H, W), weight (C, out / groups, kD, kH, kW): see conv_transpose1d().
TENON_API Tensor conv_transpose3d(const Tensor& input, const Tensor& weight, const Tensor& bias = {},
                                  IntArrayRef stride = 1, IntArrayRef padding = 0, IntArrayRef output_padding = 0,
                                  std::int64_t groups = 1, IntArrayRef dilation = 1);

}  // namespace tenon
