// One fork a piece of work. The finding comes back through a pipe.
#include <tenon/conformance/process/child_stderr.h>
#include <tenon/conformance/process/death.h>
#include <tenon/conformance/process/isolation.h>

#include <tenon/core/files/write_all.h>
#include <tenon/core/process/child_process.h>
#include <tenon/core/process/waited_time.h>

#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <fstream>
#include <utility>

namespace tenon::conformance {

namespace {

constexpr int kTrialMilliseconds = 4;

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

/// Tells how long a process was stuck from how long it waited for a processor on a busy machine.
class BusyClock {
 public:
  explicit BusyClock(pid_t process) : stat_(fmt::format("/proc/{}/stat", process)) {
    has_clock_ = ::clock_getcpuclockid(process, &clock_) == 0;
    used_ = used();
  }
  /// Of the last `seconds`, those in which it slept or computed.
  double part_of(double seconds) {
    const double before = std::exchange(used_, used());
    return is_asleep() ? seconds : std::min(seconds, used_ - before);
  }

 private:
  double used() const {
    timespec time{};
    if (has_clock_) ::clock_gettime(clock_, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }
  /// "1234 (name) S …"; a name may hold brackets.
  bool is_asleep() const {
    std::ifstream file(stat_);
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');
    return name_end != std::string::npos && line.compare(name_end, 3, ") S") == 0;
  }

  const std::string stat_;
  clockid_t clock_{};
  bool has_clock_ = false;
  double used_ = 0;
};

/// Reads the answer until the child ends it or ends itself, or until a limit. Returns which limit.
Overdue listen(const ChildProcess& child, std::string& answer, ChildStderr& error, const Journal& journal,
               const Limits& limits, const std::function<bool()>& tick) {
  BusyClock busy(child.pid);
  WaitedTime waited;
  double since_progress = 0;
  std::uint64_t progress = journal.progress();
  while (true) {
    pollfd waits[] = {{child.answer, POLLIN, 0}, {error.descriptor(), POLLIN, 0}};  // poll leaves out a -1
    const int ready = ::poll(waits, 2, limits.is_trial ? kTrialMilliseconds : WaitedTime::kTickMilliseconds);
    error.take();
    if (take_answer(child, answer)) return Overdue::kNone;
    if (ready > 0 && waits[0].revents != 0) continue;
    if (tick && !tick()) return Overdue::kStopped;
    const double step = waited.lap();
    since_progress += limits.is_trial ? busy.part_of(step) : step;
    if (const std::uint64_t at = journal.progress(); at != progress) {
      progress = at;
      since_progress = 0;
    }
    if (since_progress > limits.call_seconds && !journal.in_flight_name().empty()) return Overdue::kCall;
    if (waited.seconds() > limits.deadline_seconds) return Overdue::kDeadline;
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
                     const std::function<bool()>& tick, std::string* said) {
  journal.clear();
  ChildStderr error(said);
  const ChildProcess child = fork_to_answer("a check", [&](int answer_to) {
    error.begin();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    watch_for_death(journal);
    write_all(answer_to, packed(catch_all(work)));
  });
  std::string answer;
  const Overdue overdue = listen(child, answer, error, journal, limits, tick);
  const bool is_asked = !limits.is_trial && overdue != Overdue::kStopped;  // where it stands
  if (overdue != Overdue::kNone && !is_asked) ::kill(child.pid, SIGKILL);
  if (overdue != Overdue::kNone && is_asked) end_child(child.pid, child.answer);
  const int status = wait_for_end(child.pid);
  ::close(child.answer);
  error.take();
  if (overdue == Overdue::kNone && !answer.empty() && answer.front() == '!') {
    Finding finding = unpacked(answer);
    if (finding.empty() && status != 0) return finding_of_late_end(status);
    return finding;
  }
  if (overdue == Overdue::kStopped) return {kStopped, "ended before it had a result"};
  return finding_of_death(journal, status, overdue, limits);
}

}  // namespace tenon::conformance
