// Attention of float16 and bfloat16 on tensor cores.
#pragma once

#include "kernels/kernels.h"

namespace tenon::cuda {

/// The kernels "attention" and "attention_backward" where tensor cores can compute them: elements of 16 bits, heads of
/// at most 128 columns, a device and code for it of compute capability 8.0 or newer. False: nothing was done.
bool attention_on_tensor_cores(KernelContext& context, Views outputs, Views inputs, const void* attributes);
bool attention_backward_on_tensor_cores(KernelContext& context, Views outputs, Views inputs, const void* attributes);

}  // namespace tenon::cuda
