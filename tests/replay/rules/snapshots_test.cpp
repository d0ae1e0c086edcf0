// Snapshots by rule: each field of the schema at the edges of what it may hold, and drawn pictures with whatever an
// allocator can have done. What is read of them is recorded in snapshots.txt; who changes a reading on purpose writes
// it anew (support/recorded_table.h), with the filter SnapshotTable*.
#include "replay/drawn_history.h"
#include "replay/support.h"
#include "support/recorded_table.h"

#include <tenon/core/error.h>
#include <tenon/replay/formats/io/limits.h>
#include <tenon/replay/formats/pytorch/snapshot_writer.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {
namespace {

void expect_reading(const std::string& what, const std::string& outcome) {
  static test::RecordedTable table("tests/replay/rules/snapshots.txt");
  table.expect(what, outcome);
}

std::string shown(std::string_view bytes) {
  try {
    std::string all;
    for (const Trace& trace : read_bytes(bytes, {.with_stacks = true, .with_columns = true})) all += all_of(trace);
    return hash_of(all);
  } catch (const Error& error) {
    return "refused, " + one_line(error.what());
  }
}

// ---- pickles, written by hand

using Fields = std::vector<std::pair<std::string, std::string>>;

std::string pickled(std::uint64_t value) {
  std::string text("\x8a\x09", 2);
  for (int i = 0; i < 8; ++i) text += static_cast<char>(value >> (8 * i));
  return text + '\0';
}
std::string negative(std::int64_t value) {
  std::string text("\x8a\x08", 2);
  for (int i = 0; i < 8; ++i) text += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i));
  return text;
}
std::string pickled(std::string_view text) {
  std::string made = "X";
  for (int i = 0; i < 4; ++i) made += static_cast<char>(text.size() >> (8 * i));
  return made + std::string(text);
}
std::string dict(const Fields& fields) {
  std::string text = "}(";
  for (const auto& [key, value] : fields)
    if (!value.empty()) text += pickled(std::string_view(key)) + value;
  return text + "u";
}
std::string list(const std::vector<std::string>& items) {
  std::string text = "](";
  for (const std::string& item : items) text += item;
  return text + "e";
}

/// What one part of a small sound snapshot holds; a field is named "block.size".
using Changes = std::vector<std::pair<std::string, std::string>>;

std::string part(const std::string& name, Fields fields, const Changes& changes) {
  for (const auto& [place, value] : changes) {
    if (!place.starts_with(name + ".")) continue;
    const std::string key = place.substr(name.size() + 1);
    const auto field = std::ranges::find(fields, key, &Fields::value_type::first);
    field == fields.end() ? void(fields.emplace_back(key, value)) : void(field->second = value);
  }
  return dict(fields);
}

std::string snapshot_with(const Changes& changes) {
  const std::string frames =
      list({part("frame", {{"name", pickled("f")}, {"filename", pickled("a.py")}, {"line", pickled(3U)}}, changes)});
  const std::string user = part("user", {{"real_size", pickled(200U)}, {"frames", frames}}, changes);
  const std::string block = part("block",
                                 {{"address", pickled(4096U)},
                                  {"size", pickled(512U)},
                                  {"requested_size", pickled(300U)},
                                  {"state", pickled("active_allocated")},
                                  {"frames", frames},
                                  {"history", list({user})}},
                                 changes);
  const std::string free_block =
      dict({{"address", pickled(4608U)}, {"size", pickled(1536U)}, {"state", pickled("inactive")}});
  const std::string segment = part("segment",
                                   {{"address", pickled(4096U)},
                                    {"total_size", pickled(2048U)},
                                    {"stream", pickled(0U)},
                                    {"segment_type", pickled("small")},
                                    {"is_expandable", "\x89"},
                                    {"device", pickled(0U)},
                                    {"blocks", list({block, free_block})}},
                                   changes);
  const auto entry = [&](const char* action, std::uint64_t address, std::uint64_t bytes) {
    return part(std::string("entry ") + action,
                {{"action", pickled(action)},
                 {"addr", pickled(address)},
                 {"size", pickled(bytes)},
                 {"stream", pickled(0U)},
                 {"time_us", pickled(1000U)},
                 {"frames", frames}},
                changes);
  };
  const std::string entries =
      list({entry("segment_alloc", 4096, 2048), entry("alloc", 4096, 300), entry("oom", 7000, 9000),
            entry("free_requested", 4608, 100), entry("free_completed", 4608, 100)});
  const std::string annotation = part(
      "annotation",
      {{"stage", pickled("START")}, {"time_us", pickled(900U)}, {"name", pickled("step")}, {"device", pickled(0U)}},
      changes);
  const std::string settings = part("settings",
                                    {{"PYTORCH_CUDA_ALLOC_CONF", pickled("max_split_size_mb:64")},
                                     {"max_split_size", pickled(67108864U)},
                                     {"expandable_segments", "\x89"}},
                                    changes);
  return std::string("\x80\x04", 2) +
         part("root",
              {{"segments", list({segment})},
               {"device_traces", list({entries})},
               {"external_annotations", list({annotation})},
               {"allocator_settings", settings},
               {"tenon", part("tenon", {}, changes)}},
              changes) +
         ".";
}

TEST(SnapshotAnnotations, AreMarksOfTheirDeviceOrOfAllWhereTheyNameNone) {
  const auto marks_on_the_second_device = [](const std::string& device) {
    const std::string entry = dict({{"action", pickled("alloc")},
                                    {"addr", pickled(4096U)},
                                    {"size", pickled(300U)},
                                    {"stream", pickled(0U)},
                                    {"time_us", pickled(1000U)}});
    return read_bytes(snapshot_with({{"segment.device", pickled(1U)},
                                     {"annotation.device", device},
                                     {"root.device_traces", list({list({}), list({entry})})}}))
        .front()
        .marks;
  };
  const std::vector<std::string> step = {"step"};
  EXPECT_EQ(marks_on_the_second_device(pickled(1U)), step);
  EXPECT_EQ(marks_on_the_second_device(""), step);
  EXPECT_EQ(marks_on_the_second_device(pickled("first")), step) << "no number";
  EXPECT_TRUE(marks_on_the_second_device(pickled(0U)).empty());
}

TEST(SnapshotSettings, ExpandableSegmentsAreAddedToAStringThatCameAfterTheyWereSwitchedOn) {
  const auto conf_with = [](const std::string& field, const std::string& segment) {
    return read_bytes(snapshot_with({{"settings.expandable_segments", field}, {"segment.is_expandable", segment}}))
        .front()
        .recorded->pytorch_conf;
  };
  const std::string no = "\x89", yes = "\x88";
  EXPECT_EQ(conf_with(yes, yes), "max_split_size_mb:64,expandable_segments:True");
  EXPECT_EQ(conf_with(no, yes), "max_split_size_mb:64,expandable_segments:True");
  EXPECT_EQ(conf_with(yes, no), "max_split_size_mb:64") << "no segment of this device is";
}

/// What is read of entries of 64 bytes at addresses: "a a f c".
std::string told_of_entries(const std::vector<std::pair<HistoryAction, std::uint64_t>>& entries) {
  SnapshotImage image;
  std::int64_t time = 0;
  for (const auto& [action, address] : entries)
    image.events.push_back({{.action = action, .address = address, .bytes = 64}, ++time});
  write_snapshot(image, scratch("entries.pickle"));
  const Trace trace = read_one(content(scratch("entries.pickle")));
  std::string told;
  for (const TraceEvent& event : trace.events) {
    told += event.kind == EventKind::kAllocate        ? "a"
            : event.kind == EventKind::kFree          ? "f"
            : event.kind == EventKind::kFreeCompleted ? "c"
                                                      : "?";
    told += event.deferred ? "(waits) " : " ";
  }
  return told;
}

TEST(SnapshotFrees, CompleteAtOnceWhereTheirEndFollowsAtTheirAddress) {
  using enum HistoryAction;
  EXPECT_EQ(told_of_entries({{kAlloc, 512}, {kFreeRequested, 512}, {kFreeCompleted, 512}}), "a f ");
  EXPECT_EQ(told_of_entries({{kAlloc, 512},
                             {kAlloc, 1024},
                             {kFreeRequested, 512},
                             {kFreeRequested, 1024},
                             {kFreeCompleted, 1024},
                             {kFreeCompleted, 512}}),
            "a a f(waits) f c ");
  EXPECT_EQ(told_of_entries({{kAlloc, 512}, {kFreeRequested, 512}, {kOom, 512}, {kFreeCompleted, 512}}),
            "a f(waits) a f c ")
      << "the device had as much left as the address is";
  EXPECT_EQ(told_of_entries(
                {{kAlloc, 512}, {kFreeRequested, 512}, {kAlloc, 512}, {kFreeRequested, 512}, {kFreeCompleted, 512}}),
            "a f(waits) c a f ")
      << "its end is missing";
  EXPECT_EQ(told_of_entries({{kAlloc, 512}, {kFreeRequested, 512}}), "a f ") << "where no end is told of any";
}

// Long: the fields and values are listed.
TEST(SnapshotTable, OfEachFieldAtTheEdgesOfWhatItMayHoldIsAsItWas) {
  const std::pair<const char*, std::string> values[] = {{"missing", ""},
                                                        {"none", "N"},
                                                        {"text", pickled("x")},
                                                        {"true", "\x88"},
                                                        {"a list", list({})},
                                                        {"a dict", dict({})},
                                                        {"-1", negative(-1)},
                                                        {"0", pickled(0U)},
                                                        {"1", pickled(1U)},
                                                        {"300", pickled(300U)},
                                                        {"512", pickled(512U)},
                                                        {"513", pickled(513U)},
                                                        {"4095", pickled(4095U)},
                                                        {"4096", pickled(4096U)},
                                                        {"4097", pickled(4097U)},
                                                        {"2^32", pickled(std::uint64_t{1} << 32)},
                                                        {"2^60", pickled(kMaxDeviceBytes)},
                                                        {"above 2^60", pickled(kMaxDeviceBytes + 1)},
                                                        {"below 2^62", pickled(kMaxBlockBytes - 1)},
                                                        {"2^62", pickled(kMaxBlockBytes)},
                                                        {"above 2^62", pickled(kMaxBlockBytes + 1)},
                                                        {"2^63", pickled(std::uint64_t{1} << 63)},
                                                        {"17 below 2^64", pickled(~std::uint64_t{0} - 16)},
                                                        {"16 below 2^64", pickled(~std::uint64_t{0} - 15)},
                                                        {"2 below 2^64", pickled(~std::uint64_t{0} - 1)},
                                                        {"1 below 2^64", pickled(~std::uint64_t{0})}};
  ASSERT_FALSE(shown(snapshot_with({})).starts_with("refused")) << shown(snapshot_with({}));
  for (const char* field : {"frame.name",
                            "frame.filename",
                            "frame.line",
                            "user.real_size",
                            "user.frames",
                            "block.address",
                            "block.size",
                            "block.requested_size",
                            "block.state",
                            "block.frames",
                            "block.history",
                            "segment.address",
                            "segment.total_size",
                            "segment.stream",
                            "segment.segment_type",
                            "segment.is_expandable",
                            "segment.segment_pool_id",
                            "segment.device",
                            "segment.blocks",
                            "entry alloc.addr",
                            "entry alloc.size",
                            "entry alloc.stream",
                            "entry alloc.time_us",
                            "entry alloc.frames",
                            "entry alloc.action",
                            "entry oom.addr",
                            "entry oom.device_free",
                            "entry oom.size",
                            "entry segment_alloc.size",
                            "entry segment_alloc.addr",
                            "entry free_requested.addr",
                            "entry free_requested.size",
                            "entry free_completed.addr",
                            "annotation.stage",
                            "annotation.time_us",
                            "annotation.name",
                            "annotation.device",
                            "settings.max_split_size",
                            "settings.expandable_segments",
                            "settings.garbage_collection_threshold",
                            "settings.roundup_power2_divisions",
                            "settings.PYTORCH_CUDA_ALLOC_CONF",
                            "settings.PYTORCH_ALLOC_CONF",
                            "tenon.allocator",
                            "tenon.allocator_options",
                            "tenon.allocator_plugin",
                            "tenon.empty_caches",
                            "tenon.failures",
                            "tenon.is_pytorch_allocator",
                            "tenon.origin",
                            "tenon.recording",
                            "tenon.seeded_blocks",
                            "tenon.unlisted_bytes",
                            "root.segments",
                            "root.device_traces",
                            "root.external_annotations",
                            "root.allocator_settings",
                            "root.tenon"})
    for (const auto& [name, value] : values)
      expect_reading(std::string(field) + " = " + name, shown(snapshot_with({{field, value}})));
}

TEST(SnapshotTable, OfFieldsThatBelongTogetherIsAsItWas) {
  const auto both = [](const Changes& changes, const std::string& what) {
    expect_reading(what, shown(snapshot_with(changes)));
  };
  for (const char* state : {"active_allocated", "active_pending_free", "active_awaiting_free", "inactive", "other"})
    for (const std::uint64_t requested : {0U, 511U, 512U, 513U})
      both({{"block.state", pickled(state)}, {"block.requested_size", pickled(requested)}},
           fmt::format("{} of {} requested", state, requested));
  both({{"block.requested_size", ""}, {"block.history", ""}}, "a block without a requested size");
  both({{"block.address", ""}}, "a block without an address");
  for (const auto& [first, second] :
       std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0, 0}, {0, 1}, {1, 0}, {5, 7}, {1ULL << 63, 0}})
    both({{"segment.segment_pool_id", list({pickled(first), pickled(second)})}},
         fmt::format("pool {} and {}", first, second));
  for (const char* type : {"small", "large", "other"})
    both({{"segment.segment_type", pickled(type)}}, fmt::format("a segment that is {}", type));
  for (const char* stage : {"START", "END", "MIDDLE"})
    for (const std::int64_t time : {-5, 0, 999, 1000, 1001})
      both({{"annotation.stage", pickled(stage)}, {"annotation.time_us", negative(time)}},
           fmt::format("{} at {}", stage, time));
  for (const std::uint64_t device : {0U, 1U, 4095U, 4096U, 4097U})
    both({{"segment.device", pickled(device)}, {"annotation.device", pickled(device)}},
         fmt::format("device {}", device));
  for (const std::size_t bytes : {199U, 200U, 201U, 4095U, 4096U, 4097U})
    both({{"annotation.name", pickled(std::string(bytes, 'n'))}}, fmt::format("a name of {} letters", bytes));
  for (const std::size_t keys : {251U, 252U, 253U, 260U}) {
    Changes many;
    for (std::size_t i = 0; i < keys; ++i) many.emplace_back("entry alloc.k" + std::to_string(i), pickled(0U));
    both(many, fmt::format("an entry of {} more keys", keys));
  }
  for (const char* action : {"alloc", "free", "free_requested", "free_completed", "segment_alloc", "segment_free",
                             "segment_map", "segment_unmap", "snapshot", "oom", "workspace_snapshot", ""})
    both({{"entry alloc.action", pickled(action)}}, fmt::format("the action '{}'", action));
}

TEST(SnapshotTable, OfDrawnPicturesIsAsItWas) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 random(seed);
    SnapshotImage image;
    image.stacks = {.frames = {{"f", "a.py", 1}, {"g", "b.py", 2}}, .stacks = {{}, {0}, {1, 0}}};
    std::uint64_t address = 1 << 20;
    for (std::uint64_t s = random() % 4; s > 0; --s) {
      Segment segment{{.address = address,
                       .stream = {random() % 2},
                       .is_large = random() % 2 == 0,
                       .is_expandable = random() % 4 == 0,
                       .pool = random() % 5 == 0 ? 3U : 0U},
                      {}};
      for (std::uint64_t b = 1 + random() % 4; b > 0; --b) {
        const std::uint64_t bytes = 512 * (1 + random() % 4);
        const auto state = static_cast<BlockState>(random() % 3);
        segment.blocks.push_back({address, bytes, state == BlockState::kFree ? 0 : bytes - random() % 500, state,
                                  static_cast<StackId>(random() % 3)});
        address += bytes;
        segment.bytes += bytes;
      }
      image.segments.push_back(segment);
      address += 4096;
    }
    for (std::uint64_t e = random() % 25; e > 0; --e)
      image.events.push_back({{.action = static_cast<HistoryAction>(random() % kHistoryActions),
                               .stack = static_cast<StackId>(random() % 3),
                               .address = (1 << 20) + 512 * (random() % 12),
                               .bytes = 512 * (1 + random() % 3),
                               .stream = {random() % 2}},
                              static_cast<std::int64_t>(1000 + 3 * e)});
    for (std::uint64_t m = random() % 3; m > 0; --m)
      image.marks.emplace_back(1000 + random() % 80, "mark " + std::to_string(m));
    std::ranges::sort(image.marks);
    if (random() % 3 == 0) image.pytorch_conf = "max_split_size_mb:64";
    if (random() % 3 == 0) image.allocator = "mine", image.allocator_options = "a=1";
    image.is_pytorchs = random() % 2 == 0;
    if (random() % 3 == 0) image.empty_caches = {{1, 3}};
    if (random() % 3 == 0) image.unlisted_bytes = 4096;
    if (random() % 3 == 0) image.max_split_bytes = 64 << 20;
    if (random() % 3 == 0) image.garbage_collection_threshold = 0.5;
    if (random() % 3 == 0) image.roundup_divisions.fill(4);
    image.is_replay = random() % 4 == 0;
    if (image.is_replay) image.seeded_blocks = random() % 3;
    if (random() % 4 == 0) image.failures = {{1000, 2000}, {0, 0}};
    const std::string path = scratch("drawn.pickle");
    std::string outcome;
    try {
      write_snapshot(image, path);
      const std::string bytes = content(path);
      outcome = hash_of(bytes) + " " + shown(bytes);
    } catch (const Error& error) {
      outcome = one_line(error.what());
    }
    expect_reading(fmt::format("picture {}", seed), outcome);
  }
}

}  // namespace
}  // namespace tenon::replay
