// The estimate of a run's memory before it: how near it comes, and that it leaves nothing behind.
#include "train/experiment_fixture.h"

#include <tenon/train/estimate/memory_estimate.h>

namespace tenon::test {
namespace {

class Estimate : public Experiment {
 protected:
  void SetUp() override {
    Experiment::SetUp();
    write_letters(folder / "text", 8000);
  }
  MemoryEstimate estimate(std::vector<std::string> overrides) {
    shutdown();
    ConfigRequest request;
    request.overrides = {"data.path=\"" + folder.string() + "\"", "train.batch_size=32", "train.threads=1"};
    request.overrides.insert(request.overrides.end(), overrides.begin(), overrides.end());
    request.use_environment = false;
    request.sections = training_sections();
    return estimate_memory(Config::load(request).experiment());
  }
  static double ratio(const Stat& estimated, const Stat& measured) {
    return static_cast<double>(estimated.peak) / static_cast<double>(measured.peak);
  }
  std::string text() const { return "data.path=\"" + (folder / "text").string() + "\""; }
};

TEST_F(Estimate, IsExactWhereKernelsNeedNoWorkspaceAndNearElsewhere) {
  const std::vector<std::vector<std::string>> experiments = {
      {"model.name=\"mlp\""},
      {"model.name=\"mlp\"", "train.checkpoint=true", "train.micro_batches=4"},
      {"model.name=\"lenet\"", "train.optimizer=\"sgd\""},
      {"model.name=\"gpt\"", "data.name=\"text\"", text(), "model.hidden=32", "model.context=32"},
  };
  for (const auto& experiment : experiments) {
    std::vector<std::string> short_run = experiment;
    short_run.insert(short_run.end(), {"train.max_steps=4", "train.test_batch_size=32"});
    const MemoryEstimate estimated = estimate(short_run);
    EXPECT_TRUE(open_devices().empty());
    const ExperimentResult measured = run(short_run);
    EXPECT_EQ(estimated.parameters, measured.parameters);
    const auto purpose = [](const MemoryStats& stats, Purpose which) {
      return stats.requested_by_purpose[static_cast<std::size_t>(which)];
    };
    for (const Purpose which : {Purpose::kParameter, Purpose::kOptimizerState, Purpose::kActivation}) {
      EXPECT_EQ(purpose(estimated.memory, which).peak, purpose(measured.memory, which).peak)
          << experiment[0] << ": " << name_of(which);
    }
    EXPECT_NEAR(ratio(estimated.memory.requested_bytes, measured.memory.requested_bytes), 1, 0.05) << experiment[0];
    EXPECT_NEAR(ratio(estimated.memory.reserved_bytes, measured.memory.reserved_bytes), 1, 0.25) << experiment[0];
  }
}

TEST_F(Estimate, EqualsTheRunThatDrawsItsParametersToTheByteWhereKernelsAddNothingAtThePeak) {
  const std::vector<std::vector<std::string>> experiments = {
      {"model.name=\"mlp\""},
      {"model.name=\"mlp\"", "allocator.name=\"direct\""},
      {"model.name=\"gpt\"", "data.name=\"text\"", text(), "model.hidden=128", "model.context=64"},
      {"model.name=\"llama\"", "data.name=\"text\"", text(), "model.hidden=128", "model.context=64"},
  };
  for (const auto& experiment : experiments) {
    std::vector<std::string> short_run = experiment;
    short_run.insert(short_run.end(), {"train.max_steps=3", "train.test_batch_size=32"});
    const MemoryStats estimated = estimate(short_run).memory;
    const MemoryStats measured = run(short_run).memory;
    EXPECT_EQ(estimated.requested_bytes.peak, measured.requested_bytes.peak) << experiment[0];
    EXPECT_EQ(estimated.allocated_bytes.peak, measured.allocated_bytes.peak) << experiment[0];
    EXPECT_EQ(estimated.reserved_bytes.peak, measured.reserved_bytes.peak) << experiment[0];
  }
}

TEST_F(Estimate, HasTheWorkspaceOfConvolutions) {
  const std::vector<std::vector<std::string>> experiments = {
      {"model.name=\"resnet18\"", "train.batch_size=4"},
      {"model.name=\"resnet18\"", "train.batch_size=4", "train.threads=2"},
      {"model.name=\"resnet18\"", "train.batch_size=4", "train.precision=\"bfloat16-mixed\""},
      {"model.name=\"unet\"", "train.batch_size=2"},
  };
  for (const auto& experiment : experiments) {
    std::vector<std::string> short_run = experiment;
    short_run.insert(short_run.end(), {"train.max_steps=1", "train.test_batch_size=4"});
    const MemoryStats estimated = estimate(short_run).memory;
    const MemoryStats measured = run(short_run).memory;
    const auto workspace = [](const MemoryStats& stats) {
      return stats.requested_by_purpose[static_cast<std::size_t>(Purpose::kWorkspace)].peak;
    };
    EXPECT_EQ(workspace(estimated), workspace(measured)) << experiment[0];
    EXPECT_NEAR(ratio(estimated.requested_bytes, measured.requested_bytes), 1, 0.005) << experiment[0];
  }
}

TEST_F(Estimate, NeedsNoMemoryForALargeModel) {
  const MemoryEstimate estimated =
      estimate({"model.name=\"gpt\"", "data.name=\"text\"", text(), "model.hidden=64", "model.layers=2",
                "model.context=512", "train.batch_size=8", "model.vocabulary=50257"});
  EXPECT_GT(estimated.memory.requested_bytes.peak, std::int64_t{2} * 8 * 512 * 50257 * 4);  // logits alone: 1.6 GB
}

// Which expert gets how many symbols is not known before the run; together they get each symbol twice.
TEST_F(Estimate, OfAMixtureOfExpertsIsNear) {
  const std::vector<std::string> short_run = {"model.name=\"moe\"", "data.name=\"text\"",     text(),
                                              "model.hidden=32",    "model.context=64",       "train.batch_size=8",
                                              "train.max_steps=3",  "train.test_batch_size=8"};
  const MemoryEstimate estimated = estimate(short_run);
  const ExperimentResult measured = run(short_run);
  EXPECT_EQ(estimated.parameters, measured.parameters);
  EXPECT_NEAR(ratio(estimated.memory.requested_bytes, measured.memory.requested_bytes), 1, 0.05);
}

TEST_F(Estimate, TheoryOfTheTransformerIsNearWhatItKeeps) {
  for (const char* more : {"train.checkpoint=false", "train.checkpoint=true", "train.micro_batches=4"}) {
    const ExperimentResult result =
        run({"model.name=\"gpt\"", "data.name=\"text\"", text(), "model.hidden=64", "model.layers=4",
             "model.context=32", "train.max_steps=3", "train.test_batch_size=1", "data.test_limit=1", more});
    double expected = 0;
    for (const auto& [name, value] : result.figures) {
      if (name == "expected_activation_bytes") expected = value;
    }
    const auto measured =
        static_cast<double>(result.memory.requested_by_purpose[static_cast<std::size_t>(Purpose::kActivation)].peak);
    EXPECT_NEAR(measured / expected, 1, 0.03) << more;
  }
}

}  // namespace
}  // namespace tenon::test
