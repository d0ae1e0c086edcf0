// Functional attention: F::multi_head_attention_forward(query, key, value, options).
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/options/arg.h>
#include <tenon/ops/nn/attention.h>
#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <tuple>
#include <utility>

namespace tenon::nn::functional {

struct MultiheadAttentionForwardFuncOptions {
  MultiheadAttentionForwardFuncOptions(std::int64_t embed_dim_to_check, std::int64_t num_heads, Tensor in_proj_weight,
                                       Tensor in_proj_bias, Tensor bias_k, Tensor bias_v, bool add_zero_attn,
                                       double dropout_p, Tensor out_proj_weight, Tensor out_proj_bias)
      : embed_dim_to_check_(embed_dim_to_check),
        num_heads_(num_heads),
        in_proj_weight_(std::move(in_proj_weight)),
        in_proj_bias_(std::move(in_proj_bias)),
        bias_k_(std::move(bias_k)),
        bias_v_(std::move(bias_v)),
        add_zero_attn_(add_zero_attn),
        dropout_p_(dropout_p),
        out_proj_weight_(std::move(out_proj_weight)),
        out_proj_bias_(std::move(out_proj_bias)) {}
  TENON_ARG(std::int64_t, embed_dim_to_check);  ///< the size that the query has to have
  TENON_ARG(std::int64_t, num_heads);           ///< how many heads there are
  /// (3 * embed_dim, embed_dim): query, key and value stacked; unused with use_separate_proj_weight.
  TENON_ARG(Tensor, in_proj_weight);
  TENON_ARG(Tensor, in_proj_bias);  ///< (3 E), for queries, keys and values
  /// One more key and value (1, 1, embed_dim) for every sequence.
  TENON_ARG(Tensor, bias_k);
  TENON_ARG(Tensor, bias_v);           ///< (1, 1, E), appended to the values
  TENON_ARG(bool, add_zero_attn);      ///< append a key and a value of zeros
  TENON_ARG(double, dropout_p);        ///< the probability that an attention weight is dropped
  TENON_ARG(Tensor, out_proj_weight);  ///< (E, E), of the last projection
  TENON_ARG(Tensor, out_proj_bias);    ///< (E), of the last projection
  TENON_ARG(bool, training) = true;    ///< whether it is training: evaluation otherwise
  /// (B, S), true where a key is padding.
  TENON_ARG(Tensor, key_padding_mask) = {};
  TENON_ARG(bool, need_weights) = true;  ///< whether the attention weights are returned too
  /// (L, S) or (B * num_heads, L, S): floating is added, bool forbids where true.
  TENON_ARG(Tensor, attn_mask) = {};
  TENON_ARG(bool, use_separate_proj_weight) = false;  ///< whether the three weights below are used, not in_proj_weight
  TENON_ARG(Tensor, q_proj_weight) = {};              ///< (E, E), for queries
  TENON_ARG(Tensor, k_proj_weight) = {};              ///< (E, kdim), for keys
  TENON_ARG(Tensor, v_proj_weight) = {};              ///< (E, vdim), for values
  /// Projected keys and values (B * num_heads, S, head_dim) in place of the projections.
  TENON_ARG(Tensor, static_k) = {};
  TENON_ARG(Tensor, static_v) = {};              ///< values that are projected already
  TENON_ARG(bool, average_attn_weights) = true;  ///< average the weights over the heads
};

/// query (L, B, E), key and value (S, B, …) -> output (L, B, E) and weights (B, L, S), or (B, num_heads, L, S) unless
/// averaged; undefined unless needed. Throws Error for other ranks, sizes that do not fit one another or
/// embed_dim_to_check, and an embed_dim that num_heads does not divide.
TENON_API std::tuple<Tensor, Tensor> multi_head_attention_forward(const Tensor& query, const Tensor& key,
                                                                  const Tensor& value,
                                                                  const MultiheadAttentionForwardFuncOptions& options);

using tenon::scaled_dot_product_attention;

}  // namespace tenon::nn::functional
