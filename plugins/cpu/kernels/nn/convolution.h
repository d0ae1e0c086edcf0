// What the convolution kernels share: one description of the shapes for both implementations.
#pragma once

#include <tenon/kernel/attributes/linear.h>

#include "kernels/linalg/gemm.h"
#include "kernels/pointwise/lanes.h"

namespace tenon::cpu {

/// A convolution in three spatial dimensions, missing ones of size 1.
struct ConvShape {
  int spatial = 2;
  std::int64_t batch = 1, in_channels = 1, out_channels = 1, groups = 1;
  std::int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  std::int64_t stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};

  std::int64_t in_plane() const { return in[0] * in[1] * in[2]; }
  std::int64_t out_plane() const { return out[0] * out[1] * out[2]; }
  std::int64_t window() const { return kernel[0] * kernel[1] * kernel[2]; }
};

ConvShape conv_shape(const TensorView& x, const TensorView& w, const TensorView& y, const ConvAttributes& attributes);

/// float32 or bfloat16 through oneDNN. Views are of one dtype, contiguous or channels-last dense. False where oneDNN
/// has no implementation.
bool onednn_forward(KernelContext& context, const ConvShape& shape, const TensorView& x, const TensorView& w,
                    const TensorView* bias, const TensorView& y);
bool onednn_backward_input(KernelContext& context, const ConvShape& shape, const TensorView& dy, const TensorView& w,
                           const TensorView& dx);
bool onednn_backward_weight(KernelContext& context, const ConvShape& shape, const TensorView& dy, const TensorView& x,
                            const TensorView& dw);

/// Windows of one element without padding or groups: contiguous float32 tensors, by products with no other layout.
bool is_pointwise(const ConvShape& shape);
void pointwise_forward(KernelContext& context, const ConvShape& shape, const TensorView& x, const TensorView& w,
                       const TensorView* bias, const TensorView& y);
void pointwise_backward_input(KernelContext& context, const ConvShape& shape, const TensorView& dy, const TensorView& w,
                              const TensorView& dx);
void pointwise_backward_weight(KernelContext& context, const ConvShape& shape, const TensorView& dy,
                               const TensorView& x, const TensorView& dw);

/// Any contiguous float32 or float64, by im2col and matrix products.
void general_forward(KernelContext& context, Dtype dtype, const ConvShape& shape, const char* x, const char* w,
                     const char* bias, char* y);
void general_backward_input(KernelContext& context, Dtype dtype, const ConvShape& shape, const char* dy, const char* w,
                            char* dx);
void general_backward_weight(KernelContext& context, Dtype dtype, const ConvShape& shape, const char* dy, const char* x,
                             char* dw);

}  // namespace tenon::cpu
