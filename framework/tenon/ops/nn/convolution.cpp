// Convolutions. A convolution is linear in its input and in its weight, so three bilinear maps (the convolution, and
// its adjoints in either operand) are each other's gradients, to any order:
//
//   y = conv(x, w)      dx = input(dy, w)    dw = weight(dy, x)
//   x = input(y, w)     dy = conv(dx, w)     dw = weight(y, dx)
//   w = weight(y, x)    dy = conv(x, dw)     dx = input(y, dw)
#include <tenon/autograd/kept_results.h>
#include <tenon/kernel/attributes/linear.h>
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/nn/convolution.h>
#include <tenon/ops/nn/whole_convolution.h>
#include <tenon/ops/shape/padding.h>
#include <tenon/ops/support/layout.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace tenon {

using namespace ops;

namespace {

Tensor forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvAttributes& attributes);
Tensor input_adjoint(const Tensor& y, const Tensor& w, const Dims& x_sizes, const ConvAttributes& attributes);
Tensor weight_adjoint(const Tensor& y, const Tensor& x, const Dims& w_sizes, const ConvAttributes& attributes);

bool is_channels_last(const Tensor& tensor) {
  return tensor.dim() == 4 && tensor.suggest_memory_format() == MemoryFormat::ChannelsLast;
}

/// The layout that kernels accept: as it is where dense in one of the two orders.
Tensor laid_out(const Tensor& tensor, bool channels_last) {
  return tensor.contiguous(channels_last ? MemoryFormat::ChannelsLast : MemoryFormat::Contiguous);
}

Tensor result_like(const Tensor& like, const Dims& sizes, bool channels_last) {
  return allocate_in(channels_last ? MemoryFormat::ChannelsLast : MemoryFormat::Contiguous, like, sizes,
                     like.scalar_type());
}

/// The gradient of a bias: everything but the channels summed.
Tensor bias_gradient(const Tensor& dy) {
  Dims dims;
  for (int d = 0; d < dy.dim(); ++d) {
    if (d != 1) dims.push_back(d);
  }
  return dy.sum(IntArrayRef(dims));
}

Dims output_sizes(const Dims& x, const Dims& w, const ConvAttributes& attributes) {
  Dims sizes{x[0], w[0]};
  for (int d = 0; d < attributes.spatial; ++d) {
    const std::int64_t reach = attributes.dilation[d] * (w[d + 2] - 1) + 1;
    sizes.push_back((x[d + 2] + 2 * attributes.padding[d] - reach) / attributes.stride[d] + 1);
  }
  return sizes;
}

Tensor forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvAttributes& attributes) {
  const bool channels_last = is_channels_last(x) || is_channels_last(w);
  if (!x.is_floating_point()) return laid_out(whole_convolution(x, w, bias, attributes), channels_last);
  Recording recording = record<2>("ConvolutionBackward0", {&x, &w, &bias}, [attributes](Backward& b) {
    const Tensor x = b.saved(0);
    const Tensor w = b.saved(1);
    const Tensor& dy = b.grad();
    if (b.needs(0)) b.set(0, input_adjoint(dy, w, x.impl().sizes(), attributes));
    if (b.needs(1)) b.set(1, weight_adjoint(dy, x, w.impl().sizes(), attributes));
    if (b.needs(2)) b.set(2, bias_gradient(dy));
  });
  if (recording) {
    recording.save(0, x);
    recording.save(1, w);
  }
  Tensor y;
  autograd::computed_once("convolution", {&y}, [&] {
    const Tensor dense_x = laid_out(x, channels_last);
    const Tensor dense_w = laid_out(w, channels_last);
    const Tensor dense_bias = dense(bias);
    y = result_like(x, output_sizes(x.impl().sizes(), w.impl().sizes(), attributes), channels_last);
    run(TENON_OP("conv"), state_of(x), {view_of(y)}, {view_of(dense_x), view_of(dense_w), view_of(dense_bias)},
        &attributes);
  });
  recording.output(y);
  return y;
}

Tensor input_adjoint(const Tensor& y, const Tensor& w, const Dims& x_sizes, const ConvAttributes& attributes) {
  const bool channels_last = is_channels_last(y) || is_channels_last(w);
  if (!y.is_floating_point()) return laid_out(whole_convolution_input(y, w, x_sizes, attributes), channels_last);
  Recording recording = record<2>("ConvolutionInputBackward0", {&y, &w}, [attributes](Backward& b) {
    const Tensor y = b.saved(0);
    const Tensor w = b.saved(1);
    const Tensor& dx = b.grad();
    if (b.needs(0)) b.set(0, forward(dx, w, {}, attributes));
    if (b.needs(1)) b.set(1, weight_adjoint(y, dx, w.impl().sizes(), attributes));
  });
  if (recording) {
    recording.save(0, y);
    recording.save(1, w);
  }
  const Tensor dense_y = laid_out(y, channels_last);
  const Tensor dense_w = laid_out(w, channels_last);
  Tensor x = result_like(y, x_sizes, channels_last);
  run(TENON_OP("conv_backward_input"), state_of(y), {view_of(x)}, {view_of(dense_y), view_of(dense_w)}, &attributes);
  recording.output(x);
  return x;
}

Tensor weight_adjoint(const Tensor& y, const Tensor& x, const Dims& w_sizes, const ConvAttributes& attributes) {
  const bool channels_last = is_channels_last(x);
  Recording recording = record<2>("ConvolutionWeightBackward0", {&y, &x}, [attributes](Backward& b) {
    const Tensor y = b.saved(0);
    const Tensor x = b.saved(1);
    const Tensor& dw = b.grad();
    if (b.needs(0)) b.set(0, forward(x, dw, {}, attributes));
    if (b.needs(1)) b.set(1, input_adjoint(y, dw, x.impl().sizes(), attributes));
  });
  if (recording) {
    recording.save(0, y);
    recording.save(1, x);
  }
  const Tensor dense_y = laid_out(y, channels_last);
  const Tensor dense_x = laid_out(x, channels_last);
  Tensor w = result_like(x, w_sizes, channels_last);
  run(TENON_OP("conv_backward_weight"), state_of(x), {view_of(w)}, {view_of(dense_y), view_of(dense_x)}, &attributes);
  recording.output(w);
  return w;
}

// --- arguments ------------------------------------------------------------------------------------------------------

void spread(const char* op, const char* name, IntArrayRef given, int spatial, std::int64_t least,
            std::int64_t* values) {
  if (given.size() != 1 && given.size() != static_cast<std::size_t>(spatial)) {
    throw Error(
        fmt::format("{}: expected {} to be a single integer value or a list of {} values to match the convolution "
                    "dimensions, but got {}={}",
                    op, name, spatial, name, to_string(given)));
  }
  for (int d = 0; d < spatial; ++d) {
    values[d] = given[given.size() == 1 ? 0 : static_cast<std::size_t>(d)];
    if (values[d] < least) {
      throw Error(fmt::format("{}: {} {} is not supported, got {}={}", op, least == 0 ? "negative" : "non-positive",
                              name, name, to_string(given)));
    }
  }
}

ConvAttributes attributes_of(const char* op, int spatial, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                             std::int64_t groups) {
  ConvAttributes attributes;
  attributes.spatial = spatial;
  attributes.groups = groups;
  if (groups <= 0) throw Error(fmt::format("{}: non-positive groups is not supported, got groups={}", op, groups));
  spread(op, "stride", stride, spatial, 1, attributes.stride);
  spread(op, "padding", padding, spatial, 0, attributes.padding);
  spread(op, "dilation", dilation, spatial, 1, attributes.dilation);
  return attributes;
}

void check_ranks(const char* op, const Tensor& input, const Tensor& weight, int spatial) {
  if (input.dim() != spatial + 1 && input.dim() != spatial + 2) {
    throw Error(fmt::format("Expected {}D (unbatched) or {}D (batched) input to {}, but got input of size: {}",
                            spatial + 1, spatial + 2, op, to_string(input.sizes())));
  }
  if (weight.dim() != spatial + 2) {
    throw Error(fmt::format("{}: expected a weight of {} dimensions, but got weight of size: {}", op, spatial + 2,
                            to_string(weight.sizes())));
  }
}

void check_bias(const char* op, const Tensor& bias, std::int64_t channels, const Tensor& weight) {
  if (bias.defined() && (bias.dim() != 1 || bias.size(0) != channels)) {
    throw Error(fmt::format(
        "Given weight of size {}, expected bias to be 1-dimensional with {} elements, but got bias of size {} "
        "instead (in {})",
        to_string(weight.sizes()), channels, to_string(bias.sizes()), op));
  }
}

Tensor convolve(const char* op, int spatial, const Tensor& input, const Tensor& weight, const Tensor& bias,
                IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, std::int64_t groups) {
  check_ranks(op, input, weight, spatial);
  check_same_device(op, {&input, &weight, &bias});
  check_same_dtype(op, {&input, &weight, &bias});
  const ConvAttributes attributes = attributes_of(op, spatial, stride, padding, dilation, groups);
  const bool batched = input.dim() == spatial + 2;
  const Tensor x = batched ? input : input.unsqueeze(0);
  const std::int64_t channels = x.size(1);
  if (weight.size(0) % groups != 0 || weight.size(0) < groups) {
    throw Error(
        fmt::format("Given groups={}, expected weight to be at least {} at dimension 0 and divisible by it, but got "
                    "weight of size {} instead",
                    groups, groups, to_string(weight.sizes())));
  }
  if (channels != weight.size(1) * groups) {
    throw Error(
        fmt::format("Given groups={}, weight of size {}, expected input{} to have {} channels, but got {} channels "
                    "instead",
                    groups, to_string(weight.sizes()), to_string(input.sizes()), weight.size(1) * groups, channels));
  }
  check_bias(op, bias, weight.size(0), weight);
  for (int d = 0; d < spatial; ++d) {
    if (weight.size(d + 2) <= 0) {
      throw Error(fmt::format("{}: kernel size should be greater than zero, but got weight of size {}", op,
                              to_string(weight.sizes())));
    }
    if (x.size(d + 2) == 0) {
      throw Error(fmt::format("Only zero batch or zero channel inputs are supported, but got input shape: {} ({})",
                              to_string(input.sizes()), op));
    }
    const std::int64_t padded = x.size(d + 2) + 2 * attributes.padding[d];
    const std::int64_t reach = attributes.dilation[d] * (weight.size(d + 2) - 1) + 1;
    if (padded < reach) {
      std::string room, wanted;
      for (int e = 0; e < spatial; ++e) {
        const char* times = e == 0 ? "" : " x ";
        room += times + std::to_string(x.size(e + 2) + 2 * attributes.padding[e]);
        wanted += times + std::to_string(attributes.dilation[e] * (weight.size(e + 2) - 1) + 1);
      }
      throw Error(
          fmt::format("Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't be greater "
                      "than actual input size (in {}, input of size {})",
                      room, wanted, op, to_string(input.sizes())));
    }
  }
  Tensor y = forward(x, weight, bias, attributes);
  return batched ? y : y.squeeze(0);
}

/// "same": what has to be added is put half to each side; the odd one goes to the right, as in PyTorch.
Tensor convolve_padded(const char* op, int spatial, const Tensor& input, const Tensor& weight, const Tensor& bias,
                       IntArrayRef stride, std::string_view padding, IntArrayRef dilation, std::int64_t groups) {
  if (padding == "valid") return convolve(op, spatial, input, weight, bias, stride, 0, dilation, groups);
  if (padding != "same") throw Error(fmt::format("Invalid padding string: '{}'; expected 'valid' or 'same'", padding));
  check_ranks(op, input, weight, spatial);
  const ConvAttributes attributes = attributes_of(op, spatial, stride, 0, dilation, groups);
  Dims both_sides;
  Dims padded = input.impl().sizes();
  const int first = static_cast<int>(input.dim()) - spatial;
  bool asymmetric = false;
  for (int d = 0; d < spatial; ++d) {
    if (attributes.stride[d] != 1) throw Error("padding='same' is not supported for strided convolutions");
    const std::int64_t total = attributes.dilation[d] * (weight.size(d + 2) - 1);
    both_sides.push_back(total / 2);
    padded[first + d] += total % 2;
    asymmetric |= total % 2 != 0;
  }
  if (!asymmetric) return convolve(op, spatial, input, weight, bias, stride, both_sides, dilation, groups);
  Tensor wider = zeros(padded, input.options().memory_format(input.suggest_memory_format()));
  Tensor inner = wider;
  for (int d = 0; d < spatial; ++d) inner = inner.narrow(first + d, 0, input.size(first + d));
  inner.copy_(input);
  return convolve(op, spatial, wider, weight, bias, stride, both_sides, dilation, groups);
}

Tensor convolve_transposed(const char* op, int spatial, const Tensor& input, const Tensor& weight, const Tensor& bias,
                           IntArrayRef stride, IntArrayRef padding, IntArrayRef output_padding, std::int64_t groups,
                           IntArrayRef dilation) {
  check_ranks(op, input, weight, spatial);
  check_same_device(op, {&input, &weight, &bias});
  check_same_dtype(op, {&input, &weight, &bias});
  const ConvAttributes attributes = attributes_of(op, spatial, stride, padding, dilation, groups);
  std::int64_t extra[3] = {0, 0, 0};
  spread(op, "output_padding", output_padding, spatial, 0, extra);
  const bool batched = input.dim() == spatial + 2;
  Tensor y = batched ? input : input.unsqueeze(0);
  if (y.size(1) != weight.size(0) || weight.size(0) % groups != 0) {
    throw Error(
        fmt::format("Given transposed=1, weight of size {}, expected input{} to have {} channels (a multiple of "
                    "groups={}), but got {} channels instead",
                    to_string(weight.sizes()), to_string(input.sizes()), weight.size(0), groups, y.size(1)));
  }
  const std::int64_t channels = weight.size(1) * groups;
  check_bias(op, bias, channels, weight);
  Dims sizes{y.size(0), channels};
  for (int d = 0; d < spatial; ++d) {
    if (extra[d] >= attributes.stride[d] && extra[d] >= attributes.dilation[d]) {
      throw Error(
          fmt::format("{}: output padding must be smaller than either stride or dilation, but got output_padding={}, "
                      "stride={}, dilation={} in dimension {}",
                      op, extra[d], attributes.stride[d], attributes.dilation[d], d));
    }
    sizes.push_back((y.size(d + 2) - 1) * attributes.stride[d] - 2 * attributes.padding[d] +
                    attributes.dilation[d] * (weight.size(d + 2) - 1) + extra[d] + 1);
    if (sizes.back() < 1) {
      throw Error(
          fmt::format("{}: the output would have size {} in spatial dimension {}; input of size {}, weight of size {}",
                      op, sizes.back(), d, to_string(input.sizes()), to_string(weight.sizes())));
    }
  }
  // An output padding of a stride or more makes room for another window: zeros stand in its place.
  const Dims windows = output_sizes(sizes, weight.impl().sizes(), attributes);
  std::vector<std::int64_t> missing;  // the last dimension first, as constant_pad_nd wants it
  for (int d = spatial + 1; d >= 2; --d) missing.insert(missing.end(), {0, windows[d] - y.size(d)});
  if (std::ranges::any_of(missing, [](std::int64_t count) { return count != 0; })) y = constant_pad_nd(y, missing);
  Tensor x = input_adjoint(y, weight, sizes, attributes);
  if (bias.defined()) {
    Dims broadcast = Dims::filled(spatial + 1, 1);
    broadcast[0] = channels;
    x.add_(bias.view(broadcast));
  }
  return batched ? x : x.squeeze(0);
}

}  // namespace

#define TENON_CONVOLUTIONS(spatial)                                                                                    \
  Tensor conv##spatial##d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride,           \
                          IntArrayRef padding, IntArrayRef dilation, std::int64_t groups) {                            \
    TENON_AUTOCAST(conv##spatial##d, input, weight, bias, stride, padding, dilation, groups)                           \
    return convolve("conv" #spatial "d", spatial, input, weight, bias, stride, padding, dilation, groups);             \
  }                                                                                                                    \
  Tensor detail::conv##spatial##d_padded(const Tensor& input, const Tensor& weight, const Tensor& bias,                \
                                         IntArrayRef stride, std::string_view padding, IntArrayRef dilation,           \
                                         std::int64_t groups) {                                                        \
    TENON_SCOPE(conv##spatial##d, input, weight, bias, stride, padding, dilation, groups)                              \
    TENON_AUTOCAST_AS(conv##spatial##d, detail::conv##spatial##d_padded(operands...), input, weight, bias, stride,     \
                      padding, dilation, groups)                                                                       \
    return convolve_padded("conv" #spatial "d", spatial, input, weight, bias, stride, padding, dilation, groups);      \
  }                                                                                                                    \
  Tensor conv_transpose##spatial##d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride, \
                                    IntArrayRef padding, IntArrayRef output_padding, std::int64_t groups,              \
                                    IntArrayRef dilation) {                                                            \
    TENON_AUTOCAST(conv_transpose##spatial##d, input, weight, bias, stride, padding, output_padding, groups, dilation) \
    return convolve_transposed("conv_transpose" #spatial "d", spatial, input, weight, bias, stride, padding,           \
                               output_padding, groups, dilation);                                                      \
  }
TENON_CONVOLUTIONS(1)
TENON_CONVOLUTIONS(2)
TENON_CONVOLUTIONS(3)
#undef TENON_CONVOLUTIONS

}  // namespace tenon
