// bert: an encoder that tells masked symbols from what is around them (Devlin et al., 2018): blocks that normalise
// after they add ("post-norm"), and a head that shares the table of symbols.
#include <tenon/nn/functional/dropout.h>
#include <tenon/nn/init.h>
#include <tenon/nn/modules/embedding.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/nn/modules/normalization.h>
#include <tenon/nn/parameter.h>
#include <tenon/ops/nn/attention.h>
#include <tenon/ops/ops.h>
#include <tenon/train/checkpointed.h>
#include <tenon/train/models/transformer.h>

#include <fmt/format.h>

#include <vector>

namespace tenon::train {
namespace {

namespace F = nn::functional;

constexpr double kBertEpsilon = 1e-12;
constexpr std::int64_t kSentences = 2;  // that a window may be made of; all of ours are made of one

nn::Linear dense(std::int64_t in, std::int64_t out) {
  nn::Linear layer(in, out);
  nn::init::normal_(layer->weight, 0, kInitialDeviation);
  nn::init::zeros_(layer->bias);
  return layer;
}

nn::LayerNorm bert_norm(std::int64_t width) { return nn::LayerNorm(nn::LayerNormOptions({width}).eps(kBertEpsilon)); }

struct BertBlockImpl : nn::Module {
  explicit BertBlockImpl(const TransformerOptions& options) : options(options) {
    const std::int64_t width = options.width;
    qkv = register_module("qkv", dense(width, 3 * width));
    out = register_module("out", dense(width, width));
    norm1 = register_module("norm1", bert_norm(width));
    widen = register_module("widen", dense(width, 4 * width));
    narrow = register_module("narrow", dense(4 * width, width));
    norm2 = register_module("norm2", bert_norm(width));
  }

  Tensor forward(const Tensor& x) {
    const nn::ModuleScope scope(*this);
    const Tensor y = norm1(add(x, attention(x)));
    const Tensor wide = widen(y);
    return norm2(add(y, narrow(options.relu ? tenon::relu(wide) : tenon::gelu(wide))));
  }

  Tensor attention(const Tensor& x) {
    const std::int64_t batch = x.size(0), length = x.size(1), depth = options.width / options.heads;
    const auto parts = qkv(x).view({batch, length, 3, options.heads, depth}).permute({2, 0, 3, 1, 4}).unbind(0);
    const Tensor y = tenon::scaled_dot_product_attention(parts[0], parts[1], parts[2], std::nullopt,
                                                         is_training() ? options.dropout : 0.0);
    return out(y.transpose(1, 2).reshape({batch, length, options.width}));
  }

  Tensor add(const Tensor& x, Tensor branch) const {
    if (options.dropout > 0)
      branch = F::dropout(std::move(branch), F::DropoutFuncOptions().p(options.dropout).training(is_training()));
    return add_to_stream(x, branch, options.inplace);
  }

  TransformerOptions options;
  nn::Linear qkv{nullptr}, out{nullptr}, widen{nullptr}, narrow{nullptr};
  nn::LayerNorm norm1{nullptr}, norm2{nullptr};
};

struct BertImpl : nn::Module {
  BertImpl(const ModelRequest& request, const TransformerOptions& options) : options(options) {
    const auto table = [&](const char* name, std::int64_t rows) {
      Tensor weight = register_parameter(name, nn::new_parameter({rows, options.width}));
      nn::init::normal_(weight, 0, kInitialDeviation);
      return weight;
    };
    symbols = register_module("symbols", nn::Embedding(request.data.vocabulary, options.width));
    nn::init::normal_(symbols->weight, 0, kInitialDeviation);
    positions = table("positions", positions_of(request));
    sentences = table("sentences", kSentences);
    norm1 = register_module("norm", bert_norm(options.width));
    for (std::int64_t i = 0; i < options.layers; ++i)
      blocks.push_back(register_module("block" + std::to_string(i), std::make_shared<BertBlockImpl>(options)));
    transform = register_module("transform", dense(options.width, options.width));
    norm2 = register_module("transform_norm", bert_norm(options.width));
    bias = register_parameter("bias", nn::new_parameter({request.data.vocabulary}));
    nn::init::zeros_(bias);
  }

  Tensor forward(const Tensor& tokens) {
    const nn::ModuleScope scope(*this);
    const HeadInput input = before_head(tokens);
    return tenon::linear(input.hidden, input.weight, input.bias);
  }

  HeadInput before_head(const Tensor& tokens) {
    Tensor x = symbols(tokens) + (positions.narrow(0, 0, tokens.size(1)) + sentences.narrow(0, 0, 1));
    x = norm1(x);
    if (options.dropout > 0) x = F::dropout(x, F::DropoutFuncOptions().p(options.dropout).training(is_training()));
    std::int64_t number = 0;
    for (const auto& block : blocks) {
      x = run_part(
          options.checkpoint.at(number++), [block](const Tensor& t) { return block->forward(t); }, x);
    }
    return {.hidden = norm2(tenon::gelu(transform(x))), .weight = symbols->weight, .bias = bias};
  }

  TransformerOptions options;
  nn::Embedding symbols{nullptr};
  Tensor positions, sentences, bias;
  nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  std::vector<std::shared_ptr<BertBlockImpl>> blocks;
  nn::Linear transform{nullptr};
};
TENON_MODULE(Bert);

}  // namespace

Model make_bert(const ModelRequest& request) {
  return language_model_of(Bert(request, transformer_options(request, /*causal=*/false)));
}

}  // namespace tenon::train
