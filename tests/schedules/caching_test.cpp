// The caching policy under threads: blocks do not overlap, nothing is lost, and the peaks are those of sums that were.
#include <schedules/seeds.h>
#include <support/unseen.h>

#include <caching/caching_allocator.h>
#include <tenon/memory/sources/address_only_source.h>

#include <array>
#include <map>
#include <mutex>
#include <random>
#include <vector>

namespace tenon::caching {
namespace {

using tenon::test::run_scheduled;
using tenon::test::try_seeds;
using tenon::test::Unseen;

TEST(PeaksSchedules, AreAtLeastWhatAllStreamsHadAtOneTime) {
  constexpr std::size_t kStreams = 3;
  try_seeds(100, [](std::uint64_t seed) {
    Peaks peaks;
    std::array<Arena, kStreams> arenas{Arena({0}, 0), Arena({1}, 0), Arena({2}, 0)};
    for (Arena& arena : arenas) peaks.add(arena);
    const auto rise = [&](std::size_t stream, int steps) {
      return [&peaks, &arena = arenas[stream], steps] {
        for (int step = 0; step < steps; ++step) {
          const std::lock_guard lock(arena.mutex);
          if (arena.counters.increase(false, kAllocatedBytes, 1)) peaks.settle(arena);
        }
      };
    };
    const auto fall = [&](std::size_t stream, int steps) {
      const std::lock_guard lock(arenas[stream].mutex);
      arenas[stream].counters.decrease(false, kAllocatedBytes, steps);
      if (arenas[stream].counters.special & Counters::kResting) peaks.settle(arenas[stream]);
    };
    // Each wave passes the highest one before it by one step, so that headroom is shared out until its very end.
    for (int wave = 1; wave <= 8; ++wave) {
      const int others = 2 + wave % 3;
      const int last = 4 + wave - others;
      run_scheduled(seed * 100 + static_cast<std::uint64_t>(wave), {rise(0, 4), rise(1, others), rise(2, last)});
      const int sum = 4 + others + last;
      fall(0, 4), fall(1, others), fall(2, last);
      EXPECT_EQ(peaks.stat(0, kAllocatedBytes).peak, sum) << "wave " << wave;
    }
    peaks.check_invariants();
  });
}

TEST(CachingSchedules, NoTwoThreadsGetTheSameBytes) {
  try_seeds(60, [](std::uint64_t seed) {
    AddressOnlySource device({.manual_completion = true});
    CachingAllocator policy(device, Settings{});
    std::map<char*, std::size_t> taken;
    const auto take = [&](const Block& block) {
      const Unseen books;
      auto* const begin = static_cast<char*>(block.data);
      const auto after = taken.upper_bound(begin);
      EXPECT_TRUE(after == taken.end() || begin + block.bytes <= after->first) << "seed " << seed;
      if (after != taken.begin()) {
        const auto& [address, bytes] = *std::prev(after);
        EXPECT_LE(address + bytes, begin);
      }
      taken[begin] = block.bytes;
    };
    const auto give = [&](const Block& block) {
      const Unseen books;
      taken.erase(static_cast<char*>(block.data));
    };
    const auto body = [&](std::uint64_t thread) {
      return [&, thread] {
        std::mt19937_64 random(seed * 8 + thread);
        constexpr std::size_t kSizes[] = {300, 5000, 3 * MiB};
        std::vector<Block> live;
        for (int step = 0; step < 25; ++step) {
          const StreamRef stream{random() % 2};
          if (live.empty() || random() % 3 != 0) {
            live.push_back(policy.allocate({.bytes = kSizes[random() % 3], .stream = stream}));
            take(live.back());
          } else {
            const Block block = live.back();
            live.pop_back();
            give(block);
            if (random() % 3 == 0) policy.record_use(block, stream);
            policy.deallocate(block, random() % 4 == 0 ? stream : block.request.stream);
          }
          if (random() % 8 == 0) device.complete(stream);
          if (random() % 16 == 0) policy.trim(0);
        }
        for (const Block& block : live) {
          give(block);
          policy.deallocate(block, block.request.stream);
        }
      };
    };
    run_scheduled(seed, {body(0), body(1), body(2)});
    device.synchronize();
    policy.trim(0);
    policy.check_invariants();
    PolicyStats stats;
    policy.report(stats);
    EXPECT_EQ(stats.allocation[0].current, 0);
    EXPECT_EQ(stats.active[0].current, 0);
    EXPECT_EQ(device.used_bytes(), 0u);
  });
}

}  // namespace
}  // namespace tenon::caching
