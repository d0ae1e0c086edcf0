// Attributes of the kernels that work on integers of 8 bits. An integer q stands for scale * (q - zero_point).
#pragma once

#include <tenon/kernel/attributes/linear.h>

#include <cstdint>

namespace tenon {

/// quantize, dequantize.
struct QuantizeAttributes {
  std::int32_t axis = -1;       ///< the dimension with a scale and a zero point for each index; -1: the ones below
  double scale = 1;             ///< above 0
  std::int64_t zero_point = 0;  ///< the integer that stands for 0
};

/// quantized_conv, quantized_conv_planar.
struct QuantizedConvAttributes {
  ConvAttributes window;  ///< of two spatial dimensions
  double x_scale = 1;
  std::int64_t x_zero_point = 0;
  double y_scale = 1;  ///< of a y of integers
  std::int64_t y_zero_point = 0;
  bool relu = false;  ///< max(y, 0) before y is rounded
};

/// weight_only_linear.
struct WeightOnlyAttributes {
  std::int32_t bits = 8;   ///< of a weight: 8, or 4, two in a byte, the earlier one in the low bits
  std::int64_t group = 0;  ///< how many weights of a row share a scale; 0: the whole row
};

/// pack_blocks, unpack_blocks: values as bytes of the dynamic map, times the largest of their block
/// (kernel/dynamic_map.h).
struct BlocksAttributes {
  bool is_signed = true;  ///< false: the map without a sign
};

}  // namespace tenon
