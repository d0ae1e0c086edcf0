// Transformer blocks.
#include <tenon/train/models/transformer.h>

#include <tenon/nn/functional/activation.h>
#include <tenon/nn/functional/dropout.h>
#include <tenon/nn/init.h>
#include <tenon/ops/nn/attention.h>
#include <tenon/ops/ops.h>
#include <tenon/train/checkpointed.h>

#include <fmt/format.h>

#include <cmath>

namespace tenon::train {

namespace F = nn::functional;

namespace {

nn::Linear linear(std::int64_t in, std::int64_t out, double deviation = kInitialDeviation) {
  nn::Linear layer(in, out);
  nn::init::normal_(layer->weight, 0, deviation);
  nn::init::zeros_(layer->bias);
  return layer;
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
                             .checkpoint = request.checkpoint};
  if (options.width % options.heads != 0) {
    throw Error(fmt::format("model.hidden = {} is not divisible by model.heads = {}", options.width, options.heads));
  }
  return options;
}

ActivationForm activation_form(const TransformerOptions& options, std::int64_t length) {
  const auto positions = static_cast<double>(length);
  const double unit = positions * static_cast<double>(options.width);
  const double sums = positions * static_cast<double>(options.heads);  // of each query's weights
  const double statistics = 4 * positions;                             // mean and deviation of two normalisations
  ActivationForm form;
  form.blocks = options.layers;
  form.block_input = unit;
  form.block = (options.relu ? 12 : 16) * unit + sums + statistics;
  form.head = 2 * unit + 2 * positions;
  if (options.dropout > 0) {
    form.embedding = unit;
    form.block += 2 * unit;
  }
  return form;
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
  norm1_ = register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({width})));
  qkv_ = register_module("qkv", linear(width, 3 * width));
  out_ = register_module("out", linear(width, width, residual));
  norm2_ = register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({width})));
  widen_ = register_module("widen", linear(width, 4 * width));
  narrow_ = register_module("narrow", linear(4 * width, width, residual));
}

Tensor TransformerBlockImpl::attention(const Tensor& x) {
  const std::int64_t batch = x.size(0), length = x.size(1), width = options_.width, heads = options_.heads;
  const std::int64_t depth = width / heads;
  const auto parts = qkv_(x).view({batch, length, 3, heads, depth}).permute({2, 0, 3, 1, 4}).unbind(0);
  const Tensor y = tenon::scaled_dot_product_attention(parts[0], parts[1], parts[2], std::nullopt,
                                                       is_training() ? options_.dropout : 0.0, options_.causal);
  return out_(y.transpose(1, 2).reshape({batch, length, width}));
}

Tensor TransformerBlockImpl::drop(Tensor x) const {
  if (options_.dropout == 0) return x;
  return F::dropout(std::move(x), F::DropoutFuncOptions().p(options_.dropout).training(is_training()));
}

Tensor TransformerBlockImpl::activation(const Tensor& x) const {
  // GELU's slope needs its input: there is nothing that it could overwrite.
  return options_.relu ? F::relu(x, F::ReLUFuncOptions(options_.inplace))
                       : F::gelu(x, F::GELUFuncOptions().approximate("tanh"));
}

Tensor TransformerBlockImpl::add(const Tensor& x, Tensor branch) const {
  branch = drop(std::move(branch));
  return options_.inplace ? branch.add_(x) : x + branch;
}

Tensor TransformerBlockImpl::forward(const Tensor& x) {
  const Tensor y = add(x, attention(norm1_(x)));
  return add(y, narrow_(activation(widen_(norm2_(y)))));
}

TransformerImpl::TransformerImpl(const TransformerOptions& options) : options_(options), norm_(nullptr) {
  for (std::int64_t i = 0; i < options.layers; ++i) {
    blocks_.push_back(register_module("block" + std::to_string(i), std::make_shared<TransformerBlockImpl>(options)));
  }
  norm_ = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({options.width})));
}

Tensor TransformerImpl::forward(Tensor x) {
  for (const auto& block : blocks_) {
    x = run_part(
        options_.checkpoint, [block](const Tensor& t) { return block->forward(t); }, x);
  }
  return norm_(x);
}

}  // namespace tenon::train
