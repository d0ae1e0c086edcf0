// Pooling of contiguous (N, C, [D, [H,]] W) planes: maximum, average, adaptive, and their backwards. One thread for
// each element that is written; the backward of averages gathers, so that its sums have one order.
#include <tenon/kernel/attributes/linear.h>

#include "kernels/launch.h"
#include "kernels/offsets.cuh"

#include <limits>

namespace tenon::cuda {
namespace {

// Every pooling as three-dimensional, missing dimensions of size 1. A plane has fewer than 2^31 elements.
struct Shape {
  i64 planes = 1;
  int in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  int kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};
  bool count_include_pad = true;
  i64 divisor_override = 0;

  i64 outputs() const { return planes * out[0] * out[1] * out[2]; }
};

Shape shape_of(const TensorView& x, const TensorView& y, const PoolAttributes& a) {
  Shape s;
  s.count_include_pad = a.count_include_pad;
  s.divisor_override = a.divisor_override;
  const int lead = x.rank - a.spatial;
  for (int d = 0; d < lead; ++d) s.planes *= x.sizes[d];
  for (int d = 0; d < a.spatial; ++d) {
    const int to = 3 - a.spatial + d;
    s.in[to] = static_cast<int>(x.sizes[lead + d]);
    s.out[to] = static_cast<int>(y.sizes[lead + d]);
    s.kernel[to] = static_cast<int>(a.kernel[d]);
    s.stride[to] = static_cast<int>(a.stride[d]);
    s.padding[to] = static_cast<int>(a.padding[d]);
    s.dilation[to] = static_cast<int>(a.dilation[d]);
  }
  return s;
}

struct Position {
  i64 plane;
  int at[3];
  __device__ Position(i64 i, const int* sizes) {
    at[2] = static_cast<int>(i % sizes[2]);
    i /= sizes[2];
    at[1] = static_cast<int>(i % sizes[1]);
    i /= sizes[1];
    at[0] = static_cast<int>(i % sizes[0]);
    plane = i / sizes[0];
  }
};

// The elements of one dimension that output `o` is made of: from, from + step, … below `to`.
struct Range {
  int from, to, step;
  int padded;  // how many, padding included
};
template <bool adaptive>
__device__ Range window(const Shape& s, int d, int o) {
  if constexpr (adaptive) {
    const int from = static_cast<int>(i64{o} * s.in[d] / s.out[d]);
    const int to = static_cast<int>((i64{o + 1} * s.in[d] + s.out[d] - 1) / s.out[d]);
    return {from, to, 1, to - from};
  } else {
    const int start = o * s.stride[d] - s.padding[d], step = s.dilation[d];
    const int end = min(start + (s.kernel[d] - 1) * step + 1, s.in[d] + s.padding[d]);
    const int from = start < 0 ? start + (-start + step - 1) / step * step : start;
    return {from, min(end, s.in[d]), step, end - start};
  }
}
// The outputs [from, to) whose windows hold input `i`; averages have no dilation.
template <bool adaptive>
__device__ Range outputs_of(const Shape& s, int d, int i) {
  if constexpr (adaptive) {
    const i64 end = (i64{i + 1} * s.out[d] + s.in[d] - 1) / s.in[d];
    return {static_cast<int>(i64{i} * s.out[d] / s.in[d]), static_cast<int>(end), 1, 0};
  } else {
    const int last = i + s.padding[d], first = last - s.kernel[d] + 1;
    return {first <= 0 ? 0 : (first + s.stride[d] - 1) / s.stride[d], min(last / s.stride[d] + 1, s.out[d]), 1, 0};
  }
}

template <class C>
__device__ C least() {
  return std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest();
}

template <class T, bool adaptive>
__global__ void max_kernel(Shape s, const T* x, T* y, i64* index, i64 n) {
  for (i64 i = first_item(); i < n; i += all_items()) {
    const Position o(i, s.out);
    const Range d = window<adaptive>(s, 0, o.at[0]), h = window<adaptive>(s, 1, o.at[1]),
                w = window<adaptive>(s, 2, o.at[2]);
    const T* const plane = x + o.plane * s.in[0] * s.in[1] * s.in[2];
    auto value = least<Compute<T>>();
    int best = -1;  // stays where the window lies in the padding alone
    for (int z = d.from; z < d.to; z += d.step) {
      for (int r = h.from; r < h.to; r += h.step) {
        for (int c = w.from; c < w.to; c += w.step) {
          const int at = (z * s.in[1] + r) * s.in[2] + c;
          const auto candidate = load_as(plane[at]);
          if (best < 0 || candidate > value || candidate != candidate) {
            value = candidate;
            best = at;
          }
        }
      }
    }
    y[i] = store_as<T>(value);
    index[i] = best;
  }
}

template <bool adaptive>
void max_pool(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const TensorView &y = outputs[0], &x = inputs[0];
  const Shape s = shape_of(x, y, *static_cast<const PoolAttributes*>(attributes));
  numbers_only("max_pool", x.dtype, [&]<class T>(Type<T>) {
    launch(context, {.grid = blocks_for(s.outputs()), .block = kThreads}, max_kernel<T, adaptive>, s, x.as<T>(),
           y.as<T>(), outputs[1].as<i64>(), s.outputs());
  });
}

// Which outputs took an element only the indices say, so gradients are scattered: by one warp a plane, 32 outputs at a
// time in their order. Of those with the same index the first lane adds up all.
template <class T, class C>
__global__ void max_backward_kernel(const T* dy, const i64* index, C* dx, i64 planes, i64 in_plane, i64 out_plane) {
  const int lane = static_cast<int>(threadIdx.x);
  const i64 step = i64{gridDim.x} * blockDim.y;
  for (i64 plane = i64{blockIdx.x} * blockDim.y + threadIdx.y; plane < planes; plane += step) {
    C* const to = dx + plane * in_plane;
    for (i64 i = lane; i < in_plane; i += kWarp) to[i] = C(0);
    __syncwarp();
    for (i64 from = 0; from < out_plane; from += kWarp) {
      const i64 i = plane * out_plane + from + lane;
      const bool there = from + lane < out_plane;
      const i64 at = there ? index[i] : -1;
      const C own = there ? load_as(dy[i]) : C(0);
      unsigned rest = __match_any_sync(0xffffffffu, static_cast<unsigned long long>(at));
      const bool adds = at >= 0 && __ffs(static_cast<int>(rest)) - 1 == lane;
      C sum = adds ? to[at] : C(0);
      while (__any_sync(0xffffffffu, rest != 0)) {
        const int next = rest != 0 ? __ffs(static_cast<int>(rest)) - 1 : lane;
        const C value = __shfl_sync(0xffffffffu, own, next);
        if (rest != 0) sum += value;
        rest &= rest - 1;
      }
      if (adds) to[at] = sum;
      __syncwarp();
    }
  }
}

void max_pool_backward(KernelContext& context, Views outputs, Views inputs, const void*) {
  const TensorView &dx = outputs[0], &dy = inputs[0], &index = inputs[1];
  i64 planes = 1;  // at most the first two dimensions
  for (int d = 0; d < (dx.rank < 3 ? dx.rank - 1 : 2); ++d) planes *= dx.sizes[d];
  const i64 n = dx.element_count();
  if (n == 0) return;
  numbers_only("max_pool_backward", dx.dtype, [&]<class T>(Type<T>) {
    using C = Compute<T>;
    constexpr bool kStaged = !std::is_same_v<T, C>;  // reduced types are rounded once
    TensorView sums = dx;
    if constexpr (kStaged) {
      sums.dtype = kIsFloating<T> ? Dtype::kFloat32 : Dtype::kInt64;
      sums.data = context.scratch(static_cast<std::size_t>(n) * sizeof(C));
    }
    constexpr int kPlanes = kThreads / kWarp;
    launch(context, {.grid = blocks_for(planes, kPlanes), .block = dim3(kWarp, kPlanes)}, max_backward_kernel<T, C>,
           dy.as<T>(), index.as<i64>(), sums.as<C>(), planes, n / planes, dy.element_count() / planes);
    if constexpr (kStaged) copy_view(context, dx, sums);
  });
}

template <bool adaptive>
__device__ i64 divisor(const Shape& s, const Range& d, const Range& h, const Range& w) {
  if (!adaptive && s.divisor_override != 0) return s.divisor_override;
  if (!adaptive && s.count_include_pad) return i64{d.padded} * h.padded * w.padded;
  return i64{max(0, d.to - d.from)} * max(0, h.to - h.from) * max(0, w.to - w.from);
}

template <class T, bool adaptive>
__global__ void average_kernel(Shape s, const T* x, T* y, i64 n) {
  for (i64 i = first_item(); i < n; i += all_items()) {
    const Position o(i, s.out);
    const Range d = window<adaptive>(s, 0, o.at[0]), h = window<adaptive>(s, 1, o.at[1]),
                w = window<adaptive>(s, 2, o.at[2]);
    const T* const plane = x + o.plane * s.in[0] * s.in[1] * s.in[2];
    Compute<T> sum = 0;
    for (int z = d.from; z < d.to; ++z) {
      for (int r = h.from; r < h.to; ++r) {
        for (int c = w.from; c < w.to; ++c) sum += load_as(plane[(z * s.in[1] + r) * s.in[2] + c]);
      }
    }
    y[i] = store_as<T>(sum / static_cast<Compute<T>>(divisor<adaptive>(s, d, h, w)));
  }
}

template <class T, bool adaptive>
__global__ void average_backward_kernel(Shape s, const T* dy, T* dx, i64 n) {
  for (i64 i = first_item(); i < n; i += all_items()) {
    const Position p(i, s.in);
    const Range od = outputs_of<adaptive>(s, 0, p.at[0]), oh = outputs_of<adaptive>(s, 1, p.at[1]),
                ow = outputs_of<adaptive>(s, 2, p.at[2]);
    const T* const plane = dy + p.plane * s.out[0] * s.out[1] * s.out[2];
    Compute<T> sum = 0;
    for (int z = od.from; z < od.to; ++z) {
      const Range d = window<adaptive>(s, 0, z);
      for (int r = oh.from; r < oh.to; ++r) {
        const Range h = window<adaptive>(s, 1, r);
        for (int c = ow.from; c < ow.to; ++c) {
          const i64 by = divisor<adaptive>(s, d, h, window<adaptive>(s, 2, c));
          sum += load_as(plane[(z * s.out[1] + r) * s.out[2] + c]) / static_cast<Compute<T>>(by);
        }
      }
    }
    dx[i] = store_as<T>(sum);
  }
}

template <bool adaptive, bool backward>
void average(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const TensorView &result = outputs[0], &given = inputs[0];
  const auto& a = *static_cast<const PoolAttributes*>(attributes);
  const Shape s = backward ? shape_of(result, given, a) : shape_of(given, result, a);
  const i64 n = result.element_count();
  floats_only("avg_pool", result.dtype, [&]<class T>(Type<T>) {
    launch(context, {.grid = blocks_for(n), .block = kThreads},
           backward ? average_backward_kernel<T, adaptive> : average_kernel<T, adaptive>, s, given.as<T>(),
           result.as<T>(), n);
  });
}

}  // namespace

void add_pooling(const KernelSink& sink) {
  sink.add(sink.host, "max_pool", &max_pool<false>);
  sink.add(sink.host, "max_pool_backward", &max_pool_backward);
  sink.add(sink.host, "adaptive_max_pool", &max_pool<true>);
  sink.add(sink.host, "avg_pool", &average<false, false>);
  sink.add(sink.host, "avg_pool_backward", &average<false, true>);
  sink.add(sink.host, "adaptive_avg_pool", &average<true, false>);
  sink.add(sink.host, "adaptive_avg_pool_backward", &average<true, true>);
}

}  // namespace tenon::cuda
