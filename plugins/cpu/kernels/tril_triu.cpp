// tril, triu: one triangle of each matrix, zeros in the other.
#include <tenon/kernel/attributes/indexing.h>

#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kGrain = 8192;

template <bool lower>
void triangle(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const i64 diagonal = static_cast<const TriangleAttributes*>(attributes)->diagonal;
  const TensorView &y = at(outputs, 0), &x = at(inputs, 0);
  if (numel(y) == 0) return;
  const i64 bytes = bytes_of(y.dtype);
  const int r = y.rank;
  const i64 rows = y.sizes[r - 2], columns = y.sizes[r - 1];
  const i64 matrices = numel(y) / (rows * columns);
  parallel(matrices * rows, kGrain / columns + 1, 1, [&](i64 begin, i64 end) {
    for (i64 line = begin; line < end; ++line) {
      const i64 row = line % rows;
      i64 rest = line / rows, from = row * x.strides[r - 2], to = row * y.strides[r - 2];
      for (int d = r - 3; d >= 0; --d) {
        from += rest % y.sizes[d] * x.strides[d];
        to += rest % y.sizes[d] * y.strides[d];
        rest /= y.sizes[d];
      }
      for (i64 c = 0; c < columns; ++c) {
        char* into = static_cast<char*>(y.data) + (to + c * y.strides[r - 1]) * bytes;
        const bool keep = lower ? c - row <= diagonal : c - row >= diagonal;
        if (keep) {
          __builtin_memcpy(into, static_cast<char*>(x.data) + (from + c * x.strides[r - 1]) * bytes,
                           static_cast<std::size_t>(bytes));
        } else {
          __builtin_memset(into, 0, static_cast<std::size_t>(bytes));
        }
      }
    }
  });
}

}  // namespace

void add_triangles(const KernelSink& sink) {
  sink.add(sink.host, "tril", &triangle<true>);
  sink.add(sink.host, "triu", &triangle<false>);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
