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
};
constexpr KnownModel kModels[] = {
    {"mlp", make_mlp, Task::kClassify},           {"lenet", make_lenet, Task::kClassify},
    {"resnet8", make_resnet8, Task::kClassify},   {"vit", make_vit, Task::kClassify},
    {"resnet18", make_resnet18, Task::kClassify}, {"resnet50", make_resnet50, Task::kClassify},
    {"unet", make_unet, Task::kSegment},          {"lstm-lm", make_lstm_lm, Task::kLanguage},
    {"gpt", make_gpt, Task::kLanguage},           {"llama", make_llama, Task::kLanguage},
};

const KnownModel& find(std::string_view name) {
  const auto* known =
      std::find_if(std::begin(kModels), std::end(kModels), [&](const auto& m) { return name == m.name; });
  if (known == std::end(kModels)) {
    throw Error(fmt::format("no model '{}'; there are {}", name, fmt::join(model_names(), ", ")));
  }
  return *known;
}

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const KnownModel& model : kModels) names.emplace_back(model.name);
  return names;
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
