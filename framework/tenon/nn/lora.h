// Low-rank adaptation: weights stay as they are, and beside each linear layer a product of two narrow matrices learns
// what is to be added to them. Source: Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2021.
//
//   y = W x + bias + alpha / rank * B (A x)         W (out, in) frozen; A (rank, in), B (out, rank) learn
//
// W may be integers of 8 or 4 bits (quantization::quantize_weights() before add_lora()), as in Dettmers et al., "QLoRA:
// Efficient Finetuning of Quantized LLMs", 2023: the matrices are float32 then, and gradients pass through W.
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/containers/cloneable.h>
#include <tenon/nn/module.h>
#include <tenon/nn/options/arg.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tenon::nn {

struct LoraOptions {
  explicit LoraOptions(std::int64_t rank) : rank_(rank) {}
  TENON_ARG(std::int64_t, rank);  ///< rows of A
  TENON_ARG(double, alpha) = 16;  ///< what is added is multiplied by alpha / rank
  /// Which linear layers, by path; all of them where it is empty.
  TENON_ARG(std::function<bool(const std::string& path)>, choice) = {};
};

/// The two matrices, a child called "lora" of their layer.
class TENON_EXPORT LoraImpl : public Cloneable<LoraImpl> {
 public:
  TENON_API LoraImpl(std::int64_t in_features, std::int64_t out_features, std::int64_t rank, double scale);
  TENON_API void reset() override;
  /// What is added to the layer's output: (*, in_features) -> (*, out_features).
  TENON_API Tensor forward(const Tensor& input);
  /// What is added to the layer's weight: (out_features, in_features).
  TENON_API Tensor delta() const;

  Tensor a;  ///< (rank, in_features), drawn as the weight of a Linear
  Tensor b;  ///< (out_features, rank), zero at first, so that nothing changes

 private:
  std::int64_t in_features_, out_features_, rank_;
  double scale_;
};
TENON_LIBRARY_MODULE(Lora);

/// Freezes every parameter of the model (requires_grad is false) and puts the matrices beside its linear layers that
/// are chosen, on their devices; returns how many layers these are. A layer may have weights of integers
/// (quantize_weights()). Left out are layers that compute something else of their own, on integers of activations too,
/// and those whose weights others read (the output projection of MultiheadAttention). Throws Error for a rank below 1
/// and one above a layer's smaller side, an alpha of 0, a model that has them already, and one of which no layer is
/// left.
TENON_API std::int64_t add_lora(Module& model, const LoraOptions& options);
/// Adds each product to its layer's weight and takes the matrices out: the model is as it was made, with what was
/// learned; its parameters stay frozen. Weights of integers are rounded again, at new scales. Returns how many layers
/// these are.
TENON_API std::int64_t merge_lora(Module& model);
/// Parameters that require a gradient: what an optimiser is given.
TENON_API std::vector<Tensor> trainable_parameters(const Module& model);

}  // namespace tenon::nn
