// What an experiment's configuration can be asked, and putting it in service.
#include <tenon/runtime/config/experiment.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/runtime/plugins/plugin_search.h>

#include <fmt/format.h>

#include <filesystem>

namespace tenon {

const Options& ExperimentConfig::section(std::string_view wanted) const {
  const auto found = sections.find(wanted);
  TENON_ASSERT(found != sections.end(), "a section that the schema declares");
  return found->second;
}

std::string ExperimentConfig::device_names() const {
  std::string names;
  for (const Device& each : devices) names += (names.empty() ? "" : ", ") + each.str();
  return names.empty() ? device.str() : names;
}

std::string ExperimentConfig::resolve(const std::string& path) const {
  return path.empty() ? "" : (std::filesystem::path(folder) / path).lexically_normal().string();
}

ConfigError ExperimentConfig::error(std::string_view key, std::string_view message) const {
  const auto found = positions.find(key);
  if (found == positions.end()) return ConfigError(fmt::format("{}: {}", key, message));
  return config_error(found->second, fmt::format("{}: {}", key, message));
}

void install(const ExperimentConfig& config) {
  set_plugin_search({config.plugin_search.begin(), config.plugin_search.end()});
  for (const auto& [kind, options] : config.backend_options) set_backend_options(kind, options);
  set_allocator(config.device.type().name(), config.allocator);
}

}  // namespace tenon
