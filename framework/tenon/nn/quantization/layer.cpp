// Layers that are fused, observed or quantized.
#include <tenon/nn/quantization/layer.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/functional/conv.h>
#include <tenon/nn/modules/batch_norm.h>
#include <tenon/ops/ops.h>
#include <tenon/ops/quantized/products.h>

namespace tenon::nn::quantization {
namespace {

template <std::size_t D, class Conv>
Tensor convolved(const Conv& conv, const Tensor& input) {
  return functional::detail::conv<D>(input, conv.weight, conv.bias, conv.options.stride(), conv.options.padding(),
                                     conv.options.dilation(), conv.options.groups(), conv.options.padding_mode());
}

/// How a Conv2d's window moves.
quantized::Window window_of(const Conv2dImpl& conv) {
  const auto& o = conv.options;
  quantized::Window window{.stride = Dims(*o.stride()), .dilation = Dims(*o.dilation()), .groups = o.groups()};
  if (const auto* numbers = o.padding().numbers()) window.padding = Dims(**numbers);
  return window;
}

/// The input as integers at this scale, laid out for the layer.
quantized::QuantizedTensor integers_of(const Tensor& input, double scale, std::int64_t zero_point, Dtype dtype,
                                       bool is_picture) {
  const auto format = is_picture ? MemoryFormat::ChannelsLast : MemoryFormat::Preserve;
  return {quantized::quantize_per_tensor(input, scale, zero_point, dtype, format), scale, zero_point};
}

Tensor product(const LayerView& view, const Tensor& scale, const quantized::QuantizedTensor& x, bool relu) {
  const quantized::QuantizedWeight w{view.weight(), scale};
  if (view.is_linear()) return quantized::linear(x, w, view.bias(), relu);
  return quantized::conv2d(x, w, view.bias(), window_of(*view.conv2d()), relu);
}

/// With fewer channels than these an instruction that multiplies four integers at once has little to multiply.
constexpr std::int64_t kFewChannels = 16;

/// Whether a convolution of floats is faster than one of integers.
bool is_faster_with_floats(const LayerView& view) {
  const Conv2dImpl* conv = view.conv2d();
  return conv != nullptr && conv->options.in_channels() / conv->options.groups() < kFewChannels;
}

/// The same product, of the numbers that the integers stand for.
Tensor product_of_floats(const LayerView& view, const Tensor& scale, const quantized::QuantizedTensor& x, bool relu) {
  const Tensor weight = quantized::dequantize(quantized::QuantizedWeight{view.weight(), scale});
  const Conv2dImpl& conv = *view.conv2d();
  const Tensor y = tenon::conv2d(quantized::dequantize(x), weight, view.bias(), conv.options.stride(),
                                 window_of(conv).padding, conv.options.dilation(), conv.options.groups());
  return relu ? y.relu_() : y;
}

quantized::PackedWeight packed_weight(const LayerView& view, const Tensor& scale) {
  const bool halves = view.weight().scalar_type() == kUInt8;
  return {view.weight(), scale, halves ? 4 : 8, view.in_features()};
}

quantized::QuantizedTensor at_own_scale(const Tensor& input) {
  const bool is_empty = input.numel() == 0;  // of which there are no extremes
  const float low = is_empty ? 0 : input.amin().item<float>(), high = is_empty ? 0 : input.amax().item<float>();
  const OneParameter one = parameters_between(low, high, {});
  return integers_of(input, one.scale, one.zero_point, kUInt8, false);
}

}  // namespace

Tensor Fused::forward(Module&, const Tensor& input) { return input; }

std::shared_ptr<ForwardOverride> Fused::for_clone(const Module&, Module& copy) const {
  make_fused(copy);
  drop_norm(copy);
  return std::make_shared<Fused>();
}

void make_fused(Module& module) {
  PurposeGuard purpose(Purpose::kParameter);
  module.register_buffer(kFusedName, tenon::ones({}, TensorOptions(kBool)));
  module.set_forward_override(std::make_shared<Fused>());
}

void drop_norm(Module& module) {
  const auto drop = [&](auto* norm) {
    if (norm == nullptr) return;
    norm->weight = module.replace_parameter("weight", {});
    norm->bias = module.replace_parameter("bias", {});
    norm->running_mean = module.replace_buffer("running_mean", {});
    norm->running_var = module.replace_buffer("running_var", {});
    norm->num_batches_tracked = module.replace_buffer("num_batches_tracked", {});
  };
  drop(module.as<BatchNorm1dImpl>());
  drop(module.as<BatchNorm2dImpl>());
  drop(module.as<BatchNorm3dImpl>());
}

void mark_relu(Module& module, Layer& layer) {
  if (layer.relu) return;
  PurposeGuard purpose(Purpose::kParameter);
  module.register_buffer(kFusedReluName, tenon::ones({}, TensorOptions(kBool)));
  layer.relu = true;
}

void add_to_weight(Module& module, const Tensor& delta) {
  const LayerView view(module);
  Tensor scale = module.named_buffers(false)["weight_scale"];
  const quantized::PackedWeight before = packed_weight(view, scale);
  const auto after = quantized::pack_weight(quantized::unpack_weight(before).add_(delta), before.bits,
                                            view.in_features() / scale.size(1));
  view.weight().copy_(after.values);
  scale.copy_(after.scales);
}

LayerView::LayerView(Module& module)
    : module_(module),
      linear_(module.as<LinearImpl>()),
      conv1d_(module.as<Conv1dImpl>()),
      conv2d_(module.as<Conv2dImpl>()),
      conv3d_(module.as<Conv3dImpl>()) {
  const auto take = [this](auto* layer) {
    if (layer == nullptr) return;
    weight_ = &layer->weight;
    bias_ = &layer->bias;
  };
  take(linear_);
  take(conv1d_);
  take(conv2d_);
  take(conv3d_);
}

Tensor LayerView::compute(const Tensor& input) const {
  if (linear_) return tenon::linear(input, linear_->weight, linear_->bias);
  if (conv1d_) return convolved<1>(*conv1d_, input);
  if (conv2d_) return convolved<2>(*conv2d_, input);
  return convolved<3>(*conv3d_, input);
}

std::int64_t LayerView::in_features() const { return linear_->options.in_features(); }

void LayerView::set_weight(const Tensor& weight) const { *weight_ = module_.replace_parameter("weight", weight); }
void LayerView::set_bias(const Tensor& bias) const { *bias_ = module_.replace_parameter("bias", bias); }

Layer& LayerView::layer() const {
  if (auto* layer = dynamic_cast<Layer*>(module_.forward_override())) return *layer;
  const auto made = std::make_shared<Layer>();
  module_.set_forward_override(made);
  return *made;
}

const Layer* LayerView::existing_layer() const { return dynamic_cast<const Layer*>(module_.forward_override()); }

std::shared_ptr<ForwardOverride> Layer::for_clone(const Module& self, Module& copy) const {
  if (scheme == Scheme::kObserved)
    throw Error("clone(): a prepared layer watches its input: convert() the model, or clone it before prepare()");
  const LayerView view(copy);
  for (const auto& parameter : self.named_parameters(false))
    if (parameter.key() == "bias" && !view.bias().defined()) view.set_bias(tenon::empty_like(parameter.value()));
  const auto there = copy.named_buffers(false);
  for (const auto& buffer : self.named_buffers(false))
    if (!there.contains(buffer.key())) copy.register_buffer(buffer.key(), tenon::empty_like(buffer.value()));
  const auto cloned = std::make_shared<Layer>();
  cloned->scheme = scheme;
  cloned->relu = relu;
  return cloned;
}

Tensor Layer::forward(Module& self, const Tensor& input) {
  const LayerView view(self);
  if (scheme == Scheme::kFloat || scheme == Scheme::kObserved) {
    if (observer) {
      observer->observe(input);
      has_seen = true;
    }
    const Tensor y = view.compute(input);
    return relu ? y.relu() : y;
  }
  const auto buffers = self.named_buffers(false);
  const Tensor& scale = buffers["weight_scale"];
  if (scheme == Scheme::kWeightOnly) {
    const Tensor y = quantized::weight_only_linear(input, packed_weight(view, scale), view.bias());
    return relu ? y.relu() : y;
  }
  NoGradGuard no_grad;
  if (scheme == Scheme::kDynamic) return product(view, scale, at_own_scale(input), relu);
  const Tensor& zero_point = buffers["input_zero_point"];
  const bool is_picture = view.conv2d() != nullptr, batched = !is_picture || input.dim() == 4;
  const Tensor batch = batched ? input : input.unsqueeze(0);
  const bool planar = is_picture && zero_point.scalar_type() == kUInt8 &&
                      quantized::is_planar(batch.device(), view.weight(), window_of(*view.conv2d()), batch.size(-1));
  const bool with_floats = !planar && is_faster_with_floats(view);
  const auto x =
      integers_of(planar ? batch.contiguous() : batch, buffers["input_scale"].item<double>(),
                  zero_point.item<std::int64_t>(), zero_point.scalar_type(), is_picture && !planar && !with_floats);
  const Tensor y = (with_floats ? product_of_floats : product)(view, scale, x, relu);
  return batched ? y : y.squeeze(0);
}

}  // namespace tenon::nn::quantization
