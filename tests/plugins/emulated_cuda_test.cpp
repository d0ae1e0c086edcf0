// The emulated machine itself: order of streams, events, the legacy stream, contexts, captures, capacities.
#include "support/emulated_cuda/emulated_cuda.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace tenon::emulated_cuda {
namespace {

class EmulatedMachine : public testing::Test {
 protected:
  void SetUp() override { start({}); }
  void TearDown() override {
    cudaSetDevice(0);
    cudaDeviceSynchronize();
    start({});
  }
  cudaStream_t new_stream(unsigned flags = cudaStreamNonBlocking) {
    cudaStream_t stream = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
    return stream;
  }
  unsigned char* new_memory(std::size_t bytes) {
    void* address = nullptr;
    EXPECT_EQ(cudaMalloc(&address, bytes), cudaSuccess);
    return static_cast<unsigned char*>(address);
  }
  unsigned char first_byte(const void* address) {
    unsigned char byte = 0;
    EXPECT_EQ(cudaMemcpyAsync(&byte, address, 1, cudaMemcpyDeviceToHost, nullptr), cudaSuccess);
    return byte;
  }
};

TEST_F(EmulatedMachine, RunsAtOnceAtTheLastMomentOrInBetween) {
  for (const Order order : {Order::kEager, Order::kLastMoment}) {
    start({.order = order});
    unsigned char* address = new_memory(64);
    cudaStream_t stream = new_stream();
    cudaMemsetAsync(address, 1, 64, stream);
    EXPECT_EQ(queued_work(), order == Order::kEager ? 0U : 1U);
    cudaStreamSynchronize(stream);
    EXPECT_EQ(queued_work(), 0U);
  }
}

TEST_F(EmulatedMachine, TheLastMomentRunsWhatIsNeededAndNothingElse) {
  start({.order = Order::kLastMoment});
  unsigned char* address = new_memory(64);
  cudaStream_t needed = new_stream();
  cudaStream_t other = new_stream();
  cudaMemsetAsync(address, 1, 8, other);
  cudaMemsetAsync(address + 8, 2, 8, needed);
  cudaStreamSynchronize(needed);
  EXPECT_EQ(queued_work(), 1U);
  cudaStreamSynchronize(other);
}

TEST_F(EmulatedMachine, AnEventThatIsAskedForComesNearer) {
  start({.order = Order::kLastMoment});
  unsigned char* address = new_memory(64);
  cudaStream_t stream = new_stream();
  cudaEvent_t event = nullptr;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess) << "never recorded";
  for (int i = 0; i < 3; ++i) cudaMemsetAsync(address, i, 64, stream);
  cudaEventRecord(event, stream);
  int asked = 0;
  while (cudaEventQuery(event) == cudaErrorNotReady) ++asked;
  EXPECT_EQ(asked, 4);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(EmulatedMachine, SeedsGiveDifferentOrdersOfStreamsThatDoNotWait) {
  std::vector<unsigned char> last;
  for (std::uint64_t seed = 1; seed <= 32; ++seed) {
    start({.order = Order::kSeeded, .seed = seed, .finds_unordered_use = false});
    unsigned char* address = new_memory(64);
    cudaStream_t one = new_stream();
    cudaStream_t two = new_stream();
    cudaMemsetAsync(address, 1, 1, one);
    cudaMemsetAsync(address, 2, 1, two);
    cudaDeviceSynchronize();
    last.push_back(first_byte(address));
  }
  EXPECT_GT(std::count(last.begin(), last.end(), 1), 3);
  EXPECT_GT(std::count(last.begin(), last.end(), 2), 3);
}

TEST_F(EmulatedMachine, AStreamWaitsForAnEventAndForTheLegacyStreamUnlessItIsNonBlocking) {
  for (std::uint64_t seed = 1; seed <= 32; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    start({.order = Order::kSeeded, .seed = seed});
    unsigned char* address = new_memory(64);
    cudaStream_t one = new_stream();
    cudaStream_t two = new_stream();
    cudaStream_t blocking = new_stream(cudaStreamDefault);
    cudaEvent_t event = nullptr;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaMemsetAsync(address, 1, 1, one);
    cudaEventRecord(event, one);
    cudaStreamWaitEvent(two, event, 0);
    cudaMemsetAsync(address, 2, 1, two);
    cudaMemsetAsync(address + 1, 1, 1, blocking);
    cudaMemsetAsync(address + 1, 2, 1, nullptr);
    cudaMemsetAsync(address + 1, 3, 1, blocking);
    cudaDeviceSynchronize();
    EXPECT_EQ(first_byte(address), 2);
    EXPECT_EQ(first_byte(address + 1), 3);
  }
}

TEST_F(EmulatedMachine, AHostFunctionHoldsItsStreamAndNoOther) {
  std::promise<void> open;
  std::future<void> gate = open.get_future();
  cudaStream_t held = new_stream();
  cudaStream_t free = new_stream();
  unsigned char* address = new_memory(64);
  cudaLaunchHostFunc(
      held, [](void* data) { static_cast<std::future<void>*>(data)->wait(); }, &gate);
  cudaMemsetAsync(address, 1, 1, held);
  cudaMemsetAsync(address + 1, 2, 1, free);
  EXPECT_EQ(cudaStreamSynchronize(free), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(held), cudaErrorNotReady);
  cudaGetLastError();
  open.set_value();
  EXPECT_EQ(cudaStreamSynchronize(held), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(held), cudaSuccess);
}

TEST_F(EmulatedMachine, PageableMemoryIsReadDuringTheCallAndPinnedMemoryWhenTheCopyRuns) {
  start({.order = Order::kLastMoment});
  unsigned char* address = new_memory(64);
  cudaStream_t stream = new_stream();
  unsigned char pageable = 1;
  void* allocated = nullptr;
  cudaHostAlloc(&allocated, 64, cudaHostAllocPortable);
  auto* pinned = static_cast<unsigned char*>(allocated);
  *pinned = 1;
  cudaMemcpyAsync(address, &pageable, 1, cudaMemcpyHostToDevice, stream);
  cudaMemcpyAsync(address + 1, pinned, 1, cudaMemcpyHostToDevice, stream);
  pageable = 2;
  *pinned = 2;
  cudaStreamSynchronize(stream);
  EXPECT_EQ(first_byte(address), 1);
  EXPECT_EQ(first_byte(address + 1), 2);
  cudaFreeHost(pinned);
}

TEST_F(EmulatedMachine, ACallOnAThreadWithoutAContextMakesOneAndSoDoesCudaSetDevice) {
  EXPECT_EQ(contexts(), std::vector<int>{});
  std::thread([] {
    int device = -1;
    cudaGetDevice(&device);
    EXPECT_EQ(device, 0);
    EXPECT_EQ(contexts(), std::vector<int>{});
    cudaSetDevice(1);
  }).join();
  EXPECT_EQ(contexts(), std::vector<int>{1});
  std::thread([] { cudaFree(nullptr); }).join();
  EXPECT_EQ(contexts(), (std::vector<int>{0, 1}));
}

TEST_F(EmulatedMachine, TheDeviceIsFullAtItsCapacity) {
  start({.capacity_bytes = 4096});
  unsigned char* first = new_memory(4000);
  void* second = nullptr;
  EXPECT_EQ(cudaMalloc(&second, 97), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&second, 96), cudaSuccess);
  cudaFree(first);
  EXPECT_EQ(used_bytes(0), 96U);
}

TEST_F(EmulatedMachine, MemoryInStreamOrderIsThereUntilTheFreeRuns) {
  start({.order = Order::kLastMoment});
  cudaStream_t stream = new_stream();
  void* address = nullptr;
  EXPECT_EQ(cudaMallocAsync(&address, 64, stream), cudaSuccess);
  cudaMemsetAsync(address, 1, 64, stream);
  EXPECT_EQ(cudaFreeAsync(address, stream), cudaSuccess);
  EXPECT_EQ(used_bytes(0), std::size_t{32} << 20) << "pools grow by that";
  cudaStreamSynchronize(stream);
  EXPECT_EQ(used_bytes(0), 0U);
}

TEST_F(EmulatedMachine, ACaptureIsLostByWhatMightWait) {
  cudaStream_t stream = new_stream();
  cudaGraph_t graph = nullptr;
  void* address = nullptr;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  EXPECT_EQ(cudaMalloc(&address, 64), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);

  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  std::thread([&] { EXPECT_EQ(cudaMalloc(&address, 64), cudaSuccess); }).join();
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);

  cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(cudaFree(address), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
}

// As on an H100 with driver 580, call by call.
TEST_F(EmulatedMachine, CallsThatEndACaptureOfTheirThread) {
  cudaStream_t captured = new_stream(), other = new_stream();
  const cudaMemPoolProps properties{.allocType = cudaMemAllocationTypePinned,
                                    .location = {.type = cudaMemLocationTypeDevice, .id = 0}};
  cudaMemPool_t pool = nullptr;
  ASSERT_EQ(cudaMemPoolCreate(&pool, &properties), cudaSuccess);
  void *address = nullptr, *pooled = nullptr;
  cudaMallocFromPoolAsync(&pooled, 1024, pool, other);
  cudaEvent_t event = nullptr;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaEventRecord(event, other);
  std::uint64_t bytes = 0;
  std::size_t free_bytes = 0, total_bytes = 0;
  unsigned long long id = 0;
  int value = 0;
  cudaStreamCaptureStatus status{};
  struct Row {
    const char* name;
    bool ends;
    std::function<void()> call;
  };
  const Row rows[] = {
      {"cudaMalloc", true, [&] { cudaMalloc(&address, 1024); }},
      {"cudaHostAlloc", true, [&] { cudaHostAlloc(&address, 1024, 0); }},
      {"cudaEventQuery", true, [&] { cudaEventQuery(event); }},
      {"cudaDeviceSynchronize", true, [&] { cudaDeviceSynchronize(); }},
      {"cudaStreamSynchronize", true, [&] { cudaStreamSynchronize(other); }},
      {"cudaStreamQuery", true, [&] { cudaStreamQuery(other); }},
      {"cudaEventSynchronize", true, [&] { cudaEventSynchronize(event); }},
      {"cudaMemPoolCreate", true, [&] { cudaMemPoolCreate(&pool, &properties); }},
      {"cudaMemPoolGetAttribute", true,
       [&] { cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &bytes); }},
      {"cudaMemPoolSetAttribute", true,
       [&] { cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &bytes); }},
      {"cudaMemPoolTrimTo", true, [&] { cudaMemPoolTrimTo(pool, 0); }},
      {"cudaMallocFromPoolAsync", true, [&] { cudaMallocFromPoolAsync(&address, 1024, pool, other); }},
      {"cudaFreeAsync", true, [&] { cudaFreeAsync(pooled, other); }},
      {"cudaStreamGetId of the captured", true, [&] { cudaStreamGetId(captured, &id); }},
      {"cudaStreamGetId", false, [&] { cudaStreamGetId(other, &id); }},
      {"cudaStreamIsCapturing", false, [&] { cudaStreamIsCapturing(captured, &status); }},
      {"cudaEventCreateWithFlags", false, [&] { cudaEventCreateWithFlags(&event, cudaEventDisableTiming); }},
      {"cudaMemGetInfo", false, [&] { cudaMemGetInfo(&free_bytes, &total_bytes); }},
      {"cudaDeviceGetAttribute", false, [&] { cudaDeviceGetAttribute(&value, cudaDevAttrMemoryPoolsSupported, 0); }},
  };
  for (const Row& row : rows) {
    cudaStreamBeginCapture(captured, cudaStreamCaptureModeThreadLocal);
    row.call();
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(captured, &graph), row.ends ? cudaErrorStreamCaptureInvalidated : cudaSuccess)
        << row.name;
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();
  }
  cudaFreeAsync(pooled, other);
}

TEST_F(EmulatedMachine, AnEventOfOneDeviceIsNotRecordedOnAnother) {
  cudaEvent_t event = nullptr;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaSetDevice(1);
  cudaStream_t stream = new_stream();
  EXPECT_EQ(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event, event), cudaErrorInvalidResourceHandle) << "without timing";
  cudaGetLastError();
}

TEST_F(EmulatedMachine, ALostDeviceRefusesEveryCall) {
  unsigned char* address = new_memory(64);
  lose_device(0);
  EXPECT_EQ(cudaMemsetAsync(address, 1, 64, nullptr), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  cudaGetLastError();
}

}  // namespace
}  // namespace tenon::emulated_cuda
