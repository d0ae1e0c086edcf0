// What is set in the file, the environment, the command line or a sweep, against what the models declare.
#include <tenon/train/config/unread_settings.h>
#include <tenon/train/model.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace tenon {

namespace {

constexpr std::string_view kSection = "model.";

/// "lenet" of the override model.name="lenet", empty where it sets something else.
std::string model_of(const std::string& override_text) {
  constexpr std::string_view kName = "model.name=";
  if (!override_text.starts_with(kName)) return {};
  std::string name = override_text.substr(kName.size());
  std::erase(name, '"');
  return name;
}

/// Of the experiment, or of each cell of its sweep.
std::set<std::string> models_of(const Config& config) {
  std::set<std::string> models;
  const ExperimentConfig experiment = config.experiment();
  const std::string base = experiment.section("model").text("name");
  const std::vector<SweepPoint> cells = config.sweep_cells();
  for (const SweepPoint& cell : cells) {
    std::string model = base;
    for (const std::string& text : cell.overrides)
      if (const std::string name = model_of(text); !name.empty()) model = name;
    models.insert(model);
  }
  if (cells.empty()) models.insert(base);
  return models;
}

/// Those that are not their defaults: a resolved configuration states all of them.
std::set<std::string> model_settings_set(const Config& config) {
  std::set<std::string> keys;
  const ExperimentConfig experiment = config.experiment();
  const Options& model = experiment.section("model");
  for (const auto& [name, value] : model.entries(true)) keys.insert(std::string(kSection) + name);
  for (const SweepPoint& cell : config.sweep_cells())
    for (const std::string& text : cell.overrides) keys.insert(text.substr(0, text.find('=')));
  std::erase_if(keys, [](const std::string& key) { return !key.starts_with(kSection) || key == "model.name"; });
  return keys;
}

/// Of one experiment, not of a sweep: what its preset says otherwise.
std::vector<std::string> overruled_by_preset(const Config& config) {
  if (!config.sweep_cells().empty()) return {};
  const ExperimentConfig experiment = config.experiment();
  const Options &given = experiment.section("model"), resolved = train::with_preset(given);
  const auto before = given.entries(false), after = resolved.entries(false);
  std::vector<std::string> remarks;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::string& name = before[i].first;
    if (!given.is_default(name) && before[i].second != after[i].second)
      remarks.push_back(fmt::format("model.{} = {} changes nothing: model.preset = \"{}\" says {}", name,
                                    before[i].second, given.text("preset"), after[i].second));
  }
  return remarks;
}

}  // namespace

std::vector<std::string> unread_model_settings(const Config& config) {
  const std::set<std::string> models = models_of(config);
  std::vector<std::string> remarks = overruled_by_preset(config);
  for (const std::string& key : model_settings_set(config)) {
    const std::string name = key.substr(kSection.size());
    const bool is_read = std::ranges::any_of(models, [&](const std::string& model) {
      const std::vector<std::string> settings = train::settings_of(model);
      return std::ranges::find(settings, name) != settings.end();
    });
    if (is_read) continue;
    const std::string& first = *models.begin();
    remarks.push_back(
        models.size() > 1
            ? fmt::format("{} changes nothing: none of {} reads it", key, fmt::join(models, ", "))
            : fmt::format("{} changes nothing: {} reads {}", key, first, fmt::join(train::settings_of(first), ", ")));
  }
  return remarks;
}

}  // namespace tenon
