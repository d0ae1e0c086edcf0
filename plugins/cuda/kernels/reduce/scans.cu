// cumsum, cumprod, cummax, cummin, logcumsumexp: running results along a dimension.
#include <tenon/kernel/attributes/reduction.h>

#include "kernels/reduce/lines.cuh"
#include "kernels/reduce/team.cuh"

#include <limits>

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

/// Each team goes along its line, as many elements at a time as it has lanes.
template <class T, class Scan>
__global__ void __launch_bounds__(kThreads) scan_kernel(Lines<3> lines, int lanes, Scan scan) {
  using Acc = typename Scan::Acc;
  __shared__ Acc shared[kWarps];
  const Team team(lanes);
  const bool active = team.line < lines.nest.total;
  const auto combine = [&](const Acc& a, const Acc& b) { return scan.combine(a, b); };
  char* line[3];
  if (active) lines.locate(team.line, line);
  Acc carried = scan.start();
  for (i64 first = 0; first < lines.length; first += lanes) {
    const i64 i = first + team.lane;
    const bool mine = active && i < lines.length;
    Acc value = scan.start();
    if (mine) value = scan.one(load_as<T>(*element<const T>(line[2], i * lines.strides[2])), i);
    Acc last;
    value = team_scan(team, value, shared, last, combine);
    if (mine) {
      scan.finish(combine(carried, value), line[0] + i * lines.strides[0], line[1] + i * lines.strides[1]);
    }
    carried = combine(carried, last);
  }
}

template <class T, class Scan>
void run(KernelContext& context, const TensorView& y, const TensorView& index, const TensorView& x, int dim,
         const Scan& scan) {
  const Lines<3> lines = make_lines<3>({&y, &index, &x}, dim);
  if (lines.empty()) return;
  const int lanes = lanes_for(lines.length, lines.nest.total, lines.across(2));
  launch(context, team_shape(lines.nest.total, lanes), scan_kernel<T, Scan>, lines, lanes, scan);
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
