// arange, linspace, eye, im2col, col2im.
#include <tenon/kernel/attributes/linear.h>
#include <tenon/kernel/attributes/random.h>

#include "kernels/pointwise/lanes.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kGrain = 8192;

// y[i] = value(i) in double or int64.
template <class Real, class Integer>
void generate(const TensorView& y, const Real& real, const Integer& integer) {
  const bool floating = lane_of(y.dtype) != Lane::kI64;
  const Store store = store_function(y.dtype, floating ? Lane::kF64 : Lane::kI64);
  const i64 n = numel(y), bytes = bytes_of(y.dtype);
  const i64 stride = y.rank == 0 ? 0 : y.strides[0] * bytes;
  parallel(n, kGrain, 64, [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end; ++i) {
      const double r = floating ? real(i) : 0;
      const i64 whole = floating ? 0 : integer(i);
      store(static_cast<char*>(y.data) + i * stride, 0, floating ? static_cast<const void*>(&r) : &whole, 1);
    }
  });
}

void arange(KernelContext&, Views outputs, Views, const void* attributes) {
  const auto& a = *static_cast<const SequenceAttributes*>(attributes);
  generate(
      at(outputs, 0), [&](i64 i) { return a.start.real + static_cast<double>(i) * a.step.real; },
      [&](i64 i) { return a.start.integer + i * a.step.integer; });
}

void linspace(KernelContext&, Views outputs, Views, const void* attributes) {
  const auto& a = *static_cast<const SequenceAttributes*>(attributes);
  const i64 n = numel(at(outputs, 0));
  auto value = [&](i64 i) {
    return i < n / 2 ? a.start.real + static_cast<double>(i) * a.step.real
                     : a.end.real - static_cast<double>(n - 1 - i) * a.step.real;
  };
  auto whole = [&](i64 i) { return static_cast<i64>(n == 1 ? a.start.real : value(i)); };
  generate(
      at(outputs, 0), [&](i64 i) { return n == 1 ? a.start.real : value(i); }, whole);
}

void eye(KernelContext&, Views outputs, Views, const void*) {
  const TensorView& y = at(outputs, 0);
  const Store store = store_function(y.dtype, Lane::kI64);
  const i64 bytes = bytes_of(y.dtype);
  for (i64 r = 0; r < y.sizes[0]; ++r) {
    for (i64 c = 0; c < y.sizes[1]; ++c) {
      const i64 value = r == c;
      store(static_cast<char*>(y.data) + (r * y.strides[0] + c * y.strides[1]) * bytes, 0, &value, 1);
    }
  }
}

// The windows of (N, C, H, W) as columns (N, C * kernel, L), and their sum back.
struct Windows {
  i64 n, channels, h, w, kh, kw, oh, ow;
  const PoolAttributes& a;

  Windows(const TensorView& picture, const PoolAttributes& given)
      : n(picture.sizes[0]),
        channels(picture.sizes[1]),
        h(picture.sizes[2]),
        w(picture.sizes[3]),
        kh(given.kernel[0]),
        kw(given.kernel[1]),
        oh(extent(h, given, 0)),
        ow(extent(w, given, 1)),
        a(given) {}
  static i64 extent(i64 size, const PoolAttributes& a, int d) {
    return (size + 2 * a.padding[d] - a.dilation[d] * (a.kernel[d] - 1) - 1) / a.stride[d] + 1;
  }
  // visit(index in the picture or -1, index in the columns) for every tap, channel by channel over the pool.
  template <class F>
  void each(const F& visit) const {
    parallel(n * channels, kGrain / larger<i64>(1, kh * kw * oh * ow) + 1, 1, [&](i64 begin, i64 end) {
      for (i64 plane = begin; plane < end; ++plane) {
        i64 column = plane * kh * kw * oh * ow;
        for (i64 i = 0; i < kh; ++i) {
          for (i64 j = 0; j < kw; ++j) {
            for (i64 r = 0; r < oh; ++r) {
              for (i64 c = 0; c < ow; ++c, ++column) {
                const i64 y = r * a.stride[0] - a.padding[0] + i * a.dilation[0];
                const i64 x = c * a.stride[1] - a.padding[1] + j * a.dilation[1];
                const bool inside = y >= 0 && y < h && x >= 0 && x < w;
                visit(inside ? (plane * h + y) * w + x : -1, column);
              }
            }
          }
        }
      }
    });
  }
};

void im2col(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const TensorView &y = at(outputs, 0), &x = at(inputs, 0);
  const Windows windows(x, *static_cast<const PoolAttributes*>(attributes));
  const i64 bytes = bytes_of(x.dtype);
  windows.each([&](i64 from, i64 to) {
    char* into = static_cast<char*>(y.data) + to * bytes;
    if (from < 0) {
      __builtin_memset(into, 0, static_cast<std::size_t>(bytes));
    } else {
      __builtin_memcpy(into, static_cast<const char*>(x.data) + from * bytes, static_cast<std::size_t>(bytes));
    }
  });
}

template <class T>
void sum_windows(KernelContext& context, const TensorView& y, const TensorView& x, const PoolAttributes& a, Lane lane) {
  const Windows windows(y, a);
  const i64 n = numel(y), m = numel(x);
  const bool native = is_native(y.dtype, lane);
  T* out = native ? static_cast<T*>(y.data) : static_cast<T*>(context.scratch(static_cast<std::size_t>(n) * sizeof(T)));
  const T* in = static_cast<const T*>(x.data);
  if (!native) {
    T* staged = static_cast<T*>(context.scratch(static_cast<std::size_t>(m) * sizeof(T)));
    load_function(x.dtype, lane)(staged, static_cast<const char*>(x.data), bytes_of(x.dtype), m);
    in = staged;
  }
  for (i64 i = 0; i < n; ++i) out[i] = T(0);
  windows.each([&](i64 to, i64 from) {
    if (to >= 0) out[to] += in[from];
  });
  if (!native) store_function(y.dtype, lane)(static_cast<char*>(y.data), bytes_of(y.dtype), out, n);
}

void col2im(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const TensorView& y = at(outputs, 0);
  const auto& a = *static_cast<const PoolAttributes*>(attributes);
  const Lane lane = lane_of(y.dtype);
  if (numel(y) == 0) return;
  if (lane == Lane::kF32) sum_windows<float>(context, y, at(inputs, 0), a, lane);
  if (lane == Lane::kF64) sum_windows<double>(context, y, at(inputs, 0), a, lane);
  if (lane == Lane::kI64) sum_windows<u64>(context, y, at(inputs, 0), a, lane);  // integers wrap
}

}  // namespace

void add_sequences(const KernelSink& sink) {
  sink.add(sink.host, "arange", &arange);
  sink.add(sink.host, "linspace", &linspace);
  sink.add(sink.host, "eye", &eye);
}

void add_folding(const KernelSink& sink) {
  sink.add(sink.host, "im2col", &im2col);
  sink.add(sink.host, "col2im", &col2im);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
