// Stacks of Transformer layers: TransformerEncoder, TransformerDecoder.
#pragma once

#include <tenon/nn/containers/any_module.h>
#include <tenon/nn/containers/module_list.h>
#include <tenon/nn/modules/sequence/transformer_layer.h>

namespace tenon::nn {

/// Each of num_layers layers is a copy of the one given.
struct TransformerEncoderOptions {
  TransformerEncoderOptions(TransformerEncoderLayer encoder_layer, std::int64_t num_layers)
      : encoder_layer_(std::move(encoder_layer)), num_layers_(num_layers) {}
  TENON_API TransformerEncoderOptions(const TransformerEncoderLayerOptions& encoder_layer_options,
                                      std::int64_t num_layers);
  TENON_ARG(TransformerEncoderLayer, encoder_layer) = nullptr;  ///< the layer that is copied
  TENON_ARG(std::int64_t, num_layers);                          ///< how often it is copied
  /// Applied to the result of the last layer; none if empty.
  TENON_ARG(AnyModule, norm);
};

struct TransformerDecoderOptions {
  TransformerDecoderOptions(TransformerDecoderLayer decoder_layer, std::int64_t num_layers)
      : decoder_layer_(std::move(decoder_layer)), num_layers_(num_layers) {}
  TENON_API TransformerDecoderOptions(const TransformerDecoderLayerOptions& decoder_layer_options,
                                      std::int64_t num_layers);
  TENON_ARG(TransformerDecoderLayer, decoder_layer) = nullptr;  ///< the layer that is copied
  TENON_ARG(std::int64_t, num_layers);                          ///< how often it is copied
  TENON_ARG(AnyModule, norm);                                   ///< applied to the result, where it is not empty
};

class TENON_EXPORT TransformerEncoderImpl : public Cloneable<TransformerEncoderImpl> {
 public:
  TransformerEncoderImpl(TransformerEncoderLayer encoder_layer, std::int64_t num_layers)
      : TransformerEncoderImpl(TransformerEncoderOptions(std::move(encoder_layer), num_layers)) {}
  TENON_API explicit TransformerEncoderImpl(TransformerEncoderOptions options);
  TENON_API void reset() override;
  /// Draws the parameters of every layer anew, and replaces the final norm by a fresh copy of the options'.
  TENON_API void reset_parameters();
  /// src (S, B, d_model) -> the same; masks go to every layer.
  TENON_API Tensor forward(const Tensor& src, const Tensor& src_mask = {}, const Tensor& src_key_padding_mask = {});

  TransformerEncoderOptions options;
  ModuleList layers = nullptr;
  AnyModule norm;

 protected:
  TENON_DECLARE_DEFAULT_ARGS()
};
TENON_LIBRARY_MODULE(TransformerEncoder);

class TENON_EXPORT TransformerDecoderImpl : public Cloneable<TransformerDecoderImpl> {
 public:
  TransformerDecoderImpl(TransformerDecoderLayer decoder_layer, std::int64_t num_layers)
      : TransformerDecoderImpl(TransformerDecoderOptions(std::move(decoder_layer), num_layers)) {}
  TENON_API explicit TransformerDecoderImpl(TransformerDecoderOptions options);
  TENON_API void reset() override;
  /// Draws the parameters of every layer anew, and replaces the final norm by a fresh copy of the options'.
  TENON_API void reset_parameters();
  /// tgt (T, B, d_model), memory (S, B, d_model) -> (T, B, d_model).
  TENON_API Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                           const Tensor& memory_mask = {}, const Tensor& tgt_key_padding_mask = {},
                           const Tensor& memory_key_padding_mask = {});

  TransformerDecoderOptions options;
  ModuleList layers = nullptr;
  AnyModule norm;

 protected:
  TENON_DECLARE_DEFAULT_ARGS()
};
TENON_LIBRARY_MODULE(TransformerDecoder);

}  // namespace tenon::nn
