// Allocators over the memory of an emulated CUDA device: blocks are used on streams as programs use them, and the
// machine ends the test where memory goes away, or reaches another stream, while queued work still uses it.
#include "plugins/emulated_device.h"

#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/runtime/plugins/plugins.h>

#include <algorithm>
#include <random>

namespace tenon::test {
namespace {

using emulated_cuda::Order;

class CudaAllocators : public EmulatedCuda, public testing::WithParamInterface<const char*> {
 protected:
  struct Held {
    Block block;
    std::size_t stream;
    unsigned char value;
  };

  /// Fills a new block on its stream; what is read from there is `value` until the block is freed.
  Held take(AllocatorStack& stack, std::size_t stream, std::size_t bytes, unsigned char value) {
    const Block block = stack.allocate({.bytes = bytes, .stream = streams_[stream]});
    device(0).fill(block.data, value, bytes, streams_[stream]);
    return {block, stream, value};
  }
  /// Queues a read of the first and the last byte on the block's stream, to be looked at when all is done.
  void look_at(const Held& held) {
    unsigned char* seen = seen_ + 2 * expected_.size();
    auto* data = static_cast<unsigned char*>(held.block.data);
    device(0).copy(seen, data, 1, CopyKind::kDeviceToHost, streams_[held.stream]);
    device(0).copy(seen + 1, data + held.block.request.bytes - 1, 1, CopyKind::kDeviceToHost, streams_[held.stream]);
    expected_.push_back(held.value);
  }

  /// What a program may get wrong about a block that it uses on another stream.
  enum class Mistake { kNone, kEventForgotten, kUseNotTold };

  /// Allocates, uses and frees at random; a byte that is read and is not what its block was filled with is a failure.
  void run(std::uint64_t seed, Order order, Mistake mistake = Mistake::kNone) {
    restart({.devices = 1, .capacity_bytes = 256 * MiB, .order = order, .seed = seed});
    streams_ = {StreamRef{}, device(0).create_stream(0), device(0).create_stream(0)};
    constexpr std::size_t kSteps = 150;
    seen_ = static_cast<unsigned char*>(device(0).pinned_host_memory()->acquire(4 * kSteps));
    expected_.clear();
    const AllocatorInfo& info = find_allocator(GetParam());
    auto stack = AllocatorStack::make(memory(0), StackConfig{.policy = info, .options = Options(info.options)});
    std::mt19937_64 random(seed);
    const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
    std::vector<Held> held;
    for (std::size_t step = 0; step < kSteps; ++step) {
      if (held.size() > 6 || (!held.empty() && below(3) == 0)) {
        const auto one = held.begin() + static_cast<std::ptrdiff_t>(below(held.size()));
        look_at(*one);
        if (below(2) == 0) {  // also used on another stream, which is told
          const std::size_t other = below(streams_.size());
          const EventRef event = device(0).create_event(false);
          device(0).record(event, streams_[one->stream]);
          if (mistake != Mistake::kEventForgotten) device(0).wait(streams_[other], event);
          device(0).fill(one->block.data, 0xee, 64, streams_[other]);
          if (mistake != Mistake::kUseNotTold) stack->record_use(one->block, streams_[other]);
          device(0).destroy_event(event);
        }
        stack->deallocate(one->block);
        held.erase(one);
      } else {
        constexpr std::size_t kSizes[] = {512, 4 * KiB, 1 * MiB, 3 * MiB};  // few, so that blocks are used again
        const std::size_t bytes = kSizes[below(4)];
        held.push_back(take(*stack, below(streams_.size()), bytes, static_cast<unsigned char>(step)));
      }
      if (step % 50 == 49) stack->trim(0);
    }
    for (const Held& one : held) {
      look_at(one);
      stack->deallocate(one.block);
    }
    device(0).synchronize();
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      EXPECT_EQ(seen_[2 * i], expected_[i]) << i;
      EXPECT_EQ(seen_[2 * i + 1], expected_[i]) << i;
    }
    stack.reset();
    EXPECT_EQ(emulated_cuda::used_bytes(0), 0U) << "all was given back";
    device(0).pinned_host_memory()->release(seen_, 4 * kSteps);
    for (const StreamRef stream : streams_) device(0).destroy_stream(stream);
  }

 private:
  std::vector<StreamRef> streams_;
  unsigned char* seen_ = nullptr;
  std::vector<unsigned char> expected_;
};

TEST_P(CudaAllocators, AnEventThatTheProgramForgetsIsFound) {
  for (const Order order : {Order::kEager, Order::kLastMoment})
    EXPECT_DEATH(run(1, order, Mistake::kEventForgotten), "nothing orders the two");
}

TEST_P(CudaAllocators, ABlockThatIsUsedAgainTooEarlyIsFound) {
  if (std::string(GetParam()) == "direct")
    return run(1, Order::kEager, Mistake::kUseNotTold);  // it waits for the device
  for (const Order order : {Order::kEager, Order::kLastMoment})
    EXPECT_DEATH(run(1, order, Mistake::kUseNotTold), "nothing orders the two|has not used yet|nothing is at");
}

TEST_P(CudaAllocators, KeepTheOrderOfStreams) {
  run(1, Order::kEager);
  run(2, Order::kLastMoment);
  for (std::uint64_t seed = 3; seed < 9; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    run(seed, Order::kSeeded);
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaAllocators,
                         testing::Values("direct", "caching", "expandable", "stitching", "mortise", "driver_async"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace tenon::test
