// `tenon tune`: the settings to paste, with the evidence.
#include <tenon/cli/duration.h>
#include <tenon/cli/one_trace.h>
#include <tenon/cli/process/interrupt.h>
#include <tenon/cli/terminal/progress_line.h>
#include <tenon/cli/verb.h>

#include <tenon/core/units.h>
#include <tenon/replay/advise/own_allocators.h>
#include <tenon/replay/advise/tune.h>
#include <tenon/report/replay/tune_report.h>
#include <tenon/runtime/environment.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace tenon::cli {

namespace {

/// Of the budget, for a plan of the history, and never more than so many seconds.
constexpr double kPlanningShare = 0.05, kPlanningSeconds = 2;

struct TuneVerbOptions {
  std::vector<std::string> traces;
  std::vector<std::string> allocators;
  std::string capacity;
  std::string budget = "60s";
  unsigned jobs = 0;
  TableFormat format = TableFormat::kTable;
  bool quiet = false;
};

ExitCode tune_verb(const TuneVerbOptions& options) {
  replay::TuneOptions tuning;
  if (!options.capacity.empty()) tuning.capacity_bytes = parse_size(options.capacity);
  tuning.budget_seconds = parse_seconds("--budget", options.budget);
  tuning.jobs = options.jobs;
  ProgressLine progress(options.quiet);
  const std::vector<replay::Trace> traces = all_traces(options.traces);
  load_all_plugins();
  for (const replay::Trace& trace : traces) {
    if (!options.quiet) {
      for (const std::string& note : trace.notes) say(fmt::format("{}: {}", trace.name, note));
    }
    tuning.trust.push_back(replay::judge(trace));
    if (const std::string& why = tuning.trust.back().refusal; !why.empty()) {
      if (options.format == TableFormat::kJson)
        print(tune_refusal_json(trace.name, tuning.trust.back(), options.traces, environment_json()));
      throw Error(why);
    }
  }
  // Those that PyTorch has are searched by its own settings.
  tuning.allocators = replay::own_allocators(options.allocators);
  progress.begin("tuning", tuning.budget_seconds);
  catch_interrupts(options.quiet ? "" : "ending with what is measured");
  tuning.is_stopping = [] { return interrupt_signal() != 0; };
  std::optional<replay::PlanOfHistory> plan;
  if (traces.size() == 1) {  // a plan is one history's
    plan.emplace(traces.front(), std::min(kPlanningSeconds, kPlanningShare * tuning.budget_seconds),
                 tuning.is_stopping);
    for (replay::FitCandidate& planned : plan->allocators()) tuning.allocators.push_back(std::move(planned));
  }
  const replay::TuneResult result = replay::tune(traces, tuning);
  const TuneSubject subject{.traces = traces, .files = options.traces, .capacity = options.capacity};
  print(tune_report(result, subject, options.format, environment_json()));
  if (result.is_interrupted) {
    say(fmt::format(
        "tenon: ended by {} before the search was over; {}. A search that is begun again begins anew; "
        "--budget says how long it may take",
        interrupt_name(),
        result.finalists.empty() ? "nothing had been measured" : "the table shows what was measured until then"));
    return interrupted_exit_code();
  }
  const bool has_answer = std::ranges::any_of(result.finalists, &replay::Candidate::is_recommended);
  return has_answer ? ExitCode::kDone : ExitCode::kFailed;
}

}  // namespace

void add_tune(Verb program, Outcome& outcome) {
  auto options = std::make_shared<TuneVerbOptions>();
  const Verb verb =
      program.add_verb("tune", "search allocator settings for memory histories and recommend the line to paste");
  verb.add_option("traces", options->traces, "memory histories, as for replay").required().type_name("TRACE");
  add_capacity_option(verb, options->capacity, "memory of the device that it must fit");
  verb.add_option("--allocator,-a", options->allocators, "an allocator of Tenon's to try as well").type_name("SPEC");
  verb.add_option("--budget", options->budget, "time to search: 30s, 2m").type_name("TIME").shows_default();
  verb.add_option("--jobs,-j", options->jobs, "replays at a time; default: as many as there are cores")
      .type_name("N")
      .range(1, 1024);
  add_format_option(verb, options->format);
  add_quiet_option(verb, options->quiet);
  verb.footer(example("tenon tune memory.pickle --capacity 24GiB"));
  verb.callback([options, &outcome] { outcome.exit_code = tune_verb(*options); });
}

}  // namespace tenon::cli
