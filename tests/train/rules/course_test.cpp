// The course of a run: which examples a step sees, what counts as warm-up, when its state is kept, and what serving
// counts.
#include "train/experiment_fixture.h"

#include <tenon/core/units.h>
#include <tenon/train/model.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <numeric>

namespace tenon::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

class Course : public Experiment {
 protected:
  /// Three steps an epoch of a small network.
  ExperimentResult course(Words more) {
    Words words{"model.hidden=8", "data.limit=96", "data.test_limit=32", "train.test_batch_size=32"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  std::map<std::string, double> figures_of(const ExperimentResult& result) {
    return {result.figures.begin(), result.figures.end()};
  }
};

TEST_F(Course, AnEpochSeesEachExampleOnce) {
  const Words still = {"train.lr=0.0", "train.optimizer=\"sgd\"", "train.precision=\"float64\"", "train.shuffle=false"};
  const auto with = [&](Words more) {
    more.insert(more.end(), still.begin(), still.end());
    return course(more).losses;
  };
  const std::vector<double> parts = with({"train.epochs=2"}), whole = with({"train.batch_size=96"});
  ASSERT_EQ(parts.size(), 6U);
  ASSERT_EQ(whole.size(), 1U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(parts[i], parts[i + 3]) << "the same order in each epoch";
  EXPECT_NE(parts[0], parts[1]);
  EXPECT_NE(parts[1], parts[2]);
  EXPECT_NEAR((parts[0] + parts[1] + parts[2]) / 3, whole[0], 1e-12);
  const std::vector<double> one_by_one = with({"train.batch_size=1", "data.limit=5"});
  EXPECT_NEAR(std::accumulate(one_by_one.begin(), one_by_one.end(), 0.0) / 5,
              with({"train.batch_size=5", "data.limit=5"}).at(0), 1e-12);
}

TEST_F(Course, ShufflingShowsTheSameExamplesInAnotherOrderEachEpoch) {
  const std::vector<double> parts =
      course({"train.lr=0.0", "train.optimizer=\"sgd\"", "train.precision=\"float64\"", "train.epochs=2"}).losses;
  ASSERT_EQ(parts.size(), 6U);
  EXPECT_NE(parts[0], parts[3]);
  EXPECT_NEAR(parts[0] + parts[1] + parts[2], parts[3] + parts[4] + parts[5], 1e-9);
}

TEST_F(Course, WarmUpEndsWithTheRun) {
  EXPECT_EQ(course({"train.max_steps=1", "train.warmup_steps=10"}).warmup_steps, 1);
  EXPECT_EQ(course({"train.max_steps=2", "train.warmup_steps=10"}).warmup_steps, 2);
  EXPECT_EQ(course({"train.warmup_steps=2"}).warmup_steps, 2);
  EXPECT_EQ(course({"train.warmup_steps=0"}).warmup_steps, 0);
}

TEST_F(Course, CallsOfTheDeviceAreCountedBehindTheWarmUp) {
  const auto calls = [&](const char* warmup) {
    return course({"allocator.name=\"direct\"", std::string("train.warmup_steps=") + warmup}).device_calls_after_warmup;
  };
  const std::int64_t all = calls("0"), some = calls("1"), last = calls("2");
  EXPECT_GT(last, 0);
  EXPECT_GT(some, last);
  EXPECT_GT(all, some);
  EXPECT_EQ(calls("3"), 0);
}

TEST_F(Course, TheStateIsKeptAfterEverySoManySteps) {
  state = {.file = folder / "state", .go_on = false};
  EXPECT_EQ(course({"train.save_every=1"}).kept_step, 3);
  EXPECT_EQ(course({"train.save_every=2"}).kept_step, 2);
  EXPECT_EQ(course({"train.save_every=3"}).kept_step, 3);
  EXPECT_EQ(course({"train.save_every=4"}).kept_step, 0);
  EXPECT_EQ(course({}).kept_step, 0);
}

TEST_F(Course, AScaleOfTheLossIsAFigureWhereThereIsOne) {
  EXPECT_TRUE(figures_of(course({"train.precision=\"float16-mixed\"", "train.max_steps=1"})).contains("loss_scale"));
  EXPECT_FALSE(figures_of(course({"train.precision=\"bfloat16-mixed\"", "train.max_steps=1"})).contains("loss_scale"));
  EXPECT_FALSE(figures_of(course({"train.max_steps=1"})).contains("loss_scale"));
}

TEST_F(Course, AStepIsNotTriedAgainWhereNothingWasCached) {
  try {
    course({"allocator.name=\"direct\"", "allocator.layers=[\"inject\"]", "allocator.inject.nth=9",
            "allocator.inject.purpose=\"activation\""});
    FAIL() << "the request was to fail";
  } catch (const OutOfMemory&) {
  }
  EXPECT_THAT(sink.notes, Not(Contains(HasSubstr("cached memory given back"))));
}

TEST_F(Course, IntegersAreComparedInOneSentence) {
  const ExperimentResult result = course({"train.quantize=\"dynamic\""});
  std::map<std::string, double> figures = figures_of(result);
  const auto bytes = [&](const std::string& name) { return format_bytes(static_cast<std::size_t>(figures.at(name))); };
  EXPECT_EQ(sink.notes.back(),
            fmt::format("dynamic: test accuracy {:.2f} to {:.2f} %, parameters {} to {}, peak of inference {} to {}, "
                        "{:.3f} to {:.3f} s",
                        100 * figures.at("float_test_accuracy"), 100 * figures.at("quantized_test_accuracy"),
                        bytes("float_parameter_bytes"), bytes("quantized_parameter_bytes"),
                        bytes("float_inference_peak_bytes"), bytes("quantized_inference_peak_bytes"),
                        figures.at("float_inference_seconds"), figures.at("quantized_inference_seconds")));
}

class ServingCourse : public Course {
 protected:
  /// Requests that come as good as at once, with prompts of four symbols, three symbols for each. A position takes 256
  /// bytes: keys and values of two layers, of sixteen floats each.
  std::map<std::string, double> served(Words more) {
    Words words{"model.name=\"gpt\"",   "model.hidden=16",    "model.layers=2",     "model.heads=4",
                "model.context=16",     "serve.requests=1",   "serve.arrivals=1e6", "serve.prompt_min=4",
                "serve.prompt_max=4",   "serve.output_min=3", "serve.output_max=3", "serve.page=4",
                "serve.cache=\"paged\""};
    words.insert(words.end(), more.begin(), more.end());
    last_ = run(words);
    return figures_of(last_);
  }
  ExperimentResult last_;
  static constexpr double kPosition = 256;
};

TEST_F(ServingCourse, ARequestTakesAStepForEachSymbol) {
  const auto figures = served({});
  EXPECT_EQ(last_.steps, 3);
  EXPECT_EQ(figures.at("served_requests"), 1);
  EXPECT_EQ(figures.at("generated_symbols"), 3);
  EXPECT_EQ(figures.at("most_at_once"), 1);
  EXPECT_EQ(figures.at("mean_at_once"), 1);
  EXPECT_EQ(figures.at("given_up"), 0);
}

TEST_F(ServingCourse, WasteIsWhatIsReservedBeyondThePositionsThatAreKept) {
  // Behind the three steps 4, 5 and 6 positions are kept.
  const auto pages = served({});
  EXPECT_EQ(pages.at("kv_peak_bytes"), 8 * kPosition);
  EXPECT_EQ(pages.at("kv_used_at_peak_bytes"), 5 * kPosition) << "when it was first that high";
  EXPECT_NEAR(pages.at("kv_waste"), (0.0 + 3.0 / 8 + 2.0 / 8) / 3, 1e-12);
  const auto small = served({"serve.page=2"});
  EXPECT_EQ(small.at("kv_peak_bytes"), 6 * kPosition);
  EXPECT_NEAR(small.at("kv_waste"), (0.0 + 1.0 / 6 + 0.0) / 3, 1e-12);
  const auto whole = served({"serve.cache=\"contiguous\""});
  EXPECT_EQ(whole.at("kv_peak_bytes"), 16 * kPosition);
  EXPECT_EQ(whole.at("kv_used_at_peak_bytes"), 4 * kPosition);
  EXPECT_NEAR(whole.at("kv_waste"), 1 - (4.0 + 5 + 6) / 3 / 16, 1e-12);
  const auto growing = served({"serve.cache=\"growing\""});
  EXPECT_EQ(growing.at("kv_peak_bytes"), 6 * kPosition);
  EXPECT_EQ(growing.at("kv_waste"), 0);
}

TEST_F(ServingCourse, AsManyRunAtOnceAsAreAskedForAndAsFit) {
  EXPECT_EQ(served({"serve.requests=5"}).at("most_at_once"), 5) << "while the first still ran";
  EXPECT_EQ(last_.steps, 4) << "the others a moment after the first, whose step had begun";
  const auto two = served({"serve.requests=5", "serve.most_at_once=2"});
  EXPECT_EQ(two.at("most_at_once"), 2);
  EXPECT_EQ(last_.steps, 9) << "in twos";
  EXPECT_NEAR(two.at("mean_at_once"), 15.0 / 9, 1e-12);
  const std::string room = fmt::format("serve.kv_memory={}", 3 * 16 * static_cast<int>(kPosition));
  const auto three = served({"serve.requests=5", "serve.cache=\"contiguous\"", room});
  EXPECT_EQ(three.at("most_at_once"), 3);
  EXPECT_EQ(three.at("kv_peak_bytes"), 3 * 16 * kPosition) << "all of it";
  EXPECT_EQ(three.at("served_requests"), 5);
}

TEST_F(ServingCourse, OneThatGivesUpIsComputedAgainAndGetsTheSameSymbols) {
  // Three pages each in the end: where the first has come to its third, the second's two are too many for four.
  const Words longer = {"serve.requests=2", "serve.output_min=6", "serve.output_max=6"};
  const auto with = [&](Words more) {
    more.insert(more.end(), longer.begin(), longer.end());
    return served(more);
  };
  const auto ample = with({});
  EXPECT_EQ(ample.at("given_up"), 0);
  const auto scarce = with({fmt::format("serve.kv_memory={}", 4 * 4 * static_cast<int>(kPosition))});
  EXPECT_EQ(scarce.at("given_up"), 1);
  EXPECT_EQ(scarce.at("served_requests"), 2);
  EXPECT_EQ(scarce.at("tokens_hash"), ample.at("tokens_hash"));
}

TEST_F(ServingCourse, CachesThatDoNotTakeAWholeContextAreRefused) {
  const auto with = [&](int bytes) { return served({fmt::format("serve.kv_memory={}", bytes)}); };
  const int context = 16 * static_cast<int>(kPosition);
  EXPECT_NO_THROW(with(context));
  try {
    with(context - 1);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("serve.kv_memory: 4095 bytes are less than the 4096 of one request of "
                                        "model.context = 16 positions"));
  }
}

}  // namespace
}  // namespace tenon::test
