// cvt: between all types, with the rounding, flushing and saturation of the opcode.
#include "support/emulated_cuda/ptx/operation_table.h"
#include "support/emulated_cuda/ptx/small_floats.h"

#include <cfenv>
#include <cmath>
#include <limits>
#include <type_traits>

namespace tenon::emulated_cuda::ptx {

namespace {

using u64 = std::uint64_t;

float flushed(float value) { return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0F, value) : value; }

template <class T>
double value_of(u64 word) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Brain>) return T{static_cast<std::uint16_t>(word)}.value();
  if constexpr (std::is_floating_point_v<T>) return static_cast<double>(get<T>(word));
}

/// Conversions saturate; nan becomes 0.
template <class To>
u64 whole(double value) {
  if (std::isnan(value)) return 0;
  const double low = static_cast<double>(std::numeric_limits<To>::min());
  const double high = std::ldexp(1.0, std::numeric_limits<To>::digits);  // one more than the largest
  if (value < low) return put<To>(std::numeric_limits<To>::min());
  if (value >= high) return put<To>(std::numeric_limits<To>::max());
  return put<To>(static_cast<To>(value));
}

template <int kRounding>
double to_whole(double value) {
  if constexpr (kRounding == FE_TONEAREST) return std::nearbyint(value);
  if constexpr (kRounding == FE_TOWARDZERO) return std::trunc(value);
  if constexpr (kRounding == FE_DOWNWARD) return std::floor(value);
  return std::ceil(value);
}

/// A register of 8 or 16 bits may be a wider one: the sign goes on.
template <class To>
u64 extended(To value) {
  if constexpr (std::is_signed_v<To> && sizeof(To) < 4) return put(static_cast<std::int32_t>(value));
  return put<To>(value);
}

template <class To, class From>
u64 whole_to_whole(const u64* in, u64&) {
  return extended(static_cast<To>(get<From>(in[0])));
}
template <class To, class From>
u64 whole_to_whole_saturated(const u64* in, u64&) {
  const auto value = static_cast<__int128>(get<From>(in[0]));
  const __int128 low = std::numeric_limits<To>::min();
  const __int128 high = std::numeric_limits<To>::max();
  return extended(static_cast<To>(value < low ? low : value > high ? high : value));
}

template <class To, class From, int kRounding, bool kFlush>
u64 float_to_whole(const u64* in, u64&) {
  double value = value_of<From>(in[0]);
  if constexpr (kFlush) value = flushed(static_cast<float>(value));
  return whole<To>(to_whole<kRounding>(value));
}

template <class To, int kRounding, class From>
To rounded(From from) {
  if constexpr (kRounding == FE_TONEAREST) return static_cast<To>(from);
  volatile From value = from;
  std::fesetround(kRounding);
  volatile To result = static_cast<To>(value);
  std::fesetround(FE_TONEAREST);
  return result;
}

template <class To, class From, int kRounding>
u64 whole_to_float(const u64* in, u64&) {
  return put<To>(rounded<To, kRounding>(get<From>(in[0])));
}

template <class To, class From, int kRounding>
u64 float_to_float(const u64* in, u64&) {
  const double value = value_of<From>(in[0]);
  if constexpr (std::is_same_v<To, Half>) return Half::nearest(value).bits;
  if constexpr (std::is_same_v<To, Brain>) return Brain::nearest(value).bits;
  if constexpr (std::is_floating_point_v<To>) return put<To>(rounded<To, kRounding>(value));
}

/// Of one type: rounded to a whole number, or saturated to [0, 1].
template <class T, int kRounding, bool kFlush>
u64 to_whole_float(const u64* in, u64&) {
  T value = get<T>(in[0]);
  if constexpr (kFlush) value = flushed(value);
  return put<T>(static_cast<T>(to_whole<kRounding>(value)));
}
template <bool kFlush>
u64 saturated(const u64* in, u64&) {
  const float value = kFlush ? flushed(get<float>(in[0])) : get<float>(in[0]);
  return put<float>(!(value > 0) ? 0.0F : value > 1 ? 1.0F : value);
}

/// Two at once: the first in the upper half.
template <class To>
u64 floats_to_pair(const u64* in, u64&) {
  const auto bits = [](u64 word) { return u64{To::nearest(static_cast<double>(get<float>(word))).bits}; };
  return bits(in[0]) << 16 | bits(in[1]);
}

template <class To, class From>
void add_wholes(Table& table) {
  const std::string types = std::string(".") + kTypeName<To> + "." + kTypeName<From>;
  table["cvt" + types] = {whole_to_whole<To, From>, 1};
  table["cvt.sat" + types] = {whole_to_whole_saturated<To, From>, 1};
}
template <class From>
void add_wholes_from(Table& table) {
  add_wholes<std::uint8_t, From>(table);
  add_wholes<std::int8_t, From>(table);
  add_wholes<std::uint16_t, From>(table);
  add_wholes<std::int16_t, From>(table);
  add_wholes<std::uint32_t, From>(table);
  add_wholes<std::int32_t, From>(table);
  add_wholes<std::uint64_t, From>(table);
  add_wholes<std::int64_t, From>(table);
}

template <class To, class From>
void add_float_to_whole(Table& table, const std::string& from) {
  const std::string types = std::string(".") + kTypeName<To> + from;
  table["cvt.rni" + types] = {float_to_whole<To, From, FE_TONEAREST, false>, 1};
  table["cvt.rzi" + types] = {float_to_whole<To, From, FE_TOWARDZERO, false>, 1};
  table["cvt.rmi" + types] = {float_to_whole<To, From, FE_DOWNWARD, false>, 1};
  table["cvt.rpi" + types] = {float_to_whole<To, From, FE_UPWARD, false>, 1};
  if constexpr (std::is_same_v<From, float>) {
    table["cvt.rni.ftz" + types] = {float_to_whole<To, From, FE_TONEAREST, true>, 1};
    table["cvt.rzi.ftz" + types] = {float_to_whole<To, From, FE_TOWARDZERO, true>, 1};
    table["cvt.rmi.ftz" + types] = {float_to_whole<To, From, FE_DOWNWARD, true>, 1};
    table["cvt.rpi.ftz" + types] = {float_to_whole<To, From, FE_UPWARD, true>, 1};
  }
}
template <class To, class From>
void add_whole_to_float(Table& table) {
  const std::string types = std::string(".") + kTypeName<To> + "." + kTypeName<From>;
  table["cvt.rn" + types] = {whole_to_float<To, From, FE_TONEAREST>, 1};
  table["cvt.rz" + types] = {whole_to_float<To, From, FE_TOWARDZERO>, 1};
  table["cvt.rm" + types] = {whole_to_float<To, From, FE_DOWNWARD>, 1};
  table["cvt.rp" + types] = {whole_to_float<To, From, FE_UPWARD>, 1};
}
template <class Whole>
void add_floats_of(Table& table) {
  add_float_to_whole<Whole, float>(table, ".f32");
  add_float_to_whole<Whole, double>(table, ".f64");
  add_float_to_whole<Whole, Half>(table, ".f16");
  add_whole_to_float<float, Whole>(table);
  add_whole_to_float<double, Whole>(table);
}

template <class T, bool kFlush>
void add_to_whole_float(Table& table, const std::string& types) {
  const std::string ftz = kFlush ? ".ftz" : "";
  table["cvt.rni" + ftz + types] = {to_whole_float<T, FE_TONEAREST, kFlush>, 1};
  table["cvt.rzi" + ftz + types] = {to_whole_float<T, FE_TOWARDZERO, kFlush>, 1};
  table["cvt.rmi" + ftz + types] = {to_whole_float<T, FE_DOWNWARD, kFlush>, 1};
  table["cvt.rpi" + ftz + types] = {to_whole_float<T, FE_UPWARD, kFlush>, 1};
}

}  // namespace

void add_conversions(Table& table) {
  add_wholes_from<std::uint8_t>(table);
  add_wholes_from<std::int8_t>(table);
  add_wholes_from<std::uint16_t>(table);
  add_wholes_from<std::int16_t>(table);
  add_wholes_from<std::uint32_t>(table);
  add_wholes_from<std::int32_t>(table);
  add_wholes_from<std::uint64_t>(table);
  add_wholes_from<std::int64_t>(table);
  add_floats_of<std::uint8_t>(table);
  add_floats_of<std::int8_t>(table);
  add_floats_of<std::uint16_t>(table);
  add_floats_of<std::int16_t>(table);
  add_floats_of<std::uint32_t>(table);
  add_floats_of<std::int32_t>(table);
  add_floats_of<std::uint64_t>(table);
  add_floats_of<std::int64_t>(table);
  add_to_whole_float<float, false>(table, ".f32.f32");
  add_to_whole_float<float, true>(table, ".f32.f32");
  add_to_whole_float<double, false>(table, ".f64.f64");
  table["cvt.sat.f32.f32"] = {saturated<false>, 1};
  table["cvt.ftz.sat.f32.f32"] = table["cvt.sat.ftz.f32.f32"] = {saturated<true>, 1};
  table["cvt.f64.f32"] = {float_to_float<double, float, FE_TONEAREST>, 1};
  table["cvt.rn.f32.f64"] = {float_to_float<float, double, FE_TONEAREST>, 1};
  table["cvt.rz.f32.f64"] = {float_to_float<float, double, FE_TOWARDZERO>, 1};
  table["cvt.rm.f32.f64"] = {float_to_float<float, double, FE_DOWNWARD>, 1};
  table["cvt.rp.f32.f64"] = {float_to_float<float, double, FE_UPWARD>, 1};
  table["cvt.f32.f16"] = {float_to_float<float, Half, FE_TONEAREST>, 1};
  table["cvt.f64.f16"] = {float_to_float<double, Half, FE_TONEAREST>, 1};
  table["cvt.f32.bf16"] = {float_to_float<float, Brain, FE_TONEAREST>, 1};
  table["cvt.rn.f16.f32"] = {float_to_float<Half, float, FE_TONEAREST>, 1};
  table["cvt.rn.f16.f64"] = {float_to_float<Half, double, FE_TONEAREST>, 1};
  table["cvt.rn.f16x2.f32"] = {floats_to_pair<Half>, 2};
  table["cvt.rn.bf16x2.f32"] = {floats_to_pair<Brain>, 2};
  table["cvt.rn.bf16.f32"] = {float_to_float<Brain, float, FE_TONEAREST>, 1};
}

}  // namespace tenon::emulated_cuda::ptx
