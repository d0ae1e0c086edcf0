// Sums and maxima over a row, in independent parts that are put together pairwise: enough of them to hide the latency
// of an addition, and always in the same order.
#pragma once

#include "kernels/pointwise/engine.h"

namespace tenon::cpu::TENON_CPU_LEVEL {

constexpr i64 kSumParts = 32;

/// f(0) + … + f(n - 1). f may write what belongs to its own index.
template <class T, class F>
T sum_of(i64 n, const F& f) {
  T part[kSumParts];
  for (i64 j = 0; j < kSumParts; ++j) part[j] = T(0);
  i64 i = 0;
  for (; i + kSumParts <= n; i += kSumParts) {
#pragma GCC ivdep
    for (i64 j = 0; j < kSumParts; ++j) part[j] += f(i + j);
  }
  for (i64 j = 0; i + j < n; ++j) part[j] += f(i + j);
  for (i64 half = kSumParts / 2; half > 0; half /= 2) {
    for (i64 j = 0; j < half; ++j) part[j] += part[j + half];
  }
  return part[0];
}

/// The largest of x[0] … x[n - 1], n >= 1.
template <class T>
T maximum_of(const T* x, i64 n) {
  T part[kSumParts];
  for (i64 j = 0; j < kSumParts; ++j) part[j] = x[0];
  i64 i = 0;
  for (; i + kSumParts <= n; i += kSumParts) {
    for (i64 j = 0; j < kSumParts; ++j) part[j] = x[i + j] > part[j] ? x[i + j] : part[j];
  }
  for (; i < n; ++i) part[0] = x[i] > part[0] ? x[i] : part[0];
  for (i64 half = kSumParts / 2; half > 0; half /= 2) {
    for (i64 j = 0; j < half; ++j) part[j] = part[j + half] > part[j] ? part[j + half] : part[j];
  }
  return part[0];
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
