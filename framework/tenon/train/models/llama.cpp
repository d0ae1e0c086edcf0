// llama: a language model of the Llama 3 family (Touvron et al., 2023; Grattafiori et al., 2024): root-mean-square
// normalisation, rotary positions, attention whose keys and values serve several heads, gated perceptrons, no biases.
#include <tenon/autograd/grad_mode.h>
#include <tenon/nn/functional/activation.h>
#include <tenon/nn/functional/dropout.h>
#include <tenon/nn/init.h>
#include <tenon/nn/modules/embedding.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/nn/modules/normalization.h>
#include <tenon/nn/parameter.h>
#include <tenon/ops/nn/attention.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/literal.h>
#include <tenon/train/checkpointed.h>
#include <tenon/train/model.h>
#include <tenon/train/models/transformer.h>

#include <fmt/format.h>

#include <cmath>
#include <vector>

namespace tenon::train {
namespace {

namespace F = nn::functional;

constexpr double kRotaryBase = 500000;
constexpr double kEpsilon = 1e-5;

struct LlamaSize {
  std::int64_t width = 0, layers = 0, heads = 0, kv_heads = 0, inner = 0, vocabulary = 0;
  bool tied = false;
};

/// The published sizes: Llama 3.2 1B and 3B, Llama 3.1 8B and 70B.
struct Preset {
  const char* name;
  LlamaSize size;
};
constexpr Preset kPresets[] = {
    {"1B", {2048, 16, 32, 8, 8192, 128256, true}},
    {"3B", {3072, 28, 24, 8, 8192, 128256, true}},
    {"8B", {4096, 32, 32, 8, 14336, 128256, false}},
    {"70B", {8192, 80, 64, 8, 28672, 128256, false}},
};

/// Throws Error where the heads do not divide the width, or its keys' heads the heads.
LlamaSize size_of(const ModelRequest& request) {
  const Options& model = request.options;
  for (const Preset& preset : kPresets) {
    if (model.text("preset") == preset.name) return preset.size;
  }
  LlamaSize size{.width = model.integer("hidden"),
                 .layers = model.integer("layers"),
                 .heads = model.integer("heads"),
                 .kv_heads = model.integer("kv_heads"),
                 .inner = model.integer("intermediate"),
                 .vocabulary = request.data.vocabulary,
                 .tied = model.boolean("tied")};
  if (size.kv_heads == 0) size.kv_heads = size.heads;
  if (size.inner == 0) size.inner = 4 * size.width;
  if (size.width % (2 * size.heads) != 0)
    throw Error(
        fmt::format("llama: model.hidden = {} is not a multiple of twice model.heads = {}: a head's values are "
                    "rotated in pairs",
                    size.width, size.heads));
  if (size.heads % size.kv_heads != 0)
    throw Error(fmt::format("model.heads = {} is not divisible by model.kv_heads = {}", size.heads, size.kv_heads));
  return size;
}

nn::Linear projection(std::int64_t in, std::int64_t out, double deviation = kInitialDeviation) {
  nn::Linear layer(nn::LinearOptions(in, out).bias(false));
  nn::init::normal_(layer->weight, 0, deviation);
  return layer;
}

nn::RMSNorm norm(std::int64_t width) { return nn::RMSNorm(nn::RMSNormOptions({width}).eps(kEpsilon)); }

/// Cosine and sine of each position's angles (Su et al., 2021): (positions, depth / 2) each.
struct RotaryImpl : nn::Module {
  RotaryImpl(std::int64_t positions, std::int64_t depth) {
    const std::int64_t pairs = depth / 2;
    std::vector<double> cosines, sines;
    for (std::int64_t position = 0; position < positions; ++position) {
      for (std::int64_t pair = 0; pair < pairs; ++pair) {
        const double angle = static_cast<double>(position) /
                             std::pow(kRotaryBase, 2 * static_cast<double>(pair) / static_cast<double>(depth));
        cosines.push_back(std::cos(angle));
        sines.push_back(std::sin(angle));
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

  /// Rotates pairs of x (…, length, depth) by the angles of positions 0 … length - 1.
  Tensor forward(const Tensor& x) {
    const Tensor cosine = buffers_["cosine"].narrow(0, 0, x.size(-2)), sine = buffers_["sine"].narrow(0, 0, x.size(-2));
    const auto halves = x.chunk(2, -1);
    return tenon::cat({halves[0] * cosine - halves[1] * sine, halves[1] * cosine + halves[0] * sine}, -1);
  }
};

struct LlamaBlockImpl : nn::Module {
  LlamaBlockImpl(const LlamaSize& size, double dropout, bool inplace) : size(size), dropout(dropout), inplace(inplace) {
    const std::int64_t width = size.width, shared = size.kv_heads * (width / size.heads);
    const double residual = kInitialDeviation / std::sqrt(2.0 * static_cast<double>(size.layers));
    norm1 = register_module("norm1", norm(width));
    query = register_module("query", projection(width, width));
    key = register_module("key", projection(width, shared));
    value = register_module("value", projection(width, shared));
    out = register_module("out", projection(width, width, residual));
    norm2 = register_module("norm2", norm(width));
    gate = register_module("gate", projection(width, size.inner));
    up = register_module("up", projection(width, size.inner));
    down = register_module("down", projection(size.inner, width, residual));
  }

  Tensor forward(const Tensor& x, RotaryImpl& rotary) {
    const Tensor y = add(x, attention(norm1(x), rotary));
    const Tensor z = norm2(y);
    return add(y, down(F::silu(gate(z)) * up(z)));
  }

  /// Heads that share a key stand in a dimension of their own, over which keys and values broadcast.
  Tensor attention(const Tensor& x, RotaryImpl& rotary) {
    const std::int64_t batch = x.size(0), length = x.size(1), depth = size.width / size.heads;
    const std::int64_t shared = size.kv_heads, each = size.heads / size.kv_heads;
    const auto split = [&](const Tensor& t, std::int64_t together) {
      return t.view({batch, length, shared, together, depth}).permute({0, 2, 3, 1, 4});
    };
    const Tensor y = tenon::scaled_dot_product_attention(
        rotary.forward(split(query(x), each)), rotary.forward(split(key(x), 1)), split(value(x), 1), std::nullopt,
        is_training() ? dropout : 0.0, /*is_causal=*/true);
    return out(y.permute({0, 3, 1, 2, 4}).reshape({batch, length, size.width}));
  }

  Tensor add(const Tensor& x, Tensor branch) const {
    if (dropout > 0) branch = F::dropout(std::move(branch), F::DropoutFuncOptions().p(dropout).training(is_training()));
    return inplace ? branch.add_(x) : x + branch;
  }

  LlamaSize size;
  double dropout;
  bool inplace;
  nn::RMSNorm norm1{nullptr}, norm2{nullptr};
  nn::Linear query{nullptr}, key{nullptr}, value{nullptr}, out{nullptr}, gate{nullptr}, up{nullptr}, down{nullptr};
};

struct LlamaImpl : nn::Module {
  explicit LlamaImpl(const ModelRequest& request) : checkpoint(request.checkpoint) {
    const LlamaSize size = size_of(request);
    if (size.vocabulary < request.data.vocabulary)
      throw Error(fmt::format("llama: the text has {} symbols, the preset room for {}", request.data.vocabulary,
                              size.vocabulary));
    symbols = register_module("symbols", nn::Embedding(size.vocabulary, size.width));
    nn::init::normal_(symbols->weight, 0, kInitialDeviation);
    rotary = register_module("rotary", std::make_shared<RotaryImpl>(request.data.context, size.width / size.heads));
    for (std::int64_t i = 0; i < size.layers; ++i) {
      blocks.push_back(register_module(
          "block" + std::to_string(i),
          std::make_shared<LlamaBlockImpl>(size, request.options.real("dropout"), request.inplace_activations)));
    }
    last_norm = register_module("norm", norm(size.width));
    if (!size.tied) head = register_module("head", projection(size.width, size.vocabulary));
  }

  Tensor forward(const Tensor& tokens) {
    const HeadInput input = before_head(tokens);
    return tenon::linear(input.hidden, input.weight);
  }

  HeadInput before_head(const Tensor& tokens) {
    Tensor x = symbols(tokens);
    for (const auto& block : blocks) {
      x = run_part(
          checkpoint, [block, this](const Tensor& t) { return block->forward(t, *rotary); }, x);
    }
    return {.hidden = last_norm(x), .weight = head.is_empty() ? symbols->weight : head->weight, .bias = {}};
  }

  bool checkpoint;
  nn::Embedding symbols{nullptr};
  std::shared_ptr<RotaryImpl> rotary;
  std::vector<std::shared_ptr<LlamaBlockImpl>> blocks;
  nn::RMSNorm last_norm{nullptr};
  nn::Linear head{nullptr};
};
TENON_MODULE(Llama);

}  // namespace

Model make_llama(const ModelRequest& request) { return language_model_of(Llama(request)); }

}  // namespace tenon::train
