// Trust: how far an answer from a file can be relied on. One judgement for `tenon tune` and `tenon doctor`.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/results/fidelity.h>
#include <tenon/replay/trace/trace.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tenon::replay {

struct Trust {
  /// Why an answer would be worth nothing, with how to record better; empty when it is worth something.
  std::string refusal;
  std::string why_refused;           ///< the reason alone
  std::vector<std::string> caveats;  ///< what a reader of the answer has to know: clauses without a full stop
  Fidelity fidelity;
  std::uint64_t reserved_at_start_bytes = 0;  ///< by the recorded allocator, which a replay from nothing starts without
};

/// Replays the trace under the settings that it was recorded with: from the segments that were there at its beginning,
/// and from an empty device, which is what every row of a comparison starts with. `conf`: where the user says what was
/// set.
TENON_API Trust judge(const Trace& trace, const std::optional<std::string>& conf = {});

}  // namespace tenon::replay
