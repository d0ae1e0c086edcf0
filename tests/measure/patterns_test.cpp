// The made-up workloads: which requests each of them makes, and that it counts its pairs. Nothing here is timed.
#include <tenon/core/units.h>
#include <tenon/measure/bench/pair_count.h>
#include <tenon/measure/bench/workload.h>
#include <tenon/memory/allocator.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tenon::measure {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;

/// What a workload asked for, in its order.
struct Told {
  std::vector<std::size_t> sizes;
  std::vector<std::uint64_t> streams, uses;
  std::vector<const void*> made, freed;

  std::size_t live() const { return made.size() - freed.size(); }
};

class Telling final : public Allocator {
 public:
  explicit Telling(Told& told) : told_(told) {}
  Block allocate(const Request& request) override {
    const std::lock_guard lock(mutex_);
    next_ += 1 << 27;
    told_.sizes.push_back(request.bytes);
    told_.streams.push_back(request.stream.id);
    told_.made.push_back(reinterpret_cast<void*>(next_));
    return {.data = reinterpret_cast<void*>(next_), .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block& block, StreamRef) noexcept override {
    const std::lock_guard lock(mutex_);
    told_.freed.push_back(block.data);
  }
  void record_use(const Block&, StreamRef stream) override {
    const std::lock_guard lock(mutex_);
    told_.uses.push_back(stream.id);
  }
  bool is_thread_safe() const override { return true; }

 private:
  Told& told_;
  std::mutex mutex_;
  std::uintptr_t next_ = 1 << 27;
};

std::unique_ptr<Workload> made(const std::string& name, Told& told) {
  StackConfig config;
  config.policy.name = "telling";
  config.policy.create = [&told](const AllocatorContext&) { return std::make_unique<Telling>(told); };
  return make_workload({.name = name}, config);
}

/// What so many pairs add, once the workload is in its steady state.
Told told_by(const std::string& name, std::uint64_t pairs) {
  Told told;
  const auto workload = made(name, told);
  const Told before = told;
  workload->repeat(pairs);
  Told added;
  added.sizes.assign(told.sizes.begin() + static_cast<std::ptrdiff_t>(before.sizes.size()), told.sizes.end());
  added.streams.assign(told.streams.begin() + static_cast<std::ptrdiff_t>(before.streams.size()), told.streams.end());
  added.made.assign(told.made.begin() + static_cast<std::ptrdiff_t>(before.made.size()), told.made.end());
  added.freed.assign(told.freed.begin() + static_cast<std::ptrdiff_t>(before.freed.size()), told.freed.end());
  added.uses = told.uses;
  return added;
}

TEST(Patterns, HotHasOneBlockAtATime) {
  const Told told = told_by("hot/4KiB", 5);
  EXPECT_THAT(told.sizes, ElementsAre(4 * KiB, 4 * KiB, 4 * KiB, 4 * KiB, 4 * KiB));
  EXPECT_EQ(told.made, told.freed);
}

TEST(Patterns, LifoFreesWholePassesInReverse) {
  EXPECT_THAT(told_by("lifo/3", 3).made, SizeIs(3)) << "of one pass";
  const Told told = told_by("lifo/3", 4);
  ASSERT_THAT(told.made, SizeIs(6));
  const auto& m = told.made;
  EXPECT_THAT(told.freed, ElementsAre(m[2], m[1], m[0], m[5], m[4], m[3]));
  EXPECT_TRUE(std::equal(told.sizes.begin(), told.sizes.begin() + 3, told.sizes.begin() + 3)) << "the same each time";
}

TEST(Patterns, RandomReplacesOneOfItsBlocksByAnother) {
  const Told told = told_by("random/10", 50);
  EXPECT_THAT(told.made, SizeIs(50));
  EXPECT_THAT(told.freed, SizeIs(50));
  EXPECT_EQ(told.live(), 0u) << "as many as before";
}

TEST(Patterns, CachedIsHotBesideWhatItFreed) {
  Told all;
  const auto workload = made("cached/4", all);
  EXPECT_THAT(all.made, SizeIs(12)) << "each freed one between two live ones";
  EXPECT_THAT(all.freed, ElementsAre(all.made[0], all.made[3], all.made[6], all.made[9]));
  const Told told = told_by("cached/4", 3);
  EXPECT_THAT(told.sizes, ElementsAre(300 * KiB, 300 * KiB, 300 * KiB));
  EXPECT_EQ(told.made, told.freed);
}

TEST(Patterns, StreamsGoRoundAndEachBlockIsUsedOnTheNextToo) {
  const Told told = told_by("streams/3", 5);
  EXPECT_THAT(told.sizes, Each(4 * KiB));
  EXPECT_THAT(told.streams, ElementsAre(1, 2, 3, 1, 2));
  EXPECT_THAT(told.uses, ElementsAre(2, 3, 1, 2, 3));
  EXPECT_EQ(told.made, told.freed);
}

TEST(Patterns, ThreadsHaveAStreamOfTheirOwnEach) {
  const Told told = told_by("threads/2", 5);
  EXPECT_THAT(told.sizes, Each(4 * KiB));
  EXPECT_EQ(std::ranges::count(told.streams, 1), 5);
  EXPECT_EQ(std::ranges::count(told.streams, 2), 5);
  EXPECT_EQ(told.live(), 0u);
}

TEST(Patterns, CountEveryPairThatTheyPlan) {
  static const PairPage page;  // bench_pairs() stays this one
  page.use();
  for (const char* name :
       {"hot/4KiB", "lifo/3", "random/10", "cached/4", "streams/3", "threads/2", "threads-random/2"}) {
    Told told;
    const auto workload = made(name, told);
    const std::uint64_t planned = page.pairs().planned(), done = page.pairs().done();
    EXPECT_EQ(planned, done) << name << ": what is made at first";
    const std::uint64_t pairs = workload->repeat(5) * (std::string(name).starts_with("threads") ? 2 : 1);
    EXPECT_EQ(page.pairs().planned() - planned, pairs) << name;
    EXPECT_EQ(page.pairs().done() - done, pairs) << name;
  }
}

}  // namespace
}  // namespace tenon::measure
