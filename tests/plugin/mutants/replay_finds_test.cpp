// `tenon replay` on the mutants whose flaw a history shows: the row is disqualified, in words that say why.
#include "cli/program.h"
#include "plugin/mutants/findings.h"
#include "plugin/mutants/flaws.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Three streams, blocks that two of them use, the cache emptied now and then, and all of it once while nothing is
/// live; some blocks outlive the history.
std::string history() {
  std::mt19937 random(7);
  std::vector<int> live;
  std::string text;
  for (int i = 0, next = 0; i < 1500; ++i) {
    if (live.empty() || random() % 100 < 55) {
      const std::string id = std::to_string(++next);
      text += "a " + id + " " + std::to_string(1U << (9 + random() % 13)) + " " + std::to_string(random() % 3) + "\n";
      live.push_back(next);
      if (random() % 7 == 0) text += "u " + id + " " + std::to_string(random() % 3) + "\n";
    } else {
      std::swap(live[random() % live.size()], live.back());
      if (random() % 9 == 0) text += "u " + std::to_string(live.back()) + " " + std::to_string(random() % 3) + "\n";
      text += "f " + std::to_string(live.back()) + "\n";
      live.pop_back();
    }
    if (i % 400 == 399) text += "e\n";
  }
  for (const int id : live) text += "f " + std::to_string(id) + "\n";
  text += "e\na 8999 1000 0\n";  // a chunk that then is too full
  for (const int stream : {1, 2, 0, 2, 1, 0})
    text += "a 9000" + std::to_string(text.size()) + " 9000000 " + std::to_string(stream) + "\n";
  return text;
}

/// Fills a device of 100 MiB from one stream, gives all of it back, and asks for more than that from another one.
std::string exhaustion() {
  std::string text;
  for (int id = 0; id < 14; ++id) {
    if (id == 6)
      for (int freed = 0; freed < 6; ++freed) text += "f " + std::to_string(freed) + "\n";
    text += "a " + std::to_string(id) + " 9000000 " + (id < 6 ? "0\n" : "1\n");
  }
  return text;
}

std::vector<std::string> replay_of(const std::vector<std::string>& flaws, bool is_of_exhaustion) {
  std::vector<std::string> words = {"replay", "three.trace", "--deadline", "1"};
  if (is_of_exhaustion) words = {"replay", "full.trace", "--deadline", "1", "--capacity", kSmallCapacity};
  for (const std::string& flaw : flaws) words.insert(words.end(), {"-a", fixture("buddy").string() + ":flaw=" + flaw});
  return words;
}

class ReplayOfAMutant : public testing::TestWithParam<ReplayFinding> {
 protected:
  ReplayOfAMutant() {
    folder_.write("three.trace", history());
    folder_.write("full.trace", exhaustion());
  }
  Folder folder_;
};

TEST_P(ReplayOfAMutant, IsDisqualified) {
  const Said said = tenon_in(folder_, replay_of({GetParam().flaw}, GetParam().is_of_exhaustion));
  EXPECT_EQ(said.code, 1) << said.out << said.error;
  EXPECT_THAT(said.out + said.error, AllOf(HasSubstr("is disqualified"), HasSubstr(GetParam().words)));
}

INSTANTIATE_TEST_SUITE_P(Flaws, ReplayOfAMutant, testing::ValuesIn(kReplayFindings),
                         [](const auto& param) { return std::string(param.param.flaw); });

// What the table of README.md says with its dashes.
TEST(ReplayOfMutants, OfTheOthersNothingIsSeen) {
  std::vector<std::string> flaws = flaw_names();
  for (const ReplayFinding& finding : kReplayFindings) std::erase(flaws, finding.flaw);
  std::erase(flaws, "slow");  // it takes its time
  ASSERT_GT(flaws.size(), 10U);
  const Folder folder;
  folder.write("three.trace", history());
  folder.write("full.trace", exhaustion());
  for (const bool is_of_exhaustion : {false, true}) {
    const Said said = tenon_in(folder, replay_of(flaws, is_of_exhaustion));
    EXPECT_EQ(said.code, 0) << said.out << said.error;
    EXPECT_THAT(said.out + said.error, Not(HasSubstr("is disqualified")));
  }
}

TEST(ReplayOfMutants, TheWayOnIsTheKit) {
  const Folder folder;
  folder.write("three.trace", history());
  const std::string broken = fixture("buddy").string() + ":flaw=wrong_merge";
  const Said said = tenon_in(folder, {"replay", "three.trace", "three.trace", "-a", broken, "-a", "direct"});
  const std::string advice =
      "The kit names the broken promise, and the shortest history that breaks it:\n  tenon plugins test " + broken +
      "\n";
  EXPECT_THAT(said.error, HasSubstr(advice));
  EXPECT_EQ(said.error.find(advice), said.error.rfind("The kit names the broken promise"))
      << "once, of however many rows";
  EXPECT_THAT(tenon_in(folder, {"replay", "three.trace", "-a", "direct"}).error, Not(HasSubstr("plugins test")));
}

TEST(ReplayOfMutants, ACrashAndAHangNameTheFunctionsOfThePlugin) {
  const Folder folder;
  folder.write("three.trace", history());
  const std::pair<const char*, const char*> functions[] = {
      {"segfault", "where it was:\n    tenon::test::Buddy::misbehave"},
      {"recursion", "Buddy::recurse(int) (buddy.so)"},
      {"throws_from_noexcept", "fail_a_free() (buddy.so)"},
      {"deadlock", "Buddy::deallocate("}};
  for (const auto& [flaw, function] : functions) {
    const Said said = tenon_in(
        folder, {"replay", "three.trace", "--deadline", "1", "-a", fixture("buddy").string() + ":flaw=" + flaw});
    EXPECT_THAT(said.error, HasSubstr(function)) << flaw;
    EXPECT_THAT(said.error, Not(HasSubstr("tenon::replay::"))) << "the host's own functions are left out";
  }
}

TEST(ReplayOfMutants, SoundAllocatorsPassAndTwoBuildsStandSideBySide) {
  const Folder folder;
  folder.write("three.trace", history());
  std::filesystem::create_directory(folder.path() / "new");
  std::filesystem::copy_file(fixture("buddy"), folder.path() / "new/buddy.so");
  const Said said = tenon_in(
      folder, {"replay", "three.trace", "-a", "caching", "-a", "caching:max_split_size=24MiB", "-a", "expandable", "-a",
               "direct", "-a", fixture("buddy").string(), "-a", "new/buddy.so:chunk=1MiB"});
  EXPECT_EQ(said.code, 0) << said.out << said.error;
  EXPECT_THAT(said.out + said.error, AllOf(HasSubstr("chunk=1MiB"), Not(HasSubstr("disqualified"))));
}

}  // namespace
}  // namespace tenon::test
