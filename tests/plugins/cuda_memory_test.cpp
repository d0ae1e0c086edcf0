// Virtual memory of the CUDA plugin: parts of a physical memory, access, peers.
#include "plugins/emulated_device.h"

#include "support/expect_error.h"

#include <tenon/core/units.h>

#include <cuda_runtime_api.h>

#include <cstdlib>

namespace tenon::test {
namespace {

class CudaMemory : public EmulatedCuda {
 protected:
  std::size_t page() { return memory(0).traits().page_bytes; }
  unsigned char* reserved(std::size_t pages) { return static_cast<unsigned char*>(memory(0).reserve(pages * page())); }
};

TEST_F(CudaMemory, AnyPartOfAPhysicalMemoryIsMapped) {
  const Physical physical = memory(0).create(4 * page());
  unsigned char* all = reserved(4);
  unsigned char* middle = reserved(2);
  memory(0).map(all, 4 * page(), physical, 0);
  memory(0).map(middle, 2 * page(), physical, page());
  device(0).fill(middle, 7, 2 * page(), {});
  EXPECT_EQ(fetch(0, all + page(), 1)[0], 7) << "both ranges show the same bytes";
  EXPECT_EQ(fetch(0, all + 3 * page() - 1, 1)[0], 7);
  EXPECT_NE(fetch(0, all + page() - 1, 1)[0], 7);
  EXPECT_NE(fetch(0, all + 3 * page(), 1)[0], 7);
  memory(0).unmap(all, 4 * page());
  memory(0).unmap(middle, 2 * page());
  memory(0).destroy(physical, 4 * page());
  memory(0).unreserve(all, 4 * page());
  memory(0).unreserve(middle, 2 * page());
  EXPECT_EQ(emulated_cuda::used_bytes(0), 0U);
}

TEST_F(CudaMemory, AccessIsGivenOnceForAWholeRange) {
  const Physical physical = memory(0).create(16 * page());
  unsigned char* address = reserved(16);
  memory(0).map(address, 16 * page(), physical, 0);
  EXPECT_EQ(emulated_cuda::calls("cuMemSetAccess"), 1);
  memory(0).unmap(address, 16 * page());
  memory(0).destroy(physical, 16 * page());
  memory(0).unreserve(address, 16 * page());
}

TEST_F(CudaMemory, APartBeyondTheEndIsRefusedAndLeavesNothingMapped) {
  const Physical physical = memory(0).create(2 * page());
  unsigned char* address = reserved(4);
  expect_error([&] { memory(0).map(address, 2 * page(), physical, page()); }, "cannot map");
  expect_error([&] { memory(0).map(address, page(), physical, 100); }, "cannot map");
  memory(0).destroy(physical, 2 * page());
  memory(0).unreserve(address, 4 * page());  // ends the test if something is mapped there
  EXPECT_EQ(emulated_cuda::used_bytes(0), 0U);
}

TEST_F(CudaMemory, APhysicalMemoryThatDoesNotFitIsNoneAndTakesNothing) {
  restart({.capacity_bytes = 16 * MiB});
  device(0);
  const std::size_t before = emulated_cuda::used_bytes(0);
  emulated_cuda::fail_call("cuMemCreate", 3, 2);
  EXPECT_FALSE(memory(0).create(4 * page()));
  EXPECT_EQ(emulated_cuda::used_bytes(0), before);
  EXPECT_EQ(memory(0).usage().free_bytes, 16 * MiB);
}

TEST_F(CudaMemory, AFailureInTheMiddleOfAMapLeavesNothingMapped) {
  const Physical physical = memory(0).create(4 * page());
  unsigned char* address = reserved(4);
  emulated_cuda::fail_call("cuMemMap", 3, 1);
  expect_error([&] { memory(0).map(address, 4 * page(), physical, 0); }, "cuMemMap");
  emulated_cuda::fail_call("cuMemSetAccess", 1, 1);
  expect_error([&] { memory(0).map(address, 4 * page(), physical, 0); }, "cuMemSetAccess");
  memory(0).destroy(physical, 4 * page());
  memory(0).unreserve(address, 4 * page());
  EXPECT_EQ(emulated_cuda::used_bytes(0), 0U);
}

TEST_F(CudaMemory, APeerReachesWhatIsMappedAndWhatWillBe) {
  const Physical physical = memory(0).create(4 * page());
  unsigned char* address = reserved(4);
  memory(0).map(address, 2 * page(), physical, 0);
  auto* acquired = static_cast<unsigned char*>(memory(0).acquire(4096));
  ASSERT_TRUE(device(0).share_memory_with(1));
  EXPECT_TRUE(device(0).share_memory_with(1)) << "twice is once";
  memory(0).map(address + 2 * page(), 2 * page(), physical, 2 * page());
  device(1).fill(address, 3, 4 * page(), {});
  device(1).fill(acquired, 4, 4096, {});
  device(1).synchronize();
  EXPECT_EQ(fetch(0, address, 1)[0], 3);
  EXPECT_EQ(fetch(0, address + 4 * page() - 1, 1)[0], 3);
  EXPECT_EQ(fetch(0, acquired, 1)[0], 4);
  memory(0).release(acquired, 4096);
  memory(0).unmap(address, 4 * page());
  memory(0).destroy(physical, 4 * page());
  memory(0).unreserve(address, 4 * page());
}

TEST_F(CudaMemory, GivesNoMoreThanItsCapacityWhateverTheDeviceHas) {
  Options options(backend().options());
  options.set_text("capacity", "64MiB");
  backend().configure(options);
  void* const most = memory(0).acquire(48 * MiB);
  ASSERT_NE(most, nullptr);
  EXPECT_EQ(memory(0).usage().free_bytes, 16 * MiB);
  EXPECT_EQ(memory(0).acquire(32 * MiB), nullptr);
  void* const rest = memory(0).acquire(16 * MiB);
  EXPECT_NE(rest, nullptr);
  memory(0).release(most, 48 * MiB);
  memory(0).release(rest, 16 * MiB);
  backend().configure(Options(backend().options()));
}

TEST_F(CudaMemory, WhatOthersTakeOfTheDeviceIsNotFree) {
  const std::size_t whole = memory(0).usage().free_bytes;
  void* taken = nullptr;
  ASSERT_EQ(cudaMalloc(&taken, GiB), cudaSuccess);
  EXPECT_EQ(memory(0).usage().free_bytes, whole - GiB);
  EXPECT_EQ(cudaFree(taken), cudaSuccess);
  EXPECT_EQ(memory(0).usage().free_bytes, whole);
}

TEST_F(CudaMemory, DevicesThatDoNotReachEachOtherShareNothing) {
  restart({.peer_access = false});
  EXPECT_FALSE(device(0).share_memory_with(1));
}

TEST_F(CudaMemory, APartOfAMappedRangeMayGoBeforeItIsShared) {
  const Physical physical = memory(0).create(4 * page());
  unsigned char* address = reserved(4);
  memory(0).map(address, 4 * page(), physical, 0);
  memory(0).unmap(address + page(), 2 * page());
  ASSERT_TRUE(device(0).share_memory_with(1));
  device(1).fill(address, 1, page(), {});
  device(1).fill(address + 3 * page(), 1, page(), {});
  device(1).synchronize();
  memory(0).unmap(address, page());
  memory(0).unmap(address + 3 * page(), page());
  memory(0).destroy(physical, 4 * page());
  memory(0).unreserve(address, 4 * page());
}

/// What memory without pages still does, and what it refuses.
void expect_no_virtual_memory(MemorySource& memory) {
  EXPECT_FALSE(memory.traits().virtual_memory);
  EXPECT_EQ(memory.traits().page_bytes, 0U);
  void* const address = memory.acquire(4096);
  EXPECT_NE(address, nullptr);
  memory.release(address, 4096);
  expect_error([&] { memory.reserve(2 * MiB); }, "cuda:0");
  expect_error([&] { memory.create(2 * MiB); }, "cuda:0");
}

TEST_F(CudaMemory, OfADeviceWithoutPagesIsAcquiredAndNotMapped) {
  restart({.virtual_memory = emulated_cuda::VirtualMemory::kOfNoDevice});
  expect_no_virtual_memory(memory(0));
  EXPECT_TRUE(device(0).share_memory_with(1)) << "what is acquired";
  EXPECT_EQ(emulated_cuda::calls("cuMemSetAccess"), 0);
}

using CudaMemoryDeathTest = CudaMemory;

/// In a process of its own: the driver's calls are looked up once.
TEST_F(CudaMemoryDeathTest, OfADriverThatHasNoneOfThoseCallsIsAcquiredAndNotMapped) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto use = [&] {
    restart({.virtual_memory = emulated_cuda::VirtualMemory::kOfNoDriver});
    expect_no_virtual_memory(memory(0));
    EXPECT_EQ(emulated_cuda::calls("cuMemGetAllocationGranularity"), 0);
    std::exit(HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(use(), testing::ExitedWithCode(0), "");
}

TEST_F(CudaMemory, IsOutOfTheHostsReach) {
  auto* address = static_cast<volatile char*>(memory(0).acquire(4096));
  EXPECT_DEATH(address[0] = 1, "");
  memory(0).release(const_cast<char*>(address), 4096);
}

}  // namespace
}  // namespace tenon::test
