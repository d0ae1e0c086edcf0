// Lanes: the four element types that vector loops compute in, and the conversions between them and every dtype.
//
//   float16, bfloat16, float32 -> float      float64 -> double      integers, bool -> int64      bool as bytes -> u8
#pragma once

#include "kernels/level.h"

namespace tenon::cpu::TENON_CPU_LEVEL {

enum class Lane : u8 { kF32, kF64, kI64, kU8 };

inline constexpr i64 kLaneBytes[] = {4, 8, 8, 1};

inline Lane lane_of(Dtype dtype) {
  if (dtype == Dtype::kFloat64) return Lane::kF64;
  return static_cast<int>(dtype) >= static_cast<int>(Dtype::kFloat16) ? Lane::kF32 : Lane::kI64;
}

/// Whether elements of `dtype` are what the lane computes in, so that no conversion is needed.
inline bool is_native(Dtype dtype, Lane lane) {
  switch (lane) {
    case Lane::kF32:
      return dtype == Dtype::kFloat32;
    case Lane::kF64:
      return dtype == Dtype::kFloat64;
    case Lane::kI64:
      return dtype == Dtype::kInt64;
    default:
      return bytes_of(dtype) == 1;
  }
}

/// Reads n elements that lie `stride` bytes apart into contiguous lanes.
using Load = void (*)(void* lanes, const char* source, i64 stride, i64 n);
/// Writes n contiguous lanes to elements `stride` bytes apart.
using Store = void (*)(char* destination, i64 stride, const void* lanes, i64 n);

Load load_function(Dtype dtype, Lane lane);
Store store_function(Dtype dtype, Lane lane);

struct F16 {
  u16 bits;
};
struct BF16 {
  u16 bits;
};

inline float bits_to_float(u32 bits) { return __builtin_bit_cast(float, bits); }
inline u32 float_to_bits(float value) { return __builtin_bit_cast(u32, value); }

inline float to_float(F16 half) {
  const u32 magnitude = half.bits & 0x7fffu;
  const u32 sign = static_cast<u32>(half.bits & 0x8000u) << 16;
  const u32 normal = (magnitude << 13) + 0x38000000u;
  const u32 special = (magnitude << 13) | 0x7f800000u;
  const u32 subnormal = float_to_bits(static_cast<float>(static_cast<i32>(magnitude)) * 0x1p-24f);
  const u32 finite = magnitude < 0x0400u ? subnormal : normal;
  return bits_to_float(sign | (magnitude >= 0x7c00u ? special : finite));
}
inline float to_float(BF16 value) { return bits_to_float(static_cast<u32>(value.bits) << 16); }

inline F16 to_half(float value) {
  const u32 bits = float_to_bits(value);
  const u32 magnitude = bits & 0x7fffffffu;
  const u32 normal = (magnitude - 0x38000000u + 0x0fffu + ((magnitude >> 13) & 1u)) >> 13;
  // Adding 0.5 puts the last kept bit at 2^-24, and the addition itself rounds to nearest even.
  const u32 subnormal = float_to_bits(bits_to_float(magnitude) + 0.5f) - 0x3f000000u;
  const u32 finite = magnitude < 0x38800000u ? subnormal : normal;
  const u32 infinite = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return {static_cast<u16>(((bits >> 16) & 0x8000u) | (magnitude >= 0x477ff000u ? infinite : finite))};
}
inline BF16 to_bfloat(float value) {
  const u32 bits = float_to_bits(value);
  const u32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const u32 quiet = (bits >> 16) | 0x0040u;
  return {static_cast<u16>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded)};
}

/// The dtype of elements of T: float, double, F16 or BF16.
template <class T>
constexpr Dtype kDtypeOf = Dtype::kFloat64;
template <>
inline constexpr Dtype kDtypeOf<float> = Dtype::kFloat32;
template <>
inline constexpr Dtype kDtypeOf<F16> = Dtype::kFloat16;
template <>
inline constexpr Dtype kDtypeOf<BF16> = Dtype::kBFloat16;

/// An element as lanes compute with it, and a lane rounded to an element.
inline float widened(F16 value) { return to_float(value); }
inline float widened(BF16 value) { return to_float(value); }
inline float widened(float value) { return value; }
inline double widened(double value) { return value; }
inline void put(F16& element, float value) { element = to_half(value); }
inline void put(BF16& element, float value) { element = to_bfloat(value); }
inline void put(float& element, float value) { element = value; }
inline void put(double& element, double value) { element = value; }

}  // namespace tenon::cpu::TENON_CPU_LEVEL
