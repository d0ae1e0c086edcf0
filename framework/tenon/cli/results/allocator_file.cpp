// The loaded plugins, searched.
#include <tenon/cli/results/allocator_file.h>

#include <tenon/core/spec_names.h>
#include <tenon/report/kit_advice.h>
#include <tenon/runtime/plugins/plugins.h>

#include <algorithm>

namespace tenon::cli {

namespace fs = std::filesystem;

fs::path file_of_allocator(const std::string& name, std::string_view spec, const ExperimentConfig& experiment) {
  const fs::path word = word_of_spec(spec);
  const auto is_it = [&](const fs::path& file) {
    std::error_code none;
    return fs::equivalent(file, experiment.resolve(word.string()), none) || fs::equivalent(file, word, none);
  };
  fs::path file;
  for (const LoadedPlugin& plugin : loaded_plugins()) {
    if (std::ranges::find(plugin.allocators, name) == plugin.allocators.end()) continue;
    if (file.empty() || is_it(plugin.path)) file = plugin.path;
  }
  return file;
}

fs::path file_of_allocator(const ExperimentConfig& experiment) {
  return file_of_allocator(experiment.allocator.policy.name, experiment.section("allocator").text("name"), experiment);
}

std::string spec_of_allocator(const ExperimentConfig& experiment) {
  const fs::path file = file_of_allocator(experiment);
  return file.empty() ? "" : spec_of_file(file.string(), experiment.allocator.options.spec());
}

}  // namespace tenon::cli
