// Where the memory of parameters comes from: it is attributed to the purpose "parameter".
#pragma once

#include <tenon/core/export.h>
#include <tenon/tensor/tensor.h>

namespace tenon::nn {

/// An uninitialised tensor of the default dtype for a parameter; requires no gradient yet.
TENON_API Tensor new_parameter(IntArrayRef sizes);
/// A buffer filled with one value.
TENON_API Tensor new_buffer(IntArrayRef sizes, Scalar value, TensorOptions options = {});

}  // namespace tenon::nn
