// How fast an allocator is where nothing is wrong: one loop, beside the same loop over another one.
#pragma once

#include <tenon/conformance/conformance.h>

#include <optional>

namespace tenon::conformance {

/// Measures in a child process; nothing where the allocator crashes, throws or takes seconds.
std::optional<Speed> measure_speed(const AllocatorInfo& info, const Options& options, const AllocatorInfo* yardstick);

}  // namespace tenon::conformance
