// Tenon's ten dtypes on the device. Each is stored as its element type and computed in its compute type, as in the cpu
// backend's lanes:
//
//   float16, bfloat16, float32 -> float      float64 -> double      bool and integers -> int64
//
//   numbers_only("cumsum", dtype, [&]<class T>(Type<T>) { launch(context, …, cumsum_kernel<T>, …); });
#pragma once

#include "kernels/kernels.h"

#include <cstdint>
#include <type_traits>

namespace tenon::cuda {

using i64 = std::int64_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using u32 = std::uint32_t;
using u16 = std::uint16_t;
using u8 = std::uint8_t;

// Not tenon::Half and the toolkit's types: plain bits may lie in shared memory and convert only where somebody asks, by
// the device's instructions where it has them.
struct F16 {
  u16 bits;
};
struct BF16 {
  u16 bits;
};

/// What elements of type T are computed in.
template <class T>
using Compute = std::conditional_t<std::is_same_v<T, F16> || std::is_same_v<T, BF16>, float,
                                   std::conditional_t<std::is_floating_point_v<T>, T, i64>>;

template <class T>
inline constexpr bool kIsFloating = !std::is_same_v<Compute<T>, i64>;

#if defined(__CUDACC__)

__device__ inline float to_float(F16 value) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
}
__device__ inline float to_float(BF16 value) { return __uint_as_float(static_cast<u32>(value.bits) << 16); }

/// Rounded to nearest even; NaN stays NaN.
__device__ inline F16 to_f16(float value) {
  F16 result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
}
__device__ inline BF16 to_bf16(float value) {
#if __CUDA_ARCH__ >= 800
  BF16 result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
#else
  const u32 bits = __float_as_uint(value);
  const u32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return {static_cast<u16>(value != value ? 0x7fffu : rounded)};
#endif
}

/// An element as a number of a compute type C, which is its own one unless said.
template <class T, class C = Compute<T>>
__device__ inline C load_as(T value) {
  if constexpr (std::is_same_v<T, F16> || std::is_same_v<T, BF16>) {
    return static_cast<C>(to_float(value));
  } else {
    return static_cast<C>(value);
  }
}

/// A number as an element, rounded once. Floats go to integers by way of int64, so that -1.0 is 255 as a uint8.
template <class T, class C>
__device__ inline T store_as(C value) {
  if constexpr (std::is_same_v<T, F16>) {
    return to_f16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, BF16>) {
    return to_bf16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, bool>) {
    return value != C(0);
  } else if constexpr (std::is_floating_point_v<C> && std::is_integral_v<T>) {
    return static_cast<T>(static_cast<i64>(value));
  } else {
    return static_cast<T>(value);
  }
}

#endif  // __CUDACC__

/// Names a type to a generic lambda.
template <class T>
struct Type {
  using type = T;
};

/// f(Type<T>{}) with the element type of `dtype`.
template <class F>
void any_dtype(Dtype dtype, const F& f) {
  switch (dtype) {
    case Dtype::kBool:
      return f(Type<bool>{});
    case Dtype::kUInt8:
      return f(Type<u8>{});
    case Dtype::kInt8:
      return f(Type<std::int8_t>{});
    case Dtype::kInt16:
      return f(Type<std::int16_t>{});
    case Dtype::kInt32:
      return f(Type<i32>{});
    case Dtype::kInt64:
      return f(Type<i64>{});
    case Dtype::kFloat16:
      return f(Type<F16>{});
    case Dtype::kBFloat16:
      return f(Type<BF16>{});
    case Dtype::kFloat32:
      return f(Type<float>{});
    case Dtype::kFloat64:
      return f(Type<double>{});
  }
}

/// The same for the four floating dtypes; the others are refused in the name of `kernel`.
template <class F>
void floats_only(const char* kernel, Dtype dtype, const F& f) {
  if (!is_floating_point(dtype)) refuse_dtype(kernel, dtype);
  switch (dtype) {
    case Dtype::kFloat16:
      return f(Type<F16>{});
    case Dtype::kBFloat16:
      return f(Type<BF16>{});
    case Dtype::kFloat32:
      return f(Type<float>{});
    default:
      return f(Type<double>{});
  }
}

/// The same for all but bool.
template <class F>
void numbers_only(const char* kernel, Dtype dtype, const F& f) {
  if (dtype == Dtype::kBool) refuse_dtype(kernel, dtype);
  any_dtype(dtype, [&]<class T>(Type<T> type) {
    if constexpr (!std::is_same_v<T, bool>) f(type);
  });
}

/// For kernels that move elements and do not look at them: an unsigned type of their size.
template <class F>
void bits_of(Dtype dtype, const F& f) {
  switch (size_of(dtype)) {
    case 1:
      return f(Type<u8>{});
    case 2:
      return f(Type<u16>{});
    case 4:
      return f(Type<u32>{});
    default:
      return f(Type<u64>{});
  }
}

}  // namespace tenon::cuda
