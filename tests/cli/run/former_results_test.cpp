// A second run in a folder: what was finished there is kept, and a run that never began leaves nothing.
#include "cli/program.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace tenon::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class FormerResults : public Program {
 protected:
  fs::path at(const std::string& name) const { return folder_.path() / name; }
  std::string text(const std::string& name) const { return read_bytes(at(name)); }
};

TEST_F(FormerResults, AFinishedRunIsKeptWhenAnotherBeginsInItsFolder) {
  ASSERT_EQ(tenon({"run", "exp.toml", "--record", "trace,tensorboard", "--out", "res"}).code, 0);
  const std::string result = text("res/result.json"), history = text("res/memory.tenon");
  folder_.write("res/notes.txt", "the user's own");
  const Said said = tenon({"run", "exp.toml", "train.lr=0.01", "--out", "res"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.error, HasSubstr("the results that were in res are kept in res/previous-1\n"));
  EXPECT_EQ(text("res/previous-1/result.json"), result);
  EXPECT_EQ(text("res/previous-1/memory.tenon"), history);
  EXPECT_TRUE(fs::exists(at("res/previous-1/tensorboard")));
  EXPECT_FALSE(fs::exists(at("res/memory.tenon"))) << "what the new run did not record";
  EXPECT_TRUE(fs::exists(at("res/notes.txt")));
  EXPECT_EQ(tenon({"compare", "res/previous-1", "res"}).code, 0);
  EXPECT_THAT(tenon({"run", "--resume", "res/previous-1"}).error, HasSubstr("nothing was run"));
  const std::string second = text("res/result.json");
  ASSERT_EQ(tenon({"run", "exp.toml", "--out", "res", "--quiet"}).error, "");
  EXPECT_EQ(text("res/previous-2/result.json"), second);
  EXPECT_EQ(text("res/previous-1/result.json"), result);
}

TEST_F(FormerResults, AFinishedSweepIsKeptWithItsCells) {
  const std::vector<std::string> sweep = {"run",     "exp.toml", "allocator.name=direct,caching",
                                          "--sweep", "--out",    "res"};
  ASSERT_EQ(tenon(sweep).code, 0);
  const std::string result = text("res/result.json"), cell = text("res/cells/002-caching/result.json");
  const Said said = tenon(sweep);
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.error, AllOf(HasSubstr("kept in res/previous-1"), HasSubstr("[2/2] allocator.name")));
  EXPECT_EQ(text("res/previous-1/result.json"), result);
  EXPECT_EQ(text("res/previous-1/cells/002-caching/result.json"), cell);
  EXPECT_FALSE(fs::exists(at("res/cells/002-caching/previous-1")));
}

TEST_F(FormerResults, ARunThatFailedIsKeptToo) {
  ASSERT_EQ(tenon({"run", "exp.toml", "allocator.layers=[limit]", "allocator.limit.bytes=16KiB", "--out", "res"}).code,
            4);
  ASSERT_EQ(tenon({"run", "exp.toml", "--out", "res"}).code, 0);
  EXPECT_THAT(text("res/previous-1/result.json"), HasSubstr("out_of_memory"));
}

TEST_F(FormerResults, WhatLayersWroteIsKept) {
  const std::vector<std::string> traced = {
      "run", "exp.toml", "allocator.layers=[trace]", "allocator.trace.file=\"mine.trace\"", "--out", "res"};
  ASSERT_EQ(tenon(traced).code, 0);
  ASSERT_TRUE(fs::exists(at("res/mine.trace")));
  ASSERT_EQ(tenon({"run", "exp.toml", "--out", "res"}).code, 0);
  EXPECT_TRUE(fs::exists(at("res/previous-1/mine.trace")));
  EXPECT_FALSE(fs::exists(at("res/mine.trace")));
}

TEST_F(FormerResults, AMoveThatWasKilledInTheMiddleIsFinished) {
  ASSERT_EQ(tenon({"run", "exp.toml", "--out", "res"}).code, 0);
  const std::string result = text("res/result.json"), page = text("res/report.html");
  fs::create_directory(at("res/previous-1"));
  fs::rename(at("res/result.json"), at("res/previous-1/result.json"));
  ASSERT_EQ(tenon({"run", "exp.toml", "--out", "res"}).code, 0);
  EXPECT_EQ(text("res/previous-1/result.json"), result);
  EXPECT_EQ(text("res/previous-1/report.html"), page);
  EXPECT_TRUE(fs::exists(at("res/previous-1/run.json")));
  EXPECT_FALSE(fs::exists(at("res/previous-2")));
}

TEST_F(FormerResults, WhereTheDataAreMissingNothingIsMade) {
  const Said sweep =
      tenon({"run", "exp.toml", "data.path=\"nowhere\"", "train.seed=[1, 2]", "--sweep", "--out", "res"});
  EXPECT_EQ(sweep.code, 2);
  EXPECT_THAT(sweep.error, AllOf(HasSubstr("no such data folder"), Not(HasSubstr("[1/2]"))));
  EXPECT_FALSE(fs::exists(at("res")));
  const Said said = tenon({"run", "exp.toml", "data.path=\"nowhere\""});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.error, AllOf(HasSubstr("no such data folder"), Not(HasSubstr("results:"))));
  EXPECT_FALSE(fs::exists(at("tenon-out")));
}

TEST_F(FormerResults, ARunThatFailsBeforeItsFirstStepLeavesNothing) {
  const std::vector<std::string> failing = {"run", "exp.toml", "train.batch_size=65", "--record", "all"};
  EXPECT_THAT(tenon(failing).error, HasSubstr("65 is more than the 64 training examples"));
  EXPECT_FALSE(fs::exists(at("tenon-out")));
  std::vector<std::string> there = failing;
  there.insert(there.end(), {"--out", "deep/res"});
  EXPECT_EQ(tenon(there).code, 2);
  EXPECT_FALSE(fs::exists(at("deep")));
  folder_.write("deep/notes.txt", "the user's own");
  EXPECT_EQ(tenon(there).code, 2);
  EXPECT_FALSE(fs::exists(at("deep/res")));
  EXPECT_TRUE(fs::exists(at("deep/notes.txt")));
}

TEST_F(FormerResults, ARunThatFailsBeforeItsFirstStepLeavesAFinishedOneAsItWas) {
  ASSERT_EQ(tenon({"run", "exp.toml", "--record", "trace", "--out", "res"}).code, 0);
  const std::string result = text("res/result.json"), history = text("res/memory.tenon");
  const Said said = tenon({"run", "exp.toml", "train.batch_size=65", "--out", "res"});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.error, HasSubstr("res is as it was"));
  EXPECT_EQ(text("res/result.json"), result);
  EXPECT_EQ(text("res/memory.tenon"), history);
  EXPECT_FALSE(fs::exists(at("res/previous-1")));
}

}  // namespace
}  // namespace tenon::test
