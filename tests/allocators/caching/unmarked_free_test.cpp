// A stream that another one's block is used on cannot be marked as the block is freed: only a wait for the whole device
// makes it safe again.
#include <caching/caching_allocator.h>
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/forwarding.h>
#include <tenon/memory/sources/address_only_source.h>

#include <gtest/gtest.h>

namespace tenon {
namespace {

class Unmarkable final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  Ticket mark(StreamRef stream) override {
    if (fails && stream.id == 5) throw Error("that stream cannot be marked");
    return upstream_.mark(stream);
  }
  void synchronize() override {
    ++synchronizations;
    if (fails_to_wait) throw Error("the device is lost");
    upstream_.synchronize();
  }
  bool fails = true, fails_to_wait = false;
  int synchronizations = 0;
};

Block freed_unmarked(caching::CachingAllocator& policy) {
  const Block block = policy.allocate({.bytes = 20 * MiB});
  policy.record_use(block, {5});
  policy.deallocate(block, {});
  policy.check_invariants();
  return block;
}

TEST(UnmarkedFree, KeepsItsBlockUntilTheDeviceHasBeenWaitedFor) {
  AddressOnlySource device({.manual_completion = true});
  Unmarkable source(device);
  caching::CachingAllocator policy(source, {});
  const Block block = freed_unmarked(policy);
  device.complete(StreamRef{5});
  device.complete(StreamRef{});
  const Block other = policy.allocate({.bytes = 20 * MiB});
  EXPECT_NE(other.data, block.data) << "nobody knows whether stream 5 is done";
  EXPECT_EQ(source.synchronizations, 0);
  EXPECT_EQ(policy.trim(0), 20 * MiB);
  EXPECT_GE(source.synchronizations, 1);
  policy.check_invariants();
  policy.deallocate(other, {});
}

TEST(UnmarkedFree, StaysInUseWhereThatWaitFails) {
  AddressOnlySource device({.manual_completion = true});
  Unmarkable source(device);
  caching::CachingAllocator policy(source, {});
  const Block block = freed_unmarked(policy);
  source.fails_to_wait = true;
  EXPECT_THROW(policy.trim(0), Error);
  policy.check_invariants();
  const Block other = policy.allocate({.bytes = 20 * MiB});
  EXPECT_NE(other.data, block.data);
  EXPECT_EQ(device.used_bytes(), 40 * MiB);
  source.fails_to_wait = false;
  policy.deallocate(other, {});
  EXPECT_EQ(policy.trim(0), 40 * MiB);
}

TEST(UnmarkedFree, OfAPoolIsWaitedForWhenThatPoolIsReleasedAndNoOther) {
  AddressOnlySource device({.manual_completion = true});
  Unmarkable source(device);
  caching::CachingAllocator policy(source, {});
  for (const std::uint64_t pool : {1, 2}) {
    policy.begin_pool(pool, {});
    if (pool == 1) freed_unmarked(policy);
    if (pool == 2) policy.deallocate(policy.allocate({.bytes = 12 * MiB}), {});
    policy.end_pool(pool);
  }
  policy.release_pool(2);
  policy.check_invariants();
  EXPECT_EQ(device.used_bytes(), 20 * MiB) << "the other pool's block still waits";
  const int before = source.synchronizations;
  policy.release_pool(1);
  policy.check_invariants();
  EXPECT_GT(source.synchronizations, before);
  EXPECT_EQ(device.used_bytes(), 0u);
}

}  // namespace
}  // namespace tenon
