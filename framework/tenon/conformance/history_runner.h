// Runs a history on an allocator with everything watched.
#pragma once

#include <tenon/conformance/checked_source.h>
#include <tenon/conformance/finding.h>
#include <tenon/conformance/history.h>
#include <tenon/core/export.h>
#include <tenon/memory/factory.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tenon::conformance {

class Journal;

struct Subject {
  const AllocatorInfo& info;
  const Options& options;
  Journal* journal = nullptr;  ///< where the calls of its allocators are written
  StackConfig config() const { return {.policy = info, .options = options, .layers = {}}; }
};

struct RunSettings {
  std::size_t capacity_bytes = 256 * std::size_t{1024} * 1024;
  Fault fault;
  bool check_each_step = true;                        ///< invariants, layout and figures after every operation
  bool manual_completion = true;                      ///< streams get somewhere when the history says so
  std::vector<std::string_view> only;                 ///< causes to look for; empty: all of them
  std::vector<std::uintptr_t>* placements = nullptr;  ///< where each allocation went is added to it
  std::int64_t* fallible_calls = nullptr;             ///< how many calls to the source could have failed
};

/// Runs a history on a fresh allocator and a device that checks. Returns what went wrong first, empty when nothing
/// did. Running out of memory is nothing wrong, and neither is an Error where a call to the source failed.
TENON_API Finding run_history(const Subject& subject, const Operations& history, const RunSettings& settings);

}  // namespace tenon::conformance
