// The kit on each SPEC, its lines printed as they come.
#include <tenon/cli/plugins_test.h>
#include <tenon/cli/process/own_process.h>
#include <tenon/cli/terminal/status_line.h>
#include <tenon/conformance/conformance.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/environment.h>
#include <tenon/runtime/plugins/plugin_search.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>

#include <memory>

namespace tenon::cli {

namespace {

struct TestOptions {
  std::vector<std::string> specs;
  std::string only;
  std::uint64_t seed = 47;
  double deadline_seconds = 60;
  bool is_here = false;  ///< in this process; otherwise each check in one of its own, so that a crash becomes a finding
  TableFormat format = TableFormat::kTable;
};

/// One allocator with one set of options.
struct Subject {
  std::string spec;
  const AllocatorInfo* info = nullptr;
  Options options;
};

std::vector<const AllocatorInfo*> allocators_of(const std::string& plugin) {
  if (!is_plugin_path(plugin)) return {&find_allocator(plugin)};
  // A plugin may crash while it is loaded.
  const Ending ending = run_again({"plugins", "info", plugin, "--format", "json"}, true);
  if (ending.signal != 0)
    throw PluginError(fmt::format("plugin {}: loading it ended by {}", plugin, ending.signal_text()));
  std::vector<const AllocatorInfo*> allocators = allocators_of_file(plugin);
  if (allocators.empty())
    throw PluginError(fmt::format("plugin {} supplies no allocator, and the kit tests allocators", plugin));
  return allocators;
}

std::vector<Subject> subjects_of(const std::vector<std::string>& specs) {
  std::vector<Subject> subjects;
  for (const std::string& spec : specs) {
    for (const AllocatorInfo* info : allocators_of(spec.substr(0, spec.find(':')))) {
      Subject subject{spec, info, Options(info->options)};
      set_options_from_spec(subject.options, spec);
      subjects.push_back(std::move(subject));
    }
  }
  return subjects;
}

/// What the speed is held against; null where it is not there.
const AllocatorInfo* yardstick() {
  try {
    return &find_allocator(kDefaultAllocator);
  } catch (const Error&) {
    return nullptr;
  }
}

conformance::Report test_one(const Subject& subject, const TestOptions& options) {
  const bool is_text = options.format == TableFormat::kTable;
  StatusLine status(false);
  conformance::RunOptions run;
  run.seed = options.seed;
  run.only = options.only;
  run.is_isolated = !options.is_here;
  run.deadline_seconds = options.deadline_seconds;
  run.measures_speed = true;
  run.yardstick = yardstick();
  run.after_speed = [&](const conformance::Speed& speed) {
    if (is_text && speed.is_absurd())
      print(fmt::format("  warning: slow: {}; the random checks run fewer histories\n", speed.text()));
  };
  run.after_each = [&](const conformance::CheckResult& check) {
    status.erase();
    if (is_text) print(check.line());
  };
  run.on_progress = [&](const conformance::Progress& at) {
    if (!status.is_due()) return;
    status.show(fmt::format("{}{}, {} calls, {}", at.check, at.seed ? fmt::format(", seed {}", *at.seed) : "", at.calls,
                            format_duration(at.seconds)));
  };
  conformance::Report heading;
  heading.allocator = subject.info->name;
  heading.options = subject.options.spec();
  heading.seed = options.seed;
  if (is_text) print(heading.heading());
  conformance::Report report = conformance::run(*subject.info, &subject.options, run);
  status.erase();
  if (is_text && !report.checks.empty()) print(report.summary());
  return report;
}

ExitCode test(const TestOptions& options) {
  bool passed = true;
  Table table({{"allocator", "allocator"},
               {"spec", "spec"},
               {"check", "check"},
               {"passed", "passed"},
               {"promise", "promise"},
               {"seconds", "seconds"},
               {"same_as", "same as"},
               {"failure", "failure", false}});
  for (const Subject& subject : subjects_of(options.specs)) {
    const conformance::Report report = test_one(subject, options);
    passed = passed && report.passed();
    for (const conformance::CheckResult& check : report.checks) {
      table.add_row({subject.info->name, subject.spec, check.name, check.passed(), check.promise,
                     Real{check.seconds, 3}, check.same_as.empty() ? TableCell() : TableCell(check.same_as),
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

}  // namespace

void add_plugins_test(CLI::App& plugins, Outcome& outcome) {
  auto options = std::make_shared<TestOptions>();
  CLI::App* verb = plugins.add_subcommand("test", "run the conformance kit on every allocator of a plugin");
  verb->add_option("spec", options->specs, "a path to a .so, or an allocator's name; either with :OPTION=VALUE,…")
      ->required()
      ->type_name("SPEC");
  verb->add_option("--only", options->only, "checks whose name contains this")->type_name("TEXT");
  verb->add_option("--seed", options->seed, "of the random histories; default: 47")->type_name("N");
  verb->add_option("--deadline", options->deadline_seconds,
                   "time limit of each check; default: 60; one call of the allocator gets a tenth of it")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 86400.0));
  verb->add_flag("--here", options->is_here, "run all checks in this process, for a debugger");
  add_format_option(*verb, options->format);
  verb->footer(example("tenon plugins test build/my_cache.so build/my_cache.so:chunk=1MiB"));
  verb->callback([options, &outcome] { outcome.exit_code = test(*options); });
}

}  // namespace tenon::cli
