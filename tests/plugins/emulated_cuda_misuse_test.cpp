// What CUDA leaves undefined ends the program on the emulated machine, with a sentence that says what was wrong.
#include "support/emulated_cuda/emulated_cuda.h"

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <string>

namespace tenon::emulated_cuda {
namespace {

template <class Function>
Function entry(const char* name, unsigned version) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result);
  return reinterpret_cast<Function>(found);
}

class EmulatedMisuse : public testing::Test {
 protected:
  static constexpr std::size_t kPage = std::size_t{2} << 20;

  void SetUp() override {
    start({.order = Order::kLastMoment});
    void* allocated = nullptr;
    cudaMalloc(&allocated, 1024);
    address_ = static_cast<unsigned char*>(allocated);
    cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
  }
  void TearDown() override {
    cudaDeviceSynchronize();
    start({});
  }

  CUmemGenericAllocationHandle new_handle(std::size_t bytes) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(create_(&handle, bytes, &properties, 0), CUDA_SUCCESS);
    return handle;
  }
  CUdeviceptr new_range(std::size_t bytes) {
    CUdeviceptr range = 0;
    EXPECT_EQ(reserve_(&range, bytes, 0, 0, 0), CUDA_SUCCESS);
    return range;
  }
  void give_access(CUdeviceptr range, std::size_t bytes) {
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    EXPECT_EQ(set_access_(range, bytes, &access, 1), CUDA_SUCCESS);
  }

  unsigned char* address_ = nullptr;
  cudaStream_t stream_ = nullptr;
  PFN_cuMemCreate_v10020 create_ = entry<PFN_cuMemCreate_v10020>("cuMemCreate", 10020);
  PFN_cuMemAddressReserve_v10020 reserve_ = entry<PFN_cuMemAddressReserve_v10020>("cuMemAddressReserve", 10020);
  PFN_cuMemMap_v10020 map_ = entry<PFN_cuMemMap_v10020>("cuMemMap", 10020);
  PFN_cuMemUnmap_v10020 unmap_ = entry<PFN_cuMemUnmap_v10020>("cuMemUnmap", 10020);
  PFN_cuMemSetAccess_v10020 set_access_ = entry<PFN_cuMemSetAccess_v10020>("cuMemSetAccess", 10020);
  PFN_cuMemAddressFree_v10020 unreserve_ = entry<PFN_cuMemAddressFree_v10020>("cuMemAddressFree", 10020);
};

TEST_F(EmulatedMisuse, BeyondTheEnd) {
  EXPECT_DEATH(cudaMemsetAsync(address_ + 1000, 0, 25, stream_), "cudaMemsetAsync uses 25 bytes .* 1 of them beyond");
}

TEST_F(EmulatedMisuse, TheSameBytesOnTwoStreamsThatNothingOrders) {
  for (const Order order : {Order::kEager, Order::kLastMoment}) {
    cudaDeviceSynchronize();
    cudaFree(address_);
    start({.order = order});
    void* allocated = nullptr;
    cudaMalloc(&allocated, 1024);
    address_ = static_cast<unsigned char*>(allocated);
    cudaStream_t other = nullptr;
    cudaEvent_t event = nullptr;
    cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaMemsetAsync(address_ + 512, 0, 8, other);
    cudaMemsetAsync(address_, 0, 64, stream_);
    EXPECT_DEATH(cudaMemsetAsync(address_ + 63, 0, 2, other),
                 "cudaMemsetAsync writes 2 bytes at .*, which cudaMemsetAsync on another stream writes, and nothing "
                 "orders the two");
    EXPECT_DEATH(cudaMemcpyAsync(address_ + 256, address_, 4, cudaMemcpyDeviceToDevice, other), "reads 4 bytes");
    cudaMemsetAsync(address_ + 64, 0, 64, other);  // beside it
    cudaEventRecord(event, stream_);
    cudaStreamWaitEvent(other, event, 0);
    cudaMemcpyAsync(address_ + 256, address_, 4, cudaMemcpyDeviceToDevice, other);
    EXPECT_DEATH(cudaMemsetAsync(address_, 0, 64, stream_), "writes 64 bytes .* on another stream reads");
    cudaStreamSynchronize(other);
    cudaMemsetAsync(address_, 0, 64, stream_);
    while (cudaStreamQuery(stream_) == cudaErrorNotReady) {
    }
    cudaMemsetAsync(address_, 1, 64, other);
  }
}

TEST_F(EmulatedMisuse, ACopyOntoAPartOfItself) {
  cudaMemcpyAsync(address_ + 64, address_, 64, cudaMemcpyDeviceToDevice, stream_);
  EXPECT_DEATH(cudaMemcpyAsync(address_ + 63, address_, 64, cudaMemcpyDeviceToDevice, stream_), "the two overlap");
}

TEST_F(EmulatedMisuse, MemoryThatWasFreed) {
  cudaFree(address_);
  EXPECT_DEATH(cudaMemsetAsync(address_, 0, 1, stream_), "nothing is at 0x");
  EXPECT_DEATH(cudaFree(address_), "which was freed");
}

TEST_F(EmulatedMisuse, MemoryThatGoesWhileWorkIsQueued) {
  cudaMemsetAsync(address_ + 100, 0, 1, stream_);
  EXPECT_DEATH(cudaFree(address_), "queued cudaMemsetAsync has not used yet");
}

TEST_F(EmulatedMisuse, MemoryThatIsFreedInStreamOrderBeforeItsUse) {
  EXPECT_DEATH(
      {
        cudaStream_t other = nullptr;
        cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
        cudaMemsetAsync(address_, 0, 1, stream_);
        cudaFreeAsync(address_, other);  // without an event between the two
        cudaStreamSynchronize(other);
        cudaStreamSynchronize(stream_);
      },
      "nothing is at 0x");
}

TEST_F(EmulatedMisuse, MemoryInStreamOrderBeforeItIsThere) {
  EXPECT_DEATH(
      {
        cudaStream_t other = nullptr;
        cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
        void* memory = nullptr;
        cudaMallocAsync(&memory, 64, other);
        cudaMemsetAsync(memory, 0, 1, stream_);  // without an event between the two
        cudaStreamSynchronize(stream_);
      },
      "cudaMemsetAsync uses memory at .* before a stream has got to its allocation");
}

TEST_F(EmulatedMisuse, MemoryThatIsFreedInStreamOrderTwice) {
  cudaFreeAsync(address_, stream_);
  EXPECT_DEATH(cudaFreeAsync(address_, stream_), "memory that is freed already");
}

TEST_F(EmulatedMisuse, APoolThatWasDestroyed) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  cudaMemPool_t pool = nullptr;
  ASSERT_EQ(cudaMemPoolCreate(&pool, &properties), cudaSuccess);
  cudaMemPoolDestroy(pool);
  void* memory = nullptr;
  EXPECT_DEATH(cudaMallocFromPoolAsync(&memory, 64, pool, stream_), "a pool that was destroyed");
}

TEST_F(EmulatedMisuse, MemoryOfAnotherDevice) {
  cudaSetDevice(1);
  cudaStream_t other = nullptr;
  cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  EXPECT_DEATH(cudaMemsetAsync(address_, 0, 1, other), "on device 1 uses memory of device 0 .* without access");
  cudaSetDevice(0);
}

TEST_F(EmulatedMisuse, AKindOfCopyThatItIsNot) {
  unsigned char host = 0;
  EXPECT_DEATH(cudaMemcpyAsync(&host, address_, 1, cudaMemcpyHostToDevice, stream_), "a kind of copy");
}

TEST_F(EmulatedMisuse, HandlesThatAreDead) {
  cudaEvent_t event = nullptr;
  cudaEventCreateWithFlags(&event, cudaEventDefault);
  cudaEventDestroy(event);
  EXPECT_DEATH(cudaEventQuery(event), "an event that was destroyed");
  cudaStreamDestroy(stream_);
  EXPECT_DEATH(cudaStreamSynchronize(stream_), "a stream that was destroyed");
  EXPECT_DEATH(cudaGraphLaunch(nullptr, nullptr), "a graph that was destroyed");
}

TEST_F(EmulatedMisuse, AHostFunctionThatCallsCuda) {
  EXPECT_DEATH(
      {
        cudaLaunchHostFunc(
            stream_, [](void*) { cudaGetLastError(); }, nullptr);
        cudaStreamSynchronize(stream_);
      },
      "cudaGetLastError was called by a host function");
}

TEST_F(EmulatedMisuse, AnOffsetInAHandle) {
  const CUmemGenericAllocationHandle handle = new_handle(2 * kPage);
  const CUdeviceptr range = new_range(kPage);
  EXPECT_DEATH(map_(range, kPage, kPage, handle, 0), "offset of 2097152: it must be zero");
}

TEST_F(EmulatedMisuse, AMappingWithoutAccess) {
  const CUdeviceptr range = new_range(kPage);
  EXPECT_EQ(map_(range, kPage, 0, new_handle(kPage), 0), CUDA_SUCCESS);
  EXPECT_DEATH(cudaMemsetAsync(reinterpret_cast<void*>(range), 0, 1, stream_), "without access to it");
}

TEST_F(EmulatedMisuse, PartsOfAMapping) {
  const CUdeviceptr range = new_range(2 * kPage);
  EXPECT_EQ(map_(range, 2 * kPage, 0, new_handle(2 * kPage), 0), CUDA_SUCCESS);
  EXPECT_DEATH(unmap_(range, kPage), "not the whole range of one cuMemMap");
  EXPECT_DEATH(give_access(range, kPage), "not made of whole mappings");
  EXPECT_DEATH(unreserve_(range, 2 * kPage), "with memory mapped in it");
  EXPECT_DEATH(map_(range, kPage, 0, new_handle(kPage), 0), "with memory mapped in it");
}

TEST_F(EmulatedMisuse, AMappingThatGoesWhileWorkIsQueued) {
  const CUdeviceptr range = new_range(kPage);
  EXPECT_EQ(map_(range, kPage, 0, new_handle(kPage), 0), CUDA_SUCCESS);
  give_access(range, kPage);
  cudaMemsetAsync(reinterpret_cast<void*>(range), 0, 1, stream_);
  EXPECT_DEATH(unmap_(range, kPage), "cuMemUnmap takes memory .* queued cudaMemsetAsync");
}

TEST_F(EmulatedMisuse, AnEntryPointThatIsNotEmulated) {
  EXPECT_DEATH(entry<void*>("cuMemGetAddressRange", 3020), "cuMemGetAddressRange is not emulated");
}

}  // namespace
}  // namespace tenon::emulated_cuda
