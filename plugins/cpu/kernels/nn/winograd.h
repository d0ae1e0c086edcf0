// Convolutions of 3 x 3 by Winograd's method, compiled for each level of vector instructions. Contiguous float32.
#pragma once

#include "kernels/level.h"

namespace tenon::cpu {
struct ConvShape;
}

namespace tenon::cpu::TENON_CPU_LEVEL {

// Each returns false where a result is not finite. An infinity would be not-a-number then, and stand in a whole tile,
// so that the caller has to compute all of it by plain sums.

bool winograd_forward(KernelContext& context, const ConvShape& shape, const float* x, const float* w, const float* bias,
                      float* y);
bool winograd_backward_input(KernelContext& context, const ConvShape& shape, const float* dy, const float* w,
                             float* dx);
bool winograd_backward_weight(KernelContext& context, const ConvShape& shape, const float* dy, const float* x,
                              float* dw);

}  // namespace tenon::cpu::TENON_CPU_LEVEL
