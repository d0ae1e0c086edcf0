// The norm of rows that distances are made of.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon::ops {

/// The p-norm along the last dim, as norm(). Where elements or a norm are 0 the gradient's own gradient is 0 too, not
/// NaN.
Tensor row_norm(const Tensor& self, double p);

}  // namespace tenon::ops
