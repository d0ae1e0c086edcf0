// Low-rank matrices beside linear layers.
#include <tenon/nn/lora.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/init.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/nn/parameter.h>
#include <tenon/nn/quantization/layer.h>
#include <tenon/nn/quantization/read_by_others.h>
#include <tenon/ops/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace tenon::nn {
namespace {

constexpr const char* kName = "lora";

/// A linear layer with what is beside it.
class WithLora final : public ForwardOverride {
 public:
  /// `own`: what the layer computed so far; null for its own formula.
  WithLora(std::shared_ptr<LoraImpl> lora, std::shared_ptr<ForwardOverride> own)
      : lora_(std::move(lora)), own_(std::move(own)) {}
  Tensor forward(Module& self, const Tensor& input) override {
    const LinearImpl& layer = *self.as<LinearImpl>();
    const Tensor y = own_ ? own_->forward(self, input) : tenon::linear(input, layer.weight, layer.bias);
    return y.add(lora_->forward(input));
  }
  std::shared_ptr<ForwardOverride> for_clone(const Module& self, Module& copy) const override {
    auto own = own_ ? own_->for_clone(self, copy) : nullptr;
    auto lora = std::dynamic_pointer_cast<LoraImpl>(lora_->clone());
    copy.register_module(kName, lora);
    return std::make_shared<WithLora>(std::move(lora), std::move(own));
  }
  LoraImpl& lora() const { return *lora_; }
  const std::shared_ptr<ForwardOverride>& own() const { return own_; }

 private:
  std::shared_ptr<LoraImpl> lora_;
  std::shared_ptr<ForwardOverride> own_;
};

bool has_integer_weights(const ForwardOverride& override) {
  const auto* layer = dynamic_cast<const quantization::Layer*>(&override);
  return layer != nullptr && layer->scheme == quantization::Scheme::kWeightOnly;
}

}  // namespace

LoraImpl::LoraImpl(std::int64_t in_features, std::int64_t out_features, std::int64_t rank, double scale)
    : in_features_(in_features), out_features_(out_features), rank_(rank), scale_(scale) {
  LoraImpl::reset();
}

void LoraImpl::reset() {
  a = register_parameter("a", new_parameter({rank_, in_features_}));
  b = register_parameter("b", new_parameter({out_features_, rank_}));
  init::kaiming_uniform_(a, std::sqrt(5.0));
  init::zeros_(b);
}

Tensor LoraImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  return tenon::linear(tenon::linear(input, a), b).mul(scale_);
}

Tensor LoraImpl::delta() const { return tenon::mm(b, a).mul(scale_); }

std::int64_t add_lora(Module& model, const LoraOptions& options) {
  if (options.rank() < 1) throw Error(fmt::format("add_lora: the rank is {}, not 1 or more", options.rank()));
  if (!std::isfinite(options.alpha()) || options.alpha() == 0)
    throw Error(fmt::format("add_lora: with alpha = {} nothing would be learned: 16, or twice the rank, is usual",
                            options.alpha()));
  std::vector<std::pair<std::string, LinearImpl*>> layers;
  std::set<const Module*> known;
  const std::set<const Module*> left_out = read_by_others(model);
  for (const auto& item : model.named_modules()) {
    auto* layer = item.value()->as<LinearImpl>();
    if (layer == nullptr) continue;
    if (dynamic_cast<WithLora*>(layer->forward_override()) != nullptr)
      throw Error(fmt::format("add_lora: '{}' has low-rank matrices already", item.key()));
    const ForwardOverride* own = layer->forward_override();
    if ((own != nullptr && !has_integer_weights(*own)) || left_out.contains(layer)) continue;
    if (options.choice() && !options.choice()(item.key())) continue;
    if (known.insert(layer).second) layers.emplace_back(item.key(), layer);  // a shared one has two names
  }
  for (const auto& [path, layer] : layers) {
    const std::int64_t in = layer->options.in_features(), out = layer->options.out_features();
    if (options.rank() > std::min(in, out))
      throw Error(
          fmt::format("add_lora: matrices of rank {} beside '{}', which is {} by {}, are no smaller than its weight: "
                      "choose a rank of at most {}, or other layers",
                      options.rank(), path, out, in, std::min(in, out)));
  }
  if (layers.empty())
    throw Error(
        "add_lora: no linear layer of the model is left that low-rank matrices could be for (those on integers of "
        "activations give no gradients; quantize_weights() makes integers of weights alone)");
  for (const Tensor& parameter : model.parameters()) parameter.set_requires_grad(false);
  const PurposeGuard purpose(Purpose::kParameter);
  for (const auto& [path, layer] : layers) {
    auto lora = std::make_shared<LoraImpl>(layer->options.in_features(), layer->options.out_features(), options.rank(),
                                           options.alpha() / static_cast<double>(options.rank()));
    const Tensor& weight = layer->weight;
    // Of integers the bias says what the layer computes with.
    const Dtype dtype = weight.is_floating_point() ? weight.scalar_type()
                        : layer->bias.defined()    ? layer->bias.scalar_type()
                                                   : lora->a.scalar_type();
    if (lora->a.device() != weight.device() || lora->a.scalar_type() != dtype) lora->to(weight.device(), dtype);
    lora->train(layer->is_training());
    layer->register_module(kName, lora);
    layer->set_forward_override(std::make_shared<WithLora>(std::move(lora), layer->shared_forward_override()));
  }
  return static_cast<std::int64_t>(layers.size());
}

std::int64_t merge_lora(Module& model) {
  const NoGradGuard no_grad;
  std::int64_t merged = 0;
  for (const auto& module : model.modules()) {
    auto* beside = dynamic_cast<WithLora*>(module->forward_override());
    if (beside == nullptr) continue;
    const Tensor delta = beside->lora().delta();
    if (beside->own())
      quantization::add_to_weight(*module, delta);
    else
      module->as<LinearImpl>()->weight.add_(delta);
    module->unregister_module(kName);
    module->set_forward_override(beside->own());
    ++merged;
  }
  return merged;
}

std::vector<Tensor> trainable_parameters(const Module& model) {
  std::vector<Tensor> trainable;
  for (const Tensor& parameter : model.parameters()) {
    if (parameter.requires_grad()) trainable.push_back(parameter);
  }
  return trainable;
}

template class Cloneable<LoraImpl>;

}  // namespace tenon::nn
