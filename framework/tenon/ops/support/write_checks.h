// What a result must satisfy to be written into a tensor that is given: its sizes, and a dtype that can be cast.
#pragma once

#include <tenon/ops/support/promotion.h>

#include <string>

namespace tenon::ops {

/// Throws Error where the broadcast sizes are not those of `self`.
inline void check_inplace_sizes(const Tensor& self, const Dims& sizes) {
  if (!(self.impl().sizes() == sizes)) {
    throw Error("output with shape " + to_string(self.impl().sizes()) + " doesn't match the broadcast shape " +
                to_string(sizes));
  }
}

/// Throws Error where an in-place result of dtype `from` cannot be kept in `to`.
inline void check_castable(const char* op, Dtype from, Dtype to) {
  if (!can_cast(from, to)) {
    throw Error(std::string("result type ") + toString(from) + " can't be cast to the desired output type " +
                toString(to) + " (in operator " + op + ")");
  }
}

}  // namespace tenon::ops
