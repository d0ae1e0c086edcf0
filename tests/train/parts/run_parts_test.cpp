// Parts of a run as its figures show them: the order of its examples, clipping, tests, blocks that run again, steps
// that are tried again, and marks for whoever records.
#include "../../support/message_of.h"
#include "train/experiment_fixture.h"

#include <tenon/memory/layers/layer.h>
#include <tenon/memory/purpose.h>
#include <tenon/train/input/batches.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <memory>

namespace tenon::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

class RunParts : public Experiment {
 protected:
  void SetUp() override {
    Experiment::SetUp();
    write_letters(folder / "text", 4000);
  }
  /// Of a small network; `more` wins.
  ExperimentResult small(const Words& more) {
    Words words = {"model.hidden=8",           "data.limit=96",     "data.test_limit=32",
                   "train.test_batch_size=32", "train.max_steps=3", "train.warmup_steps=0"};
    words.insert(words.end(), more.begin(), more.end());
    sink.notes.clear();
    return run(words);
  }
  ExperimentResult small_gpt(const Words& more) {
    sink.notes.clear();
    return run_model("gpt",
                     {"model.hidden=16", "model.layers=3", "model.heads=2", "model.context=8", "train.batch_size=8",
                      "train.test_batch_size=4", "data.test_limit=6", "train.max_steps=2"},
                     more);
  }
  static double figure(const ExperimentResult& result, const std::string& name, double none = -1) {
    const auto found = std::ranges::find(result.figures, name, &std::pair<std::string, double>::first);
    return found == result.figures.end() ? none : found->second;
  }
  static void expect_near(const std::vector<double>& a, const std::vector<double>& b, double by, const char* what) {
    ASSERT_EQ(a.size(), b.size()) << what;
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], by) << what << ", step " << i + 1;
  }
};

// The order of an epoch depends on the seed and its number alone, so that other programs can show the same examples.
TEST_F(RunParts, AnEpochsOrderIsThatOfTheSeedAndItsNumber) {
  const auto losses = [&](const char* shuffle) {
    return run({"model.hidden=4", "data.limit=7", "data.test_limit=1", "train.batch_size=1", "train.epochs=3",
                "train.lr=0.0", "train.optimizer=\"sgd\"", "train.seed=5", std::string("train.shuffle=") + shuffle})
        .losses;
  };
  const std::vector<double> in_order = losses("false"), shuffled = losses("true");
  ASSERT_EQ(shuffled.size(), 21U);
  for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
    const std::vector<std::int64_t> order = train::epoch_order(7, 5 * 1'000'003 + epoch, true);
    for (std::size_t i = 0; i < 7; ++i)
      EXPECT_EQ(shuffled[7 * (epoch - 1) + i], in_order[static_cast<std::size_t>(order[i])]) << "epoch " << epoch;
  }
}

/// Takes down what the allocator is told of.
class TakesDownMarks final : public LayerAllocator {
 public:
  TakesDownMarks(std::unique_ptr<Allocator> inner, std::shared_ptr<std::vector<std::string>> marks)
      : LayerAllocator(std::move(inner)), marks_(std::move(marks)) {}
  void mark(std::string_view name) override { marks_->emplace_back(name); }

 private:
  std::shared_ptr<std::vector<std::string>> marks_;
};

TEST_F(RunParts, StepsAndTestsAreMarkedForWhoeverRecords) {
  const auto marks = std::make_shared<std::vector<std::string>>();
  add_private_layer(
      {.name = "marks",
       .summary = "takes down marks",
       .options = {},
       .create = [marks](std::unique_ptr<Allocator> inner, const LayerContext&) -> std::unique_ptr<LayerAllocator> {
         return std::make_unique<TakesDownMarks>(std::move(inner), marks);
       },
       .wrap_source = {}});
  change_config = [](ExperimentConfig& config) {
    config.allocator.layers.insert(config.allocator.layers.begin(), {"marks", Options()});
  };
  small({"train.batch_size=48", "train.epochs=2", "train.max_steps=4"});
  EXPECT_THAT(*marks, ElementsAre("step 1", "step 2", "test 1", "step 3", "step 4", "test 2"));
  marks->clear();
  run_model("gpt",
            {"model.hidden=8", "model.heads=2", "model.context=16", "serve.requests=1", "serve.prompt_min=2",
             "serve.prompt_max=2", "serve.output_min=2", "serve.output_max=2"},
            {});
  EXPECT_THAT(*marks, ElementsAre("step 1", "step 2"));
}

// Half the norm at twice the rate is the same step.
TEST_F(RunParts, GradientsAreClippedToTheirNorm) {
  const auto losses = [&](const char* clip, const char* rate, const Words& more = {}) {
    Words words = {std::string("train.clip_grad_norm=") + clip, std::string("train.lr=") + rate,
                   "train.optimizer=\"sgd\"", "train.momentum=0.0"};
    words.insert(words.end(), more.begin(), more.end());
    return small(words).losses;
  };
  const std::vector<double> clipped = losses("0.02", "1.0"), same = losses("0.01", "2.0"), plain = losses("0.0", "1.0");
  expect_near(clipped, same, 1e-4, "half the norm");
  EXPECT_GT(std::abs(clipped[2] - plain[2]), 0.01) << "it is less than the norm";
  expect_near(losses("1000.0", "1.0"), plain, 1e-6, "a norm that is not reached");
  expect_near(losses("0.02", "1.0", {"train.micro_batches=4"}), clipped, 1e-4, "of all parts together");
  expect_near(losses("0.02", "1.0", {"train.precision=\"float16-mixed\""}), clipped, 2e-2, "without the scale");
}

TEST_F(RunParts, ATestDropsNothingAndKeepsNoHistory) {
  const Words still = {"train.lr=0.0", "train.optimizer=\"sgd\"", "train.max_steps=1"};
  const auto with = [&](const Words& more) {
    Words words = still;
    words.insert(words.end(), more.begin(), more.end());
    return small(words);
  };
  const double plain = with({}).epochs.at(0).test_loss;
  EXPECT_EQ(with({"model.dropout=0.5"}).epochs.at(0).test_loss, plain);
  EXPECT_NE(with({"model.dropout=0.5"}).losses.at(0), with({}).losses.at(0));
  const auto peak = [&](const char* no_grad) {
    const ExperimentResult result = with({"train.batch_size=1", "model.layers=6", "model.hidden=64",
                                          "data.test_limit=100", "train.test_batch_size=100", no_grad});
    return result.memory.requested_by_purpose[static_cast<std::size_t>(Purpose::kActivation)].peak;
  };
  EXPECT_GT(peak("train.eval_no_grad=false"), peak("train.eval_no_grad=true") + 2 * 100 * 64 * 4);
}

TEST_F(RunParts, AccuracyCountsWhatHasAnAnswer) {
  const auto answers = [&](const ExperimentResult& result, double count) {
    const double right = result.test_accuracy * count;
    EXPECT_NEAR(right, std::round(right), 1e-9) << count;
    EXPECT_GE(right, 0);
    EXPECT_LE(right, count);
    return right;
  };
  answers(small({}), 32);
  answers(small_gpt({}), 6 * 8);  // of each position
  answers(run_model("bert", {"model.hidden=16", "model.heads=2", "model.context=8", "data.test_limit=6"},
                    {"train.max_steps=1", "train.batch_size=4"}),
          6);
  const ExperimentResult pixels = small({"model.name=unet", "model.hidden=2", "model.layers=1", "train.max_steps=1",
                                         "train.batch_size=4", "data.test_limit=3"});
  answers(pixels, 3 * 28 * 28);
  const ExperimentResult noise =
      small({"model.name=ddpm", "model.hidden=8", "model.multipliers=\"1\"", "model.layers=1", "train.max_steps=1",
             "train.batch_size=2", "model.attention_sides=\"\"", "data.test_limit=2"});
  EXPECT_TRUE(std::isnan(noise.test_accuracy)) << "noise is not right or wrong";
}

TEST_F(RunParts, PartsAndChunksOfABatchAddUpToItsLoss) {
  const std::vector<double> plain = small_gpt({"train.optimizer=\"sgd\"", "train.lr=0.5"}).losses;
  for (const char* parts : {"train.micro_batches=2", "train.micro_batches=3", "train.chunked_loss=1",
                            "train.chunked_loss=5", "train.checkpoint=true", "train.optimizer_in_backward=true"})
    expect_near(small_gpt({"train.optimizer=\"sgd\"", "train.lr=0.5", parts}).losses, plain, 1e-4, parts);
}

TEST_F(RunParts, GradientsStayOrAreGivenBack) {
  const auto left = [&](const char* zero_grad) {
    const ExperimentResult result = small({std::string("train.zero_grad=") + zero_grad});
    return result.memory.requested_by_purpose[static_cast<std::size_t>(Purpose::kGradient)].current;
  };
  EXPECT_EQ(left("none"), 0);
  EXPECT_EQ(left("zero"), 4 * (784 * 8 + 8 + 8 * 8 + 8 + 8 * 10 + 10));
}

TEST_F(RunParts, ARunSaysHowManyOfItsBlocksRanAgain) {
  EXPECT_EQ(figure(small_gpt({}), "checkpointed_blocks"), -1);
  EXPECT_EQ(figure(small_gpt({"train.checkpoint=true"}), "checkpointed_blocks"), 3);
  EXPECT_EQ(figure(small_gpt({"train.checkpoint=true", "train.checkpoint_blocks=2"}), "checkpointed_blocks"), 2);
  const double chosen =
      figure(small_gpt({"train.checkpoint=true", "train.checkpoint_budget=0.8"}), "checkpointed_blocks");
  EXPECT_THAT(sink.notes, Contains(fmt::format(
                              "train.checkpoint_budget=0.80: the first {} of 3 blocks run again in backward", chosen)));
  EXPECT_THAT(message_of<ConfigError>([&] {
                small_gpt({"train.checkpoint=true", "train.checkpoint_budget=0.01"});
              }),
              HasSubstr("train.checkpoint_budget: 0.01 of the activations is less than what is left where all 3 blocks "
                        "run again, 0."));
}

TEST_F(RunParts, WithMatricesOfLowRankSaysHowMuchLearns) {
  const double block = 2 * ((16 + 48) + (16 + 16) + (16 + 64) + (64 + 16));
  EXPECT_EQ(figure(small_gpt({"train.lora_rank=2"}), "trained_parameters"), 3 * block);
  EXPECT_EQ(figure(small_gpt({"train.lora_rank=2", "train.lora_layers=\"qkv\""}), "trained_parameters"), 3 * 2 * 64);
  EXPECT_EQ(figure(small_gpt({}), "trained_parameters"), -1);
  EXPECT_THAT(message_of<ConfigError>([&] {
                small_gpt({"train.lora_rank=2", "train.lora_layers=\"head\""});
              }),
              HasSubstr("train.lora_layers: \"head\": "));
  EXPECT_THAT(message_of<ConfigError>([&] {
                small({"model.name=resnet8", "train.lora_rank=2"});
              }),
              HasSubstr("train.lora_rank: "));
}

TEST_F(RunParts, AStepThatIsTriedAgainIsNoted) {
  const ExperimentResult plain = small({"model.name=lenet", "model.dropout=0.2"});
  int recovered = 0;
  for (int nth = 30; nth <= 54; nth += 3) {
    try {
      const ExperimentResult result =
          small({"model.name=lenet", "model.dropout=0.2", "allocator.layers=[\"inject\"]",
                 fmt::format("allocator.inject.nth={}", nth), "allocator.inject.purpose=\"activation\""});
      EXPECT_TRUE(same_bits(result.losses, plain.losses)) << nth;
      if (result.oom_recoveries == 0) continue;
      ++recovered;
      EXPECT_EQ(result.oom_recoveries, 1);
      const auto note = std::ranges::find_if(sink.notes, [](const std::string& line) {
        return line.find(": out of memory, cached memory given back, try 2 of 3: ") != std::string::npos;
      });
      ASSERT_NE(note, sink.notes.end());
      EXPECT_THAT(*note, ::testing::AnyOf(::testing::StartsWith("step 1: "), ::testing::StartsWith("step 2: "),
                                          ::testing::StartsWith("step 3: ")));
    } catch (const OutOfMemory&) {  // nothing was cached yet
    }
  }
  EXPECT_GE(recovered, 2);
}

TEST_F(RunParts, AnUpdateThatHasBegunIsNotTriedAgain) {
  EXPECT_THROW(small({"allocator.layers=[\"inject\"]", "allocator.inject.nth=3",
                      "allocator.inject.purpose=\"optimizer_state\""}),
               OutOfMemory);
  EXPECT_THAT(sink.notes, Not(Contains(HasSubstr("given back"))));
}

TEST_F(RunParts, TakeTheThreadsThatAreSaid) {
  small({"train.threads=3"});
  EXPECT_EQ(device_state(kCPU).driver().threads(), 3);
  small({"train.threads=1"});
  EXPECT_EQ(device_state(kCPU).driver().threads(), 1);
}

TEST_F(RunParts, EveryDeviceBeginsWithTheSameParameters) {
  const std::vector<double> host = small({}).losses;
  expect_near(small({"device.name=\"simulated:0\"", "device.simulated.mode=\"backed\""}).losses, host, 1e-6,
              "simulated");
  EXPECT_NE(small({"train.seed=48"}).losses, host);
}

}  // namespace
}  // namespace tenon::test
