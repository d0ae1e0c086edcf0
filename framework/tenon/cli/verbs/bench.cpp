// `tenon bench`: speed of allocators, side by side.
#include <tenon/cli/command_files.h>
#include <tenon/cli/gate_sentences.h>
#include <tenon/cli/one_trace.h>
#include <tenon/cli/process/interrupt.h>
#include <tenon/cli/replay_policies.h>
#include <tenon/cli/terminal/progress_line.h>
#include <tenon/cli/verb.h>

#include <tenon/core/error.h>
#include <tenon/measure/bench/bench.h>
#include <tenon/measure/bench/host_noise.h>
#include <tenon/report/kit_advice.h>
#include <tenon/report/measure/bench_report.h>
#include <tenon/runtime/environment.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace tenon::cli {

namespace {

struct BenchVerbOptions {
  std::vector<std::string> specs;
  std::vector<std::string> more_specs;  ///< by --allocator
  std::vector<std::string> workloads;
  std::vector<std::string> histories;
  std::vector<std::string> gates;
  int rounds = 0;
  std::uint64_t seed = 47;
  double deadline_s = 10;
  TableFormat format = TableFormat::kTable;
  bool is_json = false;
  bool quiet = false;
};

std::vector<std::string> specs_of(const BenchVerbOptions& options) {
  for (const std::string& spec : options.specs)
    if (options.is_json && spec.ends_with(".json"))
      throw ConfigError(fmt::format("--json takes no file, it writes to standard output: --json > {}", spec));
  std::vector<std::string> specs = options.specs;
  specs.insert(specs.end(), options.more_specs.begin(), options.more_specs.end());
  return specs.empty() ? unnamed_allocators(options.quiet) : specs;
}

std::vector<replay::Trace> histories_of(const BenchVerbOptions& options) {
  const ProgressLine progress(options.quiet);
  return options.histories.empty() ? std::vector<replay::Trace>() : all_traces(options.histories);
}

std::vector<measure::WorkloadSpec> workloads_of(const BenchVerbOptions& options,
                                                const std::vector<replay::Trace>& traces) {
  std::vector<std::string> names = options.workloads;
  if (names.empty() && traces.empty()) names = measure::default_workloads();
  std::vector<measure::WorkloadSpec> workloads;
  for (const std::string& name : names) {
    measure::check_workload(name);
    workloads.push_back({.name = name});
  }
  for (const replay::Trace& trace : traces) {
    if (trace.facts.allocations == 0) throw ConfigError(trace.name + ": the history holds no allocation");
    workloads.push_back({.name = "recorded/" + trace.name, .trace = &trace});
  }
  return workloads;
}

/// Those that may have broken a promise: a slow one has not.
std::vector<std::string> failed_specs(const measure::BenchResult& result) {
  std::vector<std::string> specs;
  for (const std::vector<measure::BenchCell>& row : result.cells)
    for (std::size_t s = 0; s < result.allocators(); ++s)
      if (!row[s].failure.empty() && !row[s].is_too_slow) specs.push_back(result.subjects[s].spec);
  return specs;
}

ExitCode bench_verb(const BenchVerbOptions& options) {
  const std::vector<replay::Trace> traces = histories_of(options);
  measure::BenchOptions bench{.specs = specs_of(options), .workloads = workloads_of(options, traces)};
  std::vector<measure::GateExpression> gates;
  const measure::GateNames names = BenchFigures::names(measure::subject_names(bench.specs));
  for (const std::string& text : options.gates) gates.push_back(measure::parse_gate_expression(text, names));
  bench.seed = options.seed;
  bench.deadline_s = options.deadline_s;
  bench.rounds = options.rounds != 0 ? options.rounds : measure::enough_rounds(bench);
  measure::BenchResult result;
  const measure::HostState before = measure::host_state();
  {
    ProgressLine line("measuring", options.quiet);
    bench.progress = [&](std::size_t done, std::size_t total) { line.update(done, total); };
    catch_interrupts(options.quiet ? "" : "ending with what is measured");
    bench.is_stopping = [] { return interrupt_signal() != 0; };
    result = measure::run_bench(bench);
  }
  const measure::HostNoise noise = measure::host_noise(before, measure::host_state(), result);
  std::vector<std::vector<std::string>> trips;
  for (const measure::GateExpression& gate : gates)
    if (!result.is_interrupted) trips.push_back(measure::tripped(gate, BenchFigures(result)));

  const TableFormat format = options.is_json ? TableFormat::kJson : options.format;
  if (format == TableFormat::kJson) {
    print_exactly(bench_json(result, bench, noise, gates, trips, environment_json()));
  } else {
    print(render(bench_table(result), format, environment_json()));
    if (format == TableFormat::kTable) print("\n" + bench_method(result, bench));
  }
  for (const std::string& failure : bench_failures(result)) say("tenon: " + failure);
  if (const std::string advice = kit_advice(failed_specs(result)); !advice.empty()) say(advice);
  for (const std::string& warning : noise.warnings()) {
    if (!options.quiet) say("tenon: a noisy machine: " + warning);
  }
  if (result.is_interrupted) {
    say(fmt::format("tenon: ended by {}; the table shows what was measured until then{}", interrupt_name(),
                    gates.empty() ? "" : ", gates were not judged"));
    return interrupted_exit_code();
  }
  const bool is_tripped = say_trips(trips);
  if (result.has_failed()) return ExitCode::kFailed;
  return is_tripped ? ExitCode::kGate : ExitCode::kDone;
}

}  // namespace

void add_bench(Verb program, Outcome& outcome) {
  auto options = std::make_shared<BenchVerbOptions>();
  const Verb verb = program.add_verb("bench", "measure the speed of allocators, with intervals and a verdict");
  verb.add_option("specs", options->specs, "NAME or PATH.so, either with :OPTION=VALUE,…; default: all allocators")
      .type_name("SPEC");
  verb.add_option("--allocator,-a", options->more_specs, "the same; the first one is the baseline")
      .type_name("SPEC")
      .one_at_a_time();
  verb.add_option("--workload,-w", options->workloads, "see below; default: a selection of them")
      .type_name("NAME")
      .one_at_a_time();
  verb.add_option("--history", options->histories, "also measure with this recorded history")
      .type_name("TRACE")
      .one_at_a_time();
  verb.add_option("--rounds", options->rounds,
                  "rounds of measurements; default: 20 to 60, more where there are few allocators and workloads")
      .type_name("N")
      .range(1, 10000);
  add_seed_option(verb, options->seed, "of the random order of turns").shows_default();
  verb.add_option("--deadline", options->deadline_s, "seconds for one turn; a plugin that takes longer has no figures")
      .type_name("S")
      .range(0.1, 86400.0)
      .shows_default();
  verb.add_option("--fail-if", options->gates,
                  "exit 3 when the measurements prove it: 'b > 1.05 * a', 'ns_per_pair > +5%'")
      .type_name("EXPR")
      .one_at_a_time();
  add_format_option(verb, options->format);
  verb.add_flag("--json", options->is_json, "the same as --format json");
  add_quiet_option(verb, options->quiet);
  verb.footer("Workloads:\n" + measure::workload_help() +
              example("tenon bench caching ./mine.so --fail-if 'b > 1.05 * a'"));
  verb.callback([options, &outcome] { outcome.exit_code = bench_verb(*options); });
}

}  // namespace tenon::cli
