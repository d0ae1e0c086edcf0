// `tenon trace`: what a history holds, in other formats, in part, against another.
#include <tenon/cli/command_files.h>
#include <tenon/cli/one_trace.h>
#include <tenon/cli/terminal/progress_line.h>
#include <tenon/cli/terminal/without_effect.h>
#include <tenon/cli/verb.h>

#include <tenon/core/text/counted.h>
#include <tenon/core/units.h>
#include <tenon/replay/formats/image/snapshot_image.h>
#include <tenon/replay/results/slice_diff.h>
#include <tenon/report/replay/trace_report.h>
#include <tenon/report/text/command_line.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/environment.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

namespace tenon::cli {

namespace {

struct TraceOptions {
  std::vector<std::string> files;
  std::string input;
  std::string output;
  std::string to;
  std::string allocator;
  std::string capacity;
  int device = -1;
  std::string first;
  std::string last;
  TableFormat format = TableFormat::kTable;
  bool quiet = false;
};

ExitCode info(const TraceOptions& options) {
  const ProgressLine progress(options.quiet);
  Table table = trace_facts_table();
  std::vector<std::string> notes;
  for_each_trace(options.files, {}, [&](const replay::Trace& trace) {
    add_trace_facts(table, trace);
    for (const std::string& note : trace.notes) notes.push_back(trace.name + ": " + note);
  });
  print(render(table, options.format, environment_json()));
  if (!options.quiet) {
    for (const std::string& note : notes) say(note);
  }
  return ExitCode::kDone;
}

/// Of the output: as asked for, else as its name says.
const replay::Format& format_of(const TraceOptions& options) {
  return options.to.empty() ? replay::format_of_name(options.output) : replay::written_format(options.to);
}

/// Which places the blocks of a format that shows segments: loaded before anything is read, so that no output replaces
/// its plugin.
StackConfig policy_of(const TraceOptions& options) {
  return allocator_from_spec(options.allocator.empty() ? kDefaultAllocator : options.allocator);
}

const replay::Format& check_output(const TraceOptions& options) {
  const replay::Format& format = format_of(options);
  // A mistyped allocator or size is one whatever is written.
  if (format.shows_segments || !options.allocator.empty()) static_cast<void>(policy_of(options));
  if (!options.capacity.empty()) static_cast<void>(parse_size(options.capacity));
  std::vector<std::string> without_effect;
  if (!options.allocator.empty()) without_effect.emplace_back("--allocator");
  if (!options.capacity.empty()) without_effect.emplace_back("--capacity");
  if (!format.shows_segments && !options.quiet)
    say_without_effect(without_effect,
                       fmt::format("no allocator places the blocks of a file in the format {}", format.name));
  check_files({.read = {options.input}, .written = {options.output}});
  return format;
}

replay::SnapshotImage place(const replay::Trace& trace, const TraceOptions& options) {
  const StackConfig policy = policy_of(options);
  const std::optional<std::uint64_t> capacity =
      options.capacity.empty() ? std::nullopt : std::optional<std::uint64_t>(parse_size(options.capacity));
  require_sound(trace, policy, capacity);
  try {
    return replay::image_of_replay(trace, policy, capacity, replay::Failures::kKept);
  } catch (const OutOfMemory&) {
    throw Error(fmt::format(
        "{}: the history runs out of memory in {} under '{}', so that the snapshot would lack a part of it. "
        "Leave --capacity out; a snapshot of the replay that runs out is made by\n  tenon replay {} "
        "--allocator {} --capacity {} --snapshot FILE",
        options.input, options.capacity, policy.policy.name, shell_word(options.input),
        shell_word(options.allocator.empty() ? std::string(kDefaultAllocator) : options.allocator),
        shell_word(options.capacity)));
  }
}

ExitCode write(const replay::Trace& trace, const replay::Format& format, const TraceOptions& options) {
  format.write(trace, options.output, {.place = [&](const replay::Trace& it) { return place(it, options); }});
  if (options.quiet) return ExitCode::kDone;
  say("written: " + options.output);
  const std::vector<std::string> left_out =
      format.left_out == nullptr ? std::vector<std::string>() : format.left_out(trace);
  if (!left_out.empty())
    say(fmt::format("left out, because the format cannot hold them: {}", fmt::join(left_out, ", ")));
  return ExitCode::kDone;
}

ExitCode convert(const TraceOptions& options) {
  const ProgressLine progress(options.quiet);
  const replay::Format& format = check_output(options);
  return write(one_trace(options.input, options.device, {.with_stacks = true, .with_columns = true}), format, options);
}

/// A number of an event, or the name of a mark.
std::uint64_t position(const replay::Trace& trace, const std::string& text, std::uint64_t fallback) {
  if (text.empty()) return fallback;
  if (text.find_first_not_of("0123456789") == std::string::npos && text.size() < 19) return std::stoull(text);
  return replay::event_of_mark(trace, text);
}

ExitCode cut(const TraceOptions& options) {
  const ProgressLine progress(options.quiet);
  const replay::Format& format = check_output(options);
  const replay::Trace trace = one_trace(options.input, options.device, {.with_columns = true});
  const std::uint64_t from = replay::outside_requests(trace, position(trace, options.first, 0));
  const std::uint64_t to = replay::outside_requests(trace, position(trace, options.last, trace.facts.events));
  if (from >= to || from >= trace.facts.events) {
    throw ConfigError(fmt::format("{}: no event between {} and {}: the history has {}, numbered from 0", options.input,
                                  from, to, counted(trace.facts.events, "event")));
  }
  return write(replay::slice(trace, from, to), format, options);
}

ExitCode compare(const TraceOptions& options) {
  const ProgressLine progress(options.quiet);
  check_files({.read = {options.input, options.output}, .written = {}});
  const replay::Trace a = single_or_chosen_trace(options.input, options.device);
  const replay::Trace b = single_or_chosen_trace(options.output, options.device);
  const replay::TraceDifference difference = replay::difference(a, b);
  if (options.format == TableFormat::kTable) {
    print(trace_difference_text(a, b, difference));
  } else {
    print(render(trace_difference_table(a, b, difference), options.format, environment_json()));
  }
  return difference.are_equal ? ExitCode::kDone : ExitCode::kFailed;
}

Verb sub(Verb trace, const char* name, const char* help, const std::shared_ptr<TraceOptions>& options) {
  const Verb verb = trace.add_verb(name, help);
  add_quiet_option(verb, options->quiet);
  return verb;
}

void add_output(Verb verb, const std::shared_ptr<TraceOptions>& options) {
  verb.add_option("output", options->output,
                  fmt::format("the file to write; its ending selects the format: {}; .gz compresses; - is standard "
                              "output and needs --to",
                              replay::written_endings()))
      .required()
      .type_name("OUT");
  verb.add_option("--to", options->to, replay::written_names()).type_name("FORMAT");
  verb.add_option("--allocator,-a", options->allocator,
                  "allocator that places the blocks of a snapshot; default: caching")
      .type_name("SPEC");
  add_capacity_option(verb, options->capacity, "memory of the device for a snapshot; default: unlimited");
  verb.add_option("--device", options->device, "device of a file with several, by its recorded number").type_name("N");
}

}  // namespace

void add_trace(Verb program, Outcome& outcome) {
  const Verb trace = program.add_verb("trace", "inspect, convert, cut and compare memory histories");
  trace.require_verb(1);
  trace.footer(example("tenon trace convert memory.pickle history.trace.gz"));
  auto options = std::make_shared<TraceOptions>();

  Verb verb = sub(trace, "info", "show events, streams, peak and the share of bytes that was not recorded", options);
  verb.add_option("files", options->files, "histories").required().type_name("FILE");
  add_format_option(verb, options->format);
  verb.footer(example("tenon trace info memory.pickle"));
  verb.callback([options, &outcome] { outcome.exit_code = info(*options); });

  verb = sub(trace, "convert", "write a history in another format", options);
  verb.add_option("input", options->input, "a history").required().type_name("IN");
  add_output(verb, options);
  verb.footer(example("tenon trace convert memory.pickle history.trace.gz"));
  verb.callback([options, &outcome] { outcome.exit_code = convert(*options); });

  verb = sub(trace, "slice", "cut a history at events or marks; blocks that live at the cut are put at the start",
             options);
  verb.add_option("input", options->input, "a history").required().type_name("IN");
  add_output(verb, options);
  verb.add_option("--from", options->first, "first event, or a mark's name").type_name("EVENT");
  verb.add_option("--until", options->last, "event after the last one, or a mark's name").type_name("EVENT");
  verb.footer(example("tenon trace slice history.trace.gz steady.trace.gz --from \"step 2\" --until \"step 4\""));
  verb.callback([options, &outcome] { outcome.exit_code = cut(*options); });

  verb = sub(trace, "diff", "show the first event in which two histories differ; exit 1 when they do", options);
  verb.add_option("first", options->input, "a history").required().type_name("A");
  verb.add_option("second", options->output, "another").required().type_name("B");
  verb.add_option("--device", options->device, "device of files with several, by its recorded number").type_name("N");
  add_format_option(verb, options->format);
  verb.footer(example("tenon trace diff before.trace.gz after.trace.gz"));
  verb.callback([options, &outcome] { outcome.exit_code = compare(*options); });
}

}  // namespace tenon::cli
