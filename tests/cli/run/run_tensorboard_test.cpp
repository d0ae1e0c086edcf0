// `tenon run --record tensorboard`: the curves, the hyperparameters, and what a part that goes on says of the part
// before.
#include "cli/interrupted.h"
#include "tensorboard/read_events.h"

#include <algorithm>
#include <map>
#include <set>

namespace tenon::test {
namespace {

class RunTensorboardFolder : public InterruptedProgram {
 protected:
  /// Values by tag, in the order of their steps.
  std::map<std::string, std::vector<ReadValue>> curves(const std::string& folder) {
    std::map<std::string, std::vector<ReadValue>> by_tag;
    for (ReadValue& value : values_in(at(folder + "/tensorboard").string()))
      by_tag[value.tag].push_back(std::move(value));
    for (auto& [tag, values] : by_tag) std::ranges::sort(values, {}, &ReadValue::step);
    return by_tag;
  }
};

TEST_F(RunTensorboardFolder, HasACurveForEachFigureOfEachStep) {
  ASSERT_EQ(
      tenon({"run", "run.toml", "train.epochs=2", "train.schedule=cosine", "--record", "tensorboard", "--out", "out"})
          .code,
      0);
  const nlohmann::json result = json_of(at("out/result.json"))["result"];
  auto by_tag = curves("out");
  const std::size_t steps = result["steps"];
  for (const char* tag : {"train/loss", "train/learning_rate", "train/step_ms", "train/examples_per_second",
                          "memory/reserved_bytes", "memory/device_calls", "fragmentation/external_bytes",
                          "fragmentation/internal_bytes", "step_peak_by_purpose/activation"})
    EXPECT_EQ(by_tag[tag].size(), steps) << tag;
  EXPECT_GT(by_tag["train/learning_rate"].front().scalar(), by_tag["train/learning_rate"].back().scalar());
  EXPECT_EQ(by_tag["epoch/test_accuracy"].size(), 2U);
  for (std::size_t step = 0; step < steps; ++step)
    EXPECT_EQ(by_tag["train/loss"][step].step, static_cast<std::int64_t>(step) + 1);
}

TEST_F(RunTensorboardFolder, CellsOfASweepAreRunsWithTheirHyperparameters) {
  ASSERT_EQ(tenon({"run", "run.toml", "train.epochs=1", "--record", "tensorboard", "--sweep",
                   "allocator.name=[\"caching\", \"direct\"]", "--out", "out"})
                .code,
            0);
  std::vector<std::string> allocators;
  for (const auto& cell : fs::directory_iterator(at("out/cells"))) {
    auto by_tag = curves(fs::relative(cell.path(), at(".")).string());
    ASSERT_EQ(by_tag["_hparams_/session_start_info"].size(), 1U) << cell;
    EXPECT_EQ(by_tag["_hparams_/session_end_info"].size(), 1U);
    EXPECT_EQ(by_tag["epoch/test_accuracy"].size(), 1U);
    EXPECT_EQ(by_tag["result/peak_reserved_bytes"].size(), 1U);
    const std::string data =
        inside(inside(inside(by_tag["_hparams_/session_start_info"][0].message, 9), 1), 2);  // the plugin's content
    for (const Field& entry : fields(inside(data, 3)))
      if (inside(entry.bytes, 1) == "allocator.name") allocators.push_back(inside(inside(entry.bytes, 2), 3));
  }
  EXPECT_THAT(allocators, testing::UnorderedElementsAre("caching", "direct"));
}

TEST_F(RunTensorboardFolder, CellsThatSetDifferentThingsNameTheSameHyperparameters) {
  folder_.write("rows.toml", kRun + std::string("[sweep.rows]\nplain = {}\nsmall = { \"train.lr\" = 0.01 }\n"
                                                "other = { \"train.optimizer\" = \"adam\" }\n"));
  ASSERT_EQ(tenon({"run", "rows.toml", "train.epochs=1", "--record", "tensorboard", "--out", "out"}).code, 0);
  for (const auto& cell : fs::directory_iterator(at("out/cells"))) {
    auto by_tag = curves(fs::relative(cell.path(), at(".")).string());
    const std::string data = inside(inside(inside(by_tag["_hparams_/experiment"].at(0).message, 9), 1), 2);
    std::vector<std::string> own;
    for (const Field& field : fields(inside(data, 2)))
      if (field.number == 4) own.push_back(inside(field.bytes, 1));
    EXPECT_THAT(own, testing::IsSupersetOf({"train.lr", "train.optimizer"}));
  }
}

TEST_F(RunTensorboardFolder, AnInterruptedRunHasNotFailedAndEachEpochStandsAtItsStep) {
  StartedProgram program(folder_, {"run", "run.toml", "train.epochs=300", "--record", "tensorboard", "--out", "out"});
  program.wait_until_it_says("epoch 3/");
  program.interrupt(SIGINT);
  ASSERT_EQ(program.wait().code, 130);
  EXPECT_EQ(curves("out").count("_hparams_/session_end_info"), 0U);
  EXPECT_GE(curves("out")["epoch/test_accuracy"].size(), 2U) << "written when the epoch has ended";
  ASSERT_EQ(tenon({"run", "--resume", "out"}).code, 0);
  auto by_tag = curves("out");
  ASSERT_EQ(by_tag["_hparams_/session_end_info"].size(), 1U);
  std::vector<std::int64_t> steps;
  for (const ReadValue& value : by_tag["epoch/test_accuracy"]) steps.push_back(value.step);
  EXPECT_EQ(steps.size(), 300U);
  EXPECT_GT(steps.front(), 0);
  EXPECT_EQ(std::set<std::int64_t>(steps.begin(), steps.end()).size(), 300U) << "each at a step of its own";
}

TEST_F(RunTensorboardFolder, AnEpochWhoseStepsAreAllOfThePartBeforeStandsAtTheLastOfThem) {
  // Epochs of one step each: whoever is interrupted stops between the last step of an epoch and its test.
  StartedProgram program(
      folder_, {"run", "run.toml", "train.epochs=1000", "data.limit=16", "--record", "tensorboard", "--out", "out"});
  program.wait_until_it_says("epoch ");
  program.interrupt(SIGINT);
  ASSERT_EQ(program.wait().code, 130);
  const std::int64_t done = json_of(at("out/result.json"))["result"]["steps"];
  ASSERT_EQ(tenon({"run", "--resume", "out"}).code, 0);
  auto by_tag = curves("out");
  std::vector<std::int64_t> steps;
  for (const ReadValue& value : by_tag["epoch/test_accuracy"]) steps.push_back(value.step);
  ASSERT_EQ(steps.size(), 1000U);
  EXPECT_EQ(steps.front(), 1);
  EXPECT_EQ(steps.at(static_cast<std::size_t>(done) - 1), done);
}

TEST_F(RunTensorboardFolder, APartThatGoesOnVoidsLaterStepsOfThePartBefore) {
  StartedProgram program(folder_, {"run", "run.toml", "train.epochs=400", "--record", "tensorboard", "--out", "out"});
  program.wait_until_it_says("epoch 2/");
  program.interrupt(SIGINT);
  ASSERT_EQ(program.wait().code, 130);
  const std::int64_t done = json_of(at("out/result.json"))["result"]["steps"];
  ASSERT_EQ(tenon({"run", "--resume", "out"}).code, 0);
  std::vector<std::int64_t> restarts;
  for (const auto& file : fs::directory_iterator(at("out/tensorboard"))) {
    for (const std::string& event : records(content_of(file.path().string())))
      for (const Field& field : fields(event))
        if (field.number == 7) restarts.push_back(static_cast<std::int64_t>(number_in(event, 2)));
  }
  EXPECT_THAT(restarts, testing::ElementsAre(done + 1));
}

}  // namespace
}  // namespace tenon::test
