// [profile]: which steps of a run are recorded, and what is left of them.
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class RunProfile : public Program {
 protected:
  std::string text(const std::string& file) { return read_bytes(folder_.path() / file); }
  bool exists(const std::string& file) { return std::filesystem::exists(folder_.path() / file); }
};

TEST_F(RunProfile, LeavesTablesATraceAndFoldedStacksOfTheStepsThatWereAskedFor) {
  const Said said = tenon({"run", "exp.toml", "profile.enabled=true", "profile.active=2", "--out", "res"});
  ASSERT_EQ(said.code, 0) << said.error;
  const std::string table = text("res/profile.txt");
  for (const char* word :
       {"Self CPU Mem", "aten::linear", "Optimizer.step#", "Self CPU time total", "ProfilerStep#2", "ProfilerStep#3"})
    EXPECT_THAT(table, HasSubstr(word));
  EXPECT_THAT(table, Not(HasSubstr("ProfilerStep#1")));
  EXPECT_THAT(table, Not(HasSubstr("ProfilerStep#4")));
  EXPECT_THAT(text("res/profile.folded"), HasSubstr(";aten::"));
  const auto recorded = parse_json(text("res/result.json"))["recorded"];
  EXPECT_EQ(recorded.size(), 3u) << recorded;
  const Said replayed = tenon({"trace", "info", "res/profile.chrome.json", "--format", "json", "--quiet"});
  EXPECT_EQ(replayed.code, 0) << replayed.error;
}

TEST_F(RunProfile, WithStacksNamesCallSitesInItsTablesAndFoldedStacks) {
  const Said said =
      tenon({"run", "exp.toml", "profile.enabled=true", "profile.active=1", "profile.stacks=true", "--out", "res"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(text("res/profile.txt"), HasSubstr("\nOperators by call site\n"));
  EXPECT_THAT(text("res/profile.txt"), HasSubstr("Source Location"));
  EXPECT_THAT(text("res/profile.txt"), HasSubstr(": tenon::nn::LinearImpl::forward"));
  EXPECT_THAT(text("res/profile.folded"),
              testing::ContainsRegex("(^|\n|;)ProfilerStep#[0-9]+;.*: tenon::nn::LinearImpl::forward;[^;]*: "
                                     "tenon::linear;([^;]*OperatorScope[^;]*;)?aten::linear"))
      << "without optimization there are frames that are compiled into others else";
  for (const char* file : {"res/profile.txt", "res/profile.folded", "res/profile.chrome.json"})
    EXPECT_THAT(text(file), testing::Not(HasSubstr("RunProfile"))) << file;
}

TEST_F(RunProfile, HasPhasesOfTheStepInItsTrace) {
  ASSERT_EQ(tenon({"run", "exp.toml", "profile.enabled=true", "--out", "res"}).code, 0);
  const std::string trace = text("res/profile.chrome.json");
  for (const char* phase : {R"("name":"data")", R"("name":"forward")", R"("name":"backward")", R"("name":"optimizer")"})
    EXPECT_THAT(trace, HasSubstr(phase));
  EXPECT_THAT(trace, HasSubstr(R"("name":"step 3")"));
}

TEST_F(RunProfile, ATestBetweenTwoStepsIsNoPartOfThem) {
  // Two epochs of four steps, each with its test: the losses are those of the steps.
  const Said said = tenon({"run", "exp.toml", "profile.enabled=true", "profile.wait=0", "profile.warmup=0",
                           "profile.active=8", "--out", "res"});
  ASSERT_EQ(said.code, 0) << said.error;
  const std::string trace = text("res/profile.chrome.json");
  const auto count = [&](const std::string& event) {
    std::size_t found = 0;
    for (std::size_t at = trace.find(event); at != std::string::npos; at = trace.find(event, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count(R"("name":"aten::cross_entropy_loss")"), 8U);
  EXPECT_EQ(count(R"("name":"ProfilerStep#)"), 8U);
  EXPECT_EQ(parse_json(text("res/result.json"))["result"]["epochs"].size(), 2U) << "both were tested";
}

TEST_F(RunProfile, OfARunThatEndsBeforeItsFirstStepSaysThatAndWhatToChange) {
  const Said said = tenon({"run", "exp.toml", "profile.enabled=true", "profile.skip_first=1000", "--out", "res"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_FALSE(exists("res/profile.txt"));
  EXPECT_THAT(said.error, HasSubstr("[profile] recorded nothing: it begins with step 1003 of this run"));
  EXPECT_THAT(said.error, HasSubstr("skip_first = 1000"));
}

TEST_F(RunProfile, OfAWindowThatBeginsBehindTheLastStepLeavesNoEmptyTable) {
  const Said said =
      tenon({"run", "exp.toml", "profile.enabled=true", "profile.wait=4", "profile.warmup=4", "--out", "res"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.error, HasSubstr("[profile] recorded nothing: it begins with step 9 of this run"));
  EXPECT_THAT(said.error, HasSubstr("which took 8 steps"));
  EXPECT_FALSE(exists("res/profile.txt"));
}

TEST_F(RunProfile, IsRefusedWhereTheLastStepIsKnownToComeBeforeIt) {
  const Said said = tenon({"run", "exp.toml", "train.max_steps=2", "profile.enabled=true", "--out", "res"});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.error, HasSubstr("recording begins with step 3 (skip_first + wait + warmup are 2), and "
                                    "train.max_steps is 2"));
}

TEST_F(RunProfile, RefusesTablesWithoutARow) {
  const Said said = tenon({"run", "exp.toml", "profile.row_limit=0", "--out", "res"});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.error, HasSubstr("set how many, or -1 for all"));
}

TEST_F(RunProfile, OfAResumedRunCountsItsStepsOnAndKeepsWhatWasRecorded) {
  const auto interrupted = [&](const std::string& out) {
    StartedProgram program(folder_, {"run", "exp.toml", "train.epochs=400", "profile.enabled=true", "profile.wait=0",
                                     "profile.warmup=0", "profile.active=100000", "--out", out});
    program.wait_until_it_says("epoch 2/");
    program.interrupt(SIGINT);
    return program.wait().code;
  };
  ASSERT_EQ(interrupted("res"), 130);
  const std::int64_t done = parse_json(text("res/result.json"))["result"]["steps"];
  const std::string step = std::to_string(done);
  EXPECT_THAT(text("res/profile.txt"), HasSubstr("ProfilerStep#0 "));
  ASSERT_EQ(tenon({"run", "--resume", "res"}).code, 0);
  EXPECT_THAT(text("res/profile.until-step-" + step + ".chrome.json"), HasSubstr("ProfilerStep#0\""));
  const std::string trace = text("res/profile.chrome.json");
  EXPECT_THAT(trace, HasSubstr("ProfilerStep#" + step + "\""));
  EXPECT_THAT(trace, Not(HasSubstr("ProfilerStep#" + std::to_string(done - 1) + "\"")));
}

TEST_F(RunProfile, OfAResumedRunThatIsBehindItsStepsSaysSoAndKeepsTheFiles) {
  StartedProgram program(folder_, {"run", "exp.toml", "train.epochs=400", "profile.enabled=true", "--out", "res"});
  program.wait_until_it_says("epoch 3/");
  program.interrupt(SIGINT);
  ASSERT_EQ(program.wait().code, 130);
  const std::string before = text("res/profile.txt");
  const Said said = tenon({"run", "--resume", "res"});
  EXPECT_THAT(said.error, HasSubstr("[profile] recorded nothing in this part of the run, which went on with step"));
  EXPECT_EQ(text("res/profile.txt"), before);
}

TEST_F(RunProfile, OfAFormerRunInTheFolderIsKeptWithIt) {
  for (int run = 0; run < 2; ++run)
    ASSERT_EQ(tenon({"run", "exp.toml", "profile.enabled=true", "--out", "res"}).code, 0);
  EXPECT_TRUE(exists("res/previous-1/profile.txt"));
  EXPECT_TRUE(exists("res/profile.txt"));
}

TEST_F(RunProfile, WithSettingsThatIsNotEnabledSaysSo) {
  const Said said = tenon({"run", "exp.toml", "profile.active=2", "--out", "res"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.error, HasSubstr("profile.enabled = true"));
  EXPECT_EQ(tenon({"run", "exp.toml", "--out", "other"}).error.find("[profile]"), std::string::npos);
}

TEST_F(RunProfile, OfServedRequestsHasTheirSteps) {
  folder_.write("serve.toml",
                "[model]\nname = \"gpt\"\nhidden = 16\nlayers = 1\nheads = 2\ncontext = 192\nvocabulary = 64\n"
                "[serve]\nrequests = 8\n[profile]\nenabled = true\nactive = 2\n");
  const Said said = tenon({"run", "serve.toml", "--out", "res"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(text("res/profile.txt"), HasSubstr("ProfilerStep#2"));
  EXPECT_THAT(text("res/profile.txt"), HasSubstr("aten::linear"));
}

TEST_F(RunProfile, IsOffUnlessItIsAskedFor) {
  ASSERT_EQ(tenon({"run", "exp.toml", "--out", "res"}).code, 0);
  EXPECT_FALSE(exists("res/profile.txt"));
  EXPECT_FALSE(exists("res/profile.chrome.json"));
}

TEST_F(RunProfile, IsExplained) {
  const Said said = tenon({"config", "explain", "exp.toml"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, HasSubstr("profile.enabled"));
}

TEST_F(RunProfile, SortsByTheNamesThatPyTorchHasForADevice) {
  for (const char* key : {"self_cuda_memory_usage", "cuda_time_total", "self_cpu_time", "self_device_memory"}) {
    const Said said =
        tenon({"run", "exp.toml", "profile.enabled=true", std::string("profile.sort_by=") + key, "--out", key});
    EXPECT_EQ(said.code, 0) << said.error;
    EXPECT_TRUE(exists(std::string(key) + "/profile.txt"));
  }
}

TEST_F(RunProfile, RefusesToSortByWhatThereIsNot) {
  const Said said = tenon({"run", "exp.toml", "profile.enabled=true", "profile.sort_by=wall_time", "--out", "res"});
  EXPECT_NE(said.code, 0);
  EXPECT_THAT(said.error, HasSubstr("self_cpu_time_total"));
}

}  // namespace
}  // namespace tenon::test
