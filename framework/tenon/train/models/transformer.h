// The block that gpt and vit are made of: attention and a perceptron, each on a normalised input and added to what came
// in ("pre-norm"). Vaswani et al., 2017; Radford et al., "Language models are unsupervised multitask learners", 2019.
#pragma once

#include <tenon/nn/containers/module_list.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/nn/modules/normalization.h>
#include <tenon/train/model.h>

#include <string>

namespace tenon::train {

/// Of the normal distribution from which first weights are drawn (Radford et al., 2019).
inline constexpr double kInitialDeviation = 0.02;

/// The layers of a block that matrices are beside.
struct LowRankLayers {
  bool qkv = true, out = true, widen = true, narrow = true;
  bool are_alike = true;  ///< in every block; without that no closed form is known
};

struct TransformerOptions {
  std::int64_t width = 0, layers = 0, heads = 0;
  double dropout = 0;
  bool causal = false;      ///< a position sees itself and what is before it
  bool relu = false;        ///< instead of GELU
  bool exact_gelu = false;  ///< else GPT-2's approximation by tanh
  double norm_epsilon = 1e-5;
  bool inplace = false;
  bool mixed = false;              ///< trained under autocast: what a model keeps is asked for
  std::int64_t lora_rank = 0;      ///< > 0: only matrices beside linear layers of its blocks learn: likewise
  LowRankLayers lora_layers{};     ///< which
  bool lora_integers = false;      ///< beside weights of integers
  std::int64_t element_bytes = 4;  ///< of a parameter's element, likewise
  CheckpointedBlocks checkpoint{};
  SharedTensorParallel ranks = nullptr;  ///< that divide its layers
};
/// From [model] and [train]. Throws Error where the heads do not divide the width, or the ranks the heads.
TransformerOptions transformer_options(const ModelRequest& request, bool causal);

/// Learned positions: model.positions, or as many as a window has. Throws Error where a window has more.
std::int64_t positions_of(const ModelRequest& request);

/// What the blocks and the last normalisation keep of one example of `length` positions. For each block, in units of
/// length * width: its input, the normalised input, q, k, v, the heads joined, the sum after attention, that
/// normalised, and four of the perceptron's hidden layer: after ReLU, or before GELU. Attention computes its weights
/// again, the backward GELU's values; dropout keeps the masks of what is added to the stream.
ActivationForm activation_form(const TransformerOptions& options, std::int64_t length);

/// The gradients of its blocks. Most pass behind the perceptron's narrow layer: the stream's, and two of the hidden
/// layer. The largest parameter is a layer of the perceptron. Later, those of q, k and v are put together beside the
/// stream's.
GradientForm gradient_form(const TransformerOptions& options, std::int64_t length);

/// Whether both are known where matrices of low rank learn: beside the same layers of every block.
bool has_low_rank_form(const TransformerOptions& options);

/// The parameters of its blocks that autocast casts; none without it. Norms take theirs in float32.
CastForm cast_form(const TransformerOptions& options);

/// x + branch: the stream with what a block adds to it, in the branch's memory where `inplace` and it has the stream's
/// dtype; under autocast it has 16 bits, and the stream keeps its 32.
Tensor add_to_stream(const Tensor& x, const Tensor& branch, bool inplace);

class TransformerBlockImpl : public nn::Module {
 public:
  explicit TransformerBlockImpl(const TransformerOptions& options);
  Tensor forward(const Tensor& x);
  /// x (T, width), the rows of several requests.
  Tensor forward_packed(const Tensor& x, const PackedSymbols& packed, std::int64_t layer);

 private:
  Tensor attention(const Tensor& x);
  Tensor drop(Tensor x) const;
  Tensor perceptron(const Tensor& x);
  Tensor add(const Tensor& x, Tensor branch) const;

  TransformerOptions options_;
  nn::LayerNorm norm1_, norm2_;
  nn::Linear qkv_, out_, widen_, narrow_;
};

/// Blocks one after the other, and a normalisation: (N, length, width) -> (N, length, width).
class TransformerImpl : public nn::Module {
 public:
  explicit TransformerImpl(const TransformerOptions& options);
  Tensor forward(Tensor x);
  /// (T, width) -> (T, width), the rows of several requests, whose keys and values their caches keep.
  Tensor forward_packed(Tensor x, const PackedSymbols& packed);
  /// Its blocks and the normalisation, which make what forward() makes.
  void append_to(nn::Sequential& layers) const;

 private:
  Tensor run_block(std::size_t i, const Tensor& x) const;

  TransformerOptions options_;
  std::vector<std::shared_ptr<TransformerBlockImpl>> blocks_;
  nn::LayerNorm norm_;
};
TENON_MODULE(Transformer);

}  // namespace tenon::train
