// Transformer: an encoder and a decoder (Vaswani et al., "Attention is all you need", 2017).
#pragma once

#include <tenon/nn/modules/sequence/transformer_coder.h>

namespace tenon::nn {

struct TransformerOptions {
  TransformerOptions() = default;
  TransformerOptions(std::int64_t d_model, std::int64_t nhead) : d_model_(d_model), nhead_(nhead) {}
  TransformerOptions(std::int64_t d_model, std::int64_t nhead, std::int64_t num_encoder_layers,
                     std::int64_t num_decoder_layers)
      : d_model_(d_model),
        nhead_(nhead),
        num_encoder_layers_(num_encoder_layers),
        num_decoder_layers_(num_decoder_layers) {}
  TENON_ARG(std::int64_t, d_model) = 512;           ///< the size of each position's vector
  TENON_ARG(std::int64_t, nhead) = 8;               ///< how many heads attention has
  TENON_ARG(std::int64_t, num_encoder_layers) = 6;  ///< how many layers the encoder has
  TENON_ARG(std::int64_t, num_decoder_layers) = 6;  ///< how many layers the decoder has
  TENON_ARG(std::int64_t, dim_feedforward) = 2048;  ///< the inner size of the feed-forward part
  TENON_ARG(double, dropout) = 0.1;                 ///< the probability that an element becomes 0
  TENON_ARG(activation_t, activation) = kReLU;      ///< between the two linear layers: kReLU, kGELU or a function
  /// Modules to use instead of the usual stacks.
  TENON_ARG(AnyModule, custom_encoder);
  TENON_ARG(AnyModule, custom_decoder);  ///< in place of the decoder
};

class TENON_EXPORT TransformerImpl : public Cloneable<TransformerImpl> {
 public:
  TENON_API explicit TransformerImpl(TransformerOptions options);
  TENON_API void reset() override;
  /// Xavier-uniform values for every matrix.
  TENON_API void reset_parameters();
  /// src (S, B, d_model), tgt (T, B, d_model) -> (T, B, d_model). Throws Error for another rank, batch size or d_model.
  TENON_API Tensor forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask = {},
                           const Tensor& tgt_mask = {}, const Tensor& memory_mask = {},
                           const Tensor& src_key_padding_mask = {}, const Tensor& tgt_key_padding_mask = {},
                           const Tensor& memory_key_padding_mask = {});
  /// (size, size): -inf above the diagonal, 0 elsewhere, so that no position sees later ones. Throws Error for a
  /// negative size.
  TENON_API static Tensor generate_square_subsequent_mask(std::int64_t size);

  TransformerOptions options;
  AnyModule encoder;
  AnyModule decoder;

 protected:
  TENON_DECLARE_DEFAULT_ARGS()
};
TENON_LIBRARY_MODULE(Transformer);

}  // namespace tenon::nn
