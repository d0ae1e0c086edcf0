// Models by name.
#include <tenon/train/model.h>

#include <tenon/ops/ops.h>
#include <tenon/train/presets.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::train {
namespace {

/// What train.inplace_activations overwrites.
enum class Overwrites {
  kActivations,  ///< what ReLU reads
  kStream,       ///< what blocks add to the stream, where that is of one dtype; what ReLU reads, where they have it
  kDropout,      ///< what dropout reads
  kNothing,
};

/// What only some models can.
struct Abilities {
  bool serves = false;           ///< requests
  bool has_stages = false;       ///< it is made of layers, which a pipeline divides over devices
  bool is_divided = false;       ///< train.tensor_parallel divides each of them over ranks
  bool has_closed_form = false;  ///< Model::activations
};

struct KnownModel {
  const char* name;
  Model (*make)(const ModelRequest&);
  Task task;
  Overwrites overwrites;
  std::vector<std::string> settings;  ///< that it reads
  Presets (*presets)() = nullptr;
  Abilities can = {};
};

// Long: a row for each model.
const std::vector<KnownModel>& known_models() {
  static const std::vector<KnownModel> models = {
      {"mlp",
       make_mlp,
       Task::kClassify,
       Overwrites::kActivations,
       {"hidden", "layers", "dropout"},
       nullptr,
       {.has_stages = true}},
      {"lenet", make_lenet, Task::kClassify, Overwrites::kActivations, {"dropout"}},
      {"resnet8", make_resnet8, Task::kClassify, Overwrites::kActivations, {}, nullptr, {.has_stages = true}},
      {"vit",
       make_vit,
       Task::kClassify,
       Overwrites::kStream,
       {"hidden", "layers", "heads", "activation", "patch", "preset", "dropout"},
       vit_presets,
       {.is_divided = true}},
      {"resnet18",
       make_resnet18,
       Task::kClassify,
       Overwrites::kActivations,
       {"stem", "preset"},
       resnet_presets,
       {.has_stages = true}},
      {"resnet50",
       make_resnet50,
       Task::kClassify,
       Overwrites::kActivations,
       {"stem", "preset"},
       resnet_presets,
       {.has_stages = true}},
      {"unet", make_unet, Task::kSegment, Overwrites::kActivations, {"hidden", "layers", "dropout"}},
      {"ddpm",
       make_ddpm,
       Task::kDenoise,
       Overwrites::kNothing,
       {"hidden", "layers", "multipliers", "attention_sides", "preset", "dropout"},
       ddpm_presets},
      {"latent-diffusion",
       make_latent_diffusion,
       Task::kDenoise,
       Overwrites::kNothing,
       {"hidden", "layers", "multipliers", "heads", "text_width", "preset", "dropout"},
       latent_diffusion_presets},
      {"lstm-lm", make_lstm_lm, Task::kLanguage, Overwrites::kDropout, {"hidden", "layers", "tied", "dropout"}},
      {"bert",
       make_bert,
       Task::kMasked,
       Overwrites::kStream,
       {"hidden", "layers", "heads", "activation", "positions", "preset", "dropout"},
       bert_presets},
      {"gpt",
       make_gpt,
       Task::kLanguage,
       Overwrites::kStream,
       {"hidden", "layers", "heads", "tied", "activation", "positions", "dropout"},
       nullptr,
       {.serves = true, .has_stages = true, .is_divided = true, .has_closed_form = true}},
      {"gpt2",
       make_gpt,
       Task::kLanguage,
       Overwrites::kStream,
       {"hidden", "layers", "heads", "tied", "activation", "positions", "preset", "dropout"},
       gpt2_presets,
       {.serves = true, .has_stages = true, .is_divided = true, .has_closed_form = true}},
      {"llama",
       make_llama,
       Task::kLanguage,
       Overwrites::kStream,
       {"hidden", "layers", "heads", "kv_heads", "intermediate", "rotary_factor", "preset", "tied", "dropout"},
       llama_presets,
       {.serves = true, .has_stages = true, .is_divided = true}},
      {"moe",
       make_moe,
       Task::kLanguage,
       Overwrites::kStream,
       {"hidden", "layers", "heads", "kv_heads", "intermediate", "experts", "experts_per_token", "balance", "preset",
        "tied", "dropout"},
       moe_presets}};
  return models;
}

const KnownModel& find(std::string_view name) {
  const auto known = std::ranges::find_if(known_models(), [&](const auto& m) { return name == m.name; });
  if (known == known_models().end()) {
    throw Error(fmt::format("no model '{}'; there are {}", name, fmt::join(model_names(), ", ")));
  }
  return *known;
}

Presets presets_of(const KnownModel& model) { return model.presets ? model.presets() : Presets(); }

/// Throws Error where the model has none of that name, with those that it has, and whose it is.
Preset preset_of(const KnownModel& model, std::string_view name) {
  std::vector<std::string_view> own, owners;
  for (const KnownModel& known : known_models()) {
    for (const Preset& preset : presets_of(known)) {
      if (&known == &model && preset.name == name) return preset;
      if (&known == &model) own.emplace_back(preset.name);
      if (preset.name == name) owners.emplace_back(known.name);
    }
  }
  throw Error(fmt::format("model.preset = \"{}\" is a size of {}; {} has {}", name, fmt::join(owners, " and "),
                          model.name, own.empty() ? "none" : fmt::format("{}", fmt::join(own, ", "))));
}

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names = {kNoPreset};
  for (const KnownModel& model : known_models()) {
    for (const Preset& preset : presets_of(model))
      if (std::ranges::find(names, preset.name) == names.end()) names.emplace_back(preset.name);
  }
  return names;
}

std::string preset_list() {
  std::vector<std::string> lists;
  for (const KnownModel& model : known_models()) {
    std::vector<std::string_view> own;
    for (const Preset& preset : presets_of(model)) own.emplace_back(preset.name);
    if (!own.empty()) lists.push_back(fmt::format("{} ({})", fmt::join(own, ", "), model.name));
  }
  return fmt::format("{}", fmt::join(lists, "; "));
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const KnownModel& model : known_models()) names.emplace_back(model.name);
  return names;
}

bool has_closed_form(std::string_view model) { return find(model).can.has_closed_form; }

std::vector<std::string> settings_of(std::string_view model) {
  const KnownModel& known = find(model);
  std::vector<std::string> settings = known.settings;
  if (reads_text(known.task))
    settings.insert(settings.end(), {"context", "vocabulary"});
  else
    settings.insert(settings.end(), {"image_size", "channels", "classes"});
  return settings;
}

namespace {
std::vector<std::string> models_that(bool Abilities::*can) {
  std::vector<std::string> names;
  for (const KnownModel& model : known_models())
    if (model.can.*can) names.emplace_back(model.name);
  return names;
}
}  // namespace

std::vector<std::string> serving_models() { return models_that(&Abilities::serves); }
std::vector<std::string> staged_models() { return models_that(&Abilities::has_stages); }
std::vector<std::string> divided_models() { return models_that(&Abilities::is_divided); }

Task task_of(std::string_view name) { return find(name).task; }

std::string why_nothing_is_overwritten(const Options& model, bool mixed_precision) {
  const KnownModel& known = find(model.text("name"));
  const Options resolved = with_preset(model);
  switch (known.overwrites) {
    case Overwrites::kActivations:
      return {};
    case Overwrites::kStream: {
      const bool has_choice = std::ranges::find(known.settings, "activation") != known.settings.end();
      const bool has_relu = has_choice && make_bert != known.make;  // bert's perceptron writes elsewhere
      if (!mixed_precision || (has_relu && resolved.text("activation") == "relu")) return {};
      return fmt::format(
          "in mixed precision what a block of '{}' adds has 16 bits and the stream 32, so that neither takes the "
          "other's place, and GELU and SiLU have no in-place form: leave it out{}",
          known.name, has_relu ? ", or set model.activation to \"relu\"" : "");
    }
    case Overwrites::kDropout:
      if (resolved.real("dropout") > 0) return {};
      return fmt::format("of '{}' dropout alone has an in-place form: leave it out, or set model.dropout", known.name);
    case Overwrites::kNothing:
      break;
  }
  return fmt::format("'{}' has only SiLU and GELU, which have no in-place form: leave it out", known.name);
}

Model make_model(const ModelRequest& request) {
  const KnownModel& known = find(request.options.text("name"));
  if (reads_text(known.task) != (request.data.vocabulary > 0)) {
    throw Error(fmt::format("the model '{}' reads {}", known.name, reads_text(known.task) ? "text" : "pictures"));
  }
  const Options options = with_preset(request.options);
  ModelRequest resolved{.options = options,
                        .data = request.data,
                        .inplace_activations = request.inplace_activations,
                        .mixed_precision = request.mixed_precision,
                        .lora_rank = request.lora_rank,
                        .lora_layers = request.lora_layers,
                        .lora_integers = request.lora_integers,
                        .element_bytes = request.element_bytes,
                        .checkpoint = request.checkpoint,
                        .tensor_parallel = request.tensor_parallel};
  return known.make(resolved);
}

Options with_preset(const Options& model) {
  const KnownModel& known = find(model.text("name"));
  Options resolved = model;
  if (!known.presets) return resolved;
  const std::string& name = model.text("preset");
  if (name == kNoPreset) return resolved;
  for (const auto& [setting, value] : preset_of(known, name).settings) resolved.set(setting, value);
  return resolved;
}

Tensor right_answers(const Tensor& output, const Tensor& target) {
  return output.argmax(output.dim() == 4 ? 1 : -1).eq(target).sum();
}

}  // namespace tenon::train
