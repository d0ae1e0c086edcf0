// Attributes of the pointwise kernels.
#pragma once

#include <tenon/kernel/attributes/scalar.h>

#include <cstdint>

namespace tenon {

/// Unary rows with kParameters > 0: p[i] of pointwise.h.
struct PointwiseAttributes {
  ScalarValue parameters[3];
};

enum class ScalarSide : std::int8_t { kNone, kLeft, kRight };

/// Binary, comparison and bitwise rows. With scalar_side == kRight inputs[1] is undefined and `scalar` takes its place,
/// with kLeft inputs[0] is. `alpha` multiplies b in add and sub; 1 everywhere else.
struct BinaryAttributes {
  ScalarValue alpha{1.0, 1};
  ScalarValue scalar;
  ScalarSide scalar_side = ScalarSide::kNone;
};

/// fill (value), masked_fill (value).
struct FillAttributes {
  ScalarValue value;
};

/// addcmul, addcdiv: value; lerp with a scalar weight: value (then inputs[2] is undefined).
struct TernaryAttributes {
  ScalarValue value{1.0, 1};
};

}  // namespace tenon
