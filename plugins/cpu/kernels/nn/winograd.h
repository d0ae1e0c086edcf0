// Convolutions of 3 x 3 by Winograd's method, compiled for each level of vector instructions. Contiguous float32.
#pragma once

#include "kernels/level.h"

namespace tenon::cpu {
struct ConvShape;
}

namespace tenon::cpu::TENON_CPU_LEVEL {

void winograd_forward(KernelContext& context, const ConvShape& shape, const float* x, const float* w, const float* bias,
                      float* y);
void winograd_backward_input(KernelContext& context, const ConvShape& shape, const float* dy, const float* w,
                             float* dx);
void winograd_backward_weight(KernelContext& context, const ConvShape& shape, const float* dy, const float* x,
                              float* dw);

}  // namespace tenon::cpu::TENON_CPU_LEVEL
