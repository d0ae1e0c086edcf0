// A training run: what it computes does not depend on where its memory lies, and it gives all of it back.
#include "train/experiment_fixture.h"

#include <tenon/core/units.h>
#include <tenon/device/memory_api.h>
#include <tenon/ops/create/factory.h>
#include <tenon/train/config/configure.h>

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <utility>

namespace tenon::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(Experiment, LossesAreEqualToTheLastBitUnderEveryAllocator) {
  for (const char* model : {"mlp", "lenet"}) {
    const std::string name = std::string("model.name=\"") + model + "\"";
    const ExperimentResult direct = run({name, "allocator.name=\"direct\"", "model.dropout=0.2"});
    ASSERT_EQ(direct.losses.size(), 20u);
    for (const char* allocator : {"caching", "expandable"}) {
      const ExperimentResult other =
          run({name, std::string("allocator.name=\"") + allocator + "\"", "model.dropout=0.2"});
      EXPECT_TRUE(same_bits(direct.losses, other.losses)) << model << " under " << allocator;
      EXPECT_EQ(direct.test_accuracy, other.test_accuracy);
      EXPECT_EQ(direct.memory.requested_bytes.peak, other.memory.requested_bytes.peak);
    }
  }
}

TEST_F(Experiment, AnotherSeedGivesOtherLosses) {
  EXPECT_FALSE(same_bits(run({"train.max_steps=3"}).losses, run({"train.max_steps=3", "train.seed=48"}).losses));
}

TEST_F(Experiment, CachingMakesNoDeviceCallAfterWarmup) {
  for (const char* model : {"mlp", "lenet"}) {
    const ExperimentResult result = run({std::string("model.name=\"") + model + "\"", "train.epochs=2"});
    EXPECT_EQ(result.steps, 40);
    EXPECT_EQ(result.device_calls_after_warmup, 0) << model;
  }
  EXPECT_GT(run({"allocator.name=\"direct\""}).device_calls_after_warmup, 0);
}

TEST_F(Experiment, KnowsInWhichPhaseItsPeakLies) {
  const auto held = [](const ExperimentResult& result, Purpose purpose) {
    return result.peak.requested_by_purpose[static_cast<std::size_t>(purpose)];
  };
  const auto peak = [](const ExperimentResult& result, Purpose purpose) {
    return result.memory.requested_by_purpose[static_cast<std::size_t>(purpose)].peak;
  };
  const auto small = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"model.hidden=4", "train.max_steps=1"});
    return run(more);
  };
  const ExperimentResult tested = small({"train.batch_size=2", "train.test_batch_size=100"});
  EXPECT_EQ(tested.peak.phase, RunPhase::kTesting);
  EXPECT_EQ(tested.peak.allocated_bytes, tested.memory.allocated_bytes.peak);
  const ExperimentResult trained = small({"train.batch_size=640", "train.test_batch_size=1"});
  EXPECT_TRUE(trained.peak.phase == RunPhase::kForward || trained.peak.phase == RunPhase::kBackward);
  EXPECT_EQ(held(trained, Purpose::kData), peak(trained, Purpose::kData));
  // The first update makes the state of the optimiser, beside all gradients.
  const ExperimentResult updated = run({"train.max_steps=1", "train.batch_size=1", "train.test_batch_size=1"});
  EXPECT_EQ(updated.peak.phase, RunPhase::kUpdate);
  EXPECT_EQ(held(updated, Purpose::kOptimizerState), peak(updated, Purpose::kOptimizerState));
}

TEST_F(Experiment, LearnsStripes) {
  const ExperimentResult result = run({"train.epochs=5", "train.lr=0.003"});
  EXPECT_LT(result.epochs.back().train_loss, 0.5 * result.epochs.front().train_loss);
  EXPECT_GT(result.test_accuracy, 0.9);
}

TEST_F(Experiment, GivesAllMemoryBack) {
  run({"model.name=\"lenet\"", "train.max_steps=3"});
  EXPECT_EQ(live_bytes, 0);
}

TEST_F(Experiment, EveryPurposeIsAttributed) {
  const ExperimentResult result = run({"train.max_steps=3"});
  const auto peak = [&](Purpose purpose) {
    return result.memory.requested_by_purpose[static_cast<std::size_t>(purpose)].peak;
  };
  EXPECT_EQ(peak(Purpose::kParameter), result.parameters * 4);
  EXPECT_EQ(peak(Purpose::kOptimizerState), result.parameters * 8);  // two moments
  EXPECT_GE(peak(Purpose::kGradient), result.parameters * 4);        // and those that only pass through
  EXPECT_GT(peak(Purpose::kActivation), 0);
  EXPECT_GE(peak(Purpose::kData), (640 + 100) * 28 * 28);
}

TEST_F(Experiment, OfSixteenBitsLearnsInHalfTheMemory) {
  const ExperimentResult full = run({"train.max_steps=40"});
  const ExperimentResult half = run({"train.max_steps=40", "train.precision=\"bfloat16\""});
  const auto peak = [](const ExperimentResult& of, Purpose purpose) {
    return of.memory.requested_by_purpose[static_cast<std::size_t>(purpose)].peak;
  };
  for (const Purpose purpose : {Purpose::kParameter, Purpose::kOptimizerState})
    EXPECT_EQ(2 * peak(half, purpose), peak(full, purpose));
  EXPECT_LT(half.losses.back(), 0.8 * half.losses.front());
  EXPECT_NEAR(half.losses.back(), full.losses.back(), 0.1 * full.losses.front());
}

TEST_F(Experiment, MicroBatchesAddUpToTheBatch) {
  const ExperimentResult whole = run({"train.precision=\"float64\"", "train.optimizer=\"sgd\"", "train.lr=0.01"});
  const ExperimentResult parts =
      run({"train.precision=\"float64\"", "train.optimizer=\"sgd\"", "train.lr=0.01", "train.micro_batches=4"});
  ASSERT_EQ(whole.losses.size(), parts.losses.size());
  for (std::size_t i = 0; i < whole.losses.size(); ++i) EXPECT_NEAR(whole.losses[i], parts.losses[i], 1e-9) << i;
}

TEST_F(Experiment, MicroBatchesOfDifferentSizesCountByTheirExamples) {
  const std::vector<std::string> words = {"train.precision=\"float64\"", "train.optimizer=\"sgd\"", "train.lr=0.1",
                                          "train.max_steps=6"};
  const ExperimentResult whole = run(words);
  for (const char* parts : {"train.micro_batches=3", "train.micro_batches=5", "train.micro_batches=32"}) {
    std::vector<std::string> more = words;
    more.emplace_back(parts);
    const ExperimentResult divided = run(more);
    ASSERT_EQ(whole.losses.size(), divided.losses.size());
    for (std::size_t i = 0; i < whole.losses.size(); ++i)
      EXPECT_NEAR(whole.losses[i], divided.losses[i], 1e-9) << parts << ", step " << i;
  }
  EXPECT_THROW(run({"train.micro_batches=33"}), ConfigError) << "more parts than the 32 examples of a batch";
}

TEST_F(Experiment, TheLossOfAnEpochIsTheMeanOfItsSteps) {
  const ExperimentResult result = run({"train.epochs=2", "data.limit=160", "train.max_steps=8"});
  ASSERT_EQ(result.losses.size(), 8u);
  ASSERT_EQ(result.epochs.size(), 2u);
  const auto mean = [&](std::size_t first, std::size_t count) {
    double sum = 0;
    for (std::size_t i = first; i < first + count; ++i) sum += result.losses[i];
    return sum / static_cast<double>(count);
  };
  EXPECT_EQ(result.epochs[0].epoch, 1);
  EXPECT_NEAR(result.epochs[0].train_loss, mean(0, 5), 1e-12);
  EXPECT_EQ(result.epochs[1].epoch, 2);
  EXPECT_NEAR(result.epochs[1].train_loss, mean(5, 3), 1e-12) << "cut off by max_steps";
  EXPECT_EQ(result.test_accuracy, result.epochs[1].test_accuracy);
  ASSERT_EQ(result.timeline.size(), 8u);
  EXPECT_EQ(result.timeline.front().step, 1);
  EXPECT_EQ(result.timeline.back().step, 8);
}

TEST_F(Experiment, TheTestDoesNotDependOnHowManyExamplesAreTestedAtOnce) {
  const std::vector<std::string> words = {"train.precision=\"float64\"", "train.max_steps=3", "data.test_limit=90"};
  std::vector<ExperimentResult> results;
  for (const char* at_once : {"train.test_batch_size=90", "train.test_batch_size=40", "train.test_batch_size=1"}) {
    std::vector<std::string> more = words;
    more.emplace_back(at_once);
    results.push_back(run(more));
    EXPECT_NEAR(results.back().epochs.back().test_loss, results.front().epochs.back().test_loss, 1e-9) << at_once;
    EXPECT_EQ(results.back().test_accuracy, results.front().test_accuracy) << at_once;
  }
}

TEST_F(Experiment, StepsEndWhereTheLowestOfTheirLimitsIs) {
  const auto warnings = [&] {
    std::erase_if(sink.notes, [](const std::string& note) { return note.starts_with("epoch "); });
    return std::exchange(sink.notes, {});
  };
  EXPECT_EQ(run({"train.epochs=1"}).steps, 20) << "640 examples, 32 at once";
  EXPECT_THAT(warnings(), IsEmpty());
  EXPECT_EQ(run({"train.epochs=1", "train.max_steps=21"}).steps, 20);
  EXPECT_THAT(warnings(), ElementsAre("train.max_steps=21 is more than the 20 steps of 1 epoch: raise train.epochs"));
  EXPECT_EQ(run({"train.epochs=2", "train.max_steps=40"}).steps, 40);
  EXPECT_THAT(warnings(), IsEmpty());
  EXPECT_EQ(run({"train.epochs=2", "train.max_steps=25", "train.stop_at=23"}).planned_steps, 23);
  EXPECT_EQ(run({"train.epochs=1", "train.stop_at=23"}).planned_steps, 20);
  const ExperimentResult few = run({"train.max_steps=3", "train.warmup_steps=10"});
  EXPECT_EQ(few.warmup_steps, 3);
  EXPECT_EQ(few.device_calls_after_warmup, 0) << "there is no step behind the warm-up";
}

TEST_F(Experiment, ALossThatIsNotFiniteIsNotedOnce) {
  const ExperimentResult result = run({"train.optimizer=\"sgd\"", "train.lr=1000000", "train.max_steps=8"});
  EXPECT_FALSE(std::isfinite(result.losses.back()));
  int noted = 0;
  for (const std::string& note : sink.notes) noted += note.find("the loss is not finite") != std::string::npos ? 1 : 0;
  EXPECT_EQ(noted, 1);
}

TEST_F(Experiment, InplaceActivationsAndZeroedGradientsChangeNoLoss) {
  const ExperimentResult plain = run({"model.name=\"lenet\""});
  const ExperimentResult inplace = run({"model.name=\"lenet\"", "train.inplace_activations=true"});
  const ExperimentResult zeroed = run({"model.name=\"lenet\"", "train.zero_grad=\"zero\""});
  EXPECT_TRUE(same_bits(plain.losses, inplace.losses));
  EXPECT_TRUE(same_bits(plain.losses, zeroed.losses));
}

TEST_F(Experiment, EveryOptimiserLowersTheLoss) {
  for (const char* optimizer : {"sgd", "adam", "adamw", "rmsprop", "adagrad"}) {
    const ExperimentResult result =
        run({std::string("train.optimizer=\"") + optimizer + "\"", "train.epochs=2", "train.momentum=0.5"});
    EXPECT_LT(result.epochs[1].train_loss, result.epochs[0].train_loss) << optimizer;
  }
}

TEST_F(Experiment, OutOfMemoryInTheMiddleOfAStepIsReportedAndLeaksNothing) {
  try {
    run({"model.name=\"lenet\"", "train.batch_size=320", "allocator.layers=[\"limit\"]",
         "allocator.limit.bytes=\"12MiB\""});
    FAIL() << "12 MiB were enough";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::kOutOfMemory);
    EXPECT_GT(error.info().requested_bytes, 0u);
    EXPECT_THAT(error.what(), HasSubstr("MiB"));
  }
  EXPECT_EQ(device_state(Device(kCPU, 0)).allocator().stats().requested_bytes.current, 0);
}

TEST_F(Experiment, AStepThatRanOutOfMemoryIsTakenOnceMoreAfterATrim) {
  const ExperimentResult plain = run({"model.name=\"lenet\"", "model.dropout=0.2"});
  EXPECT_EQ(plain.oom_recoveries, 0);
  // A request for an activation fails, in the middle of a forward pass; by then the step drew random numbers.
  const ExperimentResult survived = run({"model.name=\"lenet\"", "model.dropout=0.2", "allocator.layers=[\"inject\"]",
                                         "allocator.inject.nth=40", "allocator.inject.purpose=\"activation\""});
  EXPECT_EQ(survived.oom_recoveries, 1);
  EXPECT_TRUE(same_bits(plain.losses, survived.losses));
  EXPECT_EQ(live_bytes, 0);
}

// Whichever request of a step fails: before the first random number is drawn, between two, and after the last.
TEST_F(Experiment, AStepThatIsTakenOnceMoreDrawsTheSameRandomNumbers) {
  const std::vector<std::string> words = {"model.name=\"lenet\"", "model.dropout=0.5", "train.max_steps=4"};
  const ExperimentResult plain = run(words);
  int recovered = 0;
  for (int nth = 30; nth <= 54; nth += 2) {
    std::vector<std::string> more = words;
    more.insert(more.end(), {"allocator.layers=[\"inject\"]", "allocator.inject.nth=" + std::to_string(nth),
                             "allocator.inject.purpose=\"activation\""});
    try {
      const ExperimentResult survived = run(more);
      recovered += survived.oom_recoveries > 0 ? 1 : 0;
      EXPECT_TRUE(same_bits(plain.losses, survived.losses)) << "request " << nth;
    } catch (const OutOfMemory&) {  // nothing was cached that a trim could give back
    }
  }
  EXPECT_GE(recovered, 5);
}

// What batch norms remember of a batch, too: the first try has updated some of them.
TEST_F(Experiment, AStepThatIsTakenOnceMoreUpdatesRunningStatisticsOnce) {
  const std::vector<std::string> words = {"model.name=\"unet\"", "model.hidden=16", "model.layers=1",
                                          "train.max_steps=3"};
  const ExperimentResult plain = run(words);
  int recovered = 0;
  for (int nth = 20; nth <= 110; nth += 10) {
    std::vector<std::string> more = words;
    more.insert(more.end(), {"allocator.layers=[\"inject\"]", "allocator.inject.nth=" + std::to_string(nth),
                             "allocator.inject.purpose=\"activation\""});
    try {
      const ExperimentResult survived = run(more);
      recovered += survived.oom_recoveries > 0 ? 1 : 0;
      EXPECT_TRUE(same_bits(plain.losses, survived.losses)) << "request " << nth;
      EXPECT_EQ(plain.epochs.back().test_loss, survived.epochs.back().test_loss) << "request " << nth;
    } catch (const OutOfMemory&) {  // nothing was cached, or it was in the test
    }
  }
  EXPECT_GE(recovered, 3);
}

TEST_F(Experiment, UnderALimitWhatIsCachedIsGivenBackInTheMiddleOfAStepAndTheRunGoesOn) {
  const std::vector<std::string> settings{"model.name=\"lenet\"", "train.batch_size=53", "allocator.layers=[\"limit\"]",
                                          "allocator.limit.bytes=\"44MiB\""};
  const ExperimentResult roomy = run(settings);
  ASSERT_EQ(roomy.memory.policy.retries, 0);
  // Something ran before and left 40 MiB in the cache, of no use to the small blocks of this model.
  before_training = [] { empty({40 << 20}, kUInt8); };
  const ExperimentResult tight = run(settings);
  EXPECT_GT(tight.memory.policy.retries, 0);
  EXPECT_LE(tight.memory.reserved_bytes.peak, 44 << 20);
  EXPECT_TRUE(same_bits(roomy.losses, tight.losses));
  EXPECT_EQ(live_bytes, 0);
}

TEST_F(Experiment, ABatchLargerThanTheDataNamesBoth) {
  try {
    run({"train.batch_size=641"});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("641 is more than the 640 training examples"));
  }
}

TEST_F(Experiment, AFileSetsAProgramUp) {
  shutdown();
  const std::filesystem::path file = folder / "experiment.toml";
  std::ofstream(file) << "[allocator]\nname = \"expandable\"\n[device]\nname = \"simulated:0\"\n"
                         "[device.simulated]\ncapacity = \"2GiB\"\n[train]\nepochs = 3\n[sweep]\n"
                         "\"allocator.name\" = [\"direct\", \"caching\"]\n";
  const ExperimentConfig config = configure(file, {"train.batch_size=7"});
  EXPECT_EQ(config.section("train").integer("batch_size"), 7);
  EXPECT_EQ(memory_allocated(config.device), 0u);
  EXPECT_EQ(device_state(config.device).allocator().config().policy.name, "expandable") << "a sweep is not for it";
  EXPECT_EQ(mem_get_info(config.device).total_bytes, 2 * GiB);
  EXPECT_THROW(configure(file), ConfigError) << "the device is open";
}

}  // namespace
}  // namespace tenon::test
