// What autograd keeps beside a tensor: gradient, history, hooks, and for views the base they look into.
#pragma once

#include <tenon/autograd/node.h>
#include <tenon/core/owned.h>

#include <memory>
#include <mutex>

namespace tenon::autograd {

/// How a view came about, which decides whether it may be modified in place.
enum class CreationMeta : std::uint8_t { DEFAULT, IN_CUSTOM_FUNCTION, MULTI_OUTPUT_NODE, NO_GRAD_MODE, INFERENCE_MODE };

struct ViewInfo : Recycled {
  Tensor base;                     ///< never a view itself
  std::uint32_t attr_version = 0;  ///< the version for which grad_fn is right
  CreationMeta creation = CreationMeta::DEFAULT;
};

struct TENON_EXPORT AutogradMeta final : AutogradMetaBase {
  ~AutogradMeta() override;

  Tensor grad;
  IntrusivePtr<Node> grad_fn;
  Node* accumulator = nullptr;   ///< weak: the node clears it when it goes
  IntrusivePtr<HookList> hooks;  ///< of a leaf; of a result they are in its node
  Owned<ViewInfo> view;
  std::uint32_t output_nr = 0;
  bool requires_grad = false;  ///< of a leaf
  bool retains_grad = false;
};

inline AutogradMeta* meta_of(const Tensor& tensor) { return static_cast<AutogradMeta*>(tensor.impl().autograd_meta()); }
TENON_API AutogradMeta& materialize_meta(const Tensor& tensor);
/// Guards the lazily made parts of a meta; one of a few, by address.
TENON_API std::recursive_mutex& mutex_of(const AutogradMeta* meta);

inline bool requires_grad(const Tensor& tensor) {
  if (!tensor.defined()) return false;
  const AutogradMeta* meta = meta_of(tensor);
  if (!meta) return false;
  if (meta->requires_grad || meta->grad_fn) return true;
  return meta->view && tensor.requires_grad();
}

/// Whether a recording operator must make a node for these inputs.
template <class... Tensors>
bool any_requires_grad(const Tensors&... tensors) {
  return (requires_grad(tensors) || ...) && GradMode::is_enabled();
}

/// Where a gradient of `tensor` flows: its grad_fn, its accumulator, or nowhere.
TENON_API Edge gradient_edge(const Tensor& tensor);
TENON_API void set_gradient_edge(const Tensor& tensor, Edge edge);
/// `tensor` is a fresh result of `node`.
TENON_API void set_history(const Tensor& tensor, const IntrusivePtr<Node>& node);
/// `tensor` was modified in place by `node`; rewrites the base's history if it is a view.
TENON_API void rebase_history(const Tensor& tensor, IntrusivePtr<Node> node);
/// Throws unless `tensor` may be modified in place now, by an operation with operands that may require gradients too.
TENON_API void check_inplace(const Tensor& tensor, bool operands_require_grad = false);
/// Marks `view` as a view of `base` (which may be a view itself).
TENON_API void make_view(const Tensor& base, const Tensor& view, CreationMeta creation);
TENON_API void impl_bump_version(const Tensor& tensor);

/// An alias (or a copy when `copy`) of the data with a requires_grad flag and no history.
TENON_API Variable make_variable(const Tensor& data, bool requires_grad = false,
                                 bool allow_tensor_metadata_change = true);

}  // namespace tenon::autograd
