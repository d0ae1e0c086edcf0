// Floating point: rounded as the opcode says, subnormals flushed where it says ftz. Approximate instructions are
// computed exactly and rounded once, so what they are off by on a device does not show here.
#include "support/emulated_cuda/ptx/operation_table.h"

#include <array>
#include <cfenv>
#include <cmath>
#include <limits>

namespace tenon::emulated_cuda::ptx {

namespace {

using u64 = std::uint64_t;

template <class T>
T flushed(T value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(T{0}, value) : value;
}

enum class Sum { kAdd, kSubtract, kMultiply, kDivide, kFma, kRoot, kReciprocal };

/// `V`: volatile T where another rounding than to nearest is set, so that nothing is computed before it is, or after.
template <class T, Sum kSum, class V>
T computed(T a, T b, T c) {
  V x = a;
  V y = b;
  V z = c;
  if constexpr (kSum == Sum::kAdd) return x + y;
  if constexpr (kSum == Sum::kSubtract) return x - y;
  if constexpr (kSum == Sum::kMultiply) return x * y;
  if constexpr (kSum == Sum::kDivide) return x / y;
  if constexpr (kSum == Sum::kFma) return std::fma(T{x}, T{y}, T{z});
  if constexpr (kSum == Sum::kRoot) return std::sqrt(T{x});
  return T{1} / x;
}

template <class T, Sum kSum, int kRounding, bool kFlush, bool kSaturate>
u64 arithmetic(const u64* in, u64&) {
  constexpr std::size_t kInputs = kSum == Sum::kFma ? 3 : kSum == Sum::kRoot || kSum == Sum::kReciprocal ? 1 : 2;
  std::array<T, 3> x{};
  for (std::size_t i = 0; i < kInputs; ++i) x[i] = kFlush ? flushed(get<T>(in[i])) : get<T>(in[i]);
  T value;
  if constexpr (kRounding == FE_TONEAREST) {
    value = computed<T, kSum, T>(x[0], x[1], x[2]);
  } else {
    std::fesetround(kRounding);
    volatile T result = computed<T, kSum, volatile T>(x[0], x[1], x[2]);
    std::fesetround(FE_TONEAREST);
    value = result;
  }
  if (kFlush) value = flushed(value);
  if (kSaturate) value = !(value > 0) ? T{0} : value > 1 ? T{1} : value;
  return put<T>(value);
}

template <class T, Sum kSum, int kRounding>
void add_rounding(Table& table, const std::string& name, const std::string& type, std::size_t inputs) {
  table[name + type] = {arithmetic<T, kSum, kRounding, false, false>, inputs};
  if constexpr (sizeof(T) == 4) {
    table[name + ".ftz" + type] = {arithmetic<T, kSum, kRounding, true, false>, inputs};
    table[name + ".sat" + type] = {arithmetic<T, kSum, kRounding, false, true>, inputs};
    table[name + ".ftz.sat" + type] = {arithmetic<T, kSum, kRounding, true, true>, inputs};
  }
}

template <class T, Sum kSum>
void add_sum(Table& table, const std::string& name, std::size_t inputs) {
  const std::string type = std::string(".") + kTypeName<T>;
  add_rounding<T, kSum, FE_TONEAREST>(table, name + ".rn", type, inputs);
  add_rounding<T, kSum, FE_TOWARDZERO>(table, name + ".rz", type, inputs);
  add_rounding<T, kSum, FE_DOWNWARD>(table, name + ".rm", type, inputs);
  add_rounding<T, kSum, FE_UPWARD>(table, name + ".rp", type, inputs);
  if (kSum == Sum::kAdd || kSum == Sum::kSubtract || kSum == Sum::kMultiply)
    add_rounding<T, kSum, FE_TONEAREST>(table, name, type, inputs);
}

/// A number wins over nan, and +0 over -0 in a maximum; with .NaN, nan wins.
template <class T, bool kMax, bool kNan, bool kFlush>
u64 extreme(const u64* in, u64&) {
  T a = get<T>(in[0]);
  T b = get<T>(in[1]);
  if (kFlush) a = flushed(a), b = flushed(b);
  constexpr T kQuiet = std::numeric_limits<T>::quiet_NaN();
  if (std::isnan(a) || std::isnan(b)) {
    if (kNan || (std::isnan(a) && std::isnan(b))) return put<T>(kQuiet);
    return put<T>(std::isnan(a) ? b : a);
  }
  if (a == b) return put<T>(std::signbit(a) == kMax ? b : a);
  return put<T>((a > b) == kMax ? a : b);
}

template <class T>
u64 negated(const u64* in, u64&) {
  return in[0] ^ (u64{1} << (8 * sizeof(T) - 1));
}
template <class T>
u64 absolute(const u64* in, u64&) {
  return in[0] & (~u64{0} >> (65 - 8 * sizeof(T)));
}

template <class T, T (*kFunction)(T), bool kFlush>
u64 approximate(const u64* in, u64&) {
  const T x = get<T>(in[0]);
  const T y = kFunction(kFlush ? flushed(x) : x);
  return put<T>(kFlush ? flushed(y) : y);
}

template <class T>
T inverse_root(T x) {
  if (x == 0) return std::copysign(std::numeric_limits<T>::infinity(), x);
  return static_cast<T>(1.0L / std::sqrt(static_cast<long double>(x)));
}
template <class T>
T inverse(T x) {
  return static_cast<T>(1.0L / x);
}
float exp2_of(float x) { return static_cast<float>(std::exp2(static_cast<double>(x))); }
float log2_of(float x) { return static_cast<float>(std::log2(static_cast<double>(x))); }
float sin_of(float x) { return static_cast<float>(std::sin(static_cast<double>(x))); }
float cos_of(float x) { return static_cast<float>(std::cos(static_cast<double>(x))); }
float tanh_of(float x) { return static_cast<float>(std::tanh(static_cast<double>(x))); }
float root_of(float x) { return std::sqrt(x); }

/// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 see and give the upper 32 bits.
template <double (*kFunction)(double)>
u64 approximate_upper_half(const u64* in, u64&) {
  const double x = get<double>(in[0] & 0xffffffff00000000U);
  return put<double>(flushed(kFunction(flushed(x)))) & 0xffffffff00000000U;
}

template <float (*kFunction)(float)>
void add_approximate(Table& table, const std::string& name) {
  table[name + ".approx.f32"] = {approximate<float, kFunction, false>, 1};
  table[name + ".approx.ftz.f32"] = {approximate<float, kFunction, true>, 1};
}

template <class T>
void add_type(Table& table) {
  const std::string type = std::string(".") + kTypeName<T>;
  add_sum<T, Sum::kAdd>(table, "add", 2);
  add_sum<T, Sum::kSubtract>(table, "sub", 2);
  add_sum<T, Sum::kMultiply>(table, "mul", 2);
  add_sum<T, Sum::kDivide>(table, "div", 2);
  add_sum<T, Sum::kFma>(table, "fma", 3);
  add_sum<T, Sum::kRoot>(table, "sqrt", 1);
  add_sum<T, Sum::kReciprocal>(table, "rcp", 1);
  table["min" + type] = {extreme<T, false, false, false>, 2};
  table["max" + type] = {extreme<T, true, false, false>, 2};
  table["min.NaN" + type] = {extreme<T, false, true, false>, 2};
  table["max.NaN" + type] = {extreme<T, true, true, false>, 2};
  table["neg" + type] = {negated<T>, 1};
  table["abs" + type] = {absolute<T>, 1};
  // The sign of the first, the magnitude of the second.
  table["copysign" + type] = {[](const u64* in, u64&) { return put<T>(std::copysign(get<T>(in[1]), get<T>(in[0]))); },
                              2};
}

}  // namespace

void add_float_operations(Table& table) {
  add_type<float>(table);
  add_type<double>(table);
  table["min.ftz.f32"] = {extreme<float, false, false, true>, 2};
  table["max.ftz.f32"] = {extreme<float, true, false, true>, 2};
  table["div.full.f32"] = table["div.approx.f32"] = table["div.rn.f32"];
  table["div.full.ftz.f32"] = table["div.approx.ftz.f32"] = table["div.rn.ftz.f32"];
  add_approximate<inverse<float>>(table, "rcp");
  add_approximate<inverse_root<float>>(table, "rsqrt");
  add_approximate<root_of>(table, "sqrt");
  add_approximate<exp2_of>(table, "ex2");
  add_approximate<log2_of>(table, "lg2");
  add_approximate<sin_of>(table, "sin");
  add_approximate<cos_of>(table, "cos");
  table["tanh.approx.f32"] = {approximate<float, tanh_of, false>, 1};
  table["rsqrt.approx.f64"] = {approximate<double, inverse_root<double>, false>, 1};
  table["rsqrt.approx.ftz.f64"] = {approximate_upper_half<inverse_root<double>>, 1};
  table["rcp.approx.ftz.f64"] = {approximate_upper_half<inverse<double>>, 1};
}

}  // namespace tenon::emulated_cuda::ptx
