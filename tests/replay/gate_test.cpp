// --fail-if: parsing and judging.
#include "replay/support.h"

#include <tenon/replay/results/compare.h>
#include <tenon/replay/results/gate.h>

namespace tenon::replay {
namespace {

std::string mistake(const char* text) {
  try {
    parse_gate(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << text;
  return {};
}

ReplayRow row(std::uint64_t peak, std::uint64_t ooms = 0) {
  ReplayRow made;
  made.trace = "t";
  made.allocator = "plain";
  made.peak_reserved_bytes = peak;
  made.ooms = ooms;
  return made;
}

TEST(Gate, ComparesWithNumbersAndSizes) {
  EXPECT_EQ(tripped(parse_gate("ooms > 0"), {row(1, 1)}, {}).size(), 1u);
  EXPECT_EQ(tripped(parse_gate("ooms>0"), {row(1, 0)}, {}).size(), 0u);
  EXPECT_EQ(tripped(parse_gate("peak_reserved_bytes >= 2KiB"), {row(2048)}, {}).size(), 1u);
  EXPECT_EQ(tripped(parse_gate("peak_reserved_bytes != 2048"), {row(2048)}, {}).size(), 0u);
}

TEST(Gate, ComparesWithTheBaseline) {
  const Gate gate = parse_gate("peak_reserved_bytes > +2%");
  EXPECT_EQ(tripped(gate, {row(1021)}, {row(1000)}).size(), 1u);
  EXPECT_EQ(tripped(gate, {row(1020)}, {row(1000)}).size(), 0u);
  EXPECT_EQ(tripped(parse_gate("peak_reserved_bytes > +10"), {row(1011)}, {row(1000)}).size(), 1u);
  EXPECT_NE(tripped(gate, {row(1)}, {}).front().find("no such row"), std::string::npos);
}

TEST(Gate, TheBaselineOfARowIsThatOfItsTraceAllocatorOptionsAndCapacity) {
  const ReplayRow mine = row(1000);
  const auto is_mine = [&](const ReplayRow& other) { return matching_row({other}, mine) != nullptr; };
  EXPECT_TRUE(is_mine(row(5)));
  ReplayRow other = mine;
  other.capacity_bytes = 8 * GiB;
  EXPECT_FALSE(is_mine(other));
  other = mine, other.trace = "u";
  EXPECT_FALSE(is_mine(other));
  other = mine, other.allocator = "keeping";
  EXPECT_FALSE(is_mine(other));
  other = mine, other.options = {{"page", "2MiB"}};
  EXPECT_FALSE(is_mine(other));
  // Of several builds of one plugin the one that was typed so; else the first.
  ReplayRow first = mine, second = mine;
  first.label = "a.so", second.label = "b.so";
  const std::vector<ReplayRow> rows = {first, second};
  EXPECT_EQ(matching_row(rows, second), &rows[1]);
  EXPECT_EQ(matching_row(rows, mine), &rows[0]);
}

TEST(Gate, DoesNotJudgeTheIdealRow) {
  ReplayRow ideal = row(5000);
  ideal.allocator = "ideal";
  EXPECT_TRUE(tripped(parse_gate("peak_reserved_bytes > 1"), {ideal}, {}).empty());
}

TEST(Gate, SaysWhatIsWrong) {
  EXPECT_NE(mistake("peak_reservd_bytes > 1").find("did you mean peak_reserved_bytes?"), std::string::npos)
      << mistake("peak_reservd_bytes > 1");
  EXPECT_NE(mistake("ooms").find("no comparison"), std::string::npos);
  EXPECT_NE(mistake("ooms >").find("nothing to compare with"), std::string::npos);
  EXPECT_NE(mistake("ooms > many").find("neither a number"), std::string::npos);
  EXPECT_NE(mistake("ooms > 2%").find("needs a sign"), std::string::npos);
}

TEST(Gate, AUnitThatDoesNotFitItsMetricIsRefused) {
  // Each of these was accepted once, and could never trip.
  EXPECT_NE(mistake("ooms > 0x10").find("neither a number"), std::string::npos) << mistake("ooms > 0x10");
  EXPECT_NE(mistake("ooms > 1 GiB").find("\"1 GiB\" is a size, which ooms is not"), std::string::npos);
  EXPECT_NE(mistake("excess > 1KiB").find("is a size, which excess is not"), std::string::npos);
  EXPECT_NE(mistake("seconds > 1MiB").find("is a size"), std::string::npos);
  EXPECT_NE(mistake("peak_reserved_bytes > 1ms").find("is a time, which peak_reserved_bytes is not"),
            std::string::npos);
  EXPECT_NE(mistake("peak_reserved_bytes > +-5").find("two signs"), std::string::npos);
  EXPECT_NE(mistake("excess > 5 parts%").find("expected a percentage"), std::string::npos);
}

TEST(Gate, TimesMayHaveUnits) {
  EXPECT_DOUBLE_EQ(parse_gate("seconds > 1.5ms").value, 1.5e-3);
  EXPECT_DOUBLE_EQ(parse_gate("harness_seconds > 2 min").value, 120);
  EXPECT_DOUBLE_EQ(parse_gate("allocate_ns.p99 > 3us").value, 3000);
  EXPECT_DOUBLE_EQ(parse_gate("clock_ns > 40ns").value, 40);
  EXPECT_DOUBLE_EQ(parse_gate("free_ns.max < -1us").value, -1000);
  EXPECT_DOUBLE_EQ(parse_gate("seconds > 2").value, 2);
  EXPECT_DOUBLE_EQ(parse_gate("ooms > 1e3").value, 1000);
}

TEST(Gate, ANumberThatIsNoneIsRefused) {
  for (const char* text : {"ooms > nan", "ooms > inf", "ooms < -inf", "excess > nan%", "peak_reserved_bytes > +inf%"})
    EXPECT_NE(mistake(text).find("nothing can be compared with"), std::string::npos) << mistake(text);
}

TEST(Gate, AShareIsComparedWithAPercentageAsTheTableShowsIt) {
  ReplayRow made = row(1100);
  made.excess = 0.11;
  made.external_fragmentation = 0.25;
  EXPECT_EQ(tripped(parse_gate("excess > 10%"), {made}, {}).size(), 1u);
  EXPECT_EQ(tripped(parse_gate("excess > 12 %"), {made}, {}).size(), 0u);
  EXPECT_EQ(tripped(parse_gate("external_fragmentation >= 25%"), {made}, {}).size(), 1u);
  EXPECT_TRUE(parse_gate("excess > +10%").is_percentage) << "a change against the baseline, as everywhere";
}

TEST(Gate, TheFirstEventThatCouldNotBeServedIsAMetric) {
  ReplayRow failed = row(1, 1);
  failed.first_oom_event = 90;
  EXPECT_EQ(tripped(parse_gate("first_oom_event < 100"), {failed}, {}).size(), 1u);
  EXPECT_EQ(tripped(parse_gate("first_oom_event < 50"), {failed}, {}).size(), 0u);
  EXPECT_EQ(tripped(parse_gate("first_oom_event < 100"), {row(1)}, {}).size(), 0u) << "nothing ran out";
  EXPECT_EQ(tripped(parse_gate("first_oom_event >= 0"), {row(1)}, {}).size(), 0u);
  const auto unjudged = tripped(parse_gate("first_oom_event < +0"), {failed}, {row(1)});
  ASSERT_EQ(unjudged.size(), 1u);
  EXPECT_NE(unjudged.front().find("nothing ran out in the baseline"), std::string::npos);
}

TEST(Gate, OfARowThatRanOutJudgesOnlyWhatNeedsNoEnd) {
  ReplayRow failed = row(100, 3);
  failed.first_oom_event = 90;
  failed.excess = 0.01;
  failed.allocate_ns.p50 = 30;
  for (const char* text : {"excess > 20%", "peak_reserved_bytes > 1GiB", "device_allocations > 5", "retries > 1",
                           "seconds > 1", "peak_reserved_bytes < 1GiB"}) {
    const auto sentences = tripped(parse_gate(text), {failed}, {});
    ASSERT_EQ(sentences.size(), 1u) << text;
    EXPECT_NE(sentences.front().find("cannot be judged, OOM at event 90: tripped"), std::string::npos)
        << sentences.front();
  }
  for (const char* text : {"ooms > 3", "first_oom_event < 90", "allocate_ns.p50 > 40", "events > 1"})
    EXPECT_TRUE(tripped(parse_gate(text), {failed}, {}).empty()) << text;
}

TEST(Gate, AgainstABaselineTheTwoNeedTheSameEnd) {
  ReplayRow failed = row(100, 3), later = row(100, 1);
  failed.first_oom_event = 90;
  later.first_oom_event = 91;
  const Gate gate = parse_gate("peak_reserved_bytes > +2%");
  EXPECT_TRUE(tripped(gate, {failed}, {failed}).empty()) << "the same end";
  const auto sentence = [&](const ReplayRow& now, const ReplayRow& then) { return tripped(gate, {now}, {then}).at(0); };
  EXPECT_NE(sentence(failed, row(1000)).find("cannot be judged, OOM at event 90"), std::string::npos);
  EXPECT_NE(sentence(failed, later).find("cannot be judged, OOM at event 90"), std::string::npos);
  EXPECT_NE(sentence(row(1000), failed).find("the baseline ran out of memory: OOM at event 90"), std::string::npos);
  EXPECT_EQ(tripped(parse_gate("ooms > +0"), {failed}, {row(1)}).size(), 1u) << "that is what they may be asked";
  EXPECT_TRUE(tripped(parse_gate("ooms > +3"), {failed}, {row(1)}).empty());
  const std::string verdict = verdicts({failed}, {row(1000)}).at(0);
  EXPECT_NE(verdict.find("peak_reserved_bytes not comparable: OOM at event 90"), std::string::npos) << verdict;
  EXPECT_NE(verdict.find("ooms worse: 0 to 3"), std::string::npos) << verdict;
}

TEST(Gate, AChangeInSpeedIsNotJudgedByOneFileASide) {
  ReplayRow slow = row(1), fast = row(1);
  slow.seconds = 2;
  fast.seconds = 1;
  slow.pass_seconds = {2, 2, 2.1, 2.1, 2.2, 2.2};
  fast.pass_seconds = {1, 1, 1.1, 1.1, 1.2, 1.2};
  for (const char* text : {"seconds != +0%", "seconds > +5%", "seconds < +5%", "allocate_ns.p50 > +900%"}) {
    const auto unjudged = tripped(parse_gate(text), {slow}, {fast});
    ASSERT_EQ(unjudged.size(), 1u) << text;
    EXPECT_NE(unjudged.front().find("cannot be judged, one file each"), std::string::npos) << unjudged.front();
  }
  EXPECT_TRUE(tripped(parse_gate("seconds > 3s"), {slow}, {fast}).empty()) << "against a value this run is judged";
}

TEST(Gate, ABaselineRowThatFailedIsNoMeasure) {
  ReplayRow failed = row(5000);
  failed.failure = "crashed";
  const auto sentences = tripped(parse_gate("peak_reserved_bytes > +2%"), {row(1000)}, {failed});
  ASSERT_EQ(sentences.size(), 1u);
  EXPECT_NE(sentences.front().find("the baseline's row failed: crashed"), std::string::npos);
}

TEST(Gate, APercentileIsTheOneThatIsNamed) {
  ReplayRow timed = row(1);
  timed.allocate_ns = {.p50 = 1, .p90 = 2, .p99 = 3, .p99_9 = 4, .max = 5, .mean = 6};
  timed.free_ns = {.p50 = 11, .p90 = 12, .p99 = 13, .p99_9 = 14, .max = 15, .mean = 16};
  int wanted = 0;
  for (const char* name : {"p50", "p90", "p99", "p99_9", "max", "mean"}) {
    ++wanted;
    const auto trips = [&](const std::string& metric, int figure) {
      return tripped(parse_gate(metric + name + " == " + std::to_string(figure)), {timed}, {}).size() == 1;
    };
    EXPECT_TRUE(trips("allocate_ns.", wanted)) << name;
    EXPECT_TRUE(trips("free_ns.", wanted + 10)) << name;
  }
}

TEST(Gate, WithoutAFirstEventThereIsNothingToHoldAgainstAnyNumber) {
  for (const char* text : {"first_oom_event == 0", "first_oom_event != 0", "first_oom_event != +0"})
    EXPECT_TRUE(tripped(parse_gate(text), {row(1)}, {row(1)}).empty()) << text;
}

TEST(Gate, OfARowThatRanOutEveryMetricIsItsOwnFigure) {
  ReplayRow failed = row(1, 3);
  failed.first_oom_event = 90;
  failed.first_oom_bytes = 512;
  failed.allocate_ns.p50 = 30;
  for (const char* text : {"ooms == 3", "first_oom_event == 90", "first_oom_bytes == 512B", "allocate_ns.p50 == 30"})
    EXPECT_EQ(tripped(parse_gate(text), {failed}, {}).size(), 1u) << text;
}

TEST(Gate, ReachesPercentiles) {
  ReplayRow slow = row(1);
  slow.allocate_ns.p99_9 = 700;
  EXPECT_EQ(tripped(parse_gate("allocate_ns.p99_9 > 500"), {slow}, {}).size(), 1u);
}

}  // namespace
}  // namespace tenon::replay
