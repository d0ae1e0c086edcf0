// Tensors without values: what an operator does that would read them.
#pragma once

#include <tenon/device/no_data.h>
#include <tenon/tensor/tensor.h>

namespace tenon::ops {

/// Whether the tensor's values can be read: not on a device that holds no data (device/no_data.h).
inline bool has_values(const Tensor& tensor) {
  return tensor.is_cpu() || holds_data(tensor.impl().storage().state().driver());
}

/// Throws NotImplementedError, by the operator's name, where the tensor has no values and `what` depends on them.
void check_has_values(const char* op, const Tensor& tensor, const char* what = "the size of its output");

}  // namespace tenon::ops
