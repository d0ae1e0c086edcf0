// llama: a language model of the Llama 3 family (Touvron et al., 2023; Grattafiori et al., 2024): root-mean-square
// normalisation, rotary positions, attention whose keys and values serve several heads, gated perceptrons, no biases.
#include <tenon/nn/init.h>
#include <tenon/nn/modules/embedding.h>
#include <tenon/ops/ops.h>
#include <tenon/train/checkpointed.h>
#include <tenon/train/models/llama_layers.h>
#include <tenon/train/models/transformer.h>

#include <vector>

namespace tenon::train {
namespace {

struct LlamaBlockImpl : nn::Module {
  explicit LlamaBlockImpl(const LlamaSize& size) : size(size) {
    norm1 = register_module("norm1", rms_norm_of(size.width));
    attention = register_module("attention", std::make_shared<LlamaAttentionImpl>(size));
    norm2 = register_module("norm2", rms_norm_of(size.width));
    perceptron = register_module("perceptron", std::make_shared<GatedPerceptronImpl>(size));
  }

  Tensor forward(const Tensor& x, RotaryImpl& rotary) {
    const nn::ModuleScope scope(*this);
    const Tensor y = add_branch(size, x, attention->forward(norm1(x), rotary), is_training());
    return add_branch(size, y, perceptron->forward(norm2(y)), is_training());
  }

  Tensor forward_packed(const Tensor& x, RotaryImpl& rotary, const PackedSymbols& packed, std::int64_t layer) {
    const nn::ModuleScope scope(*this);
    const Tensor y = x + attention->forward_packed(norm1(x), rotary, packed, layer);
    return y + perceptron->forward(norm2(y));
  }

  LlamaSize size;
  nn::RMSNorm norm1{nullptr}, norm2{nullptr};
  std::shared_ptr<LlamaAttentionImpl> attention;
  std::shared_ptr<GatedPerceptronImpl> perceptron;
};

struct LlamaImpl : nn::Module {
  explicit LlamaImpl(const ModelRequest& request) : checkpoint(request.checkpoint) {
    LlamaSize size = llama_size(request);
    size.rotary_factor = request.options.real("rotary_factor");
    symbols = register_module("symbols", nn::Embedding(size.vocabulary, size.width));
    nn::init::normal_(symbols->weight, 0, kInitialDeviation);
    rotary = register_module("rotary", std::make_shared<RotaryImpl>(size, request.data.context));
    for (std::int64_t i = 0; i < size.layers; ++i)
      blocks.push_back(register_module("block" + std::to_string(i), std::make_shared<LlamaBlockImpl>(size)));
    last_norm = register_module("norm", rms_norm_of(size.width));
    if (!size.tied) head = register_module("head", projection(size.width, size.vocabulary));
  }

  Tensor forward(const Tensor& tokens) {
    const nn::ModuleScope scope(*this);
    return logits(before_head(tokens).hidden);
  }

  HeadInput before_head(const Tensor& tokens) {
    Tensor x = symbols(tokens);
    for (std::size_t i = 0; i < blocks.size(); ++i) x = run_block(i, x);
    return {.hidden = last_norm(x), .weight = output_weight(), .bias = {}};
  }

  Tensor run_block(std::size_t i, const Tensor& x) {
    return run_part(
        checkpoint.at(static_cast<std::int64_t>(i)),
        [block = blocks[i], &angles = rotary->on(x.device())](const Tensor& t) { return block->forward(t, angles); },
        x);
  }

  Tensor serve(const PackedSymbols& packed) {
    const nn::ModuleScope scope(*this);
    Tensor x = symbols(packed.symbols);
    for (std::size_t i = 0; i < blocks.size(); ++i)
      x = blocks[i]->forward_packed(x, *rotary, packed, static_cast<std::int64_t>(i));
    return logits(last_norm(x.index_select(0, packed.last)));
  }

  /// By the layer where there is one, since it may be quantized.
  Tensor logits(const Tensor& hidden) {
    return head.is_empty() ? tenon::linear(hidden, symbols->weight) : head(hidden);
  }

  const Tensor& output_weight() const { return head.is_empty() ? symbols->weight : head->weight; }

  CheckpointedBlocks checkpoint;
  nn::Embedding symbols{nullptr};
  std::shared_ptr<RotaryImpl> rotary;
  std::vector<std::shared_ptr<LlamaBlockImpl>> blocks;
  nn::RMSNorm last_norm{nullptr};
  nn::Linear head{nullptr};
};
TENON_MODULE(Llama);

ModelLayers layers_of(const Llama& llama) {
  ModelLayers stages;
  stages.layers = nn::Sequential();
  stages.layers->push_back("symbols",
                           Layer([llama = llama](const Tensor& tokens) mutable { return llama->symbols(tokens); },
                                 LayerImpl::Owned{{"symbols", llama->symbols.ptr()}, {"rotary", llama->rotary}}));
  for (std::size_t i = 0; i < llama->blocks.size(); ++i)
    stages.layers->push_back("block" + std::to_string(i),
                             Layer([llama = llama, i](const Tensor& x) mutable { return llama->run_block(i, x); },
                                   LayerImpl::Owned{{"block", llama->blocks[i]}}));
  stages.layers->push_back("norm", llama->last_norm);
  stages.append_head(llama->head, llama->symbols->weight);
  return stages;
}

}  // namespace

Model make_llama(const ModelRequest& request) {
  const LlamaSize size = llama_size(request);
  Llama llama(request);
  Model model = language_model_of(llama);
  model.stages = layers_of(llama);
  model.serve = [llama](const PackedSymbols& packed) mutable { return llama->serve(packed); };
  model.cache = {.layers = size.layers, .heads = size.kv_heads, .depth = size.depth()};
  return model;
}

}  // namespace tenon::train
