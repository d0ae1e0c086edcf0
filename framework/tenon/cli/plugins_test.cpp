// The kit in this process, or in one of its own.
#include <tenon/cli/own_process.h>
#include <tenon/cli/plugins_test.h>
#include <tenon/conformance/conformance.h>
#include <tenon/runtime/environment.h>
#include <tenon/runtime/plugins/plugin_search.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>

#include <memory>

namespace tenon::cli {

namespace {

struct TestOptions {
  std::string plugin;
  std::string only;
  std::uint64_t seed = 47;
  bool here = false;  ///< in this process; otherwise in one of its own, so that a crash becomes a finding
  TableFormat format = TableFormat::kTable;
};

const char* name_of(TableFormat format) {
  constexpr const char* kNames[] = {"table", "json", "csv", "markdown"};
  return kNames[static_cast<int>(format)];
}

std::vector<std::string> allocators_of(const std::string& plugin) {
  if (!is_plugin_path(plugin)) return {find_allocator(plugin).name};
  const LoadedPlugin& loaded = load_plugin(plugin);
  if (loaded.allocators.empty()) {
    throw PluginError(
        fmt::format("plugin {}: it supplies no allocator, and the kit tests allocators", loaded.path.string()));
  }
  return loaded.allocators;
}

ExitCode test_here(const TestOptions& options) {
  bool passed = true;
  Table table({{"allocator", "allocator"},
               {"check", "check"},
               {"passed", "passed"},
               {"promise", "promise"},
               {"seconds", "seconds"},
               {"failure", "failure", false}});
  for (const std::string& name : allocators_of(options.plugin)) {
    conformance::RunOptions run;
    run.seed = options.seed;
    run.only = options.only;
    const conformance::Report report = conformance::run(find_allocator(name), nullptr, run);
    passed = passed && report.passed();
    if (options.format == TableFormat::kTable) print(report.text());
    for (const conformance::CheckResult& check : report.checks) {
      table.add_row({name, check.name, check.passed(), check.promise, Real{check.seconds, 3},
                     check.failure.empty() ? TableCell() : TableCell(check.failure)});
    }
  }
  if (table.empty()) {
    throw ConfigError(fmt::format("no check's name contains \"{}\"; there are {}", options.only,
                                  fmt::join(conformance::check_names(), ", ")));
  }
  if (options.format != TableFormat::kTable) print(render(table, options.format, environment_json()));
  return passed ? ExitCode::kDone : ExitCode::kFailed;
}

ExitCode test(const TestOptions& options) {
  if (options.here) return test_here(options);
  std::vector<std::string> arguments = {"plugins",      "test",
                                        options.plugin, "--here",
                                        "--seed",       std::to_string(options.seed),
                                        "--format",     name_of(options.format)};
  if (!options.only.empty()) arguments.insert(arguments.end(), {"--only", options.only});
  const Ending ending = run_again(arguments, false);
  if (ending.signal != 0) {
    throw Error(
        fmt::format("{} ended the test by {}: an allocator reports what it cannot do with an exception; "
                    "run it again under a debugger with --here",
                    options.plugin, ending.signal_text()));
  }
  return static_cast<ExitCode>(ending.exit_code);
}

}  // namespace

void add_plugins_test(CLI::App& plugins, Outcome& outcome) {
  auto options = std::make_shared<TestOptions>();
  CLI::App* verb = plugins.add_subcommand("test", "the conformance kit on every allocator of a plugin");
  verb->add_option("plugin", options->plugin, "a path to a .so, or an allocator's name")->required();
  verb->add_option("--only", options->only, "checks whose name contains this")->type_name("TEXT");
  verb->add_option("--seed", options->seed, "of the random histories (47)")->type_name("N");
  verb->add_flag("--here", options->here, "in this process, for a debugger");
  add_format_option(*verb, options->format);
  verb->footer(example("tenon plugins test build/my_cache.so"));
  verb->callback([options, &outcome] { outcome.exit_code = test(*options); });
}

}  // namespace tenon::cli
