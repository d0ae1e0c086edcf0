// Equal stacks are found by a hash over their addresses.
#include <tenon/memory/history/stack_table.h>
#include <tenon/memory/history/stack_walk.h>

#include <algorithm>
#include <array>
#include <span>

namespace tenon {

StackId StackTable::take() {
  std::array<void*, kMostStackFrames> frames;
  const std::span<void* const> addresses(frames.data(), walk_call_stack(frames));
  std::uint64_t hash = 1469598103934665603u;
  for (void* address : addresses) hash = (hash ^ reinterpret_cast<std::uint64_t>(address)) * 1099511628211u;
  std::vector<StackId>& same_hash = by_hash_[hash];
  for (const StackId id : same_hash) {
    if (std::ranges::equal(stacks_[id - 1], addresses)) return id;
  }
  stacks_.emplace_back(addresses.begin(), addresses.end());
  same_hash.push_back(static_cast<StackId>(stacks_.size()));
  return same_hash.back();
}

const std::vector<void*>& StackTable::addresses(StackId stack) const {
  static const std::vector<void*> none;
  return stack == 0 || stack > stacks_.size() ? none : stacks_[stack - 1];
}

void StackTable::clear() {
  stacks_.clear();
  by_hash_.clear();
}

}  // namespace tenon
