// Which leaves a backward pass comes to: for what waits for the gradients of all parameters.
#pragma once

#include <tenon/tensor/tensor.h>

#include <unordered_set>
#include <vector>

namespace tenon::distributed {

/// Leaves that a backward pass from there comes to.
std::unordered_set<const TensorImpl*> leaves_reached_from(const std::vector<Tensor>& outputs);

}  // namespace tenon::distributed
