// Lines: the one-dimensional pieces of tensors along one dimension, for kernels that work on whole lines.
#pragma once

#include "kernels/pointwise/engine.h"

namespace tenon::cpu::TENON_CPU_LEVEL {

/// Several operands of equal sizes but for `dim`, cut into lines along it.
struct Lines {
  Nest nest;                 ///< of everything but dim
  i64 count = 0;             ///< lines
  i64 length[kMaxOperands];  ///< of each operand's line
  i64 stride[kMaxOperands];  ///< along the line, in bytes

  void pointers(i64 line, char** out) const {
    for (int k = 0; k < nest.operands; ++k) out[k] = nest.data[k];
    for (int d = nest.rank - 1; d >= 0; --d) {
      const i64 coordinate = line % nest.sizes[d];
      line /= nest.sizes[d];
      for (int k = 0; k < nest.operands; ++k) out[k] += coordinate * nest.strides[k][d];
    }
  }
};

inline void make_lines(Lines& lines, const TensorView* const* views, int operands, int dim) {
  TensorView rest[kMaxOperands];
  const TensorView* pointers[kMaxOperands];
  i64 sizes[kMaxOperands][kMaxRank], strides[kMaxOperands][kMaxRank];
  for (int k = 0; k < operands; ++k) {
    const TensorView& view = *views[k];
    const int bytes = static_cast<int>(bytes_of(view.dtype));
    rest[k] = view;
    rest[k].rank = 0;
    rest[k].sizes = sizes[k];
    rest[k].strides = strides[k];
    lines.length[k] = view.rank == 0 ? 1 : view.sizes[dim];
    lines.stride[k] = view.rank == 0 ? bytes : view.strides[dim] * bytes;
    for (int d = 0; d < view.rank; ++d) {
      if (d == dim) continue;
      sizes[k][rest[k].rank] = view.sizes[d];
      strides[k][rest[k].rank++] = view.strides[d];
    }
    pointers[k] = &rest[k];
  }
  make_nest(lines.nest, pointers, operands, false);
  lines.count = lines.nest.total;
}

/// Whether a line can be read in place.
inline bool is_direct(const TensorView& view, i64 stride, Lane lane) {
  return is_native(view.dtype, lane) && stride == bytes_of(view.dtype);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
