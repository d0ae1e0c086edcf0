// Pointwise operators as types, made of the rows of kernel/rows: Row::value is the operator, Row::slope its derivative.
// A backend instantiates its loops with the lists Unary, Binary, Comparison, Predicate and Bitwise below.
//
//   unary       y = value(x, p)   dx = dy * slope(x, y, p)                       kernels "tanh" and "tanh_backward"
//   binary      y = value(a, b)   da = dy * slope_a(a, b, y), db = dy * slope_b(a, b, y)   kernel "mul"
//   predicate   y = value(x), comparison y = value(a, b): results are bool       kernels "isnan", "lt"
//
// T is float or double in kernels (reduced types are computed in float), or int64_t where the row computes integers.
// The slopes are also instantiated with a symbolic tensor, which gives double backward: hence select(c, a, b) instead
// of ?: in them, and T(c) to turn a condition into 0 or 1.
//
// TENON_POINTWISE_LEVEL: a backend that compiles these templates several times with different instruction sets sets it
// to a different word each time, so that the linker keeps the copies apart.
#pragma once

#include <tenon/core/half.h>

#include <cmath>
#include <limits>
#include <type_traits>

#if !defined(TENON_POINTWISE_LEVEL)
#define TENON_POINTWISE_LEVEL generic
#endif

namespace tenon::pointwise {

/// What a unary operator's slope needs, and hence what autograd saves.
enum class Saves { kNothing, kInput, kOutput };

/// What a binary operator's slopes read, and hence what autograd saves: nothing (add), the other operand (mul), that
/// and the divisor (div), both operands, or both and the result, which is computed again.
enum class Reads { kNothing, kPartner, kDivisor, kOperands, kResult };

/// What an operator does with integers. Bools are converted where integers are, and else refused.
enum class Integers {
  kConverted,  ///< converts them to the default floating dtype
  kRefused,    ///< throws Error
  kKept,       ///< gives them back: they are whole already
  kSigned,     ///< computes in int64_t
  kWrapped,    ///< computes modulo 2^64
  kDivided,    ///< computes in int64_t, and throws Error where a divisor is 0
};
constexpr bool computes(Integers integers) { return integers >= Integers::kSigned; }

inline namespace TENON_POINTWISE_LEVEL {

// What rows may call of the standard library. Declared one by one: of a using directive, operators of the same names
// (tenon::exp) would hide them.
using std::abs, std::acos, std::acosh, std::asin, std::asinh, std::atan, std::atan2, std::atanh, std::cbrt, std::ceil,
    std::copysign, std::cos, std::cosh, std::erf, std::erfc, std::exp, std::exp2, std::expm1, std::floor, std::fmod,
    std::hypot, std::lgamma, std::log, std::log10, std::log1p, std::log2, std::nearbyint, std::numeric_limits, std::pow,
    std::sin, std::sinh, std::sqrt, std::tan, std::tanh, std::tgamma, std::trunc;

/// c ? a : b, and for symbolic tensors a row of its own.
template <class C, class T>
TENON_HOST_DEVICE inline T select(C condition, T yes, T no) {
  return condition ? yes : no;
}

#include <tenon/kernel/pointwise_helpers.inl>

// kParameters: how many of PointwiseAttributes::parameters the row reads, as p[0], p[1], … in T.
#define TENON_UNARY_KERNEL(Row, text, saves, integers, count, parameters, value_expr, slope_expr, ...) \
  struct Row {                                                                                         \
    static constexpr const char* name = #text;                                                         \
    static constexpr Saves kSaves = Saves::saves;                                                      \
    static constexpr Integers kIntegers = Integers::integers;                                          \
    static constexpr int kParameters = count;                                                          \
    template <class T>                                                                                 \
    TENON_HOST_DEVICE static T value(T x, [[maybe_unused]] const T* p = nullptr) {                     \
      TENON_LOCAL_##count parameters return value_expr;                                                \
    }                                                                                                  \
    template <class T>                                                                                 \
    TENON_HOST_DEVICE static T slope([[maybe_unused]] T x, [[maybe_unused]] T y,                       \
                                     [[maybe_unused]] const T* p = nullptr) {                          \
      TENON_LOCAL_##count parameters return slope_expr;                                                \
    }                                                                                                  \
  };
#define TENON_UNARY_WITH(Row, text, saves, integers, out, ...) \
  TENON_UNARY_KERNEL(Row, text, saves, integers, __VA_ARGS__)
#define TENON_UNARY(Row, text, saves, integers, out, ...) \
  TENON_UNARY_KERNEL(Row, text, saves, integers, 0, (), __VA_ARGS__)
#include <tenon/kernel/rows/unary.inl>

#define TENON_BINARY_KERNEL(Row, text, reads, integers, value_expr, slope_a_expr, slope_b_expr, ...)       \
  struct Row {                                                                                             \
    static constexpr const char* name = #text;                                                             \
    static constexpr Reads kReads = Reads::reads;                                                          \
    static constexpr Integers kIntegers = Integers::integers;                                              \
    template <class T>                                                                                     \
    TENON_HOST_DEVICE static T value(T a, T b) {                                                           \
      return value_expr;                                                                                   \
    }                                                                                                      \
    template <class T>                                                                                     \
    TENON_HOST_DEVICE static T slope_a([[maybe_unused]] T a, [[maybe_unused]] T b, [[maybe_unused]] T y) { \
      return slope_a_expr;                                                                                 \
    }                                                                                                      \
    template <class T>                                                                                     \
    TENON_HOST_DEVICE static T slope_b([[maybe_unused]] T a, [[maybe_unused]] T b, [[maybe_unused]] T y) { \
      return slope_b_expr;                                                                                 \
    }                                                                                                      \
  };
#define TENON_BINARY(...) TENON_BINARY_KERNEL(__VA_ARGS__)
#include <tenon/kernel/rows/binary.inl>

#define TENON_COMPARISON(Row, text, expression)     \
  struct Row {                                      \
    static constexpr const char* name = #text;      \
    template <class T>                              \
    TENON_HOST_DEVICE static bool value(T a, T b) { \
      return expression;                            \
    }                                               \
  };
#define TENON_PREDICATE(Row, text, out, expression) \
  struct Row {                                      \
    static constexpr const char* name = #text;      \
    template <class T>                              \
    TENON_HOST_DEVICE static bool value(T x) {      \
      return expression;                            \
    }                                               \
  };
#define TENON_BITWISE_KERNEL(Row, text, expression)           \
  struct Row {                                                \
    static constexpr const char* name = #text;                \
    static constexpr Integers kIntegers = Integers::kWrapped; \
    template <class T>                                        \
    TENON_HOST_DEVICE static T value(T a, T b) {              \
      return static_cast<T>(expression);                      \
    }                                                         \
  };
#define TENON_BITWISE(...) TENON_BITWISE_KERNEL(__VA_ARGS__)
#include <tenon/kernel/rows/relations.inl>

// The lists of all rows. Each row puts its comma first: `Begin` is the one that has none.
struct Begin;
template <class... Rows>
struct List {
  static constexpr int kSize = sizeof...(Rows);
};
template <class... Rows>
struct ListOf;
template <class... Rows>
struct ListOf<Begin, Rows...> {
  using Type = List<Rows...>;
};

#define TENON_UNARY(Row, ...) , Row
#define TENON_UNARY_WITH(Row, ...) , Row
#define TENON_UNARY_KERNEL(Row, ...) , Row
using Unary = ListOf<Begin
#include <tenon/kernel/rows/unary.inl>
                     >::Type;

#define TENON_BINARY(Row, ...) , Row
#define TENON_BINARY_KERNEL(Row, ...) , Row
using Binary = ListOf<Begin
#include <tenon/kernel/rows/binary.inl>
                      >::Type;

#define TENON_COMPARISON(Row, ...) , Row
using Comparison = ListOf<Begin
#include <tenon/kernel/rows/relations.inl>
                          >::Type;

#define TENON_PREDICATE(Row, ...) , Row
using Predicate = ListOf<Begin
#include <tenon/kernel/rows/relations.inl>
                         >::Type;

#define TENON_BITWISE(Row, ...) , Row
#define TENON_BITWISE_KERNEL(Row, ...) , Row
using Bitwise = ListOf<Begin
#include <tenon/kernel/rows/relations.inl>
                       >::Type;

}  // namespace TENON_POINTWISE_LEVEL
}  // namespace tenon::pointwise
