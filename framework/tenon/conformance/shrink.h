// Makes a history that fails shorter.
#pragma once

#include <tenon/conformance/finding.h>
#include <tenon/conformance/history.h>

#include <functional>

namespace tenon::conformance {

/// Runs a history on a fresh allocator, here or in a child process.
using HistoryRun = std::function<Finding(const Operations& history)>;

/// The shortest history found that still fails for the same cause, with what it does.
struct Shrunk {
  Operations history;
  Finding finding;
};

/// `finding`: what `history` does. Stops after so many seconds with what it has.
Shrunk shrink(Operations history, Finding finding, const HistoryRun& run, double budget_seconds);

}  // namespace tenon::conformance
