// How fast a sound allocator is: one loop over it, and the same loop over another one beside it.
#pragma once

#include <tenon/conformance/conformance.h>

#include <optional>

namespace tenon::conformance {

/// The best of at least five turns of 10 ms, and of up to fifteen while they take no longer than 0.3 s, so that one
/// stall of the machine is not the figure. Measures in a child process; nothing where the allocator crashes, throws or
/// takes seconds.
TENON_API std::optional<Speed> measure_speed(const AllocatorInfo& info, const Options& options,
                                             const AllocatorInfo* yardstick);

}  // namespace tenon::conformance
