// Names of pointwise operators that exist as methods and as functions, in both forms: x.exp(), x.exp_(), exp(x),
// exp_(x).
#pragma once

#define TENON_UNARY_METHODS(X)                                                                                     \
  X(neg)                                                                                                           \
  X(abs)                                                                                                           \
  X(sign) X(square) X(exp) X(exp2) X(expm1) X(log) X(log2) X(log10) X(log1p) X(sqrt) X(rsqrt) X(reciprocal) X(sin) \
      X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh) X(acosh) X(atanh) X(erf) X(erfc)      \
          X(erfinv) X(ceil) X(floor) X(round) X(trunc) X(frac) X(sigmoid) X(relu) X(sinc) X(lgamma) X(digamma)     \
              X(deg2rad) X(rad2deg)

/// Results are bool.
#define TENON_COMPARISON_METHODS(X) X(eq) X(ne) X(lt) X(le) X(gt) X(ge) X(logical_and) X(logical_or) X(logical_xor)

/// Two operands of one promoted dtype; the second may be a number.
#define TENON_BINARY_METHODS(X)                                                                                \
  X(mul)                                                                                                       \
  X(div)                                                                                                       \
  X(pow) X(maximum) X(minimum) X(atan2) X(hypot) X(fmod) X(remainder) X(floor_divide) X(logaddexp) X(copysign) \
      X(bitwise_and) X(bitwise_or) X(bitwise_xor)
