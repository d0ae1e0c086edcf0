// Two builds of one plugin, or two sets of its options, side by side in a replay, its pages and comparisons, and in a
// sweep; and an experiment of a plugin run under another allocator.
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class SideBySide : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    for (const char* build : {"old", "new"}) {
      std::filesystem::create_directory(folder_.path() / build);
      std::filesystem::copy_file(fixture("buddy"), folder_.path() / build / "buddy.so");
    }
  }
};

TEST_F(SideBySide, BuildsAndOptionSetsOfOnePluginAreCellsOfASweepThatCompareSetsAgainstEachOther) {
  folder_.write("sweep.toml", experiment("[report]\nestimate = false\n[sweep]\n\"allocator.name\" = [\"old/buddy.so\", "
                                         "\"new/buddy.so\", \"new/buddy.so:chunk=1MiB\"]\n"));
  const Said said = tenon({"run", "sweep.toml", "--out", "res", "--format", "json"});
  ASSERT_EQ(said.code, 0) << said.error;
  const auto rows = parse_json(said.out)["rows"];
  ASSERT_EQ(rows.size(), 3U);
  for (const auto& row : rows) EXPECT_EQ(row["status"], "done");
  EXPECT_THAT(rows[0]["allocator.name"].get<std::string>(), HasSubstr("old/buddy.so"));
  EXPECT_THAT(rows[2]["allocator.name"].get<std::string>(), HasSubstr("new/buddy.so:chunk=1MiB"));
  EXPECT_EQ(rows[0]["peak_reserved_bytes"], rows[1]["peak_reserved_bytes"]);
  EXPECT_EQ(rows[1]["peak_reserved_bytes"], 16 << 20);
  EXPECT_EQ(rows[2]["peak_reserved_bytes"], 1 << 20);
  EXPECT_EQ(rows[0]["losses_fnv1a64"], rows[2]["losses_fnv1a64"]);

  std::vector<std::string> words = {"compare"};
  for (const auto& cell : std::filesystem::directory_iterator(folder_.path() / "res/cells"))
    words.push_back(cell.path().string());
  ASSERT_EQ(words.size(), 4U);
  std::sort(words.begin() + 1, words.end());
  words.erase(words.begin() + 2);
  const Said compared = tenon(words);
  EXPECT_EQ(compared.code, 0) << compared.error;
  EXPECT_THAT(compared.out, AllOf(HasSubstr("old/buddy.so"), HasSubstr("new/buddy.so"), HasSubstr("buddy.chunk"),
                                  HasSubstr("peak reserved"), HasSubstr("1.00 MiB")));
}

TEST_F(SideBySide, SweepsOverTwoBuildsWithOptionsOfTheirOwnAreHeldAgainstEachOther) {
  const auto sweep = [&](const std::string& spec, const std::string& out) {
    folder_.write("sweep.toml", experiment("[report]\nestimate = false\n[sweep]\n\"allocator.name\" = [\"" + spec +
                                           "\", \"direct\"]\n"));
    const Said said = tenon({"run", "sweep.toml", "--out", out, "--quiet"});
    ASSERT_EQ(said.code, 0) << said.error;
  };
  sweep("old/buddy.so", "a");
  sweep("new/buddy.so:chunk=1MiB", "b");
  const Said said = tenon({"compare", "a", "b", "--fail-if", "peak_reserved_bytes > +2%"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.error, testing::Not(HasSubstr("is not in")));
  EXPECT_THAT(said.out, AllOf(HasSubstr("options of buddy"), HasSubstr("chunk=1MiB"), HasSubstr("file of buddy"),
                              HasSubstr("old/buddy.so"), HasSubstr("better by 9")));
}

class ReplaySideBySide : public SideBySide {
 protected:
  void SetUp() override {
    SideBySide::SetUp();
    folder_.write("short.trace", "a 1 1000 0\na 2 5000000 0\nf 1\nf 2\n");
  }
  Said replay(const std::vector<std::string>& more) {
    std::vector<std::string> words = {"replay", "short.trace",  "-a", "old/buddy.so",
                                      "-a",     "new/buddy.so", "-a", "new/buddy.so:chunk=8MiB"};
    words.insert(words.end(), more.begin(), more.end());
    return tenon(words);
  }
  std::string path_of(const char* build) { return (folder_.path() / build / "buddy.so").string(); }
};

TEST_F(ReplaySideBySide, TheTableTellsBuildsApartByTheEndOfTheirPaths) {
  const Said said = replay({});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("\nold/buddy.so "), HasSubstr("\nnew/buddy.so "), HasSubstr("chunk=8")));
  const Said whole = tenon({"replay", "short.trace", "-a", path_of("old"), "-a", path_of("new"), "-a", "direct"});
  EXPECT_THAT(whole.out, AllOf(HasSubstr("\nold/buddy.so "), HasSubstr("\nnew/buddy.so "), HasSubstr("\ndirect ")));
  const Said alone = tenon({"replay", "short.trace", "-a", path_of("old"), "-a", path_of("old") + ":chunk=8MiB"});
  EXPECT_THAT(alone.out, AllOf(HasSubstr("\nbuddy "), testing::Not(HasSubstr("buddy.so"))))
      << "one build has its name, and its options in their column";
}

TEST_F(ReplaySideBySide, ProgramsReadTheSpecThatWasTyped) {
  const auto rows = parse_json(replay({"--format", "json"}).out)["rows"];
  ASSERT_EQ(rows.size(), 4U);
  const char* const specs[] = {"old/buddy.so", "new/buddy.so", "new/buddy.so:chunk=8MiB", "ideal"};
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i]["spec"], specs[i]);
  EXPECT_EQ(rows[0]["allocator"], "buddy");
  EXPECT_THAT(replay({"--format", "csv"}).out, HasSubstr(",new/buddy.so:chunk=8MiB,"));
}

TEST_F(ReplaySideBySide, PagesAndGatesNameTheBuild) {
  const Said said = tenon({"replay", "short.trace", "-a", path_of("old"), "-a", path_of("new") + ":chunk=4MiB",
                           "--html", "page.html", "--fail-if", "peak_reserved_bytes > 14MiB"});
  EXPECT_EQ(said.code, 3) << said.error;
  EXPECT_THAT(said.error, AllOf(HasSubstr("old/buddy.so"), testing::Not(HasSubstr("new/buddy.so"))));
  const std::string page = read_bytes(folder_.path() / "page.html");
  EXPECT_THAT(page, AllOf(HasSubstr(">old/buddy.so<"), HasSubstr(">new/buddy.so:chunk=4MiB<")));
}

TEST_F(ReplaySideBySide, ComparisonsAndBaselinesHoldEachBuildAgainstItself) {
  folder_.write("rows.json", replay({"--format", "json"}).out);
  const Said compared = tenon({"compare", "rows.json", "rows.json"});
  EXPECT_EQ(compared.code, 0) << compared.error;
  EXPECT_THAT(tenon({"compare", "rows.json", "rows.json", "--all"}).out,
              AllOf(HasSubstr("old/buddy.so"), HasSubstr("new/buddy.so"), HasSubstr("new/buddy.so:chunk=8")));
  auto document = parse_json(read_bytes(folder_.path() / "rows.json"));
  document["rows"][0]["peak_reserved_bytes"] = 1;
  folder_.write("baseline.json", document.dump());
  const Said gated = replay({"--baseline", "baseline.json", "--fail-if", "peak_reserved_bytes > +2%"});
  EXPECT_EQ(gated.code, 3);
  EXPECT_THAT(gated.error, AllOf(HasSubstr("old/buddy.so: peak_reserved_bytes"),
                                 testing::Not(HasSubstr("new/buddy.so: peak_reserved_bytes"))));
}

TEST_F(SideBySide, TheKitHeadsTheLinesOfEachBuildWithWhatTellsItApart) {
  const Said said = tenon({"plugins", "test", "old/buddy.so", "new/buddy.so:chunk=1MiB", "--only", "aligns"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("old/buddy.so, seed 47\n"), HasSubstr("new/buddy.so:chunk=1MiB, seed 47\n")));
}

TEST_F(SideBySide, OfTwoBuildsTheOneThatCrashesIsNamed) {
  for (const char* build : {"old", "new"})
    std::filesystem::copy_file(fixture("crasher"), folder_.path() / build / "crasher.so");
  folder_.write("sweep.toml", experiment("[allocator]\nname = \"old/crasher.so\"\n[sweep]\n\"allocator.name\" = "
                                         "[\"old/crasher.so\", \"new/crasher.so\"]\n"));
  const Said said =
      tenon({"run", "sweep.toml", "--no-sweep", "allocator.name=new/crasher.so:after=3,how=abort", "--out", "res"});
  EXPECT_EQ(said.code, 128 + SIGABRT) << said.error;
  EXPECT_THAT(said.error,
              AllOf(HasSubstr("new/crasher.so) crashed in allocate("), testing::Not(HasSubstr("old/crasher.so"))));
}

TEST_F(SideBySide, AnExperimentOfAPluginRunsUnderAnotherAllocator) {
  folder_.write("buddy.toml",
                experiment("[allocator]\nname = \"old/buddy.so\"\n[allocator.buddy]\nchunk = \"2MiB\"\n"));
  for (const std::string& name : {std::string("caching"), std::string("new/buddy.so"), std::string("old/buddy.so")}) {
    const Said said = tenon({"run", "buddy.toml", "allocator.name=" + name, "--out", "res"});
    EXPECT_EQ(said.code, 0) << name << said.error;
    const auto result = parse_json(read_bytes(folder_.path() / "res/result.json"));
    EXPECT_EQ(result["allocator"], name == "caching" ? "caching" : "buddy");
    if (name != "caching") {
      EXPECT_EQ(result["memory"]["peak_reserved_bytes"], 2 << 20) << "its section counts";
    }
  }
}

}  // namespace
}  // namespace tenon::test
