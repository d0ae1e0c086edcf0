// What a history keeps: how many events, and which of them with their call stacks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon {

/// Which events carry stacks: none, live blocks only, allocations, allocations and frees (PyTorch: context).
enum class StackContext : std::uint8_t { kNone, kState, kAlloc, kAll };

struct HistorySettings {
  /// The ring's length; the oldest entries go first. 0 keeps none: only live blocks' stacks ("state").
  std::size_t max_entries = 1 << 20;
  StackContext stacks = StackContext::kNone;
  bool keeps_live = false;        ///< all live blocks are known, also those without a stack: History::live_blocks()
  std::uint32_t stack_every = 1;  ///< a stack for every n-th event only: walking one costs about a microsecond
};

}  // namespace tenon
