// Makes a history that fails shorter.
#pragma once

#include <tenon/conformance/finding.h>
#include <tenon/conformance/history.h>
#include <tenon/conformance/process/isolation.h>
#include <tenon/core/export.h>

#include <functional>
#include <optional>

namespace tenon::conformance {

/// Runs a history on a fresh allocator, here or in a child process within limits.
using HistoryRun = std::function<Finding(const Operations& history, const Limits& limits)>;

/// A history that fails, with what it does.
struct Shrunk {
  Operations history;
  Finding finding;
};

/// The shortest history found that fails for that cause, from one that does; empty where `history` does not do it
/// again. Takes `budget_seconds` for trials, and a second at each end to make sure of a hang.
TENON_API std::optional<Shrunk> shrink(const Operations& history, const std::string& cause, const HistoryRun& run,
                                       double budget_seconds);

}  // namespace tenon::conformance
