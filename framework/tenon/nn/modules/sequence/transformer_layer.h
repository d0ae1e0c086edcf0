// One layer of a Transformer (Vaswani et al., 2017): attention and a feed-forward network, each added to its input and
// normalised afterwards.
#pragma once

#include <tenon/nn/modules/dropout.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/nn/modules/normalization.h>
#include <tenon/nn/modules/sequence/multihead_attention.h>
#include <tenon/nn/options/enum.h>

#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

namespace tenon::nn {

/// What stands between the two linear maps.
class activation_t {  // NOLINT: libtorch's name
 public:
  activation_t(enumtype::kReLU word) : word_(word) {}          // NOLINT: as a variant
  activation_t(enumtype::kGELU word) : word_(word) {}          // NOLINT
  activation_t(std::function<Tensor(const Tensor&)> function)  // NOLINT
      : is_word_(false), function_(std::move(function)) {}
  template <class Function>
  requires(std::is_invocable_r_v<Tensor, const Function&, const Tensor&>) activation_t(Function function)  // NOLINT
      : activation_t(std::function<Tensor(const Tensor&)>(std::move(function))) {}

  /// The activation of x. Throws Error for an empty function.
  TENON_API Tensor operator()(const Tensor& x) const;

 private:
  bool is_word_ = true;
  enumtype::OneOf<enumtype::kReLU, enumtype::kGELU> word_ = kReLU;
  std::function<Tensor(const Tensor&)> function_;
};

#define TENON_TRANSFORMER_LAYER_OPTIONS(Name)                                            \
  struct Name {                                                                          \
    Name(std::int64_t d_model, std::int64_t nhead) : d_model_(d_model), nhead_(nhead) {} \
    /** The size of each position's vector. */                                           \
    TENON_ARG(std::int64_t, d_model);                                                    \
    /** How many heads attention has. */                                                 \
    TENON_ARG(std::int64_t, nhead);                                                      \
    /** The inner size of the feed-forward part. */                                      \
    TENON_ARG(std::int64_t, dim_feedforward) = 2048;                                     \
    /** The probability that an element becomes 0. */                                    \
    TENON_ARG(double, dropout) = 0.1;                                                    \
    /** Between the two linear layers: kReLU, kGELU or a function. */                    \
    TENON_ARG(activation_t, activation) = kReLU;                                         \
  }
TENON_TRANSFORMER_LAYER_OPTIONS(TransformerEncoderLayerOptions);
TENON_TRANSFORMER_LAYER_OPTIONS(TransformerDecoderLayerOptions);
#undef TENON_TRANSFORMER_LAYER_OPTIONS

class TENON_EXPORT TransformerEncoderLayerImpl : public Cloneable<TransformerEncoderLayerImpl> {
 public:
  TransformerEncoderLayerImpl(std::int64_t d_model, std::int64_t nhead)
      : TransformerEncoderLayerImpl(TransformerEncoderLayerOptions(d_model, nhead)) {}
  TENON_API explicit TransformerEncoderLayerImpl(const TransformerEncoderLayerOptions& options);
  TENON_API void reset() override;
  /// Draws the parameters of attention (see its _reset_parameters()) and feed-forward anew; norms get weight 1, bias 0.
  TENON_API void reset_parameters();
  /// src (S, B, d_model) -> the same; masks as for MultiheadAttention. Throws Error for an activation that is an empty
  /// function.
  TENON_API Tensor forward(const Tensor& src, const Tensor& src_mask = {}, const Tensor& src_key_padding_mask = {});

  TransformerEncoderLayerOptions options;
  MultiheadAttention self_attn = nullptr;
  Linear linear1 = nullptr;
  Dropout dropout = nullptr;
  Linear linear2 = nullptr;
  LayerNorm norm1 = nullptr;
  LayerNorm norm2 = nullptr;
  Dropout dropout1 = nullptr;
  Dropout dropout2 = nullptr;

 protected:
  TENON_DECLARE_DEFAULT_ARGS()
};
TENON_LIBRARY_MODULE(TransformerEncoderLayer);

/// Attends to its own sequence, then to the encoder's output.
class TENON_EXPORT TransformerDecoderLayerImpl : public Cloneable<TransformerDecoderLayerImpl> {
 public:
  TransformerDecoderLayerImpl(std::int64_t d_model, std::int64_t nhead)
      : TransformerDecoderLayerImpl(TransformerDecoderLayerOptions(d_model, nhead)) {}
  TENON_API explicit TransformerDecoderLayerImpl(const TransformerDecoderLayerOptions& options);
  TENON_API void reset() override;
  /// Draws the parameters of attention (see its _reset_parameters()) and feed-forward anew; norms get weight 1, bias 0.
  TENON_API void reset_parameters();
  /// tgt (T, B, d_model), memory (S, B, d_model) -> (T, B, d_model). Throws Error for an activation that is an empty
  /// function.
  TENON_API Tensor forward(Tensor tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                           const Tensor& memory_mask = {}, const Tensor& tgt_key_padding_mask = {},
                           const Tensor& memory_key_padding_mask = {});

  TransformerDecoderLayerOptions options;
  MultiheadAttention self_attn = nullptr;
  Dropout dropout1 = nullptr;
  LayerNorm norm1 = nullptr;
  MultiheadAttention multihead_attn = nullptr;
  Dropout dropout2 = nullptr;
  LayerNorm norm2 = nullptr;
  Linear linear1 = nullptr;
  Dropout dropout = nullptr;
  Linear linear2 = nullptr;
  Dropout dropout3 = nullptr;
  LayerNorm norm3 = nullptr;

 protected:
  TENON_DECLARE_DEFAULT_ARGS()
};
TENON_LIBRARY_MODULE(TransformerDecoderLayer);

}  // namespace tenon::nn
