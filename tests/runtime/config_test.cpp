// What a configuration means: types, defaults, precedence, and the TOML that it resolves to.
#include <tenon/runtime/config/config.h>
#include <tenon/runtime/plugins/plugin_search.h>

#include "runtime/fixture.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ConfigOf : public testing::Test {
 protected:
  void SetUp() override { ::setenv("TENON_PLUGIN_PATH", TENON_FIXTURE_DIR, 1); }
  void TearDown() override {
    ::unsetenv("TENON_PLUGIN_PATH");
    ::unsetenv("TENON_TRAIN__EPOCHS");
    ::unsetenv("TENON_ALLOCATOR__TINY__CHUNK");
    set_plugin_search({});
  }
  const ExplainedSetting& explained(const std::vector<ExplainedSetting>& all, const std::string& key) {
    for (const ExplainedSetting& setting : all) {
      if (setting.key == key) return setting;
    }
    ADD_FAILURE() << "no setting " << key;
    return all.front();
  }
  Folder folder_;
};

TEST_F(ConfigOf, AnEmptyFileIsAllDefaults) {
  const ExperimentConfig config = load_text(folder_, "").experiment();
  EXPECT_EQ(config.name, "exp");
  EXPECT_EQ(config.device, Device(kCPU, 0));
  EXPECT_EQ(config.allocator.policy.name, "caching");
  EXPECT_TRUE(config.allocator.layers.empty());
  EXPECT_EQ(config.section("train").integer("epochs"), 1);
  EXPECT_EQ(config.section("train").text("optimizer"), "adamw");
}

TEST_F(ConfigOf, NoFileAtAllWorksToo) {
  ConfigRequest request;
  request.overrides = {"train.epochs=7"};
  request.sections = test_sections();
  EXPECT_EQ(Config::load(request).experiment().section("train").integer("epochs"), 7);
}

TEST_F(ConfigOf, EveryTypeIsReadFromTheFile) {
  const ExperimentConfig config = load_text(folder_, R"(
name = "all types"
[device]
name = "simulated:1"
[device.simulated]
count = 2
capacity = "24GiB"
[allocator]
name = "tiny"
layers = ["stats", "limit"]
[allocator.tiny]
chunk = "64KiB"
tries = 5
ratio = 1
eager = true
fit = "first"
[allocator.limit]
bytes = 1048576
[train]
epochs = 3
lr = 1e-3
checkpoint = true
budget = "1.7MiB"
)")
                                      .experiment();
  EXPECT_EQ(config.name, "all types");
  EXPECT_EQ(config.device, Device("simulated:1"));
  EXPECT_EQ(config.backend_options.at("simulated").integer("count"), 2);
  EXPECT_EQ(config.backend_options.at("simulated").size("capacity"), 24 * GiB);
  EXPECT_EQ(config.allocator.policy.name, "tiny");
  EXPECT_EQ(config.allocator.options.size("chunk"), 64 * KiB);
  EXPECT_EQ(config.allocator.options.integer("tries"), 5);
  EXPECT_EQ(config.allocator.options.real("ratio"), 1.0) << "a whole number will do for a number";
  EXPECT_TRUE(config.allocator.options.boolean("eager"));
  EXPECT_EQ(config.allocator.options.text("fit"), "first");
  ASSERT_EQ(config.allocator.layers.size(), 2U);
  EXPECT_EQ(config.allocator.layers[0].name, "stats");
  EXPECT_EQ(config.allocator.layers[1].options.size("bytes"), MiB);
  EXPECT_EQ(config.section("train").size("budget"), 1782579U) << "rounded down";
  EXPECT_EQ(config.section("train").real("lr"), 1e-3);
}

TEST_F(ConfigOf, TheCommandLineBeatsTheEnvironmentBeatsTheFileBeatsTheDefault) {
  const std::string text = "[train]\nepochs = 2\n";
  EXPECT_EQ(load_text(folder_, "").experiment().section("train").integer("epochs"), 1);
  EXPECT_EQ(load_text(folder_, text).experiment().section("train").integer("epochs"), 2);
  ::setenv("TENON_TRAIN__EPOCHS", "3", 1);
  EXPECT_EQ(load_text(folder_, text).experiment().section("train").integer("epochs"), 3);
  EXPECT_EQ(load_text(folder_, text, {"train.epochs=4"}).experiment().section("train").integer("epochs"), 4);
  EXPECT_EQ(
      load_text(folder_, text, {"train.epochs=4", "train.epochs=5"}).experiment().section("train").integer("epochs"),
      5);
}

TEST_F(ConfigOf, TheHistoryOfASettingIsExplained) {
  ::setenv("TENON_TRAIN__EPOCHS", "3", 1);
  const auto all = load_text(folder_, "[train]\nepochs = 2\n", {"train.epochs=4"}).explain();
  const ExplainedSetting& epochs = explained(all, "train.epochs");
  EXPECT_EQ(epochs.text, "4");
  EXPECT_EQ(epochs.winner.str(), "command line train.epochs=4");
  ASSERT_EQ(epochs.overruled.size(), 2U);
  EXPECT_EQ(epochs.overruled[0].position.str(), "environment TENON_TRAIN__EPOCHS");
  EXPECT_EQ(epochs.overruled[0].text, "3");
  EXPECT_THAT(epochs.overruled[1].position.str(), HasSubstr("exp.toml:2:10"));
  EXPECT_EQ(explained(all, "train.lr").winner.str(), "default");
}

TEST_F(ConfigOf, WhatMayBeRecordedIsExplainedWithItsFiles) {
  EXPECT_EQ(explained(load_text(folder_, "").explain(), "report.record").help,
            "what else is written: trace (memory.tenon), text (memory.trace.gz), snapshot (memory.pickle), chrome "
            "(memory.chrome.json), folded (memory.folded), tensorboard");
}

TEST_F(ConfigOf, SectionsOfTheLayersAboveStandBeforeTheReport) {
  const std::string resolved = load_text(folder_, "").resolved_toml();
  std::size_t last = 0;
  for (const char* section : {"\n[distributed]\n", "\n[train]\n", "\n[report]\n"}) {
    const std::size_t place = resolved.find(section);
    ASSERT_NE(place, std::string::npos) << section << resolved;
    EXPECT_GT(place, last) << section;
    last = place;
  }
}

TEST_F(ConfigOf, VariablesReachNestedSections) {
  ::setenv("TENON_ALLOCATOR__TINY__CHUNK", "8KiB", 1);
  EXPECT_EQ(load_text(folder_, "allocator.name = \"tiny\"").experiment().allocator.options.size("chunk"), 8 * KiB);
}

TEST_F(ConfigOf, OverridesAreTomlAndBareWordsAreStrings) {
  const auto config = load_text(folder_, "",
                                {"train.optimizer=sgd", "train.lr=2", "train.checkpoint=true", "train.budget=3MiB",
                                 "allocator.layers=[stats, limit]", "allocator.limit.bytes=\"1GiB\"", "name=47"})
                          .experiment();
  EXPECT_EQ(config.section("train").text("optimizer"), "sgd");
  EXPECT_EQ(config.section("train").real("lr"), 2.0);
  EXPECT_TRUE(config.section("train").boolean("checkpoint"));
  EXPECT_EQ(config.section("train").size("budget"), 3 * MiB);
  EXPECT_EQ(config.allocator.layers.size(), 2U);
  EXPECT_EQ(config.name, "47");
}

TEST_F(ConfigOf, PathsMeanTheFolderOfWhatNamesThem) {
  const auto from_file = load_text(folder_, "[train]\nfile = \"data/x\"\n").experiment();
  EXPECT_EQ(from_file.section("train").text("file"), (folder_.path() / "data/x").string());
  EXPECT_EQ(from_file.folder, folder_.path());
  const auto from_line = load_text(folder_, "", {"train.file=data/x"}).experiment();
  EXPECT_EQ(from_line.section("train").text("file"), (std::filesystem::current_path() / "data/x").string());
}

TEST_F(ConfigOf, AnAllocatorIsChosenByAPathRelativeToTheFile) {
  std::filesystem::create_symlink(fixture("tiny"), folder_.path() / "tiny_copy.so");  // the same file, loaded once
  ::unsetenv("TENON_PLUGIN_PATH");
  const Config loaded =
      load_text(folder_, "[allocator]\nname = \"./tiny_copy.so\"\n[allocator.tiny]\nchunk = \"1KiB\"\n");
  EXPECT_THAT(loaded.resolved_toml(), HasSubstr("name = \"" + (folder_.path() / "tiny_copy.so").string() + "\"\n"))
      << "the text may stand anywhere";
  const auto config = loaded.experiment();
  EXPECT_EQ(config.allocator.policy.name, "tiny");
  EXPECT_EQ(config.allocator.options.size("chunk"), KiB);
}

TEST_F(ConfigOf, ASpecStandsOnTopOfItsSection) {
  const auto config =
      load_text(folder_, "[allocator]\nname = \"tiny:tries=7\"\n[allocator.tiny]\nchunk = \"1KiB\"\ntries = 2\n")
          .experiment();
  EXPECT_EQ(config.allocator.options.size("chunk"), KiB);
  EXPECT_EQ(config.allocator.options.integer("tries"), 7);
}

TEST_F(ConfigOf, OptionsOfASpecAreSettingsOfItsSection) {
  const Config config =
      load_text(folder_, "[allocator]\nname = \"tiny:tries=7\"\n[allocator.tiny]\nchunk = \"1KiB\"\ntries = 2\n");
  const std::string resolved = config.resolved_toml();
  EXPECT_THAT(resolved, AllOf(HasSubstr("name = \"tiny\"\n"), HasSubstr("tries = 7\n"), Not(HasSubstr("tries = 2"))));
  EXPECT_EQ(load_text(folder_, resolved).experiment().allocator.options.spec(),
            config.experiment().allocator.options.spec());
  const auto all = config.explain();
  const ExplainedSetting& tries = explained(all, "allocator.tiny.tries");
  EXPECT_EQ(tries.text, "7");
  EXPECT_THAT(tries.winner.str(), HasSubstr("exp.toml:2:8"));
  ASSERT_EQ(tries.overruled.size(), 1U);
  EXPECT_EQ(tries.overruled[0].text, "2");
}

TEST_F(ConfigOf, PluginsSearchIsRelativeToTheFile) {
  ::unsetenv("TENON_PLUGIN_PATH");
  std::filesystem::create_directories(folder_.path() / "mine");
  std::filesystem::create_symlink(fixture("pair"), folder_.path() / "mine" / "pair.so");
  const auto config =
      load_text(folder_, "[plugins]\nsearch = [\"mine\"]\nload = [\"pair\"]\n[allocator]\nname = \"right\"\n")
          .experiment();
  EXPECT_EQ(config.allocator.policy.name, "right");
  EXPECT_THAT(config.plugin_search, ElementsAre(folder_.path() / "mine"));
}

TEST_F(ConfigOf, WhatItResolvesToMeansTheSame) {
  const std::string text =
      "name = \"q\\\"uote\"\n[allocator]\nname = \"tiny\"\nlayers = [\"limit\"]\n[allocator.tiny]\nratio = 0.1\nchunk "
      "= 513\n"
      "[allocator.limit]\nbytes = \"3MiB\"\n[train]\nlr = 1e-7\nfile = \"d\"\n[sweep]\n\"train.epochs\" = [1, 2]\n";
  const std::string resolved = load_text(folder_, text, {"train.batch_size=7"}).resolved_toml();
  EXPECT_THAT(resolved, Not(HasSubstr("sweep")));
  const Folder other;
  const Config again = load_text(other, resolved);
  EXPECT_EQ(again.resolved_toml(), resolved);
  const auto config = again.experiment();
  EXPECT_EQ(config.name, "q\"uote");
  EXPECT_EQ(config.section("train").real("lr"), 1e-7);
  EXPECT_EQ(config.section("train").integer("batch_size"), 7);
  EXPECT_EQ(config.section("train").text("file"), (folder_.path() / "d").string());
  EXPECT_EQ(config.allocator.options.size("chunk"), 513U);
  EXPECT_EQ(config.allocator.layers.at(0).options.size("bytes"), 3 * MiB);
}

}  // namespace
}  // namespace tenon::test
