// The loaded plugins that a run uses, and what has become of them since.
#include <tenon/cli/results/run_basis.h>

#include <tenon/cli/results/allocator_file.h>
#include <tenon/core/options.h>
#include <tenon/device/device_driver.h>
#include <tenon/memory/factory.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/environment.h>
#include <tenon/runtime/plugins/library_build.h>
#include <tenon/runtime/plugins/plugin_search.h>
#include <tenon/runtime/plugins/plugins.h>
#include <tenon/runtime/plugins/shipped_plugins.h>

#include <algorithm>

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

UsedPlugin used(const LoadedPlugin& plugin) {
  return {.name = plugin.name, .version = plugin.version, .path = plugin.path, .sha256 = plugin.sha256()};
}

void add(RunBasis& basis, const LoadedPlugin& plugin) {
  const bool is_known = std::ranges::find(basis.plugins, plugin.path, &UsedPlugin::path) != basis.plugins.end();
  if (!is_known) basis.plugins.push_back(used(plugin));
}

/// The files of the run's own allocator and of those behind its layers.
std::vector<fs::path> allocator_files(const ExperimentConfig& experiment) {
  std::vector<fs::path> files = {file_of_allocator(experiment)};
  for (const LayerConfig& layer : experiment.allocator.layers) {
    if (std::ranges::find(layer.options.schema(), "to", &OptionSpec::name) == layer.options.schema().end()) continue;
    const std::string& spec = layer.options.text("to");
    try {
      if (!spec.empty()) files.push_back(file_of_allocator(allocator_from_spec(spec).policy.name, spec, experiment));
    } catch (const Error&) {  // the run will say so
    }
  }
  return files;
}

/// Whether it was installed with the library that runs.
bool is_shipped(const UsedPlugin& plugin) {
  const auto shipped = shipped_plugins();
  return plugin.path.parent_path() == library_folder() / "tenon" / "plugins" &&
         std::ranges::find(shipped, plugin.name) != shipped.end();
}

}  // namespace

RunBasis basis_of(const ExperimentConfig& experiment) {
  RunBasis basis{.version = environment().version, .build = library_build(), .plugins = {}};
  const std::vector<fs::path> files = allocator_files(experiment);
  std::vector<std::string> kinds = {std::string(experiment.device.type().name())};
  if (const std::string like = find_backend(kinds.front()).kernels_like(); !like.empty()) {
    find_backend(like);  // its plugin is loaded for the kernels
    kinds.push_back(like);
  }
  for (const LoadedPlugin& plugin : loaded_plugins()) {
    const bool has_kernels_alone = plugin.kernels > 0 && plugin.allocators.empty() && plugin.backends.empty();
    const bool is_device = std::ranges::any_of(kinds, [&](const std::string& kind) {
      return std::ranges::find(plugin.backends, kind) != plugin.backends.end();
    });
    if (has_kernels_alone || is_device || std::ranges::find(files, plugin.path) != files.end()) add(basis, plugin);
  }
  return basis;
}

RunBasis basis_of_loaded() {
  RunBasis basis{.version = environment().version, .build = library_build(), .plugins = {}};
  for (const LoadedPlugin& plugin : loaded_plugins()) add(basis, plugin);
  return basis;
}

BasisChange change_between(const std::optional<RunBasis>& then, const RunBasis& now) {
  BasisChange change;
  if (!then) return change;
  change.is_tenon = then->build != now.build;
  for (const UsedPlugin& plugin : now.plugins) {
    const bool is_the_same =
        std::ranges::find(then->plugins, plugin.sha256, &UsedPlugin::sha256) != then->plugins.end();
    if (!is_the_same && !(change.is_tenon && is_shipped(plugin))) change.plugins.push_back(plugin);
  }
  return change;
}

}  // namespace tenon::cli
