// `tenon bench`: tables, JSON, gates, and what a bad plugin does to it. No assertion is about how fast anything is.
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

namespace tenon::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class BenchVerb : public Program {
 protected:
  Said bench(std::vector<std::string> more, int rounds = 2) {
    std::vector<std::string> words = {"bench", "--workload", "lifo/10", "--rounds", std::to_string(rounds)};
    words.insert(words.end(), more.begin(), more.end());
    return tenon(words);
  }
  static std::string crasher(const std::string& options) { return TENON_FIXTURE_DIR "/crasher.so:" + options; }
};

TEST_F(BenchVerb, TakesAllocatorsAsWordsAndByOption) {
  const Said said = bench({"direct", "-a", "caching", "-a", "caching:max_split_size=128MiB"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("against direct"), HasSubstr("caching:max_split_size=128MiB"),
                              HasSubstr("Medians of 2 rounds"), HasSubstr("2 rounds are too few for a verdict")));
}

TEST_F(BenchVerb, TwoFilesThatSupplyOneAllocatorStandSideBySide) {
  std::filesystem::copy_file(fixture("tiny"), folder_.path() / "old.so");
  std::filesystem::copy_file(fixture("tiny"), folder_.path() / "new.so");
  const Said said = bench({"./old.so", "./new.so", "--json"});
  EXPECT_EQ(said.code, 0) << said.error;
  const json document = parse_json(said.out);
  EXPECT_THAT(document["allocators"][0]["plugin"]["path"].get<std::string>(), HasSubstr("old.so"));
  EXPECT_THAT(document["allocators"][1]["plugin"]["path"].get<std::string>(), HasSubstr("new.so"));
}

TEST_F(BenchVerb, APluginsPathNeedNotBeUtf8) {
  std::filesystem::copy_file(fixture("tiny"), folder_.path() / "t\xff.so");
  const Said said = bench({"./t\xff.so", "--format", "json"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(parse_json(said.out)["allocators"][0]["plugin"]["path"].get<std::string>(), HasSubstr("\ufffd.so"));
}

TEST_F(BenchVerb, AnAllocatorWithoutANameIsRefused) {
  for (const auto& words : {std::vector<std::string>{""}, {"caching", ""}, {"-a", ""}}) {
    const Said said = bench(words);
    EXPECT_EQ(said.code, 2);
    EXPECT_THAT(said.error, HasSubstr("an empty value, as of a shell variable that is not set"));
  }
}

TEST_F(BenchVerb, ItsJsonHasEveryRoundAndTheMethod) {
  const json document = parse_json(bench({"direct", "caching", "--format", "json"}).out);
  EXPECT_EQ(document["schema_version"], 1);
  EXPECT_EQ(document["kind"], "bench");
  EXPECT_EQ(document["method"]["rounds"], 2);
  EXPECT_TRUE(document["host"].contains("load_average"));
  ASSERT_EQ(document["rows"].size(), 3u) << "the harness is the last";
  const json& row = document["rows"][1];
  EXPECT_EQ(row["allocator"], "caching");
  EXPECT_EQ(row["round_ns"].size(), 2u);
  EXPECT_EQ(row["verdict"], "too few rounds");
  EXPECT_TRUE(row["ratio_interval"].is_null());
}

TEST_F(BenchVerb, AGateThatSurelyHoldsIsExitCode3) {
  // Ten rounds: an interval needs eight.
  const Said said = bench({"direct", "direct", "--fail-if", "ns_per_pair > 0"}, 10);
  EXPECT_EQ(said.code, 3) << said.error;
  EXPECT_THAT(said.error, HasSubstr("lifo/10, direct#2: ns_per_pair is"));
  EXPECT_EQ(bench({"direct", "direct", "--fail-if", "b > 1000 * a"}, 10).code, 0);
}

TEST_F(BenchVerb, AGateThatTooFewRoundsCannotJudgeIsNoPass) {
  for (const char* gate : {"b < 1000 * a", "b > 1000 * a", "ns_per_pair > +1000%", "b.ns_per_pair > 1s"}) {
    const Said said = bench({"direct", "direct", "--json", "--fail-if", gate}, 1);
    EXPECT_EQ(said.code, 3) << gate;
    EXPECT_THAT(said.error, HasSubstr("ns_per_pair cannot be judged, 1 round is too few, it takes 8: --rounds 8"));
    const json document = parse_json(said.out);
    EXPECT_EQ(document["gates"][0]["tripped"], true) << gate;
    EXPECT_THAT(document["gates"][0]["because"][0].get<std::string>(), HasSubstr("cannot be judged"));
  }
}

TEST_F(BenchVerb, ACrashingPluginIsNamedAndTheOthersHaveFigures) {
  const Said said = bench({"direct", crasher("after=6000"), "--workload", "hot/512"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.error, AllOf(HasSubstr("crasher.so:after=6000 under "), HasSubstr("crashed: Segmentation fault")));
  EXPECT_THAT(said.out, HasSubstr("failed"));
}

TEST_F(BenchVerb, ASlowAllocatorIsNotAccusedOfABrokenPromise) {
  const Said said = bench({crasher("how=slow,after=6000"), "--deadline", "1"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.error, AllOf(HasSubstr("no end within 1 s ("), HasSubstr("operations done): raise --deadline"),
                                testing::Not(HasSubstr("tenon plugins test"))));
}

TEST_F(BenchVerb, WhatAPluginPrintsIsNotInTheResults) {
  const Said said = bench({crasher("how=print,after=1"), "--json"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_EQ(parse_json(said.out)["kind"], "bench");
  EXPECT_THAT(said.error, HasSubstr("said on standard output"));
}

TEST_F(BenchVerb, AHistoryIsAWorkload) {
  folder_.write("steps.trace", "a 1 1000 0\na 2 2000 0\nf 1\nf 2\n");
  const Said said = tenon({"bench", "direct", "--history", "steps.trace", "--rounds", "2"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, HasSubstr("recorded/steps"));
}

TEST_F(BenchVerb, AMistakeIsAUsageErrorBeforeAnythingIsMeasured) {
  EXPECT_EQ(bench({"no_such_allocator"}).code, 2);
  EXPECT_EQ(bench({"direct:no_option=1"}).code, 2);
  EXPECT_EQ(bench({"direct", "--workload", "cold/4KiB"}).code, 2);
  EXPECT_EQ(bench({"direct", "--fail-if", "b > 1.05 * a"}).code, 2) << "there is no b";
  EXPECT_EQ(bench({"direct", "--history", "missing.trace"}).code, 2);
  EXPECT_THAT(bench({"direct", "--seed", "-1"}).error, HasSubstr("a seed has no sign"));
  EXPECT_THAT(bench({"direct", "--json", "out.json"}).error, HasSubstr("writes to standard output: --json > out.json"));
}

}  // namespace
}  // namespace tenon::test
