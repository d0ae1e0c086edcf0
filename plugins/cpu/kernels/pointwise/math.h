// Elementary functions without branches, which the compiler turns into vector code. Float: at most 2 ulp, NaN and
// infinities as in the C library. Double: the C library itself.
//
// The polynomials are minimax fits (Remez, weighted for relative error) of the function's remainder after its first
// terms.
#pragma once

#include "kernels/pointwise/math_division.h"
#include "kernels/pointwise/math_exponential.h"
#include "kernels/pointwise/math_trigonometric.h"

namespace tenon::cpu::TENON_CPU_LEVEL::math {

// The rest is the C library's, one element at a time: of floats the first list, of doubles the second too. This list
// and the three below are all that has to know a function.
#define TENON_C_LIBRARY_FUNCTIONS(X) \
  X(asinh)                           \
  X(acosh)                           \
  X(cbrt)                            \
  X(lgamma)                          \
  X(tgamma)                          \
  X(floor)                           \
  X(ceil)                            \
  X(trunc)                           \
  X(nearbyint)
#define TENON_OWN_OF_FLOAT_FUNCTIONS(X) \
  X(sin)                                \
  X(cos)                                \
  X(tan)                                \
  X(asin)                               \
  X(acos)                               \
  X(atan)                               \
  X(sinh)                               \
  X(cosh)                               \
  X(atanh)                              \
  X(expm1)                              \
  X(log1p)                              \
  X(log2)                               \
  X(log10)                              \
  X(exp2)                               \
  X(erfc)
#define TENON_BESSEL_FUNCTIONS(X) X(j0) X(j1) X(y0) X(y1)
#define TENON_OWN_FUNCTIONS(X) X(exp) X(log) X(tanh) X(erf) X(sqrt)

#define TENON_C_LIBRARY_FUNCTION(name)                          \
  inline float name(float x) { return __builtin_##name##f(x); } \
  inline double name(double x) { return __builtin_##name(x); }
TENON_C_LIBRARY_FUNCTIONS(TENON_C_LIBRARY_FUNCTION)
#undef TENON_C_LIBRARY_FUNCTION
#define TENON_OF_DOUBLE(name) \
  inline double name(double x) { return __builtin_##name(x); }
TENON_OWN_OF_FLOAT_FUNCTIONS(TENON_OF_DOUBLE)
#undef TENON_OF_DOUBLE
#define TENON_BESSEL_FUNCTION(name) /* by name: Clang has no builtins of these */ \
  inline float name(float x) { return ::name##f(x); }                             \
  inline double name(double x) { return ::name(x); }
TENON_BESSEL_FUNCTIONS(TENON_BESSEL_FUNCTION)
#undef TENON_BESSEL_FUNCTION
inline double pow(double a, double b) { return __builtin_pow(a, b); }
inline double hypot(double a, double b) { return __builtin_hypot(a, b); }
inline double atan2(double a, double b) { return __builtin_atan2(a, b); }

}  // namespace tenon::cpu::TENON_CPU_LEVEL::math
