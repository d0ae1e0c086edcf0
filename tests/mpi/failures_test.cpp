// Ranks that die, hang, stop or give up: the others end in bounded time and name them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <regex>
#include <string>

namespace tenon::test {
namespace {

using testing::HasSubstr;

struct Ended {
  int code = -1;
  double seconds = 0;
  std::string text;
};

/// Four ranks, of which rank 2 goes wrong. Their patience is a second.
Ended ranks_with(const std::string& how, const std::string& spec = "mpi:timeout=1",
                 const std::string& environment = "") {
  const auto start = std::chrono::steady_clock::now();
  const std::string line =
      environment + " timeout -s KILL 120 bash " TENON_SOURCE_DIR "/tests/mpi/mpirun.sh -n 4 " TENON_FAILING_RANKS " " +
      how + " " + spec + " 2>&1";
  Ended ended;
  FILE* const pipe = ::popen(line.c_str(), "r");
  char part[4096];
  while (const std::size_t got = std::fread(part, 1, sizeof part, pipe)) ended.text.append(part, got);
  const int status = ::pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ended.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return ended;
}

/// Patience, the question who is where, and the end of what mpirun still finds; machines under load take their time.
constexpr double kBound = 60;

// Where the others are slower than the rank that dies, their first is still under way, or their second not begun.
TEST(MpiFailures, ARankThatIsKilledIsNamedAtOnce) {
  const Ended ended = ranks_with("killed", "mpi:timeout=600");
  EXPECT_THAT(ended.text,
              testing::ContainsRegex("said by [013]: rank [013] of 4: rank 2 \\(process [0-9]+ on [^)]+\\) has "
                                     "ended (while all_reduce #[12] of 4000 bytes waits for it|before the others): "
                                     "what it said itself, or the log of its machine, says why; blamed: 2; code 1"));
  EXPECT_NE(ended.code, 0);
  EXPECT_LT(ended.seconds, kBound);
}

TEST(MpiFailures, ARankThatEndsWithoutAWordIsNamed) {
  const Ended ended = ranks_with("ends", "mpi:timeout=600");
  EXPECT_THAT(ended.text, testing::ContainsRegex("rank 2 .* has ended (while all_reduce #[12] of|before the others)"));
  EXPECT_NE(ended.code, 0);
  EXPECT_LT(ended.seconds, kBound);
}

TEST(MpiFailures, ARankWhoseProgramHangsIsNamedWithWhereItIs) {
  const Ended ended = ranks_with("hangs");
  EXPECT_THAT(ended.text,
              testing::ContainsRegex("all_reduce #2 of 4000 bytes is not done after 1.0 s \\(timeout\\): rank 2 "
                                     "\\(process [0-9]+ on [^)]+\\) has not come to it and hangs elsewhere; its "
                                     "last was all_reduce #1 of 4000 bytes; blamed: 2; code 1"));
  EXPECT_NE(ended.code, 0);
  EXPECT_LT(ended.seconds, kBound);
}

TEST(MpiFailures, RanksDoNotWaitForEverForOneThatNeverComes) {
  const Ended ended = ranks_with("late");
  // Who gives up first sees the others that have come.
  EXPECT_THAT(ended.text, testing::ContainsRegex("rank [013] of 4: not every rank has begun MPI within 1.0 s \\(timeout"
                                                 "\\): rank 2 has not come to it: it hangs before it, or was not "
                                                 "started"));
  EXPECT_NE(ended.code, 0);
  EXPECT_LT(ended.seconds, kBound);
}

TEST(MpiFailures, ARankThatIsStoppedIsNamed) {
  const Ended ended = ranks_with("stopped");
  EXPECT_THAT(ended.text,
              testing::ContainsRegex("all_reduce #2 of 4000 bytes is not done after 1.0 s \\(timeout\\): rank 2 "
                                     "\\(process [0-9]+ on [^)]+\\) does not answer: it is stopped, cut off or "
                                     "dead; blamed: 2"));
  EXPECT_NE(ended.code, 0);
  EXPECT_LT(ended.seconds, kBound);
}

TEST(MpiFailures, ARankThatGivesUpTellsTheOthersWhyAndWithWhichCode) {
  const Ended ended = ranks_with("aborts", "mpi:timeout=600");
  EXPECT_THAT(ended.text, HasSubstr("said by 2: OutOfMemory: caching on cpu:0 needs 1.00 MiB"));
  EXPECT_THAT(ended.text,
              testing::ContainsRegex("said by 0: rank 2 of 4: OutOfMemory: caching on cpu:0 needs 1.00 MiB.*; "
                                     "blamed: 2; code 4"));
  EXPECT_EQ(ended.code, 4);
  EXPECT_LT(ended.seconds, kBound);
}

TEST(MpiFailures, ARankThatClosesItsCommunicatorEarlyIsNamed) {
  const Ended ended = ranks_with("closes", "mpi:timeout=600");
  EXPECT_THAT(ended.text,
              testing::ContainsRegex("rank 2 \\(process [0-9]+ on [^)]+\\) has closed its communicator, and "
                                     "all_reduce #2 of 4000 bytes needs it; blamed: 2"));
  EXPECT_NE(ended.code, 0);
  EXPECT_LT(ended.seconds, kBound);
}

TEST(MpiFailures, AMonitoredBarrierNamesWhoHasNotCome) {
  const Ended ended = ranks_with("monitored", "mpi:timeout=600");
  EXPECT_THAT(ended.text,
              testing::ContainsRegex("barrier #2 is not done after 0.5 s \\(timeout\\): rank 2 .*has not come to "
                                     "it and hangs elsewhere; its last was all_reduce #1 of 4000 bytes"));
  EXPECT_NE(ended.code, 0);
  EXPECT_LT(ended.seconds, kBound);
}

TEST(MpiFailures, AReceiveOfWhatNobodySendsNamesTheRankThatDoesNot) {
  const Ended ended = ranks_with("receive");
  EXPECT_THAT(ended.text, testing::ContainsRegex("is not done after 1.0 s \\(timeout\\): rank"));
  EXPECT_NE(ended.code, 0);
  EXPECT_LT(ended.seconds, kBound);
}

TEST(MpiFailures, OfRanksInGroupsTheOneThatHangsIsNamedAndNotTheOneThatWaitsForIt) {
  const Ended ended = ranks_with("group-hangs");
  EXPECT_THAT(ended.text, testing::ContainsRegex("is not done after 1.0 s \\(timeout\\): rank 3 \\(process [0-9]+ on "
                                                 "[^)]+\\) has not come to .*and hangs elsewhere; its last was "
                                                 "all_reduce #1 of 4000 bytes among ranks 2, 3; blamed: 3; code 1"));
  EXPECT_THAT(ended.text, testing::Not(HasSubstr("blamed: 2")));
  EXPECT_NE(ended.code, 0);
  EXPECT_LT(ended.seconds, kBound);
}

TEST(MpiFailures, ARankThatLeavesAGroupIsNamedAtOnceByThoseThatNeedItThere) {
  for (const char* how : {"group-leaves", "group-closes"}) {
    const Ended ended = ranks_with(how, "mpi:timeout=600");
    EXPECT_THAT(ended.text,
                testing::ContainsRegex("rank 3 \\(process [0-9]+ on [^)]+\\) has closed its communicator, and "
                                       "all_reduce #[123] of 4000 bytes( among ranks 2, 3)? needs it; blamed: 3"))
        << how;
    EXPECT_NE(ended.code, 0);
    EXPECT_LT(ended.seconds, kBound);
  }
}

TEST(MpiFailures, WhatIsNotTheSameOnAllRanksIsSaidAtOnceWithTheirSizesAndDtypes) {
  const std::string others = "is not the same on all ranks: ranks 0, 1, 3: all_reduce of 1000 float32 (sum); rank 2: ";
  for (const auto& [how, of_rank_2] : {std::pair{"size-less", "all_reduce of 900 float32 (sum)"},
                                       {"size-more", "all_reduce of 100000 float32 (sum)"},
                                       {"dtype", "all_reduce of 1000 int32 (sum)"},
                                       {"kind", "broadcast of 1000 float32 from rank 0"},
                                       {"operation", "all_reduce of 1000 float32 (max)"}}) {
    const Ended ended = ranks_with(how, "mpi:timeout=600");
    EXPECT_THAT(ended.text, HasSubstr(others + of_rank_2)) << how;
    EXPECT_THAT(ended.text, HasSubstr("blamed: 2")) << how;
    EXPECT_NE(ended.code, 0);
    EXPECT_LT(ended.seconds, kBound);
  }
  EXPECT_THAT(ranks_with("root", "mpi:timeout=600").text,
              HasSubstr("ranks 0, 1, 3: broadcast of 1000 float32 from rank 0; rank 2: broadcast of 1000 float32 from "
                        "rank 1"));
}

// As Open MPI does it by itself on one machine, a large message is copied out of the sender's memory in the sender's
// size, whatever the receiver has place for.
TEST(MpiFailures, NothingIsWrittenBeyondABufferWhateverOtherRanksSend) {
  for (const char* order : {"any", "rank"}) {
    for (const auto& [how, said] :
         {std::pair{"size-large", "ranks 0, 1, 3: all_reduce of 1000 float32 (sum); rank 2: all_reduce of 1000000"},
          {"size-halves", "ranks 0, 1: all_reduce of 1000 float32 (sum); ranks 2, 3: all_reduce of 1000000 float32"},
          {"broadcast-halves", "ranks 0, 1: broadcast of 1000000 float32 from rank 0; ranks 2, 3: broadcast of 1000 "},
          {"large-message", "receive of 4000 bytes from rank 2 (tag 0): 1000000 float32 came, not the 1000 float32"}}) {
      const Ended ended = ranks_with(how, std::string("mpi:timeout=600,order=") + order, "TENON_SINGLE_COPY=cma");
      EXPECT_THAT(ended.text, HasSubstr(said)) << how;
      EXPECT_THAT(ended.text, testing::Not(HasSubstr("beyond"))) << how;
      EXPECT_THAT(ended.text, testing::Not(HasSubstr("ignal"))) << how;
      EXPECT_EQ(ended.code, 1) << how;
      EXPECT_LT(ended.seconds, kBound);
    }
  }
}

TEST(MpiFailures, OptionsThatRanksMeetWithAreComparedThere) {
  const Ended ended = ranks_with("options", "mpi:timeout=600");
  EXPECT_THAT(ended.text, HasSubstr("the communicator mpi is not the same on all ranks: ranks 0, 1, 3: order=any, "
                                    "check=true; rank 2: order=rank, check=true: give every rank the same options; "
                                    "blamed: 2; code 2"));
  EXPECT_EQ(ended.code, 2);
}

TEST(MpiFailures, AGroupThatRanksDoNotAgreeOnIsRefused) {
  const Ended ended = ranks_with("members", "mpi:timeout=600");
  EXPECT_THAT(ended.text, HasSubstr("a group of ranks 0, 1 was asked for, and others call it with other members"));
  EXPECT_THAT(ended.text, HasSubstr("; blamed: 0 1 2 3; code 1")) << "which of them is wrong they alone know";
  EXPECT_EQ(ended.code, 1);
}

TEST(MpiFailures, AMessageOfAnotherLengthOrDtypeThanItsReceiverExpectsIsRefused) {
  EXPECT_THAT(ranks_with("message", "mpi:timeout=600").text,
              HasSubstr("receive of 32 bytes from rank 2 (tag 0): 4 float32 came, not the 8 float32"));
  EXPECT_THAT(ranks_with("long-message", "mpi:timeout=600").text,
              HasSubstr("receive of 16 bytes from rank 2 (tag 0): 8 float32 came, not the 4 float32"));
  EXPECT_THAT(ranks_with("message-dtype", "mpi:timeout=600").text,
              HasSubstr("receive of 32 bytes from rank 2 (tag 0): 8 int32 came, not the 8 float32: send and"));
}

TEST(MpiFailures, AMessageThatIsRefusedBesideOneThatIsDoneAndOneThatIsNotIsSaidAndNothingElse) {
  const Ended ended = ranks_with("message-among", "mpi:timeout=600");
  EXPECT_THAT(ended.text,
              HasSubstr("receive of 32 bytes from rank 2 (tag 2): 8 int32 came, not the 8 float32: send and receive "));
  EXPECT_THAT(ended.text, testing::Not(HasSubstr("ignal")));
  EXPECT_EQ(ended.code, 1);
  EXPECT_LT(ended.seconds, kBound);
}

TEST(MpiFailures, WithoutAFailureAllEndWell) {
  const Ended ended = ranks_with("nothing", "mpi:timeout=60");
  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(ended.text, testing::Not(HasSubstr("said by")));
}

}  // namespace
}  // namespace tenon::test
