// Encoder and decoder layers.
#include <tenon/nn/modules/sequence/transformer_layer.h>

#include <tenon/ops/ops.h>

namespace tenon::nn {

namespace {

/// The attention's output alone: its weights are not made.
Tensor attend(MultiheadAttention& attention, const Tensor& query, const Tensor& memory, const Tensor& mask,
              const Tensor& padding) {
  return std::get<0>(attention->forward(query, memory, memory, padding, /*need_weights=*/false, mask));
}

}  // namespace

Tensor activation_t::operator()(const Tensor& x) const {
  if (is_word_) return word_.is<enumtype::kReLU>() ? tenon::relu(x) : tenon::gelu(x);
  if (!function_) throw Error("activation should be kGELU, kReLU, or a callable, but the callable is empty");
  return function_(x);
}

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(const TransformerEncoderLayerOptions& options)
    : options(options) {
  TransformerEncoderLayerImpl::reset();
}

void TransformerEncoderLayerImpl::reset() {
  const std::int64_t d = options.d_model();
  self_attn = register_module(
      "self_attn", MultiheadAttention(MultiheadAttentionOptions(d, options.nhead()).dropout(options.dropout())));
  linear1 = register_module("linear1", Linear(d, options.dim_feedforward()));
  dropout = register_module("dropout", Dropout(options.dropout()));
  linear2 = register_module("linear2", Linear(options.dim_feedforward(), d));
  norm1 = register_module("norm1", LayerNorm(LayerNormOptions({d})));
  norm2 = register_module("norm2", LayerNorm(LayerNormOptions({d})));
  dropout1 = register_module("dropout1", Dropout(options.dropout()));
  dropout2 = register_module("dropout2", Dropout(options.dropout()));
}

void TransformerEncoderLayerImpl::reset_parameters() {
  self_attn->_reset_parameters();
  linear1->reset_parameters();
  linear2->reset_parameters();
  norm1->reset_parameters();
  norm2->reset_parameters();
}

Tensor TransformerEncoderLayerImpl::forward(const Tensor& src, const Tensor& src_mask,
                                            const Tensor& src_key_padding_mask) {
  const ModuleScope scope(*this);
  const Tensor x = norm1(src + dropout1(attend(self_attn, src, src, src_mask, src_key_padding_mask)));
  return norm2(x + dropout2(linear2(dropout(options.activation()(linear1(x))))));
}

TransformerDecoderLayerImpl::TransformerDecoderLayerImpl(const TransformerDecoderLayerOptions& options)
    : options(options) {
  TransformerDecoderLayerImpl::reset();
}

void TransformerDecoderLayerImpl::reset() {
  const std::int64_t d = options.d_model();
  const auto attention = MultiheadAttentionOptions(d, options.nhead()).dropout(options.dropout());
  self_attn = register_module("self_attn", MultiheadAttention(attention));
  multihead_attn = register_module("multihead_attn", MultiheadAttention(attention));
  linear1 = register_module("linear1", Linear(d, options.dim_feedforward()));
  dropout = register_module("dropout", Dropout(options.dropout()));
  linear2 = register_module("linear2", Linear(options.dim_feedforward(), d));
  norm1 = register_module("norm1", LayerNorm(LayerNormOptions({d})));
  norm2 = register_module("norm2", LayerNorm(LayerNormOptions({d})));
  norm3 = register_module("norm3", LayerNorm(LayerNormOptions({d})));
  dropout1 = register_module("dropout1", Dropout(options.dropout()));
  dropout2 = register_module("dropout2", Dropout(options.dropout()));
  dropout3 = register_module("dropout3", Dropout(options.dropout()));
}

void TransformerDecoderLayerImpl::reset_parameters() {
  self_attn->_reset_parameters();
  multihead_attn->_reset_parameters();
  linear1->reset_parameters();
  linear2->reset_parameters();
  norm1->reset_parameters();
  norm2->reset_parameters();
  norm3->reset_parameters();
}

Tensor TransformerDecoderLayerImpl::forward(Tensor tgt, const Tensor& memory, const Tensor& tgt_mask,
                                            const Tensor& memory_mask, const Tensor& tgt_key_padding_mask,
                                            const Tensor& memory_key_padding_mask) {
  const ModuleScope scope(*this);
  tgt = norm1(tgt + dropout1(attend(self_attn, tgt, tgt, tgt_mask, tgt_key_padding_mask)));
  tgt = norm2(tgt + dropout2(attend(multihead_attn, tgt, memory, memory_mask, memory_key_padding_mask)));
  return norm3(tgt + dropout3(linear2(dropout(options.activation()(linear1(tgt))))));
}

TENON_DEFAULT_ARGS_OF(TransformerEncoderLayerImpl, {1, AnyValue(Tensor())}, {2, AnyValue(Tensor())})
TENON_DEFAULT_ARGS_OF(TransformerDecoderLayerImpl, {2, AnyValue(Tensor())}, {3, AnyValue(Tensor())},
                      {4, AnyValue(Tensor())}, {5, AnyValue(Tensor())})

template class Cloneable<TransformerEncoderLayerImpl>;
template class Cloneable<TransformerDecoderLayerImpl>;

}  // namespace tenon::nn
