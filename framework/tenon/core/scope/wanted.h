// What somebody wants to be told of what a program does: one word, read wherever there is something to tell. Nobody
// wants anything: a relaxed load and a branch that is never taken.
#pragma once

#include <tenon/core/export.h>

#include <atomic>
#include <cstdint>

namespace tenon::scopes {

/// What a listener wants to be told, as bits.
enum Wants : std::uint32_t {
  kWantsScopes = 1,    ///< entered() and left(), and contexts
  kWantsOperands = 2,  ///< the operands of operators
  kWantsMemory = 4,    ///< allocated(), freed() and calls to the device
  kWantsKernels = 8,   ///< kernels and copies
  kWantsWork = 16,     ///< what kernels compute: floating-point operations
  kWantsLives = 32,    ///< no listener's: every tensor and node of autograd is listed (tensor/live_tensors.h)
};

namespace detail {
#if defined(TENON_BUILDING)
/// What the listeners want together, and the list of tensors; 0 where nobody wants anything.
inline constinit std::atomic<std::uint32_t> wanted{0};
#endif
/// The same for programs, which see another symbol than the library does: its own is read without a detour.
TENON_API extern std::atomic<std::uint32_t> wanted_outside;
}  // namespace detail

/// What the listeners want together, and the list of tensors: one word, so that whoever makes something asks once.
[[gnu::always_inline]] inline std::uint32_t wanted() noexcept {
#if defined(TENON_WITHOUT_SCOPES)  // to measure what the question itself costs: bench/results/profiler.md
  return 0;
#elif defined(TENON_BUILDING)
  return detail::wanted.load(std::memory_order_relaxed);
#else
  return detail::wanted_outside.load(std::memory_order_relaxed);
#endif
}
/// Whether somebody listens.
[[gnu::always_inline]] inline bool is_listening() noexcept { return (wanted() & ~kWantsLives) != 0; }
/// Whether somebody wants to know of every tensor and node.
[[gnu::always_inline]] inline bool are_lives_wanted() noexcept { return (wanted() & kWantsLives) != 0; }

}  // namespace tenon::scopes
