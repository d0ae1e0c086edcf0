// The hooks of a node and of its tensors: apart from node.h, since few nodes have any.
#pragma once

#include <tenon/autograd/node.h>
#include <tenon/tensor/intrusive_ptr.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace tenon::autograd {

// Hooks are shared with whoever runs them: while one runs it may be removed, and others may be registered.
struct HookList final : RefCounted {
  std::vector<std::shared_ptr<const TensorHook>> hooks;  ///< removed ones are null, so that positions stay
};

struct NodeHooks {
  std::vector<std::pair<std::uint32_t, IntrusivePtr<HookList>>> tensor_hooks;  ///< by input_nr
  std::vector<std::pair<std::uint32_t, AutogradMeta*>> retain_grad;            ///< tensors that keep their gradient
  std::vector<std::shared_ptr<const NodePreHook>> pre;
  std::vector<std::shared_ptr<const NodePostHook>> post;
};

}  // namespace tenon::autograd
