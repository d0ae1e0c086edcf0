// Layers on integers of 8 bits: sums of products in 32 bits, then scaled; and layers whose weights alone are integers.
#pragma once

#include <tenon/ops/quantized/quantize.h>
#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <optional>

namespace tenon::quantized {

/// Values of a result: at this scale, as uint8 or int8.
struct Requantized {
  double scale = 1;
  std::int64_t zero_point = 0;
  Dtype dtype = kUInt8;
};

/// y = x w^T + bias, relu(y) where asked: x (*, in), weight (out, in), bias float32 (out) or undefined -> float32 (*,
/// out). What torch.ops.quantized.linear gives before it rounds. Throws Error where sizes, dtypes or devices do not
/// fit.
TENON_API Tensor linear(const QuantizedTensor& x, const QuantizedWeight& weight, const Tensor& bias = {},
                        bool relu = false);
/// linear(), rounded to integers in the same pass. Throws Error as linear(), and for a scale that is not above 0.
TENON_API QuantizedTensor linear(const QuantizedTensor& x, const QuantizedWeight& weight, const Tensor& bias, bool relu,
                                 const Requantized& result);

/// How a window moves.
struct Window {
  Dims stride{1, 1}, padding{0, 0}, dilation{1, 1};
  std::int64_t groups = 1;
};
/// Whether conv2d() of a contiguous picture of uint8 gives a contiguous one, rather than channels-last: the device has
/// a kernel for planes of few channels (C / groups of `weight`, up to 16), and the window is one that it takes.
TENON_API bool is_planar(Device device, const Tensor& weight, const Window& window, std::int64_t width);
/// conv2d() and relu() where asked: x (N, C, H, W), weight (O, C / groups, kH, kW), bias float32 (O) or undefined ->
/// float32 (N, O, H, W) in channels-last order, or contiguous (is_planar()). Padding stands for 0, whatever the zero
/// point. Throws Error where sizes, dtypes or devices do not fit, and for a window that is larger than the padded
/// input.
TENON_API Tensor conv2d(const QuantizedTensor& x, const QuantizedWeight& weight, const Tensor& bias = {},
                        const Window& window = {}, bool relu = false);
/// conv2d(), rounded to integers in the same pass. Throws Error as conv2d(), and for a scale that is not above 0.
TENON_API QuantizedTensor conv2d(const QuantizedTensor& x, const QuantizedWeight& weight, const Tensor& bias,
                                 const Window& window, bool relu, const Requantized& result);

/// Weights of a linear layer that are multiplied as floats. Of 4 bits: two in a byte, the earlier one in the low bits,
/// each w / scale + 8; where a row has an odd number, the last byte has one.
struct PackedWeight {
  Tensor values;  ///< int8 (out, in), or uint8 (out, (in + 1) / 2)
  Tensor scales;  ///< float32 (out, in / group)
  int bits = 8;
  std::int64_t columns = 0;  ///< `in`; 0: as many as the bytes hold
};
/// A weight (out, in) as int8 with a scale for each row, or with one for each `group` of a row. Throws Error for bits
/// other than 8 and 4, a group that does not divide the row (0: the whole row), and with 4 bits an odd part of a row.
TENON_API PackedWeight pack_weight(const Tensor& weight, int bits, std::int64_t group = 0);
/// The weight as float32 (out, in).
TENON_API Tensor unpack_weight(const PackedWeight& weight);
/// y = x w^T + bias, computed in float32: x (*, in), bias float32 (out) or undefined -> (*, out), of x's dtype where
/// that has 16 bits. Gradients reach x and the bias: a backward pass makes floats of the weight again. Throws Error
/// where sizes, dtypes or devices do not fit.
TENON_API Tensor weight_only_linear(const Tensor& x, const PackedWeight& weight, const Tensor& bias = {});

}  // namespace tenon::quantized
