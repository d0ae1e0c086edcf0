// var, std, var_mean.
#include <tenon/kernel/attributes/reduction.h>

#include "kernels/reduce/moments.cuh"
#include "kernels/reduce/reduce.cuh"

namespace tenon::cuda {
namespace {

/// In float64 whatever the elements are: a variance that is small beside the mean squared keeps its digits.
struct Statistic {
  using Acc = Moments<double>;
  Dtype dtype;
  double correction;
  i64 count;
  bool root, with_mean;
  __device__ Acc start() const { return {}; }
  __device__ void step(Acc& acc, double value, i64) const { acc.add(value); }
  __device__ Acc combine(const Acc& a, const Acc& b) const { return Acc::merged(a, b); }
  __device__ void finish(const Acc& acc, Output y) const {
    const double variance = count == 0 ? NAN : acc.squares / max(static_cast<double>(count) - correction, 0.0);
    store_any(dtype, y.first, root ? sqrt(variance) : variance);
    if (with_mean) store_any(dtype, y.second, count == 0 ? NAN : acc.mean);
  }
};

template <bool root, bool with_mean>
void statistic(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const double correction =
      attributes ? static_cast<const VarAttributes*>(attributes)->correction : VarAttributes{}.correction;
  const TensorView &y = outputs[0], &x = inputs[0];
  const Reduction r = plan_reduction(x, y, outputs[with_mean ? 1 : 0]);
  floats_only("var", x.dtype, [&]<class T>(Type<T>) {
    const Statistic fold{y.dtype, correction, r.reduced.total, root, with_mean};
    run_reduction(context, r, Elements<T, double>{x.as<const char>()}, fold);
  });
}

}  // namespace

void add_statistics(const KernelSink& sink) {
  sink.add(sink.host, "var", &statistic<false, false>);
  sink.add(sink.host, "std", &statistic<true, false>);
  sink.add(sink.host, "var_mean", &statistic<false, true>);
}

}  // namespace tenon::cuda
