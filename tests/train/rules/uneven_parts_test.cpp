// Batches that do not divide evenly, what a trial run before a run takes from its settings, and what is told of runs
// that go on.
#include "train/experiment_fixture.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <iterator>
#include <map>

namespace tenon::test {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class UnevenParts : public Experiment {
 protected:
  static Words small(const Words& more) {
    Words words = {"model.hidden=16", "train.max_steps=3", "data.test_limit=50", "train.test_batch_size=50"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string file() const { return (folder / "saved").string(); }
  std::string outcome(Words more) {
    more.push_back("train.resume=\"" + file() + "\"");
    try {
      run(small(more));
    } catch (const Error& error) {
      return error.what();
    }
    return "goes on";
  }
  /// Writes `after`, which is as long, wherever `before` is in the saved state.
  void change_file(const std::string& before, const std::string& after) const {
    ASSERT_EQ(before.size(), after.size());
    std::ifstream in(file(), std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    ASSERT_NE(bytes.find(before), std::string::npos) << before;
    for (std::size_t at = bytes.find(before); at != std::string::npos; at = bytes.find(before, at))
      bytes.replace(at, before.size(), after);
    std::ofstream(file(), std::ios::binary) << bytes;
  }
};

// Fifty examples are 17, 17 and 16 on the devices, and 16 or 17 in parts, of which a device has 5 or 6.
TEST_F(UnevenParts, OfABatchOnSeveralDevicesCountByTheirExamples) {
  const auto losses = [this](const Words& more) {
    Words words = {"device.simulated.count=3", "train.batch_size=50"};
    words.insert(words.end(), more.begin(), more.end());
    return run(small(words)).losses;
  };
  const std::vector<double> one = losses({"device.name=simulated:0"});
  for (const char* where : {"train.parallel_loss=first", "train.parallel_loss=each"}) {
    for (const char* parts : {"train.micro_batches=1", "train.micro_batches=3"}) {
      const std::vector<double> three =
          losses({R"(device.names=["simulated:0", "simulated:1", "simulated:2"])", where, parts});
      ASSERT_EQ(three.size(), one.size());
      for (std::size_t i = 0; i < one.size(); ++i)
        EXPECT_NEAR(three[i], one[i], 1e-5) << where << ", " << parts << ", step " << i + 1;
    }
  }
}

TEST_F(UnevenParts, OfATestOnIntegersCountByTheirExamples) {
  const auto figures = [this](const std::string& at_once) {
    const ExperimentResult result = run(small({"train.quantize=weight_only_int8", "train.test_batch_size=" + at_once}));
    std::map<std::string, double> found(result.figures.begin(), result.figures.end());
    EXPECT_NEAR(found.at("float_test_loss"), result.epochs.back().test_loss, 1e-5) << "as in the test before";
    EXPECT_DOUBLE_EQ(found.at("float_test_accuracy"), result.test_accuracy);
    return found;
  };
  const auto all = figures("50"), some = figures("16");
  EXPECT_NE(all.at("quantized_test_loss"), all.at("float_test_loss"));
  EXPECT_NEAR(some.at("quantized_test_loss"), all.at("quantized_test_loss"), 1e-5);
  EXPECT_DOUBLE_EQ(some.at("quantized_test_accuracy"), all.at("quantized_test_accuracy"));
  EXPECT_LT(some.at("float_inference_peak_bytes"), all.at("float_inference_peak_bytes"));
}

// A trial of one step on addresses: what blocks there are does not depend on a state, nor on a budget that is searched.
TEST_F(UnevenParts, ATrialBeforeTheRunHasAnExampleForEachPartAndNeitherStateNorBudget) {
  const auto said = [this](const Words& more) -> std::string {
    shutdown();
    ConfigRequest request;
    request.overrides = small({"model.name=\"lenet\"", "data.path=\"" + folder.string() + "\"", "train.checkpoint=true",
                               "train.checkpoint_keep=\"convolutions\""});
    request.overrides.insert(request.overrides.end(), more.begin(), more.end());
    request.use_environment = false;
    request.sections = training_sections();
    try {
      check_experiment(Config::load(request).experiment());
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(said({"train.checkpoint_blocks=2", "train.resume=\"" + file() + "\""}), "accepted");
  EXPECT_EQ(said({"train.checkpoint_blocks=2", "train.micro_batches=4", "device.simulated.count=2",
                  R"(device.names=["simulated:0", "simulated:1"])"}),
            "accepted");
  EXPECT_EQ(said({"train.checkpoint_budget=0.5"}), "accepted");
  EXPECT_EQ(said({"train.checkpoint_memory=\"1GiB\""}), "accepted");
  EXPECT_THAT(said({"train.checkpoint_blocks=4"}), HasSubstr("'lenet' has 3"));
}

TEST_F(UnevenParts, WhoseTheMemoryIsIsToldFromTheStepOnThatTheRunBeganWith) {
  const ExperimentResult first =
      run(small({"report.attribution=true", "train.stop_at=2", "train.save=\"" + file() + "\""}));
  ASSERT_TRUE(first.attribution);
  EXPECT_EQ(first.attribution->after_step, 0);
  const ExperimentResult rest = run(small({"report.attribution=true", "train.resume=\"" + file() + "\""}));
  ASSERT_TRUE(rest.attribution);
  EXPECT_EQ(rest.attribution->after_step, 2);
}

TEST_F(UnevenParts, WhoseTheMemoryIsIsToldOfEachDevice) {
  const ExperimentResult result = run(
      small({"report.attribution=true", "device.simulated.count=2", R"(device.names=["simulated:0", "simulated:1"])"}));
  ASSERT_EQ(result.devices.size(), 2U);
  ASSERT_TRUE(result.attribution && result.devices[1].attribution);
  EXPECT_EQ(result.attribution->peak_bytes, static_cast<std::size_t>(result.devices[0].peak_requested_bytes));
  EXPECT_EQ(result.devices[1].attribution->peak_bytes,
            static_cast<std::size_t>(result.devices[1].peak_requested_bytes));
  for (const auto* report : {&*result.attribution, &*result.devices[1].attribution}) {
    EXPECT_EQ(report->disagreement, "");
    EXPECT_TRUE(std::ranges::any_of(
        report->live, [](const auto& row) { return row.purpose == Purpose::kParameter && !row.module.empty(); }));
  }
}

// Of an older version: a setting that came later is none of its own, and a still older one wrote none.
TEST_F(UnevenParts, AStateIsAskedForTheSettingsThatItHas) {
  run(small({"train.stop_at=2", "train.save=\"" + file() + "\""}));
  const Words changed = {"model.activation=\"relu\""};
  EXPECT_THAT(outcome(changed), HasSubstr("is of a run with model.activation = "));
  change_file("model.activation=", "model.another___=");
  EXPECT_EQ(outcome(changed), "goes on");
  EXPECT_THAT(outcome({"model.heads=8"}), HasSubstr("is of a run with model.heads = "));
  change_file("\"settings\"", "\"settingz\"");
  EXPECT_EQ(outcome({"model.heads=8"}), "goes on");
}

}  // namespace
}  // namespace tenon::test
