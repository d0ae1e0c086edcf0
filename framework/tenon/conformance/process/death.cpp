// What the crash note and the journal say together. Frames are named by the parent: a fork has the same libraries at
// the same addresses.
#include <tenon/conformance/process/death.h>

#include <tenon/core/process/child_process.h>
#include <tenon/memory/watch/crash_text.h>

#include <sys/wait.h>

#include <fmt/format.h>

namespace tenon::conformance {

namespace {

std::string how_it_ended(const Journal& journal, int status, Overdue overdue, const Limits& limits) {
  switch (overdue) {
    case Overdue::kCall:
      return fmt::format("did not come back within {:g} s", limits.call_seconds);
    case Overdue::kDeadline:
      return fmt::format("the check did not end within {:g} s, {} calls were made; --deadline gives it longer",
                         limits.deadline_seconds, journal.calls());
    case Overdue::kNone:
    case Overdue::kStopped:  // it was told to end
      break;
  }
  if (!WIFSIGNALED(status))
    return fmt::format("the process ended with code {} in the middle of the check", WEXITSTATUS(status));
  return crash_cause(journal.crash_note(), WTERMSIG(status));
}

/// What makes two deaths the same.
std::string cause_of(const Journal& journal, int status, Overdue overdue) {
  const std::string call = journal.in_flight_name();
  std::string how = "deadline";
  if (overdue == Overdue::kCall) how = "hang";
  if (overdue == Overdue::kNone)
    how =
        WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status)) : fmt::format("code {}", WEXITSTATUS(status));
  return call.empty() ? how : how + " in " + call;
}

}  // namespace

void watch_for_death(Journal& journal) {
  leave_no_core_file();
  leave_crash_note(journal.crash_note(), /*names_frames=*/false);
}

Finding finding_of_death(const Journal& journal, int status, Overdue overdue, const Limits& limits) {
  const std::string call = journal.in_flight();
  const std::string how = how_it_ended(journal, status, overdue, limits);
  std::string text = call.empty()                ? fmt::format("{}, in no call of the allocator", how)
                     : overdue == Overdue::kNone ? fmt::format("{} in {}", how, call)
                     : overdue == Overdue::kCall ? fmt::format("{} {}", call, how)
                                                 : fmt::format("{}; under way was {}", how, call);
  if (overdue == Overdue::kDeadline && call.empty()) text = how;
  if (!limits.is_trial) text += crash_stack_text(journal.crash_note());
  return {cause_of(journal, status, overdue), text};
}

Finding finding_of_late_end(int status) {
  const std::string how =
      WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status)) : fmt::format("code {}", WEXITSTATUS(status));
  return {how, fmt::format("the check found nothing, and its process ended with {}, as it does where a sanitizer found "
                           "something: it is on standard error",
                           how)};
}

}  // namespace tenon::conformance
