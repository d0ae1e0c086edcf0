// Post-accumulate hooks are post hooks of the node that accumulates, which lives as long as a handle holds it.
#include <tenon/autograd/post_accumulate.h>

#include <tenon/autograd/variable.h>
#include <tenon/core/error.h>

namespace tenon::autograd {

PostAccumulateHandle::PostAccumulateHandle(const Tensor& leaf, PostAccumulateHook hook)
    : hook_(std::make_shared<PostAccumulateHook>(std::move(hook))) {
  if (!leaf.requires_grad()) {
    throw Error("cannot register a post-accumulate hook on a tensor that does not require a gradient");
  }
  if (!leaf.is_leaf()) throw Error("post-accumulate hooks can only be registered on leaves");
  accumulator_ = gradient_edge(leaf).function;
  const Node* const node = accumulator_.get();  // not owned: the hook is the node's
  accumulator_->add_post_hook([known = std::weak_ptr(hook_), node](const variable_list& outputs, const variable_list&) {
    // Held while it runs: it may end its own handle.
    if (const auto hook = known.lock()) (*hook)(static_cast<const AccumulateGrad*>(node)->variable());
    return outputs;
  });
}

PostAccumulateHandle::~PostAccumulateHandle() = default;

}  // namespace tenon::autograd
