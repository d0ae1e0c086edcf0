// Experiments on an emulated CUDA device: small models of each kind, under the allocators that a user has. Losses equal
// the cpu's to rounding, and a step that is warm asks the device for no memory.
//
// By sgd: adam makes a full step of a gradient that is nothing but rounding. Without dropout: a device kind has random
// numbers of its own, as in PyTorch. `driver_async` keeps what it has, as PyTorch sets the driver's pool.
#include "support/every_device.h"
#include "train/experiment_fixture.h"

#include <tenon/train/model.h>

#include <cmath>
#include <ostream>

namespace tenon::test {

struct OnCuda {
  const char* model;
  const char* allocator;
};
void PrintTo(const OnCuda& one, std::ostream* out) { *out << one.model << " under " << one.allocator; }

namespace {

class CudaExperiments : public Experiment, public testing::WithParamInterface<OnCuda> {
 protected:
  void SetUp() override {
    Experiment::SetUp();
    write_letters(folder / "text", 4000, /*in_words=*/true);
  }

  /// Steps of a run, and of them those that it takes to get warm. Pictures of 28 by 28 take the emulation a while.
  static std::size_t steps() { return std::string(GetParam().model) == "resnet8" ? 3 : 6; }
  static constexpr std::int64_t kWarmupSteps = 2;

  ExperimentResult train(const std::string& device, const std::string& allocator) {
    const std::string model = GetParam().model;
    std::vector<std::string> words{"device.name=\"" + device + "\"",
                                   "allocator.name=\"" + allocator + "\"",
                                   "allocator.driver_async.release_threshold=\"1TiB\"",
                                   "model.name=\"" + model + "\"",
                                   "model.hidden=8",
                                   "model.layers=2",
                                   "model.heads=2",
                                   "model.context=16",
                                   "model.dropout=0.0",
                                   "train.batch_size=" + std::string(model == "resnet8" ? "2" : "4"),
                                   "train.max_steps=" + std::to_string(steps()),
                                   "train.warmup_steps=" + std::to_string(kWarmupSteps),
                                   "train.test_batch_size=2",
                                   "data.test_limit=2",
                                   "train.optimizer=\"sgd\"",
                                   "train.lr=0.01"};
    if (train::task_of(model) == train::Task::kLanguage) {
      words.push_back("data.name=\"text\"");
      words.push_back("data.path=\"" + (folder / "text").string() + "\"");
    }
    return run(words);
  }
};

TEST_P(CudaExperiments, EqualTheCpusAndNeedNoMemoryOnceWarm) {
  const ExperimentResult here = train("cpu", "caching");
  const ExperimentResult there = train("cuda", GetParam().allocator);
  ASSERT_EQ(here.losses.size(), steps());
  ASSERT_EQ(there.losses.size(), steps());
  for (std::size_t step = 0; step < steps(); ++step) {
    EXPECT_NEAR(there.losses[step], here.losses[step], 2e-5 * std::fabs(here.losses[step])) << "step " << step;
  }
  EXPECT_NEAR(there.epochs.back().test_loss, here.epochs.back().test_loss, 2e-5 * here.epochs.back().test_loss);
  EXPECT_EQ(there.warmup_steps, kWarmupSteps);
  EXPECT_EQ(there.device_calls_after_warmup, 0);
}

/// The smallest model under every allocator and every model under one of its own; all pairs where every device is asked
/// for. CudaGraphOfModel has other pairs.
std::vector<OnCuda> pairs() {
  std::vector<OnCuda> some{{"mlp", "caching"}, {"mlp", "expandable"}, {"mlp", "driver_async"}};
  some.insert(some.end(), {{"resnet8", "expandable"}, {"gpt", "driver_async"}});
  if (wants_every_device()) {
    some.insert(some.end(), {{"resnet8", "caching"}, {"resnet8", "driver_async"}});
    some.insert(some.end(), {{"gpt", "caching"}, {"gpt", "expandable"}});
  }
  return some;
}

INSTANTIATE_TEST_SUITE_P(All, CudaExperiments, testing::ValuesIn(pairs()),
                         [](const auto& one) { return std::string(one.param.model) + "_" + one.param.allocator; });

}  // namespace
}  // namespace tenon::test
