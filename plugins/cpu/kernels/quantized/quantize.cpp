// quantize, dequantize: float32 to integers of 8 bits and back, with one scale or one for each index of a dimension.
#include <tenon/kernel/attributes/quantization.h>

#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kGrain = 16384;
constexpr i64 kTile = 64;  // positions whose channels are gathered at once

/// One scale with its zero point, as the loops want it: values are clamped before they are rounded, so that rounding by
/// addition (below) is exact.
struct Rounding {
  float inverse, zero, low, high;
};

template <class T>
Rounding rounding(float scale, i64 zero_point) {
  constexpr i64 kLow = static_cast<T>(-1) < 0 ? -128 : 0, kHigh = static_cast<T>(-1) < 0 ? 127 : 255;
  return {1.0f / scale, static_cast<float>(zero_point), static_cast<float>(kLow - zero_point),
          static_cast<float>(kHigh - zero_point)};
}

/// To the nearest integer, halves to the even one; nan becomes the lowest.
template <class T>
T quantized(float x, const Rounding& r) {
  constexpr float kShift = 12582912;  // 1.5 * 2^23: a sum with it has no bits behind the point
  float v = x * r.inverse;
  v = v > r.low ? v : r.low;
  v = v < r.high ? v : r.high;
  return static_cast<T>(static_cast<i32>((v + kShift) - kShift + r.zero));
}

/// `r` by value: what is written as bytes might be any object that has an address.
template <class T>
void quantize_run(const float* __restrict from, T* __restrict to, i64 count, const Rounding r) {
  for (i64 i = 0; i < count; ++i) to[i] = quantized<T>(from[i], r);
}

bool same_strides(const TensorView& a, const TensorView& b) {
  for (int d = 0; d < a.rank; ++d) {
    if (a.sizes[d] != 1 && a.strides[d] != b.strides[d]) return false;
  }
  return true;
}

/// x (N, C, positions) contiguous, y (N, positions, C) in memory.
template <class T>
void quantize_turned(const TensorView& x, const TensorView& y, const Rounding& r) {
  const i64 channels = x.sizes[1];
  i64 positions = 1;
  for (int d = 2; d < x.rank; ++d) positions *= x.sizes[d];
  const i64 tiles = (positions + kTile - 1) / kTile;
  const auto* from = static_cast<const float*>(x.data);
  auto* to = static_cast<T*>(y.data);
  parallel(x.sizes[0] * tiles, kGrain / (channels * kTile) + 1, 1, [&](i64 begin, i64 end) {
    for (i64 tile = begin; tile < end; ++tile) {
      const i64 picture = tile / tiles, first = tile % tiles * kTile;
      const i64 count = smaller(kTile, positions - first);
      for (i64 c = 0; c < channels; ++c) {
        const float* row = from + (picture * channels + c) * positions + first;
        T* column = to + (picture * positions + first) * channels + c;
        T values[kTile];
        quantize_run(row, values, count, r);
        for (i64 p = 0; p < count; ++p) column[p * channels] = values[p];
      }
    }
  });
}

/// body(index along the axis, first element, count) for each run of elements that share a scale; contiguous tensors.
template <class Body>
void each_run(const TensorView& x, int axis, const Body& body) {
  i64 inner = 1, outer = 1;
  for (int d = 0; d < x.rank; ++d) (d < axis ? outer : inner) *= d == axis ? 1 : x.sizes[d];
  const i64 channels = x.sizes[axis];
  parallel(outer * channels, kGrain / larger<i64>(1, inner) + 1, 1, [&](i64 begin, i64 end) {
    for (i64 run = begin; run < end; ++run) body(run % channels, run * inner, inner);
  });
}

template <class T>
void quantize_as(const TensorView& y, Views inputs, const QuantizeAttributes& a) {
  const TensorView& x = at(inputs, 0);
  const auto* from = static_cast<const float*>(x.data);
  auto* to = static_cast<T*>(y.data);
  if (a.axis >= 0) {
    const auto* scales = static_cast<const float*>(at(inputs, 1).data);
    const auto* zeros = static_cast<const i32*>(at(inputs, 2).data);
    return each_run(x, a.axis, [&](i64 channel, i64 first, i64 count) {
      const Rounding r = rounding<T>(scales[channel], zeros[channel]);
      quantize_run(from + first, to + first, count, r);
    });
  }
  const Rounding r = rounding<T>(static_cast<float>(a.scale), a.zero_point);
  if (!same_strides(x, y)) return quantize_turned<T>(x, y, r);
  parallel(numel(x), kGrain, 64, [&](i64 begin, i64 end) { quantize_run(from + begin, to + begin, end - begin, r); });
}

template <class T>
void dequantize_as(const TensorView& y, Views inputs, const QuantizeAttributes& a) {
  const TensorView& x = at(inputs, 0);
  const auto* from = static_cast<const T*>(x.data);
  auto* to = static_cast<float*>(y.data);
  const auto real = [](T q, i32 zero, float scale) { return static_cast<float>(static_cast<i32>(q) - zero) * scale; };
  if (a.axis >= 0) {
    const auto* scales = static_cast<const float*>(at(inputs, 1).data);
    const auto* zeros = static_cast<const i32*>(at(inputs, 2).data);
    return each_run(x, a.axis, [&](i64 channel, i64 first, i64 count) {
      for (i64 i = first; i < first + count; ++i) to[i] = real(from[i], zeros[channel], scales[channel]);
    });
  }
  const auto zero = static_cast<i32>(a.zero_point);
  const auto scale = static_cast<float>(a.scale);
  parallel(numel(x), kGrain, 64, [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end; ++i) to[i] = real(from[i], zero, scale);
  });
}

void quantize(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const auto& a = *static_cast<const QuantizeAttributes*>(attributes);
  const TensorView& y = at(outputs, 0);
  if (y.dtype == Dtype::kUInt8) return quantize_as<u8>(y, inputs, a);
  if (y.dtype == Dtype::kInt8) return quantize_as<signed char>(y, inputs, a);
  refuse_dtype("quantize", y.dtype);
}

void dequantize(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const auto& a = *static_cast<const QuantizeAttributes*>(attributes);
  const Dtype dtype = at(inputs, 0).dtype;
  if (dtype == Dtype::kUInt8) return dequantize_as<u8>(at(outputs, 0), inputs, a);
  if (dtype == Dtype::kInt8) return dequantize_as<signed char>(at(outputs, 0), inputs, a);
  refuse_dtype("dequantize", dtype);
}

}  // namespace

void add_quantize(const KernelSink& sink) {
  sink.add(sink.host, "quantize", &quantize);
  sink.add(sink.host, "dequantize", &dequantize);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
