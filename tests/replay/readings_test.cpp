// What becomes of fixed inputs on their way through a replay: how each file of the fuzz corpus is read, and each that a
// flipped byte makes of it; what each format writes of a drawn history; what each policy makes of it. All of it is in
// readings.txt; who changes any of it on purpose writes that anew (support/recorded_table.h), with the filter
// Readings*.
#include "replay/support.h"
#include "support/recorded_table.h"
#include "support/scratch_folder.h"

#include <tenon/core/units.h>
#include <tenon/replay/advise/would_fit.h>
#include <tenon/replay/engine/fnv.h>
#include <tenon/replay/formats/pytorch/snapshot_writer.h>
#include <tenon/replay/formats/writers.h>
#include <tenon/replay/results/slice_diff.h>
#include <tenon/replay/results/trust.h>
#include <tenon/replay/trace/trace_builder.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/conf_policy.h>
#include <tenon/runtime/plugins/plugins.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {

/// Names the cases of a format for ctest.
static void PrintTo(const Format* format, std::ostream* out) { *out << format->name; }

namespace {

/// That a drawn history has.
constexpr int kPurposes = 7;

test::RecordedTable& table() {
  static test::RecordedTable readings("tests/replay/readings.txt");
  return readings;
}

std::string hash_of(const std::string& text) {
  Fnv1a hash;
  hash.bytes(text.data(), text.size());
  return hex64(hash.value());
}

/// All that is in a trace.
std::string all_of(const Trace& trace) {
  std::ostringstream out;
  out << trace.name << ' ' << trace.device << ' ' << trace.format << ' ' << trace.slot_count << ' '
      << trace.replayed_under << ' ' << trace.distrust << ' ' << trace.sizes_are_rounded << '\n';
  for (const TraceEvent& event : trace.events)
    out << event.bytes << ' ' << event.slot << ' ' << event.stream << ' ' << static_cast<int>(event.kind)
        << event.deferred << '\n';
  for (const std::string& mark : trace.marks) out << mark << '\n';
  for (const std::uint64_t stream : trace.streams) out << stream << ' ';
  const TraceFacts& facts = trace.facts;
  for (const std::uint64_t fact :
       {facts.events, facts.allocations, facts.frees, facts.uses, facts.empty_caches, facts.marks, facts.deferred_frees,
        facts.peak_requested_bytes, facts.peak_event, facts.end_live_bytes, facts.total_requested_bytes,
        facts.max_request_bytes, facts.seeded_blocks, facts.seeded_bytes, facts.unplaced_bytes})
    out << fact << ' ';
  for (const auto& [key, value] : trace.header) out << key << '=' << value << '\n';
  for (const std::string& note : trace.notes) out << note << '\n';
  for (const RecordedOom& oom : trace.ooms)
    out << oom.event << ' ' << oom.bytes << ' ' << oom.stream << ' ' << oom.reserved_bytes << ' '
        << oom.device_free_bytes << '\n';
  if (const auto& r = trace.recorded) {
    out << r->pytorch_conf << r->has_settings << r->expandable_segments << r->max_split_size.value_or(1) << ' '
        << r->garbage_collection_threshold << ' ' << r->reserved_bytes << ' ' << r->peak_reserved_bytes << r->is_whole
        << r->reserved_at_start_bytes << ' ' << r->pressed << r->has_device_calls << '\n';
    for (const DeviceCall& call : r->actions)
      out << static_cast<int>(call.action) << ' ' << call.bytes << ' ' << call.event << '\n';
    for (const SegmentInfo& segment : r->initial_segments)
      out << segment.address << ' ' << segment.bytes << ' ' << segment.stream.id << segment.is_large
          << segment.is_expandable << '\n';
    for (const std::uint64_t address : r->seed_addresses) out << address << ' ';
    for (const Segment& segment : r->final_segments) {
      out << segment.address << ' ' << segment.bytes << '\n';
      for (const BlockInfo& block : segment.blocks)
        out << block.address << ' ' << block.bytes << ' ' << block.requested_bytes << static_cast<int>(block.state)
            << ' ' << block.stack << '\n';
    }
  }
  for (const StackFrame& frame : trace.stacks.frames) out << frame.name << frame.file << frame.line << '\n';
  for (const auto& stack : trace.stacks.stacks) {
    for (const std::uint32_t frame : stack) out << frame << ' ';
    out << '\n';
  }
  for (const StackId stack : trace.stack_of_allocation) out << stack << ' ';
  for (const std::int64_t time : trace.columns.times_us) out << time << ' ';
  for (const Purpose purpose : trace.columns.purposes) out << static_cast<int>(purpose) << ' ';
  return out.str();
}

/// What a reader makes of the bytes: its traces, or why it refuses.
std::string reading(std::string_view bytes) {
  try {
    std::string all;
    for (const Trace& trace : read_bytes(bytes, {.with_stacks = true, .with_columns = true})) all += all_of(trace);
    return all;
  } catch (const Error& error) {
    return std::string("refused: ") + error.what();
  }
}

std::string one_line(std::string text) {
  text = text.substr(0, 100);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~') c = ' ';
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

class Readings : public testing::TestWithParam<const Format*> {};

TEST_P(Readings, OfTheCorpusAreThoseOfTheTable) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(TENON_SOURCE_DIR "/fuzz/corpus/" + std::string(GetParam()->name)))
    files.push_back(entry.path());
  std::ranges::sort(files);
  ASSERT_FALSE(files.empty());
  for (const auto& file : files) {
    std::string bytes = content(file.string());
    const std::string read = reading(bytes);
    const std::string shown = read.starts_with("refused") ? " " + one_line(read) : "";
    Fnv1a damaged;
    if (bytes.size() <= 3000) {
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        const char was = bytes[i];
        bytes[i] = static_cast<char>(was ^ (1 << (i % 8)));
        std::vector<std::uint8_t> mended(bytes.begin(), bytes.end());
        if (GetParam()->mend != nullptr) GetParam()->mend(mended);  // or a checksum refuses all of them
        const std::string found = reading({reinterpret_cast<const char*>(mended.data()), mended.size()});
        damaged.bytes(found.data(), found.size());
        bytes[i] = was;
      }
    }
    table().expect(std::string(GetParam()->name) + "/" + file.filename().string(),
                   hash_of(read) + " " + hex64(damaged.value()) + shown);
  }
}

std::vector<const Format*> formats_read() {
  std::vector<const Format*> read;
  for (const Format* const format : formats())
    if (format->read != nullptr) read.push_back(format);
  return read;
}
INSTANTIATE_TEST_SUITE_P(OfEvery, Readings, testing::ValuesIn(formats_read()),
                         [](const auto& format) { return std::string(format.param->name); });

/// Blocks of several streams with times, purposes, stacks, marks, failed requests, uses and frees that wait.
Trace drawn_history(std::uint64_t seed, int steps, bool is_plain) {
  std::mt19937_64 random(seed);
  TraceBuilder builder("drawn");
  std::vector<std::uint32_t> live, waiting;
  std::vector<StackId> stacks;
  std::int64_t time = 1000;
  const auto take = [&](std::vector<std::uint32_t>& from) {
    const std::size_t at = random() % from.size();
    std::swap(from[at], from.back());
    const std::uint32_t slot = from.back();
    from.pop_back();
    return slot;
  };
  for (int step = 0; step < steps; ++step) {
    builder.at(time += static_cast<std::int64_t>(random() % 50));
    const std::uint64_t choice = random() % 16;
    if (choice < 7 || live.empty()) {
      builder.meant_for(static_cast<Purpose>(random() % kPurposes));
      const std::uint64_t bytes = (std::uint64_t{1} << (random() % 26)) + random() % 5000;
      const bool fails = !is_plain && random() % 20 == 0;
      if (fails) builder.next_fails({.bytes = bytes, .reserved_bytes = 40 * MiB, .device_free_bytes = 1 * MiB});
      const std::uint32_t slot = builder.allocate(bytes, is_plain ? 0 : random() % 3);
      stacks.push_back(static_cast<StackId>(random() % 4));
      if (fails) {
        builder.free(slot);
      } else {
        live.push_back(slot);
      }
    } else if (choice < 13) {
      const bool waits = !is_plain && random() % 6 == 0;
      const std::uint32_t slot = take(live);
      builder.free(slot, waits);
      if (waits) waiting.push_back(slot);
    } else if (choice == 13 && !is_plain) {
      builder.use(live[random() % live.size()], random() % 3);
    } else if (choice == 14 && !waiting.empty()) {
      builder.free_completed(take(waiting));
    } else {
      random() % 4 == 0 ? builder.empty_cache() : builder.mark("step " + std::to_string(step));
    }
  }
  builder.header("allocator", "mine");
  Trace trace = std::move(builder).finish();
  if (is_plain) return trace;
  trace.stacks.frames = {{"forward", "/m/model.py", 3}, {"malloc", "??", 0}, {"main <x>", "main.cc", 70}};
  trace.stacks.stacks = {{}, {1, 0, 2}, {2}, {0}};
  trace.stack_of_allocation = stacks;
  return trace;
}

/// The bytes that the format makes of it, or why it makes none.
std::string written_by(const Format& format, const Trace& trace) {
  const std::string path = test::scratch_folder() + "written";
  try {
    format.write(trace, path, {.place = [](const Trace& it) {
                   return image_of_replay(it, policy_of_conf(""), std::nullopt, Failures::kKept);
                 }});
  } catch (const Error& error) {
    return std::string("refused: ") + error.what();
  }
  std::string bytes = content(path);
  std::filesystem::remove(path);
  return bytes;
}

TEST(ReadingsOfWriters, WhatEachFormatWritesOfADrawnHistoryIsThatOfTheTable) {
  load_all_plugins();
  for (const Format* const format : formats()) {
    if (format->write == nullptr) continue;
    for (const bool is_plain : {true, false}) {
      const Trace trace = drawn_history(11, 300, is_plain);
      std::string left_out;
      if (format->left_out != nullptr)
        for (const std::string& what : format->left_out(trace)) left_out += what + "; ";
      const std::string bytes = written_by(*format, trace);
      table().expect("written " + std::string(format->name) + (is_plain ? " of a plain history" : " of a rich history"),
                     hash_of(bytes) + " " + hash_of(format->read != nullptr ? reading(bytes) : "") + " " +
                         std::to_string(bytes.size()) + " bytes, without " + one_line(left_out));
    }
  }
}

std::string all_of(const ReplayRow& row) {
  std::ostringstream out;
  for (const std::uint64_t figure : {row.events,
                                     row.allocations,
                                     row.frees,
                                     row.streams,
                                     row.peak_requested_bytes,
                                     row.peak_allocated_bytes,
                                     row.peak_active_bytes,
                                     row.peak_reserved_bytes,
                                     row.peak_reserved_event,
                                     row.retries,
                                     row.ooms,
                                     row.first_oom_event.value_or(kNoEvent),
                                     row.first_oom_bytes,
                                     row.reserved_changes,
                                     row.reserved_series_fnv1a64,
                                     row.placement_hash,
                                     row.end_reserved_bytes,
                                     row.same_from_bytes,
                                     row.device_calls(),
                                     row.device_allocations,
                                     row.device_frees})
    out << figure << ' ';
  out << row.excess << ' ' << row.internal_fragmentation << ' ' << row.external_fragmentation << ' ' << row.failure
      << '\n';
  for (const CurvePoint& point : row.curve)
    out << point.event << ' ' << point.requested_bytes << ' ' << point.reserved_bytes << '\n';
  for (const Segment& segment : row.layout) {
    out << segment.address << ' ' << segment.bytes << ' ' << segment.stream.id << '\n';
    for (const BlockInfo& block : segment.blocks)
      out << block.address << ' ' << block.bytes << ' ' << block.requested_bytes << static_cast<int>(block.state)
          << '\n';
  }
  for (const DeviceCall& call : row.actions)
    out << static_cast<int>(call.action) << ' ' << call.bytes << ' ' << call.event << '\n';
  return out.str();
}

TEST(ReadingsOfReplays, WhatEachPolicyMakesOfADrawnHistoryIsThatOfTheTable) {
  load_all_plugins();
  for (const bool is_plain : {true, false}) {
    const Trace trace = drawn_history(12, 600, is_plain);
    for (const char* spec : {"direct", "caching", "expandable", "stitching", "bfc"}) {
      for (const std::uint64_t capacity :
           {std::uint64_t{0}, trace.facts.peak_requested_bytes * 9 / 8, trace.facts.peak_requested_bytes * 3 / 4}) {
        JobOptions options{.timed_passes = 0, .time_each_call = false};
        options.keep_curve = options.keep_layout = options.keep_actions = true;
        if (capacity != 0) options.capacity_bytes = capacity;
        const StackConfig policy = allocator_from_spec(spec);
        const ReplayRow row = run_job(trace, policy, options);
        const std::string path = test::scratch_folder() + "replayed.pickle";
        write_snapshot(image_of_replay(trace, policy, options.capacity_bytes), path);
        const std::string picture = content(path);
        std::filesystem::remove(path);
        table().expect("replay " + std::string(is_plain ? "plain " : "rich ") + spec + " " + std::to_string(capacity),
                       hash_of(all_of(row)) + " " + hash_of(picture) + " " + format_bytes(row.peak_reserved_bytes) +
                           " reserved, " + std::to_string(row.ooms) + " failed");
      }
    }
    for (const std::uint64_t capacity : {trace.facts.peak_requested_bytes, trace.facts.peak_requested_bytes * 3 / 4})
      table().expect("ideal " + std::string(is_plain ? "plain " : "rich ") + std::to_string(capacity),
                     hash_of(all_of(ideal_row(trace, capacity))));
  }
}

TEST(ReadingsOfAdvice, WhatIsSaidOfADrawnHistoryIsThatOfTheTable) {
  load_all_plugins();
  for (const std::uint64_t seed : {21, 22, 23}) {
    const Trace trace = drawn_history(seed, 250, seed != 23);
    const std::string name = "advice " + std::to_string(seed);
    SnapshotImage image = image_of_replay(trace, policy_of_conf(""), std::nullopt);
    image.is_replay = false;
    image.events.erase(image.events.begin(), image.events.begin() + static_cast<std::ptrdiff_t>(seed));
    const std::string path = test::scratch_folder() + "advised.pickle";
    write_snapshot(image, path);
    const Trace late = read_traces(path).front();
    std::filesystem::remove(path);
    const Trust trust = judge(late);
    std::string said = trust.refusal + trust.fidelity.sentence();
    for (const std::string& caveat : trust.caveats) said += caveat;
    table().expect(name + " trust", hash_of(said) + " " + one_line(trust.fidelity.sentence()));
    const StackConfig caching = policy_of_conf("");
    const FitReport report =
        what_would_fit(trace, {"caching", caching}, other_pytorch_settings("", trace.facts.max_request_bytes),
                       trace.facts.peak_requested_bytes * 17 / 16, {.jobs = 1});
    table().expect(name + " fit", hash_of(report.sentence()) + " " + one_line(report.sentence()));
    const Trace part = slice(late, late.facts.events / 3, late.facts.events * 2 / 3);
    table().expect(name + " slice", hash_of(all_of(part)));
  }
}

}  // namespace
}  // namespace tenon::replay
