// Gradients that a step must not lose: those that one device alone has, and those of a step in mixed precision that is
// tried again.
#include "train/experiment_fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tenon::test {
namespace {

using Words = std::vector<std::string>;

class LostGradients : public Experiment {};

// Four symbols a device go to some of eight experts, each to one: most have a gradient on one device or on none.
TEST_F(LostGradients, OfWhatOneDeviceAloneUsesTheUpdateIsThatOfOneDevice) {
  write_letters(folder / "text", 4000);
  const auto losses = [this](const std::string& where) {
    return run_model("moe",
                     {"model.hidden=16", "model.layers=1", "model.heads=2", "model.context=4", "model.experts=8",
                      "model.experts_per_token=1", "model.balance=0.0", "train.batch_size=2", "train.max_steps=8",
                      "train.optimizer=sgd", "train.lr=0.2", "data.test_limit=2", "device.simulated.count=2"},
                     {where})
        .losses;
  };
  const std::vector<double> one = losses("device.name=simulated:0");
  const std::vector<double> two = losses(R"(device.names=["simulated:0", "simulated:1"])");
  ASSERT_EQ(two.size(), one.size());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(two[i], one[i], 2e-5) << "step " << i + 1;
}

// One in three of the small requests of a step fails, among them those of the norms, behind which gradients were
// divided by the scale already: that happens once in a step. The pictures take a piece of memory of their own, which is
// cached by then.
TEST_F(LostGradients, OfAScaledLossAreMadeAgainWhereverMemoryRanOutBeforeTheUpdate) {
  const auto recovered = [this](const char* clip) {
    const Words words = {"model.hidden=8",    "train.batch_size=512",          "data.test_limit=1",
                         "train.max_steps=1", "train.precision=float16-mixed", clip};
    const std::vector<double> plain = run(words).losses;
    int count = 0;
    for (int nth = 1; nth < 400; nth += 3) {
      Words own = words;
      own.insert(own.end(), {"allocator.layers=[\"inject\"]", fmt::format("allocator.inject.nth={}", nth),
                             "allocator.inject.max_size=\"64B\""});
      try {
        const ExperimentResult result = run(own);
        EXPECT_TRUE(same_bits(result.losses, plain)) << nth;
        if (result.oom_recoveries == 0) return count;  // there are no more
        ++count;
      } catch (const OutOfMemory&) {  // before the step, with nothing cached, or in the update
      }
    }
    ADD_FAILURE() << "more requests than that";
    return count;
  };
  EXPECT_GT(recovered("train.clip_grad_norm=0.5"), recovered("train.clip_grad_norm=0.0"));
}

}  // namespace
}  // namespace tenon::test
