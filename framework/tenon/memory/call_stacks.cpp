// Frames by number.
#include <tenon/memory/call_stacks.h>
#include <tenon/memory/frame_table.h>

#include <utility>

namespace tenon {

std::vector<std::vector<std::uint32_t>> CallStacks::only_stack_0() {
  return std::vector<std::vector<std::uint32_t>>(1);
}

std::vector<StackFrame> CallStacks::frames_of(StackId stack) const {
  std::vector<StackFrame> named;
  named.reserve(stacks[stack].size());
  for (const std::uint32_t frame : stacks[stack]) named.push_back(frames[frame]);
  return named;
}

std::uint32_t FrameTable::number_of(StackFrame frame) {
  const auto next = static_cast<std::uint32_t>(stacks_.frames.size());
  const auto [entry, is_new] = numbers_.try_emplace(frame, next);
  if (is_new) stacks_.frames.push_back(std::move(frame));
  return entry->second;
}

}  // namespace tenon
