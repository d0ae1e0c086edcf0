// stitching: free blocks become one, blocks share chunks, a step that repeats maps nothing, and no byte of memory is
// ever in two blocks, whatever addresses it has.
#include "repeated_step.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/forwarding.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/runtime/allocator_spec.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace tenon {
namespace {

constexpr unsigned kSeed = 53;
constexpr std::size_t kChunk = 2 * MiB;

/// Knows which physical memory is behind an address.
class MappedSource final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;

  struct Part {
    std::uint64_t memory;
    std::size_t begin, end;
    bool overlaps(const Part& other) const { return memory == other.memory && begin < other.end && other.begin < end; }
  };

  void* acquire(std::size_t bytes) override {
    void* const address = upstream_.acquire(bytes);
    if (address) mappings_[Address(address)] = {bytes, {kAcquired + Address(address), 0, bytes}};
    return address;
  }
  void release(void* address, std::size_t bytes) noexcept override {
    mappings_.erase(Address(address));
    upstream_.release(address, bytes);
  }
  void map(void* address, std::size_t bytes, Physical physical, std::size_t offset) override {
    upstream_.map(address, bytes, physical, offset);
    mappings_[Address(address)] = {bytes, {physical.value, offset, offset + bytes}};
  }
  void unmap(void* address, std::size_t bytes) noexcept override {
    const std::uint64_t begin = Address(address);
    std::erase_if(mappings_, [&](const auto& entry) { return entry.first >= begin && entry.first < begin + bytes; });
    upstream_.unmap(address, bytes);
  }

  std::vector<Part> behind(const Block& block) const {
    std::vector<Part> parts;
    std::uint64_t at = Address(block.data);
    const std::uint64_t end = at + block.bytes;
    while (at < end) {
      const auto& [address, mapping] = *std::prev(mappings_.upper_bound(at));
      const std::size_t skipped = at - address, bytes = std::min(mapping.bytes - skipped, end - at);
      parts.push_back({mapping.part.memory, mapping.part.begin + skipped, mapping.part.begin + skipped + bytes});
      at += bytes;
    }
    return parts;
  }

 private:
  static constexpr std::uint64_t kAcquired = std::uint64_t{1} << 63;
  struct Mapping {
    std::size_t bytes;
    Part part;
  };
  std::map<std::uint64_t, Mapping> mappings_;
};

class Stitching : public testing::Test {
 protected:
  std::shared_ptr<AllocatorStack> stack_of(const char* spec) {
    return AllocatorStack::make(source_, allocator_from_spec(spec));
  }
  static std::int64_t calls(const AllocatorStack& stack) { return stack.stats().device_calls(); }

  AddressOnlySource device_{AddressOnlySource::Config{.capacity_bytes = 1 * GiB}};
  MappedSource source_{device_};
};

/// Three blocks with live ones between them; the first and the last one are freed.
struct TwoHoles {
  explicit TwoHoles(AllocatorStack& stack, std::size_t second = 6 * MiB) : stack_(stack) {
    for (const std::size_t bytes : {8 * MiB, 2 * MiB, second, 2 * MiB})
      blocks.push_back(stack.allocate({.bytes = bytes}));
    stack.deallocate(blocks[0]);
    stack.deallocate(blocks[2]);
  }
  ~TwoHoles() {
    stack_.deallocate(blocks[1]);
    stack_.deallocate(blocks[3]);
  }
  AllocatorStack& stack_;
  std::vector<Block> blocks;
};

TEST_F(Stitching, FreeBlocksServeALongerRequestTogether) {
  const auto stack = stack_of("stitching:growth=512");
  const TwoHoles holes(*stack);
  const MemoryStats before = stack->stats();
  const Block block = stack->allocate({.bytes = 14 * MiB});
  const MemoryStats after = stack->stats();
  EXPECT_EQ(after.device_allocations, before.device_allocations) << "no memory was taken";
  EXPECT_EQ(after.device_maps, before.device_maps + 2);
  EXPECT_EQ(source_.behind(block).size(), 2U);
  stack->check_invariants();
  stack->deallocate(block);
}

TEST_F(Stitching, AStitchedRangeIsKeptAndFoundAgain) {
  const auto stack = stack_of("stitching:growth=512");
  const TwoHoles holes(*stack);
  const Block first = stack->allocate({.bytes = 14 * MiB});
  stack->deallocate(first);
  const std::int64_t before = calls(*stack);
  // One of its parts is in use: what is asked for meanwhile comes from elsewhere.
  const Block part = stack->allocate({.bytes = 8 * MiB});
  stack->deallocate(part);
  const Block again = stack->allocate({.bytes = 14 * MiB});
  EXPECT_EQ(again.data, first.data);
  EXPECT_EQ(calls(*stack), before);
  stack->deallocate(again);
}

TEST_F(Stitching, OnlyWhatIsMissingIsTakenFromTheDevice) {
  const auto stack = stack_of("stitching:growth=512");
  const TwoHoles holes(*stack);
  const std::int64_t before = stack->stats().reserved_bytes.current;
  const Block block = stack->allocate({.bytes = 20 * MiB});
  EXPECT_EQ(stack->stats().reserved_bytes.current, before + static_cast<std::int64_t>(6 * MiB));
  EXPECT_EQ(source_.behind(block).size(), 3U);
  stack->deallocate(block);
}

TEST_F(Stitching, LimitsKeepBlocksFromBeingStitched) {
  for (const char* spec : {"stitching:growth=512,stitch_from=15MiB", "stitching:growth=512,most_chunks=6",
                           "stitching:growth=512,most_ranges=0"}) {
    const auto stack = stack_of(spec);
    const TwoHoles holes(*stack);
    const Block block = stack->allocate({.bytes = 14 * MiB});
    EXPECT_EQ(source_.behind(block).size(), 1U) << spec;
    stack->deallocate(block);
  }
}

TEST_F(Stitching, WithoutAnyMemoryLeftSmallerRequestsAreStitchedToo) {
  const auto stack = stack_of("stitching:growth=512,stitch_from=1GiB");
  std::vector<Block> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(stack->allocate({.bytes = 16 * MiB}));
  for (std::size_t i = 0; i < blocks.size(); i += 2) stack->deallocate(blocks[i]);
  const Block longer = stack->allocate({.bytes = 32 * 16 * MiB});
  EXPECT_EQ(source_.behind(longer).size(), 32U);
  stack->check_invariants();
  stack->deallocate(longer);
  for (std::size_t i = 1; i < blocks.size(); i += 2) stack->deallocate(blocks[i]);
}

TEST_F(Stitching, OfTooManyRangesThoseLongestUnusedAreForgotten) {
  const auto stack = stack_of("stitching:growth=512,most_ranges=3");
  const TwoHoles holes(*stack, 8 * MiB);
  const auto serve = [&](std::size_t bytes) {
    const Block block = stack->allocate({.bytes = bytes});
    EXPECT_EQ(source_.behind(block).size(), 2U);
    stack->deallocate(block);
    return block.data;
  };
  serve(14 * MiB);
  void* const used_again = serve(12 * MiB);
  serve(10 * MiB);
  EXPECT_EQ(serve(12 * MiB), used_again);
  EXPECT_EQ(stack->stats().device_unmaps, 0);
  serve(16 * MiB);
  EXPECT_EQ(stack->stats().device_unmaps, 2) << "two ranges";
  const std::int64_t before = calls(*stack);
  EXPECT_EQ(serve(12 * MiB), used_again);
  EXPECT_EQ(calls(*stack), before);
  serve(14 * MiB);
  EXPECT_EQ(calls(*stack), before + 2) << "it is made again";
  stack->check_invariants();
}

/// 2.4 MiB each: in chunks of their own five of them would take ten.
TEST_F(Stitching, BlocksBeginAndEndInChunksOfOthers) {
  const auto stack = stack_of("stitching:growth=512");
  std::vector<Block> blocks;
  for (int i = 0; i < 60; ++i) blocks.push_back(stack->allocate({.bytes = 2400 * KiB}));
  const auto wanted = static_cast<std::int64_t>(60 * 2400 * KiB);
  EXPECT_LE(stack->stats().reserved_bytes.current, wanted + static_cast<std::int64_t>(wanted / 50 + kChunk));
  for (const Block& block : blocks) stack->deallocate(block);
  const std::int64_t reserved = stack->stats().reserved_bytes.current;
  EXPECT_EQ(stack->trim(0), static_cast<std::size_t>(reserved));
}

TEST_F(Stitching, OneChunkIsMappedAtTwoAddressesAndEachBlockUsesItsPart) {
  const auto stack = stack_of("stitching:growth=512");
  const Block first = stack->allocate({.bytes = 3 * MiB});
  const Block second = stack->allocate({.bytes = 3 * MiB});
  EXPECT_EQ(stack->stats().reserved_bytes.current, static_cast<std::int64_t>(6 * MiB));
  const auto of_first = source_.behind(first), of_second = source_.behind(second);
  ASSERT_EQ(of_second.size(), 2U);
  EXPECT_EQ(of_second[0].memory, of_first.back().memory);
  EXPECT_EQ(of_second[0].begin, of_first.back().end) << "it begins where the other one ends";
  EXPECT_NE(of_second[1].memory, of_first.back().memory);
  stack->deallocate(first);
  stack->deallocate(second);
}

/// Activations are kept until their gradients need them; what an optimizer remembers comes with the first step.
TEST_F(Stitching, AStepThatRepeatsMapsNothingFromTheThirdOn) {
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  for (const char* spec : {"stitching", "stitching:growth=512", "stitching:share_below=0,stitch_from=0",
                           "stitching:share_below=1GiB,stitch_from=0"}) {
    const auto stack = stack_of(spec);
    std::vector<Block> kept;
    for (int i = 0; i < 30; ++i) kept.push_back(stack->allocate({.bytes = (1 + i % 7) * 700 * KiB}));
    std::int64_t calls_after_two = 0, stitches = 0;
    for (int step = 0; step < 6; ++step) {
      test::repeat_step(*stack, kSeed, /*remembers=*/step == 0, kept);
      if (step == 1) {
        calls_after_two = calls(*stack);
        stitches = stack->stats().device_maps - stack->stats().device_allocations;
      }
      if (step > 1) {
        EXPECT_EQ(calls(*stack), calls_after_two) << spec << ", step " << step;
      }
      stack->check_invariants();
    }
    EXPECT_GT(stitches, 0) << "the test has to see stitched blocks";
    for (const Block& block : kept) stack->deallocate(block);
  }
}

TEST_F(Stitching, NeedsVirtualMemory) {
  AddressOnlySource without(AddressOnlySource::Config{.capacity_bytes = 1 * GiB, .page_bytes = 0});
  EXPECT_THROW(static_cast<void>(AllocatorStack::make(without, allocator_from_spec("stitching"))), ConfigError);
}

/// A shadow of the physical memory: which part of it is in which block, and which streams still use what was freed.
class PhysicalShadow {
 public:
  PhysicalShadow(AddressOnlySource& device, const MappedSource& source) : device_(device), source_(source) {}

  void handed_out(const Block& block) {
    const auto parts = source_.behind(block);
    for (const auto& part : parts) {
      for (const auto& other : live_)
        for (const auto& taken : other.second) ASSERT_FALSE(part.overlaps(taken)) << "in two live blocks";
      for (const auto& [taken, stream, ticket] : freed_)
        ASSERT_TRUE(!part.overlaps(taken) || stream == block.request.stream || device_.reached(ticket))
            << "stream " << stream.id << " still uses it";
    }
    live_[block.data] = parts;
  }
  void taken_back(const Block& block, const std::set<StreamRef>& users) {
    std::erase_if(freed_, [&](const Freed& freed) { return device_.reached(freed.ticket); });
    for (const StreamRef stream : users)
      for (const auto& part : live_.at(block.data)) freed_.push_back({part, stream, device_.mark(stream)});
    live_.erase(block.data);
  }

 private:
  struct Freed {
    MappedSource::Part part;
    StreamRef stream;
    Ticket ticket;
  };
  AddressOnlySource& device_;
  const MappedSource& source_;
  std::map<void*, std::vector<MappedSource::Part>> live_;
  std::vector<Freed> freed_;
};

class StitchingAgainstAShadow : public testing::TestWithParam<const char*> {};

TEST_P(StitchingAgainstAShadow, NoByteOfMemoryIsInTwoBlocks) {
  constexpr int kOperations = 50'000;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  AddressOnlySource device({.capacity_bytes = 192 * MiB, .manual_completion = true});
  MappedSource source(device);
  const auto stack = AllocatorStack::make(source, allocator_from_spec(GetParam()));
  PhysicalShadow shadow(device, source);
  std::mt19937_64 random(kSeed);
  std::vector<std::pair<Block, std::set<StreamRef>>> blocks;
  int failed = 0;
  for (int i = 0; i < kOperations && !testing::Test::HasFatalFailure(); ++i) {
    const StreamRef stream{random() % 3};
    switch (random() % 16) {
      case 0:
        device.complete(stream);
        break;
      case 1:
        if (random() % 64 == 0) stack->trim(random() % 2 * 64 * MiB);
        break;
      case 2:
        if (blocks.empty()) break;
        stack->record_use(blocks.front().first, stream);
        blocks.front().second.insert(stream);
        break;
      default:
        if (random() % 5 < 3 || blocks.empty()) {
          const std::size_t most = random() % 4 == 0 ? 24 * MiB : 5 * MiB;
          try {
            const Block block = stack->allocate({.bytes = 512 * KiB + random() % most, .stream = stream});
            shadow.handed_out(block);
            blocks.push_back({block, {stream}});
            break;
          } catch (const OutOfMemory&) {
            ++failed;
          }
        }
        if (blocks.empty()) break;
        std::swap(blocks[random() % blocks.size()], blocks.back());
        shadow.taken_back(blocks.back().first, blocks.back().second);
        stack->deallocate(blocks.back().first);
        blocks.pop_back();
    }
    if (i % 64 == 0) stack->check_invariants();
  }
  EXPECT_GT(failed, 0) << "the test has to see a full device";
  EXPECT_GT(stack->stats().device_maps, stack->stats().device_allocations) << "the test has to see stitched blocks";
  for (const auto& [block, users] : blocks) stack->deallocate(block);
  stack->trim(0);
  EXPECT_EQ(stack->stats().reserved_bytes.current, 0);
}

INSTANTIATE_TEST_SUITE_P(Options, StitchingAgainstAShadow,
                         testing::Values("stitching", "stitching:share_below=0,stitch_from=0",
                                         "stitching:share_below=1GiB,stitch_from=0,growth=512",
                                         "stitching:chunk=8MiB,most_ranges=8", "stitching:most_chunks=4"));

}  // namespace
}  // namespace tenon
