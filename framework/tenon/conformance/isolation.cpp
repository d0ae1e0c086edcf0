// One fork a piece of work. The finding comes back through a pipe, which ends when the child does.
#include <tenon/conformance/death.h>
#include <tenon/conformance/isolation.h>

#include <tenon/core/child_process.h>

#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>

namespace tenon::conformance {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kTickMilliseconds = 50;
constexpr double kLongestTick = 0.2;

// "!" tells an answer from the silence of a process that ended early.
std::string packed(const Finding& finding) {
  return fmt::format("!{}{}\n{}", finding.is_of_a_history ? 'h' : ' ', finding.cause, finding.text);
}

Finding unpacked(const std::string& answer) {
  const std::size_t line = answer.find('\n');
  Finding finding(std::string_view(answer).substr(2, line - 2), answer.substr(line + 1));
  finding.is_of_a_history = answer[1] == 'h';
  return finding;
}

/// Reads the answer until the child ends it, or until a limit. Returns which limit. Time in which this process is
/// stopped as a whole (Ctrl-Z) does not count.
Overdue listen(int descriptor, std::string& answer, const Journal& journal, const Limits& limits,
               const std::function<void()>& tick) {
  double waited = 0, since_progress = 0;
  auto last = Clock::now();
  std::uint64_t progress = journal.progress();
  while (true) {
    pollfd wait{descriptor, POLLIN, 0};
    const int ready = ::poll(&wait, 1, kTickMilliseconds);
    if (ready > 0) {
      char buffer[4096];
      const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
      if (count > 0) answer.append(buffer, static_cast<std::size_t>(count));
      if (count == 0 || (count < 0 && errno != EINTR)) return Overdue::kNone;
      continue;
    }
    if (tick) tick();
    const auto now = Clock::now();
    const double step = std::min(std::chrono::duration<double>(now - last).count(), kLongestTick);
    last = now;
    waited += step;
    since_progress += step;
    if (const std::uint64_t at = journal.progress(); at != progress) {
      progress = at;
      since_progress = 0;
    }
    if (since_progress > limits.call_seconds && !journal.in_flight_name().empty()) return Overdue::kCall;
    if (waited > limits.deadline_seconds) return Overdue::kDeadline;
  }
}

/// Asks the child where it stands, which ends it, and insists after a moment.
void end_child(pid_t child, int descriptor) {
  ::kill(child, SIGABRT);
  pollfd wait{descriptor, POLLIN, 0};
  char rest[4096];
  while (::poll(&wait, 1, 300) > 0 && ::read(descriptor, rest, sizeof rest) > 0) {
  }
  ::kill(child, SIGKILL);
}

}  // namespace

Finding catch_all(const std::function<Finding()>& work) {
  try {
    return work();
  } catch (const BrokenPromise& broken) {
    return broken.finding();
  } catch (const std::exception& error) {
    return fmt::format("an error where none may be: {}", error.what());
  }
}

Finding run_in_child(const std::function<Finding()>& work, Journal& journal, const Limits& limits,
                     const std::function<void()>& tick) {
  journal.clear();
  const ChildProcess child = fork_to_answer("a check", [&](int answer_to) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    watch_for_death(journal);
    write_all(answer_to, packed(catch_all(work)));
  });
  std::string answer;
  const Overdue overdue = listen(child.answer, answer, journal, limits, tick);
  if (overdue != Overdue::kNone) end_child(child.pid, child.answer);
  const int status = wait_for_end(child.pid);
  ::close(child.answer);
  if (overdue == Overdue::kNone && !answer.empty() && answer.front() == '!') return unpacked(answer);
  return finding_of_death(journal, status, overdue, limits);
}

}  // namespace tenon::conformance
