// Floats to integers of 8 bits and back: the kernels' shape rules, and the same of other operators where a device has
// no kernel.
#include <tenon/ops/quantized/quantize.h>

#include <tenon/kernel/attributes/quantization.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/pointwise/numeric.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/reduction.h>
#include <tenon/ops/shape/view.h>
#include <tenon/ops/support/layout.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace tenon::quantized {

using namespace ops;

namespace {

bool is_byte(Dtype dtype) { return dtype == kUInt8 || dtype == kInt8; }

void check_byte(const char* op, Dtype dtype) {
  if (!is_byte(dtype)) throw Error(fmt::format("{}: values are uint8 or int8, not {}", op, name_of(dtype)));
}

void check_one(const char* op, double scale, std::int64_t zero_point, Dtype dtype) {
  if (!(scale > 0) || std::isinf(scale)) throw Error(fmt::format("{}: the scale is {}, not above 0", op, scale));
  if (zero_point < lowest_of(dtype) || zero_point > highest_of(dtype))
    throw Error(fmt::format("{}: the zero point {} is no {}", op, zero_point, name_of(dtype)));
}

/// The dimension that has a scale for each index.
std::int32_t check_channels(const char* op, const Tensor& self, const Tensor& scales, const Tensor& zero_points,
                            std::int64_t axis) {
  const int at = wrap_dim(axis, static_cast<int>(self.dim()));
  check_same_device(op, {&self, &scales, &zero_points});
  const std::int64_t size = self.size(at);
  if (scales.dim() != 1 || zero_points.dim() != 1 || scales.size(0) != size || zero_points.size(0) != size)
    throw Error(fmt::format("{}: scales of size {} and zero points of size {} for dimension {} of size {}", op,
                            to_string(scales.sizes()), to_string(zero_points.sizes()), at, size));
  if (scales.scalar_type() != kFloat32 || zero_points.scalar_type() != kInt32)
    throw Error(fmt::format("{}: scales are float32 and zero points int32, not {} and {}", op,
                            name_of(scales.scalar_type()), name_of(zero_points.scalar_type())));
  return at;
}

/// Scales or zero points as they stand beside dim `at` of `self`, in float32.
Tensor beside(const Tensor& self, const Tensor& channels, int at) {
  Dims sizes = Dims::filled(static_cast<int>(self.dim()), 1);
  sizes[at] = channels.size(0);
  return channels.to(kFloat32).view(sizes);
}

Tensor held(const Tensor& steps, const Tensor& zero, Dtype dtype) {
  return steps.round().add(zero).clamp(lowest_of(dtype), highest_of(dtype)).to(dtype);
}

Tensor check_floats(const char* op, const Tensor& self, Dtype dtype) {
  check_byte(op, dtype);
  check_floating(op, self);
  return self.detach().to(kFloat32);
}

}  // namespace

std::int64_t lowest_of(Dtype dtype) {
  check_byte("lowest_of", dtype);
  return dtype == kUInt8 ? 0 : -128;
}
std::int64_t highest_of(Dtype dtype) {
  check_byte("highest_of", dtype);
  return dtype == kUInt8 ? 255 : 127;
}

Tensor quantize_per_tensor(const Tensor& self, double scale, std::int64_t zero_point, Dtype dtype,
                           MemoryFormat format) {
  TENON_SCOPE(quantize_per_tensor, self, scale, zero_point, dtype, format)
  NoGradGuard no_grad;
  Tensor x = check_floats("quantize_per_tensor", self, dtype);
  check_one("quantize_per_tensor", scale, zero_point, dtype);
  const bool turns = format == MemoryFormat::ChannelsLast && x.dim() == 4 && x.is_contiguous();
  if (format == MemoryFormat::ChannelsLast && !turns) x = x.contiguous(format);
  if (find_kernel(x.device().type(), TENON_OP("quantize")) == nullptr) {
    const auto zero = scalar_tensor_like(static_cast<double>(zero_point), x);
    const float inverse = 1.0F / static_cast<float>(scale);
    const Tensor steps = held(x.mul(static_cast<double>(inverse)), zero, dtype);
    return format == MemoryFormat::Preserve ? steps : steps.contiguous(format);
  }
  if (!x.impl().is_non_overlapping_and_dense()) x = x.contiguous();
  Tensor y = turns ? allocate_in(format, x, x.impl().sizes(), dtype) : allocate_preserving(x, dtype);
  const QuantizeAttributes attributes{.scale = scale, .zero_point = zero_point};
  run(TENON_OP("quantize"), ops::state_of(x), {view_of(y)}, {view_of(x), undefined_view(), undefined_view()},
      &attributes);
  return y;
}

Tensor quantize_per_channel(const Tensor& self, const Tensor& scales, const Tensor& zero_points, std::int64_t axis,
                            Dtype dtype) {
  TENON_SCOPE(quantize_per_channel, self, scales, zero_points, axis, dtype)
  NoGradGuard no_grad;
  const Tensor x = check_floats("quantize_per_channel", self, dtype).contiguous();
  const std::int32_t at = check_channels("quantize_per_channel", x, scales, zero_points, axis);
  if (find_kernel(x.device().type(), TENON_OP("quantize")) == nullptr)
    return held(x.mul(beside(x, scales, at).reciprocal()), beside(x, zero_points, at), dtype);
  Tensor y = allocate_like(x, x.impl().sizes(), dtype);
  const QuantizeAttributes attributes{.axis = at};
  run(TENON_OP("quantize"), ops::state_of(x), {view_of(y)},
      {view_of(x), view_of(dense(scales)), view_of(dense(zero_points))}, &attributes);
  return y;
}

Tensor dequantize_per_tensor(const Tensor& values, double scale, std::int64_t zero_point) {
  TENON_SCOPE(dequantize_per_tensor, values, scale, zero_point)
  NoGradGuard no_grad;
  check_byte("dequantize_per_tensor", values.scalar_type());
  check_one("dequantize_per_tensor", scale, zero_point, values.scalar_type());
  if (find_kernel(values.device().type(), TENON_OP("dequantize")) == nullptr)
    return values.to(kFloat32).sub(static_cast<double>(zero_point)).mul(scale);
  const Tensor x = values.impl().is_non_overlapping_and_dense() ? values : values.contiguous();
  Tensor y = allocate_preserving(x, kFloat32);
  const QuantizeAttributes attributes{.scale = scale, .zero_point = zero_point};
  run(TENON_OP("dequantize"), ops::state_of(x), {view_of(y)}, {view_of(x), undefined_view(), undefined_view()},
      &attributes);
  return y;
}

Tensor dequantize_per_channel(const Tensor& values, const Tensor& scales, const Tensor& zero_points,
                              std::int64_t axis) {
  TENON_SCOPE(dequantize_per_channel, values, scales, zero_points, axis)
  NoGradGuard no_grad;
  check_byte("dequantize_per_channel", values.scalar_type());
  const Tensor x = values.contiguous();
  const std::int32_t at = check_channels("dequantize_per_channel", x, scales, zero_points, axis);
  if (find_kernel(x.device().type(), TENON_OP("dequantize")) == nullptr)
    return x.to(kFloat32).sub(beside(x, zero_points, at)).mul(beside(x, scales, at));
  Tensor y = allocate_like(x, x.impl().sizes(), kFloat32);
  const QuantizeAttributes attributes{.axis = at};
  run(TENON_OP("dequantize"), ops::state_of(x), {view_of(y)},
      {view_of(x), view_of(dense(scales)), view_of(dense(zero_points))}, &attributes);
  return y;
}

Tensor dequantize(const QuantizedTensor& tensor) {
  TENON_SCOPE(dequantize, tensor)
  return dequantize_per_tensor(tensor.values, tensor.scale, tensor.zero_point);
}

Tensor dequantize(const QuantizedWeight& weight) {
  TENON_SCOPE(dequantize, weight)
  return dequantize_per_channel(weight.values, weight.scales, zeros_like(weight.scales, kInt32), 0);
}

QuantizedWeight quantize_weight(const Tensor& weight) {
  NoGradGuard no_grad;
  check_floating("quantize_weight", weight);
  if (weight.dim() == 0) throw Error("quantize_weight: a weight without dimensions has no output channels");
  constexpr double kSteps = 127.5;  // half of the 255 between the ends
  constexpr double kLeast = std::numeric_limits<float>::epsilon();
  const Tensor rows = weight.detach().to(kFloat32).flatten(1);
  const Tensor scales = rows.abs().amax(1).div(kSteps).clamp_min(kLeast);
  return {quantize_per_channel(weight, scales, zeros_like(scales, kInt32), 0, kInt8), scales};
}

}  // namespace tenon::quantized
