// Histories: what a random test does to an allocator, as data, so that a failing one can be run again and made shorter.
#pragma once

#include <tenon/conformance/checked_source.h>
#include <tenon/core/export.h>
#include <tenon/memory/factory.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tenon::conformance {

struct Operation {
  enum Kind : std::uint8_t { kAllocate, kFree, kUse, kComplete, kTrim };
  Kind kind = kAllocate;
  std::uint32_t slot = 0;  ///< which block; an operation on an empty (allocate: a full) slot does nothing
  std::size_t bytes = 0;   ///< of an allocation; of a trim: how much may stay
  std::size_t alignment = 64;
  std::uint64_t stream = 0;  ///< of an allocation, a use, a completion; of a free: the last user
};

using History = std::vector<Operation>;

TENON_API std::string to_string(const History& history);

struct Subject {
  const AllocatorInfo& info;
  const Options& options;
  StackConfig config() const { return {.policy = info, .options = options, .layers = {}}; }
};

struct Playing {
  std::size_t capacity_bytes = 256 * std::size_t{1024} * 1024;
  Fault fault;
  bool check_each_step = true;                        ///< invariants, layout and figures after every operation
  std::vector<std::uintptr_t>* placements = nullptr;  ///< where each allocation went is added to it
  std::int64_t* fallible_calls = nullptr;             ///< how many calls to the source could have failed
};

/// Plays a history on a fresh allocator and a device that checks. Returns what went wrong first, empty when nothing
/// did. Running out of memory is nothing wrong, and neither is an Error where a call to the source failed.
TENON_API std::string play(const Subject& subject, const History& history, const Playing& playing);

/// A history from a seed: sizes from bytes to tens of MiB, a few streams, frees in any order.
History make_history(std::uint64_t seed, int length, int streams);

/// The shortest history found that still fails, with what it does.
struct Shrunk {
  History history;
  std::string failure;
};
Shrunk shrink(const Subject& subject, History history, const Playing& playing);

}  // namespace tenon::conformance
