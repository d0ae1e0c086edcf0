// A plugin that starts a process: that one has the pipes and locks of whoever it was started by, and nobody waits for
// it.
#include "cli/program.h"
#include "support/has_sanitizer.h"
#include "support/json.h"

#include <gmock/gmock.h>

namespace tenon::test {
namespace {

using testing::HasSubstr;

class ForkingPlugin : public Program, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    Program::SetUp();
    folder_.write("steps.trace", "a 1 1000 0\na 2 2000 0\nf 1\nf 2\n");
  }
  ~ForkingPlugin() override {
    folder_.write("until", "");
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "until.waited")) << "somebody waited for it";
  }
  std::string forker(const std::string& how) const {
    return fixture("forker").string() + ":how=" + how + ",until=" + (folder_.path() / "until").string();
  }
};

TEST_P(ForkingPlugin, IsReplayed) {
  const Said said = tenon({"replay", "steps.trace", "-a", forker(GetParam()), "--format", "json"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_EQ(parse_json(said.out)["rows"][0]["events"], 4);
}

TEST_P(ForkingPlugin, IsBenched) {
  const Said said = tenon({"bench", forker(GetParam()), "--workload", "lifo/10", "--rounds", "2"});
  EXPECT_EQ(said.code, 0) << said.error;
}

TEST_P(ForkingPlugin, IsTestedByTheKit) {
  const Said said = tenon({"plugins", "test", forker(GetParam()), "--only", "aligns"});
  EXPECT_EQ(said.code, 0) << said.out;
}

TEST_P(ForkingPlugin, ASweepOfItEstimatesRunsAndIsRepeated) {
  const std::vector<std::string> words = {
      "run",   "exp.toml", "allocator.name=[\"" + forker(GetParam()) + "\"]", "train.lr=0.1,0.01", "--sweep", "-j", "2",
      "--out", "res"};
  const bool is_bare = std::string(GetParam()) == "bare";  // nobody can take the folder's lock from it
  for (int round = is_bare ? 1 : 0; round < 2; ++round) {
    const Said said = tenon(words);
    EXPECT_EQ(said.code, 0) << said.error;
  }
}

INSTANTIATE_TEST_SUITE_P(How, ForkingPlugin, testing::Values("fork", "bare", "both"),
                         [](const auto& how) { return std::string(how.param); });

using ForkingPluginThatCrashes = ForkingPlugin;

TEST_F(ForkingPluginThatCrashes, IsToldOf) {
  if (has_a_sanitizer()) GTEST_SKIP() << "signals are left to the sanitizer";
  const Said replayed = tenon({"replay", "steps.trace", "-a", forker("crash")});
  EXPECT_EQ(replayed.code, 1);
  EXPECT_THAT(replayed.error, HasSubstr("crashed: Aborted"));
  const Said run = tenon({"run", "exp.toml", "allocator.name=" + forker("crash"), "--out", "res"});
  EXPECT_EQ(run.code, 128 + SIGABRT);
  EXPECT_THAT(run.error, HasSubstr("forker.so) crashed in allocate("));
}

}  // namespace
}  // namespace tenon::test
