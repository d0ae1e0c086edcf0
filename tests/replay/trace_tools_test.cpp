// Cutting and comparing.
#include "replay/support.h"

#include <tenon/replay/results/slice_diff.h>

#include <algorithm>

namespace tenon::replay {
namespace {

constexpr char kTrace[] = "a 0 10 0\na 1 20 3\nm step 1\nf 0\na 2 30 0\nm step 2\nf 1\nf 2\n";

TEST(Slice, PutsWhatLivesAtTheCutAtTheStart) {
  const Trace trace = read_one(kTrace);
  const Trace part = slice(trace, event_of_mark(trace, "step 1"), event_of_mark(trace, "step 2"));
  EXPECT_EQ(part.facts.seeded_blocks, 2u);
  EXPECT_EQ(part.facts.seeded_bytes, 30u);
  EXPECT_EQ(part.facts.events, 4u);
  EXPECT_EQ(part.facts.peak_requested_bytes, 50u);
}

TEST(Slice, OfEverythingIsTheSame) {
  const Trace trace = read_one(kTrace);
  EXPECT_TRUE(difference(trace, slice(trace, 0, trace.facts.events)).are_equal);
}

TEST(Slice, KeepsFreesThatWaitAtTheCutAndUsesOfLiveBlocks) {
  const Trace trace =
      read_one("a 0 64 0\na 1 32 0\nu 1 7\nm tenon:deferred 0\nf 0\na 2 16 0\nm tenon:completed 0\nf 1\na 3 8 0\n");
  const Trace part = slice(trace, 5, trace.facts.events);
  EXPECT_EQ(part.facts.seeded_blocks, 3u);
  EXPECT_EQ(part.facts.seeded_bytes, 112u) << "the block whose free waits takes its room";
  EXPECT_EQ(part.facts.uses, 1u);
  EXPECT_EQ(part.facts.deferred_frees, 1u);
  EXPECT_EQ(std::ranges::count(part.events, EventKind::kFreeCompleted, &TraceEvent::kind), 1);
  EXPECT_EQ(part.facts.end_live_bytes, trace.facts.end_live_bytes);
  EXPECT_EQ(part.streams, (std::vector<std::uint64_t>{0, 7}));
}

TEST(Slice, KeepsWhatLivedBeforeTheRecordingApart) {
  const Trace trace = read_one("a 0 10 0\na 1 20 0\nm recording starts\nf 0\na 2 5 0\nf 1\n");
  for (const std::uint64_t from : {0, 1, 2}) {
    const Trace part = slice(trace, from, trace.facts.events);
    EXPECT_EQ(part.facts.seeded_blocks, 2u) << from;
    EXPECT_EQ(part.facts.marks, 1u) << from;
    EXPECT_TRUE(difference(trace, part).are_equal) << from << difference(trace, part).what;
  }
  EXPECT_EQ(slice(trace, 3, 6).facts.seeded_blocks, 1u);
}

TEST(Slice, NamesTheNearestMark) {
  try {
    event_of_mark(read_one(kTrace), "step1");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean \"step"), std::string::npos) << error.what();
  }
}

TEST(Difference, NamesTheFirstEvent) {
  const Trace a = read_one(kTrace);
  EXPECT_EQ(difference(a, read_one("a 0 10 0\na 1 21 3\n")).first_event, 1u);
  EXPECT_EQ(difference(a, read_one("a 0 10 0\na 1 20 4\n")).first_event, 1u);
  EXPECT_EQ(difference(a, read_one("a 0 10 0\na 1 20 3\nf 1\n")).first_event, 2u) << "another block";
  EXPECT_EQ(difference(a, read_one("a 0 10 0\n")).first_event, 1u) << "it ends";
}

TEST(Difference, SaysWhichOfThemEndsAndWhatTheOtherGoesOnWith) {
  Trace whole = read_one("a 0 10 0\na 1 20 3\n"), part = read_one("a 0 10 0\n");
  whole.name = "whole";
  part.name = "part";
  EXPECT_EQ(difference(whole, part).what, "part ends, whole goes on with a of 20 bytes on stream 3");
  EXPECT_EQ(difference(part, whole).what, "part ends, whole goes on with a of 20 bytes on stream 3");
}

TEST(Difference, SaysWhatTellsTwoFreesApart) {
  const Trace a = read_one("a 0 10 0\nf 0\n");
  const Trace b = read_one("a 0 10 0\nm tenon:deferred 0\nf 0\n");
  EXPECT_EQ(difference(a, b).what, "f of 10 bytes against f of 10 bytes, which waits for a stream");
}

TEST(Slice, SaysOfAMarkThatIsNotThereWhichOnesAre) {
  const auto said = [](const std::string& marks) {
    try {
      event_of_mark(read_one("a 0 8 0\n" + marks), "step 7");
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(said(""), "file has no mark \"step 7\"; it has none");
  EXPECT_EQ(said("m warm-up\nm evaluation\n"), "file has no mark \"step 7\"; it has warm-up, evaluation");
  EXPECT_EQ(said("m warm-up\nm step 17\n"), "file has no mark \"step 7\"; did you mean \"step 17\"?");
}

}  // namespace
}  // namespace tenon::replay
