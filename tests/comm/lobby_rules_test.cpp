// The lobby's limits: how long one looks, how much is said, who may wait.
#include <tenon/comm/communicator.h>
#include <tenon/comm/lobby.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace tenon {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

RankEnvironment waiting_at(int rank, int size = 3, int local_size = 3) {
  RankEnvironment own;
  own.rank = own.local_rank = rank;
  own.size = size;
  own.local_size = local_size;
  own.launch = ".rules-" + std::to_string(::getpid());
  return own;
}

TEST(LobbyRules, RanksOfOneAndOfManyAreSpokenOfAsSuch) {
  const Lobby first(waiting_at(0, 4, 3));
  EXPECT_EQ(first.missing(),
            "2 of the 3 ranks of this machine have not come to it, one or more of ranks 1, 2, 3: they hang before it, "
            "or were not started");
  const Lobby second(waiting_at(1, 4, 3));
  EXPECT_EQ(first.missing(),
            "1 of the 3 ranks of this machine has not come to it, one or more of ranks 2, 3: they hang before it, or "
            "were not started");
  const Lobby third(waiting_at(3, 4, 3));
  EXPECT_EQ(first.missing(), "all ranks of this machine have come to it: look at the machines of rank 2");
}

TEST(LobbyRules, TheMachinesOfAllOtherRanksAreNamed) {
  const Lobby first(waiting_at(0, 5, 2)), last(waiting_at(4, 5, 2));
  EXPECT_EQ(last.missing(), "all ranks of this machine have come to it: look at the machines of ranks 1, 2, 3");
}

TEST(LobbyRules, WhereAllHaveComeOneHangsInIt) {
  const Lobby first(waiting_at(0, 2, 2)), second(waiting_at(1, 2, 2));
  EXPECT_EQ(second.missing(),
            "all of them have come to it, and one hangs in it: it is stopped, or the network is slow");
  EXPECT_TRUE(second.missing_ranks().empty());
}

TEST(LobbyRules, AreOfOneLaunch) {
  const Lobby first(waiting_at(0));
  RankEnvironment other = waiting_at(1);
  other.launch += "-other";
  const Lobby second(other);
  EXPECT_EQ(first.missing_ranks(), (std::vector<int>{1, 2}));
  EXPECT_FALSE(Lobby::tell(other, 0, {.rank = 1, .text = "words"}));
}

TEST(LobbyRules, APlaceThatIsTakenOrHasTooLongANameIsNone) {
  const Lobby first(waiting_at(0)), again(waiting_at(0)), second(waiting_at(1));
  EXPECT_EQ(again.missing(), "one of them hangs before it, or was not started");
  EXPECT_TRUE(again.missing_ranks().empty());
  EXPECT_FALSE(again.heard());
  EXPECT_TRUE(Lobby::tell(waiting_at(1), 0, {.rank = 1, .text = "words"}));
  EXPECT_TRUE(first.heard()) << "it is the first one's";
  RankEnvironment long_name = waiting_at(0);
  long_name.launch = std::string(200, 'x');
  const Lobby none(long_name);
  EXPECT_EQ(none.missing(), "one of them hangs before it, or was not started");
  EXPECT_FALSE(Lobby::tell(long_name, 0, {.text = "words"}));
}

TEST(LobbyRules, ANameFitsUpToTheSystemsLimit) {
  // "\0tenon-lobby-UID-LAUNCH-0" in the 108 bytes of a socket's name.
  const std::size_t others = ("tenon-lobby-" + std::to_string(::getuid()) + "--0").size() + 1;
  RankEnvironment own = waiting_at(0);
  own.launch = ".rules-" + std::to_string(::getpid());
  own.launch += std::string(108 - others - own.launch.size(), 'x');
  const Lobby fits(own);
  EXPECT_TRUE(Lobby::tell(own, 0, {.text = "words"}));
  EXPECT_TRUE(fits.heard());
  own.launch += 'x';
  const Lobby does_not(own);
  EXPECT_FALSE(Lobby::tell(own, 0, {.text = "words"}));
}

TEST(LobbyRules, WordsKeepTheirOrderAndSayAll) {
  const Lobby first(waiting_at(0));
  EXPECT_TRUE(
      Lobby::tell(waiting_at(1), 0, {.rank = 1, .code = ExitCode::kOutOfMemory, .text = "one", .missing = {2}}));
  EXPECT_TRUE(Lobby::tell(waiting_at(2), 0, {.rank = 2, .text = std::string(4000, 'y')}));
  const auto one = first.heard(), two = first.heard();
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->rank, 1);
  EXPECT_EQ(one->code, ExitCode::kOutOfMemory);
  EXPECT_EQ(one->text, "one");
  EXPECT_EQ(one->missing, std::vector<int>{2});
  EXPECT_EQ(two->rank, 2);
  EXPECT_EQ(two->code, ExitCode::kFailed);
  EXPECT_EQ(two->text, std::string(4000, 'y'));
  EXPECT_TRUE(two->missing.empty());
}

TEST(LobbyRules, OfMissingRanksTheFirst64AreSaid) {
  const Lobby first(waiting_at(0));
  std::vector<int> missing(64);
  std::iota(missing.begin(), missing.end(), 100);
  EXPECT_TRUE(Lobby::tell(waiting_at(1), 0, {.text = "words", .missing = missing}));
  EXPECT_EQ(first.heard()->missing, missing);
  std::vector<int> more = missing;
  more.push_back(7);
  EXPECT_TRUE(Lobby::tell(waiting_at(1), 0, {.text = "words", .missing = more}));
  EXPECT_EQ(first.heard()->missing, missing);
}

TEST(LobbyRules, AMissingRankIsWhoLooksErrorAndNotItsOwnWords) {
  Lobby first(waiting_at(0));
  EXPECT_TRUE(Lobby::tell(waiting_at(1), 0, {.rank = 1, .code = ExitCode::kUsage, .text = "words", .missing = {2}}));
  try {
    first.look();
    FAIL() << "it has heard";
  } catch (const DistributedError& error) {
    EXPECT_EQ(error.ranks(), std::vector<int>{2});
    EXPECT_EQ(error.exit_code(), ExitCode::kUsage);
  }
  EXPECT_NO_THROW(first.look());
}

/// What `processes` says, and how often it was asked.
struct Processes {
  std::set<int> alive;
  int asked = 0;
  std::set<int> operator()(const RankEnvironment&) {
    ++asked;
    return alive;
  }
};

TEST(LobbyRules, ProcessesAreCountedFiveTimesASecondAtMost) {
  Processes processes{.alive = {0, 1, 2}};
  Lobby first(waiting_at(0), std::ref(processes));
  const auto start = Lobby::Clock::now();
  for (int passed = 0; passed <= 1000; passed += 10) EXPECT_FALSE(first.lost(start + milliseconds(passed)));
  EXPECT_EQ(processes.asked, 6);
}

TEST(LobbyRules, ALookSoonAfterAnotherSeesNothingNew) {
  Lobby first(waiting_at(0, 2, 1), [](const RankEnvironment&) { return std::set<int>(); });
  auto second = std::make_unique<Lobby>(waiting_at(1, 2, 1));
  const auto start = Lobby::Clock::now();
  EXPECT_FALSE(first.lost(start));
  second.reset();
  EXPECT_FALSE(first.lost(start + milliseconds(99)));   // no look
  EXPECT_FALSE(first.lost(start + milliseconds(100)));  // gone since now
  EXPECT_FALSE(first.lost(start + milliseconds(199)));
  const auto words = first.lost(start + milliseconds(200));
  ASSERT_TRUE(words);
  EXPECT_EQ(words->text,
            "rank 1 of 2 has ended while the ranks met: what it printed, or the log of its machine, says why");
  EXPECT_EQ(words->code, ExitCode::kFailed);
}

TEST(LobbyRules, OneThatCameBackIsNotLost) {
  Lobby first(waiting_at(0, 2, 1), [](const RankEnvironment&) { return std::set<int>(); });
  auto second = std::make_unique<Lobby>(waiting_at(1, 2, 1));
  const auto start = Lobby::Clock::now();
  EXPECT_FALSE(first.lost(start));
  second.reset();
  EXPECT_FALSE(first.lost(start + milliseconds(100)));
  second = std::make_unique<Lobby>(waiting_at(1, 2, 1));
  EXPECT_FALSE(first.lost(start + milliseconds(200)));
  second.reset();
  EXPECT_FALSE(first.lost(start + milliseconds(300))) << "its time begins again";
  EXPECT_TRUE(first.lost(start + milliseconds(400)));
}

TEST(LobbyRules, OneWithoutAProcessHasTwoSecondsAndOneThatHadOneATenth) {
  Processes processes{.alive = {0, 2}};
  Lobby first(waiting_at(0), std::ref(processes));
  const auto start = Lobby::Clock::now();
  EXPECT_FALSE(first.lost(start));
  EXPECT_FALSE(first.lost(start + milliseconds(1999)));
  const auto never = first.lost(start + milliseconds(2100));
  ASSERT_TRUE(never);
  EXPECT_EQ(never->text,
            "rank 1 of 3 has ended before the ranks had met, and has said nothing: is it another program, or does its "
            "command differ from that of the others?");
  processes.alive = {0, 1};
  EXPECT_FALSE(first.lost(start + milliseconds(3000))) << "rank 2 is gone since now";
  const auto gone = first.lost(start + milliseconds(3100));
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->rank, 2);
}

TEST(LobbyRules, ProcessesAreNotAskedWhereRanksAreOfOtherMachinesToo) {
  Processes processes{.alive = {0}};
  Lobby first(waiting_at(0, 3, 2), std::ref(processes));
  EXPECT_FALSE(first.lost());
  EXPECT_EQ(processes.asked, 0);
}

TEST(LobbyRules, ThisRankIsNeverLost) {
  Processes processes{.alive = {1, 2}};
  Lobby first(waiting_at(0), std::ref(processes));
  const auto start = Lobby::Clock::now();
  for (int passed = 0; passed < 5000; passed += 500) EXPECT_FALSE(first.lost(start + milliseconds(passed)));
}

TEST(LobbyRules, WithoutANameNobodyIsLost) {
  RankEnvironment nameless = waiting_at(0);
  nameless.launch.clear();
  Processes processes{.alive = {0}};
  Lobby first(nameless, std::ref(processes));
  const auto start = Lobby::Clock::now();
  for (int passed = 0; passed < 5000; passed += 500) EXPECT_FALSE(first.lost(start + milliseconds(passed)));
  EXPECT_NO_THROW(first.look());
}

TEST(LobbyRules, ItsSocketsMayBeDescriptorZero) {
  const int kept = ::dup(STDIN_FILENO);
  ::close(STDIN_FILENO);  // as in a program that was started without a standard input
  const auto is_closed = [] { return ::fcntl(STDIN_FILENO, F_GETFD) < 0; };
  EXPECT_FALSE(Lobby::tell(waiting_at(1), 0, {.rank = 1, .text = "words"})) << "nobody waits";
  EXPECT_TRUE(is_closed());
  {
    Processes processes{.alive = {0, 2}};
    Lobby first(waiting_at(0), std::ref(processes));
    EXPECT_FALSE(is_closed());
    EXPECT_EQ(first.missing_ranks(), (std::vector<int>{1, 2}));
    EXPECT_THAT(first.missing(), HasSubstr("ranks 1, 2 have not come to it"));
    EXPECT_TRUE(Lobby::tell(waiting_at(1), 0, {.rank = 1, .text = "words"}));
    EXPECT_TRUE(first.heard());
    const auto start = Lobby::Clock::now();
    EXPECT_FALSE(first.lost(start));
    EXPECT_TRUE(first.lost(start + milliseconds(2100)));
  }
  EXPECT_TRUE(is_closed());
  ::dup2(kept, STDIN_FILENO);
  ::close(kept);
}

}  // namespace
}  // namespace tenon
