// QConfig: which observers a layer gets. get_default_qconfig() names PyTorch's choices.
#pragma once

#include <tenon/nn/quantization/observer.h>

#include <string_view>

namespace tenon::nn::quantization {

struct QConfig {
  ObserverMaker activation;  ///< of a layer's input; one scale
  ObserverMaker weight;      ///< int8 with zero points of 0; one scale, or one for each output channel (dim 0)
};

/// "onednn": a histogram for activations (uint8), each output channel's extremes for weights (int8). "x86" and
/// "fbgemm": the same, activations in half of the range, so that processors without VNNI cannot saturate. "qnnpack":
/// one scale for all weights. Throws Error for other names.
TENON_API QConfig get_default_qconfig(std::string_view backend = "x86");

}  // namespace tenon::nn::quantization
