// Arithmetic and comparisons of float16 and bfloat16, alone and in pairs: rounded once from the exact result.
#include "support/emulated_cuda/ptx/operation_table.h"
#include "support/emulated_cuda/ptx/small_floats.h"

#include <cmath>

namespace tenon::emulated_cuda::ptx {

namespace {

using u64 = std::uint64_t;

/// a + b, rounded to odd where double does not hold it: what is rounded to fewer digits then is rounded as the exact
/// sum would be (Boldo and Melquiond, 2008).
double sum_to_odd(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  const double b_part = sum - a;
  const double error = (a - (sum - b_part)) + (b - b_part);
  if (error == 0 || (put(sum) & 1) != 0) return sum;
  return std::nextafter(sum, error > 0 ? INFINITY : -INFINITY);
}

template <class T>
struct Arithmetic {
  static T add(T a, T b) { return T::nearest(sum_to_odd(a.value(), b.value())); }
  static T sub(T a, T b) { return T::nearest(sum_to_odd(a.value(), -static_cast<double>(b.value()))); }
  static T mul(T a, T b) { return T::nearest(static_cast<double>(a.value()) * b.value()); }
  static T fma(T a, T b, T c) { return T::nearest(sum_to_odd(static_cast<double>(a.value()) * b.value(), c.value())); }
  static T neg(T a) { return {static_cast<std::uint16_t>(a.bits ^ 0x8000)}; }
  static T abs(T a) { return {static_cast<std::uint16_t>(a.bits & 0x7fff)}; }
  /// As of float: a number wins over nan, +0 over -0 in a maximum; with .NaN, nan wins.
  template <bool kMax, bool kNan>
  static T extreme(T a, T b) {
    const bool a_nan = std::isnan(a.value()), b_nan = std::isnan(b.value());
    if (a_nan || b_nan) return (a_nan && b_nan) || kNan ? T{0x7fff} : a_nan ? b : a;
    if (a.value() == b.value()) return std::signbit(a.value()) == kMax ? b : a;
    return (a.value() > b.value()) == kMax ? a : b;
  }
};

template <class T>
T element(u64 word, int i) {
  return {static_cast<std::uint16_t>(word >> (16 * i))};
}

/// Of one element, and of the two of a word of 32 bits.
template <class T, auto kFunction, int kInputs, int kElements>
u64 each(const u64* in, u64&) {
  u64 result = 0;
  for (int i = 0; i < kElements; ++i) {
    T value;
    if constexpr (kInputs == 1) value = kFunction(element<T>(in[0], i));
    if constexpr (kInputs == 2) value = kFunction(element<T>(in[0], i), element<T>(in[1], i));
    if constexpr (kInputs == 3) value = kFunction(element<T>(in[0], i), element<T>(in[1], i), element<T>(in[2], i));
    result |= u64{value.bits} << (16 * i);
  }
  return result;
}

template <class T, auto kFunction, int kInputs>
void add_both(Table& table, const std::string& name, const std::string& type) {
  table[name + type] = {each<T, kFunction, kInputs, 1>, kInputs};
  table[name + type + "x2"] = {each<T, kFunction, kInputs, 2>, kInputs};
}

enum class Relation { kEq, kNe, kLt, kLe, kGt, kGe };

template <class T, Relation kRelation, bool kUnordered>
bool holds(const u64* in) {
  const float a = element<T>(in[0], 0).value(), b = element<T>(in[1], 0).value();
  if (std::isnan(a) || std::isnan(b)) return kUnordered;
  if constexpr (kRelation == Relation::kEq) return a == b;
  if constexpr (kRelation == Relation::kNe) return a != b;
  if constexpr (kRelation == Relation::kLt) return a < b;
  if constexpr (kRelation == Relation::kLe) return a <= b;
  if constexpr (kRelation == Relation::kGt) return a > b;
  return a >= b;
}

template <class T, Relation kRelation>
void add_relation(Table& table, const std::string& relation, const std::string& type) {
  table["setp." + relation + type] = {[](const u64* in, u64&) { return u64{holds<T, kRelation, false>(in)}; }, 2};
  table["setp." + relation + "u" + type] = {[](const u64* in, u64&) { return u64{holds<T, kRelation, true>(in)}; }, 2};
}

template <class T>
void add_type(Table& table, const std::string& type) {
  using A = Arithmetic<T>;
  for (const char* rounding : {"", ".rn"}) {
    add_both<T, A::add, 2>(table, std::string("add") + rounding, type);
    add_both<T, A::sub, 2>(table, std::string("sub") + rounding, type);
    add_both<T, A::mul, 2>(table, std::string("mul") + rounding, type);
  }
  add_both<T, A::fma, 3>(table, "fma.rn", type);
  add_both<T, A::neg, 1>(table, "neg", type);
  add_both<T, A::abs, 1>(table, "abs", type);
  add_both<T, A::template extreme<false, false>, 2>(table, "min", type);
  add_both<T, A::template extreme<true, false>, 2>(table, "max", type);
  add_both<T, A::template extreme<false, true>, 2>(table, "min.NaN", type);
  add_both<T, A::template extreme<true, true>, 2>(table, "max.NaN", type);
  add_relation<T, Relation::kEq>(table, "eq", type);
  add_relation<T, Relation::kNe>(table, "ne", type);
  add_relation<T, Relation::kLt>(table, "lt", type);
  add_relation<T, Relation::kLe>(table, "le", type);
  add_relation<T, Relation::kGt>(table, "gt", type);
  add_relation<T, Relation::kGe>(table, "ge", type);
}

}  // namespace

void add_half_operations(Table& table) {
  add_type<Half>(table, ".f16");
  add_type<Brain>(table, ".bf16");
}

}  // namespace tenon::emulated_cuda::ptx
