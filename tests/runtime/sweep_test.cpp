// Sweeps: what varies, in which order, and what outranks it.
#include <tenon/runtime/config.h>
#include <tenon/runtime/plugin_search.h>

#include "runtime/fixture.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Sweep : public testing::Test {
 protected:
  void TearDown() override { ::unsetenv("TENON_TRAIN__EPOCHS"); }
  Config load(const std::string& text, std::vector<std::string> overrides = {}, bool sweep = false,
              bool ignore = false) {
    ConfigRequest request;
    request.file = folder_.write("exp.toml", text);
    request.overrides = std::move(overrides);
    request.sections = test_sections();
    request.sweep_overrides = sweep;
    request.ignore_sweep = ignore;
    return Config::load(request);
  }
  Folder folder_;
};

constexpr char kTwoAxes[] = "[sweep]\n\"train.epochs\" = [1, 2]\n\"train.checkpoint\" = [false, true]\n";

TEST_F(Sweep, IsTheProductWithTheLastKeyFastest) {
  const Config config = load(kTwoAxes);
  EXPECT_THAT(config.sweep_keys(), ElementsAre("train.epochs", "train.checkpoint"));
  EXPECT_THAT(config.sweep_cells(), ElementsAre(ElementsAre("train.epochs=1", "train.checkpoint=false"),
                                                ElementsAre("train.epochs=1", "train.checkpoint=true"),
                                                ElementsAre("train.epochs=2", "train.checkpoint=false"),
                                                ElementsAre("train.epochs=2", "train.checkpoint=true")));
}

TEST_F(Sweep, KeysMayBeWrittenWithoutQuotes) {
  EXPECT_THAT(load("[sweep]\ntrain.epochs = [1, 2, 3]\n").sweep_cells(), SizeIs(3));
}

TEST_F(Sweep, WithoutOneThereAreNoCells) { EXPECT_THAT(load("").sweep_cells(), IsEmpty()); }

TEST_F(Sweep, ACellIsAConfigurationOfItsOwn) {
  const Config config = load(std::string("[train]\nlr = 0.5\n") + kTwoAxes);
  const auto cell =
      load(std::string("[train]\nlr = 0.5\n") + kTwoAxes, config.sweep_cells()[3], false, true).experiment();
  EXPECT_EQ(cell.section("train").integer("epochs"), 2);
  EXPECT_TRUE(cell.section("train").boolean("checkpoint"));
  EXPECT_EQ(cell.section("train").real("lr"), 0.5);
}

TEST_F(Sweep, TheCommandLineHoldsASweptSettingToOneValue) {
  EXPECT_THAT(load(kTwoAxes, {"train.epochs=9"}).sweep_keys(), ElementsAre("train.checkpoint"));
  ::setenv("TENON_TRAIN__EPOCHS", "9", 1);
  EXPECT_THAT(load(kTwoAxes).sweep_keys(), ElementsAre("train.checkpoint"));
}

TEST_F(Sweep, ListsOnTheCommandLineAreSweepsWhenAsked) {
  EXPECT_THAT(load("", {"train.epochs=[1, 2]", "train.optimizer=sgd,adamw", "train.lr=0.5"}, true).sweep_cells(),
              SizeIs(4));
  EXPECT_THAT(load(kTwoAxes, {"train.epochs=5,6,7"}, true).sweep_cells(), SizeIs(6)) << "they replace the file's";
  EXPECT_THAT(message_of<ConfigError>([&] { load("", {"train.epochs=1"}, true); }), HasSubstr("nothing to sweep over"));
}

TEST_F(Sweep, AListSettingIsSweptByListsOfLists) {
  EXPECT_THAT(load("[sweep]\n\"allocator.layers\" = [[], [\"stats\"]]\n").sweep_cells(),
              ElementsAre(ElementsAre("allocator.layers=[]"), ElementsAre("allocator.layers=[\"stats\"]")));
  EXPECT_THAT(load("", {"allocator.layers=[\"stats\"]", "train.epochs=1,2"}, true).sweep_keys(),
              ElementsAre("train.epochs"));
}

TEST_F(Sweep, EveryValueIsCheckedBeforeAnythingRuns) {
  const auto mistake = [&](const std::string& text) { return message_of<ConfigError>([&] { load(text); }); };
  EXPECT_THAT(mistake("[sweep]\n\"train.epochs\" = [1, 0]\n"),
              AllOf(HasSubstr("exp.toml:2:22: "), HasSubstr("from 1 to 1000")));
  EXPECT_THAT(mistake("[sweep]\n\"train.epoch\" = [1]\n"),
              AllOf(HasSubstr("exp.toml:2:1: "), HasSubstr("did you mean 'epochs'?")));
  EXPECT_THAT(mistake("[sweep]\n\"train.epochs\" = 3\n"),
              AllOf(HasSubstr("exp.toml:2:18: "), HasSubstr("list of values")));
  EXPECT_THAT(mistake("[sweep]\n\"train.epochs\" = []\n"), HasSubstr("no values"));
  EXPECT_THAT(mistake("[sweep]\n\"allocator.name\" = [\"direct\", \"cachng\"]\n"),
              AllOf(HasSubstr("exp.toml:2:31: "), HasSubstr("\"caching\"")));
}

TEST_F(Sweep, AllocatorsByPathBecomeAbsolute) {
  std::filesystem::create_symlink(fixture("tiny"), folder_.path() / "swept.so");
  EXPECT_THAT(load("[sweep]\n\"allocator.name\" = [\"./swept.so:tries=1\", \"direct\"]\n").sweep_cells(),
              ElementsAre(ElementsAre("allocator.name=" + (folder_.path() / "swept.so:tries=1").string()),
                          ElementsAre("allocator.name=\"direct\"")));
}

}  // namespace
}  // namespace tenon::test
