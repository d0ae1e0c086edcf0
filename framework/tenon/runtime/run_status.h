// How a run ended, in the words of result.json.
#pragma once

#include <tenon/core/export.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace tenon {

enum class RunStatus : std::uint8_t {
  kNotRun,  ///< a cell that its sweep did not come to
  kDone,
  kDisqualified,  ///< it came to its end, under an allocator that broke its contract
  kFailed,
  kOutOfMemory,
  kInterrupted,  ///< it goes on from its state
  kCrashed,      ///< by a fatal signal of its own
  kHung,         ///< in a call of the allocator that did not come back
  kKilled,       ///< by a signal from outside
};

/// "done", "disqualified", "out_of_memory" …
TENON_API std::string_view to_string(RunStatus status);
/// Empty for any other word.
TENON_API std::optional<RunStatus> parse_run_status(std::string_view word);

/// Whether such a result stays when its run is resumed: done, or what would happen again, out of memory and a broken
/// promise of the allocator.
TENON_API bool is_finished(RunStatus status);

}  // namespace tenon
