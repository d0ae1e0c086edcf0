// argmax, argmin, max_dim, min_dim: the first of equals, nan above all.
#include <tenon/kernel/attributes/reduction.h>

#include "kernels/reduce/reduce.cuh"

namespace tenon::cuda {
namespace {

template <class A>
struct Best {
  struct Acc {
    A value;
    i64 index;  ///< -1: nothing yet
  };
  Dtype dtype;
  bool largest, with_values;

  __device__ Acc start() const { return {A(0), -1}; }
  __device__ void step(Acc& acc, A value, i64 position) const { acc = combine(acc, {value, position}); }
  __device__ Acc combine(const Acc& a, const Acc& b) const {
    if (a.index < 0) return b;
    if (b.index < 0) return a;
    const bool nan_a = a.value != a.value, nan_b = b.value != b.value;
    const bool equal = (nan_a && nan_b) || a.value == b.value;
    const bool first =
        equal ? a.index < b.index : nan_a || (!nan_b && (largest ? a.value > b.value : a.value < b.value));
    return first ? a : b;
  }
  /// The index, then the value.
  __device__ void finish(const Acc& acc, Output y) const {
    *reinterpret_cast<i64*>(y.first) = acc.index;
    if (with_values) store_any(dtype, y.second, acc.value);
  }
};

template <bool largest, bool with_values>
void best(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const TensorView &x = inputs[0], &values = outputs[0], &index = outputs[with_values ? 1 : 0];
  const int dim = static_cast<const DimAttributes*>(attributes)->dim;
  if (index.element_count() > 0 && x.element_count() == 0) {
    refuse("cuda: the index of an extreme along dimension %d, which is empty", dim);
  }
  const Reduction r = plan_reduction(x, index, values);
  any_dtype(x.dtype, [&]<class T>(Type<T>) {
    const Best<Compute<T>> fold{x.dtype, largest, with_values};
    run_reduction(context, r, Elements<T>{x.as<const char>()}, fold);
  });
}

}  // namespace

void add_arg_reductions(const KernelSink& sink) {
  sink.add(sink.host, "argmax", &best<true, false>);
  sink.add(sink.host, "argmin", &best<false, false>);
  sink.add(sink.host, "max_dim", &best<true, true>);
  sink.add(sink.host, "min_dim", &best<false, true>);
}

}  // namespace tenon::cuda
