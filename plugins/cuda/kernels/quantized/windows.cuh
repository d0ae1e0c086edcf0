// What both convolutions of integers are given: the sizes of their windows, and what becomes of a sum of products.
#pragma once

#include <tenon/core/half.h>
#include <tenon/kernel/attributes/quantization.h>

#include "kernels/quantized/rounding.cuh"
#include "kernels/reduce/packed_lines.cuh"

namespace tenon::cuda {

struct Windows {
  Windows(const TensorView& x, const TensorView& w, const TensorView& y, const ConvAttributes& a)
      : windows(y.sizes[0] * y.sizes[2] * y.sizes[3]),
        groups(static_cast<int>(a.groups)),
        channels(static_cast<int>(x.sizes[1])),
        outputs(static_cast<int>(y.sizes[1])),
        in_group(static_cast<int>(w.sizes[1])),
        out_group(outputs / groups),
        height(static_cast<int>(x.sizes[2])),
        width(static_cast<int>(x.sizes[3])),
        out_height(static_cast<int>(y.sizes[2])),
        out_width(static_cast<int>(y.sizes[3])),
        kernel_height(static_cast<int>(w.sizes[2])),
        kernel_width(static_cast<int>(w.sizes[3])) {
    for (int d = 0; d < 2; ++d) {
      stride[d] = static_cast<int>(a.stride[d]);
      padding[d] = static_cast<int>(a.padding[d]);
      dilation[d] = static_cast<int>(a.dilation[d]);
    }
  }
  i64 windows;
  int groups, channels, outputs, in_group, out_group;
  int height, width, out_height, out_width, kernel_height, kernel_width;
  int stride[2], padding[2], dilation[2];

  /// Whether windows are the positions of x, as in a linear layer.
  bool are_rows() const {
    bool are = groups == 1;
    for (int d = 0; d < 2; ++d) are = are && stride[d] == 1 && padding[d] == 0;
    return are && kernel_height == 1 && kernel_width == 1;
  }
  /// Products that an output is the sum of, padding included.
  TENON_HOST_DEVICE int terms() const { return in_group * kernel_height * kernel_width; }
#if defined(__CUDACC__)
  __device__ bool has(int h, int v) const { return h >= 0 && h < height && v >= 0 && v < width; }
#endif
};

/// From sums of products to elements of y, float or integers.
template <class Y>
struct Scaling {
  Scaling(const TensorView& scales, const TensorView& added, const QuantizedConvAttributes& a)
      : w_scales(scales.as<const float>()),
        bias(added.defined() ? added.as<const float>() : nullptr),
        x_scale(static_cast<float>(a.x_scale)),
        y_scale(static_cast<float>(a.y_scale)),
        x_zero(static_cast<i32>(a.x_zero_point)),
        y_zero(static_cast<i32>(a.y_zero_point)),
        relu(a.relu) {}
  const float *w_scales, *bias;
  float x_scale, y_scale;
  i32 x_zero, y_zero;
  bool relu;

#if defined(__CUDACC__)
  /// Of output `channel`; the zero point of x is not in the sum any more.
  __device__ Y value(i32 sum, int channel) const {
    float value = static_cast<float>(sum) * (x_scale * w_scales[channel]);
    if (bias != nullptr) value += bias[channel];
    if (relu && value < 0.0f) value = 0.0f;
    if constexpr (std::is_same_v<Y, float>) {
      return value;
    } else {
      return Rounding<Y>(y_scale, y_zero)(value);
    }
  }
  /// x's zero point in each byte of a word.
  __device__ u32 zeros() const { return static_cast<u32>(x_zero & 255) * 0x01010101u; }
#endif
};

}  // namespace tenon::cuda
