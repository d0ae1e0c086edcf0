// cumsum, cumprod, cummax, cummin, logcumsumexp: running results along a dimension.
#include <tenon/kernel/attributes/reduction.h>

#include "kernels/reduce/lines.cuh"
#include "kernels/reduce/team.cuh"

#include <algorithm>

namespace tenon::cuda {
namespace {

//   Scan: Acc, start(), one(value, position), combine(acc, acc): associative, finish(acc, addresses of the outputs)

template <class T, bool product>
struct Running {
  using Number = Compute<T>;
  using Acc = std::conditional_t<kIsFloating<T>, Number, u64>;  // integers wrap
  __device__ Acc start() const { return product ? 1 : 0; }
  __device__ Acc one(Number value, i64) const { return static_cast<Acc>(value); }
  __device__ Acc combine(Acc a, Acc b) const { return product ? a * b : a + b; }
  __device__ void finish(Acc acc, char* y, char*) const {
    *reinterpret_cast<T*>(y) = store_as<T>(static_cast<Number>(acc));
  }
};

template <class T>
struct RunningExponentials {
  using Number = Compute<T>;
  using Acc = Number;
  __device__ Acc start() const { return -INFINITY; }
  __device__ Acc one(Number value, i64) const { return value; }
  /// log(exp(a) + exp(b))
  __device__ Acc combine(Acc a, Acc b) const {
    if (a != a || b != b) return a + b;
    const Acc high = max(a, b), low = min(a, b);
    return isinf(high) ? high : high + log1p(exp(low - high));
  }
  __device__ void finish(Acc acc, char* y, char*) const { *reinterpret_cast<T*>(y) = store_as<T>(acc); }
};

/// The last of equals; nan above all.
template <class T>
struct RunningExtreme {
  using Number = Compute<T>;
  struct Acc {
    Number value;
    i64 index;  ///< -1: nothing yet
  };
  bool largest;
  __device__ Acc start() const { return {Number(0), -1}; }
  __device__ Acc one(Number value, i64 position) const { return {value, position}; }
  /// b comes after a.
  __device__ Acc combine(const Acc& a, const Acc& b) const {
    if (a.index < 0 || b.index < 0) return a.index < 0 ? b : a;
    const bool stays = a.value != a.value || (largest ? a.value > b.value : a.value < b.value);
    return stays && b.value == b.value ? a : b;
  }
  __device__ void finish(const Acc& acc, char* y, char* index) const {
    *reinterpret_cast<T*>(y) = store_as<T>(acc.value);
    *reinterpret_cast<i64*>(index) = acc.index;
  }
};

/// What a line is cut into, a team each: where lines are few and long, more than one part. `totals` has the result of
/// each part; a run that writes nothing else comes first for it.
template <class Acc>
struct Parts {
  i64 length;  ///< of a part
  int count = 1;
  Acc* totals = nullptr;
};

/// Each team goes along its part, as many elements at a time as it has lanes.
template <class T, class Scan>
__global__ void __launch_bounds__(kThreads)
    scan_kernel(Lines<3> lines, int lanes, Scan scan, Parts<typename Scan::Acc> parts, bool only_totals) {
  using Acc = typename Scan::Acc;
  __shared__ Acc shared[kWarps];
  const Team team(lanes);
  const i64 line = team.line / parts.count;
  const int part = static_cast<int>(team.line % parts.count);
  const bool active = line < lines.nest.total;
  const auto combine = [&](const Acc& a, const Acc& b) { return scan.combine(a, b); };
  char* begin[3];
  if (active) lines.locate(line, begin);
  Acc carried = scan.start();
  if (active && !only_totals) {
    for (int before = 0; before < part; ++before) carried = combine(carried, parts.totals[line * parts.count + before]);
  }
  const i64 end = min(lines.length, (part + 1) * parts.length);
  for (i64 first = part * parts.length; first < end; first += lanes) {
    const i64 i = first + team.lane;
    const bool mine = active && i < end;
    Acc value = scan.start();
    if (mine) value = scan.one(load_as<T>(*element<const T>(begin[2], i * lines.strides[2])), i);
    Acc last;
    value = team_scan(team, value, shared, last, combine);
    if (mine && !only_totals) {
      scan.finish(combine(carried, value), begin[0] + i * lines.strides[0], begin[1] + i * lines.strides[1]);
    }
    carried = combine(carried, last);
  }
  if (only_totals && active && team.lane == 0) parts.totals[team.line] = carried;
}

template <class T, class Scan>
void run(KernelContext& context, const TensorView& y, const TensorView& index, const TensorView& x, int dim,
         const Scan& scan) {
  using Acc = typename Scan::Acc;
  const Lines<3> lines = make_lines<3>({&y, &index, &x}, dim);
  if (lines.empty()) return;
  const i64 count = lines.nest.total;
  const int lanes = lanes_for(lines.length, count, lines.across(2));
  Parts<Acc> parts{lines.length};
  if (lanes == kThreads && count <= 32) {  // about 64 blocks, each with at least 4096 elements
    parts.count = static_cast<int>(std::clamp<i64>(lines.length / 4096, 1, 64 / count));
    parts.length = ceil_div(ceil_div(lines.length, parts.count), kThreads) * kThreads;
  }
  const LaunchShape shape = team_shape(count * parts.count, lanes);
  if (parts.count > 1) {
    parts.totals = static_cast<Acc*>(context.scratch(static_cast<std::size_t>(count * parts.count) * sizeof(Acc)));
    launch(context, shape, scan_kernel<T, Scan>, lines, lanes, scan, parts, true);
  }
  launch(context, shape, scan_kernel<T, Scan>, lines, lanes, scan, parts, false);
}

int dim_of(const void* attributes) { return static_cast<const DimAttributes*>(attributes)->dim; }

template <bool product>
void running(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  numbers_only(product ? "cumprod" : "cumsum", outputs[0].dtype, [&]<class T>(Type<T>) {
    run<T>(context, outputs[0], outputs[0], inputs[0], dim_of(attributes), Running<T, product>{});
  });
}

void logcumsumexp(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  floats_only("logcumsumexp", outputs[0].dtype, [&]<class T>(Type<T>) {
    run<T>(context, outputs[0], outputs[0], inputs[0], dim_of(attributes), RunningExponentials<T>{});
  });
}

template <bool largest>
void running_extreme(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  any_dtype(inputs[0].dtype, [&]<class T>(Type<T>) {
    run<T>(context, outputs[0], outputs[1], inputs[0], dim_of(attributes), RunningExtreme<T>{largest});
  });
}

}  // namespace

void add_scans(const KernelSink& sink) {
  sink.add(sink.host, "cumsum", &running<false>);
  sink.add(sink.host, "cumprod", &running<true>);
  sink.add(sink.host, "logcumsumexp", &logcumsumexp);
  sink.add(sink.host, "cummax", &running_extreme<true>);
  sink.add(sink.host, "cummin", &running_extreme<false>);
}

}  // namespace tenon::cuda
