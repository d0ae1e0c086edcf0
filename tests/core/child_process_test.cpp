// Forks that answer: what they say comes back, how they end is told, and what they start keeps nothing of it open.
#include <tenon/core/process/child_process.h>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <string_view>

namespace tenon::test {
namespace {

void say(int to, std::string_view text) {
  EXPECT_EQ(::write(to, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

std::string whole_answer(const ChildProcess& child) {
  std::string answer;
  while (!take_answer(child, answer)) {
  }
  ::close(child.answer);
  return answer;
}

TEST(ChildProcess, AnswersAndEndsWithCodeZero) {
  const ChildProcess child = fork_to_answer("a test", [](int answer_to) { say(answer_to, "forty two"); });
  EXPECT_NE(child.pid, ::getpid());
  EXPECT_EQ(whole_answer(child), "forty two");
  const int status = wait_for_end(child.pid);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(ChildProcess, TellsOfTheSignalThatEndedIt) {
  const ChildProcess child = fork_to_answer("a test", [](int) { std::raise(SIGKILL); });
  EXPECT_EQ(whole_answer(child), "");
  const int status = wait_for_end(child.pid);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(signal_name(WTERMSIG(status)), "SIGKILL");
}

TEST(ChildProcess, HasNotEndedWhileItWaitsAndStaysToBeWaitedFor) {
  const ChildProcess child = fork_to_talk("a test", [](int peer) {
    char word[8];
    static_cast<void>(::read(peer, word, sizeof word));
  });
  EXPECT_FALSE(has_ended(child.pid));
  say(child.answer, "end");
  while (!has_ended(child.pid)) {
  }
  EXPECT_TRUE(has_ended(child.pid)) << "asking takes nothing away";
  EXPECT_EQ(wait_for_end(child.pid), 0);
  EXPECT_FALSE(has_ended(child.pid));
  ::close(child.answer);
}

TEST(ChildProcess, KeepsItsAnswerAfterAForkOfItsOwnAndTheForkHasNone) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const ChildProcess child = fork_to_answer("a test", [&](int answer_to) {
    const pid_t started = ::fork();
    if (started == 0) {
      say(answer_to, "of nobody's interest");
      char word[8];
      ::close(ends[1]);
      static_cast<void>(::read(ends[0], word, sizeof word));  // until the test ends
      ::_exit(0);
    }
    ::waitpid(started, nullptr, WNOHANG);
    say(answer_to, "its own");
  });
  std::string answer;
  pollfd wait{child.answer, POLLIN, 0};
  char part[64];
  for (ssize_t count = 1; count > 0;) {
    ASSERT_EQ(::poll(&wait, 1, 60'000), 1) << "the fork has the answer open";
    count = ::read(child.answer, part, sizeof part);
    if (count > 0) answer.append(part, static_cast<std::size_t>(count));
  }
  EXPECT_EQ(answer, "its own");
  EXPECT_EQ(wait_for_end(child.pid), 0);
  for (const int end : {ends[0], ends[1], child.answer}) ::close(end);
}

}  // namespace
}  // namespace tenon::test
