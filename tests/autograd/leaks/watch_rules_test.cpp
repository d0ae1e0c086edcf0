// A watch, step by step: which ends of steps it looks at, and that what it says of a leak does not depend on how long
// it has watched.
#include <tenon/tenon.h>

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using memory::LeakReport;
using memory::LeakWatch;

Tensor parameter(std::int64_t size) { return ones({size}, requires_grad()); }

TEST(LeakWatchRules, AGraphThatStaysIsToldWhereTwoLooksSawItAndTheLastIsOne) {
  const std::set<int> looks = {6, 8, 11,
                               12};  // after four steps, then after half as many more each time, and the report
  const Tensor p = parameter(1024);
  const auto is_told = [&](const std::set<int>& kept) {
    LeakWatch watch;
    Tensor loss;
    for (int step = 1; step <= 12; ++step) {
      loss = kept.contains(step) ? p.exp().sum() : Tensor();
      watch.step();
    }
    return !watch.report().leaks.empty();
  };
  for (const auto& [first, second] : std::vector<std::pair<int, int>>{
           {6, 8}, {8, 11}, {11, 12}, {6, 12}, {6, 7}, {5, 12}, {9, 12}, {10, 11}, {12, 12}})
    EXPECT_EQ(is_told({first, second}), first != second && looks.contains(first) && looks.contains(second))
        << first << " and " << second;
}

TEST(LeakWatchRules, AGraphThatStaysIsToldWithTheMostItKept) {
  LeakWatch watch;
  Tensor loss;
  for (int step = 1; step <= 12; ++step) {
    loss = parameter(step == 8 ? 4096 : 1024).exp().sum();
    watch.step();
  }
  const LeakReport report = watch.report();
  ASSERT_EQ(report.leaks.size(), 1U) << report.text();
  EXPECT_EQ(report.leaks[0].bytes, 4096 * 4U);
  EXPECT_FALSE(report.leaks[0].grows);
}

TEST(LeakWatchRules, WhatEachStepKeepsIsToldToTheByteHoweverManyStepsThereWere) {
  for (const int steps : {6, 7, 66, 67, 132, 200}) {
    std::vector<Tensor> kept;
    LeakWatch watch;
    for (int step = 0; step < steps; ++step) {
      kept.push_back(ones({256}));
      watch.step();
    }
    const LeakReport report = watch.report();
    ASSERT_EQ(report.leaks.size(), 1U) << steps;
    EXPECT_NEAR(report.leaks[0].bytes_per_step, 1024, 1e-6) << steps;
    EXPECT_EQ(report.leaks[0].blocks, static_cast<std::size_t>(steps - 2));
  }
}

TEST(LeakWatchRules, WhatComesEveryFewStepsIsToldByItsMeanOverLongTimes) {
  for (const int every : {2, 5, 10, 40}) {
    std::vector<Tensor> kept;
    LeakWatch watch;
    for (int step = 0; step < 10 * every + 300; ++step) {
      if (step % every == every / 2) kept.push_back(ones({256}));
      watch.step();
    }
    const LeakReport report = watch.report();
    ASSERT_EQ(report.leaks.size(), 1U) << every;
    EXPECT_NEAR(report.leaks[0].bytes_per_step, 1024. / every, 0.07 * 1024 / every) << every;
  }
}

TEST(LeakWatchRules, WhatGrowsIsToldAsItIsNowThoughAnEarlierLookSawMore) {
  std::vector<Tensor> queue, kept;  // of each ten one stays when the queue is emptied
  LeakWatch watch;
  for (int step = 0; step < 100; ++step) {
    queue.push_back(ones({256}));
    if (queue.size() == 10) {
      kept.push_back(queue.front());
      queue.clear();
    }
    watch.step();
  }
  const LeakReport report = watch.report();
  ASSERT_EQ(report.leaks.size(), 1U) << report.text();
  EXPECT_EQ(report.leaks[0].blocks, 9U);  // the first is of a step that is left out
  EXPECT_EQ(report.leaks[0].bytes, 9 * 1024U);
  EXPECT_NEAR(report.leaks[0].bytes_per_step, 102.4, 10);
}

TEST(LeakWatchRules, WhatBeginsLateIsToldByItsMeanSinceThen) {
  for (const int first : {20, 50, 130}) {
    for (const int every : {1, 3}) {
      std::vector<Tensor> kept;
      LeakWatch watch;
      for (int step = 0; step < first + 50; ++step) {
        if (step >= first && (step - first) % every == 0) kept.push_back(ones({256}));
        watch.step();
      }
      const LeakReport report = watch.report();
      ASSERT_EQ(report.leaks.size(), 1U) << first << ", every " << every;
      EXPECT_NEAR(report.leaks[0].bytes_per_step, 1024. / every, 0.04 * 1024 / every) << first << ", every " << every;
    }
  }
}

TEST(LeakWatchRules, WhatIsReplacedIsNoneHoweverLongItIsWatched) {
  for (const int period : {1, 3, 17, 50}) {
    std::vector<Tensor> kept;
    LeakWatch watch;
    for (int step = 0; step < 300; ++step) {
      if (step % period == 0) kept.clear();
      kept.push_back(ones({256}));
      watch.step();
    }
    EXPECT_TRUE(watch.report().leaks.empty()) << period << ": " << watch.report().text();
  }
}

TEST(LeakWatchRules, LeaksOfOneSizeAreInTheOrderOfTheirNodesAndBytes) {
  Tensor total = zeros({});
  std::vector<Tensor> kept;
  const Tensor p = parameter(4);
  LeakWatch watch;
  for (int step = 0; step < 12; ++step) {
    total = total + p.sum();
    kept.push_back(ones({256}));
    watch.step();
  }
  const LeakReport report = watch.report();
  ASSERT_EQ(report.leaks.size(), 2U) << report.text();
  EXPECT_GT(report.leaks[0].bytes_per_step, report.leaks[1].bytes_per_step);
  EXPECT_GT(report.leaks[1].nodes_per_step, 0);
}

}  // namespace
}  // namespace tenon::test
