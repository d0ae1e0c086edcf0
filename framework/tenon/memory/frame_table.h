// FrameTable: the frames of call stacks, each kept once.
#pragma once

#include <tenon/memory/call_stacks.h>

#include <cstdint>
#include <map>

namespace tenon {

/// Keeps each frame of `stacks` once. `stacks` outlives it.
class FrameTable {
 public:
  explicit FrameTable(CallStacks& stacks) : stacks_(stacks) {}
  /// Its place in CallStacks::frames, where it is added when it is new.
  std::uint32_t number_of(StackFrame frame);

 private:
  CallStacks& stacks_;
  std::map<StackFrame, std::uint32_t> numbers_;
};

}  // namespace tenon
