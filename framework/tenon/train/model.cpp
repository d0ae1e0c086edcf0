// Models by name.
#include <tenon/train/model.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::train {
namespace {

struct KnownModel {
  const char* name;
  Model (*make)(const ModelRequest&);
  bool text;
};
constexpr KnownModel kModels[] = {
    {"mlp", make_mlp, false},
    {"lenet", make_lenet, false},
    {"resnet18", make_resnet18, false},
    {"resnet50", make_resnet50, false},
};

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const KnownModel& model : kModels) names.emplace_back(model.name);
  return names;
}

Model make_model(const ModelRequest& request) {
  const std::string& name = request.options.text("name");
  const auto* known =
      std::find_if(std::begin(kModels), std::end(kModels), [&](const auto& m) { return name == m.name; });
  if (known == std::end(kModels)) {
    throw Error(fmt::format("no model '{}'; there are {}", name, fmt::join(model_names(), ", ")));
  }
  if (known->text != (request.data.vocabulary > 0)) {
    throw Error(fmt::format("the model '{}' reads {}", name, known->text ? "text" : "pictures"));
  }
  return known->make(request);
}

}  // namespace tenon::train
