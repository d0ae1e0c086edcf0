// Look-up, insertion and removal in the B+-tree of one size class. Nodes split in the middle and vanish when they are
// empty.
#include "ordered_blocks.h"

namespace tenon::caching {

BlockRecord* OrderedBlocks::at_least(BlockKey key) const {
  if (is_single()) return key_of(single()) < key ? nullptr : single();
  const Node* next = nullptr;  // what follows the path taken: no node is ever empty, so its first block is the answer
  const Node* node = root();
  while (!node->is_leaf) {
    const int slot = child_slot(*node, key);
    if (slot + 1 < static_cast<int>(node->count)) next = static_cast<const Node*>(node->entries[slot + 1].item);
    node = static_cast<const Node*>(node->entries[slot].item);
  }
  const int slot = leaf_slot(*node, key);
  if (slot < static_cast<int>(node->count)) return static_cast<BlockRecord*>(node->entries[slot].item);
  return next ? leftmost(next) : nullptr;
}

void OrderedBlocks::insert_beside(BlockRecord* block, NodeStore& nodes) {
  const Entry entry{key_of(block), block};
  if (is_single()) {
    BlockRecord* other = single();
    Node* leaf = nodes.take(true);
    put(*leaf, 0, {key_of(other), other});
    put(*leaf, key_of(other) < entry.key ? 1 : 0, entry);
    set_root(leaf);
    return;
  }
  Step path[kMaxDepth];
  int depth = 0;
  Node* node = root();
  while (!node->is_leaf) {
    const int slot = child_slot(*node, entry.key);
    path[depth++] = {node, slot};
    node = static_cast<Node*>(node->entries[slot].item);
  }
  int slot = leaf_slot(*node, entry.key);
  Entry carried = entry;
  // All the nodes that splitting may take, before anything is changed: nothing is lost where the host has no memory.
  if (node->count == kFanout) nodes.reserve(static_cast<std::size_t>(depth) + 2);
  // A full node gives its upper half to a new right sibling, which its parent then takes in.
  while (node->count == kFanout) {
    Node* right = nodes.take(node->is_leaf);
    constexpr int kHalf = kFanout / 2;
    for (int i = kHalf; i < kFanout; ++i) right->entries[i - kHalf] = node->entries[i];
    right->count = kFanout - kHalf;
    node->count = kHalf;
    if (slot > kHalf || (slot == kHalf && !(carried.key < right->entries[0].key)))
      put(*right, slot - kHalf, carried);
    else
      put(*node, slot, carried);
    carried = {right->entries[0].key, right};
    if (depth == 0) {
      Node* top = nodes.take(false);
      put(*top, 0, {node->entries[0].key, node});
      put(*top, 1, carried);
      set_root(top);
      return;
    }
    --depth;
    node = path[depth].node;
    slot = path[depth].slot + 1;
  }
  put(*node, slot, carried);
}

void OrderedBlocks::erase(BlockRecord* block, NodeStore& nodes) {
  const BlockKey key = key_of(block);
  Step path[kMaxDepth];
  int depth = 0;
  Node* node = root();
  while (!node->is_leaf) {
    const int slot = child_slot(*node, key);
    path[depth++] = {node, slot};
    node = static_cast<Node*>(node->entries[slot].item);
  }
  drop(*node, leaf_slot(*node, key));
  while (node->count == 0 && depth > 0) {
    nodes.give(node);
    --depth;
    node = path[depth].node;
    drop(*node, path[depth].slot);
  }
  // Only the root can have become trivial.
  for (Node* top = root(); top->count <= 1; top = root()) {
    if (top->count == 1 && !top->is_leaf) {
      set_root(static_cast<Node*>(top->entries[0].item));
      nodes.give(top);
      continue;
    }
    root_ = top->count == 1 ? reinterpret_cast<std::uintptr_t>(top->entries[0].item) : 0;
    nodes.give(top);
    return;
  }
}

}  // namespace tenon::caching
