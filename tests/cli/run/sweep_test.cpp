// `tenon run` with a sweep: a process for each cell, and a row whatever becomes of it.
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

class SweepVerb : public Program {
 protected:
  nlohmann::json rows(const Said& said) { return parse_json(said.out)["rows"]; }
};

TEST_F(SweepVerb, LossesAreEqualToTheLastBitUnderEveryAllocator) {
  folder_.write("exp.toml", experiment("[sweep]\n\"allocator.name\" = [\"direct\", \"caching\", \"expandable\"]\n"));
  const Said said = tenon({"run", "exp.toml", "--out", "res"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("allocator.name"), HasSubstr("losses: equal to the last bit in 3 cells"),
                              EndsWith("results: res\n")));
  const auto json = parse_json(read_bytes(folder_.path() / "res/result.json"));
  EXPECT_EQ(json["schema_version"], 1);
  ASSERT_EQ(json["rows"].size(), 3U);
  EXPECT_EQ(json["rows"][0]["allocator.name"], "direct");
  EXPECT_EQ(json["rows"][0]["losses_fnv1a64"], json["rows"][2]["losses_fnv1a64"]);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "res/cells/002-caching/config.resolved.toml"));
  EXPECT_THAT(read_bytes(folder_.path() / "res/report.html"), AllOf(HasSubstr("expandable"), HasSubstr("<svg")));
}

TEST_F(SweepVerb, TheCellsOfADryRunAreListed) {
  const Said said = tenon(
      {"run", "exp.toml", "allocator.name=direct,caching", "train.checkpoint=[false, true]", "--sweep", "--dry-run"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("4 cells; nothing was run"), HasSubstr("Steps on addresses alone")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "tenon-out"));
}

TEST_F(SweepVerb, ADryRunNamesPluginsByTheEndOfTheirPathsAsTheRunDoes) {
  const std::string path = fixture("tiny").string();
  const std::vector<std::string> words = {"run", "exp.toml", "allocator.name=" + path + ",caching", "--sweep",
                                          "--dry-run"};
  const Said said = tenon(words);
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("\n   1  tiny.so "), Not(HasSubstr(path))));
  std::vector<std::string> for_programs = words;
  for_programs.insert(for_programs.end(), {"--format", "json"});
  EXPECT_THAT(rows(tenon(for_programs))[0]["allocator.name"].get<std::string>(), HasSubstr(path));
}

TEST_F(SweepVerb, ADryRunOfOneCellSaysSo) {
  EXPECT_THAT(tenon({"run", "exp.toml", "sweep.allocator.name=[\"direct\"]", "--dry-run"}).out,
              HasSubstr("\n1 cell; nothing was run"));
}

TEST_F(SweepVerb, ADryRunNamesTheCellsThatTheirLimitIsTooLowFor) {
  const Said said = tenon({"run", "exp.toml", "allocator.name=direct,caching", "allocator.layers=[\"limit\"]",
                           "allocator.limit.bytes=\"1MiB\"", "--sweep", "--dry-run", "--format", "json"});
  EXPECT_EQ(said.code, 4) << said.error;
  EXPECT_THAT(said.error, HasSubstr("cell 2: a run would end out of memory"));
  const auto cells = rows(said);
  EXPECT_TRUE(cells[0]["out_of_memory_at_bytes"].is_null());
  EXPECT_EQ(cells[1]["out_of_memory_at_bytes"], 1 << 20);
  EXPECT_GT(cells[1]["estimated_peak_reserved_bytes"], 1 << 20);
}

TEST_F(SweepVerb, NamedRowsStandSideBySideWithWhatTheirMemoryWasFor) {
  folder_.write("rows.toml", experiment("[report]\nby_purpose = true\n[sweep.rows]\n\"as it is\" = {}\n"
                                        "\"zeros stay\" = { \"train.zero_grad\" = \"zero\" }\n"));
  const Said said = tenon({"run", "rows.toml", "--out", "res"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("as it is"), HasSubstr("zeros stay"), HasSubstr("activations"),
                              HasSubstr("optimizer state"), HasSubstr("losses: equal to the last bit in 2 cells")));
  const auto json = parse_json(read_bytes(folder_.path() / "res/result.json"));
  EXPECT_EQ(json["rows"][1]["row"], "zeros stay");
  EXPECT_EQ(json["rows"][0]["peak_parameter_bytes"], 13'002 * 4);
  const Said dry = tenon({"run", "rows.toml", "--dry-run"});
  EXPECT_THAT(dry.out, AllOf(HasSubstr("est. requested"), HasSubstr("zeros stay"), HasSubstr("13002")));
}

TEST_F(SweepVerb, ACrashLosesOneCell) {
  const std::string crasher = fixture("crasher").string();
  const Said said = tenon(
      {"run", "exp.toml",
       "allocator.name=[\"" + crasher + "\", \"" + crasher + ":how=abort\", \"" + crasher + ":how=kill\", \"direct\"]",
       "--sweep", "--out", "res", "--format", "json", "--quiet"});
  EXPECT_EQ(said.code, 1);
  const auto cells = rows(said);
  ASSERT_EQ(cells.size(), 4U);
  EXPECT_EQ(cells[0]["status"], "crashed");
  EXPECT_THAT(cells[0]["error"].get<std::string>(), HasSubstr("SIGSEGV"));
  EXPECT_THAT(cells[1]["error"].get<std::string>(), HasSubstr("SIGABRT"));
  EXPECT_EQ(cells[2]["status"], "killed");
  EXPECT_THAT(cells[2]["error"].get<std::string>(), AllOf(HasSubstr("SIGKILL"), HasSubstr("out of memory")));
  EXPECT_EQ(cells[3]["status"], "done");
  EXPECT_TRUE(cells[0]["peak_reserved_bytes"].is_null());
}

TEST_F(SweepVerb, ABadCellIsToldOnce) {
  const Said said = tenon(
      {"run", "exp.toml",
       "allocator.name=[\"" + fixture("faulty").string() + ":how=forgets\", \"" + fixture("crasher").string() + "\"]",
       "allocator.layers=[\"limit\"]", "allocator.limit.bytes=[\"64MiB\", \"16KiB\"]", "--sweep"});
  const std::string all = said.out + said.error;
  const auto count = [&](const std::string& words) {
    int times = 0;
    for (std::size_t at = all.find(words); at != std::string::npos; at = all.find(words, at + 1)) ++times;
    return times;
  };
  EXPECT_EQ(count("is disqualified: "), 1) << all;
  EXPECT_EQ(count("OutOfMemory: "), 2) << all << "two cells run out";
  EXPECT_EQ(count("SIGSEGV"), 1) << all;
  EXPECT_THAT(said.error, AllOf(HasSubstr("[1/4] tenon: allocator 'faulty' is disqualified"),
                                HasSubstr("[2/4] tenon: OutOfMemory: faulty")));
  EXPECT_THAT(said.out, AllOf(HasSubstr("disqualified"), HasSubstr("out_of_memory")));
}

TEST_F(SweepVerb, CellsBesideEachOtherSayThatTheirTimesAreOfASharedMachine) {
  const std::vector<std::string> words = {"run", "exp.toml", "allocator.name=direct,caching", "--sweep", "--out"};
  std::vector<std::string> two = words, one = words;
  two.insert(two.end(), {"two", "-j", "2"});
  one.emplace_back("one");
  EXPECT_THAT(tenon(two).out, HasSubstr("times: up to 2 cells ran at a time and slowed one another"));
  EXPECT_THAT(tenon(one).out, testing::Not(HasSubstr("times: ")));
  const auto cells = [&](const std::string& file) {
    return parse_json(read_bytes(folder_.path() / file))["cells_at_a_time"];
  };
  EXPECT_EQ(cells("two/cells/001-direct/result.json"), 2);
  EXPECT_EQ(cells("one/cells/001-direct/result.json"), 1);
}

/// Of the cells of a running sweep those that have begun and have no result. The last first: a cell that is found at
/// work was so when those after it were looked at.
int cells_at_work(const std::filesystem::path& cells) {
  int at_work = 0;
  for (const char* cell : {"003-0.001", "002-0.01", "001-0.1"}) {
    const bool has_begun = std::filesystem::exists(cells / cell / "run.json");
    at_work += has_begun && !std::filesystem::exists(cells / cell / "result.json") ? 1 : 0;
  }
  return at_work;
}

TEST_F(SweepVerb, ACellThatTakesAllCoresRunsAloneWhateverWasAskedFor) {
  folder_.write("all.toml",
                "[data]\npath = \"data\"\n[model]\nhidden = 16\n[train]\nepochs = 20\nbatch_size = 16\n"
                "test_batch_size = 16\n");
  const std::vector<std::string> words = {"run", "all.toml", "train.lr=0.1,0.01,0.001", "--sweep", "-j", "3", "--out"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return more;
  };
  StartedProgram sweep(folder_, with({"res"}));
  const std::filesystem::path out = folder_.path() / "res";
  int most = 0;
  while (!std::filesystem::exists(out / "result.json")) {
    most = std::max(most, cells_at_work(out / "cells"));
    std::this_thread::yield();
  }
  const Said said = sweep.wait();
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_EQ(most, 1);
  EXPECT_THAT(said.error, HasSubstr("-j 3: one cell at a time, since "));
  EXPECT_THAT(said.out, testing::Not(HasSubstr("times: ")));
  EXPECT_EQ(parse_json(read_bytes(out / "cells/001-0.1/result.json"))["cells_at_a_time"], 1);
  const Said of_device = tenon(with({"two", "device.cpu.threads=1"}));
  EXPECT_THAT(of_device.error, testing::Not(HasSubstr("one cell at a time")));
  EXPECT_THAT(of_device.out, HasSubstr("times: up to "));
}

TEST_F(SweepVerb, ARunThatItsAllocatorEndsIsACrashedRow) {
  const Said said = tenon({"run", "exp.toml", "allocator.name=[\"" + fixture("crasher").string() + ":how=exit\"]",
                           "--sweep", "--format", "json", "--quiet"});
  EXPECT_EQ(said.code, 1);
  EXPECT_EQ(rows(said)[0]["status"], "crashed");
}

// Its process becomes another program, which ends well: nobody is left to tell.
TEST_F(SweepVerb, ACellThatLeavesNoResultHasFailedThoughItsProcessEndedWithZero) {
  const std::string gone = fixture("crasher").string() + ":after=40,how=become";
  const Said said = tenon({"run", "exp.toml", "allocator.name=[\"direct\", \"" + gone + "\"]", "--sweep", "--out",
                           "res", "--format", "json", "--quiet"});
  EXPECT_EQ(said.code, 1) << said.error;
  ASSERT_EQ(rows(said).size(), 2U);
  EXPECT_EQ(rows(said)[0]["status"], "done");
  EXPECT_EQ(rows(said)[1]["status"], "failed");
  EXPECT_THAT(rows(said)[1]["error"].get<std::string>(),
              AllOf(HasSubstr("ended with code 0 before it was done"), HasSubstr("res/cells/002-")));
}

class SweepOfAnOlderResult : public SweepVerb {
 protected:
  /// The second cell leaves no result; then it gets one, as an interrupted part of the run would have left it.
  void SetUp() override {
    SweepVerb::SetUp();
    const std::string gone = fixture("crasher").string() + ":after=40,how=become";
    const std::vector<std::string> words = {"run",      "exp.toml", "allocator.name=[\"direct\", \"" + gone + "\"]",
                                            "--sweep",  "--out",    "res",
                                            "--format", "json",     "--quiet"};
    ASSERT_EQ(tenon(words).code, 1);
    std::string cell;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() / "res/cells"))
      if (entry.path().filename().string().starts_with("002-")) cell = entry.path().filename().string();
    std::string older = read_bytes(folder_.path() / "res/cells/001-direct/result.json");
    const std::string done = "\"status\": \"done\"";
    ASSERT_NE(older.find(done), std::string::npos);
    folder_.write("res/cells/" + cell + "/result.json",
                  older.replace(older.find(done), done.size(), "\"status\": \"interrupted\""));
  }
  void expect_that_the_cell_failed(const std::map<std::string, std::string>& variables) {
    const Said said = tenon({"run", "--resume", "res", "--format", "json", "--quiet"}, variables);
    EXPECT_EQ(said.code, 1) << said.error;
    EXPECT_EQ(rows(said)[1]["status"], "failed");
    EXPECT_THAT(rows(said)[1]["error"].get<std::string>(), HasSubstr("ended with code 0 before it was done"));
  }
};

TEST_F(SweepOfAnOlderResult, ItDoesNotStandInForACellThatLeftNone) { expect_that_the_cell_failed({}); }

TEST_F(SweepOfAnOlderResult, ItDoesNotStandInForACellThatEndedBeforeItOpenedItsFolder) {
  expect_that_the_cell_failed({{"TENON_TEST_CELLS_END", "1"}});
}

TEST_F(SweepVerb, OutOfMemoryOfACellIsARowThatSaysSo) {
  const Said said = tenon({"run", "exp.toml", "allocator.layers=[\"limit\"]",
                           "allocator.limit.bytes=[\"16KiB\", \"64MiB\"]", "--sweep", "--format", "json", "--quiet"});
  EXPECT_EQ(said.code, 4);
  EXPECT_EQ(rows(said)[0]["status"], "out_of_memory");
  EXPECT_EQ(rows(said)[1]["status"], "done");
}

TEST_F(SweepVerb, ACellWhoseAllocatorRefusesItsOptionsHasNoFigures) {
  const Said said = tenon({"run", "exp.toml", "allocator.name=caching:max_split_size=32,caching", "--sweep", "--format",
                           "json", "--quiet"});
  EXPECT_EQ(said.code, 2);
  EXPECT_EQ(rows(said)[0]["status"], "failed");
  EXPECT_TRUE(rows(said)[0]["peak_reserved_bytes"].is_null());
  EXPECT_EQ(rows(said)[1]["status"], "done");
}

TEST_F(SweepVerb, AMistakeInAnyCellStopsItBeforeTheFirst) {
  const Said said = tenon({"run", "exp.toml", "train.batch_size=[16, 0]", "--sweep", "--out", "res"});
  EXPECT_EQ(said.code, 2);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "res"));
  EXPECT_EQ(tenon({"run", "exp.toml", "--sweep"}).code, 2) << "nothing to sweep";
  EXPECT_EQ(tenon({"run", "exp.toml", "--sweep", "--no-sweep"}).code, 2);
}

}  // namespace
}  // namespace tenon::test
