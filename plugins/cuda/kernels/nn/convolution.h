// What the two implementations of convolutions share.
#pragma once

#include <tenon/kernel/attributes/linear.h>
#include <tenon/kernel/kernel.h>

namespace tenon::cuda {

enum class ConvKind { kForward, kBackwardInput, kBackwardWeight };

/// y = x * w, or one of the gradients: the operand that `kind` makes is the output. Each is contiguous or
/// channels-last.
struct Convolution {
  ConvKind kind;
  TensorView x, w, y;
  TensorView bias;  ///< of kForward, or undefined
  ConvAttributes attributes;
  bool rehearsed = false;  ///< takes its workspace and computes nothing

  const TensorView& output() const { return kind == ConvKind::kForward ? y : kind == ConvKind::kBackwardInput ? x : w; }
};

/// Any strides, also of no elements at all in the operands that are read.
void direct_convolution(KernelContext& context, const Convolution& convolution);

/// False: there is no cuDNN, or it cannot do this.
bool cudnn_convolution(KernelContext& context, const Convolution& convolution);

}  // namespace tenon::cuda
