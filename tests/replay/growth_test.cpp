// What a history holds more of with every step.
#include "replay/support.h"
#include "support/recorded_histories.h"

#include <tenon/replay/formats/readers.h>
#include <tenon/replay/results/growth.h>
#include <tenon/replay/trace/trace_builder.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <random>
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
  EXPECT_TRUE(growth.is_marked);
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
  EXPECT_FALSE(growth.is_marked);
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

TEST(Growth, StepsThatNothingNamesGiveBackFourTimesWhatTheyKeep) {
  const auto unknown_because = [](std::size_t given_back) {
    std::string text;
    for (int i = 0; i < 14; ++i)
      text += fmt::format("a {0} {2} 0\nf {0}\na {1} 1048576 0\n", 2 * i, 2 * i + 1, given_back);
    const HistoryGrowth growth = growth_of(read_one(text), false);
    EXPECT_EQ(growth.sites.empty(), !growth.unknown_because.empty());
    return growth.unknown_because;
  };
  EXPECT_EQ(unknown_because(4194304), "");
  EXPECT_EQ(unknown_because(4194303),
            "blocks of 4.00 MiB on stream 0 comes 14 times, which may be steps or layers of one: too little is given "
            "back in between, and there is no backward pass");
}

TEST(Growth, OrHaveABackwardPassInNineOfTen) {
  const auto is_known = [](int with_backward) {
    TraceBuilder builder("trained");
    std::vector<StackId> stacks;
    const auto allocate = [&](StackId stack, std::uint64_t bytes) {
      stacks.push_back(stack);
      return builder.allocate(bytes, 0);
    };
    for (int step = 0; step < 13; ++step) {  // of which the first two and the last one do not count
      for (const StackId stack : {1, 2}) builder.free(allocate(stack, 1000));
      if (2 <= step && step < 2 + with_backward) builder.free(allocate(3, 1000));
      allocate(4, 1 << 20);
    }
    Trace trace = std::move(builder).finish();
    trace.stack_of_allocation = stacks;
    trace.stacks.stacks = {{}, {0}, {1}, {2}, {3}};
    for (const char* name : {"first", "second", "backward", "keep"})
      trace.stacks.frames.push_back({.name = name, .file = "train.py", .line = 10});
    const HistoryGrowth growth = growth_of(trace);
    EXPECT_EQ(growth.sites.empty(), !growth.unknown_because.empty());
    return growth.steps == 10;
  };
  EXPECT_TRUE(is_known(10));
  EXPECT_TRUE(is_known(9));
  EXPECT_FALSE(is_known(8));
  EXPECT_FALSE(is_known(1));
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
  EXPECT_THAT(growth_of(trace).unknown_because,
              testing::HasSubstr("norm (model.py:10) comes 24 times, which may be steps or layers of one"));
}

TEST(Growth, AHistoryWithoutStepsSaysNothing) {
  TraceBuilder builder("setup");
  for (int i = 0; i < 50; ++i) builder.allocate(100 + static_cast<std::uint64_t>(i), 0);
  const HistoryGrowth growth = growth_of(std::move(builder).finish());
  EXPECT_EQ(growth.steps, 0U);
  EXPECT_EQ(growth.unknown_because, "no mark names a step, and no requests come equally often, as those of a step do");
}

TEST(Growth, OfFiveMarkedStepsOrMoreIsTold) {
  for (int steps = 5; steps < 10; ++steps) {
    TraceBuilder builder("few");
    for (int step = 0; step < steps; ++step) {
      builder.allocate(4096, 0);
      builder.free(builder.allocate(1 << 20, 0));
      builder.mark("step " + std::to_string(step));
    }
    const HistoryGrowth growth = growth_of(std::move(builder).finish());
    EXPECT_EQ(growth.unknown_because, "") << steps;
    ASSERT_EQ(growth.sites.size(), 1U) << steps;
    EXPECT_EQ(growth.sites[0].bytes_per_step, 4096) << steps;
  }
}

TEST(Growth, OfAFewMarkedStepsNothingIsGuessedFromWhatComesOftenInEach) {
  TraceBuilder builder("few");
  for (int step = 1; step <= 3; ++step) {
    for (int layer = 0; layer < 4; ++layer) {
      builder.allocate(4096, 0);
      builder.free(builder.allocate(1 << 20, 0));
    }
    builder.mark("step " + std::to_string(step));
  }
  EXPECT_EQ(growth_of(std::move(builder).finish()).unknown_because,
            "3 steps are too few to tell growth: there have to be more than 4");
}

TEST(Growth, OfAFewStepsIsNotTold) {
  TraceBuilder builder("few");
  for (const char* mark : {"step 0", "step 1", "step 2", "step 3"})
    builder.free(builder.allocate(1, 0)), builder.mark(mark);
  EXPECT_EQ(growth_of(std::move(builder).finish()).unknown_because,
            "4 steps are too few to tell growth: there have to be more than 4");
}

/// Steps with marks of twelve activations, each of a size of its own, and what `leak` keeps. No stacks.
template <class Leak>
Trace without_stacks(int steps, const Leak& leak) {
  std::mt19937_64 random(19);
  const auto between = [&](std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
  };
  TraceBuilder builder("without stacks");
  builder.allocate(100000, 0);  // parameters
  builder.allocate(5000, 0);
  for (int step = 0; step < steps; ++step) {
    std::vector<std::uint32_t> live;
    for (int i = 0; i < 12; ++i) live.push_back(builder.allocate(between(1000, 500000), 0));
    leak(builder, step, between);
    for (const std::uint32_t id : live) builder.free(id);
    builder.mark("step " + std::to_string(step));
  }
  return std::move(builder).finish();
}

TEST(Growth, ALeakOfRandomSizesWithoutStacksIsNamedAsBlocksOfManySizes) {
  const Trace trace = without_stacks(
      40, [](TraceBuilder& builder, int, const auto& between) { builder.allocate(between(4096, 8191), 0); });
  const HistoryGrowth growth = growth_of(trace);
  ASSERT_EQ(growth.sites.size(), 1U);
  EXPECT_THAT(growth.sites[0].site, testing::MatchesRegex("blocks of 3[0-9] sizes, 4.* KiB to 7.* KiB, on stream 0"));
  EXPECT_NEAR(growth.sites[0].bytes_per_step, 6144, 600);
  const Trace mended = without_growth(trace, growth);
  EXPECT_GE(mended.facts.end_live_bytes, 105000U) << "parameters of the same size stay";
  EXPECT_LE(mended.facts.end_live_bytes, 105000U + 4 * 8191) << "what the first steps made is not told from them";
}

TEST(Growth, ALeakOfAnySizeWithoutStacksIsFoundThoughNoClassOfSizesGrows) {
  const HistoryGrowth growth = growth_of(without_stacks(24, [](TraceBuilder& builder, int step, const auto& between) {
    builder.allocate((std::uint64_t{1} << (6 + 5 * step % 17)) + between(0, 60), 0);
  }));
  ASSERT_EQ(growth.sites.size(), 1U);
  EXPECT_THAT(growth.sites[0].site, testing::HasSubstr("sizes, "));
  EXPECT_GE(growth.sites[0].blocks, 19U);
}

TEST(Growth, ALeakOfEveryTenthStepIsFound) {
  for (const int steps : {35, 64, 150, 700}) {
    const HistoryGrowth growth = growth_of(without_stacks(steps, [](TraceBuilder& builder, int step, const auto&) {
      if (step % 10 == 4) builder.allocate(2048, 0);
    }));
    ASSERT_EQ(growth.sites.size(), 1U) << steps;
    EXPECT_EQ(growth.sites[0].site, "blocks of 2.00 KiB on stream 0");
    EXPECT_NEAR(growth.sites[0].bytes_per_step, 204.8, 60) << steps;
  }
}

TEST(Growth, ALeakThatBeganLateIsNoAlarmButNamed) {
  for (const int steps : {60, 100, 300}) {
    const HistoryGrowth growth = growth_of(without_stacks(steps, [&](TraceBuilder& builder, int step, const auto&) {
      if (step >= steps * 6 / 10) builder.allocate(2048, 0);
    }));
    EXPECT_THAT(growth.sites, testing::IsEmpty()) << steps;
    ASSERT_EQ(growth.late.size(), 1U) << steps;
    EXPECT_EQ(growth.late[0].site, "blocks of 2.00 KiB on stream 0");
    EXPECT_NEAR(static_cast<double>(growth.late[0].steps), 0.4 * steps, 6) << steps;
    EXPECT_NEAR(static_cast<double>(growth.late[0].bytes), 0.4 * steps * 2048, 6 * 2048) << steps;
  }
  EXPECT_THAT(growth_of(without_stacks(60, [](TraceBuilder&, int, const auto&) {})).late, testing::IsEmpty());
}

TEST(Growth, AnIrregularLeakIsFound) {
  const HistoryGrowth growth = growth_of(without_stacks(60, [](TraceBuilder& builder, int, const auto& between) {
    if (between(0, 5) == 0) builder.allocate(2048, 0);
  }));
  ASSERT_EQ(growth.sites.size(), 1U);
  EXPECT_EQ(growth.sites[0].site, "blocks of 2.00 KiB on stream 0");
}

TEST(Growth, StepsWithoutMarksOfBatchesOfManyLengthsAreToldByAStack) {
  std::mt19937_64 random(19);
  TraceBuilder builder("lengths");
  std::vector<StackId> stacks;
  const auto allocate = [&](StackId stack) {
    stacks.push_back(stack);
    return builder.allocate(1000 + 64 * (random() % 5000), 0);
  };
  for (int step = 0; step < 60; ++step) {
    std::vector<std::uint32_t> live;
    for (const StackId stack : {1, 2, 3}) live.push_back(allocate(stack));
    if (step % 10 == 4) allocate(4);
    for (const std::uint32_t id : live) builder.free(id);
  }
  Trace trace = std::move(builder).finish();
  trace.stack_of_allocation = stacks;
  for (const char* name : {"first", "second", "third", "keep"}) {
    trace.stacks.stacks.push_back({static_cast<std::uint32_t>(trace.stacks.frames.size())});
    trace.stacks.frames.push_back({.name = name, .file = "train.py", .line = 10});
  }
  const HistoryGrowth growth = growth_of(trace);
  EXPECT_EQ(growth.told_by, "what is allocated at first (train.py:10)");
  ASSERT_EQ(growth.sites.size(), 1U);
  EXPECT_EQ(growth.sites[0].site, "keep (train.py:10)");
}

/// What is made for a batch of one of 64 lengths comes as often as what else is made for it, a few times by chance.
TEST(Growth, StepsWithoutMarksAreNotToldByALengthThatComesNowAndThen) {
  for (const unsigned seed : {1U, 2U, 3U, 4U, 5U}) {
    std::mt19937_64 random(seed);
    TraceBuilder builder("lengths");
    std::vector<StackId> stacks;
    const auto allocate = [&](StackId stack, std::uint64_t bytes) {
      stacks.push_back(stack);
      return builder.allocate(bytes, 0);
    };
    for (int step = 0; step < 100; ++step) {
      const std::uint64_t length = 1 + random() % 64;
      std::vector<std::uint32_t> live;
      for (const StackId stack : {1, 2, 3, 4, 5}) live.push_back(allocate(stack, 16000 * length + 512 * stack));
      for (const std::uint64_t bytes : {4000, 8000}) live.push_back(allocate(6, bytes));
      if (random() % 3 == 0) allocate(7, 4096);
      for (const std::uint32_t id : live) builder.free(id);
    }
    Trace trace = std::move(builder).finish();
    trace.stack_of_allocation = stacks;
    for (const char* name : {"load", "first", "second", "third", "fourth", "backward", "keep"}) {
      trace.stacks.stacks.push_back({static_cast<std::uint32_t>(trace.stacks.frames.size())});
      trace.stacks.frames.push_back({.name = name, .file = "train.py", .line = 10});
    }
    const HistoryGrowth growth = growth_of(trace);
    EXPECT_EQ(growth.told_by, "blocks of 3.91 KiB on stream 0 at backward (train.py:10)") << seed;
    EXPECT_EQ(growth.steps, 97U) << seed;
    ASSERT_EQ(growth.sites.size(), 1U) << seed;
    EXPECT_EQ(growth.sites[0].site, "keep (train.py:10)");
  }
}

TEST(Growth, ACacheThatIsFilledAndALeakThatComesAsOftenAreNoSteps) {
  TraceBuilder builder("equally often");
  std::vector<StackId> stacks;
  const auto allocate = [&](StackId stack, std::uint64_t bytes) {
    stacks.push_back(stack);
    return builder.allocate(bytes, 0);
  };
  for (int step = 0; step < 60; ++step) {
    std::vector<std::uint32_t> live;
    for (std::uint64_t i = 0; i < 10; ++i) live.push_back(allocate(1, (1 << 20) + 4096 * i));
    if (step < 20) allocate(2, 65536);
    if (step % 3 == 0) allocate(3, 300000);
    for (const std::uint32_t id : live) builder.free(id);
  }
  Trace trace = std::move(builder).finish();
  trace.stack_of_allocation = stacks;
  for (const char* name : {"forward", "fill", "remember"}) {
    trace.stacks.stacks.push_back({static_cast<std::uint32_t>(trace.stacks.frames.size())});
    trace.stacks.frames.push_back({.name = name, .file = "train.py", .line = 10});
  }
  const HistoryGrowth growth = growth_of(trace);
  EXPECT_EQ(growth.told_by, "blocks of 1.00 MiB on stream 0 at forward (train.py:10)");
  EXPECT_EQ(growth.steps, 57U);
  ASSERT_EQ(growth.sites.size(), 1U);
  EXPECT_EQ(growth.sites[0].site, "remember (train.py:10)");
}

TEST(Growth, OfOneLeakOfManySizesWithoutStacksIsOneLine) {
  const HistoryGrowth growth = growth_of(without_stacks(
      80, [](TraceBuilder& builder, int, const auto& between) { builder.allocate(between(1000, 500000), 0); }));
  ASSERT_EQ(growth.sites.size(), 1U);
  EXPECT_NEAR(growth.sites[0].bytes_per_step, 250500, 50000);
}

TEST(Growth, ThereIsNoneWhereSizesAreRandomAndAllIsGivenBack) {
  for (const int steps : {8, 20, 70, 300})
    EXPECT_THAT(growth_of(without_stacks(steps, [](TraceBuilder&, int, const auto&) {})).sites, testing::IsEmpty());
}

TEST(Growth, RecordedHistoriesThatLeakNothingGiveNoAlarm) {
  TENON_NEEDS_RECORDED("");
  int files = 0, with_steps = 0;
  for (const char* const folder : {"", "chrome", "synth_snapshots"}) {
    for (const auto& file : std::filesystem::directory_iterator(test::recorded_histories() / folder)) {
      if (file.path().extension() != ".gz") continue;
      ++files;
      for (const Trace& trace : read_traces(file.path().string())) {
        const HistoryGrowth growth = growth_of(trace);
        with_steps += growth.steps > 0;
        if (file.path().filename() == "dcgan.trace.gz") {
          // Its program kept the loss of each step: one block of four bytes more at each mark.
          ASSERT_EQ(growth.sites.size(), 1U);
          EXPECT_EQ(growth.sites[0].site, "blocks of 4 B on stream 0");
          continue;
        }
        for (const GrowingSite& site : growth.sites) ADD_FAILURE() << file.path() << ": " << site.site;
      }
    }
  }
  EXPECT_GE(files, 20);
  EXPECT_GE(with_steps, 12);
}

}  // namespace
}  // namespace tenon::replay
