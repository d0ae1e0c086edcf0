// Cutting and comparing traces.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/trace/trace.h>

#include <cstdint>
#include <optional>
#include <string>

namespace tenon::replay {

/// The counted events [from, to), both outside requests that ran out of memory. What lives at `from` is put at the
/// start, as blocks from before the recording.
TENON_API Trace slice(const Trace& trace, std::uint64_t from, std::uint64_t to);

/// Where a cut at that event is made: before a request that ran out of memory, not between it and its end.
TENON_API std::uint64_t outside_requests(const Trace& trace, std::uint64_t event);

/// The counted event before which the first mark of that name stands. Throws ConfigError; the nearest name is given.
TENON_API std::uint64_t event_of_mark(const Trace& trace, const std::string& name);

struct TraceDifference {
  bool are_equal = false;
  std::optional<std::uint64_t> first_event;  ///< of the longer one; empty when equal
  std::string what;                          ///< "a 512 on stream 0" against "f"
};

/// Compares events by kind, size, stream and block; marks are left out.
TENON_API TraceDifference difference(const Trace& a, const Trace& b);

}  // namespace tenon::replay
