// Encoder and decoder put together.
#include <tenon/nn/modules/sequence/transformer.h>

#include <tenon/nn/init.h>
#include <tenon/ops/ops.h>

#include <fmt/format.h>

#include <limits>

namespace tenon::nn {

namespace {

template <class LayerOptions>
LayerOptions layer_options(const TransformerOptions& options) {
  return LayerOptions(options.d_model(), options.nhead())
      .dim_feedforward(options.dim_feedforward())
      .dropout(options.dropout())
      .activation(options.activation());
}

AnyModule final_norm(const TransformerOptions& options) {
  return AnyModule(LayerNorm(LayerNormOptions({options.d_model()})));
}

}  // namespace

TransformerImpl::TransformerImpl(TransformerOptions options) : options(std::move(options)) { TransformerImpl::reset(); }

void TransformerImpl::reset() {
  if (options.custom_encoder().is_empty()) {
    encoder = AnyModule(TransformerEncoder(
        TransformerEncoderOptions(layer_options<TransformerEncoderLayerOptions>(options), options.num_encoder_layers())
            .norm(final_norm(options))));
  } else {
    encoder = options.custom_encoder().clone();
  }
  register_module("encoder", encoder.ptr());
  if (options.custom_decoder().is_empty()) {
    decoder = AnyModule(TransformerDecoder(
        TransformerDecoderOptions(layer_options<TransformerDecoderLayerOptions>(options), options.num_decoder_layers())
            .norm(final_norm(options))));
  } else {
    decoder = options.custom_decoder().clone();
  }
  register_module("decoder", decoder.ptr());
  reset_parameters();
}

void TransformerImpl::reset_parameters() {
  for (const Tensor& parameter : parameters()) {
    if (parameter.dim() > 1) init::xavier_uniform_(parameter);
  }
}

Tensor TransformerImpl::forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask, const Tensor& tgt_mask,
                                const Tensor& memory_mask, const Tensor& src_key_padding_mask,
                                const Tensor& tgt_key_padding_mask, const Tensor& memory_key_padding_mask) {
  const ModuleScope scope(*this);
  if (src.dim() != 3 || tgt.dim() != 3) {
    throw Error(fmt::format("src and tgt should have 3 dimensions, but got {} and {}", src.dim(), tgt.dim()));
  }
  if (src.size(1) != tgt.size(1)) {
    throw Error(fmt::format("src and tgt should have equal batch size (at dim 1), but got {} and {}", src.size(1),
                            tgt.size(1)));
  }
  if (src.size(2) != options.d_model() || tgt.size(2) != options.d_model()) {
    throw Error(
        fmt::format("src and tgt should have same feature size as d_model (at dim 2), but got {} and {} while d_model "
                    "is {}",
                    src.size(2), tgt.size(2), options.d_model()));
  }
  const Tensor memory = encoder.forward<Tensor>(src, src_mask, src_key_padding_mask);
  return decoder.forward<Tensor>(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask);
}

Tensor TransformerImpl::generate_square_subsequent_mask(std::int64_t size) {
  if (size < 0) {
    throw Error(
        fmt::format("Input size must be non-negative to generate a valid square subsequent mask, but got {}", size));
  }
  return full({size, size}, -std::numeric_limits<float>::infinity()).triu(1);
}

TENON_DEFAULT_ARGS_OF(TransformerImpl, {2, AnyValue(Tensor())}, {3, AnyValue(Tensor())}, {4, AnyValue(Tensor())},
                      {5, AnyValue(Tensor())}, {6, AnyValue(Tensor())}, {7, AnyValue(Tensor())})

template class Cloneable<TransformerImpl>;

}  // namespace tenon::nn
