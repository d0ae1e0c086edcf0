// StackTable: call stacks as numbers, each stack once. Taking one is a walk; its frames are named when somebody asks.
#pragma once

#include <tenon/memory/call_stacks.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace tenon {

/// Not thread-safe.
class StackTable {
 public:
  /// The stack of this thread, walked now.
  StackId take();
  /// Its return addresses, innermost first; empty for 0 and for a number that was never given.
  const std::vector<void*>& addresses(StackId stack) const;
  /// How many there are; the numbers are 1 to size().
  std::size_t size() const { return stacks_.size(); }
  void clear();

 private:
  std::vector<std::vector<void*>> stacks_;
  std::unordered_map<std::uint64_t, std::vector<StackId>> by_hash_;
};

}  // namespace tenon
