// A number handed to a kernel: both readings of it, so that the kernel takes the one of its element type.
#pragma once

#include <cstdint>

namespace tenon {

struct ScalarValue {
  double real = 0;           ///< for floating element types
  std::int64_t integer = 0;  ///< for bool and integral element types
  template <class T>
  constexpr T as() const {
    if constexpr (static_cast<T>(0.5f) == static_cast<T>(0.0f)) {
      return static_cast<T>(integer);
    } else {
      return static_cast<T>(real);
    }
  }
};

}  // namespace tenon
