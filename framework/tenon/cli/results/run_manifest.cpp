// run.json, written and compared.
#include <tenon/cli/results/run_manifest.h>

#include <tenon/core/files/atomic_file.h>
#include <tenon/core/files/file_text.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <sstream>

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

/// Our own TOML: a setting a line below its section's.
std::map<std::string, std::string> settings_of(const std::string& toml) {
  std::map<std::string, std::string> settings;
  std::string section;
  std::istringstream lines(toml);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("[")) section = line.substr(1, line.find(']') - 1) + ".";
    const std::size_t equals = line.find(" = ");
    if (equals != std::string::npos && !line.starts_with("#"))
      settings[section + line.substr(0, equals)] = line.substr(equals + 3);
  }
  return settings;
}

/// "allocator.mine." of the plugins that are other files now.
std::vector<std::string> rebuilt_sections(const RunManifest& then, const RunManifest& now) {
  std::vector<std::string> sections;
  if (!now.basis) return sections;
  const BasisChange change = change_between(then.basis, *now.basis);
  for (const LoadedPlugin& plugin : loaded_plugins()) {
    if (std::ranges::find(change.plugins, plugin.path, &UsedPlugin::path) == change.plugins.end()) continue;
    for (const std::string& name : plugin.allocators) sections.push_back("allocator." + name + ".");
    for (const std::string& kind : plugin.backends) sections.push_back("device." + kind + ".");
  }
  return sections;
}

nlohmann::ordered_json basis_json(const RunBasis& basis) {
  nlohmann::ordered_json json = {{"tenon", {{"version", basis.version}, {"build", basis.build}}},
                                 {"plugins", nlohmann::ordered_json::array()}};
  for (const UsedPlugin& plugin : basis.plugins)
    json["plugins"].push_back({{"name", plugin.name},
                               {"version", plugin.version},
                               {"path", plugin.path.string()},
                               {"sha256", plugin.sha256}});
  return json;
}

std::optional<RunBasis> basis_in(const nlohmann::json& manifest) {
  if (!manifest.contains("plugins")) return std::nullopt;
  RunBasis basis{
      .version = manifest.at("tenon").at("version"), .build = manifest.at("tenon").at("build"), .plugins = {}};
  for (const auto& plugin : manifest.at("plugins"))
    basis.plugins.push_back({.name = plugin.at("name"),
                             .version = plugin.at("version"),
                             .path = plugin.at("path").get<std::string>(),
                             .sha256 = plugin.at("sha256")});
  return basis;
}

nlohmann::ordered_json faults_json(const std::vector<RunFault>& faults) {
  auto json = nlohmann::ordered_json::array();
  for (const RunFault& fault : faults)
    json.push_back({{"allocator", fault.allocator}, {"what", fault.what}, {"spec", fault.spec}});
  return json;
}

std::vector<RunFault> faults_in(const nlohmann::json& manifest) {
  std::vector<RunFault> faults;
  for (const auto& fault : manifest.value("faults", nlohmann::json::array()))
    faults.push_back({.allocator = fault.at("allocator"), .what = fault.at("what"), .spec = fault.at("spec")});
  return faults;
}

std::vector<std::string> missing_in(const std::vector<std::string>& here, const std::vector<std::string>& there) {
  std::vector<std::string> missing;
  for (const std::string& one : there) {
    if (std::ranges::find(here, one) == here.end()) missing.push_back(one);
  }
  return missing;
}

}  // namespace

RunManifest manifest_of(const RunOptions& options, const Config& config) {
  RunManifest manifest;
  manifest.folder = fs::current_path().string();
  manifest.command = options;
  manifest.is_sweep = !config.sweep_keys().empty();
  for (const SweepPoint& cell : config.sweep_cells())
    manifest.cells.push_back(fmt::format("{}", fmt::join(cell.overrides, " ")));
  manifest.settings = config.resolved_toml();
  for (const ExplainedSetting& setting : config.explain())
    if (setting.winner.origin == Origin::kDefault) manifest.defaults.push_back(setting.key);
  const ExperimentConfig experiment = config.experiment();
  manifest.basis = manifest.is_sweep ? basis_of_loaded() : basis_of(experiment);
  for (const LayerConfig& layer : experiment.allocator.layers) {
    if (std::string file = layer_file(layer); !file.empty()) manifest.files.push_back(std::move(file));
  }
  manifest.cells_at_a_time = options.cells_at_a_time;
  return manifest;
}

namespace {

fs::path written_file(const LayerConfig& layer) {
  for (const OptionSpec& option : layer.options.schema())
    if (option.name == "file" && option.type == OptionType::kText) return layer.options.text("file");
  return {};
}

}  // namespace

std::string layer_file(const LayerConfig& layer) {
  const fs::path file = written_file(layer);
  return file.is_relative() ? file.string() : std::string();
}

void place_layer_files(ExperimentConfig& experiment, const std::filesystem::path& folder) {
  for (LayerConfig& layer : experiment.allocator.layers) {
    if (const std::string file = layer_file(layer); !file.empty())
      layer.options.set("file", std::filesystem::absolute(folder / file).string());
  }
}

std::string layer_file_elsewhere(const LayerConfig& layer) {
  const fs::path file = written_file(layer);
  return file.is_absolute() ? file.string() : std::string();
}

void write_manifest(const fs::path& folder, const RunManifest& manifest) {
  nlohmann::ordered_json json = {{"schema_version", 1},
                                 {"kind", manifest.is_sweep ? "sweep" : "run"},
                                 {"finished", manifest.is_finished},
                                 {"folder", manifest.folder},
                                 {"experiment", manifest.command.file},
                                 {"settings", manifest.command.overrides},
                                 {"sweep", manifest.command.sweep},
                                 {"no_sweep", manifest.command.no_sweep},
                                 {"record", manifest.command.record},
                                 {"deadline", manifest.command.call_seconds},
                                 {"cells", manifest.cells},
                                 {"files", manifest.files},
                                 {"cells_at_a_time", manifest.cells_at_a_time}};
  if (manifest.basis) json.update(basis_json(*manifest.basis));
  if (!manifest.faults.empty()) json["faults"] = faults_json(manifest.faults);
  write_atomically(folder / kSettingsFile, manifest.settings);
  write_atomically(folder / kManifestFile, json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::optional<RunManifest> read_manifest(const fs::path& folder) {
  const auto json = nlohmann::json::parse(text_of_file(folder / kManifestFile), nullptr, false);
  if (!json.is_object()) return std::nullopt;
  try {
    RunManifest manifest;
    manifest.is_sweep = json.at("kind") == "sweep";
    manifest.is_finished = json.at("finished");
    manifest.folder = json.at("folder");
    manifest.command.file = json.at("experiment");
    manifest.command.overrides = json.at("settings");
    manifest.command.sweep = json.at("sweep");
    manifest.command.no_sweep = json.at("no_sweep");
    manifest.command.record = json.at("record");
    manifest.command.call_seconds = json.value("deadline", kCallSeconds);
    manifest.cells = json.at("cells");
    manifest.settings = text_of_file(folder / kSettingsFile);
    manifest.basis = basis_in(json);
    manifest.files = json.value("files", manifest.files);
    manifest.faults = faults_in(json);
    manifest.cells_at_a_time = json.value("cells_at_a_time", 1U);
    return manifest;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::vector<std::string> changes_between(const RunManifest& then, const RunManifest& now) {
  std::vector<std::string> changes;
  const std::vector<std::string> rebuilt = rebuilt_sections(then, now);
  const auto is_of_rebuilt = [&](const std::string& key) {
    return std::ranges::any_of(rebuilt, [&](const std::string& section) { return key.starts_with(section); });
  };
  const auto before = settings_of(then.settings), after = settings_of(now.settings);
  for (const auto& [key, value] : before) {
    const auto found = after.find(key);
    if (found == after.end()) {
      if (is_of_rebuilt(key)) continue;
      changes.push_back(fmt::format("{} was {}, and is missing now", key, value));
    } else if (found->second != value) {
      if (is_of_rebuilt(key) && std::ranges::find(now.defaults, key) != now.defaults.end()) continue;
      changes.push_back(fmt::format("{} was {}, is {}", key, value, found->second));
    }
  }
  for (const auto& [key, value] : after) {
    if (!before.contains(key) && !is_of_rebuilt(key))
      changes.push_back(fmt::format("{} was not there, is {}", key, value));
  }
  for (const std::string& cell : missing_in(now.cells, then.cells))
    changes.push_back(fmt::format("the cell {} is gone", cell));
  for (const std::string& cell : missing_in(then.cells, now.cells))
    changes.push_back(fmt::format("the cell {} is new", cell));
  if (changes.empty() && then.cells != now.cells) changes.emplace_back("the cells have another order");
  return changes;
}

}  // namespace tenon::cli
