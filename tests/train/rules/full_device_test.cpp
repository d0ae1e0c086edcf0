// Memory that runs out while a run is set up is that, whatever was being made of it: no setting is blamed.
#include "train/experiment_fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tenon::test {
namespace {

using Words = std::vector<std::string>;

class FullDevice : public Experiment {
 protected:
  void SetUp() override {
    Experiment::SetUp();
    write_letters(folder / "text", 400);
  }
  /// What becomes of a small run whose n-th request of those that `which` names fails.
  std::string outcome(const Words& more, int nth, const std::string& which) {
    Words words = {
        "model.hidden=16",          "model.layers=1",    "model.heads=2",     "model.context=8",
        "train.batch_size=4",       "data.test_limit=4", "train.max_steps=1", "allocator.layers=[\"inject\"]",
        "allocator.inject." + which};
    words.push_back(fmt::format("allocator.inject.nth={}", nth));
    words.insert(words.end(), more.begin(), more.end());
    try {
      run_model("gpt", words, {});
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::kOutOfMemory);
      return "out of memory";
    } catch (const Error& error) {
      return error.what();
    }
    return "done";
  }
};

// The product of two numbers that shows whether there are any.
TEST_F(FullDevice, IsNotOneWithoutProductsIn16Bits) {
  for (const char* precision : {"train.precision=bfloat16-mixed", "train.precision=float16-mixed"})
    for (const int nth : {1, 2}) EXPECT_EQ(outcome({precision}, nth, "max_size=\"2B\""), "out of memory") << precision;
}

TEST_F(FullDevice, IsNoMistakeOfTheMatricesOfLowRankNorOfTheIntegersBesideThem) {
  for (const char* weights : {"train.lora_weights=float", "train.lora_weights=int4"}) {
    int failures = 0;
    std::string said;
    while ((said = outcome({"train.lora_rank=2", weights}, ++failures, "purpose=\"parameter\"")) == "out of memory")
      continue;
    EXPECT_EQ(said, "done") << "request " << failures << ", " << weights;
    EXPECT_GT(failures, 20) << "of the layers and of the matrices beside them";
  }
}

}  // namespace
}  // namespace tenon::test
