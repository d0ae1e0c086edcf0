// gpt: a language model of causal transformer blocks, as GPT-2 (Radford et al., 2019): learned positions, the table of
// symbols also serving as the output layer. gpt2 is the same model, and has the published sizes as presets.
#include <tenon/nn/functional/dropout.h>
#include <tenon/nn/init.h>
#include <tenon/nn/modules/embedding.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/nn/parameter.h>
#include <tenon/ops/ops.h>
#include <tenon/train/models/transformer.h>

#include <fmt/format.h>

#include <utility>

namespace tenon::train {
namespace {

namespace F = nn::functional;

struct GptImpl : nn::Module {
  explicit GptImpl(const ModelRequest& request) : dropout(request.options.real("dropout")) {
    const TransformerOptions options = transformer_options(request, /*causal=*/true);
    symbols = register_module("symbols", nn::Embedding(request.data.vocabulary, options.width));
    nn::init::normal_(symbols->weight, 0, 0.02);
    positions = register_parameter("positions", nn::new_parameter({positions_of(request), options.width}));
    nn::init::normal_(positions, 0, 0.02);
    body = register_module("body", Transformer(options));
    if (!request.options.boolean("tied")) {
      head = register_module("head", nn::Linear(nn::LinearOptions(options.width, request.data.vocabulary).bias(false)));
      nn::init::normal_(head->weight, 0, 0.02);
    }
  }

  Tensor forward(const Tensor& tokens) {
    const nn::ModuleScope scope(*this);
    return logits(before_head(tokens).hidden);
  }

  HeadInput before_head(const Tensor& tokens) {
    const std::int64_t length = tokens.size(1);
    if (length > positions.size(0)) {
      throw Error(fmt::format("gpt: {} symbols at once, but only {} positions", length, positions.size(0)));
    }
    return {.hidden = body(embedded(tokens)), .weight = output_weight(), .bias = {}};
  }

  Tensor embedded(const Tensor& tokens) {
    const Tensor x = symbols(tokens) + positions.narrow(0, 0, tokens.size(1));
    return dropout > 0 ? F::dropout(x, F::DropoutFuncOptions().p(dropout).training(is_training())) : x;
  }

  Tensor serve(const PackedSymbols& packed) {
    const nn::ModuleScope scope(*this);
    const Tensor x = symbols(packed.symbols) + positions.index_select(0, packed.positions);
    return logits(body->forward_packed(x, packed).index_select(0, packed.last));
  }

  /// By the layer where there is one, since it may be quantized.
  Tensor logits(const Tensor& hidden) {
    return head.is_empty() ? tenon::linear(hidden, symbols->weight) : head(hidden);
  }

  const Tensor& output_weight() const { return head.is_empty() ? symbols->weight : head->weight; }

  double dropout;
  nn::Embedding symbols{nullptr};
  Tensor positions;
  Transformer body{nullptr};
  nn::Linear head{nullptr};
};
TENON_MODULE(Gpt);

/// The embedding, which also owns the positions.
struct EmbeddingLayerImpl : nn::Module {
  explicit EmbeddingLayerImpl(const Gpt& model) : gpt(model) {
    register_module("symbols", gpt->symbols);
    register_parameter("positions", gpt->positions);
  }
  Tensor forward(const Tensor& tokens) {
    const nn::ModuleScope scope(*this);
    return gpt->embedded(tokens);
  }
  Gpt gpt;
};
TENON_MODULE(EmbeddingLayer);

ModelLayers layers_of(const Gpt& gpt) {
  ModelLayers stages;
  stages.layers = nn::Sequential();
  stages.layers->push_back("symbols", EmbeddingLayer(gpt));
  gpt->body->append_to(stages.layers);
  stages.append_head(gpt->head, gpt->symbols->weight);
  return stages;
}

}  // namespace

Model make_gpt(const ModelRequest& request) {
  const TransformerOptions options = transformer_options(request, /*causal=*/true);
  Gpt gpt(request);
  Model model = language_model_of(gpt);
  model.stages = layers_of(gpt);
  model.serve = [gpt](const PackedSymbols& packed) mutable { return gpt->serve(packed); };
  model.cache = {.layers = options.layers, .heads = options.heads, .depth = options.width / options.heads};
  model.activations = activation_form(options, request.data.context);
  const auto logits = static_cast<double>(request.data.context * request.data.vocabulary);
  const auto width = static_cast<double>(options.width), table = static_cast<double>(request.data.vocabulary) * width;
  // Logits, and their logarithms of probabilities; then a gradient of each. Under autocast logits are there in 16 bits
  // too, and so are gradients of logits and table.
  const double half = options.mixed ? 0.5 : 0;
  model.activations.head += logits;
  model.activations.head_passing = (1 + half) * logits;
  model.gradients = gradient_form(options, request.data.context);
  model.gradients.head_passing = 2 * logits;
  model.gradients.head_late_passing = (1 - half) * logits;
  model.gradients.chunk_passing = (4 - half) * logits;
  model.gradients.head_parameters = table + 2 * width;  // and the last normalisation
  model.gradients.head_beside = half * table;
  model.gradients.chunk_input = (1 - half) * static_cast<double>(request.data.context) * width;
  model.gradients.chunk_parameters = (1 - half) * table;
  model.casts = cast_form(options);
  model.casts.head = half * table;
  model.gradients.embedding = request.options.boolean("tied") ? 2 * table : table;
  model.gradients.embedding_parameters = table;
  if (options.lora_rank == 0) return model;
  // Neither the table nor the last normalisation learns.
  if (!has_low_rank_form(options)) model.activations.blocks = 0;
  model.activations.frozen_head = std::exchange(model.casts.head, 0.0);
  model.gradients.head_parameters = model.gradients.head_beside = model.gradients.chunk_parameters = 0;
  model.gradients.embedding = model.gradients.embedding_parameters = 0;
  return model;
}

}  // namespace tenon::train
