// Which capacities a policy runs on, by trying: for those that look at the capacity itself, of which CapacityWalk
// cannot tell. Running out of memory is not monotone in capacity, so a stretch of them is tried, each one that can be
// typed back exactly as it is printed.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/replay/trace/trace.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon::replay {

/// Whether a capacity runs, and with how many failures over all traces. In what a walk found, this and every larger one
/// up to the next point.
struct CapacityPoint {
  std::uint64_t capacity_bytes = 0;
  std::uint64_t ooms = 0;
};

struct CapacityCurve {
  std::vector<CapacityPoint> points;             ///< ascending
  std::optional<std::uint64_t> safe_from_bytes;  ///< it and every larger one that was tried runs
  std::string failure;                           ///< a replay that went wrong in itself
};

struct CapacityCurveOptions {
  std::uint64_t peak_reserved_bytes = 0;  ///< without a limit, the largest over the traces
  std::optional<std::uint64_t> target_bytes;
  bool is_coarse = false;             ///< a quarter of the points
  std::function<bool()> is_stopping;  ///< once it says so, replays are ended, and the curve is of no use
  unsigned jobs = 0;
};

/// From the peak of live bytes to what the policy takes without a limit, and on until it runs: every trace has to.
CapacityCurve capacity_curve(const std::vector<Trace>& traces, const StackConfig& policy,
                             const CapacityCurveOptions& options);

/// The next larger capacity that format_size_exact spells shortly: whole MiB, KiB or bytes.
TENON_API std::uint64_t typable_capacity(std::uint64_t bytes);

}  // namespace tenon::replay
