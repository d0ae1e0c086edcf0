// What is said beside a result: notes on the file that was read, refusals, remarks on a run; and where none of it
// belongs.
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace tenon::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Notes : public Program {};

TEST_F(Notes, OnAHistoryAreSaidByEachVerbThatReadsItUnlessQuiet) {
  folder_.write("b.csv", "id,lower,upper,size\n0,0,3,1024\n1,1,2,2048\n");
  const std::string note = "b.csv: a static problem: buffers with the times they live, replayed as allocations";
  for (std::vector<std::string> words : {std::vector<std::string>{"replay", "b.csv", "-a", "direct"},
                                         {"trace", "info", "b.csv"},
                                         {"view", "b.csv", "-o", "b.html"},
                                         {"doctor", "b.csv"},
                                         {"plan", "b.csv", "-o", "b.plan"}}) {
    const Said loud = tenon(words);
    EXPECT_THAT(loud.error, HasSubstr(note)) << words[0];
    words.emplace_back("--quiet");
    const Said quiet = tenon(words);
    EXPECT_EQ(quiet.error, "") << words[0];
    EXPECT_EQ(quiet.code, loud.code) << words[0];
  }
}

TEST_F(Notes, AWordThatTheLogDoesNotKnowIsSaidOnceAndWarningsAreStillShown) {
  const std::string words = "debug, info, warning, off";
  const Said said = tenon_in(folder_, {"devices"}, {{"TENON_LOG", "inof"}});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.error, HasSubstr("TENON_LOG=\"inof\" is none of " + words + ": warnings are shown"));
  EXPECT_EQ(said.error.find(words), said.error.rfind(words));
  for (const char* word : {"off", "warning", ""})
    EXPECT_THAT(tenon_in(folder_, {"devices"}, {{"TENON_LOG", word}}).error, Not(HasSubstr("TENON_LOG"))) << word;
}

TEST_F(Notes, OnThisMachineStandAboveTheTableAndInNoOtherFormat) {
  EXPECT_THAT(tenon({"doctor"}).out, StartsWith("tenon "));
  EXPECT_THAT(tenon({"doctor", "--format", "csv"}).out, StartsWith("what,state,detail,remedy,needed\n"));
  const nlohmann::json document = parse_json(tenon({"doctor", "--format", "json"}).out);
  for (const auto& row : document.at("rows")) {
    EXPECT_TRUE(row.at("state") == "ok" || !row.at("remedy").is_null() || row.at("needed") == true) << row;
    if (row.at("what") == "plugin caching") {
      EXPECT_EQ(row.at("state"), "ok");
    }
  }
}

TEST_F(Notes, ThatNothingIsRecommendedAreInTheReportOrElseOnStandardError) {
  folder_.write("state.trace", "a 0 1048576 0\na 1 1048576 0\n");
  const std::string refusal = "state.trace: no setting is recommended from this file";
  const Said table = tenon({"doctor", "state.trace", "--capacity", "1GiB"});
  EXPECT_EQ(table.code, 1);
  EXPECT_THAT(table.out, HasSubstr(refusal));
  EXPECT_THAT(table.error, Not(HasSubstr(refusal)));
  const Said csv = tenon({"doctor", "state.trace", "--capacity", "1GiB", "--format", "csv"});
  EXPECT_EQ(csv.code, 1);
  EXPECT_THAT(csv.error, HasSubstr(refusal));
  EXPECT_THAT(csv.out, Not(HasSubstr(refusal)));
}

TEST_F(Notes, AskForNoPluginWhereThePolicyIsGiven) {
  folder_.write("own.trace", "# allocator: mine\na 0 1048576 0\nf 0\n");
  EXPECT_EQ(tenon({"doctor", "own.trace"}).code, 2);
  EXPECT_EQ(tenon({"doctor", "own.trace", "--pytorch-conf", "expandable_segments:True"}).code, 0);
  EXPECT_EQ(tenon({"doctor", "own.trace", "--allocator", "caching"}).code, 0);
  folder_.write("gone.trace", "# allocator: mine\n# allocator_plugin: /nowhere/mine.so\na 0 1048576 0\nf 0\n");
  EXPECT_THAT(tenon({"doctor", "gone.trace"}).error,
              HasSubstr("name its plugin, for PATH\n  tenon doctor gone.trace --allocator PATH/mine.so\n"));
}

TEST_F(Notes, OnARunThatWentWellNameNoLeakAndNoFault) {
  const Said said = tenon({"run", "exp.toml", "--out", "res"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.error, Not(HasSubstr("still allocated")));
  EXPECT_THAT(said.error, Not(HasSubstr("tenon plugins test")));
  EXPECT_THAT(said.error, Not(HasSubstr("are kept in")));
  EXPECT_THAT(said.error, Not(HasSubstr("results: ")));
  const nlohmann::json result = parse_json(read_bytes(folder_.path() / "res/result.json"));
  EXPECT_EQ(result["memory"]["leaked_bytes"], 0);
  EXPECT_EQ(result["exit_code"], 0);
}

TEST_F(Notes, OnACellThatFailsNameNoFolderOfItsOwn) {
  const Said said = tenon(
      {"run", "exp.toml", "allocator.layers=[limit]", "allocator.limit.bytes=16KiB,64MiB", "--sweep", "--out", "res"});
  EXPECT_EQ(said.code, 4) << said.error;
  EXPECT_THAT(said.error, Not(HasSubstr("results: ")));
  EXPECT_THAT(said.out, HasSubstr("results: res\n"));
}

TEST_F(Notes, OnOptionsOfADryRunThatChangeNothingNameThoseAlone) {
  EXPECT_EQ(tenon({"run", "exp.toml", "--dry-run", "--watch", "--metrics", "9464"}).error,
            "tenon: --watch and --metrics change nothing here: a dry run runs and writes nothing\n");
  EXPECT_EQ(tenon({"run", "exp.toml", "--dry-run", "-j", "2"}).error,
            "tenon: --jobs changes nothing here: a dry run runs and writes nothing\n");
  EXPECT_EQ(tenon({"run", "exp.toml", "--dry-run"}).error, "");
}

}  // namespace
}  // namespace tenon::test
