// Lines: the one-dimensional pieces of tensors along one dimension, for kernels that work on whole lines; and parts of
// views, for kernels that walk some dimensions apart from the others.
#pragma once

#include "kernels/launch.h"
#include "kernels/offsets.cuh"

namespace tenon::cuda {

/// A view without some of its dimensions.
class PartView {
 public:
  /// keeps(d): whether dimension d stays.
  template <class Keeps>
  PartView(const TensorView& whole, const Keeps& keeps) : view_(whole) {
    view_.rank = 0;
    view_.sizes = sizes_;
    view_.strides = strides_;
    for (int d = 0; d < whole.rank; ++d) {
      if (!keeps(d)) continue;
      sizes_[view_.rank] = whole.sizes[d];
      strides_[view_.rank++] = whole.strides[d];
    }
  }
  PartView(const PartView&) = delete;
  PartView& operator=(const PartView&) = delete;
  const TensorView& view() const { return view_; }

 private:
  TensorView view_;
  i64 sizes_[kMaxRank], strides_[kMaxRank];
};

/// Operands of equal sizes but for `dim`, cut into lines along it. `length` is that of the last operand's lines.
template <int kOperands>
struct Lines {
  Nest<kOperands> nest;  ///< of everything but dim: position = line
  i64 length = 1;
  i64 strides[kOperands];  ///< along the line, in bytes

  bool empty() const { return nest.total == 0 || length == 0; }
  /// Neighbouring lines of operand k lie closer together than neighbours on a line.
  bool across(int k) const { return nest.sizes[0].divisor() > 1 && nest.strides[k][0] < strides[k]; }
#if defined(__CUDACC__)
  /// Where line `line` begins in each operand.
  __device__ void locate(i64 line, char* (&begin)[kOperands]) const {
    i64 at[kOperands];
    nest.locate(line, at);
    for (int k = 0; k < kOperands; ++k) begin[k] = nest.data[k] + at[k];
  }
#endif
};

template <int kOperands>
Lines<kOperands> make_lines(const TensorView* const (&views)[kOperands], int dim) {
  Lines<kOperands> lines;
  const auto other = [dim](int d) { return d != dim; };
  const auto nest = [&]<std::size_t... k>(std::index_sequence<k...>) {
    const PartView parts[kOperands] = {PartView(*views[k], other)...};
    const TensorView* const rest[kOperands] = {&parts[k].view()...};
    return make_nest<kOperands>(rest);
  };
  lines.nest = nest(std::make_index_sequence<kOperands>());
  for (int k = 0; k < kOperands; ++k) {
    const TensorView& view = *views[k];
    lines.length = view.rank == 0 ? 1 : view.sizes[dim];
    lines.strides[k] = view.rank == 0 ? 0 : view.strides[dim] * static_cast<i64>(size_of(view.dtype));
  }
  return lines;
}

}  // namespace tenon::cuda
