// float16 and bfloat16 as the instructions of PTX see them.
#pragma once

#include <cstdint>

namespace tenon::emulated_cuda::ptx {

struct Half {
  std::uint16_t bits = 0;
  float value() const;
  /// To nearest, ties to even; nan is 0x7fff.
  static Half nearest(double value);
};

struct Brain {
  std::uint16_t bits = 0;
  float value() const;
  static Brain nearest(double value);
};

}  // namespace tenon::emulated_cuda::ptx
