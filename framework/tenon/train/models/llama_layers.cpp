// Layers of the Llama family.
#include <tenon/train/models/llama_layers.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/functional/activation.h>
#include <tenon/nn/functional/dropout.h>
#include <tenon/nn/init.h>
#include <tenon/nn/parameter.h>
#include <tenon/ops/nn/attention.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/literal.h>
#include <tenon/train/models/transformer.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace tenon::train {

namespace F = nn::functional;

namespace {

constexpr double kRmsEpsilon = 1e-5;

/// Radians that a pair turns by from one position to the next. Of Llama 3.1 and later: pairs that turn less than once
/// in a quarter of the 8,192 positions of the first training are slower by a factor, those that turn four times as
/// often are as they were, with a ramp between the two (Grattafiori et al., 2024).
double turn(const LlamaSize& size, std::int64_t pair) {
  constexpr double kTrained = 8192, kLow = 1, kHigh = 4;
  const double turn = std::pow(size.rotary_base, -2 * static_cast<double>(pair) / static_cast<double>(size.depth()));
  if (size.rotary_factor == 1) return turn;
  const double turns = kTrained * turn / (2 * std::numbers::pi);
  const double kept = std::clamp((turns - kLow) / (kHigh - kLow), 0.0, 1.0);
  return (1 - kept) * turn / size.rotary_factor + kept * turn;
}

}  // namespace

LlamaSize llama_size(const ModelRequest& request) {
  const Options& model = request.options;
  LlamaSize size{.width = model.integer("hidden"),
                 .layers = model.integer("layers"),
                 .heads = model.integer("heads"),
                 .kv_heads = model.integer("kv_heads"),
                 .inner = model.integer("intermediate"),
                 .vocabulary = request.data.vocabulary,
                 .tied = model.boolean("tied"),
                 .dropout = model.real("dropout"),
                 .inplace = request.inplace_activations,
                 .ranks = request.tensor_parallel};
  if (size.kv_heads == 0) size.kv_heads = size.heads;
  if (size.inner == 0) size.inner = 4 * size.width;
  if (size.width % (2 * size.heads) != 0)
    throw ConfigError(
        fmt::format("{}: model.hidden = {} is not a multiple of twice model.heads = {}: a head's values are "
                    "rotated in pairs",
                    model.text("name"), size.width, size.heads));
  if (size.heads % size.kv_heads != 0)
    throw ConfigError(
        fmt::format("model.heads = {} is not divisible by model.kv_heads = {}", size.heads, size.kv_heads));
  own_part(size.ranks, size.kv_heads, "model.kv_heads");
  own_part(size.ranks, size.inner, "model.intermediate");
  return size;
}

nn::Linear projection(std::int64_t in, std::int64_t out, std::int64_t residual) {
  nn::Linear layer(nn::LinearOptions(in, out).bias(false));
  const double share = residual > 0 ? std::sqrt(2.0 * static_cast<double>(residual)) : 1;
  nn::init::normal_(layer->weight, 0, kInitialDeviation / share);
  return layer;
}

nn::RMSNorm rms_norm_of(std::int64_t width) { return nn::RMSNorm(nn::RMSNormOptions({width}).eps(kRmsEpsilon)); }

Tensor add_branch(const LlamaSize& size, const Tensor& x, Tensor branch, bool training) {
  if (size.dropout > 0)
    branch = F::dropout(std::move(branch), F::DropoutFuncOptions().p(size.dropout).training(training));
  return add_to_stream(x, branch, size.inplace);
}

RotaryImpl::RotaryImpl(const LlamaSize& size, std::int64_t positions) {
  const std::int64_t pairs = size.depth() / 2;
  std::vector<double> turns, cosines, sines;
  for (std::int64_t pair = 0; pair < pairs; ++pair) turns.push_back(turn(size, pair));
  for (std::int64_t position = 0; position < positions; ++position) {
    for (const double each : turns) {
      cosines.push_back(std::cos(static_cast<double>(position) * each));
      sines.push_back(std::sin(static_cast<double>(position) * each));
    }
  }
  const auto table = [&](const char* name, const std::vector<double>& values) {
    NoGradGuard no_grad;
    Tensor& buffer = register_buffer(name, nn::new_buffer({positions, pairs}, 0.0));
    buffer.copy_(tenon::tensor(values, TensorOptions(buffer.scalar_type())).view({positions, pairs}));
  };
  table("cosine", cosines);
  table("sine", sines);
}

Tensor RotaryImpl::forward(const Tensor& x) {
  const nn::ModuleScope scope(*this);
  return rotated(x, buffers_["cosine"].narrow(0, 0, x.size(-2)), buffers_["sine"].narrow(0, 0, x.size(-2)));
}

Tensor RotaryImpl::forward_at(const Tensor& x, const Tensor& positions) {
  const auto at = [&](const char* name) { return buffers_[name].index_select(0, positions).unsqueeze(1); };
  return rotated(x, at("cosine"), at("sine"));
}

RotaryImpl& RotaryImpl::on(Device device) {
  if (buffers_["cosine"].device() == device) return *this;
  for (const auto& copy : copies_)
    if (copy->buffers_["cosine"].device() == device) return *copy;
  const NoGradGuard no_grad;
  PurposeGuard purpose(Purpose::kParameter);
  const std::shared_ptr<RotaryImpl> copy(new RotaryImpl);
  for (const auto& buffer : buffers_)
    copy->register_buffer(buffer.key(), buffer.value().to(device, buffer.value().scalar_type()));
  copies_.push_back(copy);
  return *copy;
}

Tensor RotaryImpl::rotated(const Tensor& x, const Tensor& cosine, const Tensor& sine) {
  const auto halves = x.chunk(2, -1);
  return tenon::cat({halves[0] * cosine - halves[1] * sine, halves[1] * cosine + halves[0] * sine}, -1);
}

LlamaAttentionImpl::LlamaAttentionImpl(const LlamaSize& size) : size_(size) {
  const std::int64_t width = size.width, shared = size.kv_heads * size.depth();
  query_ = register_module("query", projection(width, width));
  key_ = register_module("key", projection(width, shared));
  value_ = register_module("value", projection(width, shared));
  out_ = register_module("out", projection(width, width, size.layers));
  for (nn::Linear* layer : {&query_, &key_, &value_}) divide_columns(size_.ranks, *layer);
  divide_rows(size_.ranks, out_);
}

/// Heads that share a key stand in a dimension of their own, over which keys and values broadcast.
Tensor LlamaAttentionImpl::forward(const Tensor& x, RotaryImpl& rotary) {
  const nn::ModuleScope scope(*this);
  const std::int64_t batch = x.size(0), length = x.size(1), depth = size_.depth();
  const std::int64_t shared = size_.kv_heads / layer_parts(size_.ranks), each = size_.heads / size_.kv_heads;
  const Tensor own = into_parts(size_.ranks, x);
  const auto split = [&](const Tensor& t, std::int64_t together) {
    return t.view({batch, length, shared, together, depth}).permute({0, 2, 3, 1, 4});
  };
  Tensor y;
  {
    const auto random = random_of_parts(size_.ranks, x.device());
    y = tenon::scaled_dot_product_attention(rotary.forward(split(query_(own), each)),
                                            rotary.forward(split(key_(own), 1)), split(value_(own), 1), std::nullopt,
                                            is_training() ? size_.dropout : 0.0, /*is_causal=*/true);
  }
  return sum_of_parts(size_.ranks, out_, y.permute({0, 3, 1, 2, 4}).reshape({batch, length, shared * each * depth}));
}

Tensor LlamaAttentionImpl::forward_packed(const Tensor& x, RotaryImpl& rotary, const PackedSymbols& packed,
                                          std::int64_t layer) {
  const nn::ModuleScope scope(*this);
  const auto split = [&](const Tensor& t, std::int64_t heads) { return t.view({x.size(0), heads, size_.depth()}); };
  const Tensor queries = rotary.forward_at(split(query_(x), size_.heads), packed.positions);
  const Tensor keys = rotary.forward_at(split(key_(x), size_.kv_heads), packed.positions);
  return out_(attend(packed, layer, queries, {keys, split(value_(x), size_.kv_heads)}));
}

GatedPerceptronImpl::GatedPerceptronImpl(const LlamaSize& size) : ranks_(size.ranks) {
  gate_ = register_module("gate", projection(size.width, size.inner));
  up_ = register_module("up", projection(size.width, size.inner));
  down_ = register_module("down", projection(size.inner, size.width, size.layers));
  for (nn::Linear* layer : {&gate_, &up_}) divide_columns(ranks_, *layer);
  divide_rows(ranks_, down_);
}

Tensor GatedPerceptronImpl::forward(const Tensor& x) {
  const nn::ModuleScope scope(*this);
  const Tensor own = into_parts(ranks_, x);
  return sum_of_parts(ranks_, down_, F::silu(gate_(own)) * up_(own));
}

}  // namespace tenon::train
