// softmax, log_softmax and their backwards. A team goes along its line twice: once for what the line has in common,
// once to write; the second time finds in cache what the first one read.
#include <tenon/kernel/attributes/reduction.h>

#include "kernels/reduce/lines.cuh"
#include "kernels/reduce/packed_lines.cuh"
#include "kernels/reduce/team.cuh"

namespace tenon::cuda {
namespace {

/// The largest of some numbers, and the sum of exp(x - most) over them: in one pass (Milakov, Gimelshein 2018).
template <class A>
struct Exponentials {
  A most = -INFINITY, sum = 0;

  /// x counts as `weight` numbers; -inf adds nothing, also while nothing larger has come.
  __device__ void add(A x, A weight) {
    if (x == -INFINITY) return;
    const bool larger = x > most;
    const A factor = x == most ? A(1) : exp(larger ? most - x : x - most);
    sum = larger ? sum * factor + weight : sum + weight * factor;
    if (larger) most = x;
  }
  __device__ static Exponentials merged(Exponentials a, const Exponentials& b) {
    a.add(b.most, b.sum);
    // Only nan has come so far to b.
    if (b.most == -INFINITY) a.sum += b.sum;
    return a;
  }
  /// nan for a line with inf, or of -inf alone.
  __device__ A total() const { return sum + (most - most); }
};

template <class T, int kOperands>
__device__ bool are_dense(const Lines<kOperands>& lines) {
  bool dense = true;
  for (int k = 0; k < kOperands; ++k) dense = dense && lines.strides[k] == static_cast<i64>(sizeof(T));
  return dense;
}

/// y, x.
template <class T, bool logarithm>
__global__ void __launch_bounds__(kThreads) softmax_kernel(Lines<2> lines, int lanes) {
  using A = Compute<T>;
  __shared__ Exponentials<A> shared[kWarps];
  const Team team(lanes);
  const bool active = team.line < lines.nest.total;
  char* line[2];
  if (active) lines.locate(team.line, line);
  const i64 length = active ? lines.length : 0;
  const bool packed = active && are_dense<T>(lines) && lie_alike(line[0], line[1]);
  const auto read_x = [&](i64 i, auto& x) { read<T>(element<const T>(line[1], i * lines.strides[1]), x); };
  Exponentials<A> all;
  along<T>(team, reinterpret_cast<const T*>(line[1]), length, packed, [&](i64 i, auto count) {
    A x[count];
    read_x(i, x);
#pragma unroll
    for (int n = 0; n < count; ++n) all.add(x[n], 1);
  });
  all = team_reduce(team, all, shared, [](const auto& a, const auto& b) { return Exponentials<A>::merged(a, b); });
  const A total = logarithm ? log(all.total()) : 1 / all.total();
  along<T>(team, reinterpret_cast<const T*>(line[1]), length, packed, [&](i64 i, auto count) {
    A x[count];
    read_x(i, x);
#pragma unroll
    for (int n = 0; n < count; ++n) {
      const A gap = x[n] - all.most;
      x[n] = logarithm ? gap - total : exp(gap) * total;
    }
    write<T>(element<T>(line[0], i * lines.strides[0]), x);
  });
}

/// dx, dy, y.   softmax: dx = y (dy - sum dy y)   log_softmax: dx = dy - exp(y) sum dy
template <class T, bool logarithm>
__global__ void __launch_bounds__(kThreads) softmax_backward_kernel(Lines<3> lines, int lanes) {
  using A = Compute<T>;
  __shared__ A shared[kWarps];
  const Team team(lanes);
  const bool active = team.line < lines.nest.total;
  char* line[3];
  if (active) lines.locate(team.line, line);
  const i64 length = active ? lines.length : 0;
  const bool packed = active && are_dense<T>(lines) && lie_alike(line[0], line[1]) && lie_alike(line[0], line[2]);
  const auto read_of = [&](int k, i64 i, auto& numbers) {
    read<T>(element<const T>(line[k], i * lines.strides[k]), numbers);
  };
  A sum = 0;
  along<T>(team, reinterpret_cast<const T*>(line[0]), length, packed, [&](i64 i, auto count) {
    A dy[count], y[count];
    read_of(1, i, dy);
    if (!logarithm) read_of(2, i, y);
#pragma unroll
    for (int n = 0; n < count; ++n) sum += logarithm ? dy[n] : dy[n] * y[n];
  });
  sum = team_reduce(team, sum, shared, [](A a, A b) { return a + b; });
  along<T>(team, reinterpret_cast<const T*>(line[0]), length, packed, [&](i64 i, auto count) {
    A dy[count], y[count];
    read_of(1, i, dy);
    read_of(2, i, y);
#pragma unroll
    for (int n = 0; n < count; ++n) dy[n] = logarithm ? dy[n] - exp(y[n]) * sum : y[n] * (dy[n] - sum);
    write<T>(element<T>(line[0], i * lines.strides[0]), dy);
  });
}

template <int kOperands, class Kernels>
void run(KernelContext& context, const TensorView* const (&views)[kOperands], const void* attributes,
         const Kernels& kernel_of) {
  const Lines<kOperands> lines = make_lines(views, static_cast<const DimAttributes*>(attributes)->dim);
  if (lines.empty()) return;
  const int lanes = lanes_for(lines.length, lines.nest.total, lines.across(0));
  floats_only("softmax", views[0]->dtype,
              [&](auto type) { launch(context, team_shape(lines.nest.total, lanes), kernel_of(type), lines, lanes); });
}

template <bool logarithm>
void softmax(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  run<2>(context, {&outputs[0], &inputs[0]}, attributes,
         []<class T>(Type<T>) { return &softmax_kernel<T, logarithm>; });
}
template <bool logarithm>
void softmax_backward(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  run<3>(context, {&outputs[0], &inputs[0], &inputs[1]}, attributes,
         []<class T>(Type<T>) { return &softmax_backward_kernel<T, logarithm>; });
}

}  // namespace

void add_softmax(const KernelSink& sink) {
  sink.add(sink.host, "softmax", &softmax<false>);
  sink.add(sink.host, "log_softmax", &softmax<true>);
  sink.add(sink.host, "softmax_backward", &softmax_backward<false>);
  sink.add(sink.host, "log_softmax_backward", &softmax_backward<true>);
}

}  // namespace tenon::cuda
