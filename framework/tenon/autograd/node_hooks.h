// The hooks of a node and of its tensors: apart from node.h, since few nodes have any.
#pragma once

#include <tenon/autograd/node.h>
#include <tenon/tensor/intrusive_ptr.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace tenon::autograd {

struct HookList final : RefCounted {
  std::vector<TensorHook> hooks;  ///< removed ones are empty, so that positions stay
};

struct NodeHooks {
  std::vector<std::pair<std::uint32_t, IntrusivePtr<HookList>>> tensor_hooks;  ///< by input_nr
  std::vector<std::pair<std::uint32_t, AutogradMeta*>> retain_grad;            ///< tensors that keep their gradient
  std::vector<NodePreHook> pre;
  std::vector<NodePostHook> post;
};

}  // namespace tenon::autograd
