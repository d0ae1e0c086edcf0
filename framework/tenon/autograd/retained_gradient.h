// Retained gradients: results that keep their gradient beside passing it on (Tensor::retain_grad).
//
// Note [Retained gradients]
// A node lists the metas of the tensors that keep their gradient, and owns none of them. A meta is on the list of its
// present grad_fn, takes itself off under the list's mutex before it goes, and gets its gradient under that mutex only.
#pragma once

#include <tenon/autograd/node.h>

namespace tenon::autograd {

/// For a tensor that keeps its gradient: puts its meta on the list of its grad_fn, and takes it off. Nothing else.
void list_retained(AutogradMeta& meta);
void forget_retained(AutogradMeta& meta);
/// The node is about to run with these gradients: the tensors on its list keep theirs.
void keep_retained(const Node& node, const GradList& gradients);

}  // namespace tenon::autograd
