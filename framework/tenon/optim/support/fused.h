// One kernel call that updates a whole list of tensors.
#pragma once

#include <tenon/tensor/tensor.h>

#include <string_view>
#include <vector>

namespace tenon::optim {

/// outputs[k][i] and gradients[i] belong together; a list of undefined tensors stands for "not used". Bumps the version
/// of what is written. Parameters may lie on several devices: each gets a call of its own.
void call_fused(std::string_view kernel, const std::vector<std::vector<Tensor>>& outputs,
                const std::vector<Tensor>& gradients, const void* attributes);

/// The gradient with the parameter's strides: a kernel walks both in one order. Throws Error for a gradient of another
/// dtype.
Tensor matching_gradient(const Tensor& parameter);

}  // namespace tenon::optim
