// var, std, var_mean: means and squared deviations of blocks, merged in order (Chan, Golub, LeVeque 1979).
#include <tenon/kernel/attributes/reduction.h>

#include "kernels/pointwise/math.h"
#include "kernels/reduce/reduce.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

struct Moments {
  double mean, squares;
  i64 count;
};

void merge(Moments& into, const Moments& other) {
  if (other.count == 0) return;
  const double total = static_cast<double>(into.count + other.count);
  const double gap = other.mean - into.mean;
  const double share = static_cast<double>(other.count) / total;
  into.mean += gap * share;
  into.squares += other.squares + gap * gap * static_cast<double>(into.count) * share;
  into.count += other.count;
}

enum class Kind { kVariance, kDeviation, kVarianceAndMean };

template <class T, Kind kind>
struct Statistic {
  using Lane = T;
  using Acc = Moments;
  using Out = double;
  static constexpr auto kIn =
      sizeof(T) == 4 ? tenon::cpu::TENON_CPU_LEVEL::Lane::kF32 : tenon::cpu::TENON_CPU_LEVEL::Lane::kF64;
  static constexpr auto kOut = tenon::cpu::TENON_CPU_LEVEL::Lane::kF64;

  static Acc init() { return {0, 0, 0}; }
  static void block(Acc& acc, const T* x, i64 n, const void*) {
    double part[8] = {};
    i64 i = 0;
    for (; i + 8 <= n; i += 8) {
      for (i64 j = 0; j < 8; ++j) part[j] += static_cast<double>(x[i + j]);
    }
    for (i64 j = 0; i + j < n; ++j) part[j] += static_cast<double>(x[i + j]);
    double sum = 0;
    for (i64 j = 0; j < 8; ++j) sum += part[j];
    const double mean = sum / static_cast<double>(n);
    for (i64 j = 0; j < 8; ++j) part[j] = 0;
    for (i = 0; i + 8 <= n; i += 8) {
      for (i64 j = 0; j < 8; ++j) {
        const double gap = static_cast<double>(x[i + j]) - mean;
        part[j] += gap * gap;
      }
    }
    for (i64 j = 0; i + j < n; ++j) {
      const double gap = static_cast<double>(x[i + j]) - mean;
      part[j] += gap * gap;
    }
    double squares = 0;
    for (i64 j = 0; j < 8; ++j) squares += part[j];
    merge(acc, {mean, squares, n});
  }
  static void column(Acc& acc, T x, const void*) {
    const double value = static_cast<double>(x);
    acc.count += 1;
    const double gap = value - acc.mean;
    acc.mean += gap / static_cast<double>(acc.count);
    acc.squares += gap * (value - acc.mean);
  }
  static void combine(Acc& acc, const Acc& other) { merge(acc, other); }
  static Out finish(int output, const Acc& acc, i64 count, const void* params) {
    if (output == 1) return count == 0 ? static_cast<double>(__builtin_nanf("")) : acc.mean;
    const double correction = static_cast<const VarAttributes*>(params)->correction;
    const double freedom = static_cast<double>(count) - correction;
    const double variance =
        count == 0 ? static_cast<double>(__builtin_nanf("")) : acc.squares / (freedom > 0 ? freedom : 0.0);
    return kind == Kind::kDeviation ? math::sqrt(variance) : variance;
  }
};

template <Kind kind>
void statistic(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  static const VarAttributes kUnbiased;
  static constexpr ReduceOp kOps[2] = {reduce_op<Statistic<float, kind>>(), reduce_op<Statistic<double, kind>>()};
  const TensorView& x = at(inputs, 0);
  const Lane lane = lane_of(x.dtype);
  if (lane == Lane::kI64) refuse_dtype("var", x.dtype);
  const bool both = kind == Kind::kVarianceAndMean;
  const TensorView* out[] = {&at(outputs, 0), both ? &at(outputs, 1) : nullptr};
  run_reduction(context, out, both ? 2 : 1, x, kOps[static_cast<int>(lane)], attributes ? attributes : &kUnbiased);
}

}  // namespace

void add_statistics(const KernelSink& sink) {
  sink.add(sink.host, "var", &statistic<Kind::kVariance>);
  sink.add(sink.host, "std", &statistic<Kind::kDeviation>);
  sink.add(sink.host, "var_mean", &statistic<Kind::kVarianceAndMean>);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
