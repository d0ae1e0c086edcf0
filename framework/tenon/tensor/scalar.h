// Scalar: one number with its category (bool, integer, floating), as passed to operators.
#pragma once

#include <tenon/core/dtype.h>
#include <tenon/core/error.h>
#include <tenon/kernel/attributes/scalar.h>

#include <cstdint>
#include <ostream>
#include <type_traits>

namespace tenon {

class Scalar {
 public:
  constexpr Scalar() : Scalar(std::int64_t{0}) {}
  template <class T>
    requires(std::is_arithmetic_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
  constexpr Scalar(T value) {  // NOLINT: implicit as in c10
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

  constexpr bool isFloatingPoint() const { return kind_ == Kind::kReal; }
  constexpr bool isIntegral(bool include_bool = false) const {
    return kind_ == Kind::kInteger || (include_bool && kind_ == Kind::kBoolean);
  }
  constexpr bool isBoolean() const { return kind_ == Kind::kBoolean; }
  constexpr bool isComplex() const { return false; }
  /// kFloat64, kInt64 or kBool.
  constexpr Dtype type() const {
    return kind_ == Kind::kReal ? Dtype::kFloat64 : kind_ == Kind::kInteger ? Dtype::kInt64 : Dtype::kBool;
  }

  template <class T>
  constexpr T to() const {
    return kind_ == Kind::kReal ? static_cast<T>(real_) : static_cast<T>(integer_);
  }
  constexpr double toDouble() const { return to<double>(); }
  constexpr float toFloat() const { return to<float>(); }
  constexpr std::int64_t toLong() const { return to<std::int64_t>(); }
  constexpr int toInt() const { return to<int>(); }
  constexpr bool toBool() const { return kind_ == Kind::kReal ? real_ != 0 : integer_ != 0; }

  constexpr ScalarValue value() const { return {toDouble(), kind_ == Kind::kReal ? real_as_integer() : integer_}; }

  constexpr Scalar operator-() const { return kind_ == Kind::kReal ? Scalar(-real_) : Scalar(-integer_); }
  template <class T>
    requires std::is_arithmetic_v<T>
  constexpr bool equal(T other) const {
    return kind_ == Kind::kReal ? real_ == static_cast<double>(other) : static_cast<T>(integer_) == other;
  }
  friend std::ostream& operator<<(std::ostream& stream, const Scalar& scalar) {
    if (scalar.kind_ == Kind::kReal) return stream << scalar.real_;
    if (scalar.kind_ == Kind::kBoolean) return stream << (scalar.integer_ ? "true" : "false");
    return stream << scalar.integer_;
  }

 private:
  enum class Kind : std::uint8_t { kBoolean, kInteger, kReal };
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
