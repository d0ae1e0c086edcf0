// Layers on integers of 8 bits: shape rules, and the same of other operators where a device has no kernel.
#include <tenon/ops/quantized/products.h>

#include <tenon/autograd/autocast.h>
#include <tenon/autograd/autocast_cast.h>
#include <tenon/kernel/attributes/quantization.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/linalg/linear.h>
#include <tenon/ops/nn/convolution.h>
#include <tenon/ops/pointwise/numeric.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/reduction.h>
#include <tenon/ops/shape/concat.h>
#include <tenon/ops/shape/view.h>
#include <tenon/ops/support/layout.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

#include <limits>

namespace tenon::quantized {

using namespace ops;

namespace {

void check_operands(const char* op, const QuantizedTensor& x, const QuantizedWeight& w, const Tensor& bias, int rank) {
  check_same_device(op, {&x.values, &w.values, &w.scales, &bias});
  const Dtype dtype = x.values.scalar_type();
  if (dtype != kUInt8 && dtype != kInt8)
    throw Error(fmt::format("{}: the input is uint8 or int8, not {}", op, name_of(dtype)));
  if (w.values.scalar_type() != kInt8 || w.scales.scalar_type() != kFloat32)
    throw Error(fmt::format("{}: weights are int8 with scales of float32, not {} with {}", op,
                            name_of(w.values.scalar_type()), name_of(w.scales.scalar_type())));
  if (w.values.dim() != rank)
    throw Error(fmt::format("{}: the weight has {} dimensions, not {}", op, w.values.dim(), rank));
  const std::int64_t channels = w.values.size(0);
  if (w.scales.dim() != 1 || w.scales.size(0) != channels)
    throw Error(fmt::format("{}: scales of size {} for {} output channels", op, to_string(w.scales.sizes()), channels));
  if (!bias.defined()) return;
  if (bias.dim() != 1 || bias.size(0) != channels || bias.scalar_type() != kFloat32)
    throw Error(fmt::format("{}: the bias is float32 ({}), not {} {}", op, channels, name_of(bias.scalar_type()),
                            to_string(bias.sizes())));
}

void check_result(const char* op, const Requantized& result) {
  const Dtype dtype = result.dtype;
  if (dtype != kUInt8 && dtype != kInt8)
    throw Error(fmt::format("{}: the result is uint8 or int8, not {}", op, name_of(dtype)));
  if (!(result.scale > 0)) throw Error(fmt::format("{}: the result's scale is {}, not above 0", op, result.scale));
  if (result.zero_point < lowest_of(dtype) || result.zero_point > highest_of(dtype))
    throw Error(fmt::format("{}: the zero point {} is no {}", op, result.zero_point, name_of(dtype)));
}

/// The convolution out of operators on floats, of 32 bits under autocast as well: products of bytes are exact there,
/// and so are sums of 2^8 of them.
Tensor composed(const QuantizedTensor& x, const QuantizedWeight& w, const Tensor& bias, const ConvAttributes& a,
                bool relu) {
  const autocast::WithoutAutocast in_float32;
  const auto pair = [](const std::int64_t* values) { return IntArrayRef(values, 2); };
  const Tensor sums = tenon::conv2d(x.values.to(kFloat32).sub(static_cast<double>(x.zero_point)), w.values.to(kFloat32),
                                    {}, pair(a.stride), pair(a.padding), pair(a.dilation), a.groups);
  Tensor y = sums.mul(w.scales.mul(x.scale).view({-1, 1, 1}));
  if (bias.defined()) y = y.add(bias.view({-1, 1, 1}));
  return relu ? y.relu() : y;
}

constexpr std::int64_t kFewChannels = 16;    // of planes
constexpr std::int64_t kWidestPlane = 4000;  // columns, with their padding

/// All contiguous.
void convolve_planes(const QuantizedTensor& x, const QuantizedWeight& w, const Tensor& bias,
                     const ConvAttributes& window, bool relu, const Tensor& y) {
  const QuantizedConvAttributes attributes{
      .window = window, .x_scale = x.scale, .x_zero_point = x.zero_point, .relu = relu};
  run(TENON_OP("quantized_conv_planar"), ops::state_of(x.values), {view_of(y)},
      {view_of(x.values), view_of(dense(w.values)), view_of(dense(w.scales)), view_of(dense(bias))}, &attributes);
}

/// x and y (N, C, H, W) in channels-last order; `result` null: y is float32.
void convolve(const QuantizedTensor& x, const QuantizedWeight& w, const Tensor& bias, const ConvAttributes& window,
              bool relu, const Requantized* result, const Tensor& y) {
  if (find_kernel(x.values.device().type(), TENON_OP("quantized_conv")) == nullptr) {
    const Tensor real = composed(x, w, bias, window, relu);
    y.copy_(result ? quantize_per_tensor(real, result->scale, result->zero_point, result->dtype) : real);
    return;
  }
  const QuantizedConvAttributes attributes{.window = window,
                                           .x_scale = x.scale,
                                           .x_zero_point = x.zero_point,
                                           .y_scale = result ? result->scale : 1,
                                           .y_zero_point = result ? result->zero_point : 0,
                                           .relu = relu};
  run(TENON_OP("quantized_conv"), ops::state_of(x.values), {view_of(y)},
      {view_of(x.values), view_of(dense(w.values)), view_of(dense(w.scales)), view_of(dense(bias))}, &attributes);
}

Tensor linear_into(const QuantizedTensor& x, const QuantizedWeight& weight, const Tensor& bias, bool relu,
                   const Requantized* result) {
  NoGradGuard no_grad;
  const char* op = "quantized::linear";
  check_operands(op, x, weight, bias, 2);
  if (result) check_result(op, *result);
  const std::int64_t in = weight.values.size(1), out = weight.values.size(0);
  if (x.values.dim() == 0 || x.values.size(-1) != in)
    throw Error(fmt::format("{}: an input of size {} and a weight of size {}", op, to_string(x.values.sizes()),
                            to_string(weight.values.sizes())));
  Dims sizes = x.values.impl().sizes();
  sizes[sizes.rank() - 1] = out;
  Tensor y = allocate_like(x.values, sizes, result ? result->dtype : kFloat32);
  const std::int64_t rows = in == 0 ? 0 : x.values.numel() / in;
  if (y.numel() == 0) return y;
  // The rows are one picture's width, its channels last.
  const auto picture = [&](const Tensor& tensor, std::int64_t channels) {
    const Dims as{1, channels, 1, rows}, strides{rows * channels, 1, rows * channels, channels};
    return alias_of(tensor, as, strides, tensor.impl().offset());
  };
  convolve({picture(dense(x.values), in), x.scale, x.zero_point},
           {weight.values.contiguous().view({out, in, 1, 1}), weight.scales}, bias, {}, relu, result, picture(y, out));
  return y;
}

Tensor conv_into(const QuantizedTensor& x, const QuantizedWeight& weight, const Tensor& bias, const Window& window,
                 bool relu, const Requantized* result) {
  NoGradGuard no_grad;
  const char* op = "quantized::conv2d";
  check_operands(op, x, weight, bias, 4);
  if (result) check_result(op, *result);
  const Tensor& w = weight.values;
  if (x.values.dim() != 4 || window.groups < 1 || x.values.size(1) != w.size(1) * window.groups ||
      w.size(0) % window.groups != 0)
    throw Error(fmt::format("{}: an input of size {} and a weight of size {} in {} groups", op,
                            to_string(x.values.sizes()), to_string(w.sizes()), window.groups));
  ConvAttributes a{.groups = window.groups};
  Dims sizes{x.values.size(0), w.size(0)};
  for (int d = 0; d < 2; ++d) {
    a.stride[d] = window.stride[d];
    a.padding[d] = window.padding[d];
    a.dilation[d] = window.dilation[d];
    if (a.stride[d] < 1 || a.padding[d] < 0 || a.dilation[d] < 1)
      throw Error(fmt::format("{}: stride {}, padding {}, dilation {}", op, a.stride[d], a.padding[d], a.dilation[d]));
    const std::int64_t reach = a.dilation[d] * (w.size(d + 2) - 1) + 1, whole = x.values.size(d + 2) + 2 * a.padding[d];
    if (reach > whole) throw Error(fmt::format("{}: a window of {} in a padded input of {}", op, reach, whole));
    sizes.push_back((whole - reach) / a.stride[d] + 1);
  }
  if (!result && x.values.scalar_type() == kUInt8 && x.values.is_contiguous() && x.values.numel() > 0 &&
      is_planar(x.values.device(), w, window, x.values.size(3))) {
    Tensor y = allocate_in(MemoryFormat::Contiguous, x.values, sizes, kFloat32);
    convolve_planes(x, weight, bias, a, relu, y);
    return y;
  }
  Tensor y = allocate_in(MemoryFormat::ChannelsLast, x.values, sizes, result ? result->dtype : kFloat32);
  convolve({x.values.contiguous(MemoryFormat::ChannelsLast), x.scale, x.zero_point}, weight, bias, a, relu, result, y);
  return y;
}

}  // namespace

bool is_planar(Device device, const Tensor& weight, const Window& window, std::int64_t width) {
  return weight.size(1) <= kFewChannels && window.groups == 1 && window.stride[1] == 1 && window.dilation[0] == 1 &&
         window.dilation[1] == 1 && width + 2 * window.padding[1] <= kWidestPlane &&
         find_kernel(device.type(), TENON_OP("quantized_conv_planar")) != nullptr;
}

Tensor linear(const QuantizedTensor& x, const QuantizedWeight& weight, const Tensor& bias, bool relu) {
  TENON_SCOPE(linear, x, weight, bias, relu)
  return linear_into(x, weight, bias, relu, nullptr);
}
QuantizedTensor linear(const QuantizedTensor& x, const QuantizedWeight& weight, const Tensor& bias, bool relu,
                       const Requantized& result) {
  return {linear_into(x, weight, bias, relu, &result), result.scale, result.zero_point};
}
Tensor conv2d(const QuantizedTensor& x, const QuantizedWeight& weight, const Tensor& bias, const Window& window,
              bool relu) {
  TENON_SCOPE(conv2d, x, weight, bias, window, relu)
  return conv_into(x, weight, bias, window, relu, nullptr);
}
QuantizedTensor conv2d(const QuantizedTensor& x, const QuantizedWeight& weight, const Tensor& bias,
                       const Window& window, bool relu, const Requantized& result) {
  return {conv_into(x, weight, bias, window, relu, &result), result.scale, result.zero_point};
}

PackedWeight pack_weight(const Tensor& weight, int bits, std::int64_t group) {
  NoGradGuard no_grad;
  const char* op = "quantized::pack_weight";
  check_floating(op, weight);
  if (weight.dim() != 2)
    throw Error(fmt::format("{}: a weight of size {} is no matrix", op, to_string(weight.sizes())));
  if (bits != 8 && bits != 4) throw Error(fmt::format("{}: weights have 8 or 4 bits, not {}", op, bits));
  const std::int64_t out = weight.size(0), in = weight.size(1);
  const std::int64_t each = group == 0 ? in : group;
  if (each < 1 || in % each != 0) throw Error(fmt::format("{}: groups of {} in rows of {}", op, each, in));
  const bool is_odd = bits == 4 && in % 2 != 0;
  if (bits == 4 && each % 2 != 0 && each != in)
    throw Error(fmt::format("{}: groups of {} weights fill no bytes", op, each));
  const double most = bits == 8 ? 127 : 7, steps = bits == 8 ? 127.5 : 7.5;
  const Tensor rows = weight.detach().to(kFloat32).contiguous().view({out, in / each, each});
  const Tensor scales =
      rows.abs().amax(2).div(steps).clamp_min(static_cast<double>(std::numeric_limits<float>::epsilon()));
  const Tensor whole = rows.div(scales.unsqueeze(2)).round().clamp(-most - 1, most).view({out, in});
  if (bits == 8) return {whole.to(kInt8), scales, bits, in};
  const Tensor even = is_odd ? cat({whole, zeros({out, 1}, whole.options())}, 1) : whole;
  const Tensor pairs = even.add(8.0).view({out, (in + 1) / 2, 2});
  return {pairs.select(2, 0).add(pairs.select(2, 1).mul(16.0)).to(kUInt8), scales, bits, in};
}

Tensor unpack_weight(const PackedWeight& weight) {
  TENON_SCOPE(unpack_weight, weight)
  NoGradGuard no_grad;
  const std::int64_t out = weight.values.size(0), groups = weight.scales.size(1);
  Tensor whole = weight.values.to(kFloat32);
  if (weight.bits == 4) {
    const Tensor high = whole.div(16.0).floor();
    whole = stack({whole.sub(high.mul(16.0)), high}, 2).sub(8.0).view({out, -1});
    if (weight.columns > 0) whole = whole.narrow(1, 0, weight.columns);
  }
  return whole.reshape({out, groups, -1}).mul(weight.scales.unsqueeze(2)).view({out, -1});
}

namespace {

std::int64_t check_weight_only(const Tensor& x, const PackedWeight& weight, const Tensor& bias) {
  const char* op = "quantized::weight_only_linear";
  check_floating(op, x);
  check_same_device(op, {&x, &weight.values, &weight.scales, &bias});
  const std::int64_t out = weight.values.size(0), stored = weight.values.size(1) * (weight.bits == 4 ? 2 : 1);
  const std::int64_t in = weight.columns > 0 ? weight.columns : stored;
  if (x.dim() == 0 || x.size(-1) != in || (in != stored && (weight.bits != 4 || in + 1 != stored)))
    throw Error(
        fmt::format("{}: an input of size {} and a weight of size ({}, {})", op, to_string(x.sizes()), out, in));
  if (weight.scales.dim() != 2 || weight.scales.size(0) != out || weight.scales.size(1) == 0 ||
      in % weight.scales.size(1) != 0)
    throw Error(fmt::format("{}: scales of size {} for a weight of size ({}, {})", op, to_string(weight.scales.sizes()),
                            out, in));
  if (bias.defined() && (bias.dim() != 1 || bias.size(0) != out || !bias.is_floating_point()))
    throw Error(fmt::format("{}: the bias is floating point ({}), not {} {}", op, out, name_of(bias.scalar_type()),
                            to_string(bias.sizes())));
  return in;
}

/// The weight as floats while a product lasts.
Tensor unpacked_for_now(const PackedWeight& weight) {
  const PurposeGuard purpose(Purpose::kWorkspace);
  return unpack_weight(weight);
}

/// Of x in float32, under autocast as well: on a device without the kernel out of a product of floats.
Tensor weight_only_product(const Tensor& x, const PackedWeight& weight, const Tensor& bias, std::int64_t in) {
  NoGradGuard no_grad;
  const autocast::WithoutAutocast in_float32;
  if (find_kernel(x.device().type(), TENON_OP("weight_only_linear")) == nullptr)
    return tenon::linear(x, unpacked_for_now(weight), bias.defined() ? std::optional(bias) : std::nullopt);
  const std::int64_t out = weight.values.size(0);
  Dims sizes = x.impl().sizes();
  sizes[sizes.rank() - 1] = out;
  Tensor y = allocate_like(x, sizes, kFloat32);
  if (y.numel() == 0) return y;
  const std::int64_t rows = y.numel() / out;
  const auto matrix = [&](const Tensor& tensor, std::int64_t columns) {
    return alias_of(tensor, Dims{rows, columns}, Dims{columns, 1}, tensor.impl().offset());
  };
  const Tensor result = matrix(y, out), as_rows = matrix(dense(x), in);
  const WeightOnlyAttributes attributes{.bits = weight.bits, .group = in / weight.scales.size(1)};
  run(TENON_OP("weight_only_linear"), ops::state_of(x), {view_of(result)},
      {view_of(as_rows), view_of(dense(weight.values)), view_of(dense(weight.scales)), view_of(dense(bias))},
      &attributes);
  return y;
}

}  // namespace

Tensor weight_only_linear(const Tensor& input, const PackedWeight& weight, const Tensor& bias) {
  TENON_SCOPE(weight_only_linear, input, weight, bias)
  // As a linear layer under autocast.
  const DeviceType kind = input.device().type();
  const Tensor x = autocast::is_autocast_enabled(kind)
                       ? autocast::cached_cast(autocast::get_autocast_dtype(kind), input, kind)
                       : input;
  const std::int64_t in = check_weight_only(x, weight, bias);
  const Dtype dtype = x.scalar_type();
  const Dtype bias_dtype = bias.defined() ? bias.scalar_type() : kFloat32;
  const auto backward = [bits = weight.bits, in, dtype, bias_dtype](Backward& b) {
    const Tensor dy = b.grad().to(kFloat32);
    if (b.needs(0)) b.set(0, tenon::matmul(dy, unpacked_for_now({b.saved(0), b.saved(1), bits, in})).to(dtype));
    if (b.needs(1)) b.set(1, dy.reshape({-1, dy.size(-1)}).sum(0).to(bias_dtype));
  };
  Recording recording = record<2>("WeightOnlyLinearBackward0", {&x, &bias}, backward);
  if (recording) {
    recording.save(0, weight.values);
    recording.save(1, weight.scales);
  }
  Tensor y =
      weight_only_product(x.detach().to(kFloat32), weight, bias.defined() ? bias.detach().to(kFloat32) : bias, in);
  if (dtype != kFloat32) y = y.to(dtype);
  recording.output(y);
  return y;
}

}  // namespace tenon::quantized
