// What a history holds more of with every step.
#include <tenon/replay/results/growth.h>
#include <tenon/replay/trace/trace_builder.h>

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {
namespace {

/// Twelve steps of activations of three sizes that come and go; a list keeps 256 bytes of each.
Trace leaking(bool with_marks, bool leaks = true) {
  TraceBuilder builder("leaking");
  builder.allocate(10000, 0);  // parameters
  std::vector<StackId> stacks = {1};
  for (int step = 0; step < 12; ++step) {
    std::vector<std::uint32_t> live;
    for (const StackId stack : {2, 3, 4}) {
      live.push_back(builder.allocate(1000 * stack, 0));
      stacks.push_back(stack);
    }
    const std::uint32_t kept = builder.allocate(256, 0);
    stacks.push_back(5);
    if (!leaks) builder.free(kept);
    for (const std::uint32_t id : live) builder.free(id);
    if (with_marks) builder.mark("step " + std::to_string(step));
  }
  Trace trace = std::move(builder).finish();
  trace.stack_of_allocation = stacks;
  for (const char* name : {"init", "first", "second", "third", "keep"})
    trace.stacks.frames.push_back({.name = name, .file = "train.py", .line = 10});
  for (std::uint32_t i = 0; i < 5; ++i) trace.stacks.stacks.push_back({i});
  return trace;
}

TEST(Growth, ThatAListKeepsIsNamedByItsCallSite) {
  const HistoryGrowth growth = growth_of(leaking(/*with_marks=*/true));
  EXPECT_EQ(growth.told_by, "marks");
  EXPECT_EQ(growth.steps, 9U) << "the first two are left out, and what is before the first end";
  ASSERT_EQ(growth.sites.size(), 1U);
  EXPECT_EQ(growth.sites[0].site, "keep (train.py:10)");
  EXPECT_DOUBLE_EQ(growth.sites[0].bytes_per_step, 256);
  EXPECT_EQ(growth.sites[0].blocks, 8U);
  EXPECT_EQ(growth.sites[0].bytes, 8U * 256);
}

TEST(Growth, StepsWithoutMarksAreToldByWhatComesOnceAStep) {
  const HistoryGrowth growth = growth_of(leaking(/*with_marks=*/false));
  EXPECT_EQ(growth.told_by, "blocks of 1.95 KiB on stream 0 at first (train.py:10)");
  EXPECT_EQ(growth.steps, 9U);
  ASSERT_EQ(growth.sites.size(), 1U);
  EXPECT_EQ(growth.sites[0].site, "keep (train.py:10)");
  EXPECT_DOUBLE_EQ(growth.sites[0].bytes_per_step, 256);
}

TEST(Growth, WithoutStacksIsToldBySize) {
  Trace trace = leaking(/*with_marks=*/false);
  trace.stack_of_allocation.clear();
  const HistoryGrowth growth = growth_of(trace);
  ASSERT_EQ(growth.sites.size(), 1U);
  EXPECT_EQ(growth.sites[0].site, "blocks of 256 B on stream 0");
}

TEST(Growth, AHistoryWithoutItHasTheBlocksThatAreGivenBack) {
  const Trace trace = leaking(/*with_marks=*/true);
  const Trace mended = without_growth(trace, growth_of(trace));
  EXPECT_EQ(mended.facts.allocations, trace.facts.allocations - 12);
  EXPECT_EQ(mended.facts.frees, trace.facts.frees);
  EXPECT_EQ(mended.facts.marks, trace.facts.marks);
  EXPECT_EQ(mended.facts.end_live_bytes, 10000U) << "the parameters";
  EXPECT_EQ(mended.facts.peak_requested_bytes, 10000U + 2000 + 3000 + 4000);
}

TEST(Growth, ThereIsNoneWhereAllIsGivenBack) {
  EXPECT_TRUE(growth_of(leaking(/*with_marks=*/true, /*leaks=*/false)).sites.empty());
  EXPECT_TRUE(growth_of(leaking(/*with_marks=*/false, /*leaks=*/false)).sites.empty());
}

TEST(Growth, LayersOfOneForwardPassAreNoSteps) {
  TraceBuilder builder("forward");
  std::vector<StackId> stacks;
  for (int layer = 0; layer < 24; ++layer) {
    for (const StackId stack : {1, 2, 3}) {
      const std::uint32_t saved = builder.allocate(1000, 0);
      stacks.push_back(stack);
      if (stack == 3) builder.free(saved);
    }
  }
  Trace trace = std::move(builder).finish();
  trace.stack_of_allocation = stacks;
  for (const char* name : {"attention", "mlp", "norm"})
    trace.stacks.frames.push_back({.name = name, .file = "model.py", .line = 10});
  for (std::uint32_t i = 0; i < 3; ++i) trace.stacks.stacks.push_back({i});
  EXPECT_EQ(growth_of(trace).steps, 0U);
}

TEST(Growth, AHistoryWithoutStepsSaysNothing) {
  TraceBuilder builder("setup");
  for (int i = 0; i < 50; ++i) builder.allocate(100 + static_cast<std::uint64_t>(i), 0);
  EXPECT_EQ(growth_of(std::move(builder).finish()).steps, 0U);
}

}  // namespace
}  // namespace tenon::replay
