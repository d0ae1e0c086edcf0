// Training on the CPU's own virtual memory, where pages of a memfd are mapped wherever a policy wants them: what is
// computed there is the same to the last bit under every policy, and from the third step on none of them maps anything.
#include "train/experiment_fixture.h"

#include <cstring>
#include <fstream>

namespace tenon::test {
namespace {

using Words = std::vector<std::string>;

class RealMemory : public Experiment, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    Experiment::SetUp();
    write_letters(folder / "text", 4000, /*in_words=*/true);
  }
  /// Six steps, of which the calls to the device count from the third on.
  ExperimentResult run_under(const std::string& allocator) {
    const std::string model = GetParam();
    Words words{"model.name=\"" + model + "\"",
                "model.dropout=0.1",
                "train.max_steps=6",
                "train.warmup_steps=2",
                "train.batch_size=2",
                "train.test_batch_size=4",
                "data.test_limit=4",
                "train.optimizer=\"sgd\"",
                "allocator.name=\"" + allocator + "\""};
    if (model == "gpt") {
      for (const char* setting : {"model.hidden=64", "model.layers=4", "model.heads=4", "model.context=64"})
        words.emplace_back(setting);
      words.push_back("data.name=\"text\"");
      words.push_back("data.path=\"" + (folder / "text").string() + "\"");
    }
    return run(words);
  }
};

TEST_P(RealMemory, LossesAreEqualToTheLastBitAndNothingIsMappedFromTheThirdStepOn) {
  const ExperimentResult direct = run_under("direct");
  ASSERT_EQ(direct.losses.size(), 6u);
  EXPECT_GT(direct.device_calls_after_warmup, 0) << "the test has to see calls";
  for (const char* allocator : {"caching", "expandable", "tlsf", "stitching", "mortise"}) {
    const ExperimentResult other = run_under(allocator);
    ASSERT_EQ(other.losses.size(), 6u);
    EXPECT_EQ(std::memcmp(direct.losses.data(), other.losses.data(), 6 * sizeof(double)), 0) << allocator;
    EXPECT_EQ(other.device_calls_after_warmup, 0) << allocator;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RealMemory, testing::Values("lenet", "resnet18", "gpt"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace tenon::test
