// Walking the stack of a thread. A stack that it has had before costs some loads: walked once, it is known.
#pragma once

#include <cstddef>
#include <span>

namespace tenon {

/// Frames outside of so many are left out.
inline constexpr std::size_t kMostStackFrames = 48;

/// Return addresses of this thread, innermost first, and then of who started it (thread_start.h): how many there are.
std::size_t walk_call_stack(std::span<void*, kMostStackFrames> addresses);

}  // namespace tenon
