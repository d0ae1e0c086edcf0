// Whoever watches address ranges is told by the policy, also when other sources stand between the two.
#include <caching/caching_allocator.h>
#include <tenon/memory/address_range_watcher.h>
#include <tenon/memory/forwarding.h>
#include <tenon/memory/layers/layer.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <gtest/gtest.h>

#include <algorithm>

namespace tenon {
namespace {

class Watched final : public ForwardingSource, public AddressRangeWatcher {
 public:
  using ForwardingSource::ForwardingSource;
  AddressRangeWatcher* address_range_watcher() override { return this; }
  void relied_on(std::size_t, std::size_t range_bytes) noexcept override { longest_ = std::max(longest_, range_bytes); }
  std::size_t longest() const { return longest_; }

 private:
  std::size_t longest_ = 0;
};

const AllocatorInfo kExpandable{
    .name = "expandable",
    .summary = "",
    .options = caching::option_schema(true),
    .create = [](const AllocatorContext& context) { return caching::make_allocator(context, true); }};

TEST(AddressRangeWatcher, IsToldByAPolicyOnTheSourceItself) {
  AddressOnlySource device({.capacity_bytes = 1 * GiB});
  Watched watched(device);
  const Options options(kExpandable.options);
  const auto policy = caching::make_allocator({.source = watched, .options = options}, true);
  policy->deallocate(policy->allocate({.bytes = 100 * MiB}), {});
  EXPECT_EQ(watched.longest(), 100 * MiB);
}

TEST(AddressRangeWatcher, IsToldThroughTheSourcesOfAStackAndItsLayers) {
  AddressOnlySource device({.capacity_bytes = 1 * GiB});
  Watched watched(device);
  StackConfig config{.policy = kExpandable, .options = Options(kExpandable.options), .layers = {}};
  Options inject(find_layer("inject").options);
  inject.set_text("call", "map");
  config.layers.push_back({"inject", inject});
  const auto stack = AllocatorStack::make(watched, config);
  stack->deallocate(stack->allocate({.bytes = 100 * MiB}));
  EXPECT_EQ(watched.longest(), 100 * MiB);
}

TEST(AddressRangeWatcher, IsNobodyWhereTheSourceNamesNone) {
  AddressOnlySource device;
  ForwardingSource around(device);
  EXPECT_EQ(around.address_range_watcher(), nullptr);
}

}  // namespace
}  // namespace tenon
