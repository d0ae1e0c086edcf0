// with_grad: the last step of every factory.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon::ops {

/// A new tensor, whose gradient is wanted where the options say so.
inline Tensor with_grad(Tensor tensor, const TensorOptions& options) {
  if (options.requires_grad()) tensor.set_requires_grad(true);
  return tensor;
}

}  // namespace tenon::ops
