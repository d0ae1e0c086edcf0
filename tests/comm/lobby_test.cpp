// Ranks of one machine before they have met.
#include <tenon/comm/communicator.h>
#include <tenon/comm/lobby.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tenon {
namespace {

using testing::HasSubstr;

RankEnvironment rank_of(int rank, int local_size = 3) {
  RankEnvironment own;
  own.rank = rank;
  own.size = 3;
  own.local_rank = rank;
  own.local_size = local_size;
  own.launch = ".test-" + std::to_string(::getpid());
  return own;
}

TEST(Lobby, WhoIsNotThereIsNamed) {
  const Lobby first(rank_of(0));
  EXPECT_EQ(first.missing(), "ranks 1, 2 have not come to it: they hang before it, or were not started");
  auto second = std::make_unique<Lobby>(rank_of(2));
  EXPECT_EQ(first.missing(), "rank 1 has not come to it: it hangs before it, or was not started");
  const Lobby third(rank_of(1));
  EXPECT_THAT(first.missing(), HasSubstr("all of them have come to it"));
  second.reset();
  EXPECT_EQ(first.missing(), "rank 2 has not come to it: it hangs before it, or was not started");
}

TEST(Lobby, OfOtherMachinesOnlyTheirRanksAreNamed) {
  const Lobby first(rank_of(0, 2));
  EXPECT_THAT(first.missing(),
              HasSubstr("1 of the 2 ranks of this machine has not come to it, one or more of ranks 1"));
  const Lobby second(rank_of(1, 2));
  EXPECT_EQ(first.missing(), "all ranks of this machine have come to it: look at the machines of rank 2");
}

TEST(Lobby, OneThatCannotComeIsHeardOnceByEachThatWaits) {
  const LobbyWords words{.rank = 1, .code = ExitCode::kUsage, .text = "no such key"};
  EXPECT_FALSE(Lobby::tell(rank_of(1), 0, words)) << "nobody waits yet";
  const Lobby first(rank_of(0));
  EXPECT_FALSE(first.heard());
  EXPECT_TRUE(Lobby::tell(rank_of(1), 0, words));
  const auto heard = first.heard();
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->rank, 1);
  EXPECT_EQ(heard->code, ExitCode::kUsage);
  EXPECT_EQ(heard->text, "no such key");
  EXPECT_FALSE(first.heard());
}

constexpr std::chrono::milliseconds kStep{200};

/// What it says within a time that passes at once.
std::optional<LobbyWords> lost_within(Lobby& lobby, std::chrono::milliseconds time) {
  const auto now = Lobby::Clock::now();
  for (auto passed = kStep; passed <= time; passed += kStep)
    if (auto words = lobby.lost(now + passed)) return words;
  return std::nullopt;
}

TEST(Lobby, OneThatWasThereAndIsNotHasEnded) {
  const auto hidden = [](const RankEnvironment&) { return std::set<int>(); };
  Lobby first(rank_of(0, 2), hidden);
  auto second = std::make_unique<Lobby>(rank_of(2));
  EXPECT_FALSE(lost_within(first, std::chrono::seconds(10)));
  second.reset();
  const auto words = lost_within(first, std::chrono::seconds(20));
  ASSERT_TRUE(words);
  EXPECT_EQ(words->rank, 2);
  EXPECT_THAT(words->text, HasSubstr("rank 2 of 3 has ended while the ranks met"));
}

TEST(Lobby, OneThatNeverCameAndWhoseProcessIsGoneHasEnded) {
  std::set<int> processes{0, 1, 2};
  Lobby first(rank_of(0), [&](const RankEnvironment&) { return processes; });
  EXPECT_FALSE(lost_within(first, std::chrono::seconds(10))) << "they may still come";
  processes.erase(1);
  const auto start = Lobby::Clock::now() + std::chrono::seconds(20);
  EXPECT_FALSE(first.lost(start));
  const auto words = first.lost(start + kStep);
  ASSERT_TRUE(words);
  EXPECT_EQ(words->rank, 1);
  EXPECT_THAT(words->text, HasSubstr("rank 1 of 3 has ended before the ranks had met, and has said nothing"));
}

TEST(Lobby, OneThatHasNoProcessMayStillBeStarting) {
  Lobby first(rank_of(0), [](const RankEnvironment&) { return std::set<int>{0, 2}; });
  EXPECT_FALSE(lost_within(first, std::chrono::milliseconds(2000)));
  const auto words = first.lost(Lobby::Clock::now() + std::chrono::milliseconds(2600));
  ASSERT_TRUE(words);
  EXPECT_EQ(words->rank, 1);
}

TEST(Lobby, WhoseProcessesAreNotSeenIsNotTakenForEnded) {
  const auto hidden = [](const RankEnvironment&) { return std::set<int>(); };
  Lobby first(rank_of(0), hidden);
  EXPECT_FALSE(lost_within(first, std::chrono::seconds(60)));
  const auto own_machines = [](const RankEnvironment&) { return std::set<int>{0}; };
  Lobby of_two_machines(rank_of(1, 2), own_machines);
  EXPECT_FALSE(lost_within(of_two_machines, std::chrono::seconds(60)));
  EXPECT_TRUE(ranks_with_a_process(rank_of(0)).empty()) << "no launcher started this process";
}

TEST(Lobby, RanksThatAreMissingAreNumbersWhereAllAreOfThisMachine) {
  const Lobby first(rank_of(0)), third(rank_of(2));
  EXPECT_EQ(first.missing_ranks(), std::vector<int>{1});
  const Lobby of_two_machines(rank_of(1, 2));
  EXPECT_TRUE(of_two_machines.missing_ranks().empty());
}

TEST(Lobby, WhoGivesUpBecauseOfOthersSaysOfWhom) {
  Lobby first(rank_of(0));
  EXPECT_TRUE(Lobby::tell(rank_of(2), 0, {.rank = 2, .text = "rank 1 has ended", .missing = {1}}));
  try {
    first.look();
    FAIL() << "it has heard";
  } catch (const DistributedError& error) {
    EXPECT_STREQ(error.what(), "rank 1 has ended");
    EXPECT_EQ(error.ranks(), std::vector<int>{1});
    EXPECT_EQ(error.said_by(), -1);
  }
  EXPECT_TRUE(Lobby::tell(rank_of(2), 0, {.rank = 2, .code = ExitCode::kUsage, .text = "no such key"}));
  try {
    first.look();
    FAIL() << "it has heard";
  } catch (const DistributedError& error) {
    EXPECT_EQ(error.said_by(), 2);
    EXPECT_EQ(error.exit_code(), ExitCode::kUsage);
  }
}

TEST(Lobby, LongWordsAreCutOff) {
  const Lobby first(rank_of(0));
  EXPECT_TRUE(Lobby::tell(rank_of(1), 0, {.rank = 1, .text = std::string(100'000, 'x')}));
  EXPECT_EQ(first.heard()->text, std::string(4000, 'x'));
}

TEST(Lobby, ALaunchWithoutANameHasNone) {
  RankEnvironment nameless = rank_of(0);
  nameless.launch.clear();
  const Lobby first(nameless);
  EXPECT_FALSE(first.heard());
  EXPECT_EQ(first.missing(), "one of them hangs before it, or was not started");
}

}  // namespace
}  // namespace tenon
