// Looking for plugins, devices, data and programs.
#include <tenon/cli/health.h>

#include <tenon/core/error.h>
#include <tenon/device/device_driver.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/runtime/plugins/plugins.h>
#include <tenon/runtime/plugins/shipped_plugins.h>
#include <tenon/train/input/data_set.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace tenon::cli {

namespace {

void check_plugins(std::vector<HealthFinding>& findings) {
  for (const PluginProblem& problem : load_all_plugins()) {
    findings.push_back({problem.path.stem().string(), HealthState::kBroken, problem.problem,
                        "rebuild it, or take it out of the folder", true});
  }
  const std::vector<LoadedPlugin> loaded = loaded_plugins();
  for (const LoadedPlugin& plugin : loaded)
    findings.push_back({"plugin " + plugin.name, HealthState::kOk, plugin.path.string(), "", true});
  for (const std::string_view name : shipped_plugins()) {
    const bool there =
        std::any_of(loaded.begin(), loaded.end(), [&](const LoadedPlugin& plugin) { return plugin.name == name; });
    if (!there) {
      findings.push_back({fmt::format("plugin {}", name), HealthState::kMissing, "not in any plugin folder",
                          "build Tenon whole (./dev build) or install it whole (cmake --install)", true});
    }
  }
}

/// What is known beforehand of a kind; of one that no plugin in the tree supplies little.
ShippedBackend shipped_as(std::string_view kind) {
  for (const ShippedBackend& backend : shipped_backends())
    if (backend.kind == kind) return backend;
  return {.kind = kind, .to_build = "", .to_run = "needs a device of its kind"};
}

void check_devices(std::vector<HealthFinding>& findings) {
  const std::vector<std::string> kinds = backend_names();
  for (const std::string& kind : kinds) {
    Backend& backend = configured_backend(kind);
    const int count = backend.device_count();
    const std::string_view to_run = shipped_as(kind).to_run;
    if (count > 0) {
      findings.push_back({"device " + kind, HealthState::kOk,
                          fmt::format("{} device{} {}", count,
                                      count == 1 ? ":" : "s; the first:", backend.device(0).properties().name),
                          "", true});
    } else {
      findings.push_back(
          {"device " + kind, HealthState::kMissing, backend.why_unavailable(), std::string(to_run), to_run.empty()});
    }
  }
  for (const ShippedBackend& backend : shipped_backends()) {
    if (backend.to_build.empty() || std::find(kinds.begin(), kinds.end(), backend.kind) != kinds.end()) continue;
    findings.push_back({fmt::format("device {}", backend.kind), HealthState::kMissing, "its plugin is not built",
                        std::string(backend.to_build), false});
  }
}

void check_communicators(std::vector<HealthFinding>& findings) {
  const std::vector<std::string> names = communicator_names();
  for (const std::string& name : names)
    findings.push_back({"communicator " + name, HealthState::kOk, find_communicator(name).summary, "", true});
  for (const ShippedCommunicator& shipped : shipped_communicators()) {
    if (std::find(names.begin(), names.end(), shipped.name) != names.end()) continue;
    findings.push_back({fmt::format("communicator {}", shipped.name), HealthState::kMissing, "its plugin is not built",
                        std::string(shipped.to_build), false});
  }
}

void check_data(std::vector<HealthFinding>& findings) {
  for (const train::DataSet& set : train::data_sets()) {
    const std::filesystem::path place = set.place;
    bool there = true;
    try {
      set.check(place);
    } catch (const Error&) {
      there = false;
    }
    findings.push_back({fmt::format("data {}", set.name), there ? HealthState::kOk : HealthState::kMissing,
                        place.string(), there ? "" : std::string(set.to_get), false});
  }
}

void check_program(std::vector<HealthFinding>& findings, const char* name, const char* what_for, const char* package) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  std::error_code ignored;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    const auto candidate = std::filesystem::path(folder) / name;
    if (!folder.empty() && std::filesystem::exists(candidate, ignored)) {
      findings.push_back({name, HealthState::kOk, candidate.string(), "", false});
      return;
    }
  }
  findings.push_back({name, HealthState::kMissing, what_for, fmt::format("apt install {}", package), false});
}

}  // namespace

std::vector<HealthFinding> check_health() {
  std::vector<HealthFinding> findings;
  check_plugins(findings);
  check_devices(findings);
  check_communicators(findings);
  check_data(findings);
  check_program(findings, "cmake", "builds plugins of your own (tenon new)", "cmake");
  check_program(findings, "c++", "builds plugins of your own (tenon new)", "g++");
  return findings;
}

}  // namespace tenon::cli
