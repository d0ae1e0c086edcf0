// mortise under threads: no byte of the device is in two blocks, whatever streams take from each other meanwhile, and
// nothing is lost.
#include <schedules/seeds.h>
#include <support/unseen.h>

#include <mortise/mortise_allocator.h>
#include <tenon/core/error.h>
#include <tenon/memory/forwarding.h>
#include <tenon/memory/sources/address_only_source.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace tenon::mortise {
namespace {

using tenon::test::run_scheduled;
using tenon::test::try_seeds;
using tenon::test::Unseen;

constexpr std::size_t kPage = 2 * MiB;

/// Knows which bytes of the device's memory are behind an address, and which of them are in a block.
class WatchedDevice final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;

  void map(void* address, std::size_t bytes, Physical physical, std::size_t offset) override {
    ForwardingSource::map(address, bytes, physical, offset);
    const Unseen books;
    for (std::size_t done = 0; done < bytes; done += kPage)
      pages_[Address(address) + done] = physical.value << 40 | (offset + done);
    mapped_again_ += known_.insert(physical.value).second ? 0 : 1;
  }
  /// How often memory that has an address got another one.
  int mapped_again() const { return mapped_again_; }
  void unmap(void* address, std::size_t bytes) noexcept override {
    forget(address, bytes);
    ForwardingSource::unmap(address, bytes);
  }

  void take(const Block& block) {
    const Unseen books;
    for_each_part(block, [&](std::uint64_t begin, std::uint64_t end) {
      const auto after = taken_.upper_bound(begin);
      EXPECT_TRUE(after == taken_.end() || end <= after->first);
      EXPECT_TRUE(after == taken_.begin() || std::prev(after)->second <= begin);
      taken_[begin] = end;
    });
  }
  void give(const Block& block) {
    const Unseen books;
    for_each_part(block, [&](std::uint64_t begin, std::uint64_t) { taken_.erase(begin); });
  }

 private:
  void forget(void* address, std::size_t bytes) {
    const Unseen books;
    for (std::size_t done = 0; done < bytes; done += kPage) pages_.erase(Address(address) + done);
  }
  /// Calls visit(begin, end) with the bytes of the device, page by page.
  template <class Visit>
  void for_each_part(const Block& block, Visit&& visit) {
    const std::uintptr_t end = Address(block.data) + block.bytes;
    if (!traits().virtual_memory) return visit(Address(block.data), end);
    for (std::uintptr_t at = Address(block.data); at < end;) {
      const std::uintptr_t page = at / kPage * kPage, next = std::min(end, page + kPage);
      const auto found = pages_.find(page);
      ASSERT_NE(found, pages_.end()) << "a block lies where no memory is";
      visit(found->second + (at - page), found->second + (next - page));
      at = next;
    }
  }

  std::map<std::uintptr_t, std::uint64_t> pages_;  ///< by address: the physical memory and where in it
  std::map<std::uint64_t, std::uint64_t> taken_;
  std::set<std::uint64_t> known_;
  int mapped_again_ = 0;
};

struct Scene {
  std::vector<std::pair<const char*, const char*>> options = {{"slack_fraction", "0"}, {"growth_fraction", "0"}};
  std::size_t capacity_bytes = 0;
  std::size_t page_bytes = kPage;
  bool is_joining = true;
  std::uint64_t streams = 2;
  int steps = 30;
  std::uint64_t sizes = 6;  ///< of the smallest ones so many
};

/// What one thread does: mostly it takes and gives, on any of the streams.
class Player {
 public:
  Player(const Scene& scene, std::uint64_t seed, MortiseAllocator& policy, AddressOnlySource& device,
         WatchedDevice& watched)
      : scene_(scene), random_(seed), policy_(policy), device_(device), watched_(watched) {}

  void play() {
    for (int step = 0; step < scene_.steps && !::testing::Test::HasFailure(); ++step) {
      if (live_.empty() || random_() % 5 < 2 + (live_.size() < 4))
        take();
      else
        give(random_() % live_.size());
      if (random_() % 8 == 0) device_.complete(StreamRef{random_() % scene_.streams});
      if (random_() % 64 == 0) policy_.trim(random_() % 2 * 8 * MiB);
      if (random_() % 64 == 0) policy_.limit_changed(random_() % 2 * 24 * MiB);
      if (random_() % 64 == 0) report();
    }
    while (!live_.empty()) give(live_.size() - 1);
  }

 private:
  void take() {
    constexpr std::size_t kSizes[] = {600, 5000, 300 * KiB, 3 * MiB, 5 * MiB + 512, 7 * MiB};
    const StreamRef stream{random_() % scene_.streams};
    try {
      live_.push_back(policy_.allocate({.bytes = kSizes[random_() % scene_.sizes], .stream = stream}));
      watched_.take(live_.back());
    } catch (const OutOfMemory&) {
      EXPECT_NE(scene_.capacity_bytes, 0U);
    }
  }
  void give(std::size_t which) {
    std::swap(live_[which], live_.back());
    const Block block = live_.back();
    live_.pop_back();
    const StreamRef other{random_() % scene_.streams};
    if (random_() % 6 == 0) policy_.record_use(block, other);
    watched_.give(block);
    policy_.deallocate(block, random_() % 8 == 0 ? other : block.request.stream);
  }
  void report() {
    PolicyStats stats;
    policy_.report(stats);
    EXPECT_GE(stats.cached_bytes, stats.largest_free_bytes);
  }

  const Scene& scene_;
  std::mt19937_64 random_;
  MortiseAllocator& policy_;
  AddressOnlySource& device_;
  WatchedDevice& watched_;
  std::vector<Block> live_;
};

void expect_no_byte_twice(const Scene& scene, int seeds) {
  int joints = 0;
  try_seeds(seeds, [&](std::uint64_t seed) {
    AddressOnlySource device(
        {.capacity_bytes = scene.capacity_bytes, .page_bytes = scene.page_bytes, .manual_completion = true});
    WatchedDevice watched(device);
    Options options(MortiseAllocator::options());
    for (const auto& [name, value] : scene.options) options.set_text(name, value);
    {
      MortiseAllocator policy({.source = watched, .options = options});
      const auto body = [&](std::uint64_t thread) {
        return [&, thread] { Player(scene, seed * 8 + thread, policy, device, watched).play(); };
      };
      run_scheduled(seed, {body(0), body(1), body(2)});
      policy.check_invariants();
      policy.limit_changed(0);
      policy.trim(0);
      policy.check_invariants();
      EXPECT_EQ(device.used_bytes(), 0U);
    }
    EXPECT_EQ(device.reserved_address_bytes(), 0U);
    joints += watched.mapped_again();
  });
  if (scene.is_joining) {
    EXPECT_GT(joints, 0) << "the test has to see joints";
  }
}

TEST(MortiseSchedules, NoByteIsInTwoBlocksOfStreamsThatShareThePages) { expect_no_byte_twice({}, 60); }

TEST(MortiseSchedules, NoByteIsInTwoBlocksWhenTheDeviceIsFull) {
  expect_no_byte_twice({.capacity_bytes = 20 * MiB}, 60);
}

TEST(MortiseSchedules, NoByteIsInTwoBlocksBeyondASoftLimit) {
  expect_no_byte_twice({.options = {{"soft_limit", "12MiB"}}, .is_joining = false, .streams = 3}, 50);
}

TEST(MortiseSchedules, NoByteIsInTwoBlocksWhereThereAreNoPages) {
  expect_no_byte_twice({.page_bytes = 0, .is_joining = false}, 30);
}

/// So many in a row that locks are owned, and taken from their owners.
TEST(MortiseSchedules, NoByteIsInTwoBlocksWhileLocksChangeTheirOwners) {
  expect_no_byte_twice({.is_joining = false, .streams = 4, .steps = 700, .sizes = 4}, 8);
}

}  // namespace
}  // namespace tenon::mortise
