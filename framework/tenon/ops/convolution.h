// Convolution and pooling.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon {

TENON_API Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                             IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding, std::int64_t groups);
TENON_API Tensor conv1d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt, IntArrayRef stride = 1,
                        IntArrayRef padding = 0, IntArrayRef dilation = 1, std::int64_t groups = 1);
TENON_API Tensor conv2d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt, IntArrayRef stride = 1,
                        IntArrayRef padding = 0, IntArrayRef dilation = 1, std::int64_t groups = 1);
TENON_API Tensor conv3d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt, IntArrayRef stride = 1,
                        IntArrayRef padding = 0, IntArrayRef dilation = 1, std::int64_t groups = 1);
TENON_API Tensor conv_transpose1d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt, IntArrayRef stride = 1,
                                  IntArrayRef padding = 0, IntArrayRef output_padding = 0, std::int64_t groups = 1, IntArrayRef dilation = 1);
TENON_API Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt, IntArrayRef stride = 1,
                                  IntArrayRef padding = 0, IntArrayRef output_padding = 0, std::int64_t groups = 1, IntArrayRef dilation = 1);
TENON_API Tensor conv_transpose3d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias = std::nullopt, IntArrayRef stride = 1,
                                  IntArrayRef padding = 0, IntArrayRef output_padding = 0, std::int64_t groups = 1, IntArrayRef dilation = 1);

#define TENON_DECLARE_POOLS(n)                                                                                              \
  TENON_API std::tuple<Tensor, Tensor> max_pool##n##d_with_indices(const Tensor& input, IntArrayRef kernel, IntArrayRef stride = {}, \
                                                                   IntArrayRef padding = 0, IntArrayRef dilation = 1, bool ceil_mode = false); \
  TENON_API Tensor max_pool##n##d(const Tensor& input, IntArrayRef kernel, IntArrayRef stride = {}, IntArrayRef padding = 0, \
                                  IntArrayRef dilation = 1, bool ceil_mode = false);                                        \
  TENON_API Tensor avg_pool##n##d(const Tensor& input, IntArrayRef kernel, IntArrayRef stride = {}, IntArrayRef padding = 0, \
                                  bool ceil_mode = false, bool count_include_pad = true,                                    \
                                  std::optional<std::int64_t> divisor_override = std::nullopt);                             \
  TENON_API Tensor adaptive_avg_pool##n##d(const Tensor& input, IntArrayRef output_size);                                   \
  TENON_API std::tuple<Tensor, Tensor> adaptive_max_pool##n##d(const Tensor& input, IntArrayRef output_size);
TENON_DECLARE_POOLS(1)
TENON_DECLARE_POOLS(2)
TENON_DECLARE_POOLS(3)
#undef TENON_DECLARE_POOLS

/// (N, C, H, W) -> (N, C * kernel, L) and back.
TENON_API Tensor im2col(const Tensor& input, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride);
TENON_API Tensor col2im(const Tensor& input, IntArrayRef output_size, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride);

}  // namespace tenon
