// The parameters of multi-head attention; the formula is functional/attention.cpp.
#include <tenon/nn/modules/sequence/multihead_attention.h>

#include <tenon/nn/functional/attention.h>
#include <tenon/nn/init.h>
#include <tenon/nn/parameter.h>

#include <fmt/format.h>

namespace tenon::nn {

MultiheadAttentionImpl::MultiheadAttentionImpl(const MultiheadAttentionOptions& options)
    : Cloneable("tenon::nn::MultiheadAttention"), options(options) {
  MultiheadAttentionImpl::reset();
}

void MultiheadAttentionImpl::reset() {
  const std::int64_t e = options.embed_dim();
  if (options.num_heads() <= 0 || e % options.num_heads() != 0) {
    throw Error(fmt::format("embed_dim must be divisible by num_heads, got {} and {}", e, options.num_heads()));
  }
  head_dim = e / options.num_heads();
  _qkv_same_embed_dim = options.kdim() == e && options.vdim() == e;
  const auto add = [this](const char* name, bool present, IntArrayRef sizes) {
    return register_parameter(name, present ? new_parameter(sizes) : Tensor(), present);
  };
  in_proj_weight = add("in_proj_weight", _qkv_same_embed_dim, {3 * e, e});
  q_proj_weight = add("q_proj_weight", !_qkv_same_embed_dim, {e, e});
  k_proj_weight = add("k_proj_weight", !_qkv_same_embed_dim, {e, options.kdim()});
  v_proj_weight = add("v_proj_weight", !_qkv_same_embed_dim, {e, options.vdim()});
  in_proj_bias = add("in_proj_bias", options.bias(), {3 * e});
  out_proj = register_module("out_proj", Linear(LinearOptions(e, e).bias(options.bias())));
  if (options.add_bias_kv()) {
    bias_k = add("bias_k", true, {1, 1, e});
    bias_v = add("bias_v", true, {1, 1, e});
  } else {
    bias_k.reset();
    bias_v.reset();
  }
  _reset_parameters();
}

void MultiheadAttentionImpl::_reset_parameters() {
  for (const Tensor& weight : {in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight}) {
    if (weight.defined()) init::xavier_uniform_(weight);
  }
  if (in_proj_bias.defined()) {
    init::zeros_(in_proj_bias);
    init::zeros_(out_proj->bias);
  }
  if (bias_k.defined()) init::xavier_normal_(bias_k);
  if (bias_v.defined()) init::xavier_normal_(bias_v);
}

std::tuple<Tensor, Tensor> MultiheadAttentionImpl::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                           const Tensor& key_padding_mask, bool need_weights,
                                                           const Tensor& attn_mask, bool average_attn_weights) {
  const ModuleScope scope(*this);
  auto given = functional::MultiheadAttentionForwardFuncOptions(
                   options.embed_dim(), options.num_heads(), in_proj_weight, in_proj_bias, bias_k, bias_v,
                   options.add_zero_attn(), options.dropout(), out_proj->weight, out_proj->bias)
                   .training(is_training())
                   .key_padding_mask(key_padding_mask)
                   .need_weights(need_weights)
                   .attn_mask(attn_mask)
                   .average_attn_weights(average_attn_weights);
  if (!_qkv_same_embed_dim) {
    given.use_separate_proj_weight(true)
        .q_proj_weight(q_proj_weight)
        .k_proj_weight(k_proj_weight)
        .v_proj_weight(v_proj_weight);
  }
  return functional::multi_head_attention_forward(query, key, value, given);
}

TENON_DEFAULT_ARGS_OF(MultiheadAttentionImpl, {3, AnyValue(Tensor())}, {4, AnyValue(true)}, {5, AnyValue(Tensor())},
                      {6, AnyValue(true)})

template class Cloneable<MultiheadAttentionImpl>;

}  // namespace tenon::nn
