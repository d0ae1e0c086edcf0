// Folders of results: what may begin in one, what goes on there, and what is refused.
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

namespace tenon::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class RunFolder : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    folder_.write("sweep.toml", experiment("[sweep]\n\"allocator.name\" = [\"direct\", \"caching\"]\n"));
  }
  fs::path at(const std::string& name) const { return folder_.path() / name; }
  /// A sweep of which the first cell is finished.
  void begin_sweep() {
    ASSERT_EQ(tenon({"run", "sweep.toml", "--out", "res"}).code, 0);
    fs::remove_all(at("res/cells/002-caching"));
    std::string manifest = read_bytes(at("res/run.json"));
    manifest.replace(manifest.find("\"finished\": true"), 16, "\"finished\": false");
    folder_.write("res/run.json", manifest);
  }
};

TEST_F(RunFolder, ARunDoesNotBeginAmongTheCellsOfASweep) {
  ASSERT_EQ(tenon({"run", "sweep.toml", "--out", "res"}).code, 0);
  const std::string before = read_bytes(at("res/result.json"));
  const Said said = tenon({"run", "exp.toml", "--out", "res"});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.error, AllOf(HasSubstr("res has the results of a sweep"), HasSubstr("--out")));
  EXPECT_EQ(read_bytes(at("res/result.json")), before);
  ASSERT_EQ(tenon({"run", "exp.toml", "--out", "one"}).code, 0);
  EXPECT_THAT(tenon({"run", "sweep.toml", "--out", "one"}).error, HasSubstr("one has the results of a run"));
}

TEST_F(RunFolder, AnOlderSweepWithoutAManifestIsKnownByItsCells) {
  folder_.write("res/cells/001-direct/result.json", "{}");
  EXPECT_THAT(tenon({"run", "exp.toml", "--out", "res"}).error, HasSubstr("the results of a sweep"));
}

TEST_F(RunFolder, AnotherRunInTheFolderOfAFinishedOneLeavesNothingOfIt) {
  ASSERT_EQ(tenon({"run", "exp.toml", "--record", "all", "--out", "res"}).code, 0);
  folder_.write("res/notes.txt", "the user's own");
  ASSERT_EQ(tenon({"run", "exp.toml", "--out", "res"}).code, 0);
  EXPECT_FALSE(fs::exists(at("res/memory.tenon")));
  EXPECT_FALSE(fs::exists(at("res/tensorboard")));
  EXPECT_TRUE(fs::exists(at("res/notes.txt")));
}

TEST_F(RunFolder, AnUnfinishedSweepIsNotBegunAnewOverItsFinishedCells) {
  begin_sweep();
  const Said said = tenon({"run", "sweep.toml", "--out", "res"});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.error, AllOf(HasSubstr("1 finished cell, "), HasSubstr("tenon run --resume res")));
}

TEST_F(RunFolder, AResumedSweepRunsWhatIsMissing) {
  begin_sweep();
  const Said said = tenon({"run", "--resume", "res"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.error, AllOf(HasSubstr("[1/2] finished before"), HasSubstr("[2/2] allocator.name")));
  EXPECT_THAT(said.out, AllOf(HasSubstr("losses: equal to the last bit in 2 cells"), EndsWith("results: res\n")));
  const Said again = tenon({"run", "--resume", "res"});
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.error, AllOf(HasSubstr("[2/2] finished before"), Not(HasSubstr("allocator.name"))));
}

TEST_F(RunFolder, AChangedExperimentIsRefusedWithWhatChanged) {
  begin_sweep();
  folder_.write("sweep.toml", experiment("lr = 0.5\n[sweep]\n\"allocator.name\" = [\"direct\", \"expandable\"]\n"));
  const Said said = tenon({"run", "--resume", "res"});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.error, AllOf(HasSubstr("train.lr was 0.001, is 0.5"), HasSubstr("caching\" is gone"),
                                HasSubstr("expandable\" is new"), HasSubstr("begin anew in another folder")));
  ASSERT_EQ(tenon({"run", "exp.toml", "--out", "one"}).code, 0);
  EXPECT_THAT(tenon({"run", "exp.toml", "train.seed=1", "--resume", "one"}).error,
              HasSubstr("train.seed was 47, is 1"));
}

TEST_F(RunFolder, ASettingBesideResumeIsAChangedExperimentWithTwoWaysOn) {
  ASSERT_EQ(tenon({"run", "exp.toml", "train.lr=0.01", "--out", "one"}).code, 0);
  EXPECT_EQ(tenon({"run", "--resume", "one", "train.lr=0.01"}).code, 0) << "as it was";
  const Said said = tenon({"run", "--resume", "one", "train.seed=1", "train.lr=0.5"});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.error, AllOf(HasSubstr("train.lr was 0.01, is 0.5; train.seed was 47, is 1"),
                                HasSubstr("Go on with it as it began:\n  tenon run --resume one\n"),
                                EndsWith("\n  tenon run exp.toml train.seed=1 train.lr=0.5 --out one-2\n")));
  EXPECT_EQ(tenon({"run", "exp.toml", "train.seed=1", "train.lr=0.5", "--out", "one-2"}).code, 0) << "the other way on";
  EXPECT_THAT(tenon({"run", "--resume", "one", "train.seed=1"}).error, EndsWith(" --out one-3\n"));
  begin_sweep();
  EXPECT_THAT(tenon({"run", "--resume", "res", "train.seed=1"}).error, HasSubstr("train.seed was 47, is 1"));
  EXPECT_THAT(tenon({"run", "train.seed=1"}).error, HasSubstr("'train.seed=1' is a setting: name the experiment's"));
}

TEST_F(RunFolder, AFinishedRunIsShownAgain) {
  ASSERT_EQ(tenon({"run", "exp.toml", "--out", "res"}).code, 0);
  const Said said = tenon({"run", "--resume", "res"});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.out, HasSubstr("peak reserved"));
  EXPECT_THAT(said.error, HasSubstr("finished; nothing was run"));
}

TEST_F(RunFolder, WhereNothingCanBeResumedSaysSo) {
  EXPECT_THAT(tenon({"run", "--resume", "none"}).error, HasSubstr("none has no run.json: there is nothing to resume"));
  for (const char* damaged : {"", "{", "{}"}) {
    folder_.write("cut/run.json", damaged);
    EXPECT_THAT(tenon({"run", "--resume", "cut"}).error, HasSubstr("cut/run.json is damaged")) << damaged;
  }
  EXPECT_THAT(tenon({"run"}).error, HasSubstr("--resume"));
  for (const char* option : {"--resume", "--out"})
    EXPECT_THAT(tenon({"run", "exp.toml", option, ""}).error, HasSubstr(option + std::string(": an empty value")));
  EXPECT_FALSE(fs::exists(at("tenon-out"))) << "it would be another run";
  EXPECT_EQ(tenon({"run", "exp.toml", "--resume", "a", "--out", "b"}).code, 2);
}

TEST_F(RunFolder, AnExperimentThatIsGoneGoesOnFromItsSettings) {
  ASSERT_EQ(tenon({"run", "exp.toml", "--out", "res"}).code, 0);
  fs::remove(at("res/result.json"));
  fs::remove(at("exp.toml"));
  const Said said = tenon({"run", "--resume", "res"});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.error, HasSubstr("tenon run res/config.resolved.toml --resume res"));
  EXPECT_EQ(tenon({"run", "res/config.resolved.toml", "--resume", "res"}).code, 0);
}

TEST_F(RunFolder, WhatTheDeadLeftHalfWrittenIsRemoved) {
  folder_.write("res/result.json.partial-4194305", "{");  // beyond the largest process number
  ASSERT_EQ(tenon({"run", "exp.toml", "--out", "res"}).code, 0);
  EXPECT_FALSE(fs::exists(at("res/result.json.partial-4194305")));
}

TEST_F(RunFolder, CellsAtATimeGiveTheSameRowsInTheSameOrder) {
  ASSERT_EQ(tenon({"run", "sweep.toml", "train.lr=0.1,0.01", "--sweep", "--out", "one"}).code, 0);
  const Said said = tenon({"run", "sweep.toml", "train.lr=0.1,0.01", "--sweep", "--out", "four", "-j", "4"});
  ASSERT_EQ(said.code, 0) << said.error;
  const auto one = parse_json(read_bytes(at("one/result.json")))["rows"];
  const auto four = parse_json(read_bytes(at("four/result.json")))["rows"];
  ASSERT_EQ(one.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    for (const char* key : {"allocator.name", "train.lr", "status", "losses_fnv1a64", "peak_reserved_bytes"})
      EXPECT_EQ(one[i][key], four[i][key]) << key << " of cell " << i + 1;
  }
}

TEST_F(RunFolder, ACellThatCrashesCostsNoOtherOneBesideIt) {
  const Said said = tenon({"run", "exp.toml", "allocator.name=[\"" + fixture("crasher").string() + "\", \"direct\"]",
                           "--sweep", "--out", "res", "-j", "2", "--format", "json"});
  EXPECT_EQ(said.code, 1);
  const auto rows = parse_json(said.out)["rows"];
  EXPECT_EQ(rows[0]["status"], "crashed");
  EXPECT_EQ(rows[1]["status"], "done");
}

}  // namespace
}  // namespace tenon::test
