// lstm-lm: a recurrent language model (Zaremba et al., 2014; the shared table after Press and Wolf, 2016): symbols into
// `layers` LSTMs of `hidden` units, each from a state of zeros at the start of a window.
#include <tenon/nn/functional/dropout.h>
#include <tenon/nn/init.h>
#include <tenon/nn/modules/embedding.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/nn/modules/sequence/rnn.h>
#include <tenon/nn/parameter.h>
#include <tenon/ops/ops.h>
#include <tenon/train/checkpointed.h>
#include <tenon/train/model.h>

namespace tenon::train {
namespace {

namespace F = nn::functional;

struct LstmLmImpl : nn::Module {
  explicit LstmLmImpl(const ModelRequest& request)
      : dropout(request.options.real("dropout")), inplace(request.inplace_activations), checkpoint(request.checkpoint) {
    const std::int64_t width = request.options.integer("hidden"), vocabulary = request.data.vocabulary;
    symbols = register_module("symbols", nn::Embedding(vocabulary, width));
    nn::init::normal_(symbols->weight, 0, 0.1);
    for (std::int64_t i = 0; i < request.options.integer("layers"); ++i) {
      layers.push_back(
          register_module("layer" + std::to_string(i), nn::LSTM(nn::LSTMOptions(width, width).batch_first(true))));
    }
    if (!request.options.boolean("tied")) head = register_module("head", nn::Linear(width, vocabulary));
    bias = head.is_empty() ? register_parameter("bias", nn::init::zeros_(nn::new_parameter({vocabulary}))) : Tensor();
  }

  Tensor forward(const Tensor& tokens) {
    const nn::ModuleScope scope(*this);
    const HeadInput input = before_head(tokens);
    // By the layer where there is one, since it may be quantized.
    return head.is_empty() ? tenon::linear(input.hidden, input.weight, input.bias) : head(input.hidden);
  }

  HeadInput before_head(const Tensor& tokens) {
    Tensor x = drop(symbols(tokens), inplace);
    std::int64_t number = 0;
    for (const auto& layer : layers) {
      x = run_part(
          checkpoint.at(number++),
          [this, layer](const Tensor& t) { return drop(std::get<0>(layer->forward(t)), false); }, x);
    }
    if (head.is_empty()) return {.hidden = x, .weight = symbols->weight, .bias = bias};
    return {.hidden = x, .weight = head->weight, .bias = head->bias};
  }
  /// Not in place behind a layer, whose backward needs what it gave.
  Tensor drop(const Tensor& x, bool in_place) const {
    if (dropout == 0) return x;
    return F::dropout(x, F::DropoutFuncOptions().p(dropout).training(is_training()).inplace(in_place));
  }

  double dropout;
  bool inplace;
  CheckpointedBlocks checkpoint;
  nn::Embedding symbols{nullptr};
  std::vector<std::shared_ptr<nn::LSTMImpl>> layers;
  nn::Linear head{nullptr};
  Tensor bias;
};
TENON_MODULE(LstmLm);

}  // namespace

Model make_lstm_lm(const ModelRequest& request) { return language_model_of(LstmLm(request)); }

}  // namespace tenon::train
