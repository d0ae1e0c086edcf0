// The kit on each SPEC, its lines printed as they come.
#include <tenon/cli/check_lines.h>
#include <tenon/cli/kit_json.h>
#include <tenon/cli/plugins_test.h>
#include <tenon/cli/process/interrupt.h>
#include <tenon/cli/process/own_process.h>
#include <tenon/cli/terminal/status_line.h>
#include <tenon/conformance/conformance.h>
#include <tenon/core/option_edges.h>
#include <tenon/core/spec_names.h>
#include <tenon/report/text/progress_text.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/environment.h>
#include <tenon/runtime/plugins/plugin_search.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace tenon::cli {

namespace {

/// Of each random check at an edge: there are many edges, and what an option breaks it breaks soon.
constexpr int kEdgeHistories = 10;

struct TestOptions {
  std::vector<std::string> specs;
  std::string only;
  std::uint64_t seed = 47;
  double deadline_seconds = 60;
  bool has_edges = false;
  bool is_here = false;  ///< in this process; otherwise each check in one of its own, so that a crash becomes a finding
  TableFormat format = TableFormat::kTable;
};

/// One allocator with one set of options.
struct Subject {
  std::string spec;
  const AllocatorInfo* info = nullptr;
  Options options;
  bool is_edge = false;  ///< one option at an edge of what it declares, the others as in the SPEC
  std::string title;     ///< its allocator's name; of several builds of one plugin, what tells them apart
};

void give_titles(std::vector<Subject>& subjects) {
  std::vector<std::string> names, specs;
  for (const Subject& subject : subjects) {
    names.push_back(subject.info->name);
    specs.push_back(subject.spec);
  }
  std::vector<std::string> titles = allocator_titles(names, specs);
  for (std::size_t i = 0; i < subjects.size(); ++i) subjects[i].title = std::move(titles[i]);
}

std::vector<const AllocatorInfo*> allocators_of(const std::string& plugin) {
  if (!is_plugin_path(plugin)) return {&find_allocator(plugin)};
  // A plugin may crash while it is loaded. What else is wrong with it is said here.
  const Ending ending = try_silently({"plugins", "info", plugin, "--format", "json"});
  if (ending.signal != 0)
    throw PluginError(fmt::format("plugin {}: loading it ended by {}", plugin, ending.signal_text()));
  std::vector<const AllocatorInfo*> allocators = allocators_of_file(plugin);
  if (allocators.empty())
    throw PluginError(fmt::format("plugin {} supplies no allocator, and the kit tests allocators", plugin));
  return allocators;
}

/// The largest value from `edge` down to the default with which the kit can test; the reason where there is none.
std::string take_edge(Subject& subject, const OptionEdge& edge) {
  subject.options.set(edge.option, edge.value);
  std::string why = conformance::why_untestable(*subject.info, subject.options);
  if (!std::holds_alternative<std::size_t>(edge.value)) return why;
  const std::size_t least = Options(subject.info->options).size(edge.option);
  for (std::size_t bytes = std::get<std::size_t>(edge.value) / 2; !why.empty() && bytes > least; bytes /= 2) {
    subject.options.set(edge.option, bytes);
    why = conformance::why_untestable(*subject.info, subject.options);
  }
  return why;
}

/// `base` with each option at the edges of what it declares; options that the SPEC states stay.
std::vector<Subject> edges_of(const Subject& base) {
  std::vector<Subject> subjects;
  for (const OptionEdge& edge : option_edges(base.info->options)) {
    if (!base.options.is_default(edge.option)) continue;
    Subject subject = base;
    subject.is_edge = true;
    const std::string why = take_edge(subject, edge);
    subject.spec = fmt::format("{}:{}", word_of_spec(base.spec), subject.options.spec());
    if (why.empty())
      subjects.push_back(std::move(subject));
    else
      say(fmt::format("not tested: {}: {}", subject.spec, why));
  }
  return subjects;
}

std::vector<Subject> subjects_of(const std::vector<std::string>& specs, bool has_edges) {
  std::vector<Subject> subjects;
  for (const std::string& spec : specs) {
    for (const AllocatorInfo* info : allocators_of(std::string(word_of_spec(spec)))) {
      Subject subject{spec, info, Options(info->options)};
      set_options_from_spec(subject.options, spec);
      subjects.push_back(subject);
      if (!has_edges) continue;
      for (Subject& edge : edges_of(subject)) subjects.push_back(std::move(edge));
    }
  }
  give_titles(subjects);
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
  conformance::KitOptions run;
  run.seed = options.seed;
  run.only = options.only;
  run.is_isolated = !options.is_here;
  run.deadline_seconds = options.deadline_seconds;
  run.measures_speed = true;
  if (subject.is_edge) run.histories = kEdgeHistories;
  run.yardstick = yardstick();
  run.after_speed = [&](const conformance::Speed& speed) {
    if (is_text && speed.is_absurd())
      print(fmt::format("  warning: slow: {}; the random checks run fewer histories\n", speed.text()));
  };
  run.after_each = [&](const conformance::CheckResult& check) {
    status.erase();
    if (is_text && !check.said.empty()) fmt::print(stderr, "{}", check.said);
    if (is_text && !(subject.is_edge && check.passed())) print_exactly(lines_of(check, output_screen()));
  };
  run.is_stopping = [] { return interrupt_signal() != 0; };
  run.on_progress = [&](const conformance::Progress& at) {
    if (!status.is_due()) return;
    status.show(fmt::format("{}{}, {} calls, {}", at.check, at.seed ? fmt::format(", seed {}", *at.seed) : "", at.calls,
                            format_duration(at.seconds)));
  };
  conformance::Report heading;
  heading.allocator = subject.title;
  heading.options = subject.options.spec();
  heading.seed = options.seed;
  if (is_text) print(heading.heading());
  conformance::Report report = conformance::run(*subject.info, &subject.options, run);
  status.erase();
  if (is_text && report.checks.size() + report.left_out != 0) print(report.summary());
  return report;
}

ExitCode test(const TestOptions& options) {
  bool passed = true;
  Table table({{"allocator", "allocator"},
               {"spec", "spec"},
               {"check", "check"},
               {"passed", "passed"},
               {"promise", "promise"},
               {"not_applicable", "not applicable"},
               {"seconds", "seconds"},
               {"same_as", "same as"},
               {"may_come_of", "may come of"},
               {"failure", "failure", false},
               {"said", "said", false}});
  const std::vector<Subject> subjects = subjects_of(options.specs, options.has_edges);
  if (!options.is_here) catch_interrupts("ending with the checks that are done");
  std::vector<KitRun> runs;
  for (const Subject& subject : subjects) {
    runs.push_back({subject.info->name, subject.spec, {}});
    conformance::Report& report = runs.back().report;
    report.seed = options.seed;
    if (interrupt_signal() != 0) continue;  // named as not run
    report = test_one(subject, options);
    passed = passed && report.passed();
    for (const conformance::CheckResult& check : report.checks) {
      table.add_row({subject.info->name, subject.spec, check.name, check.passed(), check.promise,
                     check.not_applicable.empty() ? TableCell() : TableCell(check.not_applicable),
                     Real{check.seconds, 3}, check.same_as.empty() ? TableCell() : TableCell(check.same_as),
                     check.may_come_of.empty() ? TableCell() : TableCell(check.may_come_of),
                     check.failure.empty() ? TableCell() : TableCell(check.failure),
                     check.said.empty() ? TableCell() : TableCell(check.said)});
    }
  }
  if (table.empty() && interrupt_signal() == 0) {
    throw ConfigError(fmt::format("no check's name contains \"{}\"; there are {}", options.only,
                                  fmt::join(conformance::check_names(), ", ")));
  }
  if (options.format == TableFormat::kJson) {
    print(kit_json(table, runs, options.only, environment_json()));
  } else if (options.format != TableFormat::kTable) {
    print(render(table, options.format, environment_json()));
  }
  if (interrupt_signal() != 0) {
    say(fmt::format("tenon: ended by {}; what is missing was not run", interrupt_name()));
    return interrupted_exit_code();
  }
  return passed ? ExitCode::kDone : ExitCode::kFailed;
}

}  // namespace

void add_plugins_test(Verb plugins, Outcome& outcome) {
  auto options = std::make_shared<TestOptions>();
  const Verb verb = plugins.add_verb("test", "run the conformance kit on every allocator of a plugin");
  verb.add_option("spec", options->specs, "a path to a .so, or an allocator's name; either with :OPTION=VALUE,…")
      .required()
      .type_name("SPEC");
  verb.add_option("--only", options->only, "checks whose name contains this").type_name("TEXT");
  add_seed_option(verb, options->seed, "of the random histories; default: 47");
  verb.add_option("--deadline", options->deadline_seconds,
                  "time limit of each check; default: 60; one call of the allocator gets a tenth of it")
      .type_name("SECONDS")
      .range(0.1, 86400.0);
  verb.add_flag("--edges", options->has_edges,
                "test each option at the ends of its range and in its other choices too, with fewer histories");
  verb.add_flag("--here", options->is_here, "run all checks in this process, for a debugger");
  add_format_option(verb, options->format);
  verb.footer(example("tenon plugins test build/my_cache.so build/my_cache.so:chunk=1MiB"));
  verb.callback([options, &outcome] { outcome.exit_code = test(*options); });
}

}  // namespace tenon::cli
