// The workloads of `tenon bench` under Google Benchmark: its clock, its number of iterations and its means, and no
// turns. The loops are the same code, the allocators the same plugins: what differs is how the time is taken.
//
//   tenon_allocator_bench [SPEC…] [--benchmark_…]   caching and expandable where nobody is named; `harness` always
#include <tenon/measure/bench/workload.h>
#include <tenon/replay/engine/sleeping_thread.h>
#include <tenon/runtime/allocator_spec.h>

#include <benchmark/benchmark.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace tenon::bench {
namespace {

constexpr std::uint64_t kBatch = 1024;
constexpr std::uint64_t kBatchOfThreads = 20'000;

/// An iteration is a pair of allocate and free.
void measure_pairs(benchmark::State& state, const std::string& name, const StackConfig& allocator) {
  const auto workload = measure::make_workload({.name = name}, allocator);
  workload->warm_up(kBatch);
  const std::uint64_t batch = workload->repeat(kBatch);
  while (state.KeepRunningBatch(static_cast<std::int64_t>(batch))) workload->repeat(batch);
}

/// Threads begin and end outside of the time, which is the workload's own.
void measure_threads(benchmark::State& state, const std::string& name, const StackConfig& allocator) {
  const auto workload = measure::make_workload({.name = name}, allocator);
  workload->warm_up(kBatchOfThreads);
  while (state.KeepRunningBatch(kBatchOfThreads)) state.SetIterationTime(workload->run(kBatchOfThreads).ns * 1e-9);
}

void add(const std::string& subject, const StackConfig& allocator) {
  for (const char* name :
       {"hot/512", "hot/4KiB", "hot/1MiB", "hot/3900KiB", "hot/64MiB", "lifo/1000", "lifo/10000", "random/1000",
        "random/10000", "cached/100", "cached/1000", "cached/10000", "cached/100000", "streams/4"})
    benchmark::RegisterBenchmark((subject + "/" + name).c_str(), measure_pairs, name, allocator);
  for (const char* name : {"threads/1", "threads/2", "threads-random/1", "threads-random/2"})
    benchmark::RegisterBenchmark((subject + "/" + name).c_str(), measure_threads, name, allocator)->UseManualTime();
}

}  // namespace
}  // namespace tenon::bench

int main(int argc, char** argv) try {
  const tenon::replay::SleepingThread sleeping;
  benchmark::Initialize(&argc, argv);
  std::vector<std::string> specs(argv + 1, argv + argc);
  if (specs.empty()) specs = {"caching", "expandable"};
  tenon::bench::add("harness", tenon::measure::harness_allocator());
  for (const std::string& spec : specs) tenon::bench::add(spec, tenon::allocator_from_spec(spec));
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
