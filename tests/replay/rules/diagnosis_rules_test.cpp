// What is found out about a history that ran out of memory: what was in use, what would have fitted, what lies in the
// way and what grows.
#include "cli/pinned_segments.h"
#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/replay/advise/diagnosis.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// What ran out at its end: PyTorch's pinned segments, with 63 MiB that it could have.
Trace ran_out() {
  Trace trace = read_one(test::pinned_segments(test::kSmallPinned));
  trace.name = "run";
  trace.ooms.push_back({{.bytes = 28 * MiB, .reserved_bytes = 60 * MiB, .device_free_bytes = 3 * MiB}, 15});
  return trace;
}

TEST(Diagnosed, IsTheCapacityThatIsAskedForOrThatOfTheFailure) {
  load_all_plugins();
  const Trace trace = ran_out();
  const Diagnosis as_recorded = diagnose(trace, {});
  EXPECT_EQ(as_recorded.report.capacity_bytes, 63 * MiB);
  EXPECT_EQ(as_recorded.trace, "run");
  EXPECT_TRUE(as_recorded.is_pytorch);
  ASSERT_TRUE(as_recorded.failed_request);
  EXPECT_EQ(as_recorded.failed_request->bytes, 28 * MiB);
  EXPECT_EQ(as_recorded.report.current.label, "PyTorch's defaults");
  EXPECT_TRUE(as_recorded.report.is_reproduced());
  ASSERT_NE(as_recorded.report.best(), nullptr);
  EXPECT_EQ(as_recorded.how_to_set(*as_recorded.report.best()), "expandable_segments:True");
  EXPECT_FALSE(as_recorded.is_interrupted);
  EXPECT_TRUE(as_recorded.is_known);
  EXPECT_FALSE(as_recorded.is_hopeless());
  EXPECT_THAT(as_recorded.complaints(), IsEmpty());
  EXPECT_FALSE(as_recorded.without_growth);
  EXPECT_EQ(diagnose(trace, {.capacity_bytes = 100 * MiB}).report.capacity_bytes, 100 * MiB);
  EXPECT_TRUE(diagnose(trace, {.capacity_bytes = 42 * MiB - 1}).is_hopeless());
  EXPECT_FALSE(diagnose(trace, {.capacity_bytes = 42 * MiB}).is_hopeless()) << "just as much";
  Trace without = ran_out();
  without.ooms.clear();
  EXPECT_EQ(diagnose(without, {}).report.capacity_bytes, 0U);
  EXPECT_FALSE(diagnose(without, {}).is_hopeless());
  EXPECT_FALSE(diagnose(without, {}).failed_request);
}

TEST(Diagnosed, IsWhatWasRecordedUnlessTheUserSaysOtherwise) {
  load_all_plugins();
  Trace trace = ran_out();
  trace.recorded.emplace();
  trace.recorded->pytorch_conf = "roundup_power2_divisions:8,bogus:1";
  const Diagnosis recorded = diagnose(trace, {});
  EXPECT_EQ(recorded.report.current.label, "roundup_power2_divisions:8");
  EXPECT_THAT(recorded.dropped_settings, ElementsAre("bogus:1"));
  EXPECT_EQ(recorded.trust.caveats.back(),
            "run was recorded with bogus:1, which PyTorch's native allocator does not take: left out, so that what was "
            "in use is not what is replayed");
  const Diagnosis asked = diagnose(trace, {.pytorch_conf = "max_split_size_mb:32"});
  EXPECT_EQ(asked.report.current.label, "max_split_size_mb:32");
  EXPECT_THAT(asked.dropped_settings, IsEmpty());
  trace.header["allocator"] = "caching";
  trace.header["allocator_options"] = "max_split_size=32MiB";
  trace.header["allocator_plugin"] = "/lib/caching.so";
  const auto policy = recorded_policy(trace);
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->name + " " + policy->options + " " + policy->plugin,
            "caching max_split_size=32MiB /lib/caching.so");
  const Diagnosis of_tenons = diagnose(trace, {});
  EXPECT_FALSE(of_tenons.is_pytorch);
  EXPECT_EQ(of_tenons.report.current.label, "caching:max_split_size=32MiB");
  EXPECT_TRUE(diagnose(trace, {.pytorch_conf = "max_split_size_mb:32"}).is_pytorch);
  const Diagnosis by_spec = diagnose(trace, {.allocator = "direct", .also = {"caching:max_split_size=48MiB"}});
  EXPECT_EQ(by_spec.report.current.label, "direct");
  EXPECT_FALSE(by_spec.is_pytorch);
  bool was_tried = false;
  for (const FitAttempt& other : by_spec.report.others) was_tried |= other.label == "caching:max_split_size=48MiB";
  EXPECT_TRUE(was_tried);
  trace.header.erase("allocator");
  EXPECT_FALSE(recorded_policy(trace));
  EXPECT_THROW(diagnose(trace, {.allocator = "no such one"}), ConfigError);
}

TEST(Diagnosed, AreTenonsOwnBesideWithoutSlowOnesThatNobodyNamed) {
  load_all_plugins();
  std::string text;
  for (int i = 0; i < 40; ++i) text += fmt::format("a {0} 2097152 0\nf {0}\n", i);
  const Trace trace = read_one(text);
  const auto owns_of = [&](const std::vector<std::string>& also) {
    std::vector<std::string> labels;
    const Diagnosis found = diagnose(trace, {.capacity_bytes = 64 * MiB, .also = also});
    for (const FitAttempt& own : found.report.own) {
      labels.push_back(own.label);
      EXPECT_EQ(own.is_planned, own.label == "planned");
      EXPECT_EQ(found.how_to_set(own, true), own.is_planned ? "planned:plan=file.plan" : own.label);
      EXPECT_FALSE(own.is_slow && own.label != "direct");
    }
    return labels;
  };
  EXPECT_THAT(owns_of({}), ::testing::Contains("planned"));
  EXPECT_THAT(owns_of({}), ::testing::Not(::testing::Contains("direct")));
  EXPECT_THAT(owns_of({"direct"}), ::testing::Contains("direct"));
}

TEST(Diagnosed, IsNotKnownOnceItIsInterruptedAndNothingIsJudged) {
  load_all_plugins();
  const Diagnosis stopped = diagnose(ran_out(), {.is_stopping = [] { return true; }});
  EXPECT_TRUE(stopped.is_interrupted);
  EXPECT_FALSE(stopped.is_known);
  EXPECT_THAT(stopped.complaints(), IsEmpty()) << "what was in use was not replayed: no fault of its own";
  EXPECT_FALSE(stopped.report.is_reproduced());
  EXPECT_THAT(stopped.report.others, IsEmpty());
}

TEST(Diagnosed, IsNotKnownOfAPoorHistoryUnlessItIsHopeless) {
  load_all_plugins();
  const Trace poor = read_one("a 0 1048576 0\na 1 1048576 0\n");
  EXPECT_FALSE(diagnose(poor, {.capacity_bytes = 4 * MiB}).is_known);
  EXPECT_TRUE(diagnose(poor, {.capacity_bytes = 2 * MiB - 1}).is_known);
}

TEST(Diagnosed, AreThePinsOfTheStretchThatTheFailedRequestNeeded) {
  load_all_plugins();
  Trace trace = ran_out();
  trace.stacks.frames = {{"forward", "model.py", 3}, {"backward", "model.py", 7}};
  trace.stacks.stacks = {{}, {0}, {1}};
  Segment segment;
  segment.address = 4096;
  segment.bytes = 60 * MiB;
  std::uint64_t address = 4096;
  for (const auto& [bytes, stack] : std::vector<std::pair<std::size_t, StackId>>{
           {14 * MiB, 0}, {1 * MiB, 1}, {8 * MiB, 0}, {2 * MiB, 2}, {8 * MiB, 0}, {27 * MiB, 1}}) {
    segment.blocks.push_back({.address = address,
                              .bytes = bytes,
                              .requested_bytes = stack == 0 ? 0 : bytes,
                              .state = stack == 0 ? BlockState::kFree : BlockState::kActive,
                              .stack = stack});
    address += bytes;
  }
  trace.recorded.emplace().final_segments = {segment};
  const Diagnosis found = diagnose(trace, {});
  EXPECT_EQ(found.hole_bytes, 33 * MiB);
  EXPECT_THAT(found.pins,
              ElementsAre(std::pair("backward (model.py:7)", 2 * MiB), std::pair("forward (model.py:3)", 1 * MiB)))
      << "the largest first";
  trace.ooms.back().bytes = 60 * MiB;
  EXPECT_EQ(diagnose(trace, {}).hole_bytes, 60 * MiB) << "just as much as the whole segment";
  trace.ooms.back().bytes = 60 * MiB + 1;
  EXPECT_EQ(diagnose(trace, {}).hole_bytes, 0U);
  EXPECT_THAT(diagnose(trace, {}).pins, IsEmpty());
}

TEST(Diagnosed, AreTheHoldersOfThePeakByTheirCallSitesTheLargestFirst) {
  load_all_plugins();
  Trace trace = read_one("a 0 1048576 0\na 1 2097152 0\na 2 3145728 0\na 3 1048576 0\nf 0\nf 1\nf 2\nf 3\n");
  trace.stacks.frames = {
      {"forward", "model.py", 3}, {"backward", "model.py", 7}, {"call", "/site-packages/torch/nn/module.py", 9}};
  trace.stacks.stacks = {{}, {0}, {1}, {0, 2}};
  trace.stack_of_allocation = {1, 2, 1, 3};
  std::vector<std::string> shown;
  for (const auto& [site, holder] : diagnose(trace, {}).holders)
    shown.push_back(fmt::format("{}: {} in {}", site, format_bytes(holder.bytes), holder.blocks));
  EXPECT_THAT(shown, ElementsAre("forward (model.py:3): 5.00 MiB in 3", "backward (model.py:7): 2.00 MiB in 1"));
  EXPECT_EQ(diagnose(trace, {.names_all_frames = true}).holders.size(), 3U);
}

TEST(Diagnosed, AreComplaintsOfEverythingThatBreaks) {
  Diagnosis diagnosis;
  const auto broken = [](const std::string& label, const std::string& failure) {
    FitAttempt attempt;
    attempt.label = label;
    attempt.failure = failure;
    return attempt;
  };
  diagnosis.report.current = broken("mine", "it broke");
  diagnosis.report.others = {broken("fine", ""), broken("other", "it broke, too")};
  diagnosis.report.own = {broken("own", "and this")};
  EXPECT_THAT(diagnosis.complaints(),
              ElementsAre("'mine' is disqualified: it broke", "'other' is disqualified: it broke, too",
                          "'own' is disqualified: and this"));
  diagnosis.is_interrupted = true;
  EXPECT_EQ(diagnosis.complaints().size(), 2U);
}

/// Each step leaves a megabyte.
Trace growing(int steps) {
  std::string text;
  for (int i = 0; i < steps; ++i)
    text += fmt::format("m step {0}\na {1} 1048576 0\na {2} 4194304 0\nf {2}\n", i, 2 * i, 2 * i + 1);
  Trace trace = read_one(text);
  trace.stacks.frames = {{"leak", "model.py", 3}, {"work", "model.py", 7}};
  trace.stacks.stacks = {{}, {0}, {1}};
  for (int i = 0; i < steps; ++i) {
    trace.stack_of_allocation.push_back(1);
    trace.stack_of_allocation.push_back(2);
  }
  return trace;
}

TEST(Diagnosed, IsReplayedWithoutWhatGrows) {
  load_all_plugins();
  const Diagnosis found = diagnose(growing(12), {.capacity_bytes = 48 * MiB});
  ASSERT_FALSE(found.growth.sites.empty());
  ASSERT_TRUE(found.without_growth);
  EXPECT_EQ(found.without_growth->label, "PyTorch's defaults");
  EXPECT_LT(found.without_growth->peak_reserved_bytes, found.report.current.peak_reserved_bytes);
}

}  // namespace
}  // namespace tenon::replay
