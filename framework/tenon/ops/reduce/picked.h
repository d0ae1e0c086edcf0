// Values picked along a dimension (max, sort, topk), of which backward needs to know where they were.
#pragma once

#include <tenon/ops/support/support.h>

namespace tenon::ops {

/// The node of such an operator: the gradient goes back to where the values were. Slot 0 takes the indices.
inline Recording record_picked(const char* name, const Tensor& self, int at, bool keepdim) {
  const Dims sizes = self.impl().sizes();
  return record<1>(name, {&self}, [sizes, at, keepdim](Backward& b) {
    Tensor index = b.saved(0);
    Tensor gradient = b.grad();
    if (sizes.rank() == 0) {
      b.set(0, gradient);
      return;
    }
    if (!keepdim) {
      index = index.unsqueeze(at);
      gradient = gradient.unsqueeze(at);
    }
    b.set(0, gradient.new_zeros(sizes).scatter_add(at, index, gradient));
  });
}

}  // namespace tenon::ops
