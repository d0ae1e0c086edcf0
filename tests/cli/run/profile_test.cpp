// [profile]: which steps of a run are recorded, and what is left of them.
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

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

TEST_F(RunProfile, HasPhasesOfTheStepInItsTrace) {
  ASSERT_EQ(tenon({"run", "exp.toml", "profile.enabled=true", "--out", "res"}).code, 0);
  const std::string trace = text("res/profile.chrome.json");
  for (const char* phase : {R"("name":"data")", R"("name":"forward")", R"("name":"backward")", R"("name":"optimizer")"})
    EXPECT_THAT(trace, HasSubstr(phase));
  EXPECT_THAT(trace, HasSubstr(R"("name":"step 3")"));
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

TEST_F(RunProfile, RefusesToSortByWhatThereIsNot) {
  const Said said = tenon({"run", "exp.toml", "profile.enabled=true", "profile.sort_by=wall_time", "--out", "res"});
  EXPECT_NE(said.code, 0);
  EXPECT_THAT(said.error, HasSubstr("self_cpu_time_total"));
}

}  // namespace
}  // namespace tenon::test
