// MultiheadAttention (Vaswani et al., 2017).
#pragma once

#include <tenon/nn/containers/cloneable.h>
#include <tenon/nn/modules/linear.h>

#include <tuple>

namespace tenon::nn {

struct MultiheadAttentionOptions {
  MultiheadAttentionOptions(std::int64_t embed_dim, std::int64_t num_heads)
      : embed_dim_(embed_dim), num_heads_(num_heads), kdim_(embed_dim), vdim_(embed_dim) {}
  TENON_ARG(std::int64_t, embed_dim);  ///< the size of queries and of the result
  TENON_ARG(std::int64_t, num_heads);  ///< how many heads share embed_dim
  /// Of attention weights.
  TENON_ARG(double, dropout) = 0.0;
  TENON_ARG(bool, bias) = true;  ///< whether the projections have a bias
  /// One more, learnt, key and value for every sequence.
  TENON_ARG(bool, add_bias_kv) = false;
  /// One more key and value of zeros.
  TENON_ARG(bool, add_zero_attn) = false;
  /// Features of keys and values, embed_dim unless given.
  TENON_ARG(std::int64_t, kdim);
  TENON_ARG(std::int64_t, vdim);  ///< the size of values; embed_dim unless set
};

class TENON_EXPORT MultiheadAttentionImpl : public Cloneable<MultiheadAttentionImpl> {
 public:
  MultiheadAttentionImpl(std::int64_t embed_dim, std::int64_t num_heads)
      : MultiheadAttentionImpl(MultiheadAttentionOptions(embed_dim, num_heads)) {}
  TENON_API explicit MultiheadAttentionImpl(const MultiheadAttentionOptions& options);

  TENON_API void reset() override;
  /// Draws the input projections anew, Xavier uniform, and bias_k and bias_v, Xavier normal; the other biases become 0.
  /// The weight of out_proj stays, as in libtorch.
  TENON_API void _reset_parameters();
  /// query (L, B, embed_dim), key (S, B, kdim), value (S, B, vdim); key_padding_mask (B, S), true where a key is
  /// padding; attn_mask (L, S) or (B * num_heads, L, S), added if floating, forbidding where true if bool. Returns the
  /// output (L, B, embed_dim) and the weights (B, L, S), or (B, num_heads, L, S) unless averaged. Without need_weights
  /// they are undefined and less memory is used.
  TENON_API std::tuple<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                               const Tensor& key_padding_mask = {}, bool need_weights = true,
                                               const Tensor& attn_mask = {}, bool average_attn_weights = true);

  MultiheadAttentionOptions options;
  bool _qkv_same_embed_dim = true;
  Tensor in_proj_weight;  ///< (3 * embed_dim, embed_dim); undefined where kdim or vdim differ
  Tensor in_proj_bias;
  Linear out_proj = nullptr;
  Tensor bias_k;
  Tensor bias_v;
  std::int64_t head_dim = 0;
  Tensor q_proj_weight;
  Tensor k_proj_weight;
  Tensor v_proj_weight;

 protected:
  TENON_DECLARE_DEFAULT_ARGS()
};
TENON_LIBRARY_MODULE(MultiheadAttention);

}  // namespace tenon::nn
