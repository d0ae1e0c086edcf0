// cumsum, cumprod, cummax, cummin, logcumsumexp: running results along a dimension.
#include <tenon/kernel/attributes/reduction.h>

#include <cmath>

#include "kernels/reduce/lines.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kGrain = 8192;

// body(acc, value) for each element of each line; acc starts afresh per line. A is what is carried, T the lane.
template <class A, class T, class F>
void scan_lines(const TensorView& y, const TensorView& x, int dim, Lane lane, A start, const F& step) {
  const TensorView* views[] = {&y, &x};
  Lines lines;
  make_lines(lines, views, 2, dim);
  const i64 n = lines.length[1];
  if (lines.count <= 0 || n <= 0) return;
  const Load load = load_function(x.dtype, lane);
  const Store store = store_function(y.dtype, lane);
  parallel(lines.count, kGrain / n + 1, 1, [&](i64 begin, i64 end) {
    alignas(64) T stage[kBlock];
    for (i64 line = begin; line < end; ++line) {
      char* p[kMaxOperands];
      lines.pointers(line, p);
      A acc = start;
      for (i64 i = 0; i < n; i += kBlock) {
        const i64 count = smaller(kBlock, n - i);
        load(stage, p[1] + i * lines.stride[1], lines.stride[1], count);
        for (i64 k = 0; k < count; ++k) stage[k] = static_cast<T>(step(acc, stage[k]));
        store(p[0] + i * lines.stride[0], lines.stride[0], stage, count);
      }
    }
  });
}

template <class Step>
void running(Views outputs, Views inputs, const void* attributes, double start, const Step& step) {
  const TensorView &y = at(outputs, 0), &x = at(inputs, 0);
  const int dim = static_cast<const DimAttributes*>(attributes)->dim;
  // Integers carried as unsigned: they wrap.
  const Lane lane = lane_of(y.dtype);
  if (lane == Lane::kI64) return scan_lines<u64, i64>(y, x, dim, lane, static_cast<u64>(start), step);
  if (lane == Lane::kF64) return scan_lines<double, double>(y, x, dim, lane, start, step);
  scan_lines<double, float>(y, x, dim, lane, start, step);
}

void cumsum(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  running(outputs, inputs, attributes, 0,
          [](auto& acc, auto v) { return acc += static_cast<std::decay_t<decltype(acc)>>(v); });
}
void cumprod(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  running(outputs, inputs, attributes, 1,
          [](auto& acc, auto v) { return acc *= static_cast<std::decay_t<decltype(acc)>>(v); });
}

void logcumsumexp(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  if (lane_of(at(outputs, 0).dtype) == Lane::kI64) refuse_dtype("logcumsumexp", at(outputs, 0).dtype);
  running(outputs, inputs, attributes, -INFINITY, [](auto& acc, auto value) {
    const double carried = static_cast<double>(acc), v = static_cast<double>(value);
    const double high = v > carried ? v : carried, low = v > carried ? carried : v;
    const double sum = std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
    return acc = v != v || carried != carried ? v + carried : sum;
  });
}

template <class T, bool max>
void run_extreme(Views outputs, const TensorView& x, int dim, Lane lane) {
  const TensorView &values = at(outputs, 0), &indices = at(outputs, 1);
  const TensorView* views[] = {&values, &indices, &x};
  Lines lines;
  make_lines(lines, views, 3, dim);
  const i64 n = lines.length[2];
  if (lines.count <= 0 || n <= 0) return;
  const Load load = load_function(x.dtype, lane);
  const Store store = store_function(values.dtype, lane);
  parallel(lines.count, kGrain / n + 1, 1, [&](i64 begin, i64 end) {
    for (i64 line = begin; line < end; ++line) {
      char* p[kMaxOperands];
      lines.pointers(line, p);
      T best{};
      i64 where = 0;
      for (i64 i = 0; i < n; ++i) {
        T value;
        load(&value, p[2] + i * lines.stride[2], 0, 1);
        // The last of equals; nan stays, and a later nan takes over.
        if (i == 0 || value != value || (best == best && (max ? value >= best : value <= best))) {
          best = value;
          where = i;
        }
        store(p[0] + i * lines.stride[0], 0, &best, 1);
        *reinterpret_cast<i64*>(p[1] + i * lines.stride[1]) = where;
      }
    }
  });
}

template <bool max>
void running_extreme(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const TensorView& x = at(inputs, 0);
  const int dim = static_cast<const DimAttributes*>(attributes)->dim;
  const Lane lane = lane_of(x.dtype);
  if (lane == Lane::kF32) run_extreme<float, max>(outputs, x, dim, lane);
  if (lane == Lane::kF64) run_extreme<double, max>(outputs, x, dim, lane);
  if (lane == Lane::kI64) run_extreme<i64, max>(outputs, x, dim, lane);
}

}  // namespace

void add_scans(const KernelSink& sink) {
  sink.add(sink.host, "cumsum", &cumsum);
  sink.add(sink.host, "cumprod", &cumprod);
  sink.add(sink.host, "logcumsumexp", &logcumsumexp);
  sink.add(sink.host, "cummax", &running_extreme<true>);
  sink.add(sink.host, "cummin", &running_extreme<false>);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
