// Models by name: what `[model] name = "lenet"` builds.
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/options.h>
#include <tenon/nn/module.h>
#include <tenon/train/theory.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::train {

/// What a model learns: the class of a picture, the class of each pixel, or the next symbol of a text.
enum class Task { kClassify, kSegment, kLanguage };

/// What a model must fit: pictures of classes, or windows of a vocabulary's symbols.
struct DataShape {
  std::int64_t channels = 1, height = 28, width = 28, classes = 10;
  std::int64_t vocabulary = 0;  ///< > 0: text
  std::int64_t context = 0;     ///< symbols of a window
};

struct ModelRequest {
  const Options& options;  ///< the section [model]
  DataShape data;
  bool inplace_activations = false;
  bool checkpoint = false;
};

struct Model {
  std::shared_ptr<nn::Module> module;
  /// Logits: (N, classes); (N, classes, H, W) for pixels; (N, length, vocabulary) for text.
  std::function<Tensor(const Tensor&)> forward;
  /// Paths of layers and the norms that follow them, for quantization; none: those of its Sequentials.
  std::vector<std::vector<std::string>> fusions;
  ActivationForm activations;        ///< without blocks: no closed form is known
  std::int64_t head_parameters = 0;  ///< that get their gradient before the last block's backward begins
};
/// Of a holder whose forward takes one tensor.
template <class Holder>
Model model_of(Holder holder) {
  return {.module = holder.ptr(),
          .forward = [holder](const Tensor& x) mutable { return holder->forward(x); },
          .fusions = {}};
}

/// In the order of their size.
TENON_API std::vector<std::string> model_names();

/// The settings of [model] that this model, or its data, reads, besides its name. Throws Error for an unknown name.
TENON_API std::vector<std::string> settings_of(std::string_view model);

/// Throws Error for an unknown name.
TENON_API Task task_of(std::string_view name);

/// Throws Error for a model that does not fit the data.
TENON_API Model make_model(const ModelRequest& request);

// One file each, under models/.
Model make_mlp(const ModelRequest& request);
Model make_lenet(const ModelRequest& request);
Model make_resnet8(const ModelRequest& request);
Model make_resnet18(const ModelRequest& request);
Model make_resnet50(const ModelRequest& request);
Model make_unet(const ModelRequest& request);
Model make_vit(const ModelRequest& request);
Model make_lstm_lm(const ModelRequest& request);
Model make_gpt(const ModelRequest& request);
Model make_llama(const ModelRequest& request);

}  // namespace tenon::train
