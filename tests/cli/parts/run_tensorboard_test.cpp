// What is written for TensorBoard of each step, epoch and end: tags, steps and values.
#include "support/scratch_folder.h"
#include "tensorboard/read_events.h"

#include <tenon/cli/record/run_tensorboard.h>
#include <tenon/train/run_experiment.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace tenon::cli {
namespace {

using test::ReadValue;
using testing::ElementsAre;
using testing::Pair;

/// The scalars of a folder, by tag: (step, value).
using Curves = std::map<std::string, std::vector<std::pair<std::int64_t, float>>>;
Curves curves_in(const std::string& folder) {
  Curves curves;
  for (const ReadValue& value : test::values_in(folder))
    if (!value.tag.starts_with("_hparams_")) curves[value.tag].emplace_back(value.step, value.scalar());
  return curves;
}

class RunTensorboardTest : public testing::Test {
 protected:
  void SetUp() override {
    static int number = 0;
    folder_ = test::scratch_folder() + "events" + std::to_string(++number);
  }
  static Progress now(std::int64_t step) {
    Progress progress{.step = step, .steps = 10, .loss = 0.5, .learning_rate = 0.25, .step_ms = 4};
    progress.examples = 8;
    progress.phase = "train";
    return progress;
  }
  std::string folder_;
};

TEST_F(RunTensorboardTest, AStepHasItsLossRateTimeAndSpeed) {
  RunTensorboard events(folder_, {});
  events.begin(0);
  events.step(now(3), {});
  const Curves curves = curves_in(folder_);
  EXPECT_THAT(curves.at("train/loss"), ElementsAre(Pair(3, 0.5f)));
  EXPECT_THAT(curves.at("train/learning_rate"), ElementsAre(Pair(3, 0.25f)));
  EXPECT_THAT(curves.at("train/step_ms"), ElementsAre(Pair(3, 4.0f)));
  EXPECT_THAT(curves.at("train/examples_per_second"), ElementsAre(Pair(3, 2000.0f)));
  EXPECT_EQ(curves.size(), 4U);
}

TEST_F(RunTensorboardTest, WhatAStepDoesNotKnowIsLeftOutAndServingHasRequests) {
  RunTensorboard events(folder_, {});
  events.begin(0);
  Progress unknown;
  unknown.phase = "train";
  events.step(unknown, {});
  EXPECT_TRUE(curves_in(folder_).empty());
  Progress serving = now(2);
  serving.phase = "serve";
  serving.loss.reset(), serving.learning_rate.reset();
  events.step(serving, {});
  const Curves curves = curves_in(folder_);
  EXPECT_THAT(curves.at("serve/step_ms"), ElementsAre(Pair(2, 4.0f)));
  EXPECT_THAT(curves.at("serve/requests_per_second"), ElementsAre(Pair(2, 2000.0f)));
  EXPECT_EQ(curves.size(), 2U);
}

MemoryStats some_memory() {
  MemoryStats stats;
  stats.requested_bytes = {.current = 10, .peak = 40};
  stats.allocated_bytes = {.current = 16, .peak = 48};
  stats.reserved_bytes = {.current = 64, .peak = 80};
  stats.device_allocations = 5;
  stats.device_frees = 2;
  const auto first = static_cast<std::size_t>(0), last = static_cast<std::size_t>(kPurposeCount - 1);
  stats.requested_by_purpose[first].peak = 7;
  stats.requested_by_purpose[first].allocated = 1;
  stats.requested_by_purpose[last].peak = 9;
  stats.requested_by_purpose[last].allocated = 1;
  return stats;
}

TEST_F(RunTensorboardTest, MemoryIsWhatIsHeldItsPeaksAndWhatIsLostInBetween) {
  RunTensorboard events(folder_, {});
  events.begin(0);
  Progress progress;
  progress.step = 1;
  const MemoryStats memory = some_memory();
  events.step(progress, {{.name = "", .stats = memory}});
  const Curves curves = curves_in(folder_);
  const auto value = [&](const std::string& tag) { return curves.at(tag).at(0).second; };
  EXPECT_EQ(value("memory/requested_bytes"), 10);
  EXPECT_EQ(value("memory/allocated_bytes"), 16);
  EXPECT_EQ(value("memory/reserved_bytes"), 64);
  EXPECT_EQ(value("memory/step_peak_allocated_bytes"), 48);
  EXPECT_EQ(value("memory/step_peak_reserved_bytes"), 80);
  EXPECT_EQ(value("memory/device_calls"), static_cast<float>(memory.device_calls()));
  EXPECT_EQ(value("fragmentation/internal_bytes"), 6);
  EXPECT_EQ(value("fragmentation/external_bytes"), 48);
  EXPECT_EQ(value("fragmentation/step_excess"), 1) << "80 in place of 40";
  EXPECT_EQ(value("step_peak_by_purpose/" + std::string(name_of(static_cast<Purpose>(0)))), 7);
  EXPECT_EQ(value("step_peak_by_purpose/" + std::string(name_of(static_cast<Purpose>(kPurposeCount - 1)))), 9);
  EXPECT_EQ(curves.size(), 11U) << "nothing of purposes that nothing was asked for";
}

TEST_F(RunTensorboardTest, OfSeveralDevicesEachHasCurvesUnderItsName) {
  RunTensorboard events(folder_, {});
  events.begin(0);
  events.step(Progress(), {{.name = "a:0", .stats = some_memory()}, {.name = "a:1", .stats = MemoryStats()}});
  const Curves curves = curves_in(folder_);
  EXPECT_EQ(curves.at("a:0/memory/reserved_bytes").at(0).second, 64);
  EXPECT_EQ(curves.at("a:1/memory/reserved_bytes").at(0).second, 0);
  EXPECT_FALSE(curves.contains("a:1/fragmentation/step_excess")) << "of nothing";
}

TEST_F(RunTensorboardTest, EachEpochIsToldOnceAtTheStepThatEndedIt) {
  RunTensorboard events(folder_, {});
  events.begin(0);
  std::vector<EpochResult> epochs = {{.epoch = 1, .train_loss = 1, .test_loss = 2, .test_accuracy = 0.5, .seconds = 4}};
  events.epochs(epochs, 6);
  events.epochs(epochs, 7);
  epochs.push_back({.epoch = 2, .train_loss = 0.5});
  events.epochs(epochs, 12);
  const Curves curves = curves_in(folder_);
  EXPECT_THAT(curves.at("epoch/train_loss"), ElementsAre(Pair(6, 1.0f), Pair(12, 0.5f)));
  EXPECT_THAT(curves.at("epoch/test_loss"), ElementsAre(Pair(6, 2.0f), Pair(12, 0.0f)));
  EXPECT_THAT(curves.at("epoch/test_accuracy"), ElementsAre(Pair(6, 0.5f), Pair(12, 0.0f)));
  EXPECT_THAT(curves.at("epoch/seconds"), ElementsAre(Pair(6, 4.0f), Pair(12, 0.0f)));
}

TEST_F(RunTensorboardTest, TheEndHasWhatTheRunIsMeasuredBy) {
  ExperimentResult result;
  result.memory = some_memory();
  result.steps = 12;
  result.losses = {3, 2};
  result.epochs = {{.epoch = 1}};
  result.test_accuracy = 0.75;
  result.step_ms = {1, 2, 30};
  RunTensorboard events(folder_, {});
  events.end(result, true);
  const Curves curves = curves_in(folder_);
  EXPECT_THAT(curves.at("result/loss"), ElementsAre(Pair(12, 2.0f)));
  EXPECT_THAT(curves.at("result/test_accuracy"), ElementsAre(Pair(12, 0.75f)));
  EXPECT_THAT(curves.at("result/step_ms"), ElementsAre(Pair(12, 2.0f)));
  EXPECT_THAT(curves.at("result/peak_requested_bytes"), ElementsAre(Pair(12, 40.0f)));
  EXPECT_THAT(curves.at("result/peak_reserved_bytes"), ElementsAre(Pair(12, 80.0f)));
  EXPECT_EQ(curves.at("result/device_calls").size(), 1U);
  EXPECT_EQ(curves.size(), 6U);
}

TEST_F(RunTensorboardTest, ARunThatEndedEarlyHasNoValueForWhatItDidNotReachAndAnInterruptedOneNone) {
  ExperimentResult result;
  result.losses = {3};
  RunTensorboard early(folder_, {});
  early.end(result, false);
  const Curves curves = curves_in(folder_);
  EXPECT_FALSE(curves.contains("result/loss")) << "no epoch has ended";
  EXPECT_FALSE(curves.contains("result/test_accuracy"));
  EXPECT_FALSE(curves.contains("result/step_ms"));
  EXPECT_EQ(curves.size(), 3U);
  result.interrupted = true;
  RunTensorboard interrupted(folder_ + "-2", {});
  interrupted.end(result, false);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "-2"));
}

TEST_F(RunTensorboardTest, BeforeItsBeginningNothingIsWritten) {
  RunTensorboard events(folder_, {});
  events.step(now(1), {});
  events.epochs({{.epoch = 1}}, 1);
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

TEST(Hyperparameters, AreWhatWasSetOfTheExperimentAndWhatVaries) {
  ConfigRequest request;
  request.overrides = {"name=\"mine\"", "train.lr=0.5", "train.checkpoint=true", "model.name=\"mlp\"",
                       "report.stacks=true"};
  request.use_environment = false;
  request.sections = training_sections();
  const HParams set = hparams_of(Config::load(request), {"train.epochs"});
  const std::map<std::string, HParam> by_name(set.begin(), set.end());
  EXPECT_EQ(by_name.size(), 4U);
  EXPECT_EQ(by_name.at("train.lr").value, HParam(0.5).value);
  EXPECT_EQ(by_name.at("train.checkpoint").value, HParam(true).value);
  EXPECT_EQ(by_name.at("model.name").value, HParam("mlp").value) << "without TOML's quotes";
  EXPECT_EQ(by_name.at("train.epochs").value, HParam(1.0).value) << "it varies, though it has its default here";
}

}  // namespace
}  // namespace tenon::cli
