// NodeMap: a flat hash table keyed by node, for the engine's book-keeping of one run.
#pragma once

#include <tenon/autograd/node.h>

#include <cstdint>
#include <vector>

namespace tenon::autograd {

template <class Value>
class NodeMap {
 public:
  /// The entry of `node`, made when new.
  Value& operator[](const Node* node) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Slot& slot = find_slot(node);
    if (!slot.node) {
      slot.node = node;
      ++count_;
    }
    return slot.value;
  }
  Value* find(const Node* node) {
    if (slots_.empty()) return nullptr;
    Slot& slot = find_slot(node);
    return slot.node ? &slot.value : nullptr;
  }
  std::size_t size() const { return count_; }

 private:
  struct Slot {
    const Node* node = nullptr;
    Value value{};
  };
  Slot& find_slot(const Node* node) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = (reinterpret_cast<std::uintptr_t>(node) >> 4) * 0x9e3779b97f4a7c15ULL >> 20 & mask;
    while (slots_[at].node && slots_[at].node != node) at = (at + 1) & mask;
    return slots_[at];
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 4 * slots_.size());
    old.swap(slots_);
    for (Slot& slot : old) {
      if (slot.node) find_slot(slot.node) = std::move(slot);
    }
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace tenon::autograd
