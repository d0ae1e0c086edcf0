// Pooling over windows of 1, 2 and 3 spatial dimensions. Names, shapes and errors are PyTorch's.
#pragma once

#include <tenon/tensor/tensor.h>

#include <optional>
#include <tuple>

namespace tenon {

/// Maxima over windows of (N, C, …) or (C, …). An empty stride is the kernel's size, one number stands for all
/// dimensions, ceil_mode rounds the number of windows up; padding counts as -infinity. The adaptive ones,
/// means and maxima (with positions), have output_size windows of nearly equal size. Throws Error for a padding
/// above half of the kernel.
#define TENON_DECLARE_POOLING(D)                                                                                      \
  TENON_API Tensor max_pool##D##d(const Tensor& input, IntArrayRef kernel_size, IntArrayRef stride = {},              \
                                  IntArrayRef padding = 0, IntArrayRef dilation = 1, bool ceil_mode = false);         \
  /** Also the position of each maximum in the flattened spatial dimensions of the input (int64). */                  \
  TENON_API std::tuple<Tensor, Tensor> max_pool##D##d_with_indices(const Tensor& input, IntArrayRef kernel_size,      \
                                                                   IntArrayRef stride = {}, IntArrayRef padding = 0,  \
                                                                   IntArrayRef dilation = 1, bool ceil_mode = false); \
  TENON_API Tensor adaptive_avg_pool##D##d(const Tensor& input, IntArrayRef output_size);                             \
  TENON_API std::tuple<Tensor, Tensor> adaptive_max_pool##D##d(const Tensor& input, IntArrayRef output_size);
TENON_DECLARE_POOLING(1)
TENON_DECLARE_POOLING(2)
TENON_DECLARE_POOLING(3)
#undef TENON_DECLARE_POOLING

/// Means over windows of (N, C, L) or (C, L). An empty stride is the kernel's size, ceil_mode rounds the number of
/// windows up; sums are divided by divisor_override where it is given, else by the elements of the window, padding
/// included, or without count_include_pad by those inside the input. Throws Error for a padding above half of the
/// kernel, a divisor of 0, and a dtype that is not floating.
TENON_API Tensor avg_pool1d(const Tensor& input, IntArrayRef kernel_size, IntArrayRef stride = {},
                            IntArrayRef padding = 0, bool ceil_mode = false, bool count_include_pad = true);
/// Means over windows of (N, C, H, W) or (C, H, W): see avg_pool1d().
TENON_API Tensor avg_pool2d(const Tensor& input, IntArrayRef kernel_size, IntArrayRef stride = {},
                            IntArrayRef padding = 0, bool ceil_mode = false, bool count_include_pad = true,
                            std::optional<std::int64_t> divisor_override = std::nullopt);
/// Means over windows of (N, C, D, H, W) or (C, D, H, W): see avg_pool1d().
TENON_API Tensor avg_pool3d(const Tensor& input, IntArrayRef kernel_size, IntArrayRef stride = {},
                            IntArrayRef padding = 0, bool ceil_mode = false, bool count_include_pad = true,
                            std::optional<std::int64_t> divisor_override = std::nullopt);

/// Sliding windows as columns: (N, C, H, W) to (N, C * elements of the kernel, windows); N may be missing.
TENON_API Tensor im2col(const Tensor& input, IntArrayRef kernel_size, IntArrayRef dilation, IntArrayRef padding,
                        IntArrayRef stride);
/// The adjoint of im2col(): (N, C * elements of the kernel, windows) to (N, C, H, W), H and W being output_size;
/// windows that overlap are summed.
TENON_API Tensor col2im(const Tensor& input, IntArrayRef output_size, IntArrayRef kernel_size, IntArrayRef dilation,
                        IntArrayRef padding, IntArrayRef stride);

}  // namespace tenon
