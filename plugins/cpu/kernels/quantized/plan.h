// oneDNN's side of a convolution of integers of 8 bits: the primitive of one slice, and the layout of the weights that
// it wants.
//
// Scales, biases and zero points are arguments of the primitive and not part of it: a plan serves every layer of its
// sizes, whatever was calibrated there.
#pragma once

#include <dnnl.hpp>

#include "kernels/nn/convolution_plan.h"

namespace tenon::cpu {

/// Everything that plans depend on. All of x and y are channels-last.
struct QuantizedConvKey {
  ConvShape s;         ///< of the whole
  bool rows;           ///< windows of one element: a slice is of rows, the whole has batch 1, and `in` is {1, 1, rows}
  std::int64_t slice;  ///< pictures, or rows, of one plan
  memory::data_type x_type, y_type;
  bool x_zero_point, y_zero_point;  ///< whether there is one besides 0
  bool relu;
  int omp_threads;  ///< that oneDNN may use inside

  auto tie() const {
    auto list = [](const i64* v) { return std::tie(v[0], v[1], v[2]); };
    return std::tuple_cat(std::tie(rows, slice, x_type, y_type, x_zero_point, y_zero_point, relu, omp_threads,
                                   s.spatial, s.batch, s.in_channels, s.out_channels, s.groups),
                          list(s.in), list(s.out), list(s.kernel), list(s.stride), list(s.padding), list(s.dilation));
  }
  bool operator<(const QuantizedConvKey& other) const { return tie() < other.tie(); }
  /// Pictures or rows of the whole.
  i64 units() const { return rows ? s.in[2] : s.batch; }
};

struct QuantizedConvPlan {
  memory::desc x, y, channels;  ///< channels: a float for each output channel
  Side w;                       ///< from (O, C / groups, kernel…) of int8 to oneDNN's, sums for zero points included
  dnnl::primitive convolution;
  memory::desc scratchpad;
  std::size_t scratchpad_bytes = 0;
};

struct QuantizedConvPlans {
  QuantizedConvPlan main;
  std::optional<QuantizedConvPlan> tail;  ///< the last slice where it is smaller; it takes the weights as main does

  const QuantizedConvPlan& of(i64 piece, i64 pieces) const { return tail && piece == pieces - 1 ? *tail : main; }
  std::size_t scratchpad_bytes() const { return std::max(main.scratchpad_bytes, tail ? tail->scratchpad_bytes : 0); }
};

/// y = max?(x * w * multipliers + addends, 0) + zero point, rounded: what one slice reads and writes.
struct QuantizedSlice {
  void *x, *w, *y;
  float *multipliers, *addends;
  std::int32_t x_zero_point, y_zero_point;
  void* scratch;  ///< scratchpad_bytes
};
void run_slice(const QuantizedConvPlan& plan, const QuantizedConvKey& key, QuantizedSlice slice);

/// Whether oneDNN adds products of bytes in 32 bits: with VNNI. Without it pairs of them are added in 16 bits, which
/// cuts large sums, and weights are halved beside signed x. ONEDNN_MAX_CPU_ISA counts.
bool onednn_sums_bytes_exactly();

/// Built once per key and never dropped: a program has few shapes. Null where oneDNN has no implementation.
const QuantizedConvPlans* quantized_plans(const QuantizedConvKey& key);

}  // namespace tenon::cpu
