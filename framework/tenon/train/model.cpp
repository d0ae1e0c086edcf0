// Models by name.
#include <tenon/train/model.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::train {
namespace {

struct KnownModel {
  const char* name;
  Model (*make)(const ModelRequest&);
  Task task;
  std::vector<std::string> settings;  ///< that it reads
};

const std::vector<KnownModel>& known_models() {
  static const std::vector<KnownModel> models = {
      {"mlp", make_mlp, Task::kClassify, {"hidden", "layers", "dropout"}},
      {"lenet", make_lenet, Task::kClassify, {"dropout"}},
      {"resnet8", make_resnet8, Task::kClassify, {}},
      {"vit", make_vit, Task::kClassify, {"hidden", "layers", "heads", "activation", "patch", "dropout"}},
      {"resnet18", make_resnet18, Task::kClassify, {}},
      {"resnet50", make_resnet50, Task::kClassify, {}},
      {"unet", make_unet, Task::kSegment, {"hidden", "layers", "dropout"}},
      {"lstm-lm", make_lstm_lm, Task::kLanguage, {"hidden", "layers", "tied", "dropout"}},
      {"gpt", make_gpt, Task::kLanguage, {"hidden", "layers", "heads", "tied", "activation", "dropout"}},
      {"llama",
       make_llama,
       Task::kLanguage,
       {"hidden", "layers", "heads", "kv_heads", "intermediate", "preset", "tied", "dropout"}}};
  return models;
}

const KnownModel& find(std::string_view name) {
  const auto known = std::ranges::find_if(known_models(), [&](const auto& m) { return name == m.name; });
  if (known == known_models().end()) {
    throw Error(fmt::format("no model '{}'; there are {}", name, fmt::join(model_names(), ", ")));
  }
  return *known;
}

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const KnownModel& model : known_models()) names.emplace_back(model.name);
  return names;
}

std::vector<std::string> settings_of(std::string_view model) {
  const KnownModel& known = find(model);
  std::vector<std::string> settings = known.settings;
  if (known.task == Task::kLanguage)
    settings.insert(settings.end(), {"context", "vocabulary"});
  else
    settings.emplace_back("image_size");
  return settings;
}

Task task_of(std::string_view name) { return find(name).task; }

Model make_model(const ModelRequest& request) {
  const KnownModel& known = find(request.options.text("name"));
  if ((known.task == Task::kLanguage) != (request.data.vocabulary > 0)) {
    throw Error(
        fmt::format("the model '{}' reads {}", known.name, known.task == Task::kLanguage ? "text" : "pictures"));
  }
  return known.make(request);
}

}  // namespace tenon::train
