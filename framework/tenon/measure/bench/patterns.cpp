// The patterns of the peers' published figures, on one thread and on several.
#include <tenon/measure/bench/pair_count.h>
#include <tenon/measure/bench/patterns.h>
#include <tenon/measure/bench/thread_team.h>

#include <tenon/core/units.h>
#include <tenon/memory/sources/address_only_source.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace tenon::measure {

namespace {

/// Log-uniform from 2^low to 2^high bytes.
std::vector<std::size_t> sizes(std::size_t count, unsigned seed, double low = 9, double high = 26) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> exponent(low, high);
  std::vector<std::size_t> result(count);
  for (std::size_t& size : result) size = static_cast<std::size_t>(std::exp2(exponent(random)));
  return result;
}

/// An allocator in service on a device of its own.
class OnAddresses : public Workload {
 public:
  explicit OnAddresses(const StackConfig& allocator) : stack_(AllocatorStack::make(source_, allocator)) {}

 protected:
  Block allocate(std::size_t bytes, std::uint64_t stream = 0) {
    return stack_->allocate({.bytes = bytes, .stream = {stream}});
  }

  AddressOnlySource source_;
  std::shared_ptr<AllocatorStack> stack_;
};

class Hot : public OnAddresses {
 public:
  Hot(const StackConfig& allocator, std::size_t bytes) : OnAddresses(allocator), bytes_(bytes) {}
  std::uint64_t repeat(std::uint64_t pairs) override {
    bench_pairs().plan(pairs);
    for (std::uint64_t i = 0; i < pairs; ++i) {
      stack_->deallocate(allocate(bytes_));
      count_.one();
    }
    return pairs;
  }

 private:
  const std::size_t bytes_;
  PairCount& count_ = bench_pairs().of_thread(0);
};

class Lifo final : public OnAddresses {
 public:
  Lifo(const StackConfig& allocator, std::size_t count)
      : OnAddresses(allocator), wanted_(sizes(count, 1)), blocks_(count) {}
  std::uint64_t repeat(std::uint64_t pairs) override {
    const std::uint64_t passes = (pairs + wanted_.size() - 1) / wanted_.size();
    bench_pairs().plan(passes * wanted_.size());
    for (std::uint64_t pass = 0; pass < passes; ++pass) {
      for (std::size_t i = 0; i < wanted_.size(); ++i) {
        blocks_[i] = allocate(wanted_[i]);
        count_.one();
      }
      for (std::size_t i = wanted_.size(); i-- > 0;) stack_->deallocate(blocks_[i]);
    }
    return passes * wanted_.size();
  }
  std::uint64_t pairs_to_warm_up() const override { return wanted_.size(); }

 private:
  const std::vector<std::size_t> wanted_;
  std::vector<Block> blocks_;
  PairCount& count_ = bench_pairs().of_thread(0);
};

/// What random replacement does, step by step. Threads share one: each begins elsewhere in it.
class ReplacementSteps {
 public:
  static constexpr std::size_t kCount = 1 << 16;

  ReplacementSteps() : wanted_(sizes(kCount, 2)), victims_(kCount) {
    std::mt19937 random(3);
    for (std::uint32_t& victim : victims_) victim = static_cast<std::uint32_t>(random());
  }
  std::size_t bytes(std::size_t step) const { return wanted_[step % kCount]; }
  /// Any number: the victim's, as far as there are so many.
  std::uint32_t victim(std::size_t step) const { return victims_[step % kCount]; }

 private:
  const std::vector<std::size_t> wanted_;
  std::vector<std::uint32_t> victims_;
};

/// Blocks of one stream, of which random ones are replaced.
class Replacing {
 public:
  Replacing(AllocatorStack& stack, const ReplacementSteps& steps, std::size_t count, std::uint64_t stream,
            std::size_t first_step = 0)
      : stack_(stack),
        steps_(steps),
        stream_(stream),
        blocks_(count),
        count_(bench_pairs().of_thread(stream)),
        step_(first_step) {
    bench_pairs().plan(count);
    for (std::size_t i = 0; i < count; ++i) {
      blocks_[i] = allocate(steps_.bytes(first_step + i));
      count_.one();
    }
    replace(20 * count);  // to the steady state
  }
  void replace(std::uint64_t pairs) {
    bench_pairs().plan(pairs);
    for (std::uint64_t n = 0; n < pairs; ++n) {
      const std::size_t step = step_++;
      // The upper half of the product is below the number of blocks, without a division.
      Block& block = blocks_[steps_.victim(step) * std::uint64_t{blocks_.size()} >> 32];
      stack_.deallocate(block);
      block = {};
      block = allocate(steps_.bytes(step));
      count_.one();
    }
  }
  /// One in e^3 blocks is left out. More than a round of the steps could not be kept in any cache of a core's own.
  std::uint64_t pairs_to_warm_up() const { return std::min(3 * blocks_.size(), ReplacementSteps::kCount); }

 private:
  Block allocate(std::size_t bytes) { return stack_.allocate({.bytes = bytes, .stream = {stream_}}); }

  AllocatorStack& stack_;
  const ReplacementSteps& steps_;
  const std::uint64_t stream_;
  std::vector<Block> blocks_;
  PairCount& count_;
  std::size_t step_;
};

class Random final : public OnAddresses {
 public:
  Random(const StackConfig& allocator, std::size_t count)
      : OnAddresses(allocator), blocks_(*stack_, steps_, count, 0) {}
  std::uint64_t repeat(std::uint64_t pairs) override {
    blocks_.replace(pairs);
    return pairs;
  }
  std::uint64_t pairs_to_warm_up() const override { return blocks_.pairs_to_warm_up(); }

 private:
  const ReplacementSteps steps_;
  Replacing blocks_;
};

/// The cached blocks have no free neighbour: live ones stand between them.
class Cached final : public Hot {
 public:
  Cached(const StackConfig& allocator, std::size_t count) : Hot(allocator, 300 * KiB) {
    std::vector<Block> freed;
    bench_pairs().plan(count);
    for (const std::size_t bytes : sizes(count, 5, 9, 22)) {
      bench_pairs().of_thread(0).one();
      freed.push_back(allocate(bytes));
      allocate(512);
      allocate(1 * MiB + 512);
    }
    for (const Block& block : freed) stack_->deallocate(block);
  }
};

class Streams final : public OnAddresses {
 public:
  Streams(const StackConfig& allocator, std::uint64_t count) : OnAddresses(allocator), count_(count) {}
  std::uint64_t repeat(std::uint64_t pairs) override {
    bench_pairs().plan(pairs);
    for (std::uint64_t i = 0; i < pairs; ++i) {
      done_.one();
      const std::uint64_t stream = next_;
      next_ = stream % count_ + 1;
      const Block block = allocate(4 * KiB, stream);
      stack_->record_use(block, {next_});
      stack_->deallocate(block);
    }
    return pairs;
  }

 private:
  const std::uint64_t count_;
  std::uint64_t next_ = 1;
  PairCount& done_ = bench_pairs().of_thread(0);
};

/// Wall-clock time, from when all threads have come to when the last is done: pairs of one thread.
class HotOnThreads final : public OnAddresses {
 public:
  HotOnThreads(const StackConfig& allocator, std::size_t count)
      : OnAddresses(allocator),
        team_(
            count, [](std::size_t) {},
            [this](std::size_t thread, std::uint64_t pairs) {
              bench_pairs().plan(pairs);
              PairCount& count = bench_pairs().of_thread(thread);
              for (std::uint64_t i = 0; i < pairs; ++i) {
                stack_->deallocate(allocate(4 * KiB, thread + 1));
                count.one();
              }
            }) {}
  std::uint64_t repeat(std::uint64_t pairs) override { return run(pairs).pairs; }
  Timed run(std::uint64_t pairs) override { return {team_.run(pairs), pairs}; }

 private:
  ThreadTeam team_;  // the last member: it is the first to end
};

// Note [As many blocks on more threads]
// Threads share kBlocksOfThreads live blocks: what 8 threads keep of the throughput of 2 is to say what threads cost
// each other. With as many blocks for each, 8 threads have 4 times the blocks and records that 2 have, which fit no
// cache of two cores any more, and an allocator that does nothing took 4.9 times as long, where 4 times loses nothing.

/// The same; each thread makes its part of the blocks, and replaces them.
class RandomOnThreads final : public OnAddresses {
 public:
  RandomOnThreads(const StackConfig& allocator, std::size_t count)
      : OnAddresses(allocator),
        blocks_(count),
        team_(
            count,
            [this, count](std::size_t thread) {
              const std::size_t first_step = thread * (ReplacementSteps::kCount / count);
              blocks_[thread] = std::make_unique<Replacing>(
                  *stack_, steps_, std::max<std::size_t>(1, kBlocksOfThreads / count), thread + 1, first_step);
            },
            [this](std::size_t thread, std::uint64_t pairs) { blocks_[thread]->replace(pairs); }) {}
  std::uint64_t repeat(std::uint64_t pairs) override { return run(pairs).pairs; }
  Timed run(std::uint64_t pairs) override { return {team_.run(pairs), pairs}; }
  std::uint64_t pairs_to_warm_up() const override { return blocks_.front()->pairs_to_warm_up(); }

 private:
  static constexpr std::size_t kBlocksOfThreads = 10'000;
  const ReplacementSteps steps_;
  std::vector<std::unique_ptr<Replacing>> blocks_;
  ThreadTeam team_;
};

template <class W>
std::unique_ptr<Workload> make(const StackConfig& allocator, std::uint64_t number) {
  return std::make_unique<W>(allocator, number);
}

constexpr PatternForm kForms[] = {
    {"hot", "SIZE", "one block, allocate and free", 1 * TiB, &make<Hot>},
    {"lifo", "N", "N allocations, freed in reverse", 1'000'000, &make<Lifo>},
    {"random", "N", "of N live blocks a random one is replaced", 1'000'000, &make<Random>},
    {"cached", "N", "hot, with N cached blocks of other sizes around", 1'000'000, &make<Cached>},
    {"streams", "N", "hot on N streams in turn, each block used on the next one too", 1024, &make<Streams>},
    {"threads", "N", "hot on N threads at once, each on a stream of its own", 256, &make<HotOnThreads>},
    {"threads-random", "N", "the blocks of random/10000 shared out to N threads, each on a stream of its own", 256,
     &make<RandomOnThreads>},
};

}  // namespace

std::span<const PatternForm> pattern_forms() { return kForms; }

}  // namespace tenon::measure
