// Two streams of a simulated device, one held back: with record_use the numbers are right, and without it they are
// wrong. The second half is the point: it shows that the first one tests something.
#include <caching/caching_allocator.h>
#include <tenon/device/device_driver.h>
#include <tenon/memory/forwarding.h>
#include <tenon/memory/history/history.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <vector>

namespace tenon {
namespace {

/// The caching policy with record_use taken out.
class Forgetful final : public ForwardingAllocator {
 public:
  using ForwardingAllocator::ForwardingAllocator;
  void record_use(const Block&, StreamRef) override {}
};

/// Stream B sums a block of ones that stream A made, but B is held back until the block was freed and its bytes, if
/// they are given out again, overwritten on A. Returns what B saw.
long sum_seen_by_the_slow_stream(bool forgetful) {
  static Backend& backend = [&]() -> Backend& {
    Backend& simulated = find_backend("simulated");
    simulated.configure(Options(simulated.options()));
    return simulated;
  }();
  DeviceDriver& driver = backend.device(0);
  const AllocatorInfo info{.name = "caching",
                           .options = caching::option_schema(false),
                           .create = [forgetful](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
                             auto policy = caching::make_allocator(context, false);
                             if (!forgetful) return policy;
                             return std::make_unique<Forgetful>(std::move(policy));
                           }};
  const auto stack = AllocatorStack::make(driver.memory(), {.policy = info, .options = Options(info.options)});
  constexpr std::size_t kCount = 30 * MiB;
  const StreamRef a{0}, b = driver.create_stream(0);

  const Block block = stack->allocate({.bytes = kCount, .stream = a});
  driver.fill(block.data, 1, kCount, a);
  driver.synchronize(a);

  std::promise<void> go;
  long sum = 0;
  driver.enqueue(b, [&, wait = go.get_future().share()] { wait.wait(); });
  driver.enqueue(b, [&] {
    const auto* bytes = static_cast<const unsigned char*>(block.data);
    for (std::size_t i = 0; i < kCount; ++i) sum += bytes[i];
  });
  stack->record_use(block, b);
  stack->deallocate(block, a);

  const Block next = stack->allocate({.bytes = kCount, .stream = a});
  driver.fill(next.data, 7, kCount, a);
  driver.synchronize(a);
  go.set_value();
  driver.synchronize(b);
  stack->deallocate(next, a);
  driver.destroy_stream(b);
  return sum;
}

TEST(Streams, RecordUseKeepsABlockUntilTheOtherStreamHasReadIt) {
  EXPECT_EQ(sum_seen_by_the_slow_stream(false), static_cast<long>(30 * MiB));
}

TEST(Streams, WithoutRecordUseTheOtherStreamReadsWrongNumbers) {
  EXPECT_EQ(sum_seen_by_the_slow_stream(true), 7 * static_cast<long>(30 * MiB));
}

TEST(Streams, AFreeThatWaitedForOneIsInTheHistoryWhenItIsDone) {
  for (const char* name : {"arena", "bfc", "buddy", "caching", "cub_bins", "direct", "driver_async", "expandable",
                           "mortise", "planned", "rmm_arena", "rmm_pool", "slab_by_lcm", "stitching", "tlsf"}) {
    for (const std::size_t bytes : {1 * KiB, 3 * MiB}) {
      SCOPED_TRACE(testing::Message() << name << ", " << bytes << " bytes");
      AddressOnlySource source({.capacity_bytes = 256 * MiB, .manual_completion = true});
      const auto stack = AllocatorStack::make(source, allocator_from_spec(name));
      const auto history = std::make_shared<History>();
      stack->attach_history(history);
      history->start({});
      const Block block = stack->allocate({.bytes = bytes});
      stack->record_use(block, {1});
      stack->deallocate(block);
      source.complete(StreamRef{1});
      const Block next = stack->allocate({.bytes = bytes});
      const std::vector<HistoryEvent> events = history->events();
      EXPECT_EQ(std::ranges::count(events, HistoryAction::kFreeRequested, &HistoryEvent::action), 1);
      EXPECT_EQ(std::ranges::count(events, HistoryAction::kFreeCompleted, &HistoryEvent::action), 1);
      stack->deallocate(next);
    }
  }
}

}  // namespace
}  // namespace tenon
