// moe: a language model whose perceptrons are mixtures of experts (Jiang et al., "Mixtral of experts", 2024): blocks as
// llama's, in which a router sends each symbol to `experts_per_token` of the gated perceptrons and none is left out. An
// uneven use of them adds to the loss (Fedus et al., "Switch Transformers", 2021, equation 4).
#include <tenon/autograd/grad_mode.h>
#include <tenon/device/device_state.h>
#include <tenon/nn/init.h>
#include <tenon/nn/modules/embedding.h>
#include <tenon/ops/ops.h>
#include <tenon/train/checkpointed.h>
#include <tenon/train/models/llama_layers.h>
#include <tenon/train/models/transformer.h>

#include <fmt/format.h>

#include <optional>
#include <vector>

namespace tenon::train {
namespace {

constexpr double kRotaryBase = 1e6;

struct ExpertsImpl : nn::Module {
  ExpertsImpl(const LlamaSize& size, std::int64_t count, std::int64_t chosen) : chosen(chosen) {
    router = register_module("router", projection(size.width, count));
    for (std::int64_t i = 0; i < count; ++i)
      experts.push_back(register_module("expert" + std::to_string(i), std::make_shared<GatedPerceptronImpl>(size)));
  }

  struct Mixed {
    Tensor values;     ///< as the input
    Tensor imbalance;  ///< 1 where all experts are used alike, up to their number where it is always the same one
  };

  /// (N, length, width). Symbols are sorted by expert, so that each works on one range of rows.
  Mixed forward(const Tensor& input) {
    const nn::ModuleScope scope(*this);
    const Tensor x = input.flatten(0, 1);
    const Tensor probabilities = router(x).softmax(-1);  // (symbols, experts)
    const auto [largest, who] = probabilities.topk(chosen, -1);
    const Tensor weights = (largest / largest.sum(-1, true)).flatten();
    const Tensor flat = who.flatten();
    const Tensor order = flat.argsort(/*stable=*/true, -1);
    const Tensor symbol = order.floor_divide(chosen);
    const std::vector<std::int64_t> counts = counts_of(flat);
    const Tensor sorted = x.index_select(0, symbol);
    std::vector<Tensor> parts;
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < experts.size(); begin += counts[i++])
      if (counts[i] > 0) parts.push_back(experts[i]->forward(sorted.narrow(0, begin, counts[i])));
    const Tensor weighted = tenon::cat(parts, 0) * weights.index_select(0, order).unsqueeze(-1);
    const Tensor values = tenon::zeros_like(x).index_add(0, symbol, weighted).view(input.sizes());
    return {values, imbalance_of(probabilities, flat)};
  }

  /// How many symbols each expert gets. Where nothing is computed all get the same, which the sum of their memory does
  /// not depend on.
  std::vector<std::int64_t> counts_of(const Tensor& who) {
    const auto count = static_cast<std::int64_t>(experts.size());
    std::vector<std::int64_t> counts;
    if (!computes) computes = device_state(who.device()).driver().properties().computes;
    if (!*computes) {
      for (std::int64_t i = 0; i < count; ++i)
        counts.push_back(who.numel() * (i + 1) / count - who.numel() * i / count);
      return counts;
    }
    const Tensor host = who.bincount(std::nullopt, count).cpu();
    for (std::int64_t i = 0; i < count; ++i) counts.push_back(host[i].item<std::int64_t>());
    return counts;
  }

  /// Experts * sum of (share of the symbols * mean probability), and that for each choice.
  Tensor imbalance_of(const Tensor& probabilities, const Tensor& who) const {
    const auto count = static_cast<std::int64_t>(experts.size());
    const Tensor share = [&] {
      NoGradGuard no_grad;
      const Tensor ones = tenon::ones({who.numel()}, probabilities.options());
      return tenon::zeros({count}, probabilities.options()).index_add(0, who, ones) / static_cast<double>(who.numel());
    }();
    return (share * probabilities.mean(0)).sum() * static_cast<double>(count);
  }

  std::int64_t chosen;
  std::optional<bool> computes;  ///< the device; asked once, as properties are read from the machine
  nn::Linear router{nullptr};
  std::vector<std::shared_ptr<GatedPerceptronImpl>> experts;
};

struct MoeBlockImpl : nn::Module {
  MoeBlockImpl(const LlamaSize& size, std::int64_t count, std::int64_t chosen) : size(size) {
    norm1 = register_module("norm1", rms_norm_of(size.width));
    attention = register_module("attention", std::make_shared<LlamaAttentionImpl>(size));
    norm2 = register_module("norm2", rms_norm_of(size.width));
    experts = register_module("experts", std::make_shared<ExpertsImpl>(size, count, chosen));
  }

  /// What leaves the block, and how unevenly it used its experts.
  autograd::variable_list forward(const Tensor& x, RotaryImpl& rotary) {
    const nn::ModuleScope scope(*this);
    const Tensor y = add_branch(size, x, attention->forward(norm1(x), rotary), is_training());
    auto [values, imbalance] = experts->forward(norm2(y));
    return {add_branch(size, y, std::move(values), is_training()), imbalance};
  }

  LlamaSize size;
  nn::RMSNorm norm1{nullptr}, norm2{nullptr};
  std::shared_ptr<LlamaAttentionImpl> attention;
  std::shared_ptr<ExpertsImpl> experts;
};

struct MoeImpl : nn::Module {
  explicit MoeImpl(const ModelRequest& request)
      : checkpoint(request.checkpoint), balance(request.options.real("balance")) {
    LlamaSize size = llama_size(request);
    size.rotary_base = kRotaryBase;
    const std::int64_t count = request.options.integer("experts"),
                       chosen = request.options.integer("experts_per_token");
    if (chosen > count)
      throw ConfigError(fmt::format("model.experts_per_token = {} of model.experts = {}", chosen, count));
    symbols = register_module("symbols", nn::Embedding(size.vocabulary, size.width));
    nn::init::normal_(symbols->weight, 0, kInitialDeviation);
    rotary = register_module("rotary", std::make_shared<RotaryImpl>(size, request.data.context));
    for (std::int64_t i = 0; i < size.layers; ++i) {
      auto block = std::make_shared<MoeBlockImpl>(size, count, chosen);
      blocks.push_back(register_module("block" + std::to_string(i), std::move(block)));
    }
    last_norm = register_module("norm", rms_norm_of(size.width));
    if (!size.tied) head = register_module("head", projection(size.width, size.vocabulary));
  }

  Tensor forward(const Tensor& tokens) {
    const nn::ModuleScope scope(*this);
    Tensor x = symbols(tokens);
    imbalance = Tensor();
    std::int64_t number = 0;
    for (const auto& block : blocks) {
      const CheckpointFunction part = [block, this](const autograd::variable_list& inputs) {
        return block->forward(inputs[0], *rotary);
      };
      const BlockRuns runs = checkpoint.at(number++);
      const autograd::variable_list outputs = runs ? tenon::checkpoint(part, {x}, runs.options) : part({x});
      x = outputs[0];
      imbalance = imbalance.defined() ? imbalance + outputs[1] : outputs[1];
    }
    x = last_norm(x);
    return head.is_empty() ? tenon::linear(x, symbols->weight) : head(x);
  }

  /// The cross entropy; in training also the mean of the blocks' imbalances, weighted.
  Tensor loss(const Tensor& logits, const Tensor& target) {
    Tensor entropy = tenon::cross_entropy_loss(logits.flatten(0, 1), target.flatten());
    const Tensor uneven = std::exchange(imbalance, Tensor());
    if (!is_training() || balance == 0) return entropy;
    return entropy + uneven * (balance / static_cast<double>(blocks.size()));
  }

  CheckpointedBlocks checkpoint;
  double balance;
  nn::Embedding symbols{nullptr};
  std::shared_ptr<RotaryImpl> rotary;
  std::vector<std::shared_ptr<MoeBlockImpl>> blocks;
  nn::RMSNorm last_norm{nullptr};
  nn::Linear head{nullptr};
  Tensor imbalance;  ///< of the last forward pass, summed over blocks
};
TENON_MODULE(Moe);

}  // namespace

Model make_moe(const ModelRequest& request) {
  Moe moe(request);
  Model model = model_of(moe);
  model.loss = [moe](const Tensor& logits, const Tensor& target) mutable { return moe->loss(logits, target); };
  return model;
}

}  // namespace tenon::train
