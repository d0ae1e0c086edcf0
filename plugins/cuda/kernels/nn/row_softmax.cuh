// The softmax that attention carries along from tile to tile of a row's scores.
#pragma once

#include "kernels/linalg/tiles.cuh"

namespace tenon::cuda::tiles {

template <class T>
inline constexpr int kParts = kThreads / kTile<T>;  ///< threads that share a row of weights

/// Not fused with what is added to it: a score is the same number wherever it is computed.
__device__ inline float rounded_product(float a, float b) { return __fmul_rn(a, b); }
__device__ inline double rounded_product(double a, double b) { return __dmul_rn(a, b); }

/// The softmax of a row of which some scores have been seen. The threads that share the row have the same.
template <class T>
struct RowSoftmax {
  static constexpr T kNever = -static_cast<T>(INFINITY);
  static constexpr int kOwn = kTile<T> / kParts<T>;  ///< scores of this thread in a tile
  T most = kNever, total = 0;

  /// `own`, this thread's scores of one more tile, become weights. Returns what those before are to be multiplied by.
  __device__ T add(T* own) {
    T highest = most;
    for (int j = 0; j < kOwn; ++j) highest = own[j] > highest || own[j] != own[j] ? own[j] : highest;
    for (int lane = kParts<T> / 2; lane > 0; lane /= 2) {
      const T other = __shfl_xor_sync(0xffffffffu, highest, lane);
      highest = other > highest || other != other ? other : highest;
    }
    T sum = 0;
    for (int j = 0; j < kOwn; ++j) {
      const T weight = highest == kNever ? T(0) : exp(own[j] - highest);
      sum += weight;
      own[j] = weight;
    }
    for (int lane = kParts<T> / 2; lane > 0; lane /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    const T factor = most == kNever ? T(0) : exp(most - highest);
    most = highest;
    total = total * factor + sum;
    return factor;
  }
};

}  // namespace tenon::cuda::tiles
