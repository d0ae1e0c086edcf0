// A stack against plain counters, however its calls are kept apart: by the policy's own lock, by the stack's, or not at
// all; with labels, with a history, and with somebody who listens. And what its layers say of what they wrote and let
// through.
#include "support/scratch_folder.h"

#include <tenon/core/error.h>
#include <tenon/core/scope/scope.h>
#include <tenon/memory/history/history.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/sources/observed_source.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory/test_policy.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace tenon {
namespace {

using ::testing::HasSubstr;

/// Counts what it is told of.
struct CountingListener final : scopes::Listener {
  void allocated(const scopes::MemoryCall& call) noexcept override { ++came, bytes += call.bytes; }
  void freed(const scopes::MemoryCall& call) noexcept override { ++went, bytes -= call.bytes; }
  void device_called(const scopes::DeviceCall&) noexcept override { ++calls; }
  int came = 0, went = 0, calls = 0;
  std::size_t bytes = 0;
};

void expect_stat(const Stat& is, const Stat& wanted) {
  EXPECT_EQ(is.current, wanted.current);
  EXPECT_EQ(is.peak, wanted.peak);
  EXPECT_EQ(is.allocated, wanted.allocated);
  EXPECT_EQ(is.freed, wanted.freed);
}

/// Draws requests of all kinds, and holds every figure of the stack against counters.
void follow(AllocatorStack& stack, std::uint64_t seed, bool is_labelled, CountingListener* listener) {
  std::mt19937_64 random(seed);
  Stat requested, allocated, blocks, labelled;
  std::vector<Block> live;
  int came = 0, went = 0;
  const LabelGuard label("stack model");
  const std::uint16_t number = current_label();
  for (int step = 0; step < 400; ++step) {
    if (random() % 9 < 4 && !live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      const Block block = live.back();
      live.pop_back();
      random() % 2 == 0 ? stack.deallocate(block) : stack.deallocate(block, block.request.stream);
      if (block.data == nullptr) continue;
      ++went;
      const bool is_wide = block.request.alignment > kMaxAlignment;
      const auto bytes =
          static_cast<std::int64_t>(block.request.bytes + (is_wide ? block.request.alignment - kMaxAlignment : 0));
      requested.decrease(bytes);
      allocated.decrease((bytes + 511) / 512 * 512);
      blocks.decrease(1);
      if (block.request.label != 0) labelled.decrease(bytes);
    } else {
      const std::size_t alignment = random() % 8 == 0 ? std::size_t{512} << (random() % 3) : kDefaultAlignment;
      const bool has_label = is_labelled && random() % 2 == 0;
      const Block block = stack.allocate({.bytes = random() % 20 == 0 ? 0 : 1 + random() % 3000,
                                          .alignment = alignment,
                                          .stream = {random() % 2},
                                          .purpose = static_cast<Purpose>(random() % kPurposeCount),
                                          .label = has_label ? number : std::uint16_t{0}});
      live.push_back(block);
      EXPECT_EQ(block.data == nullptr, block.request.bytes == 0);
      if (block.data == nullptr) continue;
      ++came;
      EXPECT_EQ(Address(block.data) % alignment, 0u);
      EXPECT_GE(block.bytes, block.request.bytes);
      const auto bytes =
          static_cast<std::int64_t>(block.request.bytes + (alignment > kMaxAlignment ? alignment - kMaxAlignment : 0));
      requested.increase(bytes);
      allocated.increase((bytes + 511) / 512 * 512);
      blocks.increase(1);
      if (has_label) labelled.increase(bytes);
    }
    if (step % 10 != 0) continue;
    const MemoryStats stats = stack.stats();
    expect_stat(stats.requested_bytes, requested);
    expect_stat(stats.allocated_bytes, allocated);
    expect_stat(stats.allocations, blocks);
    if (listener == nullptr) continue;
    EXPECT_EQ(listener->came, came);
    EXPECT_EQ(listener->went, went);
  }
  stack.check_invariants();
  for (const LabelUsage& usage : stack.usage_by_label()) expect_stat(usage.requested_bytes, labelled);
  EXPECT_EQ(stack.usage_by_label().empty(), !is_labelled);
  for (const Block& block : live) stack.deallocate(block);
  EXPECT_EQ(stack.stats().requested_bytes.current, 0);
  EXPECT_EQ(stack.stats().allocated_bytes.current, 0);
}

TEST(StackModel, CountsAlikeHoweverCallsAreKeptApart) {
  std::uint64_t seed = 0;
  for (const bool is_safe : {false, true})
    for (const bool is_trial : {false, true})
      for (const bool is_labelled : {false, true})
        for (const bool has_history : {false, true})
          for (const bool is_told : {false, true}) {
            SCOPED_TRACE(testing::Message() << "safe " << is_safe << ", trial " << is_trial << ", labels "
                                            << is_labelled << ", history " << has_history << ", told " << is_told);
            AddressOnlySource source;
            const StackConfig config{.policy = test::simple_policy({.safe = is_safe})};
            std::shared_ptr<AllocatorStack> stack;
            if (is_trial)
              stack = AllocatorStack::make_trial(source, config, nullptr);
            else
              stack = AllocatorStack::make(source, config);
            const auto history = std::make_shared<tenon::History>();
            if (has_history) stack->attach_history(history), history->start({});
            CountingListener listener;
            if (is_told) scopes::add_listener(listener, scopes::kWantsMemory);
            follow(*stack, ++seed, is_labelled, is_told && !is_trial ? &listener : nullptr);
            stack->trim(0);
            if (is_told) scopes::remove_listener(listener);
            if (is_trial) {
              EXPECT_EQ(listener.came + listener.went + listener.calls, 0) << "nobody is told of a trial";
            }
            if (is_told && !is_trial) {
              EXPECT_EQ(listener.bytes, 0u);
              EXPECT_GT(listener.calls, 0);
            }
          }
}

TEST(StackWalk, ShowsWhatThePolicyShows) {
  AddressOnlySource source;
  const auto stack = test::make_stack(source);
  const Block block = stack->allocate({.bytes = 1000});
  stack->deallocate(stack->allocate({.bytes = 5000}));
  const std::vector<Segment> shown = mapped_segments_of(*stack);
  ASSERT_EQ(shown.size(), 2u);
  EXPECT_EQ(shown[0].requested_bytes() + shown[1].requested_bytes(), 1000u);
  stack->deallocate(block);
}

TEST(TraceLayerRules, ItCountsTheLinesOfItsFile) {
  const std::string path = test::scratch_folder() + "stack_model.trace";
  AddressOnlySource source;
  auto stack = test::make_stack(source, {{"trace", {{"file", path}}}});
  for (std::size_t i = 1; i < 40; ++i) {
    const Block block = stack->allocate({.bytes = i, .purpose = i % 5 == 0 ? Purpose::kData : Purpose::kGradient});
    stack->record_use(block, {2});
    stack->mark("step");
    stack->deallocate(block);
  }
  const std::string said = test::reported(*stack, "trace", "lines");
  EXPECT_EQ(test::reported(*stack, "trace", "failure"), "");
  EXPECT_EQ(test::reported(*stack, "trace", "file"), path);
  stack.reset();
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(said, std::to_string(std::ranges::count(text, '\n')));
  std::remove(path.c_str());
}

TEST(TraceLayerRules, WhereTheDiskIsFullItSaysSoOnceAndTheProgramGoesOn) {
  AddressOnlySource source;
  const auto stack = test::make_stack(source, {{"trace", {{"file", "/dev/full"}}}});
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 30'000; ++i) stack->deallocate(stack->allocate({.bytes = 512}));
  const std::string text = ::testing::internal::GetCapturedStderr();
  const std::string failure = test::reported(*stack, "trace", "failure");
  EXPECT_THAT(failure,
              HasSubstr("writing '/dev/full' failed after " + test::reported(*stack, "trace", "lines") + " lines"));
  EXPECT_EQ(text, "tenon: trace: " + failure + "\n");
}

TEST(TraceLayerRules, WhereTheDiskIsFullOnlyAtTheEndItSaysSoToo) {
  AddressOnlySource source;
  for (const int blocks : {0, 3, 30'000}) {
    auto stack = test::make_stack(source, {{"trace", {{"file", "/dev/full"}}}});
    ::testing::internal::CaptureStderr();
    for (int i = 0; i < blocks; ++i) stack->deallocate(stack->allocate({.bytes = 512}));
    stack.reset();
    const std::string text = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
    EXPECT_THAT(text, HasSubstr("tenon: trace: writing '/dev/full' failed after "));
    EXPECT_THAT(text, HasSubstr("lines: No space left on device"));
  }
}

TEST(InjectLayerRules, AMapThatDoesNotFailReachesTheDevice) {
  AddressOnlySource device;
  ObservedSource observed(device);
  const LayerConfig config = test::layer({"inject", {{"call", "map"}, {"nth", "2"}}});
  const LayerInfo& info = find_layer("inject");
  const auto source = info.wrap_source(
      device, {.options = config.options, .traits = device.traits(), .source = device, .observed = observed});
  ASSERT_NE(source, nullptr);
  void* const space = source->reserve(2 * MiB);
  const auto failure = [&](Physical physical) -> std::string {
    try {
      source->map(space, 2 * MiB, physical, 0);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(failure({}), HasSubstr("map needs physical memory")) << "the device's own words";
  EXPECT_THAT(failure(source->create(2 * MiB)), HasSubstr("injected failure"));
  EXPECT_EQ(failure(source->create(2 * MiB)), "");
}

}  // namespace
}  // namespace tenon
