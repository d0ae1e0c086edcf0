// `train.quantize`: the trained model tested as it is, made integers of, and tested again.
#pragma once

#include <tenon/device/device_state.h>
#include <tenon/train/input/batches.h>
#include <tenon/train/model.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::train {

/// "none", "static", "dynamic", "weight_only_int8", "weight_only_int4".
std::vector<std::string> quantizations();

/// Throws Error, with the reason, where the scheme has no layer to make integers of: asked before the training.
void check_quantizable(const nn::Module& module, std::string_view scheme);

struct QuantizedInference {
  Model& model;  ///< becomes integers
  TrainingData& data;
  DeviceState& device;
  std::string_view scheme;   ///< one of quantizations(), not "none"
  std::int64_t batches = 0;  ///< of training examples that observers watch, of `batch_size` each
  std::int64_t batch_size = 0;
  std::int64_t test_batch_size = 0;
};
/// Figures of both: float_ and quantized_ test_loss, test_accuracy (nan without answers), parameter_bytes,
/// inference_peak_bytes (all but the data set), inference_seconds; and quantized_layers. Throws Error for a model
/// without a layer that the scheme is for.
std::vector<std::pair<std::string, double>> compare_quantized(const QuantizedInference& request);

/// Both in a sentence: "static: test accuracy 88.57 to 88.59 %, …".
std::string sentence_on(std::string_view scheme, std::span<const std::pair<std::string, double>> figures);
/// The end of that sentence where the device has no kernel for the scheme's products; empty where it has.
std::string without_kernels(const DeviceState& device, std::string_view scheme);

}  // namespace tenon::train
