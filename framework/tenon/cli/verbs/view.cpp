// `tenon view`: one history as one offline page.
#include <tenon/cli/command_files.h>
#include <tenon/cli/one_trace.h>
#include <tenon/cli/progress_line.h>
#include <tenon/cli/verb.h>

#include <tenon/core/units.h>
#include <tenon/replay/engine/process_pool.h>
#include <tenon/replay/formats/readers.h>
#include <tenon/report/trace_html.h>
#include <tenon/runtime/allocator_spec.h>

#include <fmt/format.h>

#include <memory>

namespace tenon::cli {

namespace {

struct ViewOptions {
  std::string file;
  std::string output;
  std::string allocator{kDefaultAllocator};
  std::string capacity;
  int device = -1;
  bool quiet = false;
};

ExitCode view(const ViewOptions& options) {
  const ProgressLine progress(options.quiet);
  const StackConfig policy = allocator_from_spec(options.allocator);
  check_files({.read = {options.file}, .written = {options.output}});
  const replay::Trace trace = one_trace(options.file, options.device, {.with_stacks = true});
  replay::Job job{.trace = &trace, .policy = &policy, .label = options.allocator};
  job.options.timed_passes = 0;
  job.options.time_each_call = false;
  job.options.keep_curve = job.options.keep_layout = true;
  if (!options.capacity.empty()) job.options.capacity_bytes = parse_size(options.capacity);
  const std::vector<replay::ReplayRow> rows = replay::run_jobs({job});
  write_trace_html(options.output, trace, rows);
  if (!options.quiet) say("report: " + options.output);
  const replay::ReplayRow& row = rows.front();
  if (row.failure.empty()) return ExitCode::kDone;
  say(fmt::format("{} on {} is disqualified: {}{}", options.allocator, trace.name, row.failure,
                  row.failed_event ? fmt::format(" at event {}", *row.failed_event) : ""));
  return ExitCode::kFailed;
}

}  // namespace

void add_view(CLI::App& program, Outcome& outcome) {
  auto options = std::make_shared<ViewOptions>();
  CLI::App* verb = program.add_subcommand("view", "one offline HTML page: live memory, call stacks, segments");
  verb->add_option("file", options->file, "a memory history")->required()->type_name("FILE");
  verb->add_option("-o,--output", options->output, "the page; - is standard output")->required()->type_name("HTML");
  verb->add_option("--allocator,-a", options->allocator, "whose segments are shown")
      ->type_name("SPEC")
      ->capture_default_str();
  add_capacity_option(*verb, options->capacity, "of the device; unlimited without");
  verb->add_option("--device", options->device, "of a file with several, by the number that it was recorded with")
      ->type_name("N");
  add_quiet_option(*verb, options->quiet);
  verb->footer(example("tenon view memory.pickle -o memory.html"));
  verb->callback([options, &outcome] { outcome.exit_code = view(*options); });
}

}  // namespace tenon::cli
