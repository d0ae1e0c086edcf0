// The handler, which may call next to nothing, and the words of an exception that nobody caught.
#include <tenon/memory/history/call_stack.h>
#include <tenon/memory/watch/crash_note.h>

#include <dlfcn.h>
#include <execinfo.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace tenon {

namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr std::size_t kSignalStackBytes = 512 * 1024;

struct Watch {
  CrashNote* note = nullptr;
  bool names_frames = false;
  CrashHooks hooks;
  pid_t owner = 0;
};
Watch watch;
std::atomic<bool> is_dying{false};

void copy_text(char* to, std::size_t room, const char* from) noexcept {
  if (from != nullptr) std::strncpy(to, from, room - 1);
}

void add_named(void* data, const char* function, const char* file, int line) {
  auto& note = *static_cast<CrashNote*>(data);
  const int at = note.named_count.load(std::memory_order_relaxed);
  if (at >= CrashNote::kMostFrames) return;
  NamedFrame& frame = note.named[at];
  copy_text(frame.function, sizeof frame.function, function);
  copy_text(frame.file, sizeof frame.file, file);
  frame.line = static_cast<std::uint32_t>(line);
  note.named_count.store(at + 1, std::memory_order_release);
}

void name_frames(CrashNote& note) noexcept {
  for (int i = 0; i < note.frame_count.load(); ++i) {
    const int first = note.named_count.load();
    void* const inside = static_cast<char*>(note.frames[i]) - 1;  // of the call, not after it
    name_frame(inside, &add_named, &note);
    Dl_info info{};
    if (::dladdr(inside, &info) == 0 || info.dli_fname == nullptr) continue;
    const char* const slash = std::strrchr(info.dli_fname, '/');
    for (int k = first; k < note.named_count.load(); ++k)
      copy_text(note.named[k].module, sizeof note.named[k].module, slash == nullptr ? info.dli_fname : slash + 1);
  }
}

extern "C" void on_crash(int signal, siginfo_t* info, void*) {
  if (::getpid() == watch.owner) {
    if (is_dying.exchange(true)) {
      while (true) ::pause();  // another thread is at it
    }
    CrashNote& note = *watch.note;
    const bool has_address = signal == SIGSEGV || signal == SIGBUS;
    note.fault_address = has_address ? reinterpret_cast<std::uintptr_t>(info->si_addr) : 0;
    note.signal = signal;
    if (watch.hooks.before != nullptr) watch.hooks.before(signal);
    note.frame_count = ::backtrace(note.frames, CrashNote::kMostFrames);
    if (watch.names_frames) name_frames(note);
    if (watch.hooks.after != nullptr) watch.hooks.after(signal);
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

[[noreturn]] void on_terminate() {
  if (::getpid() == watch.owner) {
    std::string words = "std::terminate was called";
    try {
      if (const auto current = std::current_exception()) {
        words = "an exception left a function that may not throw";
        std::rethrow_exception(current);
      }
    } catch (const std::exception& error) {
      words += fmt::format(": {}", error.what());
    } catch (...) {  // it says nothing of itself
    }
    copy_text(watch.note->words, sizeof watch.note->words, words.c_str());
  }
  std::abort();
}

bool has_sanitizer() {
  return ::dlsym(RTLD_DEFAULT, "__asan_init") != nullptr || ::dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr;
}

/// Of one thread, for as long as it runs. Whatever stack the thread had for signals stays the one it goes back to.
struct SignalStack {
  void* memory = MAP_FAILED;
  stack_t before{};
  SignalStack() noexcept {
    memory = ::mmap(nullptr, kSignalStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    stack_t ours{};
    ours.ss_sp = memory;
    ours.ss_size = kSignalStackBytes;
    ::sigaltstack(&ours, &before);
  }
  ~SignalStack() {
    if (memory == MAP_FAILED) return;
    ::sigaltstack(&before, nullptr);
    ::munmap(memory, kSignalStackBytes);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;
};

}  // namespace

void give_thread_a_signal_stack() noexcept {
  if (has_sanitizer()) return;
  static thread_local SignalStack stack;
}

void leave_crash_note(CrashNote& note, bool names_frames, CrashHooks hooks) {
  watch = {.note = &note, .names_frames = names_frames, .hooks = hooks, .owner = ::getpid()};
  is_dying = false;
  std::set_terminate(&on_terminate);
  if (has_sanitizer()) return;
  void* warm[1];
  ::backtrace(warm, 1);  // loads the unwinder now: a handler must not
  prepare_to_name_frames();
  give_thread_a_signal_stack();
  struct sigaction action {};
  action.sa_sigaction = &on_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int signal : kSignals) ::sigaction(signal, &action, nullptr);
}

}  // namespace tenon
