// Mean and squared deviations, one element after another (Welford 1962) and put together (Chan, Golub, LeVeque 1979).
#pragma once

#include "kernels/dtypes.cuh"

namespace tenon::cuda {

#if defined(__CUDACC__)

template <class A>
struct Moments {
  A mean = 0, squares = 0, count = 0;

  __device__ void add(A value) {
    count += 1;
    const A gap = value - mean;
    mean += divided(gap, count);
    squares += gap * (value - mean);
  }
  __device__ static Moments merged(const Moments& a, const Moments& b) {
    const A count = a.count + b.count;
    if (count == 0) return a;
    const A gap = b.mean - a.mean, share = divided(b.count, count);
    return {a.mean + gap * share, a.squares + b.squares + gap * gap * a.count * share, count};
  }

 private:
  /// An error of two units in the last place is small beside those of the sums, and the exact quotient takes a call.
  __device__ static A divided(A a, A b) {
    if constexpr (std::is_same_v<A, float>) {
      return __fdividef(a, b);
    } else {
      return a / b;
    }
  }
};

#endif

}  // namespace tenon::cuda
