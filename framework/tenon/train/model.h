// Models by name: what `[model] name = "lenet"` builds.
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/options.h>
#include <tenon/nn/module.h>
#include <tenon/train/checkpointed.h>
#include <tenon/train/parallel/layers.h>
#include <tenon/train/parallel/tensor_parallel.h>
#include <tenon/train/serve/kv_cache.h>
#include <tenon/train/theory.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::train {

/// What a model learns: the class of a picture, the class of each pixel, the noise that was added to a picture, the
/// next symbol of a text, or those of its symbols that were masked.
enum class Task { kClassify, kSegment, kDenoise, kLanguage, kMasked };
/// Whether it learns from a text; the others learn from pictures.
constexpr bool reads_text(Task task) { return task == Task::kLanguage || task == Task::kMasked; }

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
  bool mixed_precision = false;    ///< it will run under autocast: for its closed forms
  std::int64_t lora_rank = 0;      ///< > 0: only matrices beside its linear layers will learn: likewise
  std::string lora_layers{};       ///< beside those whose path has this in it: likewise
  bool lora_integers = false;      ///< beside weights of integers: likewise
  std::int64_t element_bytes = 4;  ///< of a parameter's element: likewise
  CheckpointedBlocks checkpoint{};
  SharedTensorParallel tensor_parallel = nullptr;  ///< of divided_models()
};

struct Model {
  std::shared_ptr<nn::Module> module;
  /// Logits: (N, classes); (N, classes, H, W) for pixels; (N, length, vocabulary) for text. Of kDenoise the noise.
  std::function<Tensor(const Tensor&)> forward;
  /// What forward() does, layer by layer; empty: the model is not made of such.
  ModelLayers stages;
  /// Of language models: forward() without the output layer. Empty for others.
  std::function<HeadInput(const Tensor&)> before_head;
  /// Of what forward gave last, and the targets; empty: the cross entropy of logits.
  std::function<Tensor(const Tensor& output, const Tensor& target)> loss;
  /// Of language models that serve: the logits of each request's next symbol (requests, vocabulary), and what its cache
  /// keeps. Empty: it does not.
  std::function<Tensor(const PackedSymbols&)> serve;
  CacheShape cache;
  /// Paths of layers and the norms that follow them, for quantization; none: those of its Sequentials.
  std::vector<std::vector<std::string>> fusions;
  bool has_answers = true;     ///< its largest outputs can be right or wrong
  ActivationForm activations;  ///< without blocks: no closed form is known
  GradientForm gradients;      ///< for such a form
  CastForm casts;
};
/// Of a holder whose forward takes one tensor.
template <class Holder>
Model model_of(Holder holder) {
  Model model;
  model.module = holder.ptr();
  model.forward = [holder](const Tensor& x) mutable { return holder->forward(x); };
  return model;
}

/// Of a holder whose module also has before_head().
template <class Holder>
Model language_model_of(Holder holder) {
  Model model = model_of(holder);
  model.before_head = [holder](const Tensor& tokens) mutable { return holder->before_head(tokens); };
  return model;
}

/// In the order of their size.
TENON_API std::vector<std::string> model_names();

/// Whether it says what theory expects that its blocks keep: Model::activations. Throws Error for an unknown name.
TENON_API bool has_closed_form(std::string_view model);

/// The settings of [model] that this model, or its data, reads, besides its name. Throws Error for an unknown name.
TENON_API std::vector<std::string> settings_of(std::string_view model);

/// What `model.preset` says where there is none.
inline constexpr const char* kNoPreset = "none";
/// The names of all presets, each once, "none" first.
std::vector<std::string> preset_names();
/// "base, large (bert); small, medium, large, xl (gpt2)".
std::string preset_list();

/// Those that can serve requests.
std::vector<std::string> serving_models();
/// Those that are made of layers one after another, which the stages of a pipeline divide.
std::vector<std::string> staged_models();
/// Those whose layers can be divided over ranks.
std::vector<std::string> divided_models();

/// Throws Error for an unknown name.
TENON_API Task task_of(std::string_view name);

/// The section [model] with what its preset says in place of the settings. Throws Error for a preset of another model.
Options with_preset(const Options& model);

/// Why train.inplace_activations would change nothing of such a model, and the next step; empty: it overwrites.
std::string why_nothing_is_overwritten(const Options& model, bool mixed_precision);

/// How many of the targets the output's largest logits name, a tensor of one value.
Tensor right_answers(const Tensor& output, const Tensor& target);

/// Throws Error for a model that does not fit the data.
TENON_API Model make_model(const ModelRequest& request);

// One file each, under models/.
Model make_mlp(const ModelRequest& request);
Model make_lenet(const ModelRequest& request);
Model make_resnet8(const ModelRequest& request);
Model make_resnet18(const ModelRequest& request);
Model make_resnet50(const ModelRequest& request);
Model make_unet(const ModelRequest& request);
Model make_ddpm(const ModelRequest& request);
Model make_latent_diffusion(const ModelRequest& request);
Model make_vit(const ModelRequest& request);
Model make_lstm_lm(const ModelRequest& request);
Model make_bert(const ModelRequest& request);
Model make_gpt(const ModelRequest& request);
Model make_llama(const ModelRequest& request);
Model make_moe(const ModelRequest& request);

}  // namespace tenon::train
