// Cutting and comparing.
#include "replay/support.h"

#include <tenon/replay/trace_tools.h>

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

TEST(FormatOfName, ComesFromTheEnding) {
  EXPECT_EQ(format_of_name("x.trace.gz"), "text");
  EXPECT_EQ(format_of_name("x.pickle"), "snapshot");
  EXPECT_THROW(format_of_name("x.doc"), ConfigError);
}

}  // namespace
}  // namespace tenon::replay
