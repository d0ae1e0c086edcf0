// Two builds of one plugin, or two sets of its options, side by side in a sweep, and an experiment of a plugin run
// under another allocator.
#include "cli/program.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

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
  const auto rows = nlohmann::json::parse(said.out)["rows"];
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
  EXPECT_THAT(compared.out, AllOf(HasSubstr("old/buddy.so"), HasSubstr("new/buddy.so:chunk=1MiB"),
                                  HasSubstr("peak reserved"), HasSubstr("1.00 MiB")));
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
    const auto result = nlohmann::json::parse(read_bytes(folder_.path() / "res/result.json"));
    EXPECT_EQ(result["allocator"], name == "caching" ? "caching" : "buddy");
    if (name != "caching") {
      EXPECT_EQ(result["memory"]["peak_reserved_bytes"], 2 << 20) << "its section counts";
    }
  }
}

}  // namespace
}  // namespace tenon::test
