// What a run tells while it goes on, call by call: where it is, what begins now, what it notes, and what there is of it
// when it breaks off.
#include "train/experiment_fixture.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <optional>
#include <stdexcept>

namespace tenon::test {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Words = std::vector<std::string>;

/// Takes down what it is told.
class Listens final : public ProgressSink {
 public:
  void progress(const Progress& now) override { places.push_back(now); }
  void note(std::string_view line) override { notes.emplace_back(line); }
  void entering(std::string_view what) override {
    entered.emplace_back(what);
    if (fails_entering == what) throw std::runtime_error("enough");
  }
  void step_begins() override { ++steps_begun; }
  void beginning() override { ++beginnings; }
  void figures(const ExperimentResult& part) override { steps_shown.push_back(part.steps); }
  void broken_off(const ExperimentResult& so_far) override { broken.push_back(so_far); }
  void earlier_figures(const ExperimentResult& earlier) override { earlier_steps.push_back(earlier.steps); }
  bool is_stopping() const override { return ++asked == stops_at; }

  std::vector<Progress> of(const std::string& phase) const {
    std::vector<Progress> some;
    for (const Progress& place : places)
      if (place.phase == phase) some.push_back(place);
    return some;
  }

  std::vector<Progress> places;
  std::vector<std::string> notes, entered;
  std::vector<std::int64_t> steps_shown, earlier_steps;
  std::vector<ExperimentResult> broken;
  std::string fails_entering;
  int steps_begun = 0, beginnings = 0, stops_at = 0;
  mutable int asked = 0;
};

class ToldRun : public Experiment {
 protected:
  /// Three steps an epoch of a small network, and a test of two batches.
  ExperimentResult told(Listens& listens, Words more, const RunState& kept = {}) {
    shutdown();
    Words words{"data.path=\"" + folder.string() + "\"",
                "train.threads=1",
                "train.batch_size=32",
                "model.hidden=8",
                "data.limit=100",
                "data.test_limit=50",
                "train.test_batch_size=32",
                "train.lr=0.5",
                "train.optimizer=\"sgd\"",
                "train.schedule=\"linear\"",
                "train.warmup_steps=1"};
    words.insert(words.end(), more.begin(), more.end());
    ConfigRequest request;
    request.overrides = std::move(words);
    request.use_environment = false;
    request.sections = training_sections();
    const ExperimentConfig config = Config::load(request).experiment();
    install(config);
    return run_experiment(config, listens, kept);
  }
};

TEST_F(ToldRun, SaysWhereItIsBehindEachStepAndTest) {
  Listens listens;
  const ExperimentResult result = told(listens, {"train.epochs=2"});
  ASSERT_THAT(listens.places, Not(IsEmpty()));
  EXPECT_EQ(listens.places.front().phase, "reading data");
  EXPECT_FALSE(listens.places.front().loss) << "there is none yet";
  const auto steps = listens.of("train");
  ASSERT_EQ(steps.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(steps[i].step, static_cast<std::int64_t>(i + 1));
    EXPECT_EQ(steps[i].steps, 6);
    EXPECT_EQ(steps[i].epoch, i < 3 ? 1 : 2);
    EXPECT_EQ(steps[i].epochs, 2);
    EXPECT_EQ(steps[i].loss, result.losses[i]);
    EXPECT_NEAR(steps[i].learning_rate.value_or(0), 0.5 * (1 - static_cast<double>(i) / 6), 1e-12);
    EXPECT_EQ(steps[i].step_ms, result.step_ms[i]);
    EXPECT_EQ(steps[i].examples, 32);
  }
  const auto tests = listens.of("test");
  ASSERT_EQ(tests.size(), 4U) << "a batch each";
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(tests[i].step, i < 2 ? 3 : 6);
    EXPECT_EQ(tests[i].epoch, i < 2 ? 1 : 2);
    EXPECT_TRUE(std::isnan(tests[i].loss.value_or(0)));
    EXPECT_FALSE(tests[i].learning_rate);
    EXPECT_EQ(tests[i].examples, 0);
  }
  const auto over = listens.of("tested");
  ASSERT_EQ(over.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const double mean = (result.losses[3 * i] + result.losses[3 * i + 1] + result.losses[3 * i + 2]) / 3;
    EXPECT_NEAR(over[i].loss.value_or(0), mean, 1e-12);
    EXPECT_EQ(result.epochs[i].train_loss, over[i].loss);
    EXPECT_EQ(result.epochs[i].epoch, static_cast<int>(i) + 1);
    EXPECT_GT(result.epochs[i].seconds, 0);
  }
  EXPECT_EQ(result.test_accuracy, result.epochs.back().test_accuracy);
  EXPECT_EQ(listens.beginnings, 1);
  EXPECT_EQ(listens.steps_begun, 6);
  EXPECT_THAT(listens.steps_shown, ElementsAre(1, 2, 3, 3, 4, 5, 6, 6)) << "behind each step and each epoch";
  EXPECT_THAT(listens.broken, IsEmpty());
  EXPECT_THAT(listens.earlier_steps, IsEmpty());
}

TEST_F(ToldRun, SaysWhatBeginsNow) {
  Listens listens;
  told(listens, {"train.max_steps=2", "train.quantize=\"dynamic\""});
  EXPECT_THAT(listens.entered, ElementsAre("reading the data", "making the model", "step 1 of 2", "step 2 of 2",
                                           "the test of epoch 1", "quantization"));
}

TEST_F(ToldRun, NotesEachEpochInFigures) {
  Listens listens;
  const ExperimentResult result = told(listens, {"train.epochs=2"});
  for (int i = 0; i < 2; ++i) {
    const EpochResult& epoch = result.epochs[static_cast<std::size_t>(i)];
    EXPECT_EQ(listens.notes.at(static_cast<std::size_t>(i)),
              fmt::format("epoch {}/2: loss {:.4f}, test loss {:.4f}, test accuracy {:.2f} %, {:.1f} s", i + 1,
                          epoch.train_loss, epoch.test_loss, 100 * epoch.test_accuracy, epoch.seconds));
  }
  Listens without;
  told(without, {"device.name=\"simulated:0\"", "device.simulated.mode=\"address-only\""});
  EXPECT_THAT(without.notes.back(), HasSubstr("epoch 1/1: simulated:0 computes nothing, so there is no loss, "));
  for (const Progress& place : without.of("train")) EXPECT_FALSE(place.loss);
}

TEST_F(ToldRun, NotesMoreStepsThanTheEpochsHave) {
  const auto note = [&](const Words& words) -> std::string {
    Listens listens;
    told(listens, words);
    return listens.notes.front().starts_with("train.max_steps") ? listens.notes.front() : "none";
  };
  EXPECT_EQ(note({"train.max_steps=2"}), "none");
  EXPECT_EQ(note({"train.max_steps=3"}), "none");
  EXPECT_EQ(note({"train.max_steps=4"}), "train.max_steps=4 is more than the 3 steps of 1 epoch: raise train.epochs");
  EXPECT_EQ(note({"train.epochs=2", "train.max_steps=6"}), "none");
  EXPECT_EQ(note({"train.epochs=2", "train.max_steps=7"}),
            "train.max_steps=7 is more than the 6 steps of 2 epochs: raise train.epochs");
}

TEST_F(ToldRun, HasASampleOfMemoryBehindEachStep) {
  Listens listens;
  const ExperimentResult result = told(listens, {"train.epochs=2"});
  ASSERT_EQ(result.timeline.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(result.timeline[i].step, static_cast<std::int64_t>(i + 1));
    EXPECT_GT(result.timeline[i].requested_bytes, 4 * result.parameters);
    EXPECT_LE(result.timeline[i].peak_allocated_bytes, result.memory.allocated_bytes.peak);
  }
  EXPECT_EQ(result.parameters, 784 * 8 + 8 + 8 * 8 + 8 + 8 * 10 + 10);
  EXPECT_EQ(result.examples, 100);
  EXPECT_EQ(result.planned_steps, 6);
}

TEST_F(ToldRun, TellsWhatThereIsOfItWhenItBreaksOff) {
  const auto broken = [&](const std::string& entering) {
    Listens listens;
    listens.fails_entering = entering;
    EXPECT_THROW(told(listens, {"train.epochs=2", "train.warmup_steps=9"}), std::runtime_error) << entering;
    EXPECT_THAT(listens.broken, SizeIs(1)) << entering;
    return listens.broken.empty() ? ExperimentResult() : listens.broken.front();
  };
  for (const char* early : {"reading the data", "making the model", "step 1 of 6"}) {
    EXPECT_EQ(broken(early).steps, 0) << early;
    EXPECT_THAT(broken(early).losses, IsEmpty()) << early;
  }
  const ExperimentResult third = broken("step 3 of 6");
  EXPECT_EQ(third.steps, 2);
  EXPECT_EQ(third.warmup_steps, 2) << "no more than there were";
  EXPECT_THAT(third.losses, SizeIs(2));
  EXPECT_THAT(third.epochs, IsEmpty());
  EXPECT_EQ(third.test_accuracy, 0);
  EXPECT_GT(third.seconds, 0);
  EXPECT_GT(third.memory.requested_bytes.peak, 4 * third.parameters);
  const ExperimentResult test = broken("the test of epoch 2");
  EXPECT_EQ(test.steps, 6);
  EXPECT_THAT(test.epochs, SizeIs(1));
  EXPECT_EQ(test.test_accuracy, test.epochs.front().test_accuracy);
}

TEST_F(ToldRun, ThatIsStoppedEndsBehindTheStepAndSaysSo) {
  Listens listens;
  listens.stops_at = 2;
  const ExperimentResult part = told(listens, {"train.epochs=2", "train.warmup_steps=9"}, {.file = folder / "state"});
  EXPECT_TRUE(part.interrupted);
  EXPECT_EQ(part.steps, 2);
  EXPECT_EQ(part.kept_step, 2);
  EXPECT_EQ(part.warmup_steps, 2);
  EXPECT_THAT(part.epochs, IsEmpty());
  EXPECT_THAT(listens.entered, Not(Contains("the test of epoch 1")));
  EXPECT_THAT(listens.of("train"), SizeIs(2));

  Listens again;
  const ExperimentResult whole =
      told(again, {"train.epochs=2", "train.warmup_steps=9"}, {.file = folder / "state", .go_on = true});
  EXPECT_THAT(again.earlier_steps, ElementsAre(2)) << "those of the part before, once";
  EXPECT_THAT(again.notes, Contains("going on after step 2 of 6"));
  EXPECT_THAT(again.entered, Contains("step 3 of 6"));
  EXPECT_THAT(again.entered, Not(Contains("step 2 of 6")));
  EXPECT_EQ(whole.steps, 6);
  EXPECT_FALSE(whole.interrupted);
  EXPECT_EQ(whole.kept_step, 2) << "nothing was kept since";
  EXPECT_THAT(whole.epochs, SizeIs(2));
}

TEST_F(ToldRun, FromASavedStateBeginsFiguresOfItsOwn) {
  const std::string file = "\"" + (folder / "saved").string() + "\"";
  Listens first, second;
  told(first, {"train.epochs=2", "train.stop_at=4", "train.save=" + file});
  const ExperimentResult rest = told(second, {"train.epochs=2", "train.resume=" + file});
  EXPECT_THAT(second.earlier_steps, IsEmpty()) << "they are another run's";
  EXPECT_EQ(rest.steps, 2);
  EXPECT_EQ(rest.kept_step, 0);
  EXPECT_THAT(second.notes, Contains("going on after step 4 of 6"));
  const auto resumed = std::ranges::find(rest.figures, "resumed_at_step", &std::pair<std::string, double>::first);
  ASSERT_NE(resumed, rest.figures.end());
  EXPECT_EQ(resumed->second, 4);
  const auto steps = second.of("train");
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_NEAR(steps[0].learning_rate.value_or(0), 0.5 * (1 - 4.0 / 6), 1e-12) << "where the course had come to";
  EXPECT_EQ(steps[0].epoch, 2);
}

TEST_F(ToldRun, IsRefusedForSizesThatDoNotFit) {
  const auto refusal = [&](const Words& words) -> std::string {
    Listens listens;
    try {
      told(listens, words);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal({"train.batch_size=101"}),
              HasSubstr("train.batch_size: 101 is more than the 100 training examples"));
  EXPECT_EQ(refusal({"train.batch_size=100"}), "accepted");
  EXPECT_THAT(refusal({"train.micro_batches=33"}), HasSubstr("train.micro_batches: 33 parts of a batch of 32"));
  EXPECT_EQ(refusal({"train.micro_batches=32"}), "accepted");
  const std::string none = (folder / "none").string();
  EXPECT_THAT(refusal({"train.resume=\"" + none + "\""}),
              HasSubstr("train.resume: there is no saved state '" + none + "'"));
}

// A model of one linear layer has something to make integers of.
TEST_F(ToldRun, MakesIntegersOfTheOnlyLinearLayer) {
  Listens listens;
  const ExperimentResult result =
      told(listens, {"model.name=\"resnet8\"", "train.max_steps=1", "train.lr=0.01", "train.quantize=\"dynamic\""});
  const auto layers = std::ranges::find(result.figures, "quantized_layers", &std::pair<std::string, double>::first);
  ASSERT_NE(layers, result.figures.end());
  EXPECT_EQ(layers->second, 1);
  try {
    told(listens, {"train.quantize=\"dynamic\"", "train.precision=\"bfloat16\""});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("train.quantize: integers are made of float32: set train.precision to float32"));
  }
}

}  // namespace
}  // namespace tenon::test
