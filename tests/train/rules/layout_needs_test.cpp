// What each rank of a layout needs, by Note [ZeRO by theory], of figures that are made up; and which layouts there are.
#include "train/experiment_fixture.h"

#include <tenon/memory/purpose.h>
#include <tenon/train/estimate/layouts.h>
#include <tenon/train/estimate/memory_estimate.h>

#include <gmock/gmock.h>

#include <set>
#include <tuple>

namespace tenon::test {
namespace {

using ::testing::HasSubstr;
using train::ParallelLayout;
using train::RankNeed;

/// One device that has a whole group's work to itself.
DeviceEstimate alone() {
  DeviceEstimate device;
  device.layers = "block0";
  device.requested_bytes = 10000;
  device.reserved_bytes = 12000;
  const auto set = [&](Purpose purpose, std::int64_t bytes) {
    device.requested_by_purpose[static_cast<std::size_t>(purpose)] = bytes;
  };
  set(Purpose::kParameter, 1000);
  set(Purpose::kGradient, 900);
  set(Purpose::kOptimizerState, 1600);
  set(Purpose::kActivation, 3000);
  set(Purpose::kCast, 100);
  set(Purpose::kData, 50);
  device.parameters = {
      .bytes = 1000, .trained_bytes = 800, .largest_bytes = 300, .pair_bytes = 400, .other_bytes = 200};
  return device;
}

using Bytes = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

/// Parameters, gradients, states, communication, all that is requested, and what is reserved.
Bytes need(const ParallelLayout& layout, const DeviceEstimate& device = alone()) {
  const std::vector<RankNeed> needs = train::needs_of(layout, {device});
  EXPECT_EQ(needs.size(), 1U);
  const RankNeed& one = needs.at(0);
  EXPECT_EQ(one.activations, 3100) << "casts stand beside them";
  EXPECT_EQ(one.layers, "block0");
  EXPECT_EQ(one.rank, 0);
  return {one.parameters, one.gradients, one.states, one.communication, one.requested, one.reserved};
}

TEST(LayoutNeeds, OfOneRankAreThoseOfTheDevice) {
  EXPECT_EQ(need({}), (Bytes{1000, 900, 1600, 0, 10000, 12000}));
  EXPECT_EQ(need({.tensor = 4}), (Bytes{1000, 900, 1600, 0, 10000, 12000}))
      << "a group's estimate is of a part already";
}

TEST(LayoutNeeds, OfDataRanksAreWhatEachStageOfZeroLeaves) {
  EXPECT_EQ(need({.data = 4}), (Bytes{1000, 900, 1600, 800, 10800, 12800})) << "and a copy of all gradients";
  EXPECT_EQ(need({.data = 4, .zero = 1}), (Bytes{1000, 900, 600, 800, 9800, 11800})) << "the largest one's states";
  // 200 of each rank's gradients and the largest; 600 of the root and two blocks on their way.
  EXPECT_EQ(need({.data = 4, .zero = 2}), (Bytes{1000, 100 + 500, 400, 600, 1000 + 400 + 6600 + 500 + 600, 11100}));
  EXPECT_EQ(need({.data = 4, .zero = 3}), (Bytes{250, 100 + 500, 400, 1200, 250 + 400 + 6600 + 500 + 1200, 10950}));
}

TEST(LayoutNeeds, OfManyRanksAreBoundedByWhatIsNotDivided) {
  EXPECT_EQ(std::get<2>(need({.data = 2, .zero = 1})), 800) << "a half is more than the largest parameter's";
  EXPECT_EQ(std::get<2>(need({.data = 100, .zero = 1})), 600);
  EXPECT_EQ(std::get<2>(need({.data = 100, .zero = 2})), 16);
  EXPECT_EQ(std::get<1>(need({.data = 100, .zero = 2})), 100 + 8 + 300);
  EXPECT_EQ(std::get<0>(need({.data = 100, .zero = 3})), 10);
}

TEST(LayoutNeeds, WhereActivationsAreAllThereIsGradientsAreNotTakenOffThem) {
  DeviceEstimate small = alone();
  small.requested_bytes = 6000;  // 3400 beside parameters and states: 2600 without gradients, 3150 of activations, data
  EXPECT_EQ(std::get<4>(need({.data = 4, .zero = 2}, small)), 1000 + 400 + 3150 + 500 + 600);
  EXPECT_EQ(std::get<5>(need({.data = 4, .zero = 2}, small)), 12000 + 5650 - 6000);
  DeviceEstimate few = alone();
  few.requested_by_purpose[static_cast<std::size_t>(Purpose::kGradient)] = 700;
  EXPECT_EQ(std::get<1>(need({.data = 4, .zero = 2}, few)), 500) << "which were never all there";
}

TEST(LayoutNeeds, OfWhatIsUnderWayAreNoMoreThanThereIs) {
  DeviceEstimate few = alone();
  few.parameters = {.bytes = 500, .trained_bytes = 400, .largest_bytes = 300, .pair_bytes = 400, .other_bytes = 200};
  EXPECT_EQ(std::get<3>(need({.data = 4, .zero = 2}, few)), 400);
  EXPECT_EQ(std::get<3>(need({.data = 4, .zero = 3}, few)), 400 + 500);
  DeviceEstimate frozen = alone();
  frozen.parameters = {.bytes = 1000};
  EXPECT_EQ(std::get<2>(need({.data = 4, .zero = 1}, frozen)), 1600) << "nothing that learns is divided";
}

TEST(LayoutNeeds, OfStagesNameTheFirstRankOfEach) {
  const auto needs = train::needs_of({.data = 3, .tensor = 2, .pipeline = 3}, {alone(), alone(), alone()});
  ASSERT_EQ(needs.size(), 3U);
  for (std::size_t stage = 0; stage < 3; ++stage) EXPECT_EQ(needs[stage].rank, static_cast<std::int64_t>(6 * stage));
}

TEST(LayoutNeeds, AreAskedOfEveryWayToMultiplyToTheDevices) {
  for (const std::int64_t devices : {1, 2, 6, 8, 12}) {
    std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t, int>> wanted, found;
    for (std::int64_t data = 1; data <= devices; ++data)
      for (std::int64_t tensor = 1; tensor <= devices; ++tensor)
        for (std::int64_t pipeline = 1; pipeline <= devices; ++pipeline)
          for (int zero = 0; zero < 4; ++zero)
            if (data * tensor * pipeline == devices && (data > 1 || zero == 0))
              wanted.emplace(data, tensor, pipeline, zero);
    const auto layouts = train::layouts_of(devices);
    for (const ParallelLayout& layout : layouts)
      found.emplace(layout.data, layout.tensor, layout.pipeline, layout.zero);
    EXPECT_EQ(found, wanted) << devices;
    EXPECT_EQ(layouts.size(), wanted.size()) << "each once";
  }
}

class LayoutSettings : public Experiment {
 protected:
  static ExperimentConfig config(std::vector<std::string> more) {
    ConfigRequest request;
    request.overrides = {"model.name=\"gpt\"", "data.name=\"text\"", "train.batch_size=10",
                         "device.name=\"simulated:0\""};
    request.overrides.insert(request.overrides.end(), more.begin(), more.end());
    request.use_environment = false;
    request.sections = training_sections();
    return Config::load(request).experiment();
  }
};

TEST_F(LayoutSettings, SayOfRanksWhatEachOfThemIsToldAndOfAGroupItsPartOfTheBatch) {
  const char* const shards[] = {"none", "optimizer", "gradients", "parameters"};
  for (int zero = 0; zero < 4; ++zero) {
    const ParallelLayout layout{.data = 4, .tensor = 2, .pipeline = 1, .zero = zero};
    const ExperimentConfig ranks = train::ranks_of(config({}), layout);
    EXPECT_EQ(ranks.section("distributed").text("shard"), shards[zero]);
    EXPECT_EQ(ranks.section("train").integer("tensor_parallel"), 2);
    EXPECT_EQ(ranks.section("train").integer("batch_size"), 10) << "of all ranks";
    EXPECT_EQ(ranks.section("train").text("parallel"), "data");
    EXPECT_EQ(ranks.devices, (std::vector<Device>{Device("simulated:0")}));
    const ExperimentConfig group = train::group_of(config({}), {.data = 4, .tensor = 1, .pipeline = 1, .zero = zero});
    EXPECT_EQ(group.section("train").integer("batch_size"), 3) << "the largest part of ten";
    EXPECT_EQ(group.section("distributed").text("shard"), "none");
  }
  const ExperimentConfig stages = train::ranks_of(config({"train.micro_batches=2"}), {.data = 1, .pipeline = 3});
  EXPECT_EQ(stages.section("train").text("parallel"), "pipeline");
  EXPECT_EQ(stages.devices, (std::vector<Device>{Device("simulated:0"), Device("simulated:1"), Device("simulated:2")}));
}

TEST_F(LayoutSettings, NeedAnExampleForEachPartOfEachRank) {
  const auto refusal = [](const std::string& batch, const std::string& parts, std::int64_t data) -> std::string {
    try {
      train::ranks_of(config({batch, parts}), {.data = data});
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal("train.batch_size=8", "train.micro_batches=2", 4), "accepted");
  EXPECT_THAT(refusal("train.batch_size=7", "train.micro_batches=2", 4),
              HasSubstr("train.batch_size: 7 examples are fewer than 4 data ranks with 2 micro-batches each"));
  EXPECT_THAT(refusal("train.batch_size=3", "train.micro_batches=1", 4),
              HasSubstr("train.batch_size: 3 examples are fewer than 4 data ranks with 1 micro-batch each"));
}

}  // namespace
}  // namespace tenon::test
