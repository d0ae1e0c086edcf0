// How many cells of a sweep run at a time. What a cell's memory is estimated at is a stand-in's.
#include <tenon/cli/estimate/estimate_apart.h>
#include <tenon/cli/run/cell_budget.h>
#include <tenon/core/units.h>
#include <tenon/replay/jobs/process_pool.h>
#include <tenon/runtime/config/config.h>
#include <tenon/train/run_experiment.h>

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace tenon::cli {
namespace {

std::int64_t estimated_bytes = 0;
bool is_estimated = false;

}  // namespace

EstimateApart estimate_apart(const ExperimentConfig&, double, const train::PlannedRank&) {
  EstimateApart found;
  is_estimated = true;
  if (estimated_bytes > 0) {
    found.estimate.memory.emplace();
    found.estimate.memory->memory.reserved_bytes.peak = estimated_bytes;
  }
  return found;
}

namespace {

ExperimentConfig experiment(std::vector<std::string> overrides) {
  ConfigRequest request;
  request.overrides = std::move(overrides);
  request.use_environment = false;
  request.sections = training_sections();
  return Config::load(request).experiment();
}

TEST(CellBudget, TheFirstCellAlwaysMayStart) {
  const CellBudget small(1, 1, 0);
  EXPECT_TRUE(small.allows({.threads = 100, .bytes = 1 << 30}));
  EXPECT_TRUE(small.allows({.threads = 1, .bytes = 0}));
}

TEST(CellBudget, OthersMayWhileCellsCoresAndMemoryLast) {
  CellBudget budget(3, 8, 1000);
  budget.start({.threads = 4, .bytes = 400});
  EXPECT_TRUE(budget.allows({.threads = 4, .bytes = 600})) << "just enough";
  EXPECT_FALSE(budget.allows({.threads = 5, .bytes = 600}));
  EXPECT_FALSE(budget.allows({.threads = 4, .bytes = 601}));
  budget.start({.threads = 1, .bytes = 1});
  EXPECT_TRUE(budget.allows({.threads = 3, .bytes = 599}));
  EXPECT_FALSE(budget.allows({.threads = 4, .bytes = 1})) << "the threads of all count";
  EXPECT_FALSE(budget.allows({.threads = 1, .bytes = 600})) << "so do their bytes";
  budget.start({.threads = 1, .bytes = 1});
  EXPECT_FALSE(budget.allows({.threads = 1, .bytes = 1})) << "three were asked for";
  EXPECT_EQ(budget.running(), 3U);
}

TEST(CellBudget, NoMoreCellsThanCoresRun) {
  CellBudget budget(9, 2, 1000);
  budget.start({.threads = 0, .bytes = 1});
  EXPECT_TRUE(budget.allows({.threads = 0, .bytes = 1}));
  budget.start({.threads = 0, .bytes = 1});
  EXPECT_FALSE(budget.allows({.threads = 0, .bytes = 1}));
}

TEST(CellBudget, OneOfWhichNothingIsKnownRunsAlone) {
  CellBudget budget(4, 8, 1000);
  budget.start({.threads = 1, .bytes = 1});
  EXPECT_FALSE(budget.allows({.threads = 1, .bytes = 0}));
  CellBudget other(4, 8, 1000);
  other.start({.threads = 1, .bytes = 0});
  EXPECT_FALSE(other.allows({.threads = 1, .bytes = 1}));
}

TEST(CellBudget, ACellThatEndsMakesRoomForOne) {
  CellBudget budget(2, 8, 1000);
  const CellNeed large{.threads = 4, .bytes = 900}, small{.threads = 4, .bytes = 100};
  budget.start(large);
  budget.start(small);
  budget.end({.threads = 5, .bytes = 900});
  budget.end({.threads = 4, .bytes = 901});
  EXPECT_EQ(budget.running(), 2U) << "none of those runs";
  budget.end(small);
  EXPECT_EQ(budget.running(), 1U);
  EXPECT_FALSE(budget.allows({.threads = 1, .bytes = 101})) << "the large one is still there";
  budget.end(large);
  EXPECT_EQ(budget.running(), 0U);
}

TEST(CellBudget, TheMostAtATimeAreThoseWithTheFewestThreads) {
  const CellBudget budget(3, 8, 1000);
  EXPECT_EQ(budget.most({1, 1, 1, 1}), 3U) << "as many as asked for";
  EXPECT_EQ(budget.most({1, 1}), 2U);
  EXPECT_EQ(budget.most({6, 4, 4}), 2U) << "all cores";
  EXPECT_EQ(budget.most({7, 5, 4}), 1U) << "a core too many";
  EXPECT_EQ(budget.most({6, 1, 1}), 3U);
  EXPECT_EQ(budget.most({6, 2, 1}), 2U);
  EXPECT_EQ(budget.most({20, 30}), 1U) << "one always runs";
  EXPECT_EQ(budget.most({}), 1U);
}

TEST(CellBudget, OfTheHostKnowsItsMemory) {
  CellBudget budget(2);
  budget.start({.threads = 0, .bytes = 1});
  EXPECT_TRUE(replay::usable_cores() < 2 || budget.allows({.threads = 0, .bytes = 1}));
  EXPECT_FALSE(budget.allows({.threads = 0, .bytes = std::int64_t{1} << 60}));
}

TEST(CellThreads, AreTheSettingOrTheDevicesOrOneForEachCore) {
  EXPECT_EQ(threads_of(experiment({"train.threads=3"})), 3U);
  EXPECT_EQ(threads_of(experiment({"train.threads=1"})), 1U);
  EXPECT_EQ(threads_of(experiment({"train.threads=0"})), replay::usable_cores());
  EXPECT_EQ(threads_of(experiment({"device.cpu.threads=5"})), 5U);
  EXPECT_EQ(threads_of(experiment({"device.cpu.threads=5", "train.threads=2"})), 2U);
}

TEST(CellNeed, OfTheHostsMemoryIsTheEstimateWithAnEighthMoreAndWhatAProcessHas) {
  estimated_bytes = 800 * std::int64_t{MiB};
  is_estimated = false;
  const CellNeed need = need_of(experiment({"train.threads=2"}), 60);
  EXPECT_TRUE(is_estimated);
  EXPECT_EQ(need.threads, 2U);
  EXPECT_EQ(need.bytes, (800 + 100 + 192) * std::int64_t{MiB});
}

TEST(CellNeed, WithoutAnEstimateIsNotKnown) {
  estimated_bytes = 0;
  EXPECT_EQ(need_of(experiment({}), 60).bytes, 0);
}

TEST(CellNeed, OfADeviceThatIsNotThereIsWhatAProcessHas) {
  estimated_bytes = 800 * std::int64_t{MiB};
  is_estimated = false;
  const CellNeed need =
      need_of(experiment({"device.name=\"simulated:0\"", "device.simulated.mode=\"address-only\""}), 60);
  EXPECT_FALSE(is_estimated) << "addresses take no memory of the host";
  EXPECT_EQ(need.bytes, 192 * std::int64_t{MiB});
  EXPECT_EQ(need.threads, 1U);
}

}  // namespace
}  // namespace tenon::cli
