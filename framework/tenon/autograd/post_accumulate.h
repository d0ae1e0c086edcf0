// Hooks that see a leaf once backward has added up its gradient: torch.Tensor.register_post_accumulate_grad_hook.
#pragma once

#include <tenon/autograd/node.h>

#include <functional>
#include <memory>

namespace tenon::autograd {

/// Called by backward() as soon as grad() of the leaf is what this backward adds up to, in its thread, with gradients
/// off unless the graph of the backward is created. It may change the leaf and take its gradient away: this backward
/// reads neither again. A leaf that a reentrant checkpoint and something outside of it use is added to twice.
using PostAccumulateHook = std::function<void(const Tensor& leaf)>;

/// A registered hook, until it ends. Hooks of one leaf run in the order in which they were registered.
class TENON_EXPORT PostAccumulateHandle {
 public:
  /// Throws Error for a tensor that is no leaf, or does not require a gradient. A leaf that set_data() moves to other
  /// memory afterwards, as Module::to() does, has lost its hooks.
  TENON_API PostAccumulateHandle(const Tensor& leaf, PostAccumulateHook hook);
  TENON_API ~PostAccumulateHandle();
  PostAccumulateHandle(PostAccumulateHandle&&) noexcept = default;
  PostAccumulateHandle& operator=(PostAccumulateHandle&&) = delete;
  PostAccumulateHandle(const PostAccumulateHandle&) = delete;
  PostAccumulateHandle& operator=(const PostAccumulateHandle&) = delete;

 private:
  std::shared_ptr<PostAccumulateHook> hook_;
  IntrusivePtr<Node> accumulator_;  ///< which the leaf does not own
};

}  // namespace tenon::autograd
