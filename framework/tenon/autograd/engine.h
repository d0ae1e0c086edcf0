// Engine: runs nodes backwards from the roots, last recorded first.
#pragma once

#include <tenon/autograd/node.h>

#include <optional>

namespace tenon::autograd {

/// Sums gradients of `tensors` into the leaves (or into `inputs` only). gradient_tensors may be empty for scalars.
TENON_API void backward(const variable_list& tensors, const variable_list& grad_tensors = {},
                        std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
                        const variable_list& inputs = {});

/// Gradients of `outputs` with respect to `inputs`; leaves keep theirs.
TENON_API variable_list grad(const variable_list& outputs, const variable_list& inputs,
                             const variable_list& grad_outputs = {}, std::optional<bool> retain_graph = std::nullopt,
                             bool create_graph = false, bool allow_unused = false);

/// Runs from `roots`. With outputs, returns their gradients instead of accumulating (unless `accumulate`).
TENON_API variable_list run_backward(const edge_list& roots, variable_list gradients, bool keep_graph,
                                     bool create_graph, bool accumulate, const edge_list& outputs);

}  // namespace tenon::autograd
