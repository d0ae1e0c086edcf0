// Host time of allocators through AllocatorStack, statistics on, over a device that costs nothing: the patterns of the
// peers' published figures. Every row beside a null allocator (the harness) and a sleeping second thread (a mutex is
// cheaper in a single-threaded process, which no training process is).
//
//   hot      one block, allocate and free                     lifo N    N allocations, freed in reverse
//   random N of N live blocks a random one is replaced        cached N  hot, with N cached blocks of other sizes around
#include "subjects.h"

#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <benchmark/benchmark.h>

#include <cmath>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace tenon::bench {
namespace {

/// Log-uniform from 512 B to 64 MiB, as in the peers' figures.
std::vector<std::size_t> sizes(std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> exponent(9, 26);
  std::vector<std::size_t> result(count);
  for (std::size_t& size : result) size = static_cast<std::size_t>(std::exp2(exponent(random)));
  return result;
}

class Sleeper {
 public:
  Sleeper()
      : thread_([this] {
          std::unique_lock lock(mutex_);
          wake_.wait(lock, [this] { return done_; });
        }) {}
  ~Sleeper() {
    {
      std::lock_guard lock(mutex_);
      done_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;
};

struct Bench {
  AddressOnlySource source;
  std::shared_ptr<AllocatorStack> stack;
  explicit Bench(const Subject& subject) : stack(AllocatorStack::make(source, subject.config())) {}
};

void hot(benchmark::State& state, const Subject& subject, std::size_t bytes) {
  Bench bench(subject);
  for (auto _ : state) {
    Block block = bench.stack->allocate({.bytes = bytes});
    benchmark::DoNotOptimize(block);
    bench.stack->deallocate(block);
  }
}

void lifo(benchmark::State& state, const Subject& subject, std::size_t count) {
  Bench bench(subject);
  const auto wanted = sizes(count, 1);
  std::vector<Block> blocks(count);
  for (auto _ : state) {
    for (std::size_t i = 0; i < count; ++i) blocks[i] = bench.stack->allocate({.bytes = wanted[i]});
    for (std::size_t i = count; i-- > 0;) bench.stack->deallocate(blocks[i]);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(count));
}

/// One iteration is one pair. `stream` and `stack` let two threads share an allocator.
void replace_at_random(benchmark::State& state, AllocatorStack& stack, std::size_t count, std::uint64_t stream) {
  const auto wanted = sizes(1 << 16, 2 + static_cast<unsigned>(stream));
  std::mt19937 random(3 + static_cast<unsigned>(stream));
  std::vector<std::uint32_t> victims(1 << 16);
  for (std::uint32_t& victim : victims) victim = static_cast<std::uint32_t>(random() % count);
  std::vector<Block> blocks(count);
  for (std::size_t i = 0; i < count; ++i)
    blocks[i] = stack.allocate({.bytes = wanted[i % wanted.size()], .stream = {stream}});
  std::size_t step = 0;
  const auto pair = [&] {
    const std::size_t i = step++ & 0xffff;
    Block& block = blocks[victims[i]];
    stack.deallocate(block);
    block = stack.allocate({.bytes = wanted[i], .stream = {stream}});
  };
  for (std::size_t i = 0; i < 20 * count; ++i) pair();  // to the steady state
  for (auto _ : state) pair();
  for (const Block& block : blocks) stack.deallocate(block);
}

void random_pairs(benchmark::State& state, const Subject& subject, std::size_t count) {
  Bench bench(subject);
  replace_at_random(state, *bench.stack, count, 0);
}

/// hot with `count` cached blocks, none adjacent to another, on the same stream.
void among_cached(benchmark::State& state, const Subject& subject, std::size_t count) {
  Bench bench(subject);
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> exponent(9, 22);
  std::vector<Block> kept, freed;
  for (std::size_t i = 0; i < count; ++i) {
    freed.push_back(bench.stack->allocate({.bytes = static_cast<std::size_t>(std::exp2(exponent(random)))}));
    kept.push_back(bench.stack->allocate({.bytes = 512}));
    kept.push_back(bench.stack->allocate({.bytes = 1 * MiB + 512}));
  }
  for (const Block& block : freed) bench.stack->deallocate(block);
  for (auto _ : state) {
    Block block = bench.stack->allocate({.bytes = 300 * KiB});
    benchmark::DoNotOptimize(block);
    bench.stack->deallocate(block);
  }
  for (const Block& block : kept) bench.stack->deallocate(block);
}

/// The shared allocator of a benchmark that runs on several threads.
std::shared_ptr<Bench> shared_bench;

void hot_on_own_streams(benchmark::State& state, const Subject& subject, std::size_t bytes) {
  if (state.thread_index() == 0) shared_bench = std::make_shared<Bench>(subject);
  std::shared_ptr<Bench> bench;
  const StreamRef stream{static_cast<std::uint64_t>(state.thread_index()) + 1};
  for (auto _ : state) {
    if (!bench) bench = shared_bench;
    Block block = bench->stack->allocate({.bytes = bytes, .stream = stream});
    benchmark::DoNotOptimize(block);
    bench->stack->deallocate(block);
  }
}

void random_on_own_streams(benchmark::State& state, const Subject& subject, std::size_t count) {
  static std::mutex mutex;
  {
    std::lock_guard lock(mutex);
    if (!shared_bench || state.thread_index() == 0)
      shared_bench = shared_bench ? shared_bench : std::make_shared<Bench>(subject);
  }
  std::shared_ptr<Bench> bench = shared_bench;
  replace_at_random(state, *bench->stack, count, static_cast<std::uint64_t>(state.thread_index()) + 1);
}

void forget_shared(const benchmark::State&) { shared_bench.reset(); }

void add(const Subject& subject) {
  const std::string& name = subject.name;
  for (const std::size_t bytes : {512 * std::size_t{1}, 4 * KiB, 1 * MiB, 3900 * KiB, 64 * MiB})
    benchmark::RegisterBenchmark((name + "/hot/" + format_size_exact(bytes)).c_str(),
                                 [=](benchmark::State& state) { hot(state, subject, bytes); });
  for (const std::size_t count : {1000, 10000})
    benchmark::RegisterBenchmark((name + "/lifo/" + std::to_string(count)).c_str(),
                                 [=](benchmark::State& state) { lifo(state, subject, count); });
  for (const std::size_t count : {1000, 10000})
    benchmark::RegisterBenchmark((name + "/random/" + std::to_string(count)).c_str(),
                                 [=](benchmark::State& state) { random_pairs(state, subject, count); });
  if (!subject.caches) return;
  for (const std::size_t count : {100, 1000, 10000, 100000})
    benchmark::RegisterBenchmark((name + "/cached/" + std::to_string(count)).c_str(),
                                 [=](benchmark::State& state) { among_cached(state, subject, count); });
  for (const int threads : {1, 2}) {
    benchmark::RegisterBenchmark((name + "/own_streams/hot/4KiB").c_str(),
                                 [=](benchmark::State& state) { hot_on_own_streams(state, subject, 4 * KiB); })
        ->Threads(threads)
        ->UseRealTime()
        ->Teardown(forget_shared);
    benchmark::RegisterBenchmark((name + "/own_streams/random/10000").c_str(),
                                 [=](benchmark::State& state) { random_on_own_streams(state, subject, 10000); })
        ->Threads(threads)
        ->UseRealTime()
        ->Teardown(forget_shared);
  }
}

}  // namespace
}  // namespace tenon::bench

int main(int argc, char** argv) {
  const tenon::bench::Sleeper sleeper;
  for (const tenon::bench::Subject& subject : tenon::bench::subjects()) tenon::bench::add(subject);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
