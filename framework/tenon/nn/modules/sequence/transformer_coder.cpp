// Encoder and decoder: layers one after the other, then a normalisation if there is one.
#include <tenon/nn/modules/sequence/transformer_coder.h>

namespace tenon::nn {

TransformerEncoderOptions::TransformerEncoderOptions(const TransformerEncoderLayerOptions& encoder_layer_options,
                                                     std::int64_t num_layers)
    : encoder_layer_(encoder_layer_options), num_layers_(num_layers) {}
TransformerDecoderOptions::TransformerDecoderOptions(const TransformerDecoderLayerOptions& decoder_layer_options,
                                                     std::int64_t num_layers)
    : decoder_layer_(decoder_layer_options), num_layers_(num_layers) {}

namespace {

template <class Layer>
void reset_layers(ModuleListImpl& layers) {
  for (std::size_t i = 0; i < layers.size(); ++i) layers.at<Layer>(i).reset_parameters();
}

}  // namespace

TransformerEncoderImpl::TransformerEncoderImpl(TransformerEncoderOptions options) : options(std::move(options)) {
  TransformerEncoderImpl::reset();
}

void TransformerEncoderImpl::reset() {
  layers = register_module("layers", ModuleList());
  for (std::int64_t i = 0; i < options.num_layers(); ++i) layers->push_back(options.encoder_layer()->clone());
  norm = options.norm().clone();
  if (!norm.is_empty()) register_module("norm", norm.ptr());
}

void TransformerEncoderImpl::reset_parameters() {
  reset_layers<TransformerEncoderLayerImpl>(*layers);
  // What a norm's parameters start from is known to itself only: a fresh copy has them.
  if (!norm.is_empty()) unregister_module("norm");
  norm = options.norm().clone();
  if (!norm.is_empty()) register_module("norm", norm.ptr());
}

Tensor TransformerEncoderImpl::forward(const Tensor& src, const Tensor& src_mask, const Tensor& src_key_padding_mask) {
  const ModuleScope scope(*this);
  Tensor x = src;
  for (std::size_t i = 0; i < layers->size(); ++i) {
    x = layers->at<TransformerEncoderLayerImpl>(i).forward(x, src_mask, src_key_padding_mask);
  }
  return norm.is_empty() ? x : norm.forward<Tensor>(x);
}

TransformerDecoderImpl::TransformerDecoderImpl(TransformerDecoderOptions options) : options(std::move(options)) {
  TransformerDecoderImpl::reset();
}

void TransformerDecoderImpl::reset() {
  layers = register_module("layers", ModuleList());
  for (std::int64_t i = 0; i < options.num_layers(); ++i) layers->push_back(options.decoder_layer()->clone());
  norm = options.norm().clone();
  if (!norm.is_empty()) register_module("norm", norm.ptr());
}

void TransformerDecoderImpl::reset_parameters() {
  reset_layers<TransformerDecoderLayerImpl>(*layers);
  if (!norm.is_empty()) unregister_module("norm");
  norm = options.norm().clone();
  if (!norm.is_empty()) register_module("norm", norm.ptr());
}

Tensor TransformerDecoderImpl::forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask,
                                       const Tensor& memory_mask, const Tensor& tgt_key_padding_mask,
                                       const Tensor& memory_key_padding_mask) {
  const ModuleScope scope(*this);
  Tensor x = tgt;
  for (std::size_t i = 0; i < layers->size(); ++i) {
    x = layers->at<TransformerDecoderLayerImpl>(i).forward(x, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                                                           memory_key_padding_mask);
  }
  return norm.is_empty() ? x : norm.forward<Tensor>(x);
}

TENON_DEFAULT_ARGS_OF(TransformerEncoderImpl, {1, AnyValue(Tensor())}, {2, AnyValue(Tensor())})
TENON_DEFAULT_ARGS_OF(TransformerDecoderImpl, {2, AnyValue(Tensor())}, {3, AnyValue(Tensor())}, {4, AnyValue(Tensor())},
                      {5, AnyValue(Tensor())})

template class Cloneable<TransformerEncoderImpl>;
template class Cloneable<TransformerDecoderImpl>;

}  // namespace tenon::nn
