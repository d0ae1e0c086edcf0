// mortise on a device that cannot serve a request.
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/forwarding.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/runtime/allocator_spec.h>

#include <gtest/gtest.h>

namespace tenon::mortise {
namespace {

/// Counts the chunks that it gave.
class CountingSource final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  Physical create(std::size_t bytes) override { return ++chunks, upstream_.create(bytes); }
  int chunks = 0;
};

// On a GPU that takes half a millisecond for a chunk, 20 seconds went by before the error.
TEST(Mortise, ARequestBeyondTheDeviceIsRefusedBeforeTheDeviceIsFilled) {
  AddressOnlySource device({.capacity_bytes = 80 * GiB});
  CountingSource source(device);
  const StackConfig config = allocator_from_spec("mortise");
  const auto allocator = config.policy.create({.source = source, .options = config.options});
  const Block held = allocator->allocate({.bytes = 30 * GiB});
  const int before = source.chunks;
  EXPECT_THROW(allocator->allocate({.bytes = 60 * GiB}), OutOfMemory);
  EXPECT_EQ(source.chunks, before);
  const Block more = allocator->allocate({.bytes = 50 * GiB - 2 * MiB});
  allocator->deallocate(more, {});
  allocator->deallocate(held, {});
}

}  // namespace
}  // namespace tenon::mortise
