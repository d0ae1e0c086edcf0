// Ranks of one machine before they have met.
#include <tenon/comm/lobby.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <memory>
#include <string>

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
