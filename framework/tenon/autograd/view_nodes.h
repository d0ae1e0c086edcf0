// Nodes of views that were written to, and of their bases. Private to autograd/.
#pragma once

#include <tenon/autograd/variable.h>

#include <cstdint>

namespace tenon::autograd {

/// The base's history once `function` wrote to it through a view. Takes the place of the base's history so far.
IntrusivePtr<Node> write_through_view(const Tensor& base, const Tensor& view, IntrusivePtr<Node> function);

/// The history of a view whose base was written to: out of the base, whose edge is given.
IntrusivePtr<Node> view_of_base(Edge of_base, const Tensor& base, const Tensor& view);

/// Where a gradient of the `number`-th result of a function flows while that runs backwards: to the function itself,
/// or, where it wrote through a view, to the view, which came out of the written base.
Edge edge_of_result(Node& function, std::uint32_t number);

}  // namespace tenon::autograd
