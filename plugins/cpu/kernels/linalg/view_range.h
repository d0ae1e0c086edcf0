// A part of a view: a range of one dimension.
#pragma once

#include <tenon/kernel/kernel.h>

#include "kernels/level.h"
#include "kernels/pointwise/lanes.h"

namespace tenon::cpu::TENON_CPU_LEVEL {

// `count` of a view's slices along a dimension, from `first` on; an undefined view stays one.
struct ViewRange {
  ViewRange(const TensorView& of, int dim, i64 first, i64 count) : view(of) {
    if (of.rank < 0) return;
    for (int d = 0; d < of.rank; ++d) sizes[d] = d == dim ? count : of.sizes[d];
    view.sizes = sizes;
    view.data = static_cast<char*>(of.data) + first * of.strides[dim] * bytes_of(of.dtype);
  }
  ViewRange(const ViewRange&) = delete;
  i64 sizes[kMaxRank];
  TensorView view;
};

}  // namespace tenon::cpu::TENON_CPU_LEVEL
