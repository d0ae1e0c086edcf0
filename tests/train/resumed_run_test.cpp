// A run that is interrupted, wherever, and goes on from the state that it kept equals one that was not: to the last bit
// and in every figure of its report.
#include "train/experiment_fixture.h"

#include <tenon/train/resume/saved_run.h>

#include <gmock/gmock.h>

namespace tenon::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ResumedRun : public Experiment {
 protected:
  /// Two epochs of 4 steps with dropout and a schedule, 2 batches in each test.
  ExperimentResult run_course(std::vector<std::string> more = {}) {
    std::vector<std::string> words{"model.hidden=8",        "model.dropout=0.1",         "data.limit=128",
                                   "data.test_limit=64",    "train.test_batch_size=32",  "train.epochs=2",
                                   "train.optimizer=adamw", "train.schedule=\"cosine\"", "train.warmup_steps=2"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  /// The n-th question whether to stop, from 1, is answered with yes; 0: none is.
  void stop_at_question(int n) {
    asked = 0;
    sink.stops = [this, n] { return ++asked == n; };
  }
  static void expect_same(const ExperimentResult& whole, const ExperimentResult& resumed, const std::string& where) {
    EXPECT_EQ(whole.losses, resumed.losses) << where;
    EXPECT_EQ(whole.steps, resumed.steps) << where;
    EXPECT_EQ(whole.step_ms.size(), resumed.step_ms.size()) << where;
    EXPECT_EQ(whole.test_accuracy, resumed.test_accuracy) << where;
    ASSERT_EQ(whole.epochs.size(), resumed.epochs.size()) << where;
    for (std::size_t i = 0; i < whole.epochs.size(); ++i) {
      EXPECT_EQ(whole.epochs[i].epoch, resumed.epochs[i].epoch) << where;
      EXPECT_EQ(whole.epochs[i].train_loss, resumed.epochs[i].train_loss) << where;
      EXPECT_EQ(whole.epochs[i].test_loss, resumed.epochs[i].test_loss) << where;
    }
    ASSERT_EQ(whole.timeline.size(), resumed.timeline.size()) << where;
    for (std::size_t i = 0; i < whole.timeline.size(); ++i) {
      EXPECT_EQ(whole.timeline[i].step, resumed.timeline[i].step) << where;
      EXPECT_EQ(whole.timeline[i].peak_allocated_bytes, resumed.timeline[i].peak_allocated_bytes) << where;
    }
    EXPECT_EQ(whole.memory.requested_bytes.peak, resumed.memory.requested_bytes.peak) << where;
    EXPECT_EQ(whole.memory.allocated_bytes.peak, resumed.memory.allocated_bytes.peak) << where;
    EXPECT_EQ(whole.peak.phase, resumed.peak.phase) << where;
    EXPECT_EQ(whole.peak.allocated_bytes, resumed.peak.allocated_bytes) << where;
    EXPECT_EQ(whole.peak.requested_by_purpose, resumed.peak.requested_by_purpose) << where;
    for (std::size_t i = 0; i < whole.memory.requested_by_purpose.size(); ++i)
      EXPECT_EQ(whole.memory.requested_by_purpose[i].peak, resumed.memory.requested_by_purpose[i].peak)
          << where << ", purpose " << i;
    EXPECT_FALSE(resumed.interrupted) << where;
  }
  int asked = 0;
};

TEST_F(ResumedRun, EqualsTheWholeOneWhereverItWasInterrupted) {
  stop_at_question(0);
  const ExperimentResult whole = run_course();
  const int questions = asked;
  ASSERT_EQ(questions, 2 * (4 + 2)) << "after each step, before each batch of a test";
  for (int n = 1; n <= questions; ++n) {
    const std::string where = "interrupted at question " + std::to_string(n);
    state = {.file = folder / ("state" + std::to_string(n)), .go_on = false};
    stop_at_question(n);
    const ExperimentResult first = run_course();
    ASSERT_TRUE(first.interrupted) << where;
    EXPECT_EQ(first.kept_step, first.steps) << where;
    EXPECT_EQ(train::saved_steps(state.file), first.steps) << where;
    EXPECT_EQ(live_bytes, 0) << where;
    state.go_on = true;
    stop_at_question(0);
    const ExperimentResult resumed = run_course();
    expect_same(whole, resumed, where);
    const bool is_in_a_test = (n - 1) % 6 >= 4;  // which begins again
    const std::int64_t more = resumed.memory.allocations.allocated - whole.memory.allocations.allocated;
    if (!is_in_a_test) {
      EXPECT_TRUE(more == 0 || more == 1) << where << ": " << more << "; an epoch's order is made again";
    }
  }
}

TEST_F(ResumedRun, EqualsTheWholeOneAfterManyInterruptions) {
  const ExperimentResult whole = run_course();
  state = {.file = folder / "state", .go_on = false};
  ExperimentResult result;
  int parts = 0;
  do {
    stop_at_question(3);
    result = run_course();
    state.go_on = true;
    ASSERT_LT(++parts, 20);
  } while (result.interrupted);
  EXPECT_GT(parts, 3);
  expect_same(whole, result, "in parts");
}

TEST_F(ResumedRun, KeepsItsStateEverySoManySteps) {
  state = {.file = folder / "state", .go_on = false};
  const ExperimentResult whole = run_course({"train.save_every=3"});
  EXPECT_EQ(whole.kept_step, 6);
  state.go_on = true;
  asked = 0;
  sink.stops = [this] { return ++asked < 0; };
  expect_same(whole, run_course({"train.save_every=3"}), "from step 6");
  EXPECT_EQ(asked, 2 + 2) << "two steps and a test were left";
}

TEST_F(ResumedRun, GoesOnWhereItsStateCannotBeKept) {
  state = {.file = folder / "no such folder" / "state", .go_on = false};
  const ExperimentResult result = run_course({"train.save_every=3"});
  EXPECT_EQ(result.steps, 8);
  EXPECT_EQ(result.kept_step, 0);
  EXPECT_THAT(result.state_problem, HasSubstr("No such file or directory"));
  EXPECT_THAT(sink.notes.front(), HasSubstr("step 3: the state of the run could not be kept"));
}

// As of the learning rate: what the optimiser is told is the file's that goes on, what it remembers the saved run's.
TEST_F(ResumedRun, HasTheMomentumAndTheDecayThatItIsGiven) {
  const std::string file = (folder / "saved").string();
  const std::vector<std::string> words{"train.optimizer=\"sgd\"", "train.lr=0.01", "train.schedule=\"constant\""};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return run_course(all).losses;
  };
  with({"train.stop_at=4", "train.save=\"" + file + "\""});
  const std::string resume = "train.resume=\"" + file + "\"";
  const std::vector<double> same = with({resume});
  EXPECT_EQ(with({resume, "train.momentum=0.9", "train.weight_decay=0.0"}), same) << "which are the defaults";
  for (const char* other : {"train.momentum=0.0", "train.weight_decay=0.5", "train.lr=0.001"}) {
    const std::vector<double> losses = with({resume, other});
    ASSERT_EQ(losses.size(), same.size());
    EXPECT_EQ(losses.front(), same.front()) << other << ": the step before the first update";
    EXPECT_NE(losses.back(), same.back()) << other;
  }
}

TEST_F(ResumedRun, TheStateOfAnotherRunIsRefused) {
  state = {.file = folder / "state", .go_on = false};
  stop_at_question(3);
  run_course();
  state.go_on = true;
  EXPECT_THROW(run_course({"train.seed=1"}), Error);
}

}  // namespace
}  // namespace tenon::test
