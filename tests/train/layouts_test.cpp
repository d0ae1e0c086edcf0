// Plans for many devices: what an estimate on addresses says of ranks that are not there, and what theory says of the
// layouts of a model.
#include "support/expect_error.h"
#include "train/experiment_fixture.h"

#include <tenon/report/run/layout_report.h>
#include <tenon/train/estimate/layouts.h>
#include <tenon/train/estimate/memory_estimate.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using train::ParallelLayout;
using train::RankNeed;

class Layouts : public Experiment {
 protected:
  void SetUp() override {
    Experiment::SetUp();
    write_letters(folder / "text", 8000);
  }
  ExperimentConfig config(std::vector<std::string> more) {
    shutdown();
    ConfigRequest request;
    request.overrides = {"data.name=\"text\"", "data.path=\"" + (folder / "text").string() + "\"",
                         "model.name=\"gpt\"", "model.hidden=64",
                         "model.layers=4",     "model.heads=4",
                         "model.context=32",   "train.batch_size=16",
                         "train.threads=1",    "train.test_batch_size=2",
                         "data.test_limit=2",  "allocator.name=\"direct\""};
    request.overrides.insert(request.overrides.end(), more.begin(), more.end());
    request.use_environment = false;
    request.sections = training_sections();
    return Config::load(request).experiment();
  }
  std::vector<RankNeed> plan(const ParallelLayout& layout, const std::vector<std::string>& more = {}) {
    const ExperimentConfig experiment = config(more);
    const MemoryEstimate group =
        estimate_memory(group_of(experiment, layout), {.rank = 0, .size = static_cast<int>(layout.tensor)});
    return needs_of(layout, group.devices);
  }
};

TEST_F(Layouts, ThoseOfADeviceCountHaveItAsTheirProduct) {
  const auto layouts = train::layouts_of(12);
  for (const ParallelLayout& layout : layouts) EXPECT_EQ(layout.devices(), 12);
  const auto has = [&](std::int64_t data, std::int64_t tensor, std::int64_t pipeline, int zero) {
    return std::ranges::any_of(layouts, [&](const ParallelLayout& l) {
      return l.data == data && l.tensor == tensor && l.pipeline == pipeline && l.zero == zero;
    });
  };
  EXPECT_TRUE(has(12, 1, 1, 3) && has(2, 3, 2, 1) && has(1, 12, 1, 0) && has(1, 1, 12, 0));
  EXPECT_FALSE(has(1, 12, 1, 1)) << "nothing is divided over one data rank";
  EXPECT_EQ(train::layouts_of(1).size(), 1U);
}

TEST_F(Layouts, APlanOfDataRanksIsWhatTheCodeOfARankTakesOnAddresses) {
  for (const int ranks : {2, 4}) {
    for (const int zero : {0, 1}) {
      const std::string shard = zero == 1 ? "optimizer" : "none";
      std::int64_t worst = 0, states = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const MemoryEstimate one =
            estimate_memory(config({"distributed.shard=\"" + shard + "\""}), {.rank = rank, .size = ranks});
        worst = std::max(worst, one.devices.at(0).requested_bytes);
        states = std::max(states, one.devices.at(0).of(Purpose::kOptimizerState));
      }
      const RankNeed need = plan({.data = ranks, .zero = zero}).at(0);
      EXPECT_NEAR(static_cast<double>(need.requested) / static_cast<double>(worst), 1, 0.03) << ranks << " " << zero;
      EXPECT_NEAR(static_cast<double>(need.states) / static_cast<double>(states), 1, 0.1) << ranks << " " << zero;
    }
  }
}

TEST_F(Layouts, WhatZeroDividesByTheoryIsNoLessAndLittleMoreThanWhatTheCodeOfARankTakes) {
  const char* const shards[] = {"none", "optimizer", "gradients", "parameters"};
  for (const int zero : {2, 3}) {
    const std::vector<std::string> model = {"model.layers=8",
                                            std::string("distributed.shard=\"") + shards[zero] + "\""};
    const MemoryEstimate code = estimate_memory(config(model), {.rank = 0, .size = 4});
    const RankNeed need = plan({.data = 4, .zero = zero}, {"model.layers=8"}).at(0);
    const double ratio = static_cast<double>(need.requested) / static_cast<double>(code.devices.at(0).requested_bytes);
    EXPECT_GE(ratio, 0.97) << zero;
    EXPECT_LE(ratio, 1.25) << zero;
    EXPECT_NEAR(static_cast<double>(need.states), static_cast<double>(code.devices.at(0).of(Purpose::kOptimizerState)),
                0.03 * static_cast<double>(need.states))
        << zero;
  }
}

TEST_F(Layouts, EachStageOfZeroDividesMore) {
  std::int64_t before = 0;
  for (const int zero : {3, 2, 1, 0}) {
    const RankNeed need = plan({.data = 8, .zero = zero}, {"model.layers=8"}).at(0);
    EXPECT_GT(need.requested, before) << zero;
    before = need.requested;
  }
  const RankNeed all = plan({.data = 8, .zero = 0}, {"model.layers=8"}).at(0);
  const RankNeed third = plan({.data = 8, .zero = 3}, {"model.layers=8"}).at(0);
  EXPECT_EQ(all.communication, all.parameters) << "buckets are a copy of all gradients";
  EXPECT_NEAR(static_cast<double>(third.parameters), static_cast<double>(all.parameters) / 8, 8);
  EXPECT_NEAR(static_cast<double>(third.states), static_cast<double>(all.states) / 8, 8);
  const double block = (12 * 64 * 64 + 13 * 64) * 4.0, others = static_cast<double>(all.parameters) - 8 * block;
  EXPECT_NEAR(static_cast<double>(third.communication), 2 * (2 * block + others), 1)
      << "parameters, and gradients, of two blocks and of what is none";
  EXPECT_EQ(third.activations, all.activations);
}

TEST_F(Layouts, AParameterThatIsLargerThanAShareIsNotDivided) {
  const RankNeed need = plan({.data = 8, .zero = 1}, {"model.vocabulary=20000", "model.layers=1"}).at(0);
  EXPECT_NEAR(static_cast<double>(need.states), 2 * 4 * 20000.0 * 64, 1000) << "two moments of the table of symbols";
}

TEST_F(Layouts, TensorRanksAndStagesDivideParametersBetweenThem) {
  const RankNeed whole = plan({}).at(0);
  const RankNeed half = plan({.tensor = 2}).at(0);
  EXPECT_LT(static_cast<double>(half.parameters), 0.56 * static_cast<double>(whole.parameters));
  EXPECT_LT(half.activations, whole.activations);
  const auto stages = plan({.pipeline = 2}, {"train.micro_batches=2"});
  ASSERT_EQ(stages.size(), 2U);
  EXPECT_NEAR(static_cast<double>(stages[0].states + stages[1].states), static_cast<double>(whole.states), 100);
  EXPECT_EQ(stages[0].layers, "symbols to block1");
  EXPECT_EQ(stages[1].rank, 1);
  const auto both = plan({.data = 2, .tensor = 2, .pipeline = 2, .zero = 1}, {"train.micro_batches=2"});
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[1].rank, 4) << "behind two data ranks of two tensor ranks each";
  EXPECT_LT(both[1].parameters, stages[1].parameters);
  EXPECT_LT(both[1].states, stages[1].states / 3);
}

TEST_F(Layouts, AnEstimateOfAPipelineIsWithinThreePercentOfItsRun) {
  const std::vector<std::string> words = {R"(device.names=["simulated:0", "simulated:1", "simulated:2"])",
                                          "device.simulated.count=3", "train.parallel=pipeline",
                                          "train.micro_batches=4", "train.max_steps=3"};
  for (const char* schedule : {"1f1b", "gpipe"}) {
    std::vector<std::string> all = words;
    all.push_back(std::string("train.pipeline_schedule=") + schedule);
    const MemoryEstimate estimate = estimate_memory(config(all));
    const ExperimentConfig experiment = config(all);
    install(experiment);
    const ExperimentResult result = run_experiment(experiment, sink);
    ASSERT_EQ(estimate.devices.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(static_cast<double>(estimate.devices[i].requested_bytes) /
                      static_cast<double>(result.devices[i].peak_requested_bytes),
                  1, 0.03)
          << schedule << " " << i;
      EXPECT_NEAR(static_cast<double>(estimate.devices[i].of(Purpose::kActivation)) /
                      static_cast<double>(
                          result.devices[i].peak_requested_by_purpose[static_cast<std::size_t>(Purpose::kActivation)]),
                  1, 0.03)
          << schedule << " " << i;
    }
    EXPECT_EQ(estimate.devices[1].layers, "block1 to block2") << schedule;
  }
}

TEST_F(Layouts, WhatCannotBeSaysWhy) {
  expect_error<ConfigError>([&] { plan({.data = 32}); },
                            "16 examples are fewer than 32 data ranks with 1 micro-batch each");
  expect_error([&] { plan({.tensor = 3}); }, "train.tensor_parallel = 3 does not divide model.heads = 4");
  expect_error<ConfigError>([&] { plan({.pipeline = 2}, {"model.name=\"lstm-lm\""}); },
                            "'lstm-lm' is not made of layers");
  expect_error([&] { plan({.pipeline = 8}); }, "8 devices, but the model has 7 layers");
}

TEST_F(Layouts, TheTableHasTheNeediestRankAndWhetherItFits) {
  std::vector<LayoutRow> rows;
  for (const ParallelLayout& layout : {ParallelLayout{}, ParallelLayout{.pipeline = 2}})
    rows.push_back({.layout = layout, .needs = plan(layout, {"train.micro_batches=2"}), .problem = {}});
  rows.push_back({.layout = {.tensor = 3}, .needs = {}, .problem = "heads"});
  const std::int64_t alone = rows[0].worst()->reserved, staged = rows[1].worst()->reserved;
  ASSERT_LT(staged, alone);
  const Table table = layouts_table(rows, staged);
  ASSERT_EQ(table.rows().size(), 2U) << "what cannot be has no row";
  EXPECT_THAT(table.csv(), AllOf(HasSubstr("addresses"), HasSubstr(",no"), HasSubstr(",yes")));
  EXPECT_THAT(layouts_footer(rows, staged),
              AllOf(HasSubstr("2 layouts"), HasSubstr("1 fit"), HasSubstr("1 more cannot be: heads")));
  EXPECT_TRUE(has_fitting(rows, staged));
  EXPECT_FALSE(has_fitting(rows, staged - 1));
}

}  // namespace
}  // namespace tenon::test
