// softmax, log_softmax and their backwards, line by line.
#include <tenon/kernel/attributes/reduction.h>

#include "kernels/pointwise/math.h"
#include "kernels/reduce/lines.h"
#include "kernels/reduce/sums.h"
#include "kernels/register.h"
#include "thread_pool.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kGrain = 8192;

template <class T>
void softmax_line(char* const* p, i64 n) {
  T* y = reinterpret_cast<T*>(p[0]);
  const T* x = reinterpret_cast<const T*>(p[1]);
  const T most = maximum_of(x, n);
  const T sum = sum_of<T>(n, [&](i64 i) { return y[i] = math::exp(x[i] - most); });
  const T scale = T(1) / sum;
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) y[i] *= scale;
}

template <class T>
void log_softmax_line(char* const* p, i64 n) {
  T* y = reinterpret_cast<T*>(p[0]);
  const T* x = reinterpret_cast<const T*>(p[1]);
  const T most = maximum_of(x, n);
  const T log_sum = math::log(sum_of<T>(n, [&](i64 i) { return math::exp(x[i] - most); }));
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) y[i] = (x[i] - most) - log_sum;
}

// dx, dy, y
template <class T>
void softmax_backward_line(char* const* p, i64 n) {
  T* dx = reinterpret_cast<T*>(p[0]);
  const T* dy = reinterpret_cast<const T*>(p[1]);
  const T* y = reinterpret_cast<const T*>(p[2]);
  const T dot = sum_of<T>(n, [&](i64 i) { return dy[i] * y[i]; });
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) dx[i] = y[i] * (dy[i] - dot);
}

template <class T>
void log_softmax_backward_line(char* const* p, i64 n) {
  T* dx = reinterpret_cast<T*>(p[0]);
  const T* dy = reinterpret_cast<const T*>(p[1]);
  const T* y = reinterpret_cast<const T*>(p[2]);
  const T sum = sum_of<T>(n, [&](i64 i) { return dy[i]; });
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) dx[i] = dy[i] - math::exp(y[i]) * sum;
}

using LineBody = void (*)(char* const* pointers, i64 n);

// Lines that are not contiguous lanes go through a staging area of their thread.
void run_lines(KernelContext& context, const TensorView* const* views, int operands, int dim, Lane lane,
               LineBody body) {
  Lines lines;
  make_lines(lines, views, operands, dim);
  const i64 n = lines.length[0];
  if (lines.count <= 0 || n <= 0) return;
  bool direct[kMaxOperands];
  bool all = true;
  for (int k = 0; k < operands; ++k) all &= direct[k] = is_direct(*views[k], lines.stride[k], lane) || n == 1;
  for (int k = 0; k < operands; ++k) {
    if (!is_native(views[k]->dtype, lane)) all = direct[k] = false;
  }
  const i64 line_bytes = (n * kLaneBytes[static_cast<int>(lane)] + 63) / 64 * 64;
  char* stage = nullptr;
  const i64 threads = thread_count();
  if (!all) stage = static_cast<char*>(context.scratch(static_cast<std::size_t>(threads * operands * line_bytes)));
  const i64 grain = kGrain / n + 1;
  const i64 most = lines.count / grain;
  const i64 parts = larger<i64>(1, smaller(most, threads));
  const i64 chunk = (lines.count + parts - 1) / parts;
  parallel(parts, parts > 1 ? 1 : 2, 1, [&](i64 first, i64 last) {
    for (i64 part = first; part < last; ++part) {
      char* mine = stage + part * operands * line_bytes;
      for (i64 line = part * chunk; line < smaller((part + 1) * chunk, lines.count); ++line) {
        char* pointers[kMaxOperands];
        char* used[kMaxOperands];
        lines.pointers(line, pointers);
        for (int k = 0; k < operands; ++k) {
          used[k] = direct[k] ? pointers[k] : mine + k * line_bytes;
          if (!direct[k] && k > 0) load_function(views[k]->dtype, lane)(used[k], pointers[k], lines.stride[k], n);
        }
        body(used, n);
        if (!direct[0]) store_function(views[0]->dtype, lane)(pointers[0], lines.stride[0], used[0], n);
      }
    }
  });
}

template <LineBody f32, LineBody f64, int operands>
void kernel(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const TensorView& y = at(outputs, 0);
  const Lane lane = lane_of(y.dtype);
  if (lane == Lane::kI64) refuse_dtype("softmax", y.dtype);
  const TensorView* views[] = {&y, &at(inputs, 0), operands > 2 ? &at(inputs, 1) : nullptr};
  run_lines(context, views, operands, static_cast<const DimAttributes*>(attributes)->dim, lane,
            lane == Lane::kF32 ? f32 : f64);
}

}  // namespace

void add_softmax(const KernelSink& sink) {
  sink.add(sink.host, "softmax", &kernel<&softmax_line<float>, &softmax_line<double>, 2>);
  sink.add(sink.host, "log_softmax", &kernel<&log_softmax_line<float>, &log_softmax_line<double>, 2>);
  sink.add(sink.host, "softmax_backward", &kernel<&softmax_backward_line<float>, &softmax_backward_line<double>, 3>);
  sink.add(sink.host, "log_softmax_backward",
           &kernel<&log_softmax_backward_line<float>, &log_softmax_backward_line<double>, 3>);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
