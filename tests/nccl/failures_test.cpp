// Ranks over NCCL of which one fails: the others end in bounded time and say which.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

struct Said {
  int code = -1;
  std::string text;
};

Said ranks_of_which_one(const std::string& fails) {
  const std::string line =
      "timeout -s KILL 60 bash " TENON_NCCL_LAUNCH " 4 " TENON_NCCL_FAILING_RANKS " " + fails + " 2>&1";
  Said said;
  FILE* const pipe = ::popen(line.c_str(), "r");
  char part[4096];
  while (const std::size_t got = std::fread(part, 1, sizeof part, pipe)) said.text.append(part, got);
  const int status = ::pclose(pipe);
  said.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return said;
}

TEST(NcclFailures, ARankThatEndsIsNamedByAllOthersAtOnce) {
  for (const char* how : {"exit", "kill"}) {
    const Said said = ranks_of_which_one(how);
    EXPECT_NE(said.code, 0);
    for (const int rank : {0, 1, 3})
      EXPECT_THAT(said.text, ContainsRegex("rank " + std::to_string(rank) +
                                           " after a while: blames \\[2\\]: .*rank 2 .*has ended"))
          << how;
  }
}

TEST(NcclFailures, ARankThatHangsIsNamedWithTheOperation) {
  const Said said = ranks_of_which_one("hang");
  EXPECT_THAT(said.text,
              ContainsRegex("rank 0 after a while: blames \\[2\\]: .*all_reduce #2 of 32 bytes is not done after "
                            "2.0 s: rank 2 .*has not come to it"));
}

TEST(NcclFailures, ARankThatIsStoppedDoesNotAnswer) {
  const Said said = ranks_of_which_one("stop");
  EXPECT_THAT(said.text, ContainsRegex("rank 1 after a while: blames \\[2\\]: .*rank 2 .*does not answer"));
}

TEST(NcclFailures, AMonitoredBarrierNamesWhoIsMissing) {
  const Said said = ranks_of_which_one("barrier");
  EXPECT_THAT(said.text,
              ContainsRegex("rank 3 after a while: blames \\[2\\]: .*barrier #1 is not done after 1.5 s: rank 2 "
                            ".*has not come to it"));
}

TEST(NcclFailures, AReasonAndItsExitCodeReachTheOthers) {
  const Said said = ranks_of_which_one("abort");
  EXPECT_EQ(said.code, 4);
  EXPECT_THAT(said.text, HasSubstr("rank 0 after a while: blames [2]: rank 2 of 4 cannot go on: its disk is full"));
}

TEST(NcclFailures, ARankThatNeverComesIsNamed) {
  const Said said = ranks_of_which_one("late");
  EXPECT_THAT(said.text, ContainsRegex("rank 0 after a while: blames \\[2\\]: rank 0 of 4: rank 2 did not come to "
                                       "127.0.0.1:[0-9]+ within 2.0 s"));
}

TEST(NcclFailures, APortThatIsTakenIsNamedWithTheVariables) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  socklen_t size = sizeof here;
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&here), size), 0);
  ASSERT_EQ(::listen(listener, 8), 0);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&here), &size);
  const std::string port = std::to_string(ntohs(here.sin_port));
  ::setenv("TENON_TEST_TAKEN_PORT", port.c_str(), 1);
  const Said said = ranks_of_which_one("port");
  ::close(listener);
  EXPECT_THAT(said.text,
              HasSubstr("rank 0 of 4 cannot listen at 127.0.0.1:" + port +
                        ", where MASTER_ADDR and MASTER_PORT say that the ranks meet: Address already in use"));
}

TEST(NcclFailures, TheLibraryThatIsMissingIsNamedWithWhatToDo) {
  const Said said = ranks_of_which_one("library");
  EXPECT_THAT(said.text, AllOf(HasSubstr("the communicator nccl needs NCCL, whose libnccl.so.2 cannot be opened"),
                               HasSubstr("pip install nvidia-nccl-cu12"), Not(HasSubstr("done"))));
}

TEST(NcclFailures, CollectivesThatDifferBetweenRanksAreFoundByTheStandIn) {
  EXPECT_THAT(ranks_of_which_one("other").text,
              ContainsRegex("emulated CUDA: .*call 2 of the communicator is .*(ncclAllReduce of 8 "
                            "ncclFloat32|ncclBroadcast of 32 ncclUint8 from root 0) on rank"));
  EXPECT_THAT(
      ranks_of_which_one("size").text,
      ContainsRegex("call 2 of the communicator is ncclAllReduce of [89] ncclFloat32 on rank .*of [89] ncclFloat32"));
}

}  // namespace
}  // namespace tenon::test
