// The conversion loops between dtypes and lanes.
#include "kernels/pointwise/lanes.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

struct Bool {
  u8 byte;
};

template <class L, class T>
L widen(T value) {
  return static_cast<L>(value);
}
template <class L>
L widen(F16 value) {
  return static_cast<L>(to_float(value));
}
template <class L>
L widen(BF16 value) {
  return static_cast<L>(to_float(value));
}
template <class L>
L widen(Bool value) {
  return static_cast<L>(value.byte != 0);
}

// Out-of-range floats become what the instruction gives, by way of int64, so that -1.0 is 255 as a uint8.
template <class T, class L>
struct Narrow {
  static T from(L value) { return static_cast<T>(value); }
};
template <class T>
struct Narrow<T, float> {
  static T from(float value) { return static_cast<T>(static_cast<i64>(value)); }
};
template <class T>
struct Narrow<T, double> {
  static T from(double value) { return static_cast<T>(static_cast<i64>(value)); }
};
template <>
struct Narrow<float, float> {
  static float from(float value) { return value; }
};
template <>
struct Narrow<double, float> {
  static double from(float value) { return value; }
};
template <>
struct Narrow<float, double> {
  static float from(double value) { return static_cast<float>(value); }
};
template <>
struct Narrow<double, double> {
  static double from(double value) { return value; }
};
template <class L>
struct Narrow<F16, L> {
  static F16 from(L value) { return to_half(static_cast<float>(value)); }
};
template <class L>
struct Narrow<BF16, L> {
  static BF16 from(L value) { return to_bfloat(static_cast<float>(value)); }
};
template <>
struct Narrow<F16, float> {
  static F16 from(float value) { return to_half(value); }
};
template <>
struct Narrow<BF16, float> {
  static BF16 from(float value) { return to_bfloat(value); }
};
template <>
struct Narrow<F16, double> {
  static F16 from(double value) { return to_half(static_cast<float>(value)); }
};
template <>
struct Narrow<BF16, double> {
  static BF16 from(double value) { return to_bfloat(static_cast<float>(value)); }
};
template <class L>
struct Narrow<Bool, L> {
  static Bool from(L value) { return {static_cast<u8>(value != 0)}; }
};
template <>
struct Narrow<Bool, float> {
  static Bool from(float value) { return {static_cast<u8>(value != 0)}; }
};
template <>
struct Narrow<Bool, double> {
  static Bool from(double value) { return {static_cast<u8>(value != 0)}; }
};

template <class L, class T>
void load(void* lanes, const char* source, i64 stride, i64 n) {
  L* __restrict out = static_cast<L*>(lanes);
  if (stride == static_cast<i64>(sizeof(T))) {
    const T* __restrict in = reinterpret_cast<const T*>(source);
    for (i64 i = 0; i < n; ++i) out[i] = widen<L>(in[i]);
  } else if (stride == 0) {
    const L value = widen<L>(*reinterpret_cast<const T*>(source));
    for (i64 i = 0; i < n; ++i) out[i] = value;
  } else {
    for (i64 i = 0; i < n; ++i) out[i] = widen<L>(*reinterpret_cast<const T*>(source + i * stride));
  }
}

template <class L, class T>
void store(char* destination, i64 stride, const void* lanes, i64 n) {
  const L* __restrict in = static_cast<const L*>(lanes);
  if (stride == static_cast<i64>(sizeof(T))) {
    T* __restrict out = reinterpret_cast<T*>(destination);
    for (i64 i = 0; i < n; ++i) out[i] = Narrow<T, L>::from(in[i]);
  } else {
    for (i64 i = 0; i < n; ++i) *reinterpret_cast<T*>(destination + i * stride) = Narrow<T, L>::from(in[i]);
  }
}

template <class L>
constexpr Load kLoads[kDtypeCount] = {&load<L, Bool>,  &load<L, u8>,    &load<L, std::int8_t>, &load<L, std::int16_t>,
                                      &load<L, i32>,   &load<L, i64>,   &load<L, F16>,         &load<L, BF16>,
                                      &load<L, float>, &load<L, double>};
template <class L>
constexpr Store kStores[kDtypeCount] = {
    &store<L, Bool>, &store<L, u8>,  &store<L, std::int8_t>, &store<L, std::int16_t>, &store<L, i32>,
    &store<L, i64>,  &store<L, F16>, &store<L, BF16>,        &store<L, float>,        &store<L, double>};

}  // namespace

Load load_function(Dtype dtype, Lane lane) {
  const int index = static_cast<int>(dtype);
  switch (lane) {
    case Lane::kF32:
      return kLoads<float>[index];
    case Lane::kF64:
      return kLoads<double>[index];
    case Lane::kI64:
      return kLoads<i64>[index];
    default:
      return kLoads<u8>[index];
  }
}

Store store_function(Dtype dtype, Lane lane) {
  const int index = static_cast<int>(dtype);
  switch (lane) {
    case Lane::kF32:
      return kStores<float>[index];
    case Lane::kF64:
      return kStores<double>[index];
    case Lane::kI64:
      return kStores<i64>[index];
    default:
      return kStores<u8>[index];
  }
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
