// Convolution and pooling. The three kernels of convolution are each other's gradients, to any order.
#include <tenon/kernel/attributes/linear.h>
#include <tenon/ops/convolution.h>
#include <tenon/ops/support.h>

namespace tenon {

using namespace ops;

namespace {

bool last_channels(const Tensor& tensor) {
  return !tensor.is_contiguous() && (tensor.is_contiguous(MemoryFormat::ChannelsLast) || tensor.is_contiguous(MemoryFormat::ChannelsLast3d));
}
/// Kernels take contiguous or channels-last operands.
Tensor laid_out(const Tensor& tensor) { return last_channels(tensor) ? tensor : tensor.contiguous(); }

Tensor allocate_conv(const Tensor& like, const Dims& sizes) {
  if (last_channels(like)) return allocate_strided(ops::state_of(like), sizes, channels_last_strides(sizes), like.scalar_type());
  return allocate_like(like, sizes, like.scalar_type());
}

Tensor conv_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvAttributes& attributes);
Tensor conv_input(const Tensor& dy, const Tensor& w, const Dims& x_sizes, const ConvAttributes& attributes);
Tensor conv_weight(const Tensor& dy, const Tensor& x, const Dims& w_sizes, const ConvAttributes& attributes);

Tensor bias_gradient(const Tensor& dy) {
  std::vector<std::int64_t> dims;
  for (std::int64_t i = 0; i < dy.dim(); ++i) {
    if (i != 1) dims.push_back(i);
  }
  return dy.sum(IntArrayRef(dims));
}

Tensor conv_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvAttributes& attributes) {
  const Tensor input = laid_out(x);
  const Tensor weight = laid_out(w);
  const Dims x_sizes = x.impl().sizes();
  const Dims w_sizes = w.impl().sizes();
  Recording recording = record<2>("ConvolutionBackward0", {&input, &weight, &bias}, [=](Backward& b) {
    const Tensor& dy = b.grad();
    if (b.needs(0)) b.set(0, conv_input(dy, b.saved(1), x_sizes, attributes));
    if (b.needs(1)) b.set(1, conv_weight(dy, b.saved(0), w_sizes, attributes));
    if (b.needs(2)) b.set(2, bias_gradient(dy));
  });
  if (recording) {
    if (autograd::requires_grad(weight)) recording.save(0, input);
    if (autograd::requires_grad(input)) recording.save(1, weight);
  }
  Dims sizes{x_sizes[0], w_sizes[0]};
  for (int i = 0; i < attributes.spatial; ++i) {
    const std::int64_t reach = attributes.dilation[i] * (w_sizes[2 + i] - 1) + 1;
    const std::int64_t padded = x_sizes[2 + i] + 2 * attributes.padding[i];
    if (padded < reach) {
      throw Error("Calculated padded input size per channel: (" + std::to_string(padded) + "). Kernel size: (" + std::to_string(reach) +
                  "). Kernel size can't be greater than actual input size (input " + to_string(x_sizes) + ", weight " + to_string(w_sizes) + ")");
    }
    sizes.push_back((padded - reach) / attributes.stride[i] + 1);
  }
  Tensor result = allocate_conv(input, sizes);
  run(TENON_OP("conv"), ops::state_of(x), {view_of(result)}, {view_of(input), view_of(weight), view_of(bias)}, &attributes);
  recording.output(result);
  return result;
}

Tensor conv_input(const Tensor& dy, const Tensor& w, const Dims& x_sizes, const ConvAttributes& attributes) {
  const Tensor gradient = laid_out(dy);
  const Tensor weight = laid_out(w);
  const Dims w_sizes = w.impl().sizes();
  Recording recording = record<2>("ConvolutionBackwardBackward0", {&gradient, &weight}, [=](Backward& b) {
    if (b.needs(0)) b.set(0, conv_forward(b.grad(), b.saved(1), {}, attributes));
    if (b.needs(1)) b.set(1, conv_weight(b.saved(0), b.grad(), w_sizes, attributes));
  });
  if (recording) {
    recording.save(0, gradient);
    recording.save(1, weight);
  }
  Tensor result = allocate_conv(gradient, x_sizes);
  run(TENON_OP("conv_backward_input"), ops::state_of(dy), {view_of(result)}, {view_of(gradient), view_of(weight)}, &attributes);
  recording.output(result);
  return result;
}

Tensor conv_weight(const Tensor& dy, const Tensor& x, const Dims& w_sizes, const ConvAttributes& attributes) {
  const Tensor gradient = laid_out(dy);
  const Tensor input = laid_out(x);
  const Dims x_sizes = x.impl().sizes();
  Recording recording = record<2>("ConvolutionBackwardBackward0", {&gradient, &input}, [=](Backward& b) {
    if (b.needs(0)) b.set(0, conv_forward(b.saved(1), b.grad(), {}, attributes));
    if (b.needs(1)) b.set(1, conv_input(b.saved(0), b.grad(), x_sizes, attributes));
  });
  if (recording) {
    recording.save(0, gradient);
    recording.save(1, input);
  }
  Tensor result = allocate_conv(input, w_sizes);
  run(TENON_OP("conv_backward_weight"), ops::state_of(dy), {view_of(result)}, {view_of(gradient), view_of(input)}, &attributes);
  recording.output(result);
  return result;
}

/// One number for all spatial dimensions, or one each.
void spread(std::int64_t (&out)[3], IntArrayRef values, int spatial, const char* what) {
  if (values.size() != 1 && static_cast<int>(values.size()) != spatial) {
    throw Error("expected " + std::string(what) + " to be a single integer value or a list of " + std::to_string(spatial) +
                " values to match the convolution dimensions, but got " + what + "=" + to_string(values));
  }
  for (int i = 0; i < spatial; ++i) out[i] = values.size() == 1 ? values[0] : values[static_cast<std::size_t>(i)];
}

Tensor conv_nd(int spatial, const Tensor& given, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
               IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding, std::int64_t groups) {
  const std::int64_t rank = spatial + 2;
  if (given.dim() != rank && given.dim() != rank - 1) {
    throw Error("Expected " + std::to_string(rank - 1) + "D (unbatched) or " + std::to_string(rank) + "D (batched) input to conv" +
                (transposed ? "_transpose" : "") + std::to_string(spatial) + "d, but got input of size: " + to_string(given.sizes()));
  }
  if (weight.dim() != rank) throw Error("expected " + std::to_string(rank) + "-dimensional weight, but got " + to_string(weight.sizes()));
  const bool batched = given.dim() == rank;
  const Tensor input = batched ? given : given.unsqueeze(0);
  const Tensor offset = bias.value_or(Tensor());
  check_same_device("conv", {&input, &weight, &offset});
  check_same_dtype("conv", {&input, &weight, &offset});
  check_floating("conv", input);
  ConvAttributes attributes;
  attributes.spatial = spatial;
  attributes.groups = groups;
  spread(attributes.stride, stride, spatial, "stride");
  spread(attributes.padding, padding, spatial, "padding");
  spread(attributes.dilation, dilation, spatial, "dilation");
  for (int i = 0; i < spatial; ++i) {
    if (attributes.padding[i] < 0) throw Error("negative padding is not supported");
    if (attributes.stride[i] <= 0) throw Error("non-positive stride is not supported");
    if (attributes.dilation[i] <= 0) throw Error("dilation should be greater than zero");
  }
  const std::int64_t channels = transposed ? weight.size(0) : weight.size(1) * groups;
  if (groups <= 0 || (weight.size(0) % groups) != 0) {
    throw Error("Given groups=" + std::to_string(groups) + ", expected weight to be at least " + std::to_string(groups) +
                " at dimension 0 and divisible, but got weight of size " + to_string(weight.sizes()) + " instead");
  }
  if (input.size(1) != channels) {
    throw Error("Given groups=" + std::to_string(groups) + ", weight of size " + to_string(weight.sizes()) + ", expected input" +
                to_string(input.sizes()) + " to have " + std::to_string(channels) + " channels, but got " + std::to_string(input.size(1)) + " channels instead");
  }
  const std::int64_t out_channels = transposed ? weight.size(1) * groups : weight.size(0);
  if (offset.defined() && (offset.dim() != 1 || offset.size(0) != out_channels)) {
    throw Error("Given weight of size " + to_string(weight.sizes()) + ", expected bias to be 1-dimensional with " + std::to_string(out_channels) +
                " elements, but got bias of size " + to_string(offset.sizes()) + " instead");
  }
  Tensor result;
  if (!transposed) {
    result = conv_forward(input, weight, offset, attributes);
  } else {
    std::int64_t extra[3] = {0, 0, 0};
    spread(extra, output_padding, spatial, "output_padding");
    Dims sizes{input.size(0), out_channels};
    for (int i = 0; i < spatial; ++i) {
      sizes.push_back((input.size(2 + i) - 1) * attributes.stride[i] - 2 * attributes.padding[i] +
                      attributes.dilation[i] * (weight.size(2 + i) - 1) + extra[i] + 1);
    }
    result = conv_input(input, weight, sizes, attributes);
    if (offset.defined()) {
      Dims shape = Dims::filled(spatial + 2, 1);
      shape[1] = out_channels;
      result = result.add(offset.view(shape));
    }
  }
  return batched ? result : result.squeeze(0);
}

}  // namespace

Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,
                   IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding, std::int64_t groups) {
  return conv_nd(static_cast<int>(weight.dim()) - 2, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
}

#define TENON_CONV(n)                                                                                                            \
  Tensor conv##n##d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,            \
                    IntArrayRef padding, IntArrayRef dilation, std::int64_t groups) {                                            \
    return conv_nd(n, input, weight, bias, stride, padding, dilation, false, 0, groups);                                         \
  }                                                                                                                              \
  Tensor conv_transpose##n##d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef stride,  \
                              IntArrayRef padding, IntArrayRef output_padding, std::int64_t groups, IntArrayRef dilation) {      \
    return conv_nd(n, input, weight, bias, stride, padding, dilation, true, output_padding, groups);                             \
  }
TENON_CONV(1)
TENON_CONV(2)
TENON_CONV(3)

// --- pooling ----------------------------------------------------------------------------------------------------------------

namespace {

struct Pooling {
  PoolAttributes attributes;
  Tensor input;      ///< batched, contiguous
  bool batched = true;
  Dims sizes;        ///< of the result
};

Pooling prepare(const char* name, int spatial, const Tensor& given, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                IntArrayRef dilation, bool ceil_mode) {
  Pooling pooling;
  const std::int64_t rank = spatial + 2;
  if (given.dim() != rank && given.dim() != rank - 1) {
    throw Error(std::string(name) + std::to_string(spatial) + "d: Expected " + std::to_string(rank - 1) + "D or " + std::to_string(rank) +
                "D (batch mode) tensor for input, but got: " + to_string(given.sizes()));
  }
  pooling.batched = given.dim() == rank;
  pooling.input = (pooling.batched ? given : given.unsqueeze(0)).contiguous();
  PoolAttributes& a = pooling.attributes;
  a.spatial = spatial;
  spread(a.kernel, kernel, spatial, "kernel_size");
  spread(a.stride, stride.empty() ? kernel : stride, spatial, "stride");
  spread(a.padding, padding, spatial, "padding");
  spread(a.dilation, dilation, spatial, "dilation");
  pooling.sizes = {pooling.input.size(0), pooling.input.size(1)};
  for (int i = 0; i < spatial; ++i) {
    if (a.stride[i] <= 0) throw Error("stride should not be zero");
    if (2 * a.padding[i] > a.kernel[i]) {
      throw Error("pad should be at most half of effective kernel size, but got pad=" + std::to_string(a.padding[i]) +
                  ", kernel_size=" + std::to_string(a.kernel[i]) + " and dilation=" + std::to_string(a.dilation[i]));
    }
    const std::int64_t length = pooling.input.size(2 + i);
    const std::int64_t span = length + 2 * a.padding[i] - a.dilation[i] * (a.kernel[i] - 1) - 1;
    std::int64_t out = (span + (ceil_mode ? a.stride[i] - 1 : 0)) / a.stride[i] + 1;
    if (span < 0 && !ceil_mode) out = 0;
    // A window must start inside the input or its left padding.
    if (ceil_mode && (out - 1) * a.stride[i] >= length + a.padding[i]) --out;
    if (out < 1) {
      throw Error("Given input size: " + to_string(given.sizes()) + ". Calculated output size: (" + std::to_string(out) + "). Output size is too small (" + name + ")");
    }
    pooling.sizes.push_back(out);
  }
  return pooling;
}

Tensor unbatched(const Tensor& tensor, bool batched) { return batched ? tensor : tensor.squeeze(0); }

Tensor max_pool_gradient(const Tensor& dy, const Tensor& indices, const Dims& x_sizes) {
  if (differentiating_twice()) {
    // As a scatter in each plane, which has gradients of its own.
    const Tensor flat = dy.new_zeros({x_sizes[0], x_sizes[1], x_sizes.product() / std::max<std::int64_t>(1, x_sizes[0] * x_sizes[1])});
    return flat.scatter_add(2, indices.reshape({x_sizes[0], x_sizes[1], -1}), dy.reshape({x_sizes[0], x_sizes[1], -1})).view(x_sizes);
  }
  const Tensor gradient = dy.contiguous();
  Tensor result = allocate_like(dy, x_sizes, dy.scalar_type());
  run(TENON_OP("max_pool_backward"), ops::state_of(dy), {view_of(result)}, {view_of(gradient), view_of(indices)});
  return result;
}

std::tuple<Tensor, Tensor> max_pool_kernel(OperatorId op, const char* name, const Pooling& pooling) {
  const Tensor& x = pooling.input;
  const Dims x_sizes = x.impl().sizes();
  Recording recording = record<1>(name, {&x}, [x_sizes](Backward& b) { b.set(0, max_pool_gradient(b.grad(), b.saved(0), x_sizes)); });
  Tensor values = allocate_like(x, pooling.sizes, x.scalar_type());
  Tensor indices = allocate_like(x, pooling.sizes, Dtype::kInt64);
  run(op, ops::state_of(x), {view_of(values), view_of(indices)}, {view_of(x)}, &pooling.attributes);
  if (recording) {
    recording.save(0, indices);
    recording.output(values);
  }
  return {unbatched(values, pooling.batched), unbatched(indices, pooling.batched)};
}

/// Average pooling and its transpose are each other's gradient.
Tensor average(bool adaptive, bool backward, const Tensor& given, const Dims& sizes, const PoolAttributes& attributes) {
  const Tensor input = given.contiguous();
  const Dims input_sizes = input.impl().sizes();
  Recording recording = record<0>(adaptive ? "AdaptiveAvgPoolBackward0" : "AvgPoolBackward0", {&input},
                                  [=](Backward& b) { b.set(0, average(adaptive, !backward, b.grad(), input_sizes, attributes)); });
  Tensor result = allocate_like(input, sizes, input.scalar_type());
  const OperatorId op = adaptive ? (backward ? TENON_OP("adaptive_avg_pool_backward") : TENON_OP("adaptive_avg_pool"))
                                 : (backward ? TENON_OP("avg_pool_backward") : TENON_OP("avg_pool"));
  run(op, ops::state_of(input), {view_of(result)}, {view_of(input)}, &attributes);
  recording.output(result);
  return result;
}

Pooling prepare_adaptive(const char* name, int spatial, const Tensor& given, IntArrayRef output_size) {
  Pooling pooling;
  const std::int64_t rank = spatial + 2;
  if (given.dim() != rank && given.dim() != rank - 1) {
    throw Error(std::string(name) + ": Expected " + std::to_string(rank - 1) + "D or " + std::to_string(rank) + "D tensor, but got " + to_string(given.sizes()));
  }
  pooling.batched = given.dim() == rank;
  pooling.input = (pooling.batched ? given : given.unsqueeze(0)).contiguous();
  pooling.attributes.spatial = spatial;
  std::int64_t wanted[3];
  spread(wanted, output_size, spatial, "output_size");
  pooling.sizes = {pooling.input.size(0), pooling.input.size(1)};
  for (int i = 0; i < spatial; ++i) pooling.sizes.push_back(wanted[i] < 0 ? pooling.input.size(2 + i) : wanted[i]);
  return pooling;
}

}  // namespace

#define TENON_POOLS(n)                                                                                                           \
  std::tuple<Tensor, Tensor> max_pool##n##d_with_indices(const Tensor& input, IntArrayRef kernel, IntArrayRef stride,            \
                                                         IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {            \
    return max_pool_kernel(TENON_OP("max_pool"), "MaxPool" #n "DWithIndicesBackward0",                                           \
                           prepare("max_pool", n, input, kernel, stride, padding, dilation, ceil_mode));                         \
  }                                                                                                                              \
  Tensor max_pool##n##d(const Tensor& input, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,  \
                        bool ceil_mode) {                                                                                        \
    return std::get<0>(max_pool##n##d_with_indices(input, kernel, stride, padding, dilation, ceil_mode));                        \
  }                                                                                                                              \
  Tensor avg_pool##n##d(const Tensor& input, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, bool ceil_mode,        \
                        bool count_include_pad, std::optional<std::int64_t> divisor_override) {                                  \
    Pooling pooling = prepare("avg_pool", n, input, kernel, stride, padding, 1, ceil_mode);                                      \
    if (divisor_override && *divisor_override == 0) throw Error("divisor must be not zero");                                     \
    pooling.attributes.count_include_pad = count_include_pad;                                                                    \
    pooling.attributes.divisor_override = divisor_override.value_or(0);                                                          \
    return unbatched(average(false, false, pooling.input, pooling.sizes, pooling.attributes), pooling.batched);                  \
  }                                                                                                                              \
  Tensor adaptive_avg_pool##n##d(const Tensor& input, IntArrayRef output_size) {                                                 \
    const Pooling pooling = prepare_adaptive("adaptive_avg_pool" #n "d", n, input, output_size);                                 \
    return unbatched(average(true, false, pooling.input, pooling.sizes, pooling.attributes), pooling.batched);                   \
  }                                                                                                                              \
  std::tuple<Tensor, Tensor> adaptive_max_pool##n##d(const Tensor& input, IntArrayRef output_size) {                             \
    return max_pool_kernel(TENON_OP("adaptive_max_pool"), "AdaptiveMaxPool" #n "DBackward0",                                     \
                           prepare_adaptive("adaptive_max_pool" #n "d", n, input, output_size));                                 \
  }
TENON_POOLS(1)
TENON_POOLS(2)
TENON_POOLS(3)

namespace {

Tensor columns(bool forward, const Tensor& given, const Dims& sizes, const PoolAttributes& attributes) {
  const Tensor input = given.contiguous();
  const Dims input_sizes = input.impl().sizes();
  Recording recording = record<0>(forward ? "Im2ColBackward0" : "Col2ImBackward0", {&input},
                                  [=](Backward& b) { b.set(0, columns(!forward, b.grad(), input_sizes, attributes)); });
  Tensor result = allocate_like(input, sizes, input.scalar_type());
  run(forward ? TENON_OP("im2col") : TENON_OP("col2im"), ops::state_of(input), {view_of(result)}, {view_of(input)}, &attributes);
  recording.output(result);
  return result;
}

PoolAttributes column_attributes(IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  PoolAttributes attributes;
  spread(attributes.kernel, kernel, 2, "kernel_size");
  spread(attributes.dilation, dilation, 2, "dilation");
  spread(attributes.padding, padding, 2, "padding");
  spread(attributes.stride, stride, 2, "stride");
  return attributes;
}

std::int64_t positions(const PoolAttributes& a, const std::int64_t (&image)[2], std::string& text) {
  std::int64_t count[2];
  for (int i = 0; i < 2; ++i) count[i] = (image[i] + 2 * a.padding[i] - a.dilation[i] * (a.kernel[i] - 1) - 1 + a.stride[i]) / a.stride[i];
  const auto pair = [](std::int64_t x, std::int64_t y) { return "(" + std::to_string(x) + ", " + std::to_string(y) + ")"; };
  if (count[0] < 1 || count[1] < 1) {
    text = "Given input with spatial size " + pair(image[0], image[1]) + ", kernel_size=" + pair(a.kernel[0], a.kernel[1]) +
           ", dilation=" + pair(a.dilation[0], a.dilation[1]) + ", padding=" + pair(a.padding[0], a.padding[1]) +
           ", calculated shape of the array of sliding blocks as " + pair(count[0], count[1]) + ", but its components must be at least one.";
  }
  return count[0] * count[1];
}

}  // namespace

Tensor im2col(const Tensor& given, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  const PoolAttributes attributes = column_attributes(kernel, dilation, padding, stride);
  if (given.dim() != 4 && given.dim() != 3) throw Error("im2col: expected 3D or 4D tensor, got " + to_string(given.sizes()));
  const Tensor input = given.dim() == 4 ? given : given.unsqueeze(0);
  const std::int64_t image[2] = {input.size(2), input.size(3)};
  std::string problem;
  const std::int64_t count = positions(attributes, image, problem);
  if (!problem.empty()) throw Error(problem);
  const Dims sizes{input.size(0), input.size(1) * attributes.kernel[0] * attributes.kernel[1], count};
  const Tensor result = columns(true, input, sizes, attributes);
  return given.dim() == 4 ? result : result.squeeze(0);
}
Tensor col2im(const Tensor& given, IntArrayRef output_size, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  const PoolAttributes attributes = column_attributes(kernel, dilation, padding, stride);
  if (given.dim() != 3 && given.dim() != 2) throw Error("Input Error: Only unbatched (2D) or batched (3D) input Tensors are supported (got " + std::to_string(given.dim()) + "D)");
  const Tensor input = given.dim() == 3 ? given : given.unsqueeze(0);
  std::int64_t image[3];
  spread(image, output_size, 2, "output_size");
  const std::int64_t area[2] = {image[0], image[1]};
  std::string problem;
  const std::int64_t count = positions(attributes, area, problem);
  const std::int64_t window = attributes.kernel[0] * attributes.kernel[1];
  if (input.size(1) % window != 0) {
    throw Error("Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)=" + std::to_string(input.size(1)));
  }
  if (input.size(2) != count) {
    throw Error("Given output_size=" + to_string(output_size) + ", expected size of input's dimension 2 to match the calculated number of sliding blocks " +
                std::to_string(count) + ", but got input.size(2)=" + std::to_string(input.size(2)) + ".");
  }
  const Tensor result = columns(false, input, Dims{input.size(0), input.size(1) / window, image[0], image[1]}, attributes);
  return given.dim() == 3 ? result : result.squeeze(0);
}

}  // namespace tenon
