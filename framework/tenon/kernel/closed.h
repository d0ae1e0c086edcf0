// Where a unary row is closed: its slope is 0, and no gradient passes, not even one that is NaN.
#pragma once

#include <tenon/kernel/pointwise.h>

#include <type_traits>

namespace tenon::pointwise {

/// Whether a row leaves gradients out where its slope is 0, as PyTorch's does, instead of multiplying them by it.
template <class Row>
inline constexpr bool kCloses = false;
#define TENON_CLOSES(Row) \
  template <>             \
  inline constexpr bool kCloses<Row> = true;
TENON_CLOSES(Sign)
TENON_CLOSES(Ceil)
TENON_CLOSES(Floor)
TENON_CLOSES(Round)
TENON_CLOSES(Trunc)
TENON_CLOSES(Relu)
TENON_CLOSES(Relu6)
TENON_CLOSES(Hardsigmoid)
TENON_CLOSES(Hardswish)
TENON_CLOSES(Hardtanh)
TENON_CLOSES(Hardshrink)
TENON_CLOSES(Softshrink)
TENON_CLOSES(Threshold)
TENON_CLOSES(ClampMin)
TENON_CLOSES(ClampMax)
TENON_CLOSES(Clamp)
#undef TENON_CLOSES

inline namespace TENON_POINTWISE_LEVEL {

/// dy * slope, or 0 where the row is closed.
template <class Row, class T>
TENON_HOST_DEVICE inline T slope_times(T dy, T saved, const T* p) {
  const T slope = Row::template slope<T>(saved, saved, p);
  if constexpr (std::is_same_v<Row, Hardswish>) {
    return select(saved <= T(-3), T(0), dy * slope);  // its slope is 0 at -1.5, too
  } else if constexpr (kCloses<Row>) {
    return select(slope == T(0), T(0), dy * slope);
  } else {
    return dy * slope;
  }
}

}  // namespace TENON_POINTWISE_LEVEL

}  // namespace tenon::pointwise
