// sum, mean, prod, amax, amin, any, all, norm, count_nonzero_all.
#include <tenon/kernel/attributes/reduction.h>

#include "kernels/reduce/packed_columns.cuh"

#include <cmath>
#include <limits>

namespace tenon::cuda {
namespace {

/// Integers are added and multiplied as unsigned ones: they wrap.
template <class A>
using Wrapping = std::conditional_t<std::is_same_v<A, i64>, u64, A>;

template <class A>
struct Sum {
  using Acc = A;
  Dtype dtype;
  double count = 1;  ///< the sum is divided by it
  __device__ Acc start() const { return 0; }
  __device__ void step(Acc& acc, A value, i64) const { acc = combine(acc, value); }
  __device__ Acc combine(Acc a, Acc b) const {
    return static_cast<A>(static_cast<Wrapping<A>>(a) + static_cast<Wrapping<A>>(b));
  }
  __device__ void finish(Acc acc, Output y) const {
    if constexpr (std::is_floating_point_v<A>) acc = static_cast<A>(acc / count);
    store_any(dtype, y.first, acc);
  }
};

template <class A>
struct Product {
  using Acc = A;
  Dtype dtype;
  __device__ Acc start() const { return 1; }
  __device__ void step(Acc& acc, A value, i64) const { acc = combine(acc, value); }
  __device__ Acc combine(Acc a, Acc b) const {
    return static_cast<A>(static_cast<Wrapping<A>>(a) * static_cast<Wrapping<A>>(b));
  }
  __device__ void finish(Acc acc, Output y) const { store_any(dtype, y.first, acc); }
};

/// The largest or smallest number or magnitude, nan above all.
template <class A>
struct Extreme {
  using Acc = A;
  Dtype dtype;
  bool largest, magnitude;
  A least;  ///< of nothing at all
  __device__ Acc start() const { return least; }
  __device__ void step(Acc& acc, A value, i64) const { acc = combine(acc, magnitude && value < 0 ? -value : value); }
  __device__ Acc combine(Acc a, Acc b) const {
    const bool take = largest ? b > a : b < a;
    return b != b || (take && a == a) ? b : a;
  }
  __device__ void finish(Acc acc, Output y) const { store_any(dtype, y.first, acc); }
};

enum class Counting { kAny, kAll, kHowMany };

/// How many are not zero; for `all`: how many are.
template <class A>
struct Count {
  using Acc = i64;
  Counting kind;
  Dtype dtype;
  __device__ Acc start() const { return 0; }
  __device__ void step(Acc& acc, A value, i64) const { acc += (value == A(0)) == (kind == Counting::kAll); }
  __device__ Acc combine(Acc a, Acc b) const { return a + b; }
  __device__ void finish(Acc acc, Output y) const {
    if (kind != Counting::kHowMany) acc = (acc == 0) == (kind == Counting::kAll);
    store_any(dtype, y.first, acc);
  }
};

/// (sum |x|^p)^(1/p) with a p that is neither 0 nor infinite.
template <class A>
struct PowerNorm {
  using Acc = A;
  Dtype dtype;
  A p;
  __device__ Acc start() const { return 0; }
  __device__ void step(Acc& acc, A value, i64) const {
    const A x = fabs(value);
    acc += p == A(1) ? x : p == A(2) ? x * x : pow(x, p);
  }
  __device__ Acc combine(Acc a, Acc b) const { return a + b; }
  __device__ void finish(Acc acc, Output y) const {
    store_any(dtype, y.first, p == A(1) ? acc : p == A(2) ? sqrt(acc) : pow(acc, A(1) / p));
  }
};

template <class T, class Fold>
void reduce(KernelContext& context, const TensorView& y, const TensorView& x, const Fold& fold) {
  using Number = std::conditional_t<std::is_same_v<typename Fold::Acc, double>, double, Compute<T>>;
  const Reduction r = plan_reduction(x, y, y);
  if constexpr (sizeof(T) == 2 && std::is_same_v<Fold, Sum<float>>) {
    if (r.kept.total > 0 && r.reduced.total > 0 && is_of_packed_columns<T>(r))
      return run_packed_columns<T>(context, r, fold);
  }
  run_reduction(context, r, Elements<T, Number>{x.as<const char>()}, fold);
}

/// Of float32 to float64: all of it in float64.
template <template <class> class Fold>
void wide(KernelContext& context, const TensorView& y, const TensorView& x) {
  any_dtype(x.dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_same_v<T, float>) {
      if (y.dtype == Dtype::kFloat64) return reduce<T>(context, y, x, Fold<double>{y.dtype});
    }
    reduce<T>(context, y, x, Fold<Compute<T>>{y.dtype});
  });
}

void sum(KernelContext& context, Views outputs, Views inputs, const void*) {
  wide<Sum>(context, outputs[0], inputs[0]);
}
void prod(KernelContext& context, Views outputs, Views inputs, const void*) {
  wide<Product>(context, outputs[0], inputs[0]);
}

void mean(KernelContext& context, Views outputs, Views inputs, const void*) {
  const TensorView &y = outputs[0], &x = inputs[0];
  i64 count = 1;
  for (int d = 0; d < x.rank; ++d) count *= y.sizes[d] == 1 ? x.sizes[d] : 1;
  floats_only("mean", x.dtype, [&]<class T>(Type<T>) {
    reduce<T>(context, y, x, Sum<Compute<T>>{y.dtype, static_cast<double>(count)});
  });
}

template <bool largest>
void extreme(KernelContext& context, Views outputs, Views inputs, const void*) {
  any_dtype(inputs[0].dtype, [&]<class T>(Type<T>) {
    using A = Compute<T>;
    using Limits = std::numeric_limits<A>;
    const A highest = kIsFloating<T> ? Limits::infinity() : Limits::max();
    const A lowest = kIsFloating<T> ? -Limits::infinity() : Limits::min();
    reduce<T>(context, outputs[0], inputs[0], Extreme<A>{outputs[0].dtype, largest, false, largest ? lowest : highest});
  });
}

void count(KernelContext& context, const TensorView& y, const TensorView& x, Counting kind) {
  if (is_floating_point(x.dtype)) {
    floats_only("any", x.dtype, [&]<class T>(Type<T>) { reduce<T>(context, y, x, Count<Compute<T>>{kind, y.dtype}); });
  } else {
    bits_of(x.dtype, [&]<class T>(Type<T>) { reduce<T>(context, y, x, Count<Compute<T>>{kind, y.dtype}); });
  }
}
void any(KernelContext& context, Views outputs, Views inputs, const void*) {
  count(context, outputs[0], inputs[0], Counting::kAny);
}
void all(KernelContext& context, Views outputs, Views inputs, const void*) {
  count(context, outputs[0], inputs[0], Counting::kAll);
}
void count_nonzero_all(KernelContext& context, Views outputs, Views inputs, const void*) {
  constexpr i64 kOnes[kMaxRank] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  TensorView y = outputs[0];
  y.rank = inputs[0].rank;
  y.sizes = y.strides = kOnes;
  count(context, y, inputs[0], Counting::kHowMany);
}

void norm(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const double p = attributes ? static_cast<const NormAttributes*>(attributes)->p : NormAttributes{}.p;
  const TensorView &y = outputs[0], &x = inputs[0];
  floats_only("norm", x.dtype, [&]<class T>(Type<T>) {
    using A = Compute<T>;
    if (std::isinf(p)) {
      const A of_nothing = p > 0 ? A(0) : std::numeric_limits<A>::infinity();
      reduce<T>(context, y, x, Extreme<A>{y.dtype, p > 0, true, of_nothing});
    } else if (p == 0) {
      reduce<T>(context, y, x, Count<A>{Counting::kHowMany, y.dtype});
    } else {
      reduce<T>(context, y, x, PowerNorm<A>{y.dtype, static_cast<A>(p)});
    }
  });
}

}  // namespace

void add_reductions(const KernelSink& sink) {
  sink.add(sink.host, "sum", &sum);
  sink.add(sink.host, "prod", &prod);
  sink.add(sink.host, "mean", &mean);
  sink.add(sink.host, "amax", &extreme<true>);
  sink.add(sink.host, "amin", &extreme<false>);
  sink.add(sink.host, "any", &any);
  sink.add(sink.host, "all", &all);
  sink.add(sink.host, "norm", &norm);
  sink.add(sink.host, "count_nonzero_all", &count_nonzero_all);
}

}  // namespace tenon::cuda
