// `tenon replay`: traces under allocators, side by side.
#include <tenon/cli/command_files.h>
#include <tenon/cli/gate_sentences.h>
#include <tenon/cli/one_trace.h>
#include <tenon/cli/process/interrupt.h>
#include <tenon/cli/replay_policies.h>
#include <tenon/cli/terminal/progress_line.h>
#include <tenon/cli/terminal/terminal.h>
#include <tenon/cli/verb.h>

#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/replay/formats/pytorch/snapshot_writer.h>
#include <tenon/replay/formats/readers.h>
#include <tenon/replay/jobs/process_pool.h>
#include <tenon/replay/results/compare.h>
#include <tenon/replay/results/gate.h>
#include <tenon/replay/results/row_json.h>
#include <tenon/report/replay/replay_html.h>
#include <tenon/report/replay/replay_table.h>
#include <tenon/runtime/environment.h>

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>

namespace tenon::cli {

namespace {

struct ReplayOptions {
  std::vector<std::string> traces;
  PolicyChoice policies;
  std::string capacity;
  std::string html;
  std::string svg;
  std::string snapshot;
  std::vector<std::string> gates;
  std::string baseline;
  int repeat = 0;
  double deadline_seconds = replay::kDefaultDeadlineSeconds;
  unsigned jobs = 0;
  TableFormat format = TableFormat::kTable;
  bool timeline = false;
  bool quiet = false;
};

std::vector<replay::Trace> read_all(const ReplayOptions& options) {
  // Stacks are for the snapshot alone: of one history, and standard input cannot be read again for them.
  std::vector<replay::Trace> traces = all_traces(options.traces, {.with_stacks = !options.snapshot.empty()});
  if (options.quiet) return traces;
  for (const replay::Trace& trace : traces) {
    for (const std::string& note : trace.notes) say(fmt::format("{}: {}", trace.name, note));
    if (trace.facts.allocations == 0) say(fmt::format("{}: the history holds no allocation", trace.name));
  }
  return traces;
}

/// All jobs of one round follow each other before the next round begins, so that a slow minute hits every allocator
/// alike.
std::vector<replay::ReplayRow> run_all(const std::vector<replay::Trace>& traces,
                                       const std::vector<NamedPolicy>& policies, const ReplayOptions& options) {
  std::vector<replay::Job> jobs;
  const int rounds = std::max(1, options.repeat);
  for (int round = 0; round < rounds; ++round) {
    for (const replay::Trace& trace : traces) {
      for (const NamedPolicy& policy : policies) {
        replay::Job job{.trace = &trace, .policy = &policy.config, .label = policy.label};
        if (!options.capacity.empty()) job.options.capacity_bytes = parse_size(options.capacity);
        job.options.observe = job.options.time_each_call = round == 0;
        job.options.keep_curve = round == 0 && (options.timeline || !options.html.empty() || !options.svg.empty());
        job.options.keep_layout = round == 0 && !options.html.empty();
        if (options.repeat > 0) job.options.timed_passes = 1;
        jobs.push_back(std::move(job));
      }
    }
  }
  catch_interrupts(options.quiet ? "" : "ending with the rows that are measured");
  std::vector<replay::ReplayRow> rows = replay::run_jobs(
      jobs, options.jobs, {}, [] { return interrupt_signal() != 0; }, options.deadline_seconds);
  const std::size_t kept = traces.size() * policies.size();
  for (std::size_t i = kept; i < rows.size(); ++i) {
    if (rows[i].failure != replay::kNotMeasured) replay::add_passes(rows[i % kept], rows[i]);
  }
  rows.resize(kept);
  return rows;
}

/// A history of nothing passes every gate: that is not a result.
void add_empty_histories(const std::vector<replay::Trace>& traces, const std::vector<replay::Gate>& gates,
                         std::vector<std::vector<std::string>>& trips) {
  for (const replay::Trace& trace : traces) {
    if (trace.facts.allocations != 0) continue;
    for (std::size_t i = 0; i < gates.size(); ++i)
      trips[i].push_back(
          fmt::format("{}: {} cannot be judged, the history holds no allocation", trace.name, gates[i].text));
  }
}

/// What is read and written. Where an output is standard output, the table for people goes to standard error.
CommandFiles files_of(const ReplayOptions& options) {
  CommandFiles files{.read = options.traces, .written = {options.html, options.svg, options.snapshot}};
  for (const std::string& file : {options.baseline, options.policies.config}) {
    if (!file.empty()) files.read.push_back(file);
  }
  if (options.timeline && options.format != TableFormat::kJson)
    throw ConfigError("--timeline adds curves to the JSON: use it with --format json");
  if (uses_standard_output(files) && options.format != TableFormat::kTable)
    throw ConfigError(
        "-: standard output takes one thing: with --format json, csv or markdown give a file's name for the output");
  return files;
}

/// What --fail-if asks, and the baseline that it may be about.
struct Gates {
  explicit Gates(const ReplayOptions& options) {
    bool needs_baseline = false;
    for (const std::string& text : options.gates) {
      asked.push_back(replay::parse_gate(text));
      needs_baseline |= asked.back().is_relative;
    }
    if (needs_baseline && options.baseline.empty())
      throw ConfigError("--fail-if compares with a baseline: name its file with --baseline");
    if (!options.baseline.empty()) baseline = replay::read_rows(options.baseline);
  }

  void judge(const std::vector<replay::Trace>& traces, const std::vector<replay::ReplayRow>& rows) {
    for (const replay::Gate& gate : asked) trips.push_back(replay::tripped(gate, rows, baseline));
    add_empty_histories(traces, asked, trips);
  }

  std::vector<replay::Gate> asked;
  std::vector<replay::ReplayRow> baseline;
  std::vector<std::vector<std::string>> trips;  ///< sentences, by gate
};

/// The rows of each trace, its ideal one last.
std::vector<replay::ReplayRow> with_ideal_rows(std::vector<replay::ReplayRow> jobs,
                                               const std::vector<replay::Trace>& traces, std::size_t policies,
                                               std::optional<std::uint64_t> capacity) {
  std::vector<replay::ReplayRow> rows;
  for (std::size_t t = 0; t < traces.size(); ++t) {
    const auto first = jobs.begin() + static_cast<std::ptrdiff_t>(t * policies);
    std::move(first, first + static_cast<std::ptrdiff_t>(policies), std::back_inserter(rows));
    rows.push_back(replay::ideal_row(traces[t], capacity));
  }
  return rows;
}

void print_rows(const std::vector<replay::ReplayRow>& rows, const Gates& gates, const CommandFiles& files,
                const ReplayOptions& options) {
  if (options.format == TableFormat::kJson)
    return print(replay::rows_json(rows, environment_json(), options.timeline, gates.asked, gates.trips));
  if (uses_standard_output(files)) {
    std::string text = replay_table(rows).text(screen_of(STDERR_FILENO)) + replay_legend();
    text.pop_back();  // say ends the line
    say(text);
  } else {
    print(render(replay_table(rows, options.format), options.format, environment_json()) +
          (options.format == TableFormat::kTable ? replay_legend() : ""));
  }
}

void say_remarks(const std::vector<replay::ReplayRow>& rows, const Gates& gates, const ReplayOptions& options) {
  if (options.quiet) return;
  for (const std::string& remark : replay_remarks(rows)) say(remark);
  if (options.repeat > 1) {
    for (const std::string& remark : replay::timing_remarks(rows)) say(remark);
  }
  for (const std::string& verdict : replay::verdicts(rows, gates.baseline)) say(verdict);
}

void write_files(const std::vector<replay::Trace>& traces, const std::vector<NamedPolicy>& policies,
                 const std::vector<replay::ReplayRow>& rows, std::optional<std::uint64_t> capacity,
                 const ReplayOptions& options) {
  if (!options.html.empty()) {
    write_replay_html(options.html, traces, rows, environment_json());
    say(fmt::format("report: {}", options.html));
  }
  if (!options.svg.empty()) {
    write_replay_svg(options.svg, traces.front(), rows);
    say(fmt::format("picture: {}", options.svg));
  }
  if (options.snapshot.empty()) return;
  if (!rows.front().failure.empty())
    return say(fmt::format("no snapshot was written to {}: the replay under {} failed, so there is no memory to show",
                           options.snapshot, rows.front().spec()));
  replay::write_snapshot(replay::image_of_replay(traces.front(), policies.front().config, capacity), options.snapshot);
  say(fmt::format("snapshot: {}", options.snapshot));
}

ExitCode replay_verb(const ReplayOptions& options) {
  const ProgressLine progress(options.quiet);
  const CommandFiles files = files_of(options);
  Gates gates(options);
  const std::optional<std::uint64_t> capacity =
      options.capacity.empty() ? std::nullopt : std::optional<std::uint64_t>(parse_size(options.capacity));
  const std::vector<NamedPolicy> policies = choose_policies(options.policies, options.quiet);
  check_files(files);  // now that the plugins are known, which no output may replace either
  if (!options.snapshot.empty() && policies.size() != 1)
    throw ConfigError(fmt::format(
        "--snapshot writes one allocator's memory, and {} are replayed: choose one with --allocator", policies.size()));
  const std::vector<replay::Trace> traces = read_all(options);
  if (traces.size() != 1 && !(options.snapshot.empty() && options.svg.empty()))
    throw ConfigError(
        fmt::format("--snapshot and --svg show one history, and {} were read: name one file, or cut one out with tenon "
                    "trace convert --device",
                    traces.size()));

  const std::vector<replay::ReplayRow> rows =
      with_ideal_rows(run_all(traces, policies, options), traces, policies.size(), capacity);
  if (interrupt_signal() != 0) {
    // A report that stands from before is worth more than a part of a new one.
    print_rows(rows, gates, files, options);
    say_remarks(rows, gates, options);
    say(fmt::format("tenon: ended by {}; gates were not judged, files not written", interrupt_name()));
    return interrupted_exit_code();
  }
  change_promise("everything is measured; writing the results");
  gates.judge(traces, rows);
  print_rows(rows, gates, files, options);
  say_remarks(rows, gates, options);
  write_files(traces, policies, rows, capacity, options);
  const bool is_tripped = say_trips(gates.trips);
  const bool has_failed = std::ranges::any_of(rows, [](const replay::ReplayRow& row) { return !row.failure.empty(); });
  if (options.quiet && has_failed) {
    for (const std::string& remark : replay_remarks(rows)) say(remark);
  }
  if (const std::string advice = replay_advice(rows); !advice.empty()) say(advice);
  if (has_failed) return ExitCode::kFailed;
  return is_tripped ? ExitCode::kGate : ExitCode::kDone;
}

}  // namespace

void add_replay(Verb program, Outcome& outcome) {
  auto options = std::make_shared<ReplayOptions>();
  const Verb verb =
      program.add_verb("replay", "replay memory histories under allocators, without their program or device");
  verb.add_option("traces", options->traces, replay::read_files() + "; gz or not; - is standard input")
      .required()
      .type_name("TRACE");
  verb.add_option("--allocator,-a", options->policies.allocators,
                  "NAME or PATH.so, either with :OPTION=VALUE,…; default: all allocators")
      .type_name("SPEC")
      .one_at_a_time();
  verb.add_option("--pytorch-conf", options->policies.pytorch_confs,
                  "what PyTorch would do with this value of PYTORCH_ALLOC_CONF; empty: with its defaults")
      .type_name("STRING")
      .one_at_a_time()
      .may_be_empty();
  verb.add_option("--config", options->policies.config, "take the [allocator] of this experiment").type_name("FILE");
  add_capacity_option(verb, options->capacity, "memory of the device; default: unlimited");
  verb.add_option("--html", options->html,
                  "write a report; - is standard output (the table then goes to standard error)")
      .type_name("FILE");
  verb.add_option("--svg", options->svg, "write only the picture of the report; - is standard output")
      .type_name("FILE");
  verb.add_option("--snapshot", options->snapshot,
                  "write a snapshot for PyTorch's memory viewer; needs one --allocator; - is standard output")
      .type_name("FILE");
  verb.add_option("--fail-if", options->gates,
                  "exit 3 when it holds: 'ooms > 0', 'peak_reserved_bytes > +2%', 'seconds > 20ms'")
      .type_name("EXPR")
      .one_at_a_time();
  verb.add_option("--baseline", options->baseline, "JSON of an earlier replay, to compare with").type_name("FILE");
  verb.add_option("--repeat", options->repeat, "timed passes for each row, interleaved").type_name("N").range(1, 1000);
  verb.add_option("--jobs,-j", options->jobs, "replays at a time; default: as many as there are cores")
      .type_name("N")
      .range(1, 1024);
  verb.add_option("--deadline", options->deadline_seconds, "time limit of each row; default: 600")
      .type_name("SECONDS")
      .range(0.1, 1e6);
  add_format_option(verb, options->format);
  verb.add_flag("--timeline", options->timeline,
                "with --format json: each row's memory over the events, for `compare --html`");
  add_quiet_option(verb, options->quiet);
  verb.footer(example("tenon replay train.pickle.gz --capacity 24GiB --allocator caching --allocator expandable"));
  verb.callback([options, &outcome] { outcome.exit_code = replay_verb(*options); });
}

}  // namespace tenon::cli
