// Pooling of contiguous (N, C, [D, [H,]] W) planes: maximum, average, adaptive, and their backwards.
#include <tenon/kernel/attributes/linear.h>

#include "kernels/nn/max_2x2.h"
#include "kernels/pointwise/lanes.h"
#include "kernels/register.h"

#include <limits>

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kGrain = 8192;

// Every pooling as three-dimensional, missing dimensions of size 1.
struct Shape {
  i64 planes = 1;
  i64 in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  i64 kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};
  i64 in_plane() const { return in[0] * in[1] * in[2]; }
  i64 out_plane() const { return out[0] * out[1] * out[2]; }
};

Shape shape_of(const TensorView& x, const TensorView& y, const PoolAttributes& a) {
  Shape s;
  const int lead = x.rank - a.spatial;
  for (int d = 0; d < lead; ++d) s.planes *= x.sizes[d];
  for (int d = 0; d < a.spatial; ++d) {
    const int to = 3 - a.spatial + d;
    s.in[to] = x.sizes[lead + d];
    s.out[to] = y.sizes[lead + d];
    s.kernel[to] = a.kernel[d];
    s.stride[to] = a.stride[d];
    s.padding[to] = a.padding[d];
    s.dilation[to] = a.dilation[d];
  }
  return s;
}

// Copies to contiguous lanes where the dtype is not the lane's own.
template <class T>
const T* lanes_of(KernelContext& context, const TensorView& view, Lane lane) {
  if (is_native(view.dtype, lane)) return static_cast<const T*>(view.data);
  const i64 n = numel(view);
  T* staged = static_cast<T*>(context.scratch(static_cast<std::size_t>(n) * sizeof(T)));
  load_function(view.dtype, lane)(staged, static_cast<const char*>(view.data), bytes_of(view.dtype), n);
  return staged;
}
template <class T>
T* room_for(KernelContext& context, const TensorView& view, Lane lane) {
  if (is_native(view.dtype, lane)) return static_cast<T*>(view.data);
  return static_cast<T*>(context.scratch(static_cast<std::size_t>(numel(view)) * sizeof(T)));
}
template <class T>
void write_back(const TensorView& view, const T* lanes, Lane lane) {
  if (lanes != view.data) {
    store_function(view.dtype, lane)(static_cast<char*>(view.data), bytes_of(view.dtype), lanes, numel(view));
  }
}

// Valid window positions [first, last) of a dimension, in steps of dilation.
inline void window(i64 start, i64 kernel, i64 dilation, i64 size, i64& first, i64& last) {
  first = start < 0 ? (-start + dilation - 1) / dilation : 0;
  last = kernel;
  if (start + (kernel - 1) * dilation >= size) last = size <= start ? 0 : (size - start + dilation - 1) / dilation;
}

template <class T>
T least() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
}

template <class T>
void max_plane_general(const Shape& s, const T* x, T* y, i64* index) {
  for (i64 od = 0; od < s.out[0]; ++od) {
    const i64 d0 = od * s.stride[0] - s.padding[0];
    i64 kd0, kd1;
    window(d0, s.kernel[0], s.dilation[0], s.in[0], kd0, kd1);
    for (i64 oh = 0; oh < s.out[1]; ++oh) {
      const i64 h0 = oh * s.stride[1] - s.padding[1];
      i64 kh0, kh1;
      window(h0, s.kernel[1], s.dilation[1], s.in[1], kh0, kh1);
      for (i64 ow = 0; ow < s.out[2]; ++ow) {
        const i64 w0 = ow * s.stride[2] - s.padding[2];
        i64 kw0, kw1;
        window(w0, s.kernel[2], s.dilation[2], s.in[2], kw0, kw1);
        i64 best =
            ((d0 + kd0 * s.dilation[0]) * s.in[1] + h0 + kh0 * s.dilation[1]) * s.in[2] + w0 + kw0 * s.dilation[2];
        // A window rounded up may lie in the padding alone, its elements dilation apart.
        if (kd0 >= kd1 || kh0 >= kh1 || kw0 >= kw1) best = -1;
        T value = best < 0 ? least<T>() : x[best];
        for (i64 kd = kd0; kd < kd1; ++kd) {
          for (i64 kh = kh0; kh < kh1; ++kh) {
            const i64 row = ((d0 + kd * s.dilation[0]) * s.in[1] + h0 + kh * s.dilation[1]) * s.in[2] + w0;
            for (i64 kw = kw0; kw < kw1; ++kw) {
              const T candidate = x[row + kw * s.dilation[2]];
              if (exceeds(candidate, value)) {
                value = candidate;
                best = row + kw * s.dilation[2];
              }
            }
          }
        }
        *y++ = value;
        *index++ = best;
      }
    }
  }
}

// The windows of Max2x2.
bool is_two_by_two(const Shape& s) {
  return s.in[0] == 1 && s.kernel[0] == 1 && s.kernel[1] == 2 && s.kernel[2] == 2 && s.stride[1] == 2 &&
         s.stride[2] == 2 && s.padding[1] == 0 && s.padding[2] == 0 && s.dilation[1] == 1 && s.dilation[2] == 1 &&
         2 * s.out[1] <= s.in[1] && 2 * s.out[2] <= s.in[2];
}

template <class T>
void run_max(KernelContext& context, const Shape& s, const TensorView& y, const TensorView& index, const TensorView& x,
             Lane lane) {
  const T* in = lanes_of<T>(context, x, lane);
  T* out = room_for<T>(context, y, lane);
  i64* positions = static_cast<i64*>(index.data);
  const bool is_small = is_two_by_two(s);
  const i64 in_plane = s.in_plane(), out_plane = s.out_plane();
  parallel(s.planes, kGrain / larger<i64>(1, in_plane) + 1, 1, [&](i64 begin, i64 end) {
    const auto each_plane = [&](const auto& take) {
      for (i64 p = begin; p < end; ++p) take(in + p * in_plane, out + p * out_plane, positions + p * out_plane);
    };
    if (!is_small) return each_plane([&](const T* x, T* y, i64* index) { max_plane_general(s, x, y, index); });
    Max2x2<T> small;
    each_plane([&](const T* x, T* y, i64* index) { small.plane(s.out[1], s.in[2], s.out[2], x, y, index); });
  });
  write_back(y, out, lane);
}

void max_pool(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const TensorView &y = at(outputs, 0), &x = at(inputs, 0);
  const Shape s = shape_of(x, y, *static_cast<const PoolAttributes*>(attributes));
  if (numel(y) == 0) return;
  const Lane lane = lane_of(x.dtype);
  if (lane == Lane::kF32) run_max<float>(context, s, y, at(outputs, 1), x, lane);
  if (lane == Lane::kF64) run_max<double>(context, s, y, at(outputs, 1), x, lane);
  if (lane == Lane::kI64) run_max<i64>(context, s, y, at(outputs, 1), x, lane);
}

// Windows of adaptive pooling.
inline i64 adaptive_start(i64 i, i64 in, i64 out) { return i * in / out; }
inline i64 adaptive_end(i64 i, i64 in, i64 out) { return ((i + 1) * in + out - 1) / out; }

template <class T>
void run_adaptive_max(KernelContext& context, const Shape& s, const TensorView& y, const TensorView& index,
                      const TensorView& x, Lane lane) {
  const T* in = lanes_of<T>(context, x, lane);
  T* out = room_for<T>(context, y, lane);
  i64* positions = static_cast<i64*>(index.data);
  parallel(s.planes, kGrain / larger<i64>(1, s.in_plane()) + 1, 1, [&](i64 begin, i64 end) {
    for (i64 p = begin; p < end; ++p) {
      Shape one = s;
      const T* plane = in + p * s.in_plane();
      i64 at = p * s.out_plane();
      for (i64 d = 0; d < s.out[0]; ++d) {
        for (i64 h = 0; h < s.out[1]; ++h) {
          for (i64 w = 0; w < s.out[2]; ++w, ++at) {
            i64 best = -1;
            T value = T(0);
            for (i64 z = adaptive_start(d, one.in[0], one.out[0]); z < adaptive_end(d, one.in[0], one.out[0]); ++z) {
              for (i64 r = adaptive_start(h, one.in[1], one.out[1]); r < adaptive_end(h, one.in[1], one.out[1]); ++r) {
                for (i64 c = adaptive_start(w, one.in[2], one.out[2]); c < adaptive_end(w, one.in[2], one.out[2]);
                     ++c) {
                  const i64 position = (z * one.in[1] + r) * one.in[2] + c;
                  const T candidate = plane[position];
                  if (best < 0 || exceeds(candidate, value)) {
                    value = candidate;
                    best = position;
                  }
                }
              }
            }
            out[at] = value;
            positions[at] = best;
          }
        }
      }
    }
  });
  write_back(y, out, lane);
}

void adaptive_max_pool(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const TensorView &y = at(outputs, 0), &x = at(inputs, 0);
  const Shape s = shape_of(x, y, *static_cast<const PoolAttributes*>(attributes));
  if (numel(y) == 0) return;
  const Lane lane = lane_of(x.dtype);
  if (lane == Lane::kF32) run_adaptive_max<float>(context, s, y, at(outputs, 1), x, lane);
  if (lane == Lane::kF64) run_adaptive_max<double>(context, s, y, at(outputs, 1), x, lane);
  if (lane == Lane::kI64) run_adaptive_max<i64>(context, s, y, at(outputs, 1), x, lane);
}

template <class T>
void run_max_backward(KernelContext& context, const TensorView& dx, const TensorView& dy, const TensorView& index,
                      Lane lane) {
  const T* gradient = lanes_of<T>(context, dy, lane);
  T* out = room_for<T>(context, dx, lane);
  const i64* positions = static_cast<const i64*>(index.data);
  // Leading dimensions that agree are planes, at most the first two.
  i64 planes = 1;
  const int lead = dx.rank < 2 ? 0 : (dx.rank == 2 ? 1 : 2);
  for (int d = 0; d < lead; ++d) planes *= dx.sizes[d];
  if (planes == 0 || numel(dx) == 0) return;
  const i64 in_plane = numel(dx) / planes, out_plane = numel(dy) / planes;
  parallel(planes, kGrain / in_plane + 1, 1, [&](i64 begin, i64 end) {
    for (i64 p = begin; p < end; ++p) {
      T* to = out + p * in_plane;
      const T* from = gradient + p * out_plane;
      const i64* where = positions + p * out_plane;
      for (i64 i = 0; i < in_plane; ++i) to[i] = T(0);
      for (i64 i = 0; i < out_plane; ++i)
        if (where[i] >= 0) to[where[i]] += from[i];
    }
  });
  write_back(dx, out, lane);
}

void max_pool_backward(KernelContext& context, Views outputs, Views inputs, const void*) {
  const TensorView &dx = at(outputs, 0), &dy = at(inputs, 0), &index = at(inputs, 1);
  const Lane lane = lane_of(dx.dtype);
  if (lane == Lane::kF32) run_max_backward<float>(context, dx, dy, index, lane);
  if (lane == Lane::kF64) run_max_backward<double>(context, dx, dy, index, lane);
  if (lane == Lane::kI64) run_max_backward<u64>(context, dx, dy, index, lane);  // integers wrap
}

// One output position's window and divisor, for plain and adaptive average pooling alike.
struct AverageWindow {
  i64 from[3], to[3];
  i64 divisor;
};

template <bool adaptive>
AverageWindow average_window(const Shape& s, const PoolAttributes& a, const i64* o) {
  AverageWindow w;
  i64 padded = 1, inside = 1;
  for (int d = 0; d < 3; ++d) {
    if constexpr (adaptive) {
      w.from[d] = adaptive_start(o[d], s.in[d], s.out[d]);
      w.to[d] = adaptive_end(o[d], s.in[d], s.out[d]);
      inside *= w.to[d] - w.from[d];
    } else {
      const i64 start = o[d] * s.stride[d] - s.padding[d];
      const i64 end = smaller(start + s.kernel[d], s.in[d] + s.padding[d]);
      padded *= end - start;
      w.from[d] = larger<i64>(start, 0);
      w.to[d] = smaller(end, s.in[d]);
      inside *= larger<i64>(0, w.to[d] - w.from[d]);
    }
  }
  w.divisor = adaptive ? inside : a.divisor_override ? a.divisor_override : a.count_include_pad ? padded : inside;
  return w;
}

template <class T, bool adaptive, bool backward>
void average_planes(const Shape& s, const PoolAttributes& a, T* large, T* small) {
  const i64 in_plane = s.in_plane(), out_plane = s.out_plane();
  parallel(s.planes, kGrain / larger<i64>(1, in_plane) + 1, 1, [&](i64 begin, i64 end) {
    for (i64 p = begin; p < end; ++p) {
      T* plane = large + p * in_plane;
      T* pooled = small + p * out_plane;
      if constexpr (backward) {
        for (i64 i = 0; i < in_plane; ++i) plane[i] = T(0);
      }
      i64 o[3];
      for (o[0] = 0; o[0] < s.out[0]; ++o[0]) {
        for (o[1] = 0; o[1] < s.out[1]; ++o[1]) {
          for (o[2] = 0; o[2] < s.out[2]; ++o[2], ++pooled) {
            const AverageWindow w = average_window<adaptive>(s, a, o);
            T sum = T(0);
            const T share = backward ? *pooled / static_cast<T>(w.divisor) : T(0);
            for (i64 z = w.from[0]; z < w.to[0]; ++z) {
              for (i64 r = w.from[1]; r < w.to[1]; ++r) {
                T* row = plane + (z * s.in[1] + r) * s.in[2];
                for (i64 c = w.from[2]; c < w.to[2]; ++c) {
                  if constexpr (backward) {
                    row[c] += share;
                  } else {
                    sum += row[c];
                  }
                }
              }
            }
            if constexpr (!backward) *pooled = sum / static_cast<T>(w.divisor);
          }
        }
      }
    }
  });
}

template <bool adaptive, bool backward>
void average(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const TensorView &result = at(outputs, 0), &given = at(inputs, 0);
  const auto& a = *static_cast<const PoolAttributes*>(attributes);
  const Shape s = backward ? shape_of(result, given, a) : shape_of(given, result, a);
  if (numel(result) == 0) return;
  const Lane lane = lane_of(result.dtype);
  auto run = [&]<class T>(T*) {
    T* out = room_for<T>(context, result, lane);
    T* in = const_cast<T*>(lanes_of<T>(context, given, lane));
    average_planes<T, adaptive, backward>(s, a, backward ? out : in, backward ? in : out);
    write_back(result, out, lane);
  };
  if (lane == Lane::kF32) run(static_cast<float*>(nullptr));
  if (lane == Lane::kF64) run(static_cast<double*>(nullptr));
  if (lane == Lane::kI64) refuse_dtype("avg_pool", result.dtype);
}

}  // namespace

void add_pooling(const KernelSink& sink) {
  sink.add(sink.host, "max_pool", &max_pool);
  sink.add(sink.host, "max_pool_backward", &max_pool_backward);
  sink.add(sink.host, "adaptive_max_pool", &adaptive_max_pool);
  sink.add(sink.host, "avg_pool", &average<false, false>);
  sink.add(sink.host, "avg_pool_backward", &average<false, true>);
  sink.add(sink.host, "adaptive_avg_pool", &average<true, false>);
  sink.add(sink.host, "adaptive_avg_pool_backward", &average<true, true>);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
