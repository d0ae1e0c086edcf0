// The host's own memory runs out in the middle of a request: nothing is lost, and no setting stays changed. This
// program's operator new fails where a test wants it to.
#include <caching/caching_allocator.h>
#include <tenon/core/units.h>
#include <tenon/memory/forwarding.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gtest/gtest.h>

#include <support/scratch_folder.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

/// This thread's n-th request for host memory from now on fails; 0: none does.
thread_local int failing_request = 0;

/// Requests for host memory that were not given back, of this whole program and the plugins in it.
std::atomic<long> kept{0};

void* take(std::size_t bytes, std::size_t alignment) {
  if (failing_request > 0 && --failing_request == 0) throw std::bad_alloc();
  void* const memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  kept.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

/// Not inlined: g++ would warn where it inlines delete and not new that they do not match.
[[gnu::noinline]] void give_back(void* memory) noexcept {
  if (memory != nullptr) kept.fetch_sub(1, std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t bytes) { return take(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return take(bytes, static_cast<std::size_t>(alignment));
}
// The library's temporary buffers come from these; under AddressSanitizer they would not be this program's without
// them.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }

namespace tenon {
namespace {

using caching::CachingAllocator;

/// Whether the call fails when its n-th request for host memory does; false when it makes fewer.
template <class Call>
bool fails_at(int n, Call call) {
  failing_request = n;
  try {
    call();
  } catch (const std::bad_alloc&) {
    failing_request = 0;
    return true;
  }
  failing_request = 0;
  return false;
}

// The pool has made all records of its first array, so that a rest that is cut off needs new ones.
TEST(HostMemory, RunsOutWhileAPoolLendsAndExpandableSegmentsStayOn) {
  int failures = 0;
  for (bool failed = true; failed; failures += failed) {
    SCOPED_TRACE(testing::Message() << "host request " << failures + 1 << " fails");
    AddressOnlySource device({.capacity_bytes = 100 * MiB});
    CachingAllocator policy(device, {});
    policy.begin_pool(1, {});
    policy.configure_pool(1, {.use_on_oom = true});
    for (int i = 0; i < 62; ++i) policy.allocate({.bytes = 512});
    const Block inside = policy.allocate({.bytes = 60 * MiB});
    policy.end_pool(1);
    policy.deallocate(inside, {});
    policy.set_expandable(true);
    policy.deallocate(policy.allocate({.bytes = 20 * MiB}), {});

    failed = fails_at(failures + 1, [&] { policy.allocate({.bytes = 50 * MiB}); });
    const std::size_t reserved = device.reserved_address_bytes();
    policy.allocate({.bytes = 1000, .stream = {7}});
    EXPECT_GT(device.reserved_address_bytes(), reserved) << "a new stream has an expandable segment";
    if (failed) {
      EXPECT_EQ(policy.allocate({.bytes = 50 * MiB}).data, inside.data) << "what failed can be had again";
    }
    policy.check_invariants();
  }
  EXPECT_GE(failures, 2);
}

/// Cached blocks between live ones: `beside` of `rest_bytes`, and one from which a request of `request_bytes` cuts off
/// another of that size.
struct Split {
  int beside;
  std::size_t rest_bytes, request_bytes, apart_bytes;
};

void expect_cached_after_failure(const Split& split) {
  SCOPED_TRACE(testing::Message() << split.beside << " blocks of " << split.rest_bytes << " bytes are cached");
  int failures = 0;
  for (bool failed = true; failed; failures += failed) {
    SCOPED_TRACE(testing::Message() << "host request " << failures + 1 << " fails");
    AddressOnlySource device;
    CachingAllocator policy(device, {});
    // One segment from which everything is cut in order.
    if (split.request_bytes > MiB) policy.deallocate(policy.allocate({.bytes = 600 * MiB}), {});
    std::vector<Block> cached;
    for (int i = 0; i < split.beside; ++i) {
      cached.push_back(policy.allocate({.bytes = split.rest_bytes}));
      policy.allocate({.bytes = split.apart_bytes});
    }
    cached.push_back(policy.allocate({.bytes = split.request_bytes + split.rest_bytes}));
    policy.allocate({.bytes = split.apart_bytes});
    for (const Block& block : cached) policy.deallocate(block, {});

    Block got;
    failed = fails_at(failures + 1, [&] { got = policy.allocate({.bytes = split.request_bytes}); });
    policy.check_invariants();
    if (failed) got = policy.allocate({.bytes = split.request_bytes});
    EXPECT_EQ(got.data, cached.back().data);
    EXPECT_EQ(got.bytes, split.request_bytes);
    policy.deallocate(got, {});
    policy.check_invariants();
  }
  EXPECT_GE(failures, 1);
}

// The numbers of blocks are those at which the index of equal and of different sizes takes more memory.
TEST(HostMemory, RunsOutWhileABlockIsSplitAndTheBlockStaysCached) {
  for (const int beside : {1, 5}) expect_cached_after_failure({beside, 1024, 3072, 512});
  for (const int beside : {1, 21}) expect_cached_after_failure({beside, 3 * MiB, 5 * MiB, MiB + 512});
}

/// No request for host memory fails while it lives.
class Spared {
 public:
  Spared() : kept_(std::exchange(failing_request, 0)) {}
  ~Spared() { failing_request = kept_; }
  Spared(const Spared&) = delete;
  Spared& operator=(const Spared&) = delete;

 private:
  const int kept_;
};

/// A device whose own records always have host memory: what fails is the policy's alone.
class SparedSource final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  void* acquire(std::size_t bytes) override { return Spared(), upstream_.acquire(bytes); }
  void release(void* address, std::size_t bytes) noexcept override { Spared(), upstream_.release(address, bytes); }
  void* reserve(std::size_t bytes) override { return Spared(), upstream_.reserve(bytes); }
  void unreserve(void* address, std::size_t bytes) noexcept override { Spared(), upstream_.unreserve(address, bytes); }
  Physical create(std::size_t bytes) override { return Spared(), upstream_.create(bytes); }
  void destroy(Physical physical, std::size_t bytes) noexcept override { Spared(), upstream_.destroy(physical, bytes); }
};

struct Course {
  bool has_failed = false;
  // Of the device, when all blocks have been given back and the cache is trimmed.
  std::size_t held_bytes = 0, held_address_bytes = 0;
};

/// A drawn course on three streams. The n-th request for host memory that its allocations and trims make fails, and the
/// block that failed is asked for again.
Course course_with_failure(const AllocatorInfo& info, const Options& options, int steps, int n) {
  AddressOnlySource device;
  SparedSource source(device);
  const auto policy = info.create({.source = source, .options = options});
  std::mt19937_64 random(51);
  std::vector<Block> live;
  live.reserve(static_cast<std::size_t>(steps));
  Course course;
  const auto succeeds = [&](const auto& call) {
    failing_request = std::exchange(n, 0);
    try {
      call();
    } catch (const std::bad_alloc&) {
      failing_request = 0;
      course.has_failed = true;
      EXPECT_NO_THROW(policy->check_invariants());
      return false;
    }
    n = std::exchange(failing_request, 0);
    return true;
  };
  for (int i = 0; i < steps; ++i) {
    if (i % 50 == 49) succeeds([&] { policy->trim(0); });
    if (!live.empty() && (live.size() > 150 || random() % 5 < 2)) {
      std::swap(live[random() % live.size()], live.back());
      policy->deallocate(live.back(), live.back().request.stream);
      live.pop_back();
      continue;
    }
    const std::size_t bytes = random() % 4 == 0 ? (1 + random() % 40) * 256 * KiB : (1 + random() % 40) * 512;
    const StreamRef stream{random() % 3};
    const auto take = [&] { live.push_back(policy->allocate({.bytes = bytes, .stream = stream})); };
    if (!succeeds(take)) take();
  }
  policy->check_invariants();
  for (const Block& block : live) policy->deallocate(block, block.request.stream);
  policy->trim(0);
  policy->check_invariants();
  course.held_bytes = device.used_bytes();
  course.held_address_bytes = device.reserved_address_bytes();
  return course;
}

void expect_nothing_is_lost(const AllocatorInfo& info, const Options& options, int steps) {
  const Course usual = course_with_failure(info, options, steps, 0);
  Course course{.has_failed = true};
  for (int n = 1; course.has_failed; ++n) {
    SCOPED_TRACE(testing::Message() << info.name << ", host request " << n << " fails");
    ASSERT_NO_THROW(course = course_with_failure(info, options, steps, n));
    EXPECT_LE(course.held_bytes, usual.held_bytes) << "nobody can give it back";
    EXPECT_LE(course.held_address_bytes, usual.held_address_bytes);
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

TEST(HostMemory, RunsOutInAnyRequestAndWhatFailedCanBeHadAgain) {
  load_all_plugins();
  for (const std::string& name : allocator_names()) {
    const AllocatorInfo& info = find_allocator(name);
    expect_nothing_is_lost(info, Options(info.options), 400);
  }
}

TEST(HostMemory, RunsOutWhileARunIsRecordedForItsPlan) {
  load_all_plugins();
  const AllocatorInfo& info = find_allocator("planned");
  Options options(info.options);
  options.set_text("record", test::scratch_folder() + "host_memory.plan");
  options.set_text("planning_seconds", "0");
  expect_nothing_is_lost(info, options, 40);
}

// Each block has a part before its whole pages and one behind them, all as long: the index of equal blocks grows.
TEST(HostMemory, RunsOutWhilePagesAreGivenBackAndWhatIsLeftStaysCached) {
  int failures = 0;
  for (bool failed = true; failed; failures += failed) {
    SCOPED_TRACE(testing::Message() << "host request " << failures + 1 << " fails");
    AddressOnlySource device;
    CachingAllocator policy(device, {.expandable = true});
    constexpr int kBlocks = 25;
    std::vector<Block> blocks;
    for (int i = 0; i < kBlocks; ++i) {
      policy.allocate({.bytes = 4 * MiB});
      blocks.push_back(policy.allocate({.bytes = 52 * MiB}));
      policy.allocate({.bytes = 4 * MiB});
    }
    for (const Block& block : blocks) policy.deallocate(block, {});
    const std::size_t before = device.used_bytes();
    failed = fails_at(failures + 1, [&] { policy.trim(0); });
    EXPECT_NO_THROW(policy.check_invariants());
    if (failed) policy.trim(0);
    EXPECT_NO_THROW(policy.check_invariants());
    EXPECT_EQ(device.used_bytes(), before - kBlocks * 20 * MiB) << "a page of each";
    EXPECT_EQ(policy.allocate({.bytes = 16 * MiB}).data, static_cast<char*>(blocks[0].data) + 36 * MiB);
  }
  EXPECT_GE(failures, 3);
}

// What new pages make with the free block before them is as long as a cached one that may not serve the request.
TEST(HostMemory, RunsOutWhileNewPagesAreCachedAndThesePagesGoBack) {
  int failures = 0;
  for (bool failed = true; failed; failures += failed) {
    SCOPED_TRACE(testing::Message() << "host request " << failures + 1 << " fails");
    AddressOnlySource device;
    caching::Settings settings;
    settings.expandable = true;
    settings.max_split_bytes = 35 * MiB;
    CachingAllocator policy(device, settings);
    const Block oversized = policy.allocate({.bytes = 40 * MiB});
    policy.allocate({.bytes = 20 * MiB});
    const Block last = policy.allocate({.bytes = 20 * MiB});
    policy.deallocate(oversized, {});
    policy.deallocate(last, {});
    failed = fails_at(failures + 1, [&] { EXPECT_EQ(policy.allocate({.bytes = 24 * MiB}).data, last.data); });
    EXPECT_NO_THROW(policy.check_invariants());
    EXPECT_EQ(device.used_bytes(), (failed ? 80 : 100) * MiB);
    if (failed) {
      EXPECT_EQ(policy.allocate({.bytes = 20 * MiB}).data, last.data);
      EXPECT_EQ(policy.allocate({.bytes = 40 * MiB}).data, oversized.data);
    }
  }
  EXPECT_GE(failures, 1);
}

TEST(HostMemory, ComesBackFromAPolicyThatGoesWhileItsBlocksAreOut) {
  load_all_plugins();
  for (const std::string& name : allocator_names()) {
    const AllocatorInfo& info = find_allocator(name);
    const Options options(info.options);
    long left = 0;
    for (int round = 0; round < 3; ++round) {  // what is made once is made in the first
      const long before = kept;
      {
        AddressOnlySource device({.manual_completion = true});
        const auto policy = info.create({.source = device, .options = options});
        for (const std::size_t bytes : {std::size_t{512}, 3 * MiB, 70 * MiB}) {
          policy->record_use(policy->allocate({.bytes = bytes}), {7});
          const Block freed = policy->allocate({.bytes = bytes});
          policy->record_use(freed, {8});
          policy->deallocate(freed, {});  // and waits
        }
      }
      left = kept - before;
    }
    EXPECT_EQ(left, 0) << name;
  }
}

}  // namespace
}  // namespace tenon
