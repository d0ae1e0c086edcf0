// Pointwise operators: one row each. `value` is the operator, `slope` its derivative; the CPU kernels, the CUDA
// kernels, the gradient checks and the benchmarks iterate these lists. Adding a row is the whole work of adding an
// operator.
//
//   unary       y = value(x, p)   dx = dy * slope(x, y, p)                       kernels "tanh" and "tanh_backward"
//   binary      y = value(a, b)   da = dy * slope_a(a, b, y), db = dy * slope_b(a, b, y)   kernel "mul"
//   predicate   y = value(x), comparison y = value(a, b): results are bool       kernels "isnan", "lt"
//
// T is float or double in kernels (reduced types are computed in float; integers only where kIntegers says so: T is
// then int64_t or the type itself). The slopes are also instantiated with a symbolic tensor, which gives double
// backward: hence select(c, a, b) instead of ?: in them, and T(c) to turn a condition into 0 or 1.
//
// TENON_POINTWISE_LEVEL: a backend that compiles these templates several times with different instruction sets sets it
// to a different word each time, so that the linker keeps the copies apart.
#pragma once

#include <tenon/core/half.h>

#include <cmath>
#include <limits>

#if !defined(TENON_POINTWISE_LEVEL)
#define TENON_POINTWISE_LEVEL generic
#endif

namespace tenon::pointwise {
inline namespace TENON_POINTWISE_LEVEL {

/// What a unary operator's slope needs, and hence what autograd saves.
enum class Saves { kNothing, kInput, kOutput };

/// c ? a : b, and for symbolic tensors a row of its own.
template <class C, class T>
TENON_HOST_DEVICE inline T select(C condition, T yes, T no) {
  return condition ? yes : no;
}

#include <tenon/kernel/pointwise_helpers.inl>

// kParameters: how many of PointwiseAttributes::parameters the row reads, as p[0], p[1], … in T.
#define TENON_UNARY_ROW(Name, text, saves, integers, parameters, value_expr, slope_expr) \
  struct Name {                                                                          \
    static constexpr const char* name = text;                                            \
    static constexpr Saves kSaves = saves;                                               \
    static constexpr bool kIntegers = integers;                                          \
    static constexpr int kParameters = parameters;                                       \
    template <class T>                                                                   \
    TENON_HOST_DEVICE static T value(T x, [[maybe_unused]] const T* p = nullptr) {       \
      using namespace std;                                                               \
      return value_expr;                                                                 \
    }                                                                                    \
    template <class T>                                                                   \
    TENON_HOST_DEVICE static T slope([[maybe_unused]] T x, [[maybe_unused]] T y,         \
                                     [[maybe_unused]] const T* p = nullptr) {            \
      using namespace std;                                                               \
      return slope_expr;                                                                 \
    }                                                                                    \
  };
#define TENON_UNARY(Name, text, saves, value_expr, slope_expr) \
  TENON_UNARY_ROW(Name, text, saves, false, 0, value_expr, slope_expr)
#define TENON_UNARY_INT(Name, text, saves, value_expr, slope_expr) \
  TENON_UNARY_ROW(Name, text, saves, true, 0, value_expr, slope_expr)
#define TENON_UNARY_P(Name, text, saves, parameters, value_expr, slope_expr) \
  TENON_UNARY_ROW(Name, text, saves, false, parameters, value_expr, slope_expr)

// clang-format off
TENON_UNARY_INT(Neg,    "neg",        Saves::kNothing, -x,                        T(-1))
TENON_UNARY_INT(Abs,    "abs",        Saves::kInput,   T(x < T(0) ? -x : (x == T(0) ? T(0) : x)),    T(x > T(0)) - T(x < T(0)))
TENON_UNARY_INT(Sign,   "sign",       Saves::kNothing, T(T(x > T(0)) - T(x < T(0))), T(0))
TENON_UNARY_INT(Square, "square",     Saves::kInput,   x * x,                     T(2) * x)
TENON_UNARY(Exp,        "exp",        Saves::kOutput,  exp(x),                    y)
TENON_UNARY(Exp2,       "exp2",       Saves::kOutput,  exp2(x),                   y * T(0.693147180559945309))
TENON_UNARY(Expm1,      "expm1",      Saves::kOutput,  expm1(x),                  y + T(1))
TENON_UNARY(Log,        "log",        Saves::kInput,   log(x),                    T(1) / x)
TENON_UNARY(Log2,       "log2",       Saves::kInput,   log2(x),                   T(1) / (x * T(0.693147180559945309)))
TENON_UNARY(Log10,      "log10",      Saves::kInput,   log10(x),                  T(1) / (x * T(2.302585092994045684)))
TENON_UNARY(Log1p,      "log1p",      Saves::kInput,   log1p(x),                  T(1) / (x + T(1)))
TENON_UNARY(Sqrt,       "sqrt",       Saves::kOutput,  sqrt(x),                   T(0.5) / y)
TENON_UNARY(Rsqrt,      "rsqrt",      Saves::kOutput,  T(1) / sqrt(x),            T(-0.5) * y * y * y)
TENON_UNARY(Reciprocal, "reciprocal", Saves::kOutput,  T(1) / x,                  -(y * y))
TENON_UNARY(Sin,        "sin",        Saves::kInput,   sin(x),                    cos(x))
TENON_UNARY(Cos,        "cos",        Saves::kInput,   cos(x),                    -sin(x))
TENON_UNARY(Tan,        "tan",        Saves::kOutput,  tan(x),                    T(1) + y * y)
TENON_UNARY(Asin,       "asin",       Saves::kInput,   asin(x),                   T(1) / sqrt(T(1) - x * x))
TENON_UNARY(Acos,       "acos",       Saves::kInput,   acos(x),                   T(-1) / sqrt(T(1) - x * x))
TENON_UNARY(Atan,       "atan",       Saves::kInput,   atan(x),                   T(1) / (T(1) + x * x))
TENON_UNARY(Sinh,       "sinh",       Saves::kInput,   sinh(x),                   cosh(x))
TENON_UNARY(Cosh,       "cosh",       Saves::kInput,   cosh(x),                   sinh(x))
TENON_UNARY(Tanh,       "tanh",       Saves::kOutput,  tanh(x),                   T(1) - y * y)
TENON_UNARY(Asinh,      "asinh",      Saves::kInput,   asinh(x),                  T(1) / sqrt(x * x + T(1)))
TENON_UNARY(Acosh,      "acosh",      Saves::kInput,   acosh(x),                  T(1) / sqrt(x * x - T(1)))
TENON_UNARY(Atanh,      "atanh",      Saves::kInput,   atanh(x),                  T(1) / (T(1) - x * x))
TENON_UNARY(Erf,        "erf",        Saves::kInput,   erf(x),                    T(1.128379167095512574) * exp(-(x * x)))
TENON_UNARY(Erfc,       "erfc",       Saves::kInput,   erfc(x),                   T(-1.128379167095512574) * exp(-(x * x)))
TENON_UNARY(Erfinv,     "erfinv",     Saves::kOutput,  erf_inverse(x),            T(0.886226925452758014) * exp(y * y))
TENON_UNARY(Ceil,       "ceil",       Saves::kNothing, ceil(x),                   T(0))
TENON_UNARY(Floor,      "floor",      Saves::kNothing, floor(x),                  T(0))
TENON_UNARY(Round,      "round",      Saves::kNothing, nearbyint(x),              T(0))
TENON_UNARY(Trunc,      "trunc",      Saves::kNothing, trunc(x),                  T(0))
TENON_UNARY(Frac,       "frac",       Saves::kNothing, x - trunc(x),              T(1))
TENON_UNARY(Sigmoid,    "sigmoid",    Saves::kOutput,  T(1) / (T(1) + exp(-x)),   y * (T(1) - y))
TENON_UNARY(LogSigmoid, "log_sigmoid", Saves::kInput,  (x < T(0) ? x : T(0)) - log1p(exp(x < T(0) ? x : -x)), T(1) / (T(1) + exp(x)))
TENON_UNARY_INT(Relu,   "relu",       Saves::kOutput,  x > T(0) ? x : (x != x ? x : T(0)), T(y > T(0)))
TENON_UNARY(Relu6,      "relu6",      Saves::kInput,   x > T(6) ? T(6) : (x < T(0) ? T(0) : x), T(x > T(0)) * T(x < T(6)))
TENON_UNARY(Silu,       "silu",       Saves::kInput,   x / (T(1) + exp(-x)),      logistic(x) * (T(1) + x * (T(1) - logistic(x))))
TENON_UNARY(Mish,       "mish",       Saves::kInput,   x * tanh(log1p(exp(x))),
            tanh(softplus1(x)) + x * logistic(x) * (T(1) - tanh(softplus1(x)) * tanh(softplus1(x))))
TENON_UNARY(Gelu,       "gelu",       Saves::kInput,   T(0.5) * x * (T(1) + erf(x * T(0.707106781186547524))),
            T(0.5) * (T(1) + erf(x * T(0.707106781186547524))) + x * T(0.398942280401432678) * exp(T(-0.5) * x * x))
TENON_UNARY(GeluTanh,   "gelu_tanh",  Saves::kInput,   T(0.5) * x * (T(1) + tanh(gelu_inner(x))),
            T(0.5) * (T(1) + tanh(gelu_inner(x))) + T(0.5) * x * (T(1) - tanh(gelu_inner(x)) * tanh(gelu_inner(x))) * T(0.797884560802865356) * (T(1) + T(0.134145) * x * x))
TENON_UNARY(Selu,       "selu",       Saves::kOutput,
            T(1.0507009873554804934193) * (x > T(0) ? x : T(1.6732632423543772848170) * expm1(x)),
            select(y > T(0), T(1.0507009873554804934193), y + T(1.7580993408473768599402)))
TENON_UNARY(Hardsigmoid, "hardsigmoid", Saves::kInput, x <= T(-3) ? T(0) : (x >= T(3) ? T(1) : x / T(6) + T(0.5)), T(x > T(-3)) * T(x < T(3)) * T(1.0 / 6.0))
TENON_UNARY(Hardswish,  "hardswish",  Saves::kInput,   x <= T(-3) ? T(0) : (x >= T(3) ? x : x * (x + T(3)) / T(6)),
            T(x > T(-3)) * T(x < T(3)) * (x / T(3) + T(0.5)) + T(x >= T(3)))
TENON_UNARY(Tanhshrink, "tanhshrink", Saves::kInput,   x - tanh(x),               tanh(x) * tanh(x))
TENON_UNARY(Softsign,   "softsign",   Saves::kInput,   x / (T(1) + abs(x)),       T(1) / ((T(1) + abs(x)) * (T(1) + abs(x))))
TENON_UNARY(Deg2rad,    "deg2rad",    Saves::kNothing, x * T(0.017453292519943295), T(0.017453292519943295))
TENON_UNARY(Rad2deg,    "rad2deg",    Saves::kNothing, x * T(57.29577951308232),  T(57.29577951308232))
TENON_UNARY(Sinc,       "sinc",       Saves::kInput,   x == T(0) ? T(1) : sin(x * T(3.14159265358979324)) / (x * T(3.14159265358979324)),
            select(x == T(0), T(0), (cos(x * T(3.14159265358979324)) * (x * T(3.14159265358979324)) - sin(x * T(3.14159265358979324))) / (T(3.14159265358979324) * x * x)))
TENON_UNARY(Lgamma,     "lgamma",     Saves::kInput,   lgamma(x),                 digamma_of(x))
TENON_UNARY(Digamma,    "digamma",    Saves::kInput,   digamma_of(x),             polygamma_of(T(1), x))

// With parameters.
TENON_UNARY_P(LeakyRelu, "leaky_relu", Saves::kInput,  1, x > T(0) ? x : x * p[0],                     select(x > T(0), T(1), p[0]))
TENON_UNARY_P(Elu,       "elu",        Saves::kInput,  3, x > T(0) ? x * p[1] : p[0] * p[1] * expm1(x * p[2]),     // alpha, scale, input_scale
              select(x > T(0), p[1], p[0] * p[1] * p[2] * exp(x * p[2])))
TENON_UNARY_P(Celu,      "celu",       Saves::kInput,  1, x > T(0) ? x : p[0] * expm1(x / p[0]),         select(x > T(0), T(1), exp(x / p[0])))
TENON_UNARY_P(Softplus,  "softplus",   Saves::kInput,  2, x * p[0] > p[1] ? x : log1p(exp(x * p[0])) / p[0],       // beta, threshold
              select(x * p[0] > p[1], T(1), logistic(x * p[0])))
TENON_UNARY_P(Hardtanh,  "hardtanh",   Saves::kInput,  2, x < p[0] ? p[0] : (x > p[1] ? p[1] : x),       T(x > p[0]) * T(x < p[1]))
TENON_UNARY_P(Hardshrink, "hardshrink", Saves::kInput, 1, x >= -p[0] && x <= p[0] ? T(0) : x,           T(1) - T(x >= -p[0]) * T(x <= p[0]))
TENON_UNARY_P(Softshrink, "softshrink", Saves::kInput, 1, x > p[0] ? x - p[0] : (x < -p[0] ? x + p[0] : T(0)),    T(1) - T(x >= -p[0]) * T(x <= p[0]))
TENON_UNARY_P(Threshold, "threshold",  Saves::kInput,  2, x <= p[0] ? p[1] : x,                          T(x > p[0]))
TENON_UNARY_P(PowScalar, "pow_scalar", Saves::kInput,  1, power(x, p[0]),                                select(p[0] == T(0), T(0), p[0] * power(x, p[0] - T(1))))
TENON_UNARY_P(Polygamma, "polygamma",  Saves::kInput,  1, polygamma_of(p[0], x),                           polygamma_of(p[0] + T(1), x))  // order >= 1
TENON_UNARY_ROW(ClampMin, "clamp_min", Saves::kInput, true, 1, x < p[0] ? p[0] : x,                      T(x >= p[0]))
TENON_UNARY_ROW(ClampMax, "clamp_max", Saves::kInput, true, 1, x > p[0] ? p[0] : x,                      T(x <= p[0]))
TENON_UNARY_ROW(Clamp,    "clamp",     Saves::kInput, true, 2, x < p[0] ? (p[0] < p[1] ? p[0] : p[1]) : (x > p[1] ? p[1] : x),  T(x >= p[0]) * T(x <= p[1]))
TENON_UNARY_P(NanToNum,  "nan_to_num", Saves::kInput,  3, x != x ? p[0] : (x > numeric_limits<T>::max() ? p[1] : (x < -numeric_limits<T>::max() ? p[2] : x)),
              T(x == x) * T(abs(x) < T(numeric_limits<double>::infinity())))
// clang-format on

template <class... Rows>
struct List {
  static constexpr int kSize = sizeof...(Rows);
};

using Unary =
    List<Neg, Abs, Sign, Square, Exp, Exp2, Expm1, Log, Log2, Log10, Log1p, Sqrt, Rsqrt, Reciprocal, Sin, Cos, Tan,
         Asin, Acos, Atan, Sinh, Cosh, Tanh, Asinh, Acosh, Atanh, Erf, Erfc, Erfinv, Ceil, Floor, Round, Trunc, Frac,
         Sigmoid, LogSigmoid, Relu, Relu6, Silu, Mish, Gelu, GeluTanh, Selu, Hardsigmoid, Hardswish, Tanhshrink,
         Softsign, Deg2rad, Rad2deg, Sinc, Lgamma, Digamma, Polygamma, LeakyRelu, Elu, Celu, Softplus, Hardtanh,
         Hardshrink, Softshrink, Threshold, PowScalar, ClampMin, ClampMax, Clamp, NanToNum>;

#define TENON_BINARY(Name, text, integers, value_expr, slope_a_expr, slope_b_expr)                         \
  struct Name {                                                                                            \
    static constexpr const char* name = text;                                                              \
    static constexpr bool kIntegers = integers;                                                            \
    template <class T>                                                                                     \
    TENON_HOST_DEVICE static T value(T a, T b) {                                                           \
      using namespace std;                                                                                 \
      return value_expr;                                                                                   \
    }                                                                                                      \
    template <class T>                                                                                     \
    TENON_HOST_DEVICE static T slope_a([[maybe_unused]] T a, [[maybe_unused]] T b, [[maybe_unused]] T y) { \
      using namespace std;                                                                                 \
      return slope_a_expr;                                                                                 \
    }                                                                                                      \
    template <class T>                                                                                     \
    TENON_HOST_DEVICE static T slope_b([[maybe_unused]] T a, [[maybe_unused]] T b, [[maybe_unused]] T y) { \
      using namespace std;                                                                                 \
      return slope_b_expr;                                                                                 \
    }                                                                                                      \
  };

// clang-format off
TENON_BINARY(Add,     "add",     true,  a + b,  T(1), T(1))
TENON_BINARY(Sub,     "sub",     true,  a - b,  T(1), T(-1))
TENON_BINARY(Mul,     "mul",     true,  a * b,  b,    a)
TENON_BINARY(Div,     "div",     false, a / b,  T(1) / b, -(y / b))
TENON_BINARY(Pow,     "pow",     true,  power(a, b), select(b == T(0), T(0), b * power(a, b - T(1))), select(a == T(0), T(0), y * log(a)))
TENON_BINARY(Maximum, "maximum", true,  a != a ? a : (b != b ? b : (a > b ? a : b)), T(a > b) + T(0.5) * T(a == b), T(b > a) + T(0.5) * T(a == b))
TENON_BINARY(Minimum, "minimum", true,  a != a ? a : (b != b ? b : (a < b ? a : b)), T(a < b) + T(0.5) * T(a == b), T(b < a) + T(0.5) * T(a == b))
TENON_BINARY(Atan2,   "atan2",   false, atan2(a, b), b / (a * a + b * b), -(a / (a * a + b * b)))
TENON_BINARY(Hypot,   "hypot",   false, hypot(a, b), a / y, b / y)
TENON_BINARY(Fmod,    "fmod",    true,  remainder_c(a, b), T(1), -trunc(a / b))
TENON_BINARY(Remainder, "remainder", true, remainder_floor(a, b), T(1), -floor(a / b))
TENON_BINARY(FloorDivide, "floor_divide", true, divide_floor(a, b), T(0), T(0))
TENON_BINARY(TruncDivide, "trunc_divide", true, divide_trunc(a, b), T(0), T(0))
TENON_BINARY(LogAddExp, "logaddexp", false, log_add_exp(a, b), exp(a - y), exp(b - y))
TENON_BINARY(Copysign, "copysign", false, copysign(a, b), select(a == T(0), T(0), y / a), T(0))
// clang-format on

using Binary = List<Add, Sub, Mul, Div, Pow, Maximum, Minimum, Atan2, Hypot, Fmod, Remainder, FloorDivide, TruncDivide,
                    LogAddExp, Copysign>;

#define TENON_RELATION(Name, text, arguments, expression) \
  struct Name {                                           \
    static constexpr const char* name = text;             \
    template <class T>                                    \
    TENON_HOST_DEVICE static bool value arguments {       \
      using namespace std;                                \
      return expression;                                  \
    }                                                     \
  };

// Results are bool; every dtype is an input (isnan and its like: integers give the constant).
TENON_RELATION(Eq, "eq", (T a, T b), a == b)
TENON_RELATION(Ne, "ne", (T a, T b), a != b)
TENON_RELATION(Lt, "lt", (T a, T b), a < b)
TENON_RELATION(Le, "le", (T a, T b), a <= b)
TENON_RELATION(Gt, "gt", (T a, T b), a > b)
TENON_RELATION(Ge, "ge", (T a, T b), a >= b)
TENON_RELATION(LogicalAnd, "logical_and", (T a, T b), a != T(0) && b != T(0))
TENON_RELATION(LogicalOr, "logical_or", (T a, T b), a != T(0) || b != T(0))
TENON_RELATION(LogicalXor, "logical_xor", (T a, T b), (a != T(0)) != (b != T(0)))
using Comparison = List<Eq, Ne, Lt, Le, Gt, Ge, LogicalAnd, LogicalOr, LogicalXor>;

TENON_RELATION(IsNan, "isnan", (T x), x != x)
TENON_RELATION(IsInf, "isinf", (T x), x == x && x - x != T(0))
TENON_RELATION(IsFinite, "isfinite", (T x), x - x == T(0))
TENON_RELATION(LogicalNot, "logical_not", (T x), x == T(0))
TENON_RELATION(Signbit, "signbit", (T x), x < T(0) || (x == T(0) && is_negative_zero(x)))
using Predicate = List<IsNan, IsInf, IsFinite, LogicalNot, Signbit>;

#define TENON_BITWISE(Name, text, expression)    \
  struct Name {                                  \
    static constexpr const char* name = text;    \
    template <class T>                           \
    TENON_HOST_DEVICE static T value(T a, T b) { \
      return static_cast<T>(expression);         \
    }                                            \
  };

// bool and integers.
TENON_BITWISE(BitwiseAnd, "bitwise_and", a& b)
TENON_BITWISE(BitwiseOr, "bitwise_or", a | b)
TENON_BITWISE(BitwiseXor, "bitwise_xor", a ^ b)
TENON_BITWISE(ShiftLeft, "shift_left", a << b)
TENON_BITWISE(ShiftRight, "shift_right", a >> b)
using Bitwise = List<BitwiseAnd, BitwiseOr, BitwiseXor, ShiftLeft, ShiftRight>;

}  // namespace TENON_POINTWISE_LEVEL
}  // namespace tenon::pointwise
