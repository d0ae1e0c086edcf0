// `tenon plan`: offsets for buffers whose lives are known, of a minimalloc problem or of a recorded history.
#include <tenon/cli/command_files.h>
#include <tenon/cli/duration.h>
#include <tenon/cli/one_trace.h>
#include <tenon/cli/process/interrupt.h>
#include <tenon/cli/terminal/progress_line.h>
#include <tenon/cli/verb.h>

#include <tenon/core/files/atomic_file.h>
#include <tenon/core/units.h>
#include <tenon/memory/packing/pack.h>
#include <tenon/memory/packing/plan_file.h>
#include <tenon/replay/formats/minimalloc_problem.h>
#include <tenon/replay/formats/readers.h>
#include <tenon/replay/planning/history_recording.h>
#include <tenon/replay/trace/long_work.h>
#include <tenon/report/replay/plan_report.h>
#include <tenon/runtime/environment.h>

#include <fmt/format.h>

#include <memory>

namespace tenon::cli {

namespace {

struct PlanVerbOptions {
  std::string file;
  std::string output;
  std::string html;
  std::string capacity;
  std::string budget = "30s";
  int device = -1;
  TableFormat format = TableFormat::kTable;
  bool quiet = false;
};

/// What is planned: the rows of a problem, or the requests of a history.
struct Subject {
  std::string name;
  std::string time_unit;
  replay::MinimallocProblem problem;                ///< of a history: its requests as rows
  std::vector<packing::RecordedRequest> recording;  ///< of a history
  std::vector<std::size_t> rows;                    ///< of the buffers: rows of 0 bytes need no place
  std::vector<packing::Buffer> buffers;
};

bool is_plan_file(const std::string& path) { return path.ends_with(".plan"); }

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Subject read_problem(replay::InputFile& input) {
  Subject subject{.name = base_name(input.path()), .time_unit = "the problem's time"};
  subject.problem = replay::read_minimalloc_problem(input);
  return subject;
}

Subject read_history(const PlanVerbOptions& options) {
  const replay::Trace trace = one_trace(options.file, options.device, {.with_columns = true});
  if (trace.facts.allocations == 0) throw ConfigError(trace.name + ": the history holds no allocation");
  Subject subject{.name = trace.name, .time_unit = "requests", .recording = replay::recording_of(trace)};
  subject.problem.buffers = packing::buffers_of(subject.recording);
  for (std::size_t i = 0; i < subject.problem.buffers.size(); ++i) subject.problem.ids.push_back(std::to_string(i));
  if (!options.quiet)
    for (const std::string& note : trace.notes) say(fmt::format("{}: {}", trace.name, note));
  return subject;
}

/// A problem of rows, unless a plan of it is asked for: that is made of requests in time order.
Subject read_subject(const PlanVerbOptions& options) {
  bool is_problem = false;
  Subject subject;
  {
    replay::InputFile input(options.file);
    const replay::Format* const format = replay::detect_format(input.head());
    is_problem = format != nullptr && format->name == "minimalloc" && !is_plan_file(options.output);
    if (is_problem) subject = read_problem(input);
    if (!is_problem && options.file == "-") throw ConfigError("a history to plan is read from a file, not from -");
  }
  if (!is_problem) subject = read_history(options);
  for (std::size_t i = 0; i < subject.problem.buffers.size(); ++i) {
    if (subject.problem.buffers[i].size == 0) continue;
    subject.rows.push_back(i);
    subject.buffers.push_back(subject.problem.buffers[i]);
  }
  return subject;
}

void write_output(const PlanVerbOptions& options, const Subject& subject, const packing::PackResult& result) {
  if (options.output.empty()) return;
  if (is_plan_file(options.output)) {
    write_atomically(options.output, text_of(plan_of(subject.name, subject.recording, result)));
    return;
  }
  std::vector<std::uint64_t> offsets(subject.problem.buffers.size());
  for (std::size_t i = 0; i < subject.rows.size(); ++i) offsets[subject.rows[i]] = result.offsets[i];
  replay::write_minimalloc_problem(options.output, subject.problem, offsets);
}

ExitCode exit_code_of(const PlanSummary& summary) {
  if (summary.fits()) return ExitCode::kDone;
  return summary.is_proven_not_to_fit() ? ExitCode::kOutOfMemory : ExitCode::kFailed;
}

ExitCode plan_verb(const PlanVerbOptions& options) {
  packing::PackOptions packing;
  if (!options.capacity.empty()) packing.capacity = parse_size(options.capacity);
  packing.time_limit_seconds = parse_seconds("--budget", options.budget);
  if (!options.output.empty() && !is_plan_file(options.output) && !options.output.ends_with(".csv") &&
      !options.output.ends_with(".csv.gz") && options.output != "-")
    throw ConfigError(fmt::format(
        "the name of {} says no form: .plan is what the allocator `planned` reads, .csv the rows of a problem with "
        "their offsets",
        options.output));
  const CommandFiles files{.read = {options.file}, .written = {options.output, options.html}};
  check_files(files);
  ProgressLine progress(options.quiet);
  const Subject subject = read_subject(options);

  progress.begin("planning", packing.time_limit_seconds);
  catch_interrupts(options.quiet ? "" : "ending with the best plan so far");
  packing.is_stopping = [] { return interrupt_signal() != 0; };
  packing.listener = [&](const packing::PackProgress& now) {
    replay::tell_work("planning", now.seconds / packing.time_limit_seconds);
  };
  PlanSummary summary{
      .name = subject.name, .time_unit = subject.time_unit, .buffers = subject.buffers, .capacity = packing.capacity};
  try {
    summary.result = pack(subject.buffers, packing);
  } catch (const ValueError& error) {
    throw ConfigError(options.file + ": " + error.what());
  }

  const ExitCode code = exit_code_of(summary);
  if (code == ExitCode::kDone) write_output(options, subject, summary.result);
  if (!options.html.empty()) write_plan_html(options.html, summary);
  if (!uses_standard_output(files)) print(render(plan_table(summary), options.format, environment_json()));
  const bool is_for_people = options.format == TableFormat::kTable && !options.quiet;
  if (code != ExitCode::kDone || is_for_people)
    say((code == ExitCode::kDone ? "" : "tenon: ") + plan_sentence(summary));
  if (summary.result.is_stopped) {
    say(fmt::format("tenon: ended by {}; the plan is the best until then", interrupt_name()));
    return interrupted_exit_code();
  }
  if (!options.quiet && !options.html.empty()) say("report: " + options.html);
  if (!options.quiet && !options.output.empty() && options.output != "-" && code == ExitCode::kDone) {
    say("plan: " + options.output);
    if (is_plan_file(options.output))
      say(fmt::format("try it: tenon replay {} -a planned:plan={}", options.file, options.output));
  }
  return code;
}

}  // namespace

void add_plan(Verb program, Outcome& outcome) {
  auto options = std::make_shared<PlanVerbOptions>();
  const Verb verb = program.add_verb("plan", "pack a history's blocks, or a minimalloc problem, as tightly as can be");
  verb.add_option("file", options->file,
                  "a memory history, or a problem: lines of id, lower, upper, size [, alignment, offset, hint, gaps]")
      .required()
      .type_name("FILE");
  verb.add_option("-o,--output", options->output,
                  "the plan: .plan for the allocator planned, .csv for rows with offsets")
      .type_name("FILE");
  add_any_capacity_option(verb, options->capacity, "end with the first plan that fits; default: the lowest is wanted");
  verb.add_option("--budget", options->budget, "time to search: 30s, 2m").type_name("TIME").shows_default();
  verb.add_option("--html", options->html, "also a page with the plan drawn").type_name("FILE");
  verb.add_option("--device", options->device, "device of a file with several, by its recorded number").type_name("N");
  add_format_option(verb, options->format);
  add_quiet_option(verb, options->quiet);
  verb.footer(
      "The column proof: \"optimal\" is a plan as low as the bound, below which none can be; \"bracket\" says that "
      "the\n"
      "lowest lies between the bound and this one, as more --budget may show; with --capacity there is \"fits\", "
      "\"not\n"
      "found\", and \"does not fit\", which is proven.\n" +
      example("tenon plan memory.pickle -o memory.plan"));
  verb.callback([options, &outcome] { outcome.exit_code = plan_verb(*options); });
}

}  // namespace tenon::cli
