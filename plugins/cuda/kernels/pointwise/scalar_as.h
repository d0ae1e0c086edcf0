// scalar_as<C>: a number from an operator's attributes in a compute type.
#pragma once

#include <tenon/kernel/attributes/scalar.h>

#include <type_traits>

namespace tenon::cuda {

template <class C>
C scalar_as(const ScalarValue& scalar) {
  if constexpr (std::is_floating_point_v<C>) {
    return static_cast<C>(scalar.real);
  } else {
    return static_cast<C>(scalar.integer);
  }
}

}  // namespace tenon::cuda
