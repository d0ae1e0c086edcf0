// Exact products of integers of 8 bits, widened to 16: what processors without VNNI have an instruction for.
#pragma once

#include <cstdint>

namespace tenon::cpu {

/// Elements of a row are a multiple of this: what is left holds zeros.
inline constexpr std::int64_t kProductDepth = 32;

/// sums (rows, outs) = x (rows, depth) * w (outs, depth), transposed. All contiguous.
struct IntegerProducts {
  const std::int16_t *x, *w;
  std::int32_t* sums;
  std::int64_t rows, outs, depth;
};

}  // namespace tenon::cpu
