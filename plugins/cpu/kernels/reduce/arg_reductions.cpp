// argmax, argmin, max_dim, min_dim: the first of equals, nan above all.
#include <tenon/kernel/attributes/reduction.h>

#include "kernels/reduce/lines.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kGrain = 8192;

template <class T>
bool is_nan(T x) {
  return x != x;
}

// Scans a block after `best`, found at `index`.
template <class T, bool max>
void scan(const T* x, i64 n, i64 offset, T& best, i64& index) {
  for (i64 i = 0; i < n; ++i) {
    if (is_nan(best)) return;
    if (is_nan(x[i]) || (max ? x[i] > best : x[i] < best)) {
      best = x[i];
      index = offset + i;
    }
  }
}

template <class T, bool max>
void run(const TensorView* values, const TensorView& indices, const TensorView& x, int dim, Lane lane) {
  const TensorView* views[] = {&indices, &x, values};
  Lines lines;
  make_lines(lines, views, values ? 3 : 2, dim);
  const i64 n = lines.length[1];
  if (lines.count <= 0) return;
  if (n == 0) fail("cpu: the index of an extreme along dimension %d, which is empty", dim);
  const Load load = load_function(x.dtype, lane);
  const bool direct = is_direct(x, lines.stride[1], lane);
  parallel(lines.count, kGrain / n + 1, 1, [&](i64 begin, i64 end) {
    alignas(64) T stage[kBlock];
    for (i64 line = begin; line < end; ++line) {
      char* p[kMaxOperands];
      lines.pointers(line, p);
      T best;
      load(&best, p[1], 0, 1);
      i64 index = 0;
      if (direct) {
        scan<T, max>(reinterpret_cast<const T*>(p[1]), n, 0, best, index);
      } else {
        for (i64 i = 0; i < n; i += kBlock) {
          const i64 count = smaller(kBlock, n - i);
          load(stage, p[1] + i * lines.stride[1], lines.stride[1], count);
          scan<T, max>(stage, count, i, best, index);
        }
      }
      *reinterpret_cast<i64*>(p[0]) = index;
      if (values) __builtin_memcpy(p[2], p[1] + index * lines.stride[1], static_cast<std::size_t>(bytes_of(x.dtype)));
    }
  });
}

template <bool max, bool with_values>
void kernel(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const TensorView& x = at(inputs, 0);
  const int dim = static_cast<const DimAttributes*>(attributes)->dim;
  const TensorView* values = with_values ? &at(outputs, 0) : nullptr;
  const TensorView& indices = at(outputs, with_values ? 1 : 0);
  const Lane lane = lane_of(x.dtype);
  if (lane == Lane::kF32) run<float, max>(values, indices, x, dim, lane);
  if (lane == Lane::kF64) run<double, max>(values, indices, x, dim, lane);
  if (lane == Lane::kI64) run<i64, max>(values, indices, x, dim, lane);
}

}  // namespace

void add_arg_reductions(const KernelSink& sink) {
  sink.add(sink.host, "argmax", &kernel<true, false>);
  sink.add(sink.host, "argmin", &kernel<false, false>);
  sink.add(sink.host, "max_dim", &kernel<true, true>);
  sink.add(sink.host, "min_dim", &kernel<false, true>);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
