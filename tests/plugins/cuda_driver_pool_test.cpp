// driver_async on an emulated CUDA device: memory comes from the driver's own pool and goes back in the order of
// streams.
#include "plugins/emulated_device.h"

#include <tenon/core/error.h>
#include <tenon/memory/driver_pool.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/plugins/plugins.h>

#include <array>
#include <memory>
#include <utility>

namespace tenon::test {
namespace {

using emulated_cuda::Order;
using emulated_cuda::used_bytes;

constexpr std::size_t kChunk = 32 * MiB;  // by which the emulated driver's pools grow

class CudaDriverPool : public EmulatedCuda {
 protected:
  void TearDown() override {
    stack_.reset();
    pool_.reset();
    EmulatedCuda::TearDown();
  }
  AllocatorStack& stack(const std::string& options = "") {
    stack_ = AllocatorStack::make(memory(0), allocator_from_spec("driver_async" + options));
    return *stack_;
  }
  DriverPool& pool(const DriverPoolOptions& options = {}) {
    pool_ = memory(0).make_driver_pool(options);
    return *pool_;
  }
  StreamRef stream() { return device(0).create_stream(0); }
  static std::int64_t allocations() { return emulated_cuda::calls("cudaMallocFromPoolAsync"); }

  std::shared_ptr<AllocatorStack> stack_;
  std::unique_ptr<DriverPool> pool_;
};

TEST_F(CudaDriverPool, ServesEachRequestInsteadOfSegments) {
  AllocatorStack& all = stack();
  for (int i = 0; i < 3; ++i) {
    const Block block = all.allocate({.bytes = 1000});
    EXPECT_EQ(block.bytes, 1024U);
    all.deallocate(block);
  }
  EXPECT_EQ(allocations(), 3);
  EXPECT_EQ(emulated_cuda::calls("cudaFreeAsync"), 3);
  EXPECT_EQ(emulated_cuda::calls("cudaMalloc"), 0);
  EXPECT_EQ(all.stats().device_allocations, 1) << "that it grew once is what the device was asked for";
  EXPECT_EQ(all.stats().reserved_bytes.current, static_cast<std::int64_t>(kChunk));
}

TEST_F(CudaDriverPool, IsReplacedByItsRulesWhereTheDeviceHasNone) {
  restart({.memory_pools = false});
  AllocatorStack& all = stack();
  all.deallocate(all.allocate({.bytes = 1000}));
  EXPECT_EQ(emulated_cuda::calls("cudaMalloc"), 1);
  EXPECT_EQ(allocations(), 0);
}

TEST_F(CudaDriverPool, KeepsWhatTheThresholdSaysAtASynchronisation) {
  for (const auto& [options, kept] :
       {std::pair<const char*, std::size_t>{"", 0}, {":release_threshold=1TiB", kChunk}}) {
    SCOPED_TRACE(options);
    AllocatorStack& all = stack(options);
    all.deallocate(all.allocate({.bytes = MiB}));
    EXPECT_EQ(used_bytes(0), kChunk) << "nobody has waited";
    device(0).synchronize();
    EXPECT_EQ(used_bytes(0), kept);
    stack_.reset();
    EXPECT_EQ(used_bytes(0), 0U);
  }
}

TEST_F(CudaDriverPool, GivesBackWhatIsCachedWhenAskedTo) {
  AllocatorStack& all = stack(":release_threshold=1TiB");
  const Block kept = all.allocate({.bytes = MiB});
  all.deallocate(all.allocate({.bytes = 40 * MiB}));
  EXPECT_EQ(used_bytes(0), 64 * MiB);
  EXPECT_EQ(all.trim(0), 63 * MiB);
  EXPECT_EQ(used_bytes(0), MiB);
  EXPECT_EQ(all.stats().reserved_bytes.current, static_cast<std::int64_t>(MiB));
  all.deallocate(kept);
}

TEST_F(CudaDriverPool, KeepsWithinTheLimitOfReservedMemory) {
  AllocatorStack& all = stack(":release_threshold=1TiB");
  all.set_reserved_limit(48 * MiB);
  all.deallocate(all.allocate({.bytes = 20 * MiB}));
  const Block block = all.allocate({.bytes = 40 * MiB});  // the pool has more than the limit, until it is trimmed
  EXPECT_THROW(all.allocate({.bytes = 10 * MiB}), OutOfMemory);
  EXPECT_LE(all.stats().reserved_bytes.current, static_cast<std::int64_t>(48 * MiB));
  EXPECT_LE(used_bytes(0), 48 * MiB);
  all.deallocate(block);
}

TEST_F(CudaDriverPool, RunsOutWithTheDevice) {
  restart({.devices = 1, .capacity_bytes = 64 * MiB});
  AllocatorStack& all = stack();
  const Block block = all.allocate({.bytes = 60 * MiB});
  EXPECT_THROW(all.allocate({.bytes = 8 * MiB}), OutOfMemory);
  all.deallocate(block);
  all.deallocate(all.allocate({.bytes = 64 * MiB}));
}

TEST_F(CudaDriverPool, FreesBehindAllStreamsThatUseABlock) {
  restart({.devices = 1, .order = Order::kLastMoment});
  const StreamRef own = stream(), other = stream();
  AllocatorStack& all = stack();
  const Block block = all.allocate({.bytes = MiB, .stream = own});
  device(0).synchronize(own);  // it is there
  device(0).fill(block.data, 1, MiB, own);
  device(0).fill(block.data, 2, 64, other);
  all.record_use(block, other);
  all.deallocate(block);
  device(0).synchronize();  // ends the program if the free runs before either fill
  EXPECT_EQ(used_bytes(0), 0U);
}

TEST_F(CudaDriverPool, TakesABlockBackWhoseStreamWasDestroyed) {
  const StreamRef gone = stream();
  AllocatorStack& all = stack();
  const Block block = all.allocate({.bytes = MiB, .stream = gone});
  device(0).fill(block.data, 1, MiB, gone);
  device(0).destroy_stream(gone);
  all.deallocate(block);
  device(0).synchronize();
  EXPECT_EQ(used_bytes(0), 0U);
}

TEST_F(CudaDriverPool, IsReachedByPeersThatShareTheDevicesMemory) {
  void* const before = pool().acquire(MiB, {});
  ASSERT_TRUE(device(0).share_memory_with(1));
  void* const after = pool_->acquire(MiB, {});
  device(0).synchronize();
  const StreamRef there = device(1).create_stream(0);
  for (void* address : {before, after}) device(1).fill(address, 1, MiB, there);
  device(1).synchronize();
  for (void* address : {before, after}) pool_->release(address, MiB, std::array{StreamRef{}});
  const std::unique_ptr<DriverPool> later = memory(0).make_driver_pool({});
  void* const address = later->acquire(MiB, {});
  device(0).synchronize();
  device(1).fill(address, 1, MiB, there);
  device(1).synchronize();
  later->release(address, MiB, std::array{StreamRef{}});
  device(0).synchronize();
}

TEST_F(CudaDriverPool, IsReachedByEachOfSeveralPeers) {
  restart({.devices = 3});
  void* const address = pool().acquire(MiB, {});
  device(0).synchronize();
  for (const int peer : {1, 2}) {
    ASSERT_TRUE(device(0).share_memory_with(peer));
    const StreamRef there = device(peer).create_stream(0);
    device(peer).fill(address, 1, MiB, there);
    device(peer).synchronize();
    device(peer).destroy_stream(there);
  }
  pool_->release(address, MiB, std::array{StreamRef{}});
  device(0).synchronize();
}

TEST_F(CudaDriverPool, DuringACaptureGivesNothingAndKeepsWhatComesBack) {
  const StreamRef captured = stream();
  DriverPool& of = pool({.release_threshold = 1 * TiB});
  void* const address = of.acquire(MiB, captured);
  device(0).begin_capture(captured);
  device(0).fill(address, 1, MiB, captured);
  EXPECT_THROW(of.acquire(MiB, captured), Error);
  of.release(address, MiB, std::array{captured});
  EXPECT_EQ(emulated_cuda::calls("cudaFreeAsync"), 0);
  void* const other = of.acquire(MiB, {});
  EXPECT_EQ(emulated_cuda::calls("cudaFreeAsync"), 0) << "its stream has not got there";
  const GraphRef graph = device(0).end_capture(captured);
  of.trim(0);
  EXPECT_EQ(emulated_cuda::calls("cudaFreeAsync"), 1);
  of.release(other, MiB, std::array{StreamRef{}});
  device(0).synchronize();
  device(0).destroy_graph(graph);
}

TEST_F(CudaDriverPool, FreesWhatItKeptOnceWhereTheDriverRefusesInBetween) {
  const StreamRef captured = stream();
  DriverPool& of = pool();
  void* const first = of.acquire(MiB, captured);
  void* const second = of.acquire(MiB, captured);
  device(0).begin_capture(captured);
  for (void* const address : {first, second}) of.release(address, MiB, std::array{captured});
  const GraphRef graph = device(0).end_capture(captured);
  emulated_cuda::fail_call("cudaFreeAsync", 2, 719);  // cudaErrorLaunchFailure
  of.trim(0);
  EXPECT_EQ(emulated_cuda::calls("cudaFreeAsync"), 2);
  of.trim(0);
  EXPECT_EQ(emulated_cuda::calls("cudaFreeAsync"), 3) << "the second alone is left";
  device(0).synchronize();
  device(0).destroy_graph(graph);
}

TEST_F(CudaDriverPool, ThatTheDriverRefusesIsAnErrorAndTakesNothing) {
  DriverPool& of = pool();
  emulated_cuda::fail_call("cudaMallocFromPoolAsync", 1, 719);  // cudaErrorLaunchFailure
  EXPECT_THROW(of.acquire(MiB, {}), Error);
  EXPECT_EQ(memory(0).usage().free_bytes, memory(0).usage().total_bytes);
  void* const address = of.acquire(MiB, {});
  EXPECT_NE(address, nullptr);
  of.release(address, MiB, std::array{StreamRef{}});
}

}  // namespace
}  // namespace tenon::test
