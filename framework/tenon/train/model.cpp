// Models by name.
#include <tenon/train/model.h>

#include <tenon/ops/ops.h>
#include <tenon/train/presets.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::train {
namespace {

/// What only some models can.
struct Abilities {
  bool serves = false;      ///< requests
  bool has_stages = false;  ///< it is made of layers, which a pipeline divides over devices
  bool is_divided = false;  ///< train.tensor_parallel divides each of them over ranks
};

struct KnownModel {
  const char* name;
  Model (*make)(const ModelRequest&);
  Task task;
  std::vector<std::string> settings;  ///< that it reads
  Presets (*presets)() = nullptr;
  Abilities can = {};
};

const std::vector<KnownModel>& known_models() {
  static const std::vector<KnownModel> models = {
      {"mlp", make_mlp, Task::kClassify, {"hidden", "layers", "dropout"}, nullptr, {.has_stages = true}},
      {"lenet", make_lenet, Task::kClassify, {"dropout"}},
      {"resnet8", make_resnet8, Task::kClassify, {}, nullptr, {.has_stages = true}},
      {"vit",
       make_vit,
       Task::kClassify,
       {"hidden", "layers", "heads", "activation", "patch", "preset", "dropout"},
       vit_presets,
       {.is_divided = true}},
      {"resnet18", make_resnet18, Task::kClassify, {"stem", "preset"}, resnet_presets, {.has_stages = true}},
      {"resnet50", make_resnet50, Task::kClassify, {"stem", "preset"}, resnet_presets, {.has_stages = true}},
      {"unet", make_unet, Task::kSegment, {"hidden", "layers", "dropout"}},
      {"ddpm",
       make_ddpm,
       Task::kDenoise,
       {"hidden", "layers", "multipliers", "attention_sides", "preset", "dropout"},
       ddpm_presets},
      {"latent-diffusion",
       make_latent_diffusion,
       Task::kDenoise,
       {"hidden", "layers", "multipliers", "heads", "text_width", "preset", "dropout"},
       latent_diffusion_presets},
      {"lstm-lm", make_lstm_lm, Task::kLanguage, {"hidden", "layers", "tied", "dropout"}},
      {"bert",
       make_bert,
       Task::kMasked,
       {"hidden", "layers", "heads", "activation", "positions", "preset", "dropout"},
       bert_presets},
      {"gpt",
       make_gpt,
       Task::kLanguage,
       {"hidden", "layers", "heads", "tied", "activation", "positions", "dropout"},
       nullptr,
       {.serves = true, .has_stages = true, .is_divided = true}},
      {"gpt2",
       make_gpt,
       Task::kLanguage,
       {"hidden", "layers", "heads", "tied", "activation", "positions", "preset", "dropout"},
       gpt2_presets,
       {.serves = true, .has_stages = true, .is_divided = true}},
      {"llama",
       make_llama,
       Task::kLanguage,
       {"hidden", "layers", "heads", "kv_heads", "intermediate", "rotary_factor", "preset", "tied", "dropout"},
       llama_presets,
       {.serves = true, .has_stages = true, .is_divided = true}},
      {"moe",
       make_moe,
       Task::kLanguage,
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
