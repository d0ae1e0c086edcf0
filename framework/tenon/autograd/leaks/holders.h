// Holders: who keeps each tensor that lives, as far as autograd knows: the program, a node that saved it, a tensor
// whose gradient it is, a hook that captured it.
//
//   program -> tensor -> grad_fn -> node -> node -> saved tensor -> storage
//              (root)               \_ edges _/
#pragma once

#include <tenon/autograd/leaks/captured_state.h>
#include <tenon/autograd/leaks/glance.h>
#include <tenon/autograd/node.h>
#include <tenon/tensor/live_tensors.h>

#include <any>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace tenon::autograd {

/// As it is while another thread may be making it.
inline std::size_t numel_of(const TensorImpl& tensor) {
  return glance([&] { return static_cast<std::size_t>(tensor.numel()); });
}
inline std::size_t storage_bytes_of(const TensorImpl& tensor) {
  return glance([&] { return tensor.storage().nbytes(); });
}
inline Dims sizes_of(const TensorImpl& tensor) {
  return glance([&] { return tensor.sizes(); });
}

/// A tensor, and what is known of the references to it.
struct HeldTensor {
  const TensorImpl* tensor = nullptr;
  StackId made_at = 0;
  std::uint32_t thread = 0;                 ///< that made it
  std::uint32_t by_program = 0;             ///< references that nothing below explains
  const AutogradMeta* meta = nullptr;       ///< what autograd knew of it before references were counted
  const Node* saver = nullptr;              ///< a node that saved it for backward
  const TensorImpl* gradient_of = nullptr;  ///< it is this one's .grad
  const Node* hook_of = nullptr;            ///< a hook captured it: of this node's tensor …
  const TensorImpl* hook_on = nullptr;      ///< … or of this leaf
  const Node* grad_fn = nullptr;

  std::size_t bytes() const { return numel_of(*tensor) * size_of(tensor->dtype()); }
};

/// Keeps a node, at a standstill; null where there is none, or it is on its way out in another thread. Its memory stays
/// for as long as forget_node() waits.
inline IntrusivePtr<Node> kept_node(const Node* node) {
  return node != nullptr && node->try_retain() ? IntrusivePtr<Node>::adopt(const_cast<Node*>(node)) : nullptr;
}

/// Of the tensors that are listed, at a standstill: while it lives, no other thread makes or ends tensors or nodes.
/// What such a thread changes meanwhile in a tensor or a node may be seen or not. Nodes are not run. Hooks are copied,
/// never called.
class Holders {
 public:
  Holders();

  /// The tensors on the memory at that address.
  std::vector<const HeldTensor*> on(std::uint64_t address) const;
  /// Of a tensor on the list; null for others.
  const HeldTensor* of(const TensorImpl* tensor) const;
  /// The tensor through whose history that node lives: the one with the youngest history of those that the program or a
  /// hook holds. Null where there is none.
  const HeldTensor* root_of(const Node* node) const;
  /// The nodes from that root to the node, both ends included.
  std::vector<const Node*> chain_to(const Node* node) const;
  /// The way from a root to the node that is the most nodes away.
  std::vector<const Node*> longest_chain(const HeldTensor* root) const;
  /// The bytes that the nodes of a root's history keep for backward, each storage once.
  std::size_t saved_bytes(const HeldTensor* root) const;
  /// How many nodes its history has, of those that are not another root's.
  std::size_t node_count(const HeldTensor* root) const;
  /// Tensors whose histories are told apart by root_of().
  const std::vector<const HeldTensor*>& roots() const { return roots_; }
  const std::vector<HeldTensor>& all() const { return tensors_; }

 private:
  struct Reached {
    const HeldTensor* root = nullptr;
    const Node* from = nullptr;  ///< the node before it on the way from the root
    std::size_t distance = 0;
  };
  /// State that hooks captured by shared pointers.
  struct SharedByHooks {
    CapturedState state;
    std::uint32_t hooks = 0;  ///< that own a share
    const Node* node = nullptr;
    const TensorImpl* leaf = nullptr;
  };
  void count_what_autograd_holds();
  void explain_saved(HeldTensor* held, const Node* node);
  void find_packed(const std::any& packed, const Node* node);
  template <class Copyable>
  std::vector<HeldTensor*> tensors_in(const Copyable& original);
  void visit_nodes();
  void find_captures();
  void find_capture(const TensorHook* hook, const Node* node, const TensorImpl* leaf);
  void find_roots();
  HeldTensor* find(const TensorImpl* tensor);
  /// Keeps a node for as long as this lives; false where kept_node() is null.
  bool keep(const Node* node);

  std::vector<IntrusivePtr<Node>> kept_;  ///< ends behind the standstill: so may nodes
  Standstill standstill_;
  std::vector<HeldTensor> tensors_;
  std::unordered_map<const TensorImpl*, std::size_t> places_;
  std::unordered_multimap<std::uint64_t, std::size_t> by_address_;
  std::vector<const Node*> nodes_;
  std::unordered_map<std::uintptr_t, SharedByHooks> shared_;                ///< by control block
  std::unordered_map<const Node*, std::vector<const TensorImpl*>> packed_;  ///< what hooks made of what it saved
  std::unordered_map<const Node*, Reached> reached_;
  std::vector<const HeldTensor*> roots_;
};

}  // namespace tenon::autograd
