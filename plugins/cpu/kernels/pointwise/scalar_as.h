// scalar_as<T>: a number from an operator's attributes in the type of a lane.
#pragma once

#include <tenon/kernel/attributes/pointwise.h>

#include <type_traits>

#include "kernels/pointwise/lanes.h"

namespace tenon::cpu::TENON_CPU_LEVEL {

template <class T>
T scalar_as(const ScalarValue& scalar) {
  if constexpr (std::is_same_v<T, i64>) {
    return scalar.integer;
  } else {
    return static_cast<T>(scalar.real);
  }
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
