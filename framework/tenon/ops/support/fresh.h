// Results of out-of-place operators that are built by in-place writes.
#pragma once

#include <tenon/tensor/tensor.h>

namespace tenon::ops {

/// `result`, whose storage this operator made and no user has seen, counts the writes that built it no longer: version
/// 0. Not for what a node has saved meanwhile.
inline Tensor as_fresh(Tensor result) {
  result.impl().storage().version() = 0;
  return result;
}

}  // namespace tenon::ops
