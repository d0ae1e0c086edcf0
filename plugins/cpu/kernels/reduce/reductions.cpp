// sum, mean, prod, amax, amin, any, all, norm.
#include <tenon/kernel/attributes/reduction.h>

#include "kernels/native_vector.h"
#include "kernels/pointwise/math.h"
#include "kernels/reduce/reduce.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kWide = 64;  // independent partial sums: enough to hide latency, and as good as pairwise over one row

template <class T>
struct Traits;
template <>
struct Traits<float> {
  static constexpr Lane kLane = Lane::kF32;
  using Sum = double;
  static constexpr tenon::cpu::TENON_CPU_LEVEL::Lane kSumLane = Lane::kF64;
};
template <>
struct Traits<double> {
  static constexpr Lane kLane = Lane::kF64;
  using Sum = double;
  static constexpr tenon::cpu::TENON_CPU_LEVEL::Lane kSumLane = Lane::kF64;
};
template <>
struct Traits<i64> {
  static constexpr Lane kLane = Lane::kI64;
  using Sum = Wrapping<i64>;
  static constexpr tenon::cpu::TENON_CPU_LEVEL::Lane kSumLane = Lane::kI64;
};

// Adds x[i] to the partial sum i % kWide, then those up by halves.
template <class T>
T wide_sum(const T* x, i64 n) {
  constexpr i64 kLanes = kVectorLanes<T>, kPieces = kWide / kLanes;
  typename NativeVector<T>::Type sums[kPieces] = {};
  const auto add = [&sums](const T* from) {
    for (i64 piece = 0; piece < kPieces; ++piece) sums[piece] += vector_at(from + piece * kLanes);
  };
  const i64 whole = n / kWide * kWide;
  for (i64 i = 0; i < whole; i += kWide) add(x + i);
  if (whole < n) {  // no sum is -0, so that adding 0 changes none
    T rest[kWide] = {};
    __builtin_memcpy(rest, x + whole, static_cast<std::size_t>(n - whole) * sizeof(T));
    add(rest);
  }
#pragma GCC unroll 8
  for (i64 half = kPieces / 2; half > 0; half /= 2) {
    for (i64 piece = 0; piece < half; ++piece) sums[piece] += sums[piece + half];
  }
  return sum_of_halves<T>(sums[0]);
}

template <class T>
struct Sum {
  using Lane = T;
  using Acc = typename Traits<T>::Sum;
  using Out = Acc;
  static constexpr auto kIn = Traits<T>::kLane;
  static constexpr auto kOut = Traits<T>::kSumLane;
  static Acc init() { return 0; }
  static void block(Acc& acc, const T* x, i64 n, const void*) {
    acc += static_cast<Acc>(wide_sum(reinterpret_cast<const Wrapping<T>*>(x), n));
  }
  static void column(Acc& acc, T x, const void*) { acc += static_cast<Acc>(x); }
  static void combine(Acc& acc, Acc other) { acc += other; }
  static Out finish(int, Acc acc, i64, const void*) { return acc; }
};
template <class T>
struct Mean : Sum<T> {
  static double finish(int, double acc, i64 count, const void*) { return acc / static_cast<double>(count); }
};
template <class T>
struct Prod {
  using Lane = T;
  using Acc = typename Traits<T>::Sum;
  using Out = Acc;
  static constexpr auto kIn = Traits<T>::kLane;
  static constexpr auto kOut = Traits<T>::kSumLane;
  static Acc init() { return 1; }
  static void block(Acc& acc, const T* x, i64 n, const void*) {
    for (i64 i = 0; i < n; ++i) acc *= static_cast<Acc>(x[i]);
  }
  static void column(Acc& acc, T x, const void*) { acc *= static_cast<Acc>(x); }
  static void combine(Acc& acc, Acc other) { acc *= other; }
  static Out finish(int, Acc acc, i64, const void*) { return acc; }
};

template <class T>
constexpr T lowest() {
  return T(-__builtin_inf());
}
template <>
constexpr i64 lowest<i64>() {
  return INT64_MIN;
}
template <class T>
constexpr T highest() {
  return T(__builtin_inf());
}
template <>
constexpr i64 highest<i64>() {
  return INT64_MAX;
}

// The better of two, nan above all.
template <bool max, class T>
T better(T best, T x) {
  const bool take = max ? x > best : x < best;
  const T kept = take ? x : best;
  return x != x ? x : kept;  // NOLINT(misc-redundant-expression): NaN
}

template <bool max, class T>
struct Extreme {
  using Lane = T;
  using Acc = T;
  using Out = T;
  static constexpr auto kIn = Traits<T>::kLane;
  static constexpr auto kOut = kIn;
  static Acc init() { return max ? lowest<T>() : highest<T>(); }
  static void block(Acc& acc, const T* x, i64 n, const void*) {
    constexpr i64 kParts = 32;
    T part[kParts];
    for (i64 j = 0; j < kParts; ++j) part[j] = acc;
    i64 i = 0;
    for (; i + kParts <= n; i += kParts) {
      for (i64 j = 0; j < kParts; ++j) part[j] = better<max>(part[j], x[i + j]);
    }
    for (; i < n; ++i) part[0] = better<max>(part[0], x[i]);
    for (i64 j = 0; j < kParts; ++j) acc = better<max>(acc, part[j]);
  }
  static void column(Acc& acc, T x, const void*) { acc = better<max>(acc, x); }
  static void combine(Acc& acc, Acc other) { acc = better<max>(acc, other); }
  static Out finish(int, Acc acc, i64, const void*) { return acc; }
};

template <bool all, class T>
struct Truth {
  using Lane = T;
  using Acc = u8;
  using Out = u8;
  static constexpr auto kIn = Traits<T>::kLane;
  static constexpr auto kOut = tenon::cpu::TENON_CPU_LEVEL::Lane::kU8;
  static Acc init() { return all; }
  static void block(Acc& acc, const T* x, i64 n, const void*) {
    i64 hits = 0;
    for (i64 i = 0; i < n; ++i) hits += x[i] != T(0);
    acc = all ? acc && hits == n : acc || hits > 0;
  }
  static void column(Acc& acc, T x, const void*) {
    const u8 hit = x != T(0);
    acc = all ? acc & hit : acc | hit;
  }
  static void combine(Acc& acc, Acc other) { acc = all ? acc & other : acc | other; }
  static Out finish(int, Acc acc, i64, const void*) { return acc; }
};

// Norms: what is summed, and what becomes of the sum.
enum class NormKind { kAbsolute, kSquare, kCount, kPower };

template <class T, NormKind kind>
struct Norm {
  using Lane = T;
  using Acc = double;
  using Out = double;
  static constexpr auto kIn = Traits<T>::kLane;
  static constexpr auto kOut = tenon::cpu::TENON_CPU_LEVEL::Lane::kF64;
  static double term(T x, const void* params) {
    if constexpr (kind == NormKind::kAbsolute) return math::absolute(static_cast<double>(x));
    if constexpr (kind == NormKind::kSquare) return static_cast<double>(x) * static_cast<double>(x);
    if constexpr (kind == NormKind::kCount) return x != T(0);
    return math::pow(math::absolute(static_cast<double>(x)), static_cast<const NormAttributes*>(params)->p);
  }
  static Acc init() { return 0; }
  static void block(Acc& acc, const T* x, i64 n, const void* params) {
    double part[16];
    for (i64 j = 0; j < 16; ++j) part[j] = 0;
    i64 i = 0;
    for (; i + 16 <= n; i += 16) {
      for (i64 j = 0; j < 16; ++j) part[j] += term(x[i + j], params);
    }
    for (i64 j = 0; i + j < n; ++j) part[j] += term(x[i + j], params);
    for (i64 j = 0; j < 16; ++j) acc += part[j];
  }
  static void column(Acc& acc, T x, const void* params) { acc += term(x, params); }
  static void combine(Acc& acc, Acc other) { acc += other; }
  static Out finish(int, Acc acc, i64, const void* params) {
    if constexpr (kind == NormKind::kSquare) return math::sqrt(acc);
    if constexpr (kind == NormKind::kPower) return math::pow(acc, 1 / static_cast<const NormAttributes*>(params)->p);
    return acc;
  }
};
template <class T, bool max>
struct InfinityNorm : Extreme<max, T> {
  static T init() { return max ? T(0) : highest<T>(); }
  static void block(T& acc, const T* x, i64 n, const void*) {
    for (i64 i = 0; i < n; ++i) acc = better<max>(acc, math::absolute(x[i]));
  }
  static void column(T& acc, T x, const void*) { acc = better<max>(acc, math::absolute(x)); }
};

template <template <class> class F>
constexpr ReduceOp kOps[3] = {reduce_op<F<float>>(), reduce_op<F<double>>(), reduce_op<F<i64>>()};
template <class T>
using AMax = Extreme<true, T>;
template <class T>
using AMin = Extreme<false, T>;
template <class T>
using Any = Truth<false, T>;
template <class T>
using All = Truth<true, T>;

template <template <class> class F>
void reduction(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const TensorView* out[] = {&at(outputs, 0)};
  const Lane lane = lane_of(at(inputs, 0).dtype);
  run_reduction(context, out, 1, at(inputs, 0), kOps<F>[static_cast<int>(lane)], attributes);
}

void mean(KernelContext& context, Views outputs, Views inputs, const void*) {
  static constexpr ReduceOp kMean[2] = {reduce_op<Mean<float>>(), reduce_op<Mean<double>>()};
  const Lane lane = lane_of(at(inputs, 0).dtype);
  if (lane == Lane::kI64) refuse_dtype("mean", at(inputs, 0).dtype);
  const TensorView* out[] = {&at(outputs, 0)};
  run_reduction(context, out, 1, at(inputs, 0), kMean[static_cast<int>(lane)], nullptr);
}

template <class T>
ReduceOp norm_op(double p) {
  if (p == 2) return reduce_op<Norm<T, NormKind::kSquare>>();
  if (p == 1) return reduce_op<Norm<T, NormKind::kAbsolute>>();
  if (p == 0) return reduce_op<Norm<T, NormKind::kCount>>();
  if (p == __builtin_inf()) return reduce_op<InfinityNorm<T, true>>();
  if (p == -__builtin_inf()) return reduce_op<InfinityNorm<T, false>>();
  return reduce_op<Norm<T, NormKind::kPower>>();
}

void norm(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  static const NormAttributes kEuclid;
  const auto& given = attributes ? *static_cast<const NormAttributes*>(attributes) : kEuclid;
  const Lane lane = lane_of(at(inputs, 0).dtype);
  if (lane == Lane::kI64) refuse_dtype("norm", at(inputs, 0).dtype);
  const ReduceOp op = lane == Lane::kF32 ? norm_op<float>(given.p) : norm_op<double>(given.p);
  const TensorView* out[] = {&at(outputs, 0)};
  run_reduction(context, out, 1, at(inputs, 0), op, &given);
}

}  // namespace

void add_reductions(const KernelSink& sink) {
  sink.add(sink.host, "sum", &reduction<Sum>);
  sink.add(sink.host, "prod", &reduction<Prod>);
  sink.add(sink.host, "mean", &mean);
  sink.add(sink.host, "amax", &reduction<AMax>);
  sink.add(sink.host, "amin", &reduction<AMin>);
  sink.add(sink.host, "any", &reduction<Any>);
  sink.add(sink.host, "all", &reduction<All>);
  sink.add(sink.host, "norm", &norm);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
