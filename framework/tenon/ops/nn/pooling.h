// Pooling over windows of 1, 2 and 3 spatial dimensions. Names, shapes and errors are PyTorch's.
#pragma once

#include <tenon/tensor/tensor.h>

#include <optional>
#include <tuple>

namespace tenon {

// Of D spatial dimensions: (N, C, …) -> (N, C, windows…), or (C, …) without N. One number stands for all dimensions.
#define TENON_DECLARE_POOLING(D)                                                                                      \
  /** Maxima over windows, in the input's dtype. An empty stride is the kernel's size, ceil_mode rounds the number of \
   * windows up; padding counts as -infinity. Throws Error for other ranks, a size of 0 (but N), a padding above half \
   * of the kernel, and where no window fits. */                                                                      \
  TENON_API Tensor max_pool##D##d(const Tensor& input, IntArrayRef kernel_size, IntArrayRef stride = {},              \
                                  IntArrayRef padding = 0, IntArrayRef dilation = 1, bool ceil_mode = false);         \
  /** As max_pool, with the position of each maximum in the flattened spatial dimensions of the input (int64); -1     \
   * where a window lies in the padding alone. */                                                                     \
  TENON_API std::tuple<Tensor, Tensor> max_pool##D##d_with_indices(const Tensor& input, IntArrayRef kernel_size,      \
                                                                   IntArrayRef stride = {}, IntArrayRef padding = 0,  \
                                                                   IntArrayRef dilation = 1, bool ceil_mode = false); \
  /** Means over output_size windows of nearly equal size. Throws Error for other ranks, a negative size, and a dtype \
   * that is not floating. */                                                                                         \
  TENON_API Tensor adaptive_avg_pool##D##d(const Tensor& input, IntArrayRef output_size);                             \
  /** Maxima over output_size windows of nearly equal size, and the position of each in the flattened spatial         \
   * dimensions (int64). Throws Error for other ranks, and a negative size. */                                        \
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

/// Sliding windows as columns: (N, C, H, W) to (N, C * elements of the kernel, windows); N may be missing. Throws Error
/// where no window fits, and for a kernel, dilation or stride below 1 or a negative padding.
TENON_API Tensor im2col(const Tensor& input, IntArrayRef kernel_size, IntArrayRef dilation, IntArrayRef padding,
                        IntArrayRef stride);
/// The adjoint of im2col(): (N, C * elements of the kernel, windows) to (N, C, H, W), H and W being output_size;
/// windows that overlap are summed. N may be missing. Throws Error where the sizes do not fit, and as im2col().
TENON_API Tensor col2im(const Tensor& input, IntArrayRef output_size, IntArrayRef kernel_size, IntArrayRef dilation,
                        IntArrayRef padding, IntArrayRef stride);

}  // namespace tenon
