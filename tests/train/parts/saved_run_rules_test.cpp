// What a run goes on from: which others it is refused, in which words, and what of it may change.
#include "../../support/message_of.h"
#include "train/experiment_fixture.h"

#include <tenon/train/resume/saved_run.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

namespace tenon::test {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class SavedRunRules : public Experiment {
 protected:
  ExperimentResult course(const Words& more) {
    Words words = {"model.hidden=8",           "data.limit=96",         "data.test_limit=32",
                   "train.test_batch_size=32", "train.optimizer=adamw", "train.epochs=2"};
    words.insert(words.end(), more.begin(), more.end());
    sink.notes.clear();
    return run(words);
  }
  std::string file() const { return (folder / "saved").string(); }
  void save(Words more) {
    more.insert(more.end(), {"train.stop_at=2", "train.save=\"" + file() + "\""});
    course(more);
  }
  std::string outcome(Words more) {
    more.push_back("train.resume=\"" + file() + "\"");
    try {
      course(more);
    } catch (const Error& error) {
      return error.what();
    }
    return "goes on";
  }
};

TEST_F(SavedRunRules, AnotherOrderOfTheExamplesIsRefused) {
  save({});
  const std::string of = "'" + file() + "' is of a run with ", order = ": its examples would come in another order";
  EXPECT_THAT(outcome({"train.seed=48"}), HasSubstr(of + "seed 47, this one has 48" + order));
  EXPECT_THAT(outcome({"train.batch_size=16"}), HasSubstr(of + "batch size 32, this one has 16" + order));
  EXPECT_THAT(outcome({"data.limit=128"}), HasSubstr(of + "training examples 96, this one has 128" + order));
  EXPECT_EQ(outcome({}), "goes on");
}

TEST_F(SavedRunRules, ParametersOfAnotherMeaningAreRefusedByTheirSetting) {
  save({});
  const auto refused = [&](const std::string& key, const std::string& then, const std::string& now) {
    return HasSubstr(fmt::format("'{}' is of a run with {} = {}, this one has {}: its parameters would not be the same",
                                 file(), key, then, now));
  };
  EXPECT_THAT(outcome({"model.hidden=9"}), refused("model.hidden", "8", "9"));
  EXPECT_THAT(outcome({"model.name=lenet"}), refused("model.name", "mlp", "lenet"));
  EXPECT_THAT(outcome({"train.precision=bfloat16"}), refused("train.precision", "float32", "bfloat16"));
  EXPECT_THAT(outcome({"train.precision=float16-mixed"}),
              refused("train.precision", "float32", "float32 with a scaled loss"));
  EXPECT_THAT(outcome({"train.lora_rank=2"}), refused("train.lora_rank", "0", "2"));
  save({"train.precision=bfloat16"});
  EXPECT_THAT(outcome({"train.precision=bfloat16", "train.master_weights=true"}),
              refused("train.master_weights", "false", "true"));
}

TEST_F(SavedRunRules, WhatDoesNotChangeTheParametersMayChange) {
  save({"model.dropout=0.1"});
  for (const char* change :
       {"model.dropout=0.2", "train.lr=0.5", "train.precision=bfloat16-mixed", "train.checkpoint=true",
        "train.weight_decay=0.1", "train.micro_batches=2", "train.test_batch_size=16", "train.epochs=3"})
    EXPECT_EQ(outcome({change}), "goes on") << change;
}

TEST_F(SavedRunRules, ItsStepsAreKnownFromTheFileAlone) {
  save({});
  EXPECT_EQ(train::saved_steps(file()), 2);
  EXPECT_THROW(train::saved_steps(folder / "none"), Error);
  std::filesystem::resize_file(file(), 40);
  EXPECT_THROW(train::saved_steps(file()), Error);
  EXPECT_NE(outcome({}), "goes on");
}

// Random numbers, masters, the scale of the loss and the optimiser's state come back: the rest of the run is the same.
TEST_F(SavedRunRules, WhatGoesOnEqualsTheWholeRunToTheLastBit) {
  for (const Words& words : {Words{"model.dropout=0.3"},
                             {"train.precision=float16-mixed"},
                             {"train.precision=bfloat16", "train.master_weights=true"},
                             {"train.optimizer=sgd", "train.schedule=cosine"},
                             {"train.optimizer_states=8bit", "model.hidden=16"},
                             {"train.clip_grad_norm=0.1", "train.optimizer=rmsprop"}}) {
    const std::vector<double> whole = course(words).losses;
    save(words);
    Words rest = words;
    rest.push_back("train.resume=\"" + file() + "\"");
    const ExperimentResult result = course(rest);
    EXPECT_TRUE(same_bits(result.losses, {whole.begin() + 2, whole.end()})) << words.front();
    EXPECT_EQ(result.epochs.size(), 2U) << "the epoch that was under way and the next one";
  }
}

TEST_F(SavedRunRules, ALossIsTheMeanOfAnEpochsStepsWhoeverMadeThem) {
  const ExperimentResult whole = course({});
  save({});
  const ExperimentResult rest = course({"train.resume=\"" + file() + "\""});
  EXPECT_DOUBLE_EQ(rest.epochs.at(0).train_loss, whole.epochs.at(0).train_loss);
  EXPECT_DOUBLE_EQ(rest.epochs.at(1).train_loss, whole.epochs.at(1).train_loss);
  EXPECT_EQ(rest.planned_steps, 6);
}

TEST_F(SavedRunRules, AStateThatCannotBeKeptIsNotedOnceAndNotAgainWhenItCan) {
  state = {.file = folder / "later" / "state", .go_on = false};
  int asked = 0;
  sink.stops = [&] {
    if (++asked == 4) std::filesystem::create_directories(folder / "later");
    return false;
  };
  const ExperimentResult result = course({"train.save_every=1"});
  EXPECT_EQ(std::ranges::count_if(sink.notes,
                                  [](const std::string& line) {
                                    return line.find("the state of the run could not be kept: ") != line.npos;
                                  }),
            1);
  EXPECT_THAT(sink.notes.front(), ::testing::StartsWith("step 1: the state of the run could not be kept: "));
  EXPECT_EQ(result.state_problem, "") << "it could be kept in the end";
  EXPECT_EQ(result.kept_step, 6);
}

// Of another run's file a run has the parameters, and makes all the calls itself; of its own state it made some before.
TEST_F(SavedRunRules, CallsAreCountedFromTheStartOfTheRunThatTheFileIsGivenTo) {
  save({});
  const ExperimentResult result = course({"train.resume=\"" + file() + "\""});
  const Stat& blocks = result.memory.allocations;
  EXPECT_GT(blocks.current, 0);
  EXPECT_EQ(blocks.allocated - blocks.freed, blocks.current);
}

// What a run went on from that it wrote itself is no figure: it is the same run.
TEST_F(SavedRunRules, ARunThatGoesOnFromItsOwnStateHasNoFigureOfIt) {
  state = {.file = folder / "state", .go_on = false};
  int asked = 0;
  sink.stops = [&] { return ++asked == 2; };
  EXPECT_TRUE(course({}).interrupted);
  sink.stops = {};
  state.go_on = true;
  const ExperimentResult whole = course({});
  EXPECT_EQ(whole.steps, 6);
  for (const auto& [name, value] : whole.figures) EXPECT_NE(name, "resumed_at_step");
  EXPECT_GT(whole.earlier_seconds, 0);
  EXPECT_LT(whole.earlier_seconds, whole.seconds);
}

}  // namespace
}  // namespace tenon::test
