// Models on integers of 8 and 4 bits, for inference: what torch.ao.quantization's prepare(), convert() and
// quantize_dynamic() do. README.md beside this file walks through them.
//
// Note [Floats between layers]: a quantized layer takes float32, makes integers of it at the scale that was calibrated,
// and gives float32. What stands between layers (pooling, sums of residuals, attention) then stays as it is, where
// PyTorch's eager mode needs stubs and a functional module for each such place. The pass that makes integers reads what
// the layer before has just written; memory that is saved is that of parameters.
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/module.h>
#include <tenon/nn/quantization/fuse.h>
#include <tenon/nn/quantization/qconfig.h>

#include <cstdint>
#include <string>

namespace tenon::nn::quantization {

/// Whether a layer may be quantized, by its path and itself.
using LayerChoice = std::function<bool(const std::string& path, const Module& layer)>;

/// Gives each Linear and Conv2d of the model an observer for its input: run the model on examples next. Layers that
/// others read the weights of (the output projection of MultiheadAttention) are left out, as are convolutions whose
/// padding is not of zeros. Throws Error for a model in training mode, and one that is prepared or quantized.
TENON_API void prepare(Module& model, const QConfig& config = get_default_qconfig(), const LayerChoice& choice = {});

/// Prepared layers that have seen no example (experts that no symbol was sent to) compute with floats again. Returns
/// how many these are; convert() leaves them as they are.
TENON_API std::int64_t release_unobserved(Module& model);

/// Makes integers of the weights of all prepared layers, and lets these compute with integers at the observed scales.
/// The parameter `weight` is int8 then; beside it are the buffers weight_scale, input_scale and input_zero_point.
/// Throws Error where a layer has seen no example.
TENON_API void convert(Module& model);

/// Linear layers with int8 weights, a scale for each output channel, that make integers of their input at the scale of
/// each call: no examples are needed. Throws Error for a model in training mode, and one that is prepared or quantized.
TENON_API void quantize_dynamic(Module& model, const LayerChoice& choice = {});

/// Linear layers whose weights alone are integers: 8 bits with a scale for each row, or 4 bits with one for `group`
/// weights of a row (a group that does not divide a row: one for the row). Products are of floats. Throws Error for
/// other bits, a model in training mode, and one that is prepared or quantized.
TENON_API void quantize_weights(Module& model, int bits, std::int64_t group = 64, const LayerChoice& choice = {});

/// Quantizes a freshly made model as the archive's was, fused layers included, and loads it. Throws Error where the
/// archive does not fit.
TENON_API void load(Module& model, InputArchive& archive);
TENON_API void load(Module& model, const std::string& path);

/// Bytes of all parameters and buffers.
TENON_API std::size_t bytes_of(const Module& model);
/// How many numbers its parameters are: of weights of 4 bits, two in a byte.
TENON_API std::int64_t parameters_of(const Module& model);
/// How many layers could compute with integers: Linear and Conv2d as prepare() takes them, or Linear alone.
TENON_API std::int64_t quantizable_layers(const Module& model, bool linear_alone);
/// How many layers compute with integers.
TENON_API std::int64_t quantized_layers(const Module& model);

}  // namespace tenon::nn::quantization
