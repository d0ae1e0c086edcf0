// The handler, which may call next to nothing.
#include <tenon/cli/process/interrupt.h>

#include <tenon/core/process/child_process.h>

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace tenon::cli {

namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
/// Says that the parent is gone. Not one of those: where a process with threads adopts orphans it comes once for each
/// thread that hands them on, and a second one of those ends the work at once.
constexpr int kOrphaned = SIGUSR1;

std::atomic<int> first_signal{0};
std::atomic<int> other_signal{0};
std::atomic<bool> terms_are_one{false};
pid_t owner = 0;  ///< replays are forks of this process: they are for it to end
std::array<std::atomic<pid_t>, 256> children{};
/// What the handler says: a promise is written beside the one that it may be saying, and then takes its place.
struct Promise {
  char text[160];
  std::size_t length = 0;
};
Promise promises[2];
std::atomic<const Promise*> promise_now{nullptr};
/// Kernels made at run time (oneDNN's gemm) let the stack pointer lead into their workspace: a signal's frame, which is
/// 11 KiB where there is AMX, would be written over the heap. So the handler has a stack of its own.
alignas(64) char handler_stack[64 * 1024];

static_assert(std::atomic<int>::is_always_lock_free);  // pid_t is an int
static_assert(std::atomic<const Promise*>::is_always_lock_free);

void make(const std::string& promise) {
  const std::string text = "\ntenon: " + promise + "; once more ends at once\n";
  Promise& next = promise_now.load() == &promises[0] ? promises[1] : promises[0];
  next.length = std::min(text.size(), sizeof next.text);
  std::memcpy(next.text, text.data(), next.length);
  promise_now.store(&next);
}

void tell_children(int signal) noexcept {
  for (const std::atomic<pid_t>& child : children) {
    if (const pid_t process = child.load(); process > 0) ::kill(process, signal);
  }
}

extern "C" void on_interrupt(int signal) {
  if (::getpid() != owner) return;
  const int before = errno;
  int none = 0;
  const int asked = signal == kOrphaned ? SIGTERM : signal;
  if (first_signal.compare_exchange_strong(none, asked)) {
    tell_children(asked);
    if (const Promise* const now = promise_now.load())
      static_cast<void>(!::write(STDERR_FILENO, now->text, now->length));
  } else if (signal != kOrphaned && !(signal == SIGTERM && terms_are_one.load())) {
    tell_children(SIGKILL);
    std::signal(signal, SIG_DFL);
    ::raise(signal);  // delivered when this handler returns
  }
  errno = before;
}

}  // namespace

void catch_interrupts(const std::string& promise) {
  owner = ::getpid();
  if (!promise.empty()) make(promise);
  const stack_t alternative{.ss_sp = handler_stack, .ss_flags = 0, .ss_size = sizeof handler_stack};
  const int has_stack = ::sigaltstack(&alternative, nullptr) == 0 ? SA_ONSTACK : 0;
  struct sigaction ours {};
  ours.sa_handler = &on_interrupt;
  ours.sa_flags = SA_RESTART | has_stack;
  ::sigemptyset(&ours.sa_mask);
  for (const int signal : kSignals) {
    struct sigaction now {};
    if (::sigaction(signal, nullptr, &now) != 0 || now.sa_handler == SIG_IGN) continue;
    ::sigaction(signal, &ours, nullptr);
  }
  ::sigaction(kOrphaned, &ours, nullptr);
}

void change_promise(const std::string& promise) {
  if (promise_now.load() != nullptr) make(promise);
}

void take_terms_for_one() noexcept { terms_are_one.store(true); }

void end_promise() noexcept { promise_now.store(nullptr); }

int interrupt_signal() noexcept { return first_signal.load(std::memory_order_relaxed); }

void note_signal_of_another_rank(int signal) noexcept { other_signal.store(signal); }

std::string interrupt_name() {
  if (interrupt_signal() != 0) return signal_name(interrupt_signal());
  return other_signal == 0 ? "a signal to another rank" : signal_name(other_signal) + " to another rank";
}

ExitCode interrupted_exit_code() {
  const int signal = interrupt_signal() != 0 ? interrupt_signal() : other_signal != 0 ? other_signal.load() : SIGTERM;
  return static_cast<ExitCode>(exit_code_of_signal(signal));
}

ForwardedInterrupts::ForwardedInterrupts(pid_t child) noexcept {
  for (std::size_t i = 0; i < children.size(); ++i) {
    pid_t free = 0;
    if (!children[i].compare_exchange_strong(free, child)) continue;
    place_ = static_cast<int>(i);
    break;
  }
  // One that came between the start of the child and this.
  if (const int signal = interrupt_signal(); signal != 0) ::kill(child, signal);
}

ForwardedInterrupts::~ForwardedInterrupts() {
  if (place_ >= 0) children[static_cast<std::size_t>(place_)].store(0);
}

void end_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, kOrphaned);
  if (::getppid() != parent) throw Error("the sweep that started this cell has ended");
}

}  // namespace tenon::cli
