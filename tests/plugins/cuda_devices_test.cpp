// Devices of the CUDA plugin: contexts, versions, what is said where there is none, and what a lost device leaves.
#include "plugins/emulated_device.h"

#include "support/expect_error.h"

#include <cuda_runtime_api.h>

#include <memory>

namespace tenon::test {
namespace {

using CudaDevices = EmulatedCuda;

/// Everything that a driver does, on one device.
void use_everything(DeviceDriver& driver) {
  MemorySource& memory = driver.memory();
  const StreamRef stream = driver.create_stream(0);
  const EventRef begin = driver.create_event(true);
  const EventRef end = driver.create_event(true);
  void* address = memory.acquire(4096);
  void* pinned = driver.pinned_host_memory()->acquire(4096);
  driver.record(begin, stream);
  driver.fill(address, 1, 4096, stream);
  driver.copy(pinned, address, 4096, CopyKind::kDeviceToHost, stream);
  driver.record(end, stream);
  driver.wait({}, end);
  driver.enqueue(stream, [] {});
  memory.wait(memory.mark(stream));
  driver.synchronize(end);
  EXPECT_TRUE(driver.query(end));
  EXPECT_GT(driver.elapsed_ms(begin, end), 0);
  driver.properties();
  memory.usage();
  driver.synchronize();
  driver.pinned_host_memory()->release(pinned, 4096);
  memory.release(address, 4096);
  driver.destroy_event(begin);
  driver.destroy_event(end);
  driver.destroy_stream(stream);
}

TEST_F(CudaDevices, OnlyThoseThatAreOpenedGetAContext) {
  EXPECT_EQ(backend().device_count(), 2);
  EXPECT_EQ(emulated_cuda::contexts(), std::vector<int>{});
  use_everything(device(1));
  EXPECT_EQ(emulated_cuda::contexts(), std::vector<int>{1});
  std::thread([&] { use_everything(device(1)); }).join();
  EXPECT_EQ(emulated_cuda::contexts(), std::vector<int>{1});
}

TEST_F(CudaDevices, GiveTheirContextsBackAtShutdown) {
  use_everything(device(0));
  use_everything(device(1));
  backend().shutdown();
  EXPECT_EQ(emulated_cuda::contexts(), std::vector<int>{});
}

TEST_F(CudaDevices, LeaveThreadsAsTheyFoundThemAndGiveBackWhatTheyMade) {
  use_everything(device(0));
  std::thread([&] { use_everything(device(1)); }).join();
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
  cudaThreadExchangeStreamCaptureMode(&mode);
  backend().shutdown();
  EXPECT_GT(emulated_cuda::calls("cuCtxPushCurrent"), 0);
  for (const auto& [taken, given_back] :
       {std::pair("cuCtxPushCurrent", "cuCtxPopCurrent"), std::pair("cudaEventCreateWithFlags", "cudaEventDestroy"),
        std::pair("cudaStreamCreateWithPriority", "cudaStreamDestroy"), std::pair("cudaMalloc", "cudaFree")})
    EXPECT_EQ(emulated_cuda::calls(taken), emulated_cuda::calls(given_back)) << taken;
}

TEST_F(CudaDevices, WhatCannotEnterItsContextCallsNothingAndLeavesNothing) {
  DeviceDriver& driver = device(0);
  const EventRef event = driver.create_event(false);
  const std::int64_t popped = emulated_cuda::calls("cuCtxPopCurrent");
  emulated_cuda::fail_call("cuCtxPushCurrent", 1, 1);
  driver.destroy_event(event);
  EXPECT_EQ(emulated_cuda::calls("cudaEventDestroy"), 0);
  EXPECT_EQ(emulated_cuda::calls("cuCtxPopCurrent"), popped);
  driver.destroy_event(event);
  EXPECT_EQ(emulated_cuda::calls("cudaEventDestroy"), 1);
}

TEST_F(CudaDevices, ADriverThatIsTooOldIsNamedWithWhatIsNeeded) {
  restart({.driver_version = 11040});
  EXPECT_EQ(backend().device_count(), 0);
  EXPECT_NE(backend().why_unavailable().find("CUDA 11.4"), std::string::npos) << backend().why_unavailable();
  EXPECT_NE(backend().why_unavailable().find("CUDA 12.0"), std::string::npos) << backend().why_unavailable();
  expect_error([&] { device(0); }, "CUDA 12.0");
}

TEST_F(CudaDevices, WithoutADriverThereIsNoneAndItSaysSo) {
  restart({.driver_version = 0});
  EXPECT_EQ(backend().device_count(), 0);
  EXPECT_NE(backend().why_unavailable().find("no NVIDIA driver"), std::string::npos) << backend().why_unavailable();
  expect_error([&] { device(0); }, "there is no device cuda:0: " + backend().why_unavailable());
}

TEST_F(CudaDevices, ANumberOutsideOfTheirsIsAnErrorThatSaysHowManyThereAre) {
  restart({.devices = 2});
  device(1);
  for (const int index : {-1, 2})
    expect_error([&] { device(index); },
                 "there is no device cuda:" + std::to_string(index) + ": 2 CUDA device(s) are there, counted from 0");
}

TEST_F(CudaDevices, ThreadsAskWhyThereIsNone) {
  restart({.devices = 0});
  backend().device_count();
  const std::string why = backend().why_unavailable();
  ASSERT_FALSE(why.empty());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        EXPECT_EQ(backend().device_count(), 0);
        EXPECT_EQ(backend().why_unavailable(), why);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CudaDevices, AHostFunctionThatALostDeviceNeverRanGoesWithTheDriver) {
  restart({.order = emulated_cuda::Order::kLastMoment});
  const auto held = std::make_shared<int>(1);
  device(0).enqueue({}, [held] { FAIL() << "the device is lost"; });
  EXPECT_EQ(held.use_count(), 2);
  emulated_cuda::lose_device(0);
  expect_error([&] { device(0).synchronize(); }, "cudaErrorIllegalAddress");
  backend().shutdown();
  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(CudaDevices, AHostFunctionThatRanIsGone) {
  const auto held = std::make_shared<int>(1);
  int ran = 0;
  device(0).enqueue({}, [held, &ran] { ++ran; });
  device(0).synchronize();
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(CudaDevices, AFailedCallIsNamedOnceAndForgotten) {
  void* address = memory(0).acquire(4096);
  emulated_cuda::fail_call("cudaMemsetAsync", 1, 1);
  expect_error([&] { device(0).fill(address, 1, 4096, {}); }, "cudaMemsetAsync failed: cudaErrorInvalidValue");
  device(0).fill(address, 1, 4096, {});
  device(0).synchronize();
  memory(0).release(address, 4096);
}

}  // namespace
}  // namespace tenon::test
