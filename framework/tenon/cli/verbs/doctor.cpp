// `tenon doctor`: what is missing here, what for, and how to get it; with a FILE, what that run would have fitted
// under.
#include <tenon/cli/verb.h>
#include <tenon/cli/verbs/doctor_trace.h>

#include <tenon/core/units.h>
#include <tenon/device/device_driver.h>
#include <tenon/memory/pytorch_conf.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/runtime/environment.h>
#include <tenon/runtime/plugins/plugin_search.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>

namespace tenon::cli {

namespace {

struct Finding {
  std::string what;
  std::string state;  ///< "ok", "missing", "broken"
  std::string detail;
  std::string remedy;  ///< empty when ok
  bool needed = true;  ///< whether its absence makes the exit code 1
};

void check_plugins(std::vector<Finding>& findings) {
  for (const PluginProblem& problem : load_all_plugins()) {
    findings.push_back(
        {problem.path.stem().string(), "broken", problem.problem, "rebuild it, or take it out of the folder", true});
  }
  const std::vector<LoadedPlugin> loaded = loaded_plugins();
  for (const LoadedPlugin& plugin : loaded)
    findings.push_back({"plugin " + plugin.name, "ok", plugin.path.string(), "", true});
  for (const char* name : {"cpu", "simulated", "direct", "caching", "expandable"}) {
    const bool there =
        std::any_of(loaded.begin(), loaded.end(), [&](const LoadedPlugin& plugin) { return plugin.name == name; });
    if (!there) {
      findings.push_back({fmt::format("plugin {}", name), "missing", "not in any plugin folder",
                          "build Tenon whole (./dev build) or install it whole (cmake --install)", true});
    }
  }
}

void check_devices(std::vector<Finding>& findings) {
  for (const std::string& kind : backend_names()) {
    Backend& backend = configured_backend(kind);
    const int count = backend.device_count();
    if (count > 0) {
      findings.push_back({"device " + kind, "ok",
                          fmt::format("{} of this kind, the first is {}", count, backend.device(0).properties().name),
                          "", true});
    } else {
      findings.push_back({"device " + kind, "missing", backend.why_unavailable(),
                          kind == "cuda" ? "needs an NVIDIA GPU with its driver; everything else works without" : "",
                          kind == "cpu"});
    }
  }
  const std::vector<std::string> kinds = backend_names();
  if (std::find(kinds.begin(), kinds.end(), "cuda") == kinds.end()) {
    findings.push_back({"device cuda", "missing", "its plugin is not built",
                        "install the CUDA Toolkit (nvcc) and build again; only needed for GPUs", false});
  }
}

void check_data(std::vector<Finding>& findings) {
  const std::filesystem::path folder = "/usr/share/datasets/fashion-mnist";
  std::error_code ignored;
  const bool there = std::filesystem::exists(folder / "train-images-idx3-ubyte.gz", ignored);
  findings.push_back(
      {"data fashion-mnist", there ? "ok" : "missing", folder.string(),
       there ? "" : "apt install dataset-fashion-mnist, or set data.path to a folder with the four IDX files", false});
}

void check_program(std::vector<Finding>& findings, const char* name, const char* what_for, const char* package) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  std::error_code ignored;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    const auto candidate = std::filesystem::path(folder) / name;
    if (!folder.empty() && std::filesystem::exists(candidate, ignored)) {
      findings.push_back({name, "ok", candidate.string(), "", false});
      return;
    }
  }
  findings.push_back({name, "missing", what_for, fmt::format("apt install {}", package), false});
}

ExitCode doctor(const DoctorTraceOptions& options) {
  std::vector<Finding> findings;
  check_plugins(findings);
  check_devices(findings);
  check_data(findings);
  check_program(findings, "cmake", "builds plugins of your own (tenon new)", "cmake");
  check_program(findings, "c++", "builds plugins of your own (tenon new)", "g++");
  Table table(
      {{"what", "what"}, {"state", "state"}, {"detail", "detail"}, {"remedy", "remedy"}, {"needed", "needed", false}});
  bool healthy = true;
  for (const Finding& finding : findings) {
    healthy = healthy && (finding.state == "ok" || !finding.needed);
    table.add_row({finding.what, finding.state, finding.detail.empty() ? Cell() : Cell(finding.detail),
                   finding.remedy.empty() ? Cell() : Cell(finding.remedy), finding.needed});
  }
  if (options.format == TableFormat::kTable) {
    const Environment& env = environment();
    print(fmt::format("tenon {} ({}, {}) on {}\n{}, {} cores, {}\n\n", env.version, env.compiler, env.build_type,
                      env.system, env.cpu, env.cores, format_bytes(env.memory_bytes)));
  }
  print(render(table, options.format, environment_json()));
  return healthy ? ExitCode::kDone : ExitCode::kFailed;
}

}  // namespace

void add_doctor(CLI::App& program, Outcome& outcome) {
  auto options = std::make_shared<DoctorTraceOptions>();
  CLI::App* verb = program.add_subcommand(
      "doctor", "what is missing here and how to get it; or why a run died and what would have fitted");
  verb->add_option("file", options->file, "a memory history: what would it have fitted under?")->type_name("FILE");
  CLI::Option* const capacity =
      add_capacity_option(*verb, options->capacity, "of the device; else what the file says of its failure");
  CLI::Option* const allocator =
      verb->add_option("--allocator,-a", options->allocator, "what was in use, if it was Tenon's")->type_name("SPEC");
  CLI::Option* const conf =
      verb->add_option("--pytorch-conf", options->pytorch_conf, "what was set, if the file does not say")
          ->type_name("STRING")
          ->excludes(allocator);
  add_format_option(*verb, options->format);
  add_quiet_option(*verb, options->quiet);
  verb->footer(example("tenon doctor memory.pickle --capacity 24GiB"));
  verb->callback([=, &outcome] {
    if (options->file.empty() && capacity->count() + allocator->count() + conf->count() != 0)
      throw ConfigError("tenon doctor: --capacity, --allocator and --pytorch-conf are about a memory history: name it");
    options->pytorch_conf = conf_of_line(options->pytorch_conf);
    outcome.exit_code = options->file.empty() ? doctor(*options) : doctor_trace(*options);
  });
}

}  // namespace tenon::cli
