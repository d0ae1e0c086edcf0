// Scalar: one number with its category (bool, integer, floating), as passed to operators.
#pragma once

#include <tenon/core/dtype.h>
#include <tenon/core/error.h>
#include <tenon/core/half_limits.h>
#include <tenon/kernel/attributes/scalar.h>

#include <cstdint>
#include <limits>
#include <ostream>
#include <type_traits>

namespace tenon {

namespace detail {

/// Throws Error: "value cannot be converted to type uint8_t without overflow".
[[noreturn]] TENON_API void report_overflow(Dtype dtype);

/// c10's rule for an integer: one outside T's range overflows, but a negative one may wrap in an unsigned T.
template <class T>
constexpr bool overflows(std::int64_t value) {
  using Limits = std::numeric_limits<T>;
  if constexpr (sizeof(T) >= sizeof(value) || std::is_same_v<T, float> || std::is_same_v<T, BFloat16>) {
    return false;
  } else {
    constexpr auto kMax = static_cast<std::int64_t>(Limits::max());
    return value > kMax || value < (Limits::is_signed ? static_cast<std::int64_t>(Limits::lowest()) : -kMax);
  }
}

/// c10's rule for a floating number: NaN and infinities overflow integers only, finite ones that lie outside T's range
/// any T. 2^63 as int64 overflows too, which c10 lets pass into an undefined conversion.
template <class T>
constexpr bool overflows(double value) {
  using Limits = std::numeric_limits<T>;
  constexpr double kMax = static_cast<double>(Limits::max());
  constexpr double kLowest = static_cast<double>(Limits::lowest());
  if constexpr (Limits::is_integer) {
    // Also false for NaN.
    return !(value >= kLowest && (sizeof(T) < 8 ? value <= kMax : value < kMax));
  } else {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return (value > kMax && value != kInfinity) || (value < kLowest && value != -kInfinity);
  }
}

}  // namespace detail

class Scalar {
 public:
  constexpr Scalar() : Scalar(std::int64_t{0}) {}
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_same_v<T, Half> ||
           std::is_same_v<T, BFloat16>) constexpr Scalar(T value) {  // NOLINT: implicit as in c10
    if constexpr (std::is_same_v<T, bool>) {
      kind_ = Kind::kBoolean;
      integer_ = value ? 1 : 0;
    } else if constexpr (std::is_integral_v<T>) {
      kind_ = Kind::kInteger;
      integer_ = static_cast<std::int64_t>(value);
    } else {
      kind_ = Kind::kReal;
      real_ = static_cast<double>(value);
    }
  }

  /// Whether it was made from a floating number.
  constexpr bool isFloatingPoint() const { return kind_ == Kind::kReal; }
  /// Whether it was made from an integer, or, if asked for, from a bool.
  constexpr bool isIntegral(bool include_bool = false) const {
    return kind_ == Kind::kInteger || (include_bool && kind_ == Kind::kBoolean);
  }
  /// Whether it was made from a bool.
  constexpr bool isBoolean() const { return kind_ == Kind::kBoolean; }
  /// False: there are no complex numbers.
  constexpr bool isComplex() const { return false; }
  /// kFloat64, kInt64 or kBool.
  constexpr Dtype type() const {
    return kind_ == Kind::kReal ? Dtype::kFloat64 : kind_ == Kind::kInteger ? Dtype::kInt64 : Dtype::kBool;
  }

  /// Throws Error for a number that T cannot hold (detail::overflows); bool takes every number.
  template <class T>
  constexpr T to() const {
    if constexpr (std::is_same_v<T, bool>) {
      return kind_ == Kind::kReal ? real_ != 0 : integer_ != 0;
    } else if (kind_ == Kind::kReal) {
      if constexpr (!std::is_same_v<T, double>) {
        if (detail::overflows<T>(real_)) [[unlikely]]
          detail::report_overflow(checked_as<T>());
      }
      return static_cast<T>(real_);
    } else {
      if constexpr (!std::is_same_v<T, double> && !std::is_same_v<T, std::int64_t>) {
        if (detail::overflows<T>(integer_)) [[unlikely]]
          detail::report_overflow(checked_as<T>());
      }
      return static_cast<T>(integer_);
    }
  }
  /// See to().
  constexpr double toDouble() const { return to<double>(); }
  /// See to().
  constexpr float toFloat() const { return to<float>(); }
  /// See to().
  constexpr Half toHalf() const { return to<Half>(); }
  /// See to().
  constexpr BFloat16 toBFloat16() const { return to<BFloat16>(); }
  /// See to().
  constexpr std::int64_t toLong() const { return to<std::int64_t>(); }
  /// See to().
  constexpr int toInt() const { return to<int>(); }
  /// See to().
  constexpr std::int16_t toShort() const { return to<std::int16_t>(); }
  /// See to().
  constexpr std::int8_t toChar() const { return to<std::int8_t>(); }
  /// See to().
  constexpr std::uint8_t toByte() const { return to<std::uint8_t>(); }
  /// See to().
  constexpr bool toBool() const { return to<bool>(); }

  /// Both readings for a kernel, unchecked.
  constexpr ScalarValue value() const { return {toDouble(), kind_ == Kind::kReal ? real_as_integer() : integer_}; }

  constexpr Scalar operator-() const {
    if (kind_ == Kind::kReal) return Scalar(-real_);
    if (kind_ == Kind::kBoolean) throw Error("torch boolean negative, the `-` operator, is not supported.");
    return Scalar(static_cast<std::int64_t>(-static_cast<std::uint64_t>(integer_)));
  }
  /// The number itself: there are no complex ones.
  constexpr Scalar conj() const { return *this; }
  /// A truth value equals truth values only, as in c10.
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr bool equal(T other) const {
    if constexpr (std::is_same_v<T, bool>) {
      return kind_ == Kind::kBoolean && (integer_ != 0) == other;
    } else {
      if (kind_ == Kind::kReal) return real_ == static_cast<double>(other);
      return kind_ == Kind::kInteger && static_cast<T>(integer_) == other;
    }
  }
  friend std::ostream& operator<<(std::ostream& stream, const Scalar& scalar) {
    if (scalar.kind_ == Kind::kReal) return stream << scalar.real_;
    if (scalar.kind_ == Kind::kBoolean) return stream << (scalar.integer_ ? "true" : "false");
    return stream << scalar.integer_;
  }

 private:
  enum class Kind : std::uint8_t { kBoolean, kInteger, kReal };
  /// The type that a complaint about T names.
  template <class T>
  static constexpr Dtype checked_as() {
    if constexpr (std::is_integral_v<T>) {
      return sizeof(T) == 1   ? (std::is_signed_v<T> ? Dtype::kInt8 : Dtype::kUInt8)
             : sizeof(T) == 2 ? Dtype::kInt16
             : sizeof(T) == 4 ? Dtype::kInt32
                              : Dtype::kInt64;
    } else {
      return dtype_of<T>;
    }
  }
  /// The integer part of a floating number; 0 where int64 cannot hold it.
  constexpr std::int64_t real_as_integer() const {
    // Outside int64's range the conversion is undefined; the integer reading is then never used meaningfully.
    return real_ > -9.2e18 && real_ < 9.2e18 ? static_cast<std::int64_t>(real_) : 0;
  }
  union {
    double real_;
    std::int64_t integer_ = 0;
  };
  Kind kind_ = Kind::kInteger;
};

}  // namespace tenon
