// Floats as integers of 8 bits, and back: an integer q stands for scale * (q - zero_point).
//
// Note [Plain integers]: quantized values are plain uint8 and int8 tensors, and what they stand for is held beside
// them, in QuantizedTensor and QuantizedWeight: as in torchao and PyTorch 2's export, where a quantized tensor of its
// own dtype (qint8) has been given up. A dtype more would be met by every operator, archive and backend; plain integers
// are moved, viewed, saved and counted by what is there.
#pragma once

#include <tenon/tensor/tensor.h>

#include <cstdint>

namespace tenon::quantized {

/// Values with one scale: activations.
struct QuantizedTensor {
  Tensor values;  ///< uint8 or int8
  double scale = 1;
  std::int64_t zero_point = 0;  ///< the integer that stands for 0
};

/// Weights of a layer, a scale for each output channel (dim 0), zero points all 0.
struct QuantizedWeight {
  Tensor values;  ///< int8
  Tensor scales;  ///< float32 (output channels)
};

/// The smallest and the largest value of an integer dtype of 8 bits. Throws Error for others.
TENON_API std::int64_t lowest_of(Dtype dtype);
/// The largest one. Throws Error as lowest_of().
TENON_API std::int64_t highest_of(Dtype dtype);

/// round(x / scale), halves to the even integer, + zero_point, held within uint8 or int8; nan becomes the lowest.
/// Nothing is recorded for backward. PyTorch's function of that name gives the same integers. Throws Error for other
/// dtypes, integers as input, a scale that is not above 0, and a zero point that the dtype does not hold.
TENON_API Tensor quantize_per_tensor(const Tensor& self, double scale, std::int64_t zero_point, Dtype dtype,
                                     MemoryFormat format = MemoryFormat::Preserve);
/// As quantize_per_tensor(), with a scale and a zero point for each index of dim `axis`: scales are float32, zero
/// points int32, both (size of that dim). Throws Error where these sizes or dtypes differ, and as
/// quantize_per_tensor() but for the values of scales and zero points, which are not read.
TENON_API Tensor quantize_per_channel(const Tensor& self, const Tensor& scales, const Tensor& zero_points,
                                      std::int64_t axis, Dtype dtype);
/// scale * (q - zero_point) in float32. Throws Error unless the values are uint8 or int8.
TENON_API Tensor dequantize_per_tensor(const Tensor& values, double scale, std::int64_t zero_point);
/// dequantize_per_tensor() of what quantize_per_channel() made. Throws Error as both of them.
TENON_API Tensor dequantize_per_channel(const Tensor& values, const Tensor& scales, const Tensor& zero_points,
                                        std::int64_t axis);

/// dequantize_per_tensor() of values with one scale.
TENON_API Tensor dequantize(const QuantizedTensor& tensor);
/// The weights in float32. Throws Error unless the values are int8 and the scales float32 (output channels).
TENON_API Tensor dequantize(const QuantizedWeight& weight);
/// As int8, each output channel's largest absolute value at 127: |w| / 127.5 a step, PyTorch's symmetric choice. A
/// channel of zeros has the step of float32's epsilon. Throws Error unless the weight is floating with a dim at least.
TENON_API QuantizedWeight quantize_weight(const Tensor& weight);

}  // namespace tenon::quantized
