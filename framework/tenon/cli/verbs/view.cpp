// `tenon view`: one history as one offline page.
#include <tenon/cli/command_files.h>
#include <tenon/cli/one_trace.h>
#include <tenon/cli/terminal/progress_line.h>
#include <tenon/cli/verb.h>

#include <tenon/core/units.h>
#include <tenon/replay/formats/readers.h>
#include <tenon/replay/jobs/process_pool.h>
#include <tenon/report/replay/replay_table.h>
#include <tenon/report/replay/trace_html.h>
#include <tenon/runtime/allocator_spec.h>

#include <fmt/format.h>

#include <filesystem>
#include <memory>

namespace tenon::cli {

namespace {

struct ViewOptions {
  std::string file;
  std::string output;
  std::string allocator;
  std::string capacity;
  int device = -1;
  bool quiet = false;
};

/// What an allocator would do with the history: where the file does not say what one did, or where it is asked for.
std::vector<replay::ReplayRow> replayed(const replay::Trace& trace, const StackConfig& policy,
                                        const ViewOptions& options) {
  const bool is_asked = !options.allocator.empty() || !options.capacity.empty();
  if (!is_asked && trace.recorded && !trace.recorded->final_segments.empty()) return {};
  replay::Job job{.trace = &trace,
                  .policy = &policy,
                  .label = options.allocator.empty() ? std::string(kDefaultAllocator) : options.allocator};
  job.options.timed_passes = 0;
  job.options.time_each_call = false;
  job.options.keep_curve = job.options.keep_layout = true;
  if (!options.capacity.empty()) job.options.capacity_bytes = parse_size(options.capacity);
  return replay::run_jobs({job});
}

/// "memory.html" of "runs/memory.pickle.gz", in the folder that we are in.
std::string page_name(const std::string& file) {
  if (file == "-") throw ConfigError("a page of standard input needs a name: -o HTML");
  std::filesystem::path name = std::filesystem::path(file).filename();
  if (name.extension() == ".gz") name.replace_extension();
  return name.replace_extension(".html").string();
}

ExitCode view(ViewOptions options) {
  if (options.output.empty()) options.output = page_name(options.file);
  const ProgressLine progress(options.quiet);
  const StackConfig policy =
      allocator_from_spec(options.allocator.empty() ? std::string(kDefaultAllocator) : options.allocator);
  check_files({.read = {options.file}, .written = {options.output}});  // a plugin is known by now, and stays
  const replay::Trace trace =
      one_trace(options.file, options.device, {.with_stacks = true, .with_columns = true, .as_replayed = true});
  if (!options.quiet) {
    for (const std::string& note : trace.notes) say(fmt::format("{}: {}", trace.name, note));
  }
  if (trace.facts.allocations == 0) throw ConfigError(trace.name + ": the history holds no allocation");
  const std::vector<replay::ReplayRow> rows = replayed(trace, policy, options);
  write_trace_html(options.output, trace, rows);
  if (!options.quiet) say("report: " + options.output);
  for (const replay::ReplayRow& row : rows) {
    if (row.failure.empty()) continue;
    say(fmt::format("{} on {} is disqualified: {}{}", row.label, trace.name, row.failure,
                    row.failed_event ? fmt::format(" at event {}", *row.failed_event) : ""));
    say(replay_advice(rows));
    return ExitCode::kFailed;
  }
  if (!options.quiet) {
    for (const std::string& remark : replay_remarks(rows)) say(remark);
  }
  return ExitCode::kDone;
}

}  // namespace

void add_view(Verb program, Outcome& outcome) {
  auto options = std::make_shared<ViewOptions>();
  const Verb verb = program.add_verb("view", "write one offline HTML page: live memory, call stacks, segments");
  verb.add_option("file", options->file, "a memory history").required().type_name("FILE");
  verb.add_option("-o,--output", options->output, "the page; - is standard output; default: NAME.html for NAME.pickle")
      .type_name("HTML");
  verb.add_option("--allocator,-a", options->allocator,
                  "also show a replay under this allocator; default: caching, if no segments are recorded")
      .type_name("SPEC");
  add_capacity_option(verb, options->capacity, "memory of the device in that replay; default: unlimited");
  verb.add_option("--device", options->device, "device of a file with several, by its recorded number").type_name("N");
  add_quiet_option(verb, options->quiet);
  verb.footer(example("tenon view memory.pickle -o memory.html"));
  verb.callback([options, &outcome] { outcome.exit_code = view(*options); });
}

}  // namespace tenon::cli
