// Pointwise operators: one row each. `value` is the operator, `slope` its derivative; the CPU kernels, the CUDA kernels, the
// gradient checks and the benchmarks iterate these lists. Adding a row is the whole work of adding an operator.
//
//   unary   y = value(x),     dx = dy * slope(x, y)        registered as "tanh" and "tanh_backward"
//   binary  y = value(a, b),  da = dy * slope_a(a, b), db = dy * slope_b(a, b)
//
// T is float or double (reduced types are computed in float; integers only where kIntegers says so).
#pragma once

#include <tenon/core/half.h>

#include <cmath>

namespace tenon::pointwise {

/// What a unary operator's slope needs, and hence what autograd saves.
enum class Saves { kNothing, kInput, kOutput };

#define TENON_UNARY(Name, text, saves, value_expr, slope_expr) \
  struct Name {                                                \
    static constexpr const char* name = text;                  \
    static constexpr Saves kSaves = saves;                     \
    template <class T>                                         \
    TENON_HOST_DEVICE static T value(T x) {                    \
      using namespace std;                                     \
      return value_expr;                                       \
    }                                                          \
    template <class T>                                         \
    TENON_HOST_DEVICE static T slope([[maybe_unused]] T x, [[maybe_unused]] T y) { \
      using namespace std;                                     \
      return slope_expr;                                       \
    }                                                          \
  };

// clang-format off
TENON_UNARY(Neg,     "neg",     Saves::kNothing, -x,                          T(-1))
TENON_UNARY(Abs,     "abs",     Saves::kInput,   abs(x),                      T(x > 0) - T(x < 0))
TENON_UNARY(Exp,     "exp",     Saves::kOutput,  exp(x),                      y)
TENON_UNARY(Log,     "log",     Saves::kInput,   log(x),                      T(1) / x)
TENON_UNARY(Sqrt,    "sqrt",    Saves::kOutput,  sqrt(x),                     T(0.5) / y)
TENON_UNARY(Rsqrt,   "rsqrt",   Saves::kOutput,  T(1) / sqrt(x),              T(-0.5) * y * y * y)
TENON_UNARY(Square,  "square",  Saves::kInput,   x * x,                       T(2) * x)
TENON_UNARY(Sin,     "sin",     Saves::kInput,   sin(x),                      cos(x))
TENON_UNARY(Cos,     "cos",     Saves::kInput,   cos(x),                      -sin(x))
TENON_UNARY(Tanh,    "tanh",    Saves::kOutput,  tanh(x),                     T(1) - y * y)
TENON_UNARY(Sigmoid, "sigmoid", Saves::kOutput,  T(1) / (T(1) + exp(-x)),     y * (T(1) - y))
TENON_UNARY(Relu,    "relu",    Saves::kOutput,  x > T(0) ? x : (x != x ? x : T(0)), T(y > T(0)))
TENON_UNARY(Reciprocal, "reciprocal", Saves::kOutput, T(1) / x,               -y * y)
// clang-format on

template <class... Rows>
struct List {};

using Unary = List<Neg, Abs, Exp, Log, Sqrt, Rsqrt, Square, Sin, Cos, Tanh, Sigmoid, Relu, Reciprocal>;

}  // namespace tenon::pointwise
