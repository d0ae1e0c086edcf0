// Tensors of one number, in double.
#pragma once

#include <tenon/ops/ops.h>

namespace tenon {

inline Tensor constant(IntArrayRef sizes, double value) { return full(sizes, value, TensorOptions(kFloat64)); }
inline Tensor leaf(IntArrayRef sizes, double value = 1) { return constant(sizes, value).set_requires_grad(true); }

}  // namespace tenon
