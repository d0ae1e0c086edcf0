// `train.parallel = "pipeline"`: a model's layers in stages on several devices learn what one device learns, and the
// result says what each stage holds and, with a cost model, for how long it waits.
#include "support/expect_error.h"
#include "train/experiment_fixture.h"

#include <tenon/device/devices.h>
#include <tenon/memory/purpose.h>
#include <tenon/report/run/run_remarks.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kTwoStages = R"(device.names=["simulated:0", "simulated:1"])";
constexpr const char* kThreeStages = R"(device.names=["simulated:0", "simulated:1", "simulated:2"])";
constexpr const char* kPipeline = "train.parallel=pipeline";

class PipelineRun : public Experiment {
 protected:
  void SetUp() override {
    Experiment::SetUp();
    write_letters(folder / "text", 8000);
  }
  ExperimentResult run_of(const std::string& model, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"device.simulated.count=4", "train.max_steps=5",  "train.batch_size=16",
                                      "train.test_batch_size=16", "data.test_limit=32", "train.micro_batches=4",
                                      "model.layers=4",           "model.context=16"};
    words.push_back("model.hidden=" + std::string(model == "mlp" ? "64" : "32"));
    return run_model(model, words, more);
  }
  static double figure(const ExperimentResult& result, const char* name) {
    const auto found = std::ranges::find(result.figures, name, &std::pair<std::string, double>::first);
    return found == result.figures.end() ? -1 : found->second;
  }
};

/// Gradients of parts are added in another order. Each step makes what that rounds to larger by as much as
/// `more_each_step`.
void expect_near(const std::vector<double>& a, const std::vector<double>& b, const std::string& what,
                 double more_each_step = 0) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], 1e-4 + more_each_step * static_cast<double>(i)) << what << ", step " << i + 1;
}

TEST_F(PipelineRun, HasTheLossesOfOneDevice) {
  for (const char* model : {"mlp", "gpt", "llama", "resnet8"}) {
    const ExperimentResult one = run_of(model, {"device.name=simulated:0"});
    EXPECT_TRUE(one.devices.empty());
    for (const char* schedule : {"gpipe", "1f1b"}) {
      const ExperimentResult three =
          run_of(model, {kThreeStages, kPipeline, std::string("train.pipeline_schedule=") + schedule});
      // Without AVX-512 convolutions round otherwise, and norms of small batches make the most of it: 1.9e-4 in step 5.
      const bool has_batch_norm = std::string(model) == "resnet8";
      expect_near(three.losses, one.losses, std::string(model) + " " + schedule, has_batch_norm ? 1e-4 : 0);
      EXPECT_NEAR(three.epochs.back().test_loss, one.epochs.back().test_loss, 1e-3) << model;
      EXPECT_EQ(three.parameters, one.parameters) << model;
      ASSERT_EQ(three.devices.size(), 3U);
    }
  }
}

TEST_F(PipelineRun, ATableThatIsNotTheOutputLayerTooIsOneOfTheFirstStageAlone) {
  for (const char* model : {"gpt", "llama"}) {
    const ExperimentResult one = run_of(model, {"device.name=simulated:0", "model.tied=false"});
    expect_near(run_of(model, {kTwoStages, kPipeline, "model.tied=false"}).losses, one.losses, model);
  }
}

TEST_F(PipelineRun, ClipsByTheNormOfAllStagesAndChecksOutItsTechniques) {
  for (const char* technique : {"train.clip_grad_norm=0.05", "train.checkpoint=true", "train.optimizer=sgd",
                                "train.zero_grad=zero", "train.optimizer_states=8bit", "train.lora_rank=4"}) {
    const ExperimentResult one = run_of("gpt", {"device.name=simulated:0", technique});
    expect_near(run_of("gpt", {kThreeStages, kPipeline, technique}).losses, one.losses, technique);
  }
}

TEST_F(PipelineRun, ComputesTheLossInChunksOnItsLastStage) {
  for (const char* model : {"gpt", "llama"}) {
    for (const char* tied : {"model.tied=true", "model.tied=false"}) {
      const ExperimentResult one = run_of(model, {"device.name=simulated:0", "train.chunked_loss=4", tied});
      const ExperimentResult two = run_of(model, {kTwoStages, kPipeline, "train.chunked_loss=4", tied});
      expect_near(two.losses, one.losses, std::string(model) + " " + tied);
      EXPECT_NEAR(two.epochs.back().test_loss, one.epochs.back().test_loss, 1e-3) << "with logits";
    }
  }
}

TEST_F(PipelineRun, InMixedPrecisionHasTheLossesOfOneDevice) {
  for (const char* precision : {"train.precision=bfloat16-mixed", "train.precision=float16-mixed"}) {
    for (const char* more : {"train.clip_grad_norm=0", "train.clip_grad_norm=0.05", "train.chunked_loss=2"}) {
      const ExperimentResult one = run_of("gpt", {"device.name=simulated:0", precision, more});
      const ExperimentResult three = run_of("gpt", {kThreeStages, kPipeline, precision, more});
      ASSERT_EQ(three.losses.size(), one.losses.size());
      for (std::size_t i = 0; i < one.losses.size(); ++i)
        EXPECT_NEAR(three.losses[i], one.losses[i], 2e-3) << precision << ", " << more << ", step " << i + 1;
      EXPECT_EQ(figure(three, "loss_scale"), figure(one, "loss_scale")) << precision;
    }
  }
}

TEST_F(PipelineRun, InMixedPrecisionAStageCastsItsParametersOnceForAllMicroBatches) {
  const auto casts = [this](const char* parts) {
    const ExperimentResult result =
        run_of("gpt", {kTwoStages, kPipeline, "train.precision=bfloat16-mixed", "train.batch_size=32", parts});
    return result.devices.at(0).peak_requested_by_purpose[static_cast<std::size_t>(Purpose::kCast)];
  };
  const auto few = static_cast<double>(casts("train.micro_batches=2"));
  EXPECT_GT(few, 0);
  EXPECT_LE(static_cast<double>(casts("train.micro_batches=16")), few);
}

TEST_F(PipelineRun, SaysWhatEachStageHolds) {
  const ExperimentResult result =
      run_of("gpt", {kThreeStages, kPipeline, "train.pipeline_balance=\"2,2,3\"", "train.test_batch_size=2"});
  ASSERT_EQ(result.devices.size(), 3U);
  std::int64_t parameters = 0;
  for (const DeviceResult& device : result.devices) {
    ASSERT_TRUE(device.stage.has_value());
    parameters += device.stage->parameters;
    const auto of = [&](Purpose purpose) {
      return device.peak_requested_by_purpose[static_cast<std::size_t>(purpose)];
    };
    EXPECT_NEAR(static_cast<double>(of(Purpose::kOptimizerState)), 8.0 * static_cast<double>(device.stage->parameters),
                1000)
        << "AdamW's two moments of the stage's own parameters";
    EXPECT_GT(of(Purpose::kActivation), 0);
  }
  EXPECT_EQ(parameters, result.parameters);
  const auto layers = [&](std::size_t i) { return result.devices[i].stage->layers; };
  EXPECT_EQ(layers(0), (std::vector<std::string>{"symbols", "block0"}));
  EXPECT_EQ(layers(1), (std::vector<std::string>{"block1", "block2"}));
  EXPECT_EQ(layers(2), (std::vector<std::string>{"block3", "norm", "head"}));
  EXPECT_EQ(result.devices[0].stage->peak_micro_batches, 3);
  EXPECT_EQ(result.devices[1].stage->peak_micro_batches, 2);
  EXPECT_EQ(result.devices[2].stage->peak_micro_batches, 1);
  EXPECT_NEAR(figure(result, "pipeline_bubble"), 2.0 / 6, 1e-12) << "(p - 1) / (m + p - 1)";
  EXPECT_THAT(devices_remark(result),
              HasSubstr("simulated:1: block1 to block2, at most 2 micro-batches, peak allocated"));
}

TEST_F(PipelineRun, OneForwardOneBackwardKeepsFewerMicroBatchesThanGPipe) {
  const auto first_stage = [this](const char* schedule) {
    const ExperimentResult result =
        run_of("gpt", {kTwoStages, kPipeline, "train.micro_batches=8", "train.test_batch_size=2",
                       std::string("train.pipeline_schedule=") + schedule});
    return result.devices.at(0).peak_requested_by_purpose[static_cast<std::size_t>(Purpose::kActivation)];
  };
  EXPECT_LT(static_cast<double>(first_stage("1f1b")), 0.4 * static_cast<double>(first_stage("gpipe")))
      << "two micro-batches of eight";
}

TEST_F(PipelineRun, NoDeviceEverHoldsTheWholeModel) {
  const ExperimentResult one = run_of("mlp", {"device.name=simulated:0", "model.layers=8", "model.hidden=256"});
  const ExperimentResult four =
      run_of("mlp", {R"(device.names=["simulated:0", "simulated:1", "simulated:2", "simulated:3"])", kPipeline,
                     "model.layers=8", "model.hidden=256"});
  for (const DeviceResult& device : four.devices)
    EXPECT_LT(static_cast<double>(device.peak_requested_bytes),
              0.4 * static_cast<double>(one.memory.requested_bytes.peak))
        << device.device;
}

TEST_F(PipelineRun, GoesOnFromWhereItWasInterrupted) {
  const std::vector<std::string> words = {kThreeStages, kPipeline, "model.dropout=0.1"};
  const ExperimentResult whole = run_of("gpt", words);
  int asked = 0;
  sink.stops = [&asked] { return ++asked == 3; };
  state.file = folder / "state";
  EXPECT_TRUE(run_of("gpt", words).interrupted);
  sink.stops = {};
  state.go_on = true;
  const ExperimentResult resumed = run_of("gpt", words);
  EXPECT_TRUE(same_bits(resumed.losses, whole.losses));
}

TEST_F(PipelineRun, WithACostModelStagesWaitAsTheoryOfTheBubbleSays) {
  const auto idle = [this](const char* parts) {
    const ExperimentResult result =
        run_of("mlp", {R"(device.names=["simulated:0", "simulated:1", "simulated:2", "simulated:3"])", kPipeline,
                       "device.simulated.preset=v100", "device.simulated.mode=address-only", "model.layers=16",
                       "model.hidden=4096", "train.pipeline_balance=\"5,4,4,4\"", "train.optimizer=sgd",
                       "train.momentum=0", "train.batch_size=256", std::string("train.micro_batches=") + parts});
    EXPECT_NEAR(figure(result, "estimated_idle"), figure(result, "pipeline_bubble"), 0.06) << parts;
    for (const DeviceResult& device : result.devices) EXPECT_TRUE(device.estimated.has_value());
    return figure(result, "estimated_idle");
  };
  EXPECT_GT(idle("2"), idle("8"));
}

TEST_F(PipelineRun, SettingsThatMakeNoSenseWithStagesAreRefused) {
  const auto refused = [this](const std::string& model, std::vector<std::string> words, const char* why) {
    expect_error([&] { run_of(model, words); }, why);
  };
  refused("gpt", {kPipeline}, "train.parallel: the stages of a pipeline lie on several devices");
  refused("gpt", {kTwoStages, "train.pipeline_balance=\"1,1\""}, "there are no stages");
  refused("lenet", {kTwoStages, kPipeline}, "the model 'lenet' is not made of layers one after another");
  refused("mlp", {kThreeStages, kPipeline, "model.layers=1"}, "3 devices, but the model has 2 layers");
  refused("gpt", {kTwoStages, kPipeline, "train.pipeline_balance=\"3,x\""}, "'x' is no number of layers");
  refused("gpt", {kTwoStages, kPipeline, "train.pipeline_balance=\"3,3\""}, "the balance names 6 modules for 2 stages");
  refused("mlp", {kTwoStages, kPipeline, "train.chunked_loss=2"}, "has no vocabulary");
  refused("gpt", {kTwoStages, kPipeline, "train.offload=activations"}, "keeps what its micro-batches need");
  refused("mlp", {kTwoStages, kPipeline, "train.quantize=static"}, "integers are tested on one device");
  refused("gpt", {kTwoStages, kPipeline, "train.checkpoint=true", "train.checkpoint_budget=0.5"},
          "with stages give train.checkpoint_blocks");
  refused("mlp", {kTwoStages, kPipeline, "train.micro_batches=1", "train.optimizer_in_backward=true"},
          "changes a stage's parameters before its last micro-batch");
  refused("mlp", {kTwoStages, kPipeline, "train.batch_size=2"}, "4 parts of a batch of 2");
}

}  // namespace
}  // namespace tenon::test
