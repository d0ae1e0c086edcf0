// Settings of [model] that no model of an experiment reads.
#include <tenon/runtime/config/config.h>
#include <tenon/train/config/unread_settings.h>
#include <tenon/train/run_experiment.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::vector<std::string> remarks(std::vector<std::string> overrides, bool sweep = false) {
  ConfigRequest request;
  request.overrides = std::move(overrides);
  request.use_environment = false;
  request.sections = training_sections();
  request.sweep_overrides = sweep;
  return unread_model_settings(Config::load(request));
}

TEST(UnreadSettings, AreThoseOfTheModelThatDifferFromTheirDefaults) {
  EXPECT_THAT(remarks({"model.name=lenet"}), IsEmpty());
  EXPECT_THAT(remarks({"model.name=lenet", "model.hidden=256"}), IsEmpty()) << "as a resolved configuration states it";
  EXPECT_THAT(remarks({"model.name=lenet", "model.hidden=12", "model.dropout=0.5", "train.lr=7"}),
              ElementsAre("model.hidden changes nothing: lenet reads dropout, image_size, channels, classes"));
}

TEST(UnreadSettings, AreThoseTooThatAPresetOverrules) {
  EXPECT_THAT(remarks({"model.name=llama", "model.preset=8B", "model.hidden=512"}),
              ElementsAre("model.hidden = 512 changes nothing: model.preset = \"8B\" says 4096"));
  EXPECT_THAT(remarks({"model.name=llama", "model.preset=8B", "model.hidden=4096"}), IsEmpty());
}

TEST(UnreadSettings, OfASweepAreWhatNoneOfItsModelsReads) {
  EXPECT_THAT(remarks({"model.name=[mlp, lenet]", "train.lr=[0.1, 0.2]"}, true), IsEmpty());
  EXPECT_THAT(remarks({"model.name=[mlp, lenet]", "model.hidden=[12, 13]"}, true), IsEmpty()) << "mlp reads it";
  EXPECT_THAT(remarks({"model.name=[mlp, lenet]", "model.tied=false"}, true),
              ElementsAre("model.tied changes nothing: none of lenet, mlp reads it"));
  EXPECT_THAT(remarks({"model.name=lenet", "model.hidden=[12, 13]"}, true),
              ElementsAre(StartsWith("model.hidden changes nothing: lenet reads ")))
      << "swept, it is set";
}

}  // namespace
}  // namespace tenon::test
