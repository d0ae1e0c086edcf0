// `tenon trace`: what a history holds, in other formats, in part, against another.
#include <tenon/cli/command_files.h>
#include <tenon/cli/one_trace.h>
#include <tenon/cli/verb.h>

#include <tenon/core/units.h>
#include <tenon/replay/advise/tune_space.h>
#include <tenon/replay/formats/pytorch/snapshot_image.h>
#include <tenon/replay/formats/readers.h>
#include <tenon/replay/formats/writers.h>
#include <tenon/replay/trace/slice_diff.h>
#include <tenon/runtime/device_setup.h>
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

Cell whole(std::uint64_t value) { return static_cast<std::int64_t>(value); }
Cell bytes(std::uint64_t value) { return Bytes{static_cast<std::int64_t>(value)}; }

ExitCode info(const TraceOptions& options) {
  Table table({{"trace", "trace"},
               {"format", "format"},
               {"events", "events"},
               {"allocations", "allocs"},
               {"frees", "frees"},
               {"streams", "streams"},
               {"peak_requested_bytes", "peak requested"},
               {"peak_event", "at event"},
               {"end_live_bytes", "live at end"},
               {"total_requested_bytes", "all requested", false},
               {"max_request_bytes", "largest", false},
               {"marks", "marks", false},
               {"deferred_frees", "waiting frees", false},
               {"unrecorded_bytes", "not recorded"},
               {"unrecorded_share", "share of bytes"},
               {"recorded_reserved_bytes", "recorded reserved"},
               {"pytorch_conf", "recorded conf"}});
  std::vector<std::string> notes;
  for_each_trace(options.files, {}, [&](const replay::Trace& trace) {
    const replay::TraceFacts& facts = trace.facts;
    const double share = facts.total_requested_bytes == 0 ? 0
                                                          : static_cast<double>(facts.seeded_bytes) /
                                                                static_cast<double>(facts.total_requested_bytes);
    const bool has_recorded = trace.recorded.has_value();
    table.add_row(
        {trace.name, trace.format, whole(facts.events), whole(facts.allocations), whole(facts.frees),
         whole(trace.stream_count()), bytes(facts.peak_requested_bytes), whole(facts.peak_event),
         bytes(facts.end_live_bytes), bytes(facts.total_requested_bytes), bytes(facts.max_request_bytes),
         whole(facts.marks), whole(facts.deferred_frees), bytes(facts.seeded_bytes), Ratio{share},
         has_recorded && trace.recorded->peak_reserved_bytes != 0 ? bytes(trace.recorded->peak_reserved_bytes) : Cell(),
         has_recorded && trace.recorded->has_settings
             ? Cell(trace.recorded->pytorch_conf.empty() ? "(defaults)" : trace.recorded->pytorch_conf)
         : trace.header.contains("allocator") ? Cell("tenon " + trace.header.at("allocator"))
                                              : Cell()});
    for (const std::string& note : trace.notes) notes.push_back(trace.name + ": " + note);
  });
  print(render(table, options.format, environment_json()));
  if (!options.quiet) {
    for (const std::string& note : notes) say(note);
  }
  return ExitCode::kDone;
}

/// Of the output: as asked for, else as its name says.
std::string format_of(const TraceOptions& options) {
  return options.to.empty() ? replay::format_of_name(options.output) : options.to;
}

/// Which places the blocks of a snapshot: loaded before anything is read, so that no output replaces its plugin.
StackConfig policy_of(const TraceOptions& options) {
  return allocator_from_spec(options.allocator.empty() ? kDefaultAllocator : options.allocator);
}

void check_output(const TraceOptions& options) {
  if (format_of(options) == "snapshot") static_cast<void>(policy_of(options));
  check_files({.read = {options.input}, .written = {options.output}});
}

void write(const replay::Trace& trace, const TraceOptions& options) {
  const std::string format = format_of(options);
  if (format == "text") return replay::write_text(trace, options.output);
  if (format == "binary") return replay::write_binary(trace, options.output);
  if (format == "chrome") return replay::write_chrome_counters(trace, options.output);
  if (format == "folded") return replay::write_folded(trace, options.output);
  if (format == "rmm") return replay::write_rmm(trace, options.output);
  if (format == "minimalloc") return replay::write_minimalloc(trace, options.output);
  if (format == "snapshot") {
    const StackConfig policy = policy_of(options);
    const std::optional<std::uint64_t> capacity =
        options.capacity.empty() ? std::nullopt : std::optional<std::uint64_t>(parse_size(options.capacity));
    require_sound(trace, policy, capacity);
    try {
      return replay::write_snapshot(replay::image_of_replay(trace, policy, capacity, replay::Failures::kKept),
                                    options.output);
    } catch (const OutOfMemory&) {
      throw Error(
          fmt::format("{}: it does not fit in {} under '{}', and a snapshot that says so would be none of this "
                      "history. Leave --capacity out; for a picture of a replay that runs out: `tenon replay {} "
                      "--capacity {} --snapshot FILE`",
                      options.input, options.capacity, policy.policy.name, options.input, options.capacity));
    }
  }
  throw ConfigError(fmt::format("--to \"{}\": text, binary, snapshot, chrome, folded, rmm or minimalloc", format));
}

/// What a form has no place for: the two CSV ones, and snapshots for uses.
std::string left_out(const replay::Trace& trace, const TraceOptions& options) {
  const std::string format = format_of(options);
  const bool is_snapshot = format == "snapshot";
  if (!is_snapshot && format != "rmm" && format != "minimalloc") return {};
  std::vector<std::string> parts;
  const auto add = [&](std::uint64_t count, std::string_view what) {
    if (count != 0) parts.push_back(fmt::format("{} {}", count, what));
  };
  const auto count = [&](replay::EventKind kind) {
    return static_cast<std::uint64_t>(std::ranges::count(trace.events, kind, &replay::TraceEvent::kind));
  };
  add(count(replay::EventKind::kUse),
      is_snapshot ? "uses on other streams (the frees of these blocks wait there, until the next "
                    "allocation)"
                  : "uses on other streams");
  if (!is_snapshot) {
    add(trace.facts.deferred_frees, "frees that waited (they are immediate there)");
    add(count(replay::EventKind::kEmptyCache), "emptied caches");
    add(trace.facts.marks, "marks");
    add(trace.facts.seeded_blocks, "blocks' being older than the recording");
    if (trace.recorded) parts.push_back("what is known of the recording (settings, reserved memory)");
    if (format == "minimalloc" && trace.stream_count() > 1) add(trace.stream_count(), "streams (there is one there)");
    if (format == "minimalloc") add(trace.ooms.size(), "requests' having run out of memory (they are buffers there)");
  }
  return parts.empty() ? std::string()
                       : fmt::format("left out, the format has no place for them: {}", fmt::join(parts, ", "));
}

ExitCode convert(const TraceOptions& options) {
  check_output(options);
  const replay::Trace trace = one_trace(options.input, options.device, {.with_stacks = true});
  write(trace, options);
  if (options.quiet) return ExitCode::kDone;
  say("written: " + options.output);
  if (const std::string remark = left_out(trace, options); !remark.empty()) say(remark);
  return ExitCode::kDone;
}

/// A number of an event, or the name of a mark.
std::uint64_t position(const replay::Trace& trace, const std::string& text, std::uint64_t fallback) {
  if (text.empty()) return fallback;
  if (text.find_first_not_of("0123456789") == std::string::npos && text.size() < 19) return std::stoull(text);
  return replay::event_of_mark(trace, text);
}

ExitCode cut(const TraceOptions& options) {
  check_output(options);
  const replay::Trace trace = one_trace(options.input, options.device);
  const std::uint64_t from = replay::outside_requests(trace, position(trace, options.first, 0));
  const std::uint64_t to = replay::outside_requests(trace, position(trace, options.last, trace.facts.events));
  if (from >= to || from >= trace.facts.events) {
    throw ConfigError(
        fmt::format("{}: no event from {} to {}; it has {}", options.input, from, to, trace.facts.events));
  }
  const replay::Trace part = replay::slice(trace, from, to);
  write(part, options);
  if (options.quiet) return ExitCode::kDone;
  say("written: " + options.output);
  if (const std::string remark = left_out(part, options); !remark.empty()) say(remark);
  return ExitCode::kDone;
}

ExitCode compare(const TraceOptions& options) {
  check_files({.read = {options.input, options.output}, .written = {}});
  const replay::Trace a = one_trace(options.input, options.device);
  const replay::Trace b = one_trace(options.output, options.device);
  const replay::TraceDifference difference = replay::difference(a, b);
  if (options.format != TableFormat::kTable) {
    Table table({{"trace", "trace"},
                 {"equal", "equal"},
                 {"first_difference", "first difference at event"},
                 {"difference", "difference"},
                 {"events", "events"},
                 {"peak_requested_bytes", "peak requested"},
                 {"total_requested_bytes", "allocated in all"}});
    for (const replay::Trace* trace : {&a, &b}) {
      table.add_row({trace->path, difference.are_equal,
                     difference.first_event ? whole(*difference.first_event) : Cell(),
                     difference.what.empty() ? Cell() : Cell(difference.what), whole(trace->facts.events),
                     bytes(trace->facts.peak_requested_bytes), bytes(trace->facts.total_requested_bytes)});
    }
    print(render(table, options.format, environment_json()));
    return difference.are_equal ? ExitCode::kDone : ExitCode::kFailed;
  }
  if (difference.are_equal) {
    print(fmt::format("equal: {} events\n", a.facts.events));
    return ExitCode::kDone;
  }
  print(fmt::format("first difference at event {}: {}\n", *difference.first_event, difference.what));
  print(fmt::format("events {} and {}, peak requested {} and {}, allocated in all {} and {}\n", a.facts.events,
                    b.facts.events, a.facts.peak_requested_bytes, b.facts.peak_requested_bytes,
                    a.facts.total_requested_bytes, b.facts.total_requested_bytes));
  return ExitCode::kFailed;
}

CLI::App* sub(CLI::App& trace, const char* name, const char* help, const std::shared_ptr<TraceOptions>& options) {
  CLI::App* verb = trace.add_subcommand(name, help);
  add_quiet_option(*verb, options->quiet);
  return verb;
}

void add_output(CLI::App& verb, const std::shared_ptr<TraceOptions>& options) {
  verb.add_option("output", options->output,
                  "its ending says the format: .trace, .tenon, .pickle, .json, .folded, .csv; .gz compresses; - with "
                  "--to is standard "
                  "output")
      ->required()
      ->type_name("OUT");
  verb.add_option("--to", options->to, "text, binary, snapshot, chrome, folded, rmm or minimalloc")
      ->type_name("FORMAT");
  verb.add_option("--allocator,-a", options->allocator, "which places the blocks of a snapshot; caching without")
      ->type_name("SPEC");
  add_capacity_option(verb, options->capacity, "of the device for a snapshot");
  verb.add_option("--device", options->device, "of a file with several, by the number that it was recorded with")
      ->type_name("N");
}

}  // namespace

void add_trace(CLI::App& program, Outcome& outcome) {
  CLI::App* trace = program.add_subcommand("trace", "what memory histories hold; converts, cuts and compares them");
  trace->require_subcommand(1);
  trace->footer(example("tenon trace convert memory.pickle history.trace.gz"));
  auto options = std::make_shared<TraceOptions>();

  CLI::App* verb = sub(*trace, "info", "events, streams, peak, share of bytes that was not recorded", options);
  verb->add_option("files", options->files, "histories")->required()->type_name("FILE");
  add_format_option(*verb, options->format);
  verb->footer(example("tenon trace info memory.pickle"));
  verb->callback([options, &outcome] { outcome.exit_code = info(*options); });

  verb = sub(*trace, "convert", "writes a history in another format", options);
  verb->add_option("input", options->input, "a history")->required()->type_name("IN");
  add_output(*verb, options);
  verb->footer(example("tenon trace convert memory.pickle history.trace.gz"));
  verb->callback([options, &outcome] { outcome.exit_code = convert(*options); });

  verb = sub(*trace, "slice", "cuts a history at events or marks; what lives at the cut is put at the start", options);
  verb->add_option("input", options->input, "a history")->required()->type_name("IN");
  add_output(*verb, options);
  verb->add_option("--from", options->first, "first event, or a mark's name")->type_name("EVENT");
  verb->add_option("--until", options->last, "event after the last one, or a mark's name")->type_name("EVENT");
  verb->footer(example("tenon trace slice history.trace.gz steady.trace.gz --from \"step 2\" --until \"step 4\""));
  verb->callback([options, &outcome] { outcome.exit_code = cut(*options); });

  verb = sub(*trace, "diff", "the first event in which two histories differ; exit 1 when they do", options);
  verb->add_option("first", options->input, "a history")->required()->type_name("A");
  verb->add_option("second", options->output, "another")->required()->type_name("B");
  verb->add_option("--device", options->device, "of files with several, by the number that it was recorded with")
      ->type_name("N");
  add_format_option(*verb, options->format);
  verb->footer(example("tenon trace diff before.trace.gz after.trace.gz"));
  verb->callback([options, &outcome] { outcome.exit_code = compare(*options); });
}

}  // namespace tenon::cli
