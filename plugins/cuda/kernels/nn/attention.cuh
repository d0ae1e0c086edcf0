// What every kernel of attention is given: heads, mask, and the numbers of the problem.
#pragma once

#include <tenon/kernel/attributes/attention.h>

#include "kernels/dtypes.cuh"
#include "kernels/philox.cuh"

namespace tenon::cuda {

/// (B, H, rows, columns) with dense rows.
template <class T>
struct Heads {
  explicit Heads(const TensorView& v) : data(v.as<T>()), batch(v.strides[0]), head(v.strides[1]), row(v.strides[2]) {}
  __device__ T* at(i64 b, i64 h, i64 i) const { return data + b * batch + h * head + i * row; }
  T* data;
  i64 batch, head, row;
};

struct AttentionMask {
  explicit AttentionMask(const TensorView& v) {
    if (!v.defined()) return;
    data = v.data;
    boolean = v.dtype == Dtype::kBool;
    for (int d = 0; d < 4; ++d) strides[d] = v.strides[d];
  }
  const void* data = nullptr;  // none
  bool boolean = false;
  i64 strides[4] = {};
};

struct AttentionProblem {
  i64 heads, length, keys;
  int width, value_width;
  double scale;
  bool causal;
  bool drops;
  std::uint32_t dropped_below;
  double kept;
  PhiloxStream stream;
};

inline AttentionProblem attention_problem_of(const TensorView& q, const TensorView& k, const TensorView& v,
                                             const void* attributes) {
  const auto& a = *static_cast<const AttentionAttributes*>(attributes);
  return {.heads = q.sizes[1],
          .length = q.sizes[2],
          .keys = k.sizes[2],
          .width = static_cast<int>(q.sizes[3]),
          .value_width = static_cast<int>(v.sizes[3]),
          .scale = a.scale,
          .causal = a.causal,
          .drops = a.dropout > 0,
          .dropped_below = static_cast<std::uint32_t>(a.dropout * 0x1p32),
          .kept = 1 / (1 - a.dropout),
          .stream = PhiloxStream::of(a)};
}

/// From here on what rounds the logarithm of a row's sum shows in its weights: the backward sums the row again.
inline constexpr int kLargeLogSum = 32;

}  // namespace tenon::cuda
