// What models of the Llama family share: root-mean-square normalisation, rotary positions, and attention whose keys and
// values serve several heads (Touvron et al., 2023; Ainslie et al., 2023).
#pragma once

#include <tenon/nn/modules/linear.h>
#include <tenon/nn/modules/normalization.h>
#include <tenon/train/model.h>

#include <memory>
#include <vector>

namespace tenon::train {

struct LlamaSize {
  std::int64_t width = 0, layers = 0, heads = 0, kv_heads = 0, inner = 0, vocabulary = 0;
  bool tied = false;
  double dropout = 0;
  bool inplace = false;
  double rotary_base = 500000;
  double rotary_factor = 1;              ///< > 1: slow rotations are slower by it
  SharedTensorParallel ranks = nullptr;  ///< that divide its layers
  std::int64_t depth() const { return width / heads; }
};
/// From [model] and [train]. Throws Error where the heads do not divide the width, or its keys' heads the heads.
LlamaSize llama_size(const ModelRequest& request);

/// Without a bias, drawn as GPT-2's (Radford et al., 2019). `residual`: what it gives is added to the stream by one of
/// that many layers, and drawn smaller.
nn::Linear projection(std::int64_t in, std::int64_t out, std::int64_t residual = 0);
nn::RMSNorm rms_norm_of(std::int64_t width);
/// x + branch, of which dropout leaves some out.
Tensor add_branch(const LlamaSize& size, const Tensor& x, Tensor branch, bool training);

/// Cosine and sine of each position's angles (Su et al., 2021): (positions, depth / 2) each.
class RotaryImpl : public nn::Module {
 public:
  RotaryImpl(const LlamaSize& size, std::int64_t positions);
  /// Rotates pairs of x (…, length, depth) by the angles of positions 0 … length - 1.
  Tensor forward(const Tensor& x);
  /// Rotates x (T, heads, depth), each row by the angles of its position.
  Tensor forward_at(const Tensor& x, const Tensor& positions);
  /// The same there: its own, or a copy, which is made once for each further device of a pipeline.
  RotaryImpl& on(Device device);

 private:
  RotaryImpl() = default;
  static Tensor rotated(const Tensor& x, const Tensor& cosine, const Tensor& sine);

  std::vector<std::shared_ptr<RotaryImpl>> copies_;
};

/// (N, length, width) -> the same; a position sees itself and what is before it.
class LlamaAttentionImpl : public nn::Module {
 public:
  explicit LlamaAttentionImpl(const LlamaSize& size);
  Tensor forward(const Tensor& x, RotaryImpl& rotary);
  /// x (T, width), the rows of several requests.
  Tensor forward_packed(const Tensor& x, RotaryImpl& rotary, const PackedSymbols& packed, std::int64_t layer);

 private:
  LlamaSize size_;
  nn::Linear query_{nullptr}, key_{nullptr}, value_{nullptr}, out_{nullptr};
};

/// down(silu(gate(x)) * up(x)) (Shazeer, 2020).
class GatedPerceptronImpl : public nn::Module {
 public:
  explicit GatedPerceptronImpl(const LlamaSize& size);
  Tensor forward(const Tensor& x);

 private:
  SharedTensorParallel ranks_;
  nn::Linear gate_{nullptr}, up_{nullptr}, down_{nullptr};
};

}  // namespace tenon::train
