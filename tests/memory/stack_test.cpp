// The stack: what it counts, how it fails, what it promises about blocks.
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/sources/host_memory_source.h>
#include <tenon/memory/stack/oom.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory/test_policy.h>

#include <random>

namespace tenon {
namespace {

using test::make_stack;
using test::simple_policy;
using ::testing::HasSubstr;

TEST(AllocatorStack, AnswersZeroBytesWithAnEmptyBlockAndCountsNothing) {
  AddressOnlySource source;
  const auto stack = make_stack(source);
  const Block block = stack->allocate({.bytes = 0});
  EXPECT_EQ(block.data, nullptr);
  EXPECT_EQ(block.bytes, 0u);
  stack->deallocate(block);
  EXPECT_EQ(stack->stats().allocations.allocated, 0);
}

TEST(AllocatorStack, CountsRequestedAllocatedAndReservedBytes) {
  AddressOnlySource source;
  const auto stack = make_stack(source);
  const Block first = stack->allocate({.bytes = 1000});
  const Block second =
      stack->allocate({.bytes = 3000, .purpose = Purpose::kGradient, .elements = ElementKind::kBFloat16});
  stack->deallocate(first);
  const MemoryStats stats = stack->stats();
  EXPECT_EQ(stats.requested_bytes.current, 3000);
  EXPECT_EQ(stats.requested_bytes.peak, 4000);
  EXPECT_EQ(stats.requested_bytes.allocated, 4000);
  EXPECT_EQ(stats.requested_bytes.freed, 1000);
  EXPECT_EQ(stats.allocated_bytes.current, 3072);
  EXPECT_EQ(stats.allocated_bytes.peak, 4096);
  EXPECT_EQ(stats.reserved_bytes.current, 4096);
  EXPECT_EQ(stats.allocations.current, 1);
  EXPECT_EQ(stats.allocations.peak, 2);
  EXPECT_EQ(stats.device_allocations, 2);
  EXPECT_EQ(stats.device_frees, 0);
  EXPECT_EQ(stats.segments.current, 2);
  EXPECT_EQ(stats.requested_by_purpose[static_cast<int>(Purpose::kGradient)].current, 3000);
  EXPECT_EQ(stats.requested_by_purpose[static_cast<int>(Purpose::kOther)].peak, 1000);
  const auto& gradients = stats.requested_by_element[static_cast<int>(Purpose::kGradient)];
  EXPECT_EQ(gradients[static_cast<int>(ElementKind::kBFloat16)].current, 3000);
  EXPECT_EQ(gradients[static_cast<int>(ElementKind::kFloat32)].peak, 0);
  stack->deallocate(second);
  EXPECT_EQ(stack->stats()
                .requested_by_element[static_cast<int>(Purpose::kGradient)][static_cast<int>(ElementKind::kBFloat16)]
                .freed,
            3000);
}

TEST(AllocatorStack, TrimGivesCachedMemoryBackAndSaysHowMuch) {
  AddressOnlySource source;
  const auto stack = make_stack(source);
  stack->deallocate(stack->allocate({.bytes = 1 * MiB}));
  EXPECT_EQ(stack->stats().reserved_bytes.current, static_cast<std::int64_t>(MiB));
  EXPECT_EQ(stack->trim(), MiB);
  EXPECT_EQ(stack->stats().reserved_bytes.current, 0);
  EXPECT_EQ(stack->stats().device_frees, 1);
  EXPECT_EQ(source.used_bytes(), 0u);
}

TEST(AllocatorStack, ABlockCarriesItsRequestEvenIfThePolicyForgets) {
  class Forgetful final : public Allocator {
   public:
    explicit Forgetful(MemorySource& source) : source_(source) {}
    Block allocate(const Request& request) override {
      return {.data = source_.acquire(request.bytes), .bytes = request.bytes};
    }
    void deallocate(const Block& block, StreamRef) noexcept override { source_.release(block.data, block.bytes); }

   private:
    MemorySource& source_;
  };
  AddressOnlySource source;
  StackConfig config;
  config.policy = {.name = "forgetful", .create = [](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
                     return std::make_unique<Forgetful>(context.source);
                   }};
  const auto stack = AllocatorStack::make(source, config);
  const Block block = stack->allocate({.bytes = 512, .stream = {7}, .purpose = Purpose::kData, .label = 0});
  EXPECT_EQ(block.request.bytes, 512u);
  EXPECT_EQ(block.request.stream.id, 7u);
  EXPECT_EQ(block.request.purpose, Purpose::kData);
  stack->deallocate(block);
  EXPECT_EQ(stack->stats().requested_by_purpose[static_cast<int>(Purpose::kData)].freed, 512);
}

TEST(AllocatorStack, ServesAlignmentsThatNoPolicyHasTo) {
  AddressOnlySource source;
  const auto stack = make_stack(source);
  std::vector<Block> blocks;
  for (const std::size_t alignment : {std::size_t{1024}, 4 * KiB, 64 * KiB, 2 * MiB}) {
    const Block block = stack->allocate({.bytes = 1000, .alignment = alignment});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data) % alignment, 0u) << alignment;
    EXPECT_GE(block.bytes, 1000u);
    blocks.push_back(block);
  }
  stack->record_use(blocks[0], {3});
  for (const Block& block : blocks) stack->deallocate(block);
  EXPECT_EQ(stack->stats().allocated_bytes.current, 0);
  EXPECT_THROW(stack->allocate({.bytes = 8, .alignment = 3000}), Error);
  EXPECT_THROW(stack->allocate({.bytes = SIZE_MAX - 100, .alignment = 4 * KiB}), OutOfMemory);
}

TEST(AllocatorStack, ResettingPeaksStartsFromWhatIsCurrent) {
  AddressOnlySource source;
  const auto stack = make_stack(source);
  const Block kept = stack->allocate({.bytes = 512});
  stack->deallocate(stack->allocate({.bytes = 1 * MiB}));
  EXPECT_EQ(stack->stats().allocated_bytes.peak, static_cast<std::int64_t>(MiB + 512));
  stack->trim();
  stack->reset_peak_stats();
  EXPECT_EQ(stack->stats().allocated_bytes.peak, 512);
  EXPECT_EQ(stack->stats().reserved_bytes.peak, 512);
  stack->deallocate(kept);
  EXPECT_EQ(stack->stats().allocated_bytes.peak, 512);
}

TEST(AllocatorStack, ResettingSumsKeepsWhatIsCurrentAndItsPeak) {
  AddressOnlySource source;
  const auto stack = make_stack(source);
  const Block kept = stack->allocate({.bytes = 512});
  stack->reset_accumulated_stats();
  MemoryStats stats = stack->stats();
  EXPECT_EQ(stats.allocated_bytes.current, 512);
  EXPECT_EQ(stats.allocated_bytes.peak, 512);
  EXPECT_EQ(stats.allocated_bytes.allocated, 0);
  EXPECT_EQ(stats.allocated_bytes.freed, 0);
  EXPECT_EQ(stats.device_allocations, 0);
  stack->deallocate(kept);
  stats = stack->stats();
  EXPECT_EQ(stats.allocated_bytes.allocated, 0);
  EXPECT_EQ(stats.allocated_bytes.freed, 512);
}

// Every figure against a ledger that knows only what went in and out, under both kinds of policy.
class StackAgainstLedger : public ::testing::TestWithParam<bool> {};

TEST_P(StackAgainstLedger, ExactInCurrentPeakAndSums) {
  constexpr std::uint64_t kSeed = 20231;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  AddressOnlySource source;
  const auto stack = make_stack(source, {}, {.safe = GetParam()});
  struct Ledger {
    std::int64_t current = 0, peak = 0, in = 0, out = 0;
    void add(std::int64_t n) {
      current += n;
      in += n;
      peak = std::max(peak, current);
    }
    void take(std::int64_t n) {
      current -= n;
      out += n;
    }
    void expect(const Stat& stat) const {
      EXPECT_EQ(stat.current, current);
      EXPECT_EQ(stat.peak, peak);
      EXPECT_EQ(stat.allocated, in);
      EXPECT_EQ(stat.freed, out);
    }
  } requested, allocated, count, purposes[kPurposeCount];
  std::vector<Block> live;
  for (int step = 0; step < 4000; ++step) {
    if (live.empty() || random() % 100 < 52) {
      const auto purpose = static_cast<Purpose>(random() % kPurposeCount);
      const Block block =
          stack->allocate({.bytes = 1 + random() % 100000, .stream = {random() % 2}, .purpose = purpose});
      requested.add(static_cast<std::int64_t>(block.request.bytes));
      allocated.add(static_cast<std::int64_t>(block.bytes));
      count.add(1);
      purposes[static_cast<int>(purpose)].add(static_cast<std::int64_t>(block.request.bytes));
      live.push_back(block);
    } else {
      std::swap(live[random() % live.size()], live.back());
      const Block block = live.back();
      live.pop_back();
      stack->deallocate(block);
      requested.take(static_cast<std::int64_t>(block.request.bytes));
      allocated.take(static_cast<std::int64_t>(block.bytes));
      count.take(1);
      purposes[static_cast<int>(block.request.purpose)].take(static_cast<std::int64_t>(block.request.bytes));
    }
    if (step % 500 == 499) {
      const MemoryStats stats = stack->stats();
      requested.expect(stats.requested_bytes);
      allocated.expect(stats.allocated_bytes);
      count.expect(stats.allocations);
      for (int i = 0; i < kPurposeCount; ++i) purposes[i].expect(stats.requested_by_purpose[i]);
      EXPECT_LE(stats.requested_bytes.current, stats.allocated_bytes.current);
      EXPECT_LE(stats.allocated_bytes.current, stats.reserved_bytes.current);
    }
  }
  for (const Block& block : live) stack->deallocate(block);
  EXPECT_EQ(stack->stats().allocated_bytes.current, 0);
  stack->check_invariants();
}
INSTANTIATE_TEST_SUITE_P(, StackAgainstLedger, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "ThreadSafePolicy" : "SerialisedPolicy"; });

TEST(AllocatorStack, OutOfMemoryCarriesEveryFigure) {
  AddressOnlySource source({.device = "test:0", .capacity_bytes = 10 * MiB});
  const auto stack = make_stack(source, {}, {.pools = true});
  const Block kept = stack->allocate({.bytes = 4 * MiB, .purpose = Purpose::kActivation});
  stack->deallocate(stack->allocate({.bytes = 2 * MiB}));
  try {
    stack->allocate({.bytes = 5 * MiB});
    FAIL() << "5 MiB fitted into 4 MiB";
  } catch (const OutOfMemory& error) {
    const OutOfMemoryInfo& info = error.info();
    EXPECT_EQ(info.allocator, "simple");
    EXPECT_EQ(info.device, "test:0");
    EXPECT_EQ(info.requested_bytes, 5 * MiB);
    EXPECT_EQ(info.allocated_bytes, 4 * MiB);
    EXPECT_EQ(info.reserved_bytes, 6 * MiB);
    EXPECT_EQ(info.device_free_bytes, 4 * MiB);
    EXPECT_EQ(info.capacity_bytes, 10 * MiB);
    EXPECT_EQ(info.limit_bytes, 0u);
    EXPECT_EQ(info.largest_free_bytes, 2 * MiB);
    EXPECT_EQ(error.exit_code(), ExitCode::kOutOfMemory);
    EXPECT_THAT(error.what(), HasSubstr("simple on test:0 needs"));
  }
  EXPECT_EQ(stack->stats().ooms, 1);
  EXPECT_EQ(stack->stats().allocated_bytes.current, static_cast<std::int64_t>(4 * MiB));
  stack->deallocate(kept);
}

TEST(AllocatorStack, FlushesTheCacheOfAPolicyThatDoesNotDoSoItself) {
  AddressOnlySource source({.capacity_bytes = 10 * MiB});
  const auto stack = make_stack(source);
  stack->deallocate(stack->allocate({.bytes = 6 * MiB}));
  stack->deallocate(stack->allocate({.bytes = 8 * MiB}));
  EXPECT_EQ(stack->stats().ooms, 0);
  EXPECT_EQ(stack->stats().policy.retries, 1);
  EXPECT_THROW(stack->allocate({.bytes = 11 * MiB}), OutOfMemory);
  EXPECT_EQ(stack->stats().policy.retries, 2);
  EXPECT_THROW(stack->allocate({.bytes = 11 * MiB}), OutOfMemory);
  EXPECT_EQ(stack->stats().policy.retries, 2) << "nothing is cached any more";
}

TEST(AllocatorStack, LeavesTheCacheOfAPolicyWithPoolsToItself) {
  AddressOnlySource source({.capacity_bytes = 10 * MiB});
  const auto stack = make_stack(source, {}, {.pools = true});
  stack->deallocate(stack->allocate({.bytes = 6 * MiB}));
  EXPECT_THROW(stack->allocate({.bytes = 8 * MiB}), OutOfMemory);
  EXPECT_EQ(stack->stats().reserved_bytes.current, static_cast<std::int64_t>(6 * MiB));
}

TEST(AllocatorStack, ObserversOfOutOfMemoryRunBeforeItIsThrownAndMayAskTheStack) {
  AddressOnlySource source({.capacity_bytes = 1 * MiB});
  const auto stack = make_stack(source);
  std::vector<std::size_t> seen;
  const std::uint64_t first = add_oom_observer([&](const OutOfMemoryInfo& info) {
    seen.push_back(info.requested_bytes);
    EXPECT_EQ(stack->stats().ooms, 1);
  });
  const std::uint64_t second = add_oom_observer([](const OutOfMemoryInfo&) { throw 1; });
  EXPECT_THROW(stack->allocate({.bytes = 2 * MiB}), OutOfMemory);
  remove_oom_observer(first);
  remove_oom_observer(second);
  EXPECT_THAT(seen, ::testing::ElementsAre(2 * MiB));
  EXPECT_THROW(stack->allocate({.bytes = 2 * MiB}), OutOfMemory);
  EXPECT_EQ(seen.size(), 1u);
}

TEST(AllocatorStack, AReservedLimitActsLikeASmallerDeviceUntilItIsLifted) {
  AddressOnlySource source({.capacity_bytes = 10 * MiB});
  const auto stack = make_stack(source);
  EXPECT_EQ(stack->set_reserved_limit(3 * MiB), 0u);
  const Block first = stack->allocate({.bytes = 2 * MiB});
  try {
    stack->allocate({.bytes = 2 * MiB});
    FAIL() << "the limit did not hold";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.info().limit_bytes, 3 * MiB);
    EXPECT_THAT(error.info().hint, HasSubstr("a limit of at least 4.00 MiB"));
  }
  EXPECT_EQ(stack->stats().device_allocations, 1) << "a refusal by the limit is no call to the device";
  EXPECT_EQ(stack->set_reserved_limit(0), 3 * MiB);
  const Block second = stack->allocate({.bytes = 2 * MiB});
  stack->deallocate(first);
  stack->deallocate(second);
}

TEST(AllocatorStack, UsageByLabelIsCountedApart) {
  AddressOnlySource source;
  const auto stack = make_stack(source);
  const LabelGuard outer("stack_test.encoder");
  const Block encoder = stack->allocate({.bytes = 100, .label = current_label()});
  Block decoder;
  {
    const LabelGuard inner("stack_test.decoder");
    decoder = stack->allocate({.bytes = 900, .label = current_label()});
  }
  stack->deallocate(decoder);
  const auto usage = stack->usage_by_label();
  ASSERT_EQ(usage.size(), 2u);
  EXPECT_EQ(usage[0].label, "stack_test.encoder");
  EXPECT_EQ(usage[0].requested_bytes.current, 100);
  EXPECT_EQ(usage[1].label, "stack_test.decoder");
  EXPECT_EQ(usage[1].requested_bytes.current, 0);
  EXPECT_EQ(usage[1].requested_bytes.peak, 900);
  stack->deallocate(encoder);
}

TEST(AllocatorStack, RefusesAPolicyThatWasNotMade) {
  AddressOnlySource source;
  StackConfig config;
  config.policy = {.name = "nothing", .create = [](const AllocatorContext&) { return std::unique_ptr<Allocator>(); }};
  EXPECT_THROW(AllocatorStack::make(source, config), Error);
}

TEST(AllocatorStack, BrokenInvariantsAreNamed) {
  AddressOnlySource source;
  const auto stack = make_stack(source);
  const Block block = stack->allocate({.bytes = 512});
  stack->deallocate(block);
  stack->check_invariants();
  stack->deallocate(block);  // this policy does not mind; the count does
  try {
    stack->check_invariants();
    FAIL() << "a double free went unnoticed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("more was freed than allocated: -1 blocks"));
  }
}

}  // namespace
}  // namespace tenon
