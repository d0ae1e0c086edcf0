// What this machine itself can do, beside which a step's time is to be read: fused multiply-adds out of registers, and
// reading from each level of its memory. One thread, and as many as there are cores.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <set>
#include <thread>
#include <vector>

namespace {

template <int kBytes>
using Vector [[gnu::vector_size(kBytes)]] = float;

/// Twelve sums, so that none waits for its own last one: a multiply-add takes four cycles, and two begin in each.
constexpr int kSums = 12;
constexpr int kRounds = 4096;

// `step` is unknown to the compiler, and no sum is ever read by another.
#define TENON_MULTIPLY_ADDS(name, bytes, isa)                             \
  [[gnu::target(isa), gnu::noinline]] float name(float step) {            \
    Vector<bytes> sums[kSums], factor, term;                              \
    for (int i = 0; i < static_cast<int>(bytes / sizeof(float)); ++i) {   \
      factor[i] = 1 - step;                                               \
      term[i] = step;                                                     \
      for (int k = 0; k < kSums; ++k) sums[k][i] = static_cast<float>(k); \
    }                                                                     \
    for (int round = 0; round < kRounds; ++round) {                       \
      for (int k = 0; k < kSums; ++k) sums[k] = sums[k] * factor + term;  \
    }                                                                     \
    for (int k = 1; k < kSums; ++k) sums[0] += sums[k];                   \
    return sums[0][0];                                                    \
  }
TENON_MULTIPLY_ADDS(multiply_adds_256, 32, "avx2,fma")
TENON_MULTIPLY_ADDS(multiply_adds_512, 64, "avx512f")

void multiply_adds(benchmark::State& state, float (*function)(float), int bytes, bool is_there) {
  if (!is_there) {
    state.SkipWithError("this processor has no such vectors");
    return;
  }
  float step = 1e-9F;
  for (auto _ : state) {
    benchmark::DoNotOptimize(step);
    benchmark::DoNotOptimize(function(step));
  }
  const double operations = 2.0 * kSums * kRounds * bytes / sizeof(float);
  state.counters["FLOP/s"] =
      benchmark::Counter(operations * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

[[gnu::target_clones("default", "avx2", "avx512f")]] double sum_of(const double* data, std::size_t count) {
  double sums[32] = {};
  for (std::size_t i = 0; i < count; i += 32)
    for (int k = 0; k < 32; ++k) sums[k] += data[i + static_cast<std::size_t>(k)];
  double all = 0;
  for (const double sum : sums) all += sum;
  return all;
}

/// Each thread reads a range of its own of so many bytes, again and again.
void reading(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::vector<double> data(bytes / sizeof(double), 1.0);
  for (auto _ : state) benchmark::DoNotOptimize(sum_of(data.data(), data.size()));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void add_all() {
  for (const int threads : std::set<int>{1, static_cast<int>(std::thread::hardware_concurrency())}) {
    benchmark::RegisterBenchmark("multiply_adds/256", multiply_adds, &multiply_adds_256, 32,
                                 __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2"))
        ->Threads(threads)
        ->UseRealTime();
    benchmark::RegisterBenchmark("multiply_adds/512", multiply_adds, &multiply_adds_512, 64,
                                 static_cast<bool>(__builtin_cpu_supports("avx512f")))
        ->Threads(threads)
        ->UseRealTime();
    benchmark::RegisterBenchmark("read", reading)
        ->Arg(32 << 10)
        ->Arg(1 << 20)
        ->Arg(16 << 20)
        ->Arg(256 << 20)
        ->Threads(threads)
        ->UseRealTime();
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  add_all();
  benchmark::RunSpecifiedBenchmarks();
}
