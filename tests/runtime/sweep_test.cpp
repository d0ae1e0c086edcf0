// Sweeps: what varies, in which order, and what outranks it.
#include <tenon/runtime/config/config.h>
#include <tenon/runtime/plugins/plugin_search.h>

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

/// Each cell as its overrides.
std::vector<std::vector<std::string>> overrides_of(const Config& config) {
  std::vector<std::vector<std::string>> cells;
  for (const SweepPoint& cell : config.sweep_cells()) cells.push_back(cell.overrides);
  return cells;
}

constexpr char kTwoAxes[] = "[sweep]\n\"train.epochs\" = [1, 2]\n\"train.checkpoint\" = [false, true]\n";

TEST_F(Sweep, IsTheProductWithTheLastKeyFastest) {
  const Config config = load(kTwoAxes);
  EXPECT_THAT(config.sweep_keys(), ElementsAre("train.epochs", "train.checkpoint"));
  EXPECT_THAT(overrides_of(config), ElementsAre(ElementsAre("train.epochs=1", "train.checkpoint=false"),
                                                ElementsAre("train.epochs=1", "train.checkpoint=true"),
                                                ElementsAre("train.epochs=2", "train.checkpoint=false"),
                                                ElementsAre("train.epochs=2", "train.checkpoint=true")));
}

TEST_F(Sweep, KeysMayBeWrittenWithoutQuotes) {
  EXPECT_THAT(load("[sweep]\ntrain.epochs = [1, 2, 3]\n").sweep_cells(), SizeIs(3));
}

TEST_F(Sweep, MayStandOnTheCommandLineAsInAFile) {
  const Config config = load(kTwoAxes, {"sweep.\"train.epochs\"=[7, 8, 9]"});
  EXPECT_THAT(config.sweep_cells(), SizeIs(6)) << "three instead of the file's two";
  EXPECT_THAT(load("", {"sweep.train.epochs=[7, 8]"}).sweep_keys(), ElementsAre("train.epochs"));
  EXPECT_THAT(load("", {"sweep.allocator.name=[caching, direct]"}).sweep_cells(), SizeIs(2)) << "quotes of a shell";
  EXPECT_THAT(load("", {"sweep.allocator.name=[caching , direct ]"}).sweep_cells()[0].values, ElementsAre("caching"));
}

TEST_F(Sweep, ForPeopleValuesStandWithoutQuotes) {
  const Config config = load("[sweep]\n\"train.file\" = [\"\", \"d\", \"ab\"]\n");
  ASSERT_THAT(config.sweep_cells(), SizeIs(3));
  EXPECT_THAT(config.sweep_cells()[0].values, ElementsAre(""));
  EXPECT_THAT(config.sweep_cells()[1].values, ElementsAre("d"));
  EXPECT_THAT(config.sweep_cells()[2].values, ElementsAre("ab"));
}

TEST_F(Sweep, AValueThatStandsThereSeveralTimesIsRemarked) {
  const Config config = load("", {"train.lr=0.1,0.10,1e-1,0.2"}, true);
  EXPECT_THAT(config.sweep_cells(), SizeIs(4)) << "to see the noise of times, perhaps";
  EXPECT_THAT(config.remarks(), ElementsAre("the sweep over train.lr has 0.1 3 times"));
  EXPECT_THAT(load(kTwoAxes).remarks(), IsEmpty());
}

TEST_F(Sweep, WithoutOneThereAreNoCells) { EXPECT_THAT(load("").sweep_cells(), IsEmpty()); }

TEST_F(Sweep, ACellIsAConfigurationOfItsOwn) {
  const Config config = load(std::string("[train]\nlr = 0.5\n") + kTwoAxes);
  const auto cell =
      load(std::string("[train]\nlr = 0.5\n") + kTwoAxes, config.sweep_cells()[3].overrides, false, true).experiment();
  EXPECT_EQ(cell.section("train").integer("epochs"), 2);
  EXPECT_TRUE(cell.section("train").boolean("checkpoint"));
  EXPECT_EQ(cell.section("train").real("lr"), 0.5);
}

TEST_F(Sweep, TheCommandLineHoldsASweptSettingToOneValue) {
  EXPECT_THAT(load(kTwoAxes, {"train.epochs=9"}).sweep_keys(), ElementsAre("train.checkpoint"));
  ::setenv("TENON_TRAIN__EPOCHS", "9", 1);
  EXPECT_THAT(load(kTwoAxes).sweep_keys(), ElementsAre("train.checkpoint"));
}

TEST_F(Sweep, AFilesOwnSettingIsWhatASweepOverItsKeyReplaces) {
  const std::string file = std::string("[train]\nepochs = 9\n") + kTwoAxes;
  const Config config = load(file);
  EXPECT_THAT(config.sweep_keys(), ElementsAre("train.epochs", "train.checkpoint"));
  const auto cell = load(file, config.sweep_cells()[0].overrides, false, true).experiment();
  EXPECT_EQ(cell.section("train").integer("epochs"), 1);
  EXPECT_THAT(overrides_of(load("[train]\nepochs = 9\n[sweep.rows]\n\"a\" = { \"train.epochs\" = 3 }\n\"b\" = {}\n")),
              ElementsAre(ElementsAre("train.epochs=3"), IsEmpty()));
}

TEST_F(Sweep, ListsOnTheCommandLineAreSweepsWhenAsked) {
  EXPECT_THAT(load("", {"train.epochs=[1, 2]", "train.optimizer=sgd,adamw", "train.lr=0.5"}, true).sweep_cells(),
              SizeIs(4));
  EXPECT_THAT(load(kTwoAxes, {"train.epochs=5,6,7"}, true).sweep_cells(), SizeIs(6)) << "they replace the file's";
  EXPECT_THAT(message_of<ConfigError>([&] { load("", {"train.epochs=1"}, true); }), HasSubstr("nothing to sweep over"));
}

/// The values of a sweep over allocators, as the command line has them.
TEST_F(Sweep, ACommaInsideASpecIsItsOwn) {
  const auto values = [&](const std::string& typed) {
    std::vector<std::string> all;
    for (const SweepPoint& cell : load("", {"allocator.name=" + typed}, true).sweep_cells())
      all.push_back(cell.values.front());
    return all;
  };
  const std::string many = "caching:roundup_power2_divisions=[64:8,256:4],max_split_size=128MiB";
  EXPECT_THAT(values("caching:max_split_size=128MiB,direct"), ElementsAre("caching:max_split_size=128MiB", "direct"));
  EXPECT_THAT(values(many + ",direct"), ElementsAre(many, "direct"));
  EXPECT_THAT(values("direct," + many), ElementsAre("direct", many));
  EXPECT_THAT(values("[" + many + ", direct]"), ElementsAre(many, "direct"));
  EXPECT_THAT(values(many + ",caching:max_split_size=64MiB"), ElementsAre(many, "caching:max_split_size=64MiB"));
  EXPECT_THAT(values("\"" + many + "\",'direct'"), ElementsAre(many, "direct"));
  EXPECT_THAT(load("", {"allocator.name=" + many, "train.epochs=1,2"}, true).sweep_keys(), ElementsAre("train.epochs"))
      << "one SPEC is one value";
}

TEST_F(Sweep, SaysWhichSettingLeftNothingToSweepOver) {
  const std::string file = "[sweep]\n\"allocator.name\" = [\"caching\", \"direct\"]\n";
  EXPECT_THAT(message_of<ConfigError>([&] { load(file, {"allocator.name=caching"}, true); }),
              AllOf(HasSubstr("allocator.name is \"caching\" in every cell"), HasSubstr("KEY=a,b"),
                    testing::Not(HasSubstr("add a section"))));
}

TEST_F(Sweep, AListSettingIsSweptByListsOfLists) {
  EXPECT_THAT(overrides_of(load("[sweep]\n\"allocator.layers\" = [[], [\"stats\"]]\n")),
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
  EXPECT_THAT(overrides_of(load("[sweep]\n\"allocator.name\" = [\"./swept.so:tries=1\", \"direct\"]\n")),
              ElementsAre(ElementsAre("allocator.name=" + (folder_.path() / "swept.so:tries=1").string()),
                          ElementsAre("allocator.name=\"direct\"")));
}

TEST_F(Sweep, PathsInAListOfTheCommandLineAreRelativeToTheCurrentFolder) {
  const std::string tiny = std::filesystem::relative(std::filesystem::canonical(fixture("tiny"))).string();
  const Config config = load("", {"allocator.name=[\"./" + tiny + "\", \"direct\"]"}, /*sweep=*/true);
  ASSERT_THAT(config.sweep_cells(), SizeIs(2));
  EXPECT_EQ(std::filesystem::canonical(config.sweep_cells()[0].overrides[0].substr(15)),
            std::filesystem::canonical(fixture("tiny")));
}

// A section of a plugin that is loaded is known for good: each of these has a process of its own in ctest.
TEST_F(Sweep, ASectionOfASweptAllocatorMayStandInTheFileWhereAnotherIsChosen) {
  const std::string text = "[allocator.crasher]\nafter = 5\n[sweep]\n\"allocator.name\" = [\"" +
                           fixture("crasher").string() + "\", \"direct\"]\n";
  EXPECT_THAT(load(text, {"allocator.name=direct"}).sweep_cells(), IsEmpty()) << "as in a cell";
}

TEST_F(Sweep, ASectionOfTheFilesAllocatorMayStandThereWhereOthersAreSwept) {
  const std::string text =
      "[allocator]\nname = \"" + fixture("crasher").string() + "\"\n[allocator.crasher]\nafter = 5\n";
  EXPECT_THAT(load(text, {"allocator.name=direct,caching"}, /*sweep=*/true).sweep_cells(), SizeIs(2));
}

TEST_F(Sweep, ASectionOfARowsAllocatorMayStandInTheFileWhereOthersAreSwept) {
  const std::string text = "[allocator.crasher]\nafter = 5\n[sweep.rows]\nmine = { \"allocator.name\" = \"" +
                           fixture("crasher").string() + "\" }\n";
  EXPECT_THAT(load(text, {"allocator.name=direct,caching"}, /*sweep=*/true).sweep_cells(), SizeIs(2));
}

TEST_F(Sweep, ASectionOfARowsOwnAllocatorMayStandInTheFile) {
  const std::string text = "[allocator.crasher]\nafter = 5\n[sweep.rows]\nmine = { \"allocator.name\" = \"" +
                           fixture("crasher").string() + "\" }\n";
  EXPECT_THAT(load(text).sweep_cells(), SizeIs(1));
}

TEST_F(Sweep, ASectionOfTheFilesAllocatorMayStandThereWhereTheCommandLineNamesAnother) {
  const std::string text =  // of a plugin that no other case here loads, so that it shows in their company, too
      "[allocator]\nname = \"" + fixture("forker").string() + "\"\n[allocator.forker]\nhow = \"bare\"\n";
  EXPECT_EQ(load(text, {"allocator.name=direct"}).experiment().allocator.policy.name, "direct");
}

constexpr char kRows[] =
    "[sweep.rows]\n\"as it is\" = {}\ncheckpointing = { \"train.checkpoint\" = true }\n"
    "both = { \"train.checkpoint\" = true, \"train.epochs\" = 3 }\n";

TEST_F(Sweep, RowsAreNamedCellsInTheOrderOfTheFile) {
  const Config config = load(kRows);
  EXPECT_THAT(config.sweep_keys(), ElementsAre("row"));
  EXPECT_THAT(overrides_of(config), ElementsAre(IsEmpty(), ElementsAre("train.checkpoint=true"),
                                                ElementsAre("train.checkpoint=true", "train.epochs=3")));
  EXPECT_THAT(config.sweep_cells()[0].values, ElementsAre("as it is"));
  EXPECT_THAT(config.sweep_cells()[2].values, ElementsAre("both"));
}

TEST_F(Sweep, RowsMultiplyWithSweptKeys) {
  const Config config = load(std::string("[sweep]\n\"allocator.name\" = [\"direct\", \"caching\"]\n") + kRows);
  EXPECT_THAT(config.sweep_keys(), ElementsAre("row", "allocator.name"));
  ASSERT_THAT(config.sweep_cells(), SizeIs(6));
  EXPECT_THAT(config.sweep_cells()[3].values, ElementsAre("checkpointing", "caching"));
  EXPECT_THAT(overrides_of(config)[3], ElementsAre("train.checkpoint=true", "allocator.name=\"caching\""));
}

TEST_F(Sweep, TheCommandLineOutranksARow) {
  EXPECT_THAT(overrides_of(load(kRows, {"train.epochs=9"}))[2], ElementsAre("train.checkpoint=true"));
}

TEST_F(Sweep, MistakesInRowsAreFoundBeforeAnythingRuns) {
  const auto mistake = [&](const std::string& text) { return message_of<ConfigError>([&] { load(text); }); };
  EXPECT_THAT(mistake("[sweep.rows]\none = { \"train.epoch\" = 1 }\n"),
              AllOf(HasSubstr("exp.toml:2:9: "), HasSubstr("did you mean 'epochs'?")));
  EXPECT_THAT(mistake("[sweep.rows]\none = { \"train.epochs\" = 0 }\n"), HasSubstr("from 1 to 1000"));
  EXPECT_THAT(mistake("[sweep.rows]\none = 3\n"), HasSubstr("a row of a sweep is a table of settings"));
  EXPECT_THAT(mistake("[sweep.rows]\n"), HasSubstr("a row of a sweep is a table of settings"));
  EXPECT_THAT(mistake(std::string(kTwoAxes) + kRows), HasSubstr("the row 'checkpointing' sets train.checkpoint"));
}

}  // namespace
}  // namespace tenon::test
