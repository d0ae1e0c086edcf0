// What attention and paged attention share: rows of scores, and units of work with scratch of their own.
#pragma once

#include "kernels/linalg/gemm.h"
#include "kernels/pointwise/math.h"
#include "kernels/reduce/sums.h"
#include "thread_pool.h"

namespace tenon::cpu::TENON_CPU_LEVEL {

// Exponentials of a row of scores in place, divided by their sum; returns the logarithm of the sum before the maximum
// was taken out. A query that may see nothing has weights of 0 (as in PyTorch since 2.5), also in the backward: hence
// infinity.
template <class T>
T softmax_row(T* x, i64 n) {
  constexpr T infinity = static_cast<T>(__builtin_inff());
  const T most = maximum_of(x, n);
  if (most == -infinity) {
    for (i64 j = 0; j < n; ++j) x[j] = T(0);
    return infinity;
  }
  const T sum = sum_of<T>(n, [&](i64 j) { return x[j] = math::exp(x[j] - most); });
  const T scale = T(1) / sum;
#pragma GCC ivdep
  for (i64 j = 0; j < n; ++j) x[j] *= scale;
  return most + math::log(sum);
}

// Runs body(part's scratch, first unit, end) over the pool; there is scratch for each thread.
template <class F>
void over_units(KernelContext& context, i64 units, i64 scratch_bytes, const F& body) {
  struct State {
    const F& body;
    char* scratch;
    i64 units, bytes, parts;
  };
  const i64 parts = smaller(static_cast<i64>(thread_count()), units);
  State state{body, static_cast<char*>(context.scratch(static_cast<std::size_t>(parts * scratch_bytes))), units,
              scratch_bytes, parts};
  run_parts(
      static_cast<int>(parts),
      [](void* raw, int part) {
        const State& s = *static_cast<const State*>(raw);
        s.body(s.scratch + part * s.bytes, s.units * part / s.parts, s.units * (part + 1) / s.parts);
      },
      &state);
}

inline Matrix transposed(const Matrix& m) { return {m.data, m.columns, m.rows, m.column_stride, m.row_stride}; }
inline Matrix dense_rows(void* data, i64 rows, i64 columns) {
  return {static_cast<char*>(data), rows, columns, columns, 1};
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
