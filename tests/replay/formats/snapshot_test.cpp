// Snapshots: rebuilt histories, every schema, and the round trip through Tenon's own writer.
#include "support/scratch_folder.h"

#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/replay/advise/tune_space.h>
#include <tenon/replay/formats/pytorch/snapshot_writer.h>
#include <tenon/replay/results/fidelity.h>
#include <tenon/replay/results/slice_diff.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fstream>
#include <iterator>

namespace tenon::replay {
namespace {

/// One segment of 20 MiB and the given entries, written as PyTorch would.
Trace through_file(const SnapshotImage& image) {
  const std::string path = test::scratch_folder() + "image.pickle";
  write_snapshot(image, path);
  return read_traces(path, {.with_stacks = true}).front();
}

/// What a recording would look like whose allocator did what the replay does.
Trace recorded(const Trace& trace, const StackConfig& policy, std::optional<std::uint64_t> capacity = {}) {
  SnapshotImage image = image_of_replay(trace, policy, capacity);
  image.is_replay = false;
  return through_file(image);
}

HistoryEvent entry(HistoryAction action, std::uint64_t address, std::uint64_t bytes, StackId stack = 0) {
  return {{.action = action, .stack = stack, .address = address, .bytes = bytes}, 1};
}

SnapshotImage image_with(std::vector<HistoryEvent> events, std::vector<BlockInfo> blocks = {}) {
  SnapshotImage image;
  std::uint64_t bytes = 0;
  for (const BlockInfo& block : blocks) bytes += block.bytes;
  if (bytes != 0) image.segments.push_back({{.address = blocks.front().address, .bytes = bytes}, std::move(blocks)});
  image.events = std::move(events);
  return image;
}

TEST(Snapshot, AFreeThatCompletesAtOnceIsOneEvent) {
  const Trace trace =
      through_file(image_with({entry(HistoryAction::kAlloc, 512, 100), entry(HistoryAction::kFreeRequested, 512, 100),
                               entry(HistoryAction::kFreeCompleted, 512, 100)}));
  EXPECT_EQ(trace.facts.events, 2u);
  EXPECT_EQ(trace.facts.deferred_frees, 0u);
  EXPECT_EQ(trace.facts.end_live_bytes, 0u);
}

TEST(Snapshot, AFreeThatWaitedCompletesWhereTheRecordingSays) {
  const Trace trace =
      through_file(image_with({entry(HistoryAction::kAlloc, 512, 100), entry(HistoryAction::kFreeRequested, 512, 100),
                               entry(HistoryAction::kAlloc, 4096, 100), entry(HistoryAction::kFreeCompleted, 512, 100),
                               entry(HistoryAction::kAlloc, 512, 100)},
                              {{512, 1024, 100, BlockState::kActive, 0}, {4096, 512, 100, BlockState::kActive, 0}}));
  EXPECT_EQ(trace.facts.deferred_frees, 1u);
  ASSERT_EQ(trace.events.size(), 5u);
  EXPECT_EQ(trace.events[3].kind, EventKind::kFreeCompleted);
}

TEST(Snapshot, AFreeThatIsPendingAtTheEndNeverCompletes) {
  load_all_plugins();
  const Trace trace = through_file(
      image_with({entry(HistoryAction::kAlloc, 512, 512), entry(HistoryAction::kFreeRequested, 512, 512),
                  entry(HistoryAction::kAlloc, 1024, 512)},
                 {{512, 512, 512, BlockState::kAwaitingStream, 0}, {1024, 512, 512, BlockState::kActive, 0}}));
  EXPECT_EQ(trace.facts.deferred_frees, 1u);
  const ReplayRow row = run_job(trace, policy_of_conf(""), {.timed_passes = 0, .time_each_call = false});
  EXPECT_EQ(row.peak_active_bytes, 1024u) << "the second block cannot have the first one's place";
}

TEST(Snapshot, WhatLivedBeforeIsPutAtTheStart) {
  const Trace trace =
      through_file(image_with({entry(HistoryAction::kFreeRequested, 512, 100),
                               entry(HistoryAction::kFreeCompleted, 512, 100), entry(HistoryAction::kAlloc, 512, 64)},
                              {{512, 512, 64, BlockState::kActive, 0}, {1024, 512, 300, BlockState::kActive, 0}}));
  EXPECT_EQ(trace.facts.seeded_blocks, 2u) << "one known from its free, one from the segments";
  EXPECT_EQ(trace.facts.seeded_bytes, 400u);
  EXPECT_EQ(trace.marks.front(), "recording starts");
  ASSERT_FALSE(trace.notes.empty());
  EXPECT_NE(trace.notes[0].find("2 blocks of 400 B"), std::string::npos) << trace.notes[0];
}

TEST(Snapshot, WhoFreedABlockIsNotWhoHoldsIt) {
  SnapshotImage image =
      image_with({entry(HistoryAction::kFreeRequested, 512, 100, 1), entry(HistoryAction::kFreeCompleted, 512, 100, 1)},
                 {{1024, 512, 300, BlockState::kActive, 2}});
  image.stacks = {.frames = {{"the_free", "free.py", 1}, {"the_allocation", "model.py", 2}}, .stacks = {{}, {0}, {1}}};
  const Trace trace = through_file(image);
  ASSERT_EQ(trace.stack_of_allocation.size(), 2u);
  EXPECT_TRUE(trace.stacks.stacks[trace.stack_of_allocation[0]].empty());
  EXPECT_EQ(trace.stacks.frames[trace.stacks.stacks[trace.stack_of_allocation[1]].front()].name, "the_allocation");
}

TEST(Snapshot, ACompletionWhoseRequestTheRingLostWasPendingFromTheStart) {
  const Trace trace = through_file(
      image_with({entry(HistoryAction::kAlloc, 4096, 8), entry(HistoryAction::kFreeCompleted, 512, 100),
                  entry(HistoryAction::kFreeRequested, 4096, 8), entry(HistoryAction::kFreeCompleted, 4096, 8)}));
  EXPECT_EQ(trace.facts.seeded_blocks, 1u);
  EXPECT_EQ(trace.facts.deferred_frees, 1u);
  EXPECT_EQ(trace.facts.end_live_bytes, 0u);
}

TEST(Snapshot, SegmentsGivenBackWithoutNeedAreAnEmptyCache) {
  const auto alloc = entry(HistoryAction::kSegmentAlloc, 512, 2 << 20);
  const auto give_back = entry(HistoryAction::kSegmentFree, 512, 2 << 20);
  EXPECT_EQ(through_file(image_with({alloc, give_back, entry(HistoryAction::kAlloc, 4096, 8)},
                                    {{4096, 512, 8, BlockState::kActive, 0}}))
                .facts.empty_caches,
            1u);
  EXPECT_EQ(through_file(image_with({alloc, give_back, entry(HistoryAction::kSegmentAlloc, 4096, 2 << 20),
                                     entry(HistoryAction::kAlloc, 4096, 8)},
                                    {{4096, 2 << 20, 8, BlockState::kActive, 0}}))
                .facts.empty_caches,
            1u)
      << "a device has room for two small segments";
}

TEST(Snapshot, SegmentsGivenBackForTheNextOneAreNoEmptyCache) {
  // 6 GiB, given back before another 6 GiB: together more than ever was reserved.
  const std::uint64_t large = 6 * GiB;
  const std::vector<HistoryEvent> entries = {
      entry(HistoryAction::kSegmentAlloc, 512, large), entry(HistoryAction::kSegmentFree, 512, large),
      entry(HistoryAction::kSegmentAlloc, 4096, large), entry(HistoryAction::kAlloc, 4096, large)};
  SnapshotImage image = image_with(entries, {{4096, large, large, BlockState::kActive, 0}});
  EXPECT_EQ(through_file(image).facts.empty_caches, 0u) << "the allocator needed the memory";
  // A failure says that the device has 20 GiB: there was no need.
  image.events.push_back(entry(HistoryAction::kOom, 14 * GiB, 15 * GiB));
  EXPECT_EQ(through_file(image).facts.empty_caches, 1u);
}

TEST(Snapshot, EveryEmptiedCacheComesBackThroughTenonsOwnFile) {
  load_all_plugins();
  const Trace trace = read_one("a 0 5000000 0\nf 0\ne\na 1 50 0\ne\ne\nf 1\ne\n");
  const Trace back = recorded(trace, policy_of_conf(""));
  EXPECT_TRUE(difference(trace, back).are_equal) << difference(trace, back).what;
  const Fidelity fidelity = measure_fidelity(back, policy_of_conf(""), "");
  EXPECT_TRUE(fidelity.is_exact) << fidelity.sentence();
}

TEST(Snapshot, OfAnotherAllocatorSaysSoAndInventsNothing) {
  load_all_plugins();
  const Trace trace = read_one("a 0 5000000 0\nf 0\na 1 50 0\nf 1\na 2 50 0\n");
  const Trace back = recorded(trace, plain_policy());
  EXPECT_TRUE(difference(trace, back).are_equal) << difference(trace, back).what;
  EXPECT_EQ(back.header.at("allocator"), "plain");
  ASSERT_TRUE(back.recorded);
  EXPECT_FALSE(back.recorded->has_settings) << "PyTorch's defaults were not in use";
  EXPECT_FALSE(measure_fidelity(back, policy_of_conf(""), "").is_known);
  EXPECT_TRUE(measure_fidelity(back, plain_policy(), "").is_known);
}

TEST(Snapshot, FreeingTwiceIsRefusedWithItsEntry) {
  const std::string path = test::scratch_folder() + "twice.pickle";
  write_snapshot(
      image_with({entry(HistoryAction::kAlloc, 512, 100), entry(HistoryAction::kFreeRequested, 512, 100),
                  entry(HistoryAction::kFreeCompleted, 512, 100), entry(HistoryAction::kFreeCompleted, 512, 100),
                  entry(HistoryAction::kFreeRequested, 512, 100)}),
      path);
  try {
    read_traces(path);
    FAIL() << "accepted";
  } catch (const TraceError& error) {
    EXPECT_NE(std::string(error.what()).find("device_traces[0][3]"), std::string::npos) << error.what();
  }
}

TEST(Snapshot, ARealHistoryComesBackUnchangedThroughASnapshot) {
  const Trace trace = read_traces(example_trace("gpt2_adam.trace.gz")).front();
  const Trace back = through_file(image_of_replay(trace, keeping_policy(), std::nullopt));
  const TraceDifference found = difference(trace, back);
  EXPECT_TRUE(found.are_equal) << found.what;
}

TEST(Snapshot, AReplayUnderTheRecordedSettingsIsExact) {
  const Trace trace = read_traces(example_trace("gpt2_adam.trace.gz")).front();
  const StackConfig policy = keeping_policy();
  const Trace whole = recorded(trace, policy);
  const Fidelity fidelity = measure_fidelity(whole, policy, "");
  EXPECT_TRUE(fidelity.is_exact) << fidelity.sentence();
  EXPECT_GT(fidelity.recorded_actions, 0u);
}

TEST(Snapshot, AReplayOfExpandableSegmentsIsExactHoweverManyPagesAStretchHas) {
  load_all_plugins();
  const std::string conf = "expandable_segments:True";
  const Trace trace = read_one("a 0 41943040 0\na 1 100 0\nf 0\ne\na 2 73400320 0\n");
  const Trace whole = recorded(trace, policy_of_conf(conf));
  const Fidelity fidelity = measure_fidelity(whole, policy_of_conf(conf), conf);
  EXPECT_TRUE(fidelity.is_exact) << fidelity.sentence();
  EXPECT_GT(fidelity.recorded_actions, 2u);
}

TEST(Snapshot, AReplayOfALimitedDeviceIsExact) {
  load_all_plugins();
  const Trace trace = read_traces(example_trace("gpt2_adam.trace.gz")).front();
  for (const std::uint64_t capacity : {5800 * MiB, 5600 * MiB}) {
    const Trace whole = recorded(trace, policy_of_conf(""), capacity);
    const Fidelity fidelity = measure_fidelity(whole, policy_of_conf(""), "");
    EXPECT_TRUE(fidelity.is_exact) << capacity << ": " << whole.ooms.size() << " failed; " << fidelity.sentence();
  }
}

TEST(Snapshot, OfTwoDevicesGivesTwoTraces) {
  // Written by hand: each device has one block, alive at the end.
  const auto text = [](const std::string& value) {
    return std::string("\x8c") + static_cast<char>(value.size()) + value;
  };
  const std::string alloc = "}(" + text("action") + text("alloc") + text("addr") + "K\x20" + text("size") + "K\x40" +
                            text("stream") + "K\x01" + "u";
  const std::string head = "\x80\x04}(" + text("device_traces");
  const std::vector<Trace> traces = read_bytes(head + "](](" + alloc + "e](" + alloc + "eeu.");
  ASSERT_EQ(traces.size(), 2u);
  EXPECT_EQ(traces[0].name, "file@0");
  EXPECT_EQ(traces[1].facts.peak_requested_bytes, 64u);
}

TEST(Snapshot, AnAnnotationBelongsToItsDeviceAndHasAnEnd) {
  const auto text = [](const std::string& value) {
    return std::string("\x8c") + static_cast<char>(value.size()) + value;
  };
  const std::string alloc = "}(" + text("action") + text("alloc") + text("addr") + "K\x20" + text("size") + "K\x40" +
                            text("stream") + "K\x01" + text("time_us") + "K\x05u";
  const auto annotation = [&](const std::string& name, const std::string& stage, char device, char time) {
    return "}(" + text("name") + text(name) + text("stage") + text(stage) + text("device") + "K" + device +
           text("time_us") + "K" + time + "u";
  };
  const std::vector<Trace> traces =
      read_bytes("\x80\x04}(" + text("device_traces") + "](](" + alloc + "e](" + alloc + "ee" +
                 text("external_annotations") + "](" + annotation("zero", "START", '\0', '\x03') +
                 annotation("one", "START", '\x01', '\x03') + annotation("zero", "END", '\0', '\x07') + "eu.");
  ASSERT_EQ(traces.size(), 2u);
  EXPECT_EQ(traces[0].marks, (std::vector<std::string>{"zero", "end of zero"}));
  EXPECT_EQ(traces[0].events.back().kind, EventKind::kMark) << "it ends after the allocation";
  EXPECT_EQ(traces[1].marks, std::vector<std::string>{"one"});
}

TEST(Snapshot, ALongNameOfAMarkIsKept) {
  const std::string name(3000, 'x');
  SnapshotImage image = image_with({entry(HistoryAction::kAlloc, 512, 100)});
  image.marks = {{0, name}};
  EXPECT_EQ(through_file(image).marks, std::vector<std::string>{name});
}

TEST(Snapshot, AFailedRequestWithoutFiguresNamesTheKeyThatIsMissing) {
  const auto text = [](const std::string& value) {
    return std::string("\x8c") + static_cast<char>(value.size()) + value;
  };
  const std::string oom = "}(" + text("action") + text("oom") + text("size") + "K\x40u";
  const std::string reason = refusal_of("\x80\x04}(" + text("device_traces") + "](](" + oom + "eeu.");
  EXPECT_NE(reason.find("'device_free' (or 'addr') is missing"), std::string::npos) << reason;
}

TEST(Snapshot, ADeviceWithoutSegmentsIsNotToldToBeASnapshotInstead) {
  Trace trace = through_file(image_with({entry(HistoryAction::kAlloc, 512, 100)}));
  trace.recorded.reset();
  const std::string sentence = measure_fidelity(trace, plain_policy(), "").sentence();
  EXPECT_NE(sentence.find("the snapshot holds no segment of this device"), std::string::npos) << sentence;
}

TEST(Snapshot, TheEndOfAnAnnotationIsWrittenAsOne) {
  SnapshotImage image = image_with({entry(HistoryAction::kAlloc, 512, 100)});
  image.marks = {{0, "step"}, {1, "end of nothing"}, {2, "end of step"}};
  EXPECT_EQ(through_file(image).marks, (std::vector<std::string>{"step", "end of nothing", "end of step"}));
  std::ifstream file(test::scratch_folder() + "image.pickle", std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  EXPECT_NE(bytes.find("END"), std::string::npos);
  EXPECT_EQ(bytes.find("end of step"), std::string::npos);
}

TEST(Snapshot, SettingsThatWereMadeInTheProgramAreReadFromTheirFields) {
  SnapshotImage image = image_with({entry(HistoryAction::kAlloc, 512, 100)});
  EXPECT_EQ(through_file(image).recorded->pytorch_conf, "");
  image.max_split_bytes = 64 * MiB;
  image.garbage_collection_threshold = 0.8;
  image.roundup_divisions.fill(4);
  EXPECT_EQ(through_file(image).recorded->pytorch_conf,
            "max_split_size_mb:64,garbage_collection_threshold:0.8,roundup_power2_divisions:4");
  image.roundup_divisions[15] = 8;
  const std::string conf = through_file(image).recorded->pytorch_conf;
  load_all_plugins();
  EXPECT_EQ(conf_of_policy(policy_of_conf(conf)).find("max_split_size_mb:64"), 0u) << conf;
  EXPECT_NE(conf.find("roundup_power2_divisions:[1:4,2:4,"), std::string::npos) << conf;
  EXPECT_NE(conf.find(",>:8]"), std::string::npos) << conf;
  image.pytorch_conf = "max_split_size_mb:32";
  EXPECT_EQ(through_file(image).recorded->pytorch_conf, "max_split_size_mb:32") << "the string says more";
}

TEST(Snapshot, ExpandableSegmentsAreASettingThoughTheFileDoesNotSayIt) {
  SnapshotImage image = image_with({entry(HistoryAction::kAlloc, 512, 100)}, {{512, 512, 100, BlockState::kActive, 0}});
  EXPECT_EQ(through_file(image).recorded->pytorch_conf, "");
  image.segments.front().is_expandable = true;
  image.roundup_divisions.fill(4);
  const Trace trace = through_file(image);
  EXPECT_EQ(trace.recorded->pytorch_conf, "roundup_power2_divisions:4,expandable_segments:True");
  EXPECT_NE(trace.notes.front().find("its segments are expandable"), std::string::npos) << trace.notes.front();
  image.pytorch_conf = "expandable_segments:False";
  EXPECT_EQ(through_file(image).recorded->pytorch_conf, "expandable_segments:False") << "switched off later";
  // Its pages are given back by the end.
  image = image_with({entry(HistoryAction::kSegmentMap, 2 * MiB, 2 * MiB), entry(HistoryAction::kAlloc, 2 * MiB, 100)});
  EXPECT_EQ(through_file(image).recorded->pytorch_conf, "expandable_segments:True");
}

TEST(Snapshot, AFreeOfABlockThatAnotherStreamUsedWaitsForTheNextAllocation) {
  load_all_plugins();
  const Trace trace = read_one("a 0 5000000 0\na 1 5000000 0\nu 0 1\nf 0\nf 1\na 2 700 0\na 3 600 0\nu 3 9\nf 3\n");
  const Trace back = through_file(image_of_replay(trace, policy_of_conf(""), std::nullopt));
  EXPECT_EQ(back.facts.uses, 0u);
  EXPECT_EQ(back.facts.deferred_frees, 2u);
  std::vector<EventKind> kinds;
  for (const TraceEvent& event : back.events) kinds.push_back(event.kind);
  using enum EventKind;
  EXPECT_EQ(kinds,
            (std::vector<EventKind>{kAllocate, kAllocate, kFree, kFree, kFreeCompleted, kAllocate, kAllocate, kFree}))
      << "the last one waits still";
}

TEST(Snapshot, SegmentsWithoutEntriesAreNotSaidToBeOlderThanTheRecording) {
  const Trace trace =
      through_file(image_with({entry(HistoryAction::kAlloc, 512, 512)}, {{512, 512, 512, BlockState::kActive, 0}}));
  ASSERT_FALSE(trace.notes.empty());
  EXPECT_NE(trace.notes.front().find("no entry says since when"), std::string::npos) << trace.notes.front();
}

TEST(Snapshot, IsRefusedWhenItIsSomethingElse) {
  EXPECT_NE(refusal_of(std::string("\x80\x04}.", 4)).find("not a memory snapshot"), std::string::npos);
  EXPECT_NE(refusal_of(std::string("\x80\x04K\x01.", 5)).find("not a memory snapshot"), std::string::npos);
  EXPECT_NE(refusal_of(std::string("\x80\x04].", 4)).find("nothing was allocated"), std::string::npos);
}

TEST(TuneSpace, KeepsWhatWasSetBeforeAndIsNotSearched) {
  EXPECT_EQ(merge_conf("pinned_use_background_threads:True,expandable_segments:False", "expandable_segments:True"),
            "expandable_segments:True,pinned_use_background_threads:True");
  EXPECT_EQ(merge_conf("roundup_power2_divisions:[64:8,>:2],max_split_size_mb:64", ""), "");
}

TEST(TuneSpace, EverySettingOfPytorchComesBackFromThePolicyThatItMeans) {
  load_all_plugins();
  for (const char* conf : {"", "expandable_segments:True", "throw_on_cudamalloc_oom:True", "large_segment_size_mb:33",
                           "expandable_segments:True,expandable_segments_reserve:0.25",
                           "expandable_segments:True,expandable_segments_reserve:1.5G", "max_split_size_mb:64",
                           "garbage_collection_threshold:0.5,per_process_memory_fraction:0.75"}) {
    const std::string back = conf_of_policy(policy_of_conf(conf));
    EXPECT_EQ(policy_of_conf(back).options.entries(true), policy_of_conf(conf).options.entries(true)) << back;
  }
  EXPECT_EQ(conf_of_policy(policy_of_conf("expandable_segments:True,expandable_segments_reserve:1.5G")),
            "expandable_segments:True,expandable_segments_reserve:1.5G");
}

TEST(TuneSpace, LeavesOutWhatPyTorchRefuses) {
  const std::vector<Dimension> space = pytorch_space(std::uint64_t{1} << 30);
  Choice choice(space.size(), 0);
  EXPECT_EQ(conf_of(space, choice), "");
  choice[0] = 1;
  EXPECT_EQ(conf_of(space, choice), "expandable_segments:True");
}

}  // namespace
}  // namespace tenon::replay
