// The command that goes on with a run or a sweep says no more than the folder: what it began with is kept there, and
// means the same in any folder.
#include "cli/interrupted.h"
#include "support/has_sanitizer.h"

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ResumeCommand : public InterruptedProgram {
 protected:
  /// A run that is interrupted in its second epoch or later; `more` are its settings and options.
  Said interrupted(const std::vector<std::string>& more) {
    std::vector<std::string> words = {"run", "run.toml", "train.epochs=400", "--out", "out"};
    words.insert(words.end(), more.begin(), more.end());
    StartedProgram program(folder_, words);
    program.wait_until_it_says("epoch 2/");
    program.interrupt(SIGINT);
    return program.wait();
  }
  std::vector<std::string> files_in(const std::string& folder) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(at(folder))) names.push_back(entry.path().filename().string());
    return names;
  }
  Folder elsewhere_;
};

TEST_F(ResumeCommand, WhatALayerWroteBeforeIsKeptBesideWhatItWritesNow) {
  ASSERT_EQ(interrupted({"allocator.layers=[\"trace\"]", "allocator.trace.file=\"mine.trace\""}).code, 130);
  const std::string before = read_bytes(at("out/mine.trace"));
  const int steps = json_of(at("out/result.json"))["result"]["steps"];
  ASSERT_EQ(tenon({"run", "--resume", "out"}).code, 0);
  const std::string kept = "out/mine.until-step-" + std::to_string(steps) + ".trace";
  EXPECT_EQ(read_bytes(at(kept)), before) << kept << testing::PrintToString(files_in("out"));
  EXPECT_NE(read_bytes(at("out/mine.trace")), before);
  ASSERT_EQ(tenon({"run", "run.toml", "--out", "out"}).code, 0);
  EXPECT_EQ(read_bytes(at("out/previous-1/mine.until-step-" + std::to_string(steps) + ".trace")), before)
      << "it goes where the rest of the earlier run goes";
  EXPECT_THAT(files_in("out"), Not(testing::Contains(HasSubstr("mine."))));
}

TEST_F(ResumeCommand, WhatALayerWroteToAPlaceOfTheUsersIsKeptThere) {
  const std::string file = at("mine.trace").string();
  ASSERT_EQ(interrupted({"allocator.layers=[\"trace\"]", "allocator.trace.file=\"" + file + "\""}).code, 130);
  const std::string before = read_bytes(file);
  const int steps = json_of(at("out/result.json"))["result"]["steps"];
  ASSERT_EQ(tenon({"run", "--resume", "out"}).code, 0);
  EXPECT_EQ(read_bytes(at("mine.until-step-" + std::to_string(steps) + ".trace")), before)
      << testing::PrintToString(files_in("."));
  EXPECT_NE(read_bytes(file), before);
}

TEST_F(ResumeCommand, PartsThatWereKilledOverwriteOneAnotherNowhere) {
  ASSERT_EQ(tenon({"run", "exp.toml", "--record", "text", "--out", "one"}).code, 0);
  fs::remove(at("one/result.json"));
  folder_.write("one/memory.until-step-0.trace.gz", "of the part before");
  ASSERT_EQ(tenon({"run", "--resume", "one"}).code, 0);
  EXPECT_EQ(read_bytes(at("one/memory.until-step-0.trace.gz")), "of the part before");
  EXPECT_TRUE(fs::exists(at("one/memory.until-step-0-2.trace.gz")));
}

TEST_F(ResumeCommand, WhatAKilledPartRecordedHasTheNameOfTheStepThatTheRunGoesOnFrom) {
  StartedProgram program(folder_, {"run", "run.toml", "train.epochs=400", "--record", "trace", "--out", "out"});
  while (!fs::exists(at("out/state.safetensors"))) std::this_thread::yield();
  program.interrupt(SIGKILL);
  ASSERT_EQ(program.wait().code, 128 + SIGKILL);
  const Said said = tenon({"run", "--resume", "out"});
  ASSERT_EQ(said.code, 0) << said.error;
  const std::size_t after = said.error.find("going on after step ");
  ASSERT_NE(after, std::string::npos) << said.error;
  const std::string step = std::to_string(std::stoi(said.error.substr(after + 20)));
  EXPECT_NE(step, "0");
  EXPECT_TRUE(fs::exists(at("out/memory.until-step-" + step + ".tenon"))) << testing::PrintToString(files_in("out"));
  EXPECT_THAT(said.error, HasSubstr("out/memory.until-step-" + step + ".tenon; what it has after step " + step +
                                    " is run again, and recorded again"));
}

TEST_F(ResumeCommand, TheDeadlineIsThatOfTheBeginning) {
  if (has_a_sanitizer()) GTEST_SKIP() << "signals are left to the sanitizer";
  const Said first =
      tenon({"run", "exp.toml", "allocator.name=\"" + fixture("crasher").string() + ":after=40,how=hang\"",
             "--deadline", "0.5", "--out", "one"});
  EXPECT_THAT(first.error, HasSubstr("within 0.5"));
  EXPECT_EQ(json_of(at("one/run.json"))["deadline"], 0.5);
  const Said again = tenon({"run", "--resume", "one"});
  EXPECT_EQ(again.code, first.code);
  EXPECT_THAT(again.error, AllOf(HasSubstr("within 0.5"), Not(HasSubstr("60 s"))));
  const Said other = tenon({"run", "--resume", "one", "--deadline", "0.25"});
  EXPECT_THAT(other.error, AllOf(HasSubstr("within 0."), Not(HasSubstr("within 0.5"))));
  EXPECT_EQ(json_of(at("one/run.json"))["deadline"], 0.25) << "the command that is printed now goes on with it";
}

TEST_F(ResumeCommand, GoesOnFromAnyFolderThoughAllWordsAreRelative) {
  fs::create_directories(at("old"));
  fs::copy_file(fixture("tiny"), at("old/buddy.so"));
  fs::copy(at("data"), at("old/data"), fs::copy_options::recursive);
  const std::vector<std::string> words = {"allocator.name=\"./old/buddy.so\"", "data.path=\"old/data\"", "--out"};
  std::vector<std::string> run = {"run", "exp.toml"}, sweep = {"run", "exp.toml", "train.lr=0.1,0.01", "--sweep"};
  run.insert(run.end(), words.begin(), words.end());
  run.emplace_back("one");
  sweep.insert(sweep.end(), words.begin(), words.end());
  sweep.emplace_back("two");
  for (const auto& command : {run, sweep}) {
    const std::string out = command.back();
    ASSERT_EQ(tenon(command).code, 0);
    const auto finished = json_of(at(out + "/result.json"));
    fs::remove(at(out + "/result.json"));
    fs::remove_all(at(out + "/cells/001-0.1"));
    const Said said = tenon_in(elsewhere_, {"run", "--resume", at(out).string()});
    EXPECT_EQ(said.code, 0) << said.error;
    if (out == "two") {
      expect_same_rows(finished, out, out);
    } else {
      EXPECT_EQ(json_of(at(out + "/result.json"))["result"]["losses"], finished["result"]["losses"]);
    }
    const Said changed = tenon_in(elsewhere_, {"run", "--resume", at(out).string(), "train.seed=1"});
    EXPECT_EQ(changed.code, 2);
    EXPECT_THAT(changed.error, HasSubstr("\n  cd " + folder_.path().string() + " && tenon run "));
  }
}

TEST_F(ResumeCommand, ADryRunThatIsInterruptedShowsTheCellsThatItHasEstimated) {
  std::string batch_sizes = "train.batch_size=1";
  for (int size = 2; size <= 64; ++size) batch_sizes += "," + std::to_string(size);
  StartedProgram program(folder_, {"run", "exp.toml", batch_sizes, "train.lr=0.1,0.01,0.001", "--sweep", "--dry-run"});
  program.wait_until_it_catches(SIGINT);
  while (grandchildren().empty()) std::this_thread::yield();
  program.interrupt(SIGINT);
  const Said said = program.wait();
  EXPECT_EQ(said.code, 130) << said.error;
  EXPECT_THAT(said.error, AllOf(HasSubstr("ended by SIGINT: "), HasSubstr(" of 192 cells are estimated")));
  EXPECT_THAT(said.out, AllOf(HasSubstr("train.batch_size"), HasSubstr("0.1"), HasSubstr("nothing was run")));
}

}  // namespace
}  // namespace tenon::test
