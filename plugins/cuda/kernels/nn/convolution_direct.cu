// Convolutions as their definition says: a thread sums up an element of y or dx, a block one of dw. For what cuDNN does
// not do, or where it is not there; any strides.
#include "kernels/launch.h"
#include "kernels/nn/convolution.h"
#include "kernels/offsets.cuh"

namespace tenon::cuda {
namespace {

// (outer, inner, [depth, [height,]] width), missing dimensions of size 1.
template <class T>
struct Planes {
  Planes(const TensorView& v, int spatial) : data(v.as<T>()) {
    for (int d = 0; d < 5; ++d) {
      const int own = d < 2 ? d : d - (3 - spatial);
      const bool there = d < 2 || own >= 2;
      sizes[d] = there ? static_cast<int>(v.sizes[own]) : 1;
      strides[d] = there ? v.strides[own] : 0;
    }
  }
  /// The coordinates of element i in row-major order.
  __device__ void locate(i64 i, int (&at)[5]) const {
#pragma unroll
    for (int d = 4; d >= 0; --d) {
      at[d] = static_cast<int>(i % sizes[d]);
      i /= sizes[d];
    }
  }
  __device__ i64 offset(const int (&at)[5]) const {
    i64 sum = 0;
#pragma unroll
    for (int d = 0; d < 5; ++d) sum += at[d] * strides[d];
    return sum;
  }
  T* data;
  int sizes[5];
  i64 strides[5];
};

struct Steps {
  explicit Steps(const ConvAttributes& a) : groups(static_cast<int>(a.groups)) {
    for (int d = 0; d < a.spatial; ++d) {
      const int to = 3 - a.spatial + d;
      stride[to] = static_cast<int>(a.stride[d]);
      padding[to] = static_cast<int>(a.padding[d]);
      dilation[to] = static_cast<int>(a.dilation[d]);
    }
  }
  int stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};
  int groups;

  /// The input that tap k of output o reads, or one outside of [0, size).
  __device__ int input(int d, int o, int k) const { return o * stride[d] - padding[d] + k * dilation[d]; }
  /// The output whose tap k reads input i, or -1.
  __device__ int output(int d, int i, int k, int size) const {
    const int at = i + padding[d] - k * dilation[d];
    if (at < 0 || at % stride[d] != 0 || at / stride[d] >= size) return -1;
    return at / stride[d];
  }
};

template <class T>
__global__ void forward(Planes<const T> x, Planes<const T> w, Planes<T> y, const T* bias, i64 bias_stride, Steps s,
                        i64 n) {
  using C = Compute<T>;
  for (i64 i = first_item(); i < n; i += all_items()) {
    int o[5];
    y.locate(i, o);
    const int first = o[1] / (w.sizes[0] / s.groups) * w.sizes[1];  // channel of the group
    C sum = bias != nullptr ? load_as(bias[o[1] * bias_stride]) : C(0);
    for (int c = 0; c < w.sizes[1]; ++c) {
      for (int kd = 0; kd < w.sizes[2]; ++kd) {
        const int d = s.input(0, o[2], kd);
        if (d < 0 || d >= x.sizes[2]) continue;
        for (int kh = 0; kh < w.sizes[3]; ++kh) {
          const int h = s.input(1, o[3], kh);
          if (h < 0 || h >= x.sizes[3]) continue;
          for (int kw = 0; kw < w.sizes[4]; ++kw) {
            const int column = s.input(2, o[4], kw);
            if (column < 0 || column >= x.sizes[4]) continue;
            const int from[5] = {o[0], first + c, d, h, column}, by[5] = {o[1], c, kd, kh, kw};
            sum += load_as(x.data[x.offset(from)]) * load_as(w.data[w.offset(by)]);
          }
        }
      }
    }
    y.data[y.offset(o)] = store_as<T>(sum);
  }
}

template <class T>
__global__ void backward_input(Planes<T> dx, Planes<const T> w, Planes<const T> dy, Steps s, i64 n) {
  using C = Compute<T>;
  const int of_group = w.sizes[0] / s.groups;
  for (i64 i = first_item(); i < n; i += all_items()) {
    int at[5];
    dx.locate(i, at);
    const int first = at[1] / w.sizes[1] * of_group, channel = at[1] % w.sizes[1];
    C sum = 0;
    for (int c = 0; c < of_group; ++c) {
      for (int kd = 0; kd < w.sizes[2]; ++kd) {
        const int d = s.output(0, at[2], kd, dy.sizes[2]);
        if (d < 0) continue;
        for (int kh = 0; kh < w.sizes[3]; ++kh) {
          const int h = s.output(1, at[3], kh, dy.sizes[3]);
          if (h < 0) continue;
          for (int kw = 0; kw < w.sizes[4]; ++kw) {
            const int column = s.output(2, at[4], kw, dy.sizes[4]);
            if (column < 0) continue;
            const int from[5] = {at[0], first + c, d, h, column}, by[5] = {first + c, channel, kd, kh, kw};
            sum += load_as(dy.data[dy.offset(from)]) * load_as(w.data[w.offset(by)]);
          }
        }
      }
    }
    dx.data[dx.offset(at)] = store_as<T>(sum);
  }
}

// One block for each weight: its threads take positions of dy in turn, and their sums are added as a tree.
template <class T>
__global__ void __launch_bounds__(kThreads)
    backward_weight(Planes<const T> x, Planes<T> dw, Planes<const T> dy, Steps s, i64 n) {
  using C = Compute<T>;
  __shared__ C sums[kThreads];
  const int of_group = dw.sizes[0] / s.groups, own = static_cast<int>(threadIdx.x);
  const i64 plane = i64{dy.sizes[2]} * dy.sizes[3] * dy.sizes[4], positions = dy.sizes[0] * plane;
  for (i64 i = blockIdx.x; i < n; i += gridDim.x) {
    int at[5];
    dw.locate(i, at);
    const int channel = at[0] / of_group * dw.sizes[1] + at[1];
    C sum = 0;
    for (i64 p = own; p < positions; p += kThreads) {
      int o[5];
      dy.locate(p / plane * plane * dy.sizes[1] + p % plane, o);
      o[1] = at[0];
      const int from[5] = {o[0], channel, s.input(0, o[2], at[2]), s.input(1, o[3], at[3]), s.input(2, o[4], at[4])};
      bool inside = true;
      for (int d = 2; d < 5; ++d) inside = inside && from[d] >= 0 && from[d] < x.sizes[d];
      if (inside) sum += load_as(x.data[x.offset(from)]) * load_as(dy.data[dy.offset(o)]);
    }
    sums[own] = sum;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
      if (own < half) sums[own] += sums[own + half];
      __syncthreads();
    }
    if (own == 0) dw.data[dw.offset(at)] = store_as<T>(sums[0]);
    __syncthreads();
  }
}

}  // namespace

void direct_convolution(KernelContext& context, const Convolution& c) {
  const int spatial = c.attributes.spatial;
  const Steps steps(c.attributes);
  const i64 n = c.output().element_count();
  floats_only("conv", c.output().dtype, [&]<class T>(Type<T>) {
    const LaunchShape of_elements{.grid = blocks_for(n), .block = kThreads};
    switch (c.kind) {
      case ConvKind::kForward: {
        const bool biased = c.bias.defined();
        return launch(context, of_elements, forward<T>, Planes<const T>(c.x, spatial), Planes<const T>(c.w, spatial),
                      Planes<T>(c.y, spatial), biased ? c.bias.as<const T>() : nullptr, biased ? c.bias.strides[0] : 0,
                      steps, n);
      }
      case ConvKind::kBackwardInput:
        return launch(context, of_elements, backward_input<T>, Planes<T>(c.x, spatial), Planes<const T>(c.w, spatial),
                      Planes<const T>(c.y, spatial), steps, n);
      case ConvKind::kBackwardWeight:
        return launch(context, {.grid = blocks_for(n, 1), .block = kThreads}, backward_weight<T>,
                      Planes<const T>(c.x, spatial), Planes<T>(c.w, spatial), Planes<const T>(c.y, spatial), steps, n);
    }
  });
}

}  // namespace tenon::cuda
