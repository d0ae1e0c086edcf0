// Node: one step of the recorded computation, run backwards. Edges point towards the leaves.
#pragma once

#include <tenon/autograd/grad_mode.h>
#include <tenon/core/export.h>
#include <tenon/core/owned.h>
#include <tenon/core/recycled.h>
#include <tenon/core/scope/context.h>
#include <tenon/tensor/shape/small_vector.h>
#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tenon::autograd {

class Node;
class SavedTensor;
struct AutogradMeta;

using Variable = Tensor;
using variable_list = std::vector<Tensor>;
using tensor_list = std::vector<Tensor>;
/// Gradients that travel between nodes: short, so held inline.
using GradList = SmallVector<Tensor, 3>;

/// The `input_nr`-th gradient that `function` receives.
struct Edge {
  IntrusivePtr<Node> function;
  std::uint32_t input_nr = 0;
  bool is_valid() const { return static_cast<bool>(function); }
};
using edge_list = std::vector<Edge>;

/// What a gradient that arrives must look like: the tensor it is the gradient of.
struct InputMetadata {
  Dims sizes;
  Dtype dtype = Dtype::kFloat32;
  DeviceState* state = nullptr;
};

/// Where a node was made, kept in anomaly mode.
struct TENON_API ForwardTrace {
  std::string text;
  IntrusivePtr<Node> parent;  ///< the node whose backward made this one
  ForwardTrace();
  ~ForwardTrace();
};

/// A gradient hook of a tensor: replaces the gradient where it returns one.
using TensorHook = std::function<Tensor(const Tensor&)>;
struct HookList;
/// Hooks of a node itself: see the gradients before or after it runs, and may replace them.
using NodePreHook = std::function<variable_list(const variable_list& gradients)>;
using NodePostHook = std::function<variable_list(const variable_list& outputs, const variable_list& inputs)>;

struct NodeHooks;

/// Destroyed without recursion, however long the chain: see destroy_counted below. Leaves know their accumulators
/// without owning them.
class TENON_EXPORT Node : public WeaklyKnown, public Recycled {
 public:
  TENON_API Node();
  TENON_API virtual ~Node();

  virtual std::string name() const = 0;
  /// Gradients in, one per output of the forward function; gradients out, one per edge. Undefined stands for zero.
  virtual GradList apply(GradList&& gradients) = 0;
  /// Gives up what was saved for backward. Called right after the node ran unless the graph is kept.
  virtual void release_variables() {}
  /// Shows what is saved for backward and not given up yet.
  virtual void each_saved(const std::function<void(const SavedTensor&)>& show) const { (void)show; }

  std::uint64_t sequence_nr() const { return sequence_; }
  /// Where it was made; 0 where nobody listened to scopes.
  scopes::ContextId made_in() const { return made_in_; }
  std::size_t num_inputs() const { return metadata_.size(); }
  std::size_t num_outputs() const { return edges_.size(); }
  const Edge& next_edge(std::size_t i) const { return edges_[i]; }
  SmallVector<Edge, 2>& edges() { return edges_; }
  TENON_API edge_list next_edges() const;
  void add_next_edge(Edge edge) { edges_.push_back(std::move(edge)); }
  bool should_compute_output(std::size_t i) const { return edges_[i].is_valid(); }
  /// Also asks the running graph task whether it is wanted.
  TENON_API bool task_should_compute_output(std::size_t i) const;
  /// Returns the input_nr of the tensor just described.
  std::uint32_t add_input_metadata(const Tensor& tensor) {
    const TensorImpl& impl = tensor.impl();
    metadata_.emplace_back();
    InputMetadata& entry = metadata_.back();
    entry.sizes = impl.sizes();
    entry.dtype = impl.dtype();
    entry.state = &impl.storage().state();
    return static_cast<std::uint32_t>(metadata_.size() - 1);
  }
  std::uint32_t add_undefined_input() {
    metadata_.emplace_back();
    return static_cast<std::uint32_t>(metadata_.size() - 1);
  }
  const InputMetadata& input_metadata(std::size_t i) const { return metadata_[i]; }

  NodeHooks* hooks() const { return hooks_.get(); }
  TENON_API NodeHooks& mutable_hooks();
  /// The hook's number.
  TENON_API std::uintptr_t add_pre_hook(NodePreHook hook);
  TENON_API std::uintptr_t add_post_hook(NodePostHook hook);
  const ForwardTrace* trace() const { return trace_.get(); }

 protected:
  TENON_API explicit Node(std::uint64_t sequence);

 private:
  scopes::ContextId made_in_ = 0;  // beside the counter of references, where it takes no room
  std::uint64_t sequence_;
  SmallVector<Edge, 2> edges_;
  SmallVector<InputMetadata, 1> metadata_;
  Owned<NodeHooks> hooks_;
  Owned<ForwardTrace> trace_;
};

/// Note [Deep graphs]: destroying a node releases its edges and saved tensors, which may hold the last reference to
/// further nodes. Those are put on a list of the thread and destroyed by the outermost call, so the stack stays flat.
TENON_API void destroy_counted(Node* node) noexcept;

/// Nodes that leaves accumulate into: a weak entry in the leaf's meta, hence a type of its own.
class TENON_EXPORT AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(Tensor variable);
  ~AccumulateGrad() override;
  std::string name() const override { return "torch::autograd::AccumulateGrad"; }
  GradList apply(GradList&& gradients) override;
  const Tensor& variable() const { return variable_; }

 private:
  Tensor variable_;
};

}  // namespace tenon::autograd
