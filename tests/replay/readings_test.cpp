// What becomes of fixed inputs on their way through a replay: how each file of the fuzz corpus is read, and each that a
// flipped byte makes of it; what each format writes of a drawn history; what each policy makes of it. All of it is in
// readings.txt; who changes any of it on purpose writes that anew (support/recorded_table.h), with the filter
// Readings*.
#include "replay/drawn_history.h"
#include "replay/formats/read_formats.h"
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

namespace {

test::RecordedTable& table() {
  static test::RecordedTable readings("tests/replay/readings.txt");
  return readings;
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

INSTANTIATE_TEST_SUITE_P(OfEvery, Readings, testing::ValuesIn(formats_that_are_read()),
                         [](const auto& format) { return std::string(format.param->name); });

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
