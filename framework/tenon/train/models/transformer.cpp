// Transformer blocks.
#include <tenon/train/models/transformer.h>

#include <tenon/autograd/autograd.h>
#include <tenon/autograd/function.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/nn/functional/activation.h>
#include <tenon/nn/functional/dropout.h>
#include <tenon/nn/init.h>
#include <tenon/ops/nn/attention.h>
#include <tenon/ops/ops.h>
#include <tenon/train/checkpointed.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace tenon::train {

namespace F = nn::functional;

namespace {

nn::LayerNorm layer_norm(const TransformerOptions& options) {
  return nn::LayerNorm(nn::LayerNormOptions({options.width}).eps(options.norm_epsilon));
}

nn::Linear linear(std::int64_t in, std::int64_t out, double deviation = kInitialDeviation) {
  nn::Linear layer(in, out);
  nn::init::normal_(layer->weight, 0, deviation);
  nn::init::zeros_(layer->bias);
  return layer;
}

Tensor gelu_of(const Tensor& x, bool exact) { return tenon::gelu(x, exact ? "none" : "tanh"); }

/// linear(gelu(x), weight, bias) that keeps x alone: the backward computes GELU again, which is cheaper than the room
/// of its values, four times the width of the stream.
struct GeluLinear : autograd::Function<GeluLinear> {
  static Tensor forward(autograd::AutogradContext* context, const Tensor& x, const Tensor& weight, const Tensor& bias,
                        bool exact) {
    context->save_for_backward({x, weight});
    context->saved_data["exact"] = exact;
    return tenon::linear(gelu_of(x, exact), weight, bias);
  }

  static autograd::variable_list backward(autograd::AutogradContext* context, autograd::variable_list gradients) {
    const autograd::variable_list saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1];
    const Tensor dy = gradients[0].reshape({-1, weight.size(0)});
    const bool differentiable = GradMode::is_enabled();
    const AutoGradMode records(true);
    const Tensor input = differentiable ? x : x.detach().requires_grad_();
    const Tensor value = gelu_of(input, context->saved_data["exact"].toBool());
    Tensor dx, dweight, dbias;
    {
      const AutoGradMode records_again(differentiable);
      if (context->needs_input_grad(1)) dweight = dy.t().mm(value.reshape({-1, weight.size(1)}));
      if (context->needs_input_grad(2)) dbias = dy.sum(0);
      if (context->needs_input_grad(0)) dx = dy.mm(weight).view(x.sizes());
    }
    if (dx.defined()) dx = autograd::grad({value}, {input}, {dx}, differentiable, differentiable)[0];
    return {dx, dweight, dbias, Tensor()};
  }
};

/// GeluLinear; without a graph what it computes, without the lists from the heap that a Function makes.
Tensor gelu_linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool exact) {
  return GradMode::is_enabled() ? GeluLinear::apply(x, weight, bias, exact)
                                : tenon::linear(gelu_of(x, exact), weight, bias);
}

/// The three parts along a dimension. Without a graph one by one, since a list of them comes from the heap.
std::array<Tensor, 3> three_parts(const Tensor& x, std::int64_t dim) {
  if (!GradMode::is_enabled()) return {x.select(dim, 0), x.select(dim, 1), x.select(dim, 2)};
  const std::vector<Tensor> parts = x.unbind(dim);
  return {parts[0], parts[1], parts[2]};
}

}  // namespace

namespace {

/// Of the blocks in the Transformer "body", by the same rule as add_lora() is told.
LowRankLayers low_rank_layers(const std::string& part, std::int64_t blocks) {
  LowRankLayers layers;
  const auto chosen = [&](const char* name) {
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < blocks; ++i)
      if (fmt::format("body.block{}.{}", i, name).find(part) != std::string::npos) ++found;
    if (found != 0 && found != blocks) layers.are_alike = false;
    return found == blocks;
  };
  layers.qkv = chosen("qkv"), layers.out = chosen("out"), layers.widen = chosen("widen");
  layers.narrow = chosen("narrow");
  return layers;
}

}  // namespace

TransformerOptions transformer_options(const ModelRequest& request, bool causal) {
  const Options& model = request.options;
  TransformerOptions options{.width = model.integer("hidden"),
                             .layers = model.integer("layers"),
                             .heads = model.integer("heads"),
                             .dropout = model.real("dropout"),
                             .causal = causal,
                             .relu = model.text("activation") == "relu",
                             .inplace = request.inplace_activations,
                             .mixed = request.mixed_precision,
                             .lora_rank = request.lora_rank,
                             .lora_integers = request.lora_integers,
                             .element_bytes = request.element_bytes,
                             .checkpoint = request.checkpoint,
                             .ranks = request.tensor_parallel};
  if (options.width % options.heads != 0) {
    throw ConfigError(
        fmt::format("model.hidden = {} is not divisible by model.heads = {}", options.width, options.heads));
  }
  if (options.lora_rank > 0) options.lora_layers = low_rank_layers(request.lora_layers, options.layers);
  own_part(options.ranks, options.heads, "model.heads");
  return options;
}

std::int64_t positions_of(const ModelRequest& request) {
  const std::int64_t given = request.options.integer("positions"), context = request.data.context;
  if (given > 0 && given < context)
    throw Error(fmt::format("{}: {} symbols at once, but only {} positions: make model.context smaller",
                            request.options.text("name"), context, given));
  return given > 0 ? given : context;
}

TransformerBlockImpl::TransformerBlockImpl(const TransformerOptions& options)
    : options_(options),
      norm1_(nullptr),
      norm2_(nullptr),
      qkv_(nullptr),
      out_(nullptr),
      widen_(nullptr),
      narrow_(nullptr) {
  const std::int64_t width = options.width;
  // What is added to the residual stream is drawn smaller the more blocks add to it.
  const double residual = kInitialDeviation / std::sqrt(2.0 * static_cast<double>(options.layers));
  norm1_ = register_module("norm1", layer_norm(options));
  qkv_ = register_module("qkv", linear(width, 3 * width));
  divide_columns(options_.ranks, qkv_, /*sections=*/3);
  out_ = register_module("out", linear(width, width, residual));
  divide_rows(options_.ranks, out_);
  norm2_ = register_module("norm2", layer_norm(options));
  widen_ = register_module("widen", linear(width, 4 * width));
  divide_columns(options_.ranks, widen_);
  narrow_ = register_module("narrow", linear(4 * width, width, residual));
  divide_rows(options_.ranks, narrow_);
}

Tensor TransformerBlockImpl::attention(const Tensor& x) {
  const std::int64_t batch = x.size(0), length = x.size(1), depth = options_.width / options_.heads;
  const std::int64_t heads = options_.heads / layer_parts(options_.ranks);  // of this rank
  const auto parts = three_parts(
      qkv_(into_parts(options_.ranks, x)).view({batch, length, 3, heads, depth}).permute({2, 0, 3, 1, 4}), 0);
  Tensor y;
  {
    const auto own = random_of_parts(options_.ranks, x.device());
    y = tenon::scaled_dot_product_attention(parts[0], parts[1], parts[2], std::nullopt,
                                            is_training() ? options_.dropout : 0.0, options_.causal);
  }
  return sum_of_parts(options_.ranks, out_, y.transpose(1, 2).reshape({batch, length, heads * depth}));
}

Tensor TransformerBlockImpl::drop(Tensor x) const {
  if (options_.dropout == 0) return x;
  return F::dropout(std::move(x), F::DropoutFuncOptions().p(options_.dropout).training(is_training()));
}

Tensor TransformerBlockImpl::perceptron(const Tensor& x) {
  const Tensor wide = widen_(into_parts(options_.ranks, x));
  if (options_.relu) return sum_of_parts(options_.ranks, narrow_, F::relu(wide, F::ReLUFuncOptions(options_.inplace)));
  // GELU's slope needs its input: there is nothing that it could overwrite. Autocast acts out here, so that the
  // backward finds operands of one dtype.
  if (narrow_->forward_override() != nullptr)
    return narrow_(gelu_of(wide, options_.exact_gelu));  // its weight may be integers
  const DeviceType kind = wide.device().type();
  const auto operand = [&](const Tensor& parameter) {
    return autocast::is_autocast_enabled(kind) ? autocast::cached_cast(wide.scalar_type(), parameter, kind) : parameter;
  };
  if (options_.ranks == nullptr)
    return gelu_linear(wide, operand(narrow_->weight), operand(narrow_->bias), options_.exact_gelu);
  const Tensor product = gelu_linear(wide, operand(narrow_->weight), Tensor(), options_.exact_gelu);
  return sum_of_parts(options_.ranks, product, narrow_->bias);
}

Tensor add_to_stream(const Tensor& x, const Tensor& branch, bool inplace) {
  return inplace && branch.scalar_type() == x.scalar_type() ? branch.add_(x) : x + branch;
}

Tensor TransformerBlockImpl::add(const Tensor& x, Tensor branch) const {
  return add_to_stream(x, drop(std::move(branch)), options_.inplace);
}

Tensor TransformerBlockImpl::forward(const Tensor& x) {
  const nn::ModuleScope scope(*this);
  const Tensor y = add(x, attention(norm1_(x)));
  return add(y, perceptron(norm2_(y)));
}

Tensor TransformerBlockImpl::forward_packed(const Tensor& x, const PackedSymbols& packed, std::int64_t layer) {
  const nn::ModuleScope scope(*this);
  const std::int64_t heads = options_.heads, depth = options_.width / heads;
  const auto parts = three_parts(qkv_(norm1_(x)).view({x.size(0), 3, heads, depth}), 1);
  const Tensor y = x + out_(attend(packed, layer, parts[0], {parts[1], parts[2]}));
  return add(y, perceptron(norm2_(y)));
}

TransformerImpl::TransformerImpl(const TransformerOptions& options) : options_(options), norm_(nullptr) {
  for (std::int64_t i = 0; i < options.layers; ++i) {
    blocks_.push_back(register_module("block" + std::to_string(i), std::make_shared<TransformerBlockImpl>(options)));
  }
  norm_ = register_module("norm", layer_norm(options));
}

Tensor TransformerImpl::forward(Tensor x) {
  const nn::ModuleScope scope(*this);
  for (std::size_t i = 0; i < blocks_.size(); ++i) x = run_block(i, x);
  return norm_(x);
}

Tensor TransformerImpl::run_block(std::size_t i, const Tensor& x) const {
  return run_part(
      options_.checkpoint.at(static_cast<std::int64_t>(i)),
      [block = blocks_[i]](const Tensor& t) { return block->forward(t); }, x);
}

void TransformerImpl::append_to(nn::Sequential& layers) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    // The model, which owns the layers' modules, outlives them.
    layers->push_back("block" + std::to_string(i), Layer([this, i](const Tensor& x) { return run_block(i, x); },
                                                         LayerImpl::Owned{{"block", blocks_[i]}}));
  }
  layers->push_back("norm", norm_);
}

Tensor TransformerImpl::forward_packed(Tensor x, const PackedSymbols& packed) {
  const nn::ModuleScope scope(*this);
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    x = blocks_[i]->forward_packed(x, packed, static_cast<std::int64_t>(i));
  return norm_(x);
}

}  // namespace tenon::train
