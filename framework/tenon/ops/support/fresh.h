// Results that an operator built out of its own temporaries: by in-place writes, or as a view of one of them.
#pragma once

#include <tenon/autograd/variable.h>
#include <tenon/tensor/tensor.h>

namespace tenon::ops {

/// `result`, whose storage this operator made and no user has seen, counts the writes that built it no longer: version
/// 0. Not for what a node has saved meanwhile.
inline Tensor as_fresh(Tensor result) {
  result.impl().storage().version() = 0;
  return result;
}

/// `view`, of a temporary that nobody else holds, is a tensor in its own right: no view of anything, so that it may be
/// written in place whatever mode it was made under. Its history stays.
inline Tensor as_owned(Tensor view) {
  if (autograd::AutogradMeta* meta = autograd::meta_of(view)) meta->view.reset();
  return view;
}

}  // namespace tenon::ops
