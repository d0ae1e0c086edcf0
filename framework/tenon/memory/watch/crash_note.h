// CrashNote: what a process leaves behind as it dies. A signal handler writes it, on a stack of its own that survives
// endless recursion, into memory that whoever reads it shares.
#pragma once

#include <tenon/core/export.h>

#include <atomic>
#include <cstdint>

namespace tenon {

/// A function of the stack, named while the process still lived.
struct NamedFrame {
  char function[480];  ///< mangled
  char module[128];    ///< the end of its path
  char file[256];
  std::uint32_t line;
};

/// Zeros mean that nothing happened: a page that was just mapped is one.
struct CrashNote {
  static constexpr int kMostFrames = 48;
  std::atomic<std::int32_t> signal;
  std::uint64_t fault_address;
  char words[512];  ///< of an exception that nobody caught
  std::atomic<std::int32_t> frame_count;
  void* frames[kMostFrames];  ///< return addresses, innermost first
  std::atomic<std::int32_t> named_count;
  NamedFrame named[kMostFrames];  ///< those of `frames`, and functions that were inlined into them
};

/// What is done in the handler besides; both may only call what a handler may.
struct CrashHooks {
  void (*before)(int signal) = nullptr;  ///< before the stack is walked, which may be broken
  void (*after)(int signal) = nullptr;   ///< once the note is written; then the signal ends the process
};

/// From here on a fatal signal of this process, not of its forks, is written into `note`, which lives on. With a
/// sanitizer in the process signals are left to it. `names_frames`: for a reader that has other libraries at other
/// addresses; a fork's parent names them itself.
TENON_API void leave_crash_note(CrashNote& note, bool names_frames, CrashHooks hooks = {});

/// Alternate stacks belong to threads: this one gets its own, once.
TENON_API void give_thread_a_signal_stack() noexcept;

}  // namespace tenon
