// Ranks that meet, each in a thread of this process: what they share, what is passed on, and who is named.
#include "meeting.h"

#include "support/free_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tenon::nccl {
namespace {

using std::chrono::milliseconds;
using test::free_port;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::StartsWith;

constexpr milliseconds kLong{60'000};  ///< nothing here takes so long

RankEnvironment rank_of(int rank, int size, int port) {
  return {.rank = rank,
          .size = size,
          .local_rank = rank,
          .local_size = size,
          .master_address = "127.0.0.1",
          .master_port = port,
          .launch = {}};
}

bool comes(const std::function<bool()>& what) {
  for (const auto until = Clock::now() + kLong; Clock::now() < until;) {
    if (what()) return true;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return false;
}

std::string message_of_meeting(const RankEnvironment& ranks, milliseconds timeout, std::vector<int>& blamed) {
  try {
    const Meeting meeting(ranks, timeout);
  } catch (const DistributedError& error) {
    blamed = error.ranks();
    return error.what();
  }
  return "they met";
}

/// Three that have met.
class NcclMeetings : public testing::Test {
 protected:
  static constexpr int kSize = 3;

  void SetUp() override {
    at_once([&](int rank) { of[at(rank)] = std::make_unique<Meeting>(rank_of(rank, kSize, port), kLong); });
  }
  void TearDown() override {
    at_once([&](int rank) { of[at(rank)].reset(); });
  }
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  static void at_once(const std::function<void(int rank)>& each) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kSize; ++rank) threads.emplace_back(each, rank);
    for (std::thread& thread : threads) thread.join();
  }
  /// From then on it reads what the others say.
  void begins(int rank, std::int64_t group = 0) {
    of[at(rank)]->add(
        {.group = group, .number = &numbers[at(rank)], .failed = [this, rank] { ++failed[at(rank)]; }, .look = [] {}});
  }
  void all_begin() {
    for (int rank = 0; rank < kSize; ++rank) begins(rank);
  }
  void have_come_to(std::int64_t first, std::int64_t second, std::int64_t third) {
    numbers[0] = first;
    numbers[1] = second;
    numbers[2] = third;
  }
  /// Once it is there.
  DistributedError failure_of(int rank) {
    EXPECT_TRUE(comes([&] { return of[at(rank)]->failure().has_value(); })) << rank;
    return of[at(rank)]->failure().value_or(DistributedError("none", {}));
  }

  const int port = free_port();
  std::array<std::unique_ptr<Meeting>, kSize> of;
  std::array<std::atomic<std::int64_t>, kSize> numbers{};
  std::array<std::atomic<int>, kSize> failed{};
  const Meeting::Group all{.id = 0, .ranks = {0, 1, 2}, .text = {}};
};

TEST_F(NcclMeetings, EachRankGetsTheBytesOfRankZero) {
  std::array<std::array<char, 128>, kSize> shared{};
  at_once([&](int rank) {
    std::array<char, 128> own{};
    for (std::size_t i = 0; i < own.size(); ++i) own[i] = static_cast<char>(i + 100 * at(rank));
    shared[at(rank)] = of[at(rank)]->share(own);
  });
  for (const auto& bytes : shared)
    for (std::size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], static_cast<char>(i));
}

TEST_F(NcclMeetings, ABarrierIsPassedOnceAllRanksOfItsGroupHaveComeToIt) {
  all_begin();
  const Meeting::Group some{.id = 5, .ranks = {0, 1}, .text = {}}, others{.id = 6, .ranks = {1, 2}, .text = {}};
  EXPECT_EQ(of[0]->come_to_barrier(some), 1);
  EXPECT_FALSE(of[0]->is_passed(5, 1));
  EXPECT_EQ(of[1]->come_to_barrier(others), 1);
  EXPECT_EQ(of[1]->come_to_barrier(some), 1) << "each group counts its own";
  for (const int rank : {0, 1}) EXPECT_TRUE(comes([&] { return of[at(rank)]->is_passed(5, 1); })) << rank;
  EXPECT_FALSE(of[0]->is_passed(6, 1)) << "rank 2 has not come to it";
  EXPECT_FALSE(of[0]->is_passed(5, 2));
  EXPECT_FALSE(of[0]->is_passed(0, 1));
  EXPECT_EQ(of[2]->come_to_barrier(others), 1);
  for (const int rank : {1, 2}) EXPECT_TRUE(comes([&] { return of[at(rank)]->is_passed(6, 1); })) << rank;
  EXPECT_EQ(of[0]->come_to_barrier(some), 2);
  EXPECT_FALSE(of[0]->is_passed(5, 2)) << "rank 1 has come to the first alone";
  EXPECT_TRUE(of[0]->is_passed(5, 1));
}

TEST_F(NcclMeetings, AFailureReachesAllWithItsWordsItsRanksItsCodeAndWhoSaidIt) {
  all_begin();
  of[2]->fail(DistributedError("its disk is full", {2, 1}, ExitCode::kOutOfMemory));
  for (int rank = 0; rank < kSize; ++rank) {
    const DistributedError error = failure_of(rank);
    EXPECT_STREQ(error.what(), "its disk is full") << rank;
    EXPECT_THAT(error.ranks(), ElementsAre(1, 2)) << rank;
    EXPECT_EQ(error.exit_code(), ExitCode::kOutOfMemory) << rank;
    EXPECT_EQ(error.said_by(), rank == 2 ? -1 : 2) << "who says it itself has nobody to name";
    EXPECT_TRUE(comes([&] { return failed[at(rank)] == 1; })) << rank;
  }
  of[1]->fail(DistributedError("another reason", {1}));
  EXPECT_STREQ(failure_of(1).what(), "its disk is full") << "the first one counts";
}

TEST_F(NcclMeetings, OneWhoseConnectionEndsIsNamedToAllOthers) {
  begins(0);
  begins(1);
  EXPECT_FALSE(of[0]->has_ended(2));
  of[2].reset();  // without a word
  for (const int rank : {0, 1}) {
    const DistributedError error = failure_of(rank);
    EXPECT_THAT(error.what(), MatchesRegex("rank 0 of 3: rank 2 \\(process [0-9]+ on .*\\) has ended: what it said "
                                           "itself, or the log of its machine, says why"));
    EXPECT_THAT(error.ranks(), ElementsAre(2)) << rank;
    EXPECT_EQ(error.exit_code(), DistributedError("", {}).exit_code());
  }
  EXPECT_TRUE(of[0]->has_ended(2));
  EXPECT_FALSE(of[0]->has_ended(1));
}

TEST_F(NcclMeetings, WhereRankZeroEndsTheOthersNameIt) {
  begins(1);
  of[0].reset();
  const DistributedError error = failure_of(1);
  EXPECT_THAT(error.what(), StartsWith("rank 1 of 3: rank 0 (at 127.0.0.1:" + std::to_string(port) + ") has ended: "));
  EXPECT_THAT(error.ranks(), ElementsAre(0));
}

TEST_F(NcclMeetings, WhoTakesLeaveHasEndedAndNothingIsWrong) {
  all_begin();
  std::thread leaves([&] { of[2]->remove(0); });
  EXPECT_TRUE(comes([&] { return of[0]->has_ended(2); }));
  EXPECT_FALSE(of[0]->has_ended(1));
  EXPECT_FALSE(of[0]->failure().has_value());
  std::thread second([&] { of[1]->remove(0); });
  of[0]->remove(0);
  leaves.join();
  second.join();
  for (const auto& meeting : of) EXPECT_FALSE(meeting->failure().has_value());
}

TEST_F(NcclMeetings, WhoHasNotComeToACollectiveIsNamedToAll) {
  all_begin();
  have_come_to(3, 2, 3);
  of[2]->report_late(all, 3, "all_reduce #3 of 32 bytes", milliseconds(1500));
  for (int rank = 0; rank < kSize; ++rank) {
    const DistributedError error = failure_of(rank);
    EXPECT_THAT(error.what(), MatchesRegex("rank 2 of 3: all_reduce #3 of 32 bytes is not done after 1.5 s: rank 1 "
                                           "\\(process [0-9]+ on .*\\) has not come to it"));
    EXPECT_THAT(error.ranks(), ElementsAre(1)) << rank;
  }
}

TEST_F(NcclMeetings, OfAGroupOnlyItsRanksAreNamed) {
  all_begin();
  for (const int rank : {0, 2}) begins(rank, 7);
  have_come_to(4, 1, 3);
  const Meeting::Group two{.id = 7, .ranks = {0, 2}, .text = " among ranks 0, 2"};
  of[0]->report_late(two, 4, "broadcast #4", milliseconds(200));
  const DistributedError error = failure_of(1);
  EXPECT_THAT(error.ranks(), ElementsAre(2));
  EXPECT_THAT(error.what(), StartsWith("broadcast #4 is not done after 0.2 s: rank 2 ("));
}

TEST_F(NcclMeetings, WhoHasNotComeToABarrierIsNamed) {
  all_begin();
  have_come_to(9, 9, 9);  // collectives, which are no barriers
  EXPECT_EQ(of[0]->come_to_barrier(all), 1);
  EXPECT_EQ(of[1]->come_to_barrier(all), 1);
  of[1]->report_late(all, -1, "barrier #1", milliseconds(1000));
  EXPECT_THAT(failure_of(1).ranks(), ElementsAre(2));
  EXPECT_THAT(failure_of(2).what(), StartsWith("rank 1 of 3: barrier #1 is not done after 1.0 s: rank 2 "));
}

TEST_F(NcclMeetings, WhereAllHaveComeNobodyIsToBlameAndTheNextStepIsSaid) {
  all_begin();
  have_come_to(3, 4, 3);
  of[1]->report_late(all, 3, "all_reduce #3", milliseconds(500));
  const DistributedError error = failure_of(2);
  EXPECT_THAT(error.ranks(), IsEmpty());
  EXPECT_STREQ(error.what(),
               "rank 1 of 3: all_reduce #3 is not done after 0.5 s: all ranks have come to it, and it does not end: "
               "NCCL_DEBUG=INFO says which network is used; raise timeout where it is only slow");
}

TEST_F(NcclMeetings, TheEndOfRankZeroIsWaitedForUnlessItIsToBlame) {
  all_begin();
  of[1]->fail(DistributedError("rank 0 hangs", {0}));
  of[1]->wait_for_end_of_rank_0(kLong);  // at once
  EXPECT_FALSE(of[1]->has_ended(0));
}

TEST_F(NcclMeetings, RankZeroAndWhoHearsNobodyWaitForNoEnd) {
  begins(0);
  of[0]->fail(DistributedError("no memory", {0}));
  of[0]->wait_for_end_of_rank_0(kLong);  // at once
  of[1]->wait_for_end_of_rank_0(kLong);
  EXPECT_FALSE(of[1]->has_ended(0));
}

TEST_F(NcclMeetings, WhatIsSaidToOneThatIsGoneIsLost) {
  of[0].reset();
  for (int barrier = 1; barrier <= 4; ++barrier) EXPECT_EQ(of[1]->come_to_barrier(all), barrier);
  EXPECT_FALSE(of[1]->is_passed(0, 1));
}

TEST_F(NcclMeetings, ARankZeroThatDoesNotAnswerIsNamed) {
  begins(1);  // rank 0 reads nothing
  of[1]->report_late(all, 3, "all_reduce #3", milliseconds(1500));
  const DistributedError error = failure_of(1);
  EXPECT_STREQ(error.what(),
               "rank 1 of 3: all_reduce #3 is not done after 1.5 s, and rank 0 does not say who is missing: it is "
               "stopped, or cannot be reached; look at its process and its network");
  EXPECT_THAT(error.ranks(), ElementsAre(0));
}

TEST_F(NcclMeetings, OfAFailureOfAnotherOneTheEndOfRankZeroComesFirst) {
  all_begin();
  of[1]->fail(DistributedError("no memory", {1}));
  std::thread zero([&] {
    failure_of(0);
    of[0].reset();
  });
  of[1]->wait_for_end_of_rank_0(kLong);
  EXPECT_TRUE(of[1]->has_ended(0));
  zero.join();
}

TEST(NcclMeeting, RanksOfSeveralMachinesNeedAnAddress) {
  RankEnvironment two = rank_of(1, 2, 0);
  two.local_size = 1;
  two.master_address.clear();
  std::vector<int> blamed = {7};
  EXPECT_EQ(message_of_meeting(two, milliseconds(100), blamed),
            "rank 1 of 2: the ranks are on several machines, and MASTER_ADDR does not say where rank 0 is: set it, and "
            "MASTER_PORT, to an address that all of them reach");
  EXPECT_THAT(blamed, IsEmpty());
}

TEST(NcclMeeting, OneAloneMeetsNobody) {
  RankEnvironment one = rank_of(0, 1, 0);
  one.local_size = 2;
  one.master_address.clear();
  std::vector<int> blamed;
  EXPECT_EQ(message_of_meeting(one, milliseconds(100), blamed), "they met");
}

TEST(NcclMeeting, ThoseWhoDoNotComeInTimeAreNamed) {
  std::vector<int> blamed;
  const std::string port = std::to_string(free_port());
  const std::string within = " did not come to 127.0.0.1:" + port + " within 0.1 s: start all ranks with the same ";
  EXPECT_THAT(message_of_meeting(rank_of(0, 3, std::stoi(port)), milliseconds(100), blamed),
              StartsWith("rank 0 of 3: ranks 1, 2" + within));
  EXPECT_THAT(blamed, ElementsAre(1, 2));
  EXPECT_THAT(message_of_meeting(rank_of(0, 2, std::stoi(port)), milliseconds(100), blamed),
              StartsWith("rank 0 of 2: rank 1" + within));
  EXPECT_THAT(blamed, ElementsAre(1));
  EXPECT_EQ(message_of_meeting(rank_of(1, 2, std::stoi(port)), milliseconds(100), blamed),
            "rank 1 of 2: rank 0 does not answer at 127.0.0.1:" + port +
                " (MASTER_ADDR, MASTER_PORT) within 0.1 s: Connection refused; is it started, and is this its "
                "address?");
  EXPECT_THAT(blamed, ElementsAre(0));
}

// What scans ports, a rank of another run: each is closed, and the ranks meet.
TEST(NcclMeeting, AStrangerIsNoRank) {
  const int port = free_port();
  std::unique_ptr<Meeting> first;
  std::thread zero([&] { first = std::make_unique<Meeting>(rank_of(0, 2, port), kLong); });
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(static_cast<std::uint16_t>(port));
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto says = [&](const Message& message, std::size_t bytes) {
    int socket = -1;
    EXPECT_TRUE(comes([&] {
      socket = ::socket(AF_INET, SOCK_STREAM, 0);
      if (::connect(socket, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0) return true;
      ::close(socket);
      return false;
    }));
    EXPECT_EQ(::send(socket, &message, bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
    ::shutdown(socket, SHUT_WR);
    char more = 0;
    EXPECT_LE(::recv(socket, &more, 1, 0), 0) << "it is closed";
    ::close(socket);
  };
  for (const int rank : {-1, 0, 2}) says({.kind = Message::kHello, .from = rank}, sizeof(Message));
  says({.kind = Message::kBye, .from = 1}, sizeof(Message));
  says({.kind = Message::kHello, .from = 1}, sizeof(Message) - 1);
  const Meeting second(rank_of(1, 2, port), kLong);
  zero.join();
  EXPECT_EQ(first->own_text(), "rank 0 of 2");
  EXPECT_EQ(second.own_text(), "rank 1 of 2");
}

}  // namespace
}  // namespace tenon::nccl
