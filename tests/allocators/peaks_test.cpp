// Exact peaks over more streams than are busy at a time: what the counters say is what a watcher of every step saw.
#include <caching/caching_allocator.h>
#include <tenon/memory/sources/address_only_source.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace tenon::caching {
namespace {

/// The highest sums ever seen at the end of a step.
struct Watcher {
  using Row = std::array<std::int64_t, 3>;  // pools: all, small, large
  std::array<Row, 7> highest{};

  static std::array<const Stat*, 7> rows(const PolicyStats& stats) {
    return {stats.allocation,     stats.allocated_bytes,     stats.active, stats.active_bytes, stats.requested_bytes,
            stats.inactive_split, stats.inactive_split_bytes};
  }
  void look(const CachingAllocator& policy) {
    PolicyStats stats;
    policy.report(stats);
    const auto now = rows(stats);
    for (std::size_t metric = 0; metric < now.size(); ++metric)
      for (std::size_t pool = 0; pool < 3; ++pool)
        highest[metric][pool] = std::max(highest[metric][pool], now[metric][pool].current);
  }
  /// `whole_steps`: nothing happened unseen. An allocation first caches the blocks that a stream is done with, each by
  /// itself: what then waits in split blocks may be more than at the end.
  void expect_peaks_of(const CachingAllocator& policy, const char* when, bool whole_steps) const {
    PolicyStats stats;
    policy.report(stats);
    const auto now = rows(stats);
    for (std::size_t metric = 0; metric < now.size(); ++metric)
      for (std::size_t pool = 0; pool < 3; ++pool)
        if (whole_steps || metric < 5)
          EXPECT_EQ(now[metric][pool].peak, highest[metric][pool])
              << when << ", metric " << metric << ", pool " << pool;
        else
          EXPECT_GE(now[metric][pool].peak, highest[metric][pool])
              << when << ", metric " << metric << ", pool " << pool;
  }
};

struct History {
  std::uint64_t streams;
  bool expandable;
  bool crosses_streams;  ///< some blocks are used on a second stream, whose work is done some steps after the free
};

/// Waves of growth and shrinkage, each stream now and then.
void run(const History& history) {
  SCOPED_TRACE(testing::Message() << history.streams << " streams" << (history.expandable ? ", expandable" : "")
                                  << (history.crosses_streams ? ", crossing" : ""));
  constexpr unsigned kSeed = 23;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  AddressOnlySource device({.manual_completion = true});
  Settings settings;
  settings.expandable = history.expandable;
  CachingAllocator policy(device, settings);
  Watcher watcher;
  std::vector<Block> live;
  constexpr std::size_t kSizes[] = {300, 512, 5000, 70000, 3 * MiB};

  const auto step = [&](unsigned growth_percent) {
    if (live.empty() || random() % 100 < growth_percent) {
      const StreamRef stream{random() % history.streams};
      live.push_back(policy.allocate({.bytes = kSizes[random() % std::size(kSizes)], .stream = stream}));
    } else {
      std::swap(live[random() % live.size()], live.back());
      const Block block = live.back();
      live.pop_back();
      const StreamRef other{random() % history.streams};
      if (history.crosses_streams && random() % 4 == 0) policy.record_use(block, other);
      policy.deallocate(block, block.request.stream);
      if (random() % 8 == 0) device.complete(StreamRef{random() % history.streams});
    }
    watcher.look(policy);
    if (random() % 64 == 0) policy.check_invariants();
  };
  for (int i = 0; i < 1500; ++i) step(i / 300 % 2 == 0 ? 70 : 35);
  watcher.expect_peaks_of(policy, "whole history", !history.crosses_streams);

  policy.reset_stats(true, false);
  watcher = {};
  watcher.look(policy);
  for (int i = 0; i < 500; ++i) step(i / 100 % 2 == 0 ? 40 : 65);
  watcher.expect_peaks_of(policy, "since the reset", !history.crosses_streams);

  for (const Block& block : live) policy.deallocate(block, block.request.stream);
  device.synchronize();
  policy.check_invariants();
}

TEST(Peaks, AreExactOverAnyNumberOfStreams) {
  for (const std::uint64_t streams : {1, 2, 15, 16, 17, 18, 40, 300}) run({streams, false, false});
}

TEST(Peaks, AreExactOverManyStreamsOfExpandableSegments) {
  for (const std::uint64_t streams : {3, 40}) run({streams, true, false});
}

TEST(Peaks, AreExactWhereFreesWaitForOtherStreams) {
  for (const std::uint64_t streams : {2, 16, 40, 300}) run({streams, false, true});
  run({40, true, true});
}

}  // namespace
}  // namespace tenon::caching
