// Products of integers of 8 bits by AVX512-VNNI, where oneDNN's loops have little to work on: rows that are too few for
// a rearrangement of the weights to pay, and windows over few channels.
#pragma once

#include <cstdint>

namespace tenon::cpu {

/// y (rows, out) = x_scale * w_scales * sum of (x - x_zero_point) * w + bias, max with 0 where asked.
struct QuantizedRows {
  const unsigned char* x;        ///< (rows, in) contiguous
  const signed char* w;          ///< (out, in) contiguous
  const float *w_scales, *bias;  ///< (out); bias null for none
  float* y;
  std::int64_t rows, in, out;
  float x_scale;
  std::int32_t x_zero_point;
  bool relu;
};

}  // namespace tenon::cpu
