// A signal handler on a stack of its own, which survives endless recursion, and frames named by the parent: a fork has
// the same libraries at the same addresses.
#include <tenon/conformance/death.h>

#include <tenon/core/child_process.h>
#include <tenon/memory/history/call_stack.h>

#include <dlfcn.h>
#include <execinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace tenon::conformance {

namespace {

constexpr std::size_t kMostLines = 8;
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

Journal* dying_journal = nullptr;

extern "C" void leave_stack(int signal, siginfo_t* info, void*) {
  void* frames[48];
  const int count = ::backtrace(frames, 48);
  const bool has_address = signal == SIGSEGV || signal == SIGBUS;
  dying_journal->note_frames(frames, count, has_address ? reinterpret_cast<std::uintptr_t>(info->si_addr) : 0);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

[[noreturn]] void leave_words() {
  try {
    if (const auto current = std::current_exception()) std::rethrow_exception(current);
    dying_journal->note_last_words("std::terminate was called");
  } catch (const std::exception& error) {
    dying_journal->note_last_words(
        fmt::format("an exception left a function that may not throw: {}", error.what()).c_str());
  } catch (...) {
    dying_journal->note_last_words("an exception left a function that may not throw");
  }
  std::abort();
}

bool has_sanitizer() {
  return ::dlsym(RTLD_DEFAULT, "__asan_init") != nullptr || ::dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr;
}

/// "mine.so" out of its path.
std::string file_of(void* address) {
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return "?";
  const std::string path = info.dli_fname;
  return path.substr(path.find_last_of('/') + 1);
}

/// Frames from the place of the crash on; the handler's own come before it.
std::string stack_lines(const std::vector<void*>& frames) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    void* const inside = static_cast<char*>(frames[i]) - 1;  // of the call, not after it
    for (const StackFrame& frame : symbolize({inside})) {
      std::string line = fmt::format("{} ({})", frame.name, file_of(inside));
      if (frame.line != 0) line += fmt::format(" at {}:{}", frame.file, frame.line);
      lines.push_back(std::move(line));
    }
  }
  std::size_t first = 0;
  for (std::size_t i = 0; i < lines.size() && i < 6; ++i)
    if (lines[i].find("leave_stack") != std::string::npos || lines[i].find("__restore_rt") != std::string::npos ||
        lines[i].find("(libc.so") != std::string::npos)
      first = i + 1;
  std::string text;
  std::size_t shown = 0;
  for (std::size_t i = first; i < lines.size() && shown < kMostLines; ++shown) {
    std::size_t next = i + 1;
    while (next < lines.size() && lines[next] == lines[i]) ++next;
    if (lines[i].find("WatchedAllocator") != std::string::npos) break;  // from here on it is the kit
    text += fmt::format("\n    {}{}", lines[i], next - i > 1 ? fmt::format("  ({} times)", next - i) : "");
    i = next;
  }
  return text.empty() ? text : "\n  where it was:" + text;
}

std::string how_it_ended(const Journal& journal, int status, Overdue overdue, const Limits& limits) {
  switch (overdue) {
    case Overdue::kCall:
      return fmt::format("did not come back within {:g} s", limits.call_seconds);
    case Overdue::kDeadline:
      return fmt::format("the check did not end within {:g} s, {} calls were made; --deadline gives it longer",
                         limits.deadline_seconds, journal.calls());
    case Overdue::kNone:
      break;
  }
  if (!WIFSIGNALED(status))
    return fmt::format("the process ended with code {} in the middle of the check", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  const char* name = ::sigabbrev_np(signal);
  std::string text = fmt::format("SIG{} ({})", name == nullptr ? "?" : name, ::strsignal(signal));
  if (signal == SIGSEGV && journal.frames().size() >= 47) text += ", the stack is full: endless recursion?";
  if (const std::uint64_t address = journal.fault_address(); address != 0)
    text += fmt::format(" at address {:#x}", address);
  if (signal == SIGKILL) text += "; the system may have run out of memory";
  if (const std::string words = journal.last_words(); !words.empty()) text += ": " + words;
  return text;
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
  dying_journal = &journal;
  std::set_terminate(&leave_words);
  leave_no_core_file();
  if (has_sanitizer()) return;
  void* warm[1];
  ::backtrace(warm, 1);  // loads the unwinder now: a handler must not
  static std::array<char, 256 * 1024> stack;
  stack_t alternative{};
  alternative.ss_sp = stack.data();
  alternative.ss_size = stack.size();
  ::sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_sigaction = &leave_stack;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int signal : kSignals) ::sigaction(signal, &action, nullptr);
}

Finding finding_of_death(const Journal& journal, int status, Overdue overdue, const Limits& limits) {
  const std::string call = journal.in_flight();
  const std::string how = how_it_ended(journal, status, overdue, limits);
  std::string text = call.empty()                ? fmt::format("{}, in no call of the allocator", how)
                     : overdue == Overdue::kNone ? fmt::format("{} in {}", how, call)
                     : overdue == Overdue::kCall ? fmt::format("{} {}", call, how)
                                                 : fmt::format("{}; under way was {}", how, call);
  if (overdue == Overdue::kDeadline && call.empty()) text = how;
  if (!limits.is_trial) text += stack_lines(journal.frames());
  return {cause_of(journal, status, overdue), text};
}

}  // namespace tenon::conformance
