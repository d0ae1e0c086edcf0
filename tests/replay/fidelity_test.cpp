// Fidelity: what a replay makes of the segments that were there when a recording began, and what its figures say.
#include "support/scratch_folder.h"

#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/replay/advise/tune_space.h>
#include <tenon/replay/engine/recorded_addresses.h>
#include <tenon/replay/formats/pytorch/snapshot_writer.h>
#include <tenon/replay/results/fidelity.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gmock/gmock.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::replay {
namespace {

using testing::HasSubstr;

/// What PyTorch's snapshot holds of that history once its ring has lost the first entries.
Trace late(const std::string& text, std::size_t lost_entries) {
  load_all_plugins();
  SnapshotImage image = image_of_replay(read_one(text), policy_of_conf(""), std::nullopt);
  image.is_replay = false;
  image.empty_caches.reset();
  image.events.erase(image.events.begin(), image.events.begin() + static_cast<std::ptrdiff_t>(lost_entries));
  const std::string file = test::scratch_folder() + "fidelity_late.pickle";
  write_snapshot(image, file);
  Trace trace = read_traces(file).front();
  std::filesystem::remove(file);
  return trace;
}

std::string line(int block, std::size_t bytes, int stream = 0) {
  return "a " + std::to_string(block) + " " + std::to_string(bytes) + " " + std::to_string(stream) + "\n";
}

Fidelity as_recorded(const Trace& trace) { return measure_fidelity(trace, policy_of_conf(""), ""); }

constexpr std::size_t kLostOfOneSegment = 3;  // segment_alloc alloc alloc

// A segment of 20 MiB: 5 MiB, then a block whose rest is `rest` bytes. PyTorch splits off what is more than a mebibyte.
TEST(Fidelity, ARestOfUpToAMebibyteIsPartOfTheBlockBeforeItAndALargerOneIsCached) {
  for (const std::size_t rest : {std::size_t{512}, 1 * MiB - 512, 1 * MiB, 1 * MiB + 512, 2 * MiB}) {
    SCOPED_TRACE(testing::Message() << "a rest of " << rest << " bytes");
    // What is asked for later fits the rest exactly, and needs the device where the rest is not cached.
    const std::size_t later = rest > 1 * MiB ? rest : 1 * MiB + 512;
    const Trace trace =
        late(line(0, 5 * MiB) + line(1, 15 * MiB - rest) + line(2, later) + "f 2\n" + line(3, 30 * MiB) + "f 3\n",
             kLostOfOneSegment);
    ASSERT_EQ(trace.facts.seeded_blocks, 2u);
    const Fidelity found = as_recorded(trace);
    EXPECT_TRUE(found.is_exact) << found.sentence();
    EXPECT_EQ(found.recorded_actions, rest > 1 * MiB ? 1u : 2u);
  }
}

TEST(Fidelity, FreePlacesBetweenTheBlocksOfTheBeginningServeWhatFitsThere) {
  // 4 MiB stay, 6 MiB go, 4 MiB stay: the gap takes 6 MiB again and nothing more.
  const std::string before = line(0, 4 * MiB) + line(1, 6 * MiB) + line(2, 4 * MiB) + "f 1\n";
  const Trace trace = late(before + line(3, 6 * MiB) + line(4, 5 * MiB) + "f 3\nf 4\n", 6);
  ASSERT_EQ(trace.facts.seeded_blocks, 2u);
  const Fidelity found = as_recorded(trace);
  EXPECT_TRUE(found.is_exact) << found.sentence();
  EXPECT_EQ(found.recorded_actions, found.replayed_actions);
}

TEST(Fidelity, SmallSegmentsOfTheBeginningServeSmallRequests) {
  // Two small blocks in a segment of 2 MiB; a mebibyte fits beside them, another needs a new segment.
  const Trace trace =
      late(line(0, 1000) + line(1, 5000) + line(2, 1 * MiB) + line(3, 1 * MiB) + "f 2\nf 3\n", kLostOfOneSegment);
  ASSERT_EQ(trace.facts.seeded_blocks, 2u);
  const Fidelity found = as_recorded(trace);
  EXPECT_TRUE(found.is_exact) << found.sentence();
  EXPECT_EQ(found.recorded_actions, 1u);
}

TEST(Fidelity, SegmentsOfSeveralStreamsAreKeptApart) {
  // 12 MiB of each stream are cached; the second one's is asked for again, the first one's is not touched.
  const Trace trace = late(line(0, 12 * MiB) + line(1, 12 * MiB, 7) + "f 0\nf 1\n" + line(2, 12 * MiB, 7) +
                               line(3, 12 * MiB, 7) + "f 2\nf 3\n",
                           8);
  const Fidelity found = as_recorded(trace);
  EXPECT_TRUE(found.is_exact) << found.sentence();
  EXPECT_EQ(found.recorded_actions, 1u);
  EXPECT_EQ(found.replayed_peak_bytes, 36 * MiB);
}

TEST(Fidelity, ReproducesNothingIsLessThanATenthOfAtLeastTenCalls) {
  const auto nothing = [](std::uint64_t common, std::uint64_t recorded, bool known = true, bool exact = false) {
    Fidelity fidelity;
    fidelity.is_known = known, fidelity.is_exact = exact;
    fidelity.common_actions = common, fidelity.recorded_actions = recorded;
    return fidelity.reproduces_nothing();
  };
  EXPECT_TRUE(nothing(0, 10));
  EXPECT_FALSE(nothing(0, 9)) << "of so few a share says nothing";
  EXPECT_FALSE(nothing(1, 10));
  EXPECT_TRUE(nothing(1, 20));
  EXPECT_FALSE(nothing(2, 20));
  EXPECT_FALSE(nothing(0, 20, false));
  EXPECT_FALSE(nothing(0, 20, true, true));
}

TEST(Fidelity, ItsSentenceSaysWhichSettingsAndWhatCameOut) {
  Fidelity fidelity;
  fidelity.why_unknown = "no figures";
  EXPECT_EQ(fidelity.sentence(), "fidelity unknown: no figures");
  fidelity.is_known = true;
  fidelity.recorded_actions = 40, fidelity.matching_actions = 7;
  fidelity.recorded_peak_bytes = 200 * MiB, fidelity.replayed_peak_bytes = 190 * MiB;
  fidelity.recorded_reserved_bytes = 80 * MiB, fidelity.replayed_reserved_bytes = 60 * MiB;
  EXPECT_EQ(fidelity.sentence(),
            "fidelity: under PyTorch's default settings, which the file was recorded with, 7 of 40 recorded device "
            "calls are reproduced in order; peak reserved 190.0 MiB against 200.0 MiB recorded (-5.00 %), at the end "
            "60.0 MiB against 80.0 MiB");
  fidelity.settings = "max_split_size_mb:64";
  fidelity.is_stated = false;
  fidelity.capacity_bytes = 200 * MiB;
  EXPECT_THAT(fidelity.sentence(), HasSubstr("under 'max_split_size_mb:64' (on a device of 200.0 MiB, the recorded "
                                             "peak), for the file does not say what it was recorded with"));
  fidelity.is_exact = true;
  EXPECT_THAT(fidelity.sentence(), HasSubstr("the replay makes the same 40 device calls at the same events and ends "
                                             "with the same 80.0 MiB reserved"));
}

// A program in plain PyTorch 2.11 on an H100, recorded by bench/replay/against_gpu.py.
TEST(Fidelity, OfEqualBlocksAnOlderPytorchTookTheOneAtTheLowestAddress) {
  load_all_plugins();
  Trace trace = read_traces(example_trace("resnet_sizes_h100.pickle.gz")).front();
  const Fidelity found = as_recorded(trace);
  EXPECT_TRUE(found.is_exact) << found.sentence();
  EXPECT_TRUE(found.ties_by_address);
  EXPECT_EQ(found.recorded_actions, 52u);
  EXPECT_THAT(found.sentence(), HasSubstr("PyTorch's default settings of a version before May 2026"));

  // Of the same replay without the recorded addresses nothing of that is known.
  trace.recorded->acquired.clear();
  const Fidelity blind = as_recorded(trace);
  EXPECT_FALSE(blind.is_exact);
  EXPECT_FALSE(blind.ties_by_address);
}

TEST(RecordedAddresses, SegmentsOfASizeLieWhereTheRecordedOnesDidInTheirOrder) {
  const std::vector<RecordedSegment> acquired{{4096, 0x70000}, {4096, 0x50000}, {8192, 0x60000}};
  RecordedAddresses addresses(acquired);
  std::byte memory[5];
  const auto number = [](void* address) { return reinterpret_cast<std::uintptr_t>(address); };
  EXPECT_EQ(number(addresses.place(&memory[0], 8192)), 0x60000u);
  EXPECT_EQ(number(addresses.place(&memory[1], 4096)), 0x70000u);
  EXPECT_EQ(number(addresses.place(&memory[2], 4096)), 0x50000u);
  EXPECT_EQ(addresses.place(&memory[3], 4096), &memory[3]) << "no more of that size were recorded";
  EXPECT_EQ(addresses.place(&memory[4], 512), &memory[4]);
  EXPECT_EQ(addresses.give_back(reinterpret_cast<void*>(0x50000)), &memory[2]);
  EXPECT_EQ(addresses.give_back(&memory[3]), &memory[3]);
}

TEST(RecordedAddresses, WhatOverlapsOrCannotBeIsLeftOut) {
  const std::uint64_t beyond = std::uint64_t{1} << 52;
  const std::vector<RecordedSegment> acquired{{4096, 0},       {4096, 0x70001}, {4096, beyond},
                                              {4096, 0x70000}, {8192, 0x6f000}, {8192, 0x6f000}};
  RecordedAddresses addresses(acquired);
  std::byte memory[4];
  EXPECT_EQ(addresses.place(&memory[0], 4096), reinterpret_cast<void*>(0x70000)) << "the others cannot be";
  EXPECT_EQ(addresses.place(&memory[1], 8192), &memory[1]) << "it would reach into the one before";
  addresses.give_back(reinterpret_cast<void*>(0x70000));
  EXPECT_EQ(addresses.place(&memory[2], 8192), reinterpret_cast<void*>(0x6f000));
}

}  // namespace
}  // namespace tenon::replay
