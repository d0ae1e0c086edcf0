// OrderedBlocks: the free blocks of one size class by (bytes, order). One block, or a B+-tree of small nodes; whether
// there is anything inside, its owner knows.
//
// Most classes hold none or one: that one needs no node. A workload that frees a hundred thousand equal blocks gets
// four levels of twenty-one entries each, every key beside the others of its node.
#pragma once

#include "block_record.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tenon::caching {

struct BlockKey {
  std::size_t bytes;
  std::uint64_t order;
  bool operator<(const BlockKey& other) const {
    return bytes != other.bytes ? bytes < other.bytes : order < other.order;
  }
};

/// Nodes of one index, reused; the owner locks.
class NodeStore;

class OrderedBlocks {
 public:
  BlockRecord* first() const;
  /// The first block whose key is not below `key`, null when there is none.
  BlockRecord* at_least(BlockKey key) const;
  /// Nothing is inside: whatever was before is forgotten.
  void set_single(BlockRecord* block) { root_ = reinterpret_cast<std::uintptr_t>(block); }
  /// Something is inside.
  void insert_beside(BlockRecord* block, NodeStore& nodes);
  /// Not the only one inside.
  void erase(BlockRecord* block, NodeStore& nodes);
  bool is_single() const { return (root_ & 1) == 0; }
  template <class Visit>
  void for_each(Visit&& visit) const;

 private:
  friend class NodeStore;
  static constexpr int kFanout = 21;
  static constexpr int kMaxDepth = 24;
  struct Entry {
    BlockKey key;  ///< of an inner node's child: a lower bound of what is below it
    void* item;    ///< BlockRecord* in a leaf, Node* above
  };
  struct alignas(64) Node {
    std::uint32_t count;
    std::uint32_t is_leaf;
    Entry entries[kFanout];
  };
  struct Step {
    Node* node;
    int slot;
  };

  BlockRecord* single() const { return reinterpret_cast<BlockRecord*>(root_); }
  Node* root() const { return reinterpret_cast<Node*>(root_ & ~std::uintptr_t{1}); }
  void set_root(Node* node) { root_ = reinterpret_cast<std::uintptr_t>(node) | 1; }
  static BlockKey key_of(const BlockRecord* block) { return {block->bytes, block->order}; }
  static void put(Node& node, int slot, Entry entry);
  static void drop(Node& node, int slot);
  static int child_slot(const Node& node, BlockKey key);
  static int leaf_slot(const Node& node, BlockKey key);
  static BlockRecord* leftmost(const Node* node);
  template <class Visit>
  static void visit_all(const Node* node, Visit&& visit);

  std::uintptr_t root_ = 0;  // a BlockRecord*, or a Node* with bit 0 set
};

class NodeStore {
 public:
  NodeStore() = default;
  NodeStore(const NodeStore&) = delete;
  NodeStore& operator=(const NodeStore&) = delete;

  /// So many can be taken without an exception.
  void reserve(std::size_t count) {
    while (spare_.size() < count) {
      if (spare_.capacity() <= owned_.size()) spare_.reserve(2 * owned_.size() + 8);  // so that give() cannot fail
      owned_.push_back(std::make_unique_for_overwrite<OrderedBlocks::Node>());
      spare_.push_back(owned_.back().get());
    }
  }
  OrderedBlocks::Node* take(bool is_leaf) {
    reserve(1);
    OrderedBlocks::Node* node = spare_.back();
    spare_.pop_back();
    node->count = 0;
    node->is_leaf = is_leaf;
    return node;
  }
  void give(OrderedBlocks::Node* node) { spare_.push_back(node); }

 private:
  std::vector<std::unique_ptr<OrderedBlocks::Node>> owned_;
  std::vector<OrderedBlocks::Node*> spare_;
};

inline void OrderedBlocks::put(Node& node, int slot, Entry entry) {
  for (int i = static_cast<int>(node.count); i > slot; --i) node.entries[i] = node.entries[i - 1];
  node.entries[slot] = entry;
  ++node.count;
}

inline void OrderedBlocks::drop(Node& node, int slot) {
  --node.count;
  for (int i = slot; i < static_cast<int>(node.count); ++i) node.entries[i] = node.entries[i + 1];
}

/// The last child whose lower bound is not above the key; the first one takes everything below it.
inline int OrderedBlocks::child_slot(const Node& node, BlockKey key) {
  int slot = 1;
  while (slot < static_cast<int>(node.count) && !(key < node.entries[slot].key)) ++slot;
  return slot - 1;
}

inline int OrderedBlocks::leaf_slot(const Node& node, BlockKey key) {
  int slot = 0;
  while (slot < static_cast<int>(node.count) && node.entries[slot].key < key) ++slot;
  return slot;
}

inline BlockRecord* OrderedBlocks::leftmost(const Node* node) {
  while (!node->is_leaf) node = static_cast<const Node*>(node->entries[0].item);
  return static_cast<BlockRecord*>(node->entries[0].item);
}

inline BlockRecord* OrderedBlocks::first() const { return is_single() ? single() : leftmost(root()); }

template <class Visit>
void OrderedBlocks::visit_all(const Node* node, Visit&& visit) {
  for (std::uint32_t i = 0; i < node->count; ++i) {
    if (node->is_leaf)
      visit(static_cast<BlockRecord*>(node->entries[i].item));
    else
      visit_all(static_cast<const Node*>(node->entries[i].item), visit);
  }
}

template <class Visit>
void OrderedBlocks::for_each(Visit&& visit) const {
  if (is_single())
    visit(single());
  else
    visit_all(root(), visit);
}

}  // namespace tenon::caching
