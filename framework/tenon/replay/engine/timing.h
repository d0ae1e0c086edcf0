// The timed passes of a replay: the policy alone, and each call by itself.
#pragma once

#include <tenon/replay/engine/replay.h>

#include <functional>

namespace tenon::replay {

/// Fills in pass_seconds, seconds, events_per_second and harness_seconds. The policy has run once before the first
/// timed pass: in the observed one, or here.
void time_passes(const Trace& trace, const StackConfig& policy, const JobOptions& options, ReplayRow& row);

/// Fills in allocate_ns, free_ns and clock_ns.
void time_calls(const Trace& trace, const StackConfig& policy, const JobOptions& options, ReplayRow& row);

}  // namespace tenon::replay
