// What was freed last serves the next request for as much, before its neighbours have been looked at.
#include <tenon/core/units.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>

namespace tenon {
namespace {

/// Three blocks side by side; the first, which is free, would be where a search finds room.
void expect_last_freed_again(Allocator& policy, std::size_t bytes) {
  const Block first = policy.allocate({.bytes = bytes});
  const Block second = policy.allocate({.bytes = bytes});
  const Block third = policy.allocate({.bytes = bytes});
  policy.deallocate(first, {});
  policy.deallocate(second, {});
  const Block again = policy.allocate({.bytes = bytes});
  EXPECT_EQ(again.data, second.data) << bytes << " bytes";
  policy.deallocate(again, {});
  policy.deallocate(third, {});
  policy.check_invariants();
}

TEST(LastFreed, ServesTheNextRequestOfItsSizeOnWhateverThread) {
  load_all_plugins();
  for (const char* name : {"arena", "tlsf"}) {
    SCOPED_TRACE(name);
    AddressOnlySource device;
    const AllocatorInfo& info = find_allocator(name);
    const Options options(info.options);
    const std::unique_ptr<Allocator> policy = info.create({.source = device, .options = options});
    const auto both = [&] {
      expect_last_freed_again(*policy, 1 * MiB);
      expect_last_freed_again(*policy, 1 * MiB - 100);
    };
    both();
    std::async(std::launch::async, both).get();
    // By now the first thread has come back so often that the heap's lock is its own.
    for (int i = 0; i < 10000; ++i) policy->deallocate(policy->allocate({.bytes = 512}), {});
    both();
    std::async(std::launch::async, both).get();
  }
}

}  // namespace
}  // namespace tenon
