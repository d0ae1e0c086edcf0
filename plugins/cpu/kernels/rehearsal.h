// Rehearsal: a kernel takes the workspace that it would, and computes nothing. Operands have sizes and no bytes then.
//
// For estimates on addresses alone (dispatch/rehearsal.h): an operator "name" whose kernel can be rehearsed has a
// kernel "name.workspace" too, which is the same function under a flag. It returns where its workspace is there.
#pragma once

#include <tenon/kernel/kernel.h>

#include <span>

namespace tenon::cpu {

/// Whether the kernel that this thread runs is only rehearsed.
inline bool& is_rehearsal() {
  static thread_local bool value = false;
  return value;
}

template <Kernel kernel>
void rehearsed(KernelContext& context, std::span<const TensorView> outputs, std::span<const TensorView> inputs,
               const void* attributes) {
  struct Guard {
    Guard() { is_rehearsal() = true; }
    ~Guard() { is_rehearsal() = false; }
  } guard;
  kernel(context, outputs, inputs, attributes);
}

}  // namespace tenon::cpu
