// What the CUDA plugin's driver says of a device, what it asks CUDA for, and what it gives back when a call fails.
#include "plugins/emulated_device.h"

#include "support/expect_error.h"

#include <tenon/core/units.h>
#include <tenon/device/device_use.h>
#include <tenon/memory/driver_pool.h>

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

namespace tenon::test {
namespace {

using emulated_cuda::calls;
using testing::ElementsAre;
using testing::Pair;

constexpr int kNoMemory = cudaErrorMemoryAllocation, kLaunchFailure = cudaErrorLaunchFailure;

using CudaDriver = EmulatedCuda;

TEST_F(CudaDriver, TellsTheVersionsOfWhatItRunsOn) {
  restart({.capacity_bytes = 3 * GiB, .driver_version = 12080, .compute_capability = 86});
  const DeviceProperties properties = device(1).properties();
  EXPECT_EQ(properties.name, "emulated CUDA device");
  EXPECT_EQ(properties.capacity_bytes, 3 * GiB);
  EXPECT_EQ(properties.compute_units, 4);
  EXPECT_FALSE(properties.host_accessible);
  EXPECT_TRUE(properties.asynchronous);
  EXPECT_TRUE(properties.computes);
  const std::string runtime = std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 1000 / 10);
  EXPECT_THAT(properties.details, ElementsAre(Pair("compute capability", "8.6"), Pair("driver", "12.8"),
                                              Pair("runtime", runtime), Pair("virtual memory page", "2097152")));
}

TEST_F(CudaDriver, TellsWhatItsMemoryIs) {
  const SourceTraits traits = memory(1).traits();
  EXPECT_EQ(traits.device, "cuda:1");
  EXPECT_EQ(traits.capacity_bytes, 8 * GiB);
  EXPECT_EQ(traits.acquire_granularity, 512U) << "CUDA's least alignment";
  EXPECT_EQ(traits.page_bytes, 2 * MiB);
  EXPECT_TRUE(traits.virtual_memory);
  EXPECT_FALSE(traits.host_accessible);
  MemorySource& pinned = *device(1).pinned_host_memory();
  EXPECT_EQ(pinned.traits().device, "pinned host memory of cuda:1");
  EXPECT_EQ(pinned.traits().acquire_granularity, 512U);
  EXPECT_EQ(pinned.traits().capacity_bytes, 0U);
  EXPECT_FALSE(pinned.traits().virtual_memory);
  EXPECT_TRUE(pinned.traits().host_accessible);
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  EXPECT_EQ(pinned.usage().total_bytes, static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * page);
  EXPECT_GT(pinned.usage().free_bytes, 0U);
  EXPECT_LT(pinned.usage().free_bytes, pinned.usage().total_bytes);
}

TEST_F(CudaDriver, MemoryThatIsNotGivenIsNotCharged) {
  MemorySource& source = memory(0);
  const std::size_t all = source.usage().free_bytes;
  EXPECT_EQ(source.acquire(0), nullptr);
  EXPECT_EQ(calls("cudaMalloc"), 0) << "CUDA is not asked for nothing";
  emulated_cuda::fail_call("cudaMalloc", 1, kNoMemory);
  EXPECT_EQ(source.acquire(MiB), nullptr);
  EXPECT_EQ(source.usage().free_bytes, all);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "that was no error";
  emulated_cuda::fail_call("cudaMalloc", 1, kLaunchFailure);
  expect_error([&] { source.acquire(MiB); }, "cudaMalloc failed: cudaErrorLaunchFailure");
  emulated_cuda::fail_call("cuMemCreate", 1, 719);
  expect_error([&] { source.create(2 * MiB); }, "cuMemCreate failed: driver error 719");
  EXPECT_EQ(source.usage().free_bytes, all);
  source.release(nullptr, MiB);
  source.destroy({}, 2 * MiB);
  EXPECT_EQ(source.usage().free_bytes, all) << "nothing came back";
  EXPECT_EQ(calls("cudaFree"), 0);
  void* const address = source.acquire(MiB);
  EXPECT_EQ(source.usage().free_bytes, all - MiB);
  source.release(address, MiB);
  EXPECT_EQ(source.usage().free_bytes, all);
}

TEST_F(CudaDriver, PagesComeInWholeOnes) {
  MemorySource& source = memory(0);
  expect_error([&] { source.create(0); }, "cuda:0: physical memory comes in multiples of 2MiB, not 0");
  expect_error([&] { source.create(3 * MiB); }, "cuda:0: physical memory comes in multiples of 2MiB, not 3MiB");
  const Physical two = source.create(4 * MiB);
  auto* const range = static_cast<char*>(source.reserve(3 * MiB));  // of which 4 are reserved
  for (const auto& [bytes, offset] :
       {std::pair(3 * MiB, 0 * MiB), std::pair(2 * MiB, 1 * MiB), std::pair(2 * MiB, 4 * MiB),
        std::pair(2 * MiB, 6 * MiB), std::pair(6 * MiB, 0 * MiB)})
    expect_error([&, bytes = bytes, offset = offset] { source.map(range, bytes, two, offset); },
                 "cannot map " + format_size_exact(bytes) + " from " + format_size_exact(offset) +
                     " on of 4MiB in pages of 2MiB");
  source.map(range, 4 * MiB, two, 0);
  device(0).fill(range, 1, 4 * MiB, {});
  device(0).synchronize();
  source.unmap(range, 4 * MiB);
  source.unreserve(range, 3 * MiB);
  source.unreserve(nullptr, 2 * MiB);
  source.destroy(two, 4 * MiB);
  EXPECT_EQ(calls("cuMemAddressFree"), 1);
  EXPECT_EQ(calls("cuMemRelease"), 2);
  EXPECT_EQ(calls("cuMemUnmap"), 2);
  emulated_cuda::fail_call("cuMemAddressReserve", 1, 2);
  EXPECT_EQ(source.reserve(2 * MiB), nullptr) << "out of addresses";
  emulated_cuda::fail_call("cuMemAddressReserve", 1, 1);
  expect_error([&] { source.reserve(2 * MiB); }, "cuMemAddressReserve");
}

TEST_F(CudaDriver, PinnedMemoryThatTheHostHasNotIsNone) {
  MemorySource& pinned = *device(0).pinned_host_memory();
  emulated_cuda::fail_call("cudaHostAlloc", 1, kNoMemory);
  EXPECT_EQ(pinned.acquire(4096), nullptr);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  emulated_cuda::fail_call("cudaHostAlloc", 1, kLaunchFailure);
  expect_error([&] { pinned.acquire(4096); }, "cudaHostAlloc failed");
  auto* const address = static_cast<char*>(pinned.acquire(100));
  address[511] = 1;  // as much as its granularity
  pinned.release(address, 100);
  pinned.release(nullptr, 100);
  EXPECT_EQ(calls("cudaFreeHost"), 1);
}

TEST_F(CudaDriver, NothingIsDestroyedThatIsNoStreamEventOrGraph) {
  DeviceDriver& driver = device(0);
  driver.destroy_stream({});
  driver.destroy_event({});
  driver.destroy_graph({});
  EXPECT_EQ(calls("cudaStreamDestroy") + calls("cudaEventDestroy") + calls("cudaGraphExecDestroy"), 0);
}

TEST_F(CudaDriver, AnEventIsAskedForWithoutWaiting) {
  restart({.order = emulated_cuda::Order::kLastMoment});
  DeviceDriver& driver = device(0);
  void* const address = memory(0).acquire(4096);
  const StreamRef stream = driver.create_stream(0);
  const EventRef event = driver.create_event(false), timed = driver.create_event(true);
  driver.fill(address, 1, 4096, stream);
  driver.record(event, stream);
  EXPECT_FALSE(driver.query(event));
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "that it is not ready is no error";
  driver.synchronize(stream);
  EXPECT_TRUE(driver.query(event));
  emulated_cuda::fail_call("cudaEventQuery", 1, kLaunchFailure);
  expect_error([&] { driver.query(event); }, "cudaEventQuery failed");
  driver.record(timed, stream);
  driver.synchronize(timed);
  expect_error([&] { driver.elapsed_ms(event, timed); }, "cudaEventElapsedTime");
  for (const EventRef one : {event, timed}) driver.destroy_event(one);
  driver.destroy_stream(stream);
  memory(0).release(address, 4096);
}

TEST_F(CudaDriver, PeersAreLetInOnceAndOnlyThoseThatReachIt) {
  EXPECT_TRUE(device(0).share_memory_with(0)) << "its own";
  EXPECT_EQ(calls("cudaDeviceCanAccessPeer"), 0);
  EXPECT_EQ(emulated_cuda::contexts(), std::vector<int>{0});
  emulated_cuda::fail_call("cudaDeviceEnablePeerAccess", 1, kLaunchFailure);
  expect_error([&] { device(0).share_memory_with(1); }, "cudaDeviceEnablePeerAccess failed");
  EXPECT_EQ(emulated_cuda::contexts(), std::vector<int>{0}) << "nothing is left of it";
  EXPECT_TRUE(device(0).share_memory_with(1));
  EXPECT_TRUE(device(0).share_memory_with(1));
  EXPECT_EQ(calls("cudaDeviceEnablePeerAccess"), 2);
  EXPECT_EQ(emulated_cuda::contexts(), (std::vector<int>{0, 1})) << "whose context is kept";
  restart({});
  emulated_cuda::fail_call("cudaDeviceEnablePeerAccess", 1, cudaErrorPeerAccessAlreadyEnabled);
  EXPECT_TRUE(device(0).share_memory_with(1)) << "by another library";
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST_F(CudaDriver, AHostFunctionThatCudaRefusesIsGone) {
  const auto held = std::make_shared<int>(1);
  emulated_cuda::fail_call("cudaLaunchHostFunc", 1, kLaunchFailure);
  expect_error([&] { device(0).enqueue({}, [held] { FAIL(); }); }, "cudaLaunchHostFunc failed");
  EXPECT_EQ(held.use_count(), 1);
  device(0).synchronize();
}

TEST_F(CudaDriver, HostFunctionsOfACaptureRunWithEachLaunchAndGoWithTheGraph) {
  const auto held = std::make_shared<int>(0);
  const StreamRef stream = device(0).create_stream(0);
  EXPECT_FALSE(device(0).capturing(stream));
  device(0).begin_capture(stream);
  EXPECT_TRUE(device(0).capturing(stream));
  EXPECT_FALSE(device(0).capturing({})) << "another one";
  device(0).enqueue(stream, [held] { ++*held; });
  const GraphRef graph = device(0).end_capture(stream);
  EXPECT_FALSE(device(0).capturing(stream));
  EXPECT_EQ(*held, 0);
  for (int run = 1; run <= 3; ++run) {
    device(0).launch(graph, stream);
    device(0).synchronize();
    EXPECT_EQ(*held, run);
  }
  device(0).destroy_graph(graph);
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(calls("cudaGraphExecDestroy"), 1);
  EXPECT_EQ(calls("cudaGraphDestroy"), 1) << "what the executable was made of";
  device(0).destroy_stream(stream);
}

TEST_F(CudaDriver, ACaptureThatCannotBecomeAGraphIsOver) {
  const StreamRef stream = device(0).create_stream(0);
  for (const char* call : {"cudaGraphInstantiate", "cudaStreamEndCapture"}) {
    device(0).begin_capture(stream);
    expect_error([&] { memory(0).synchronize(); }, "cuda:0 cannot be waited for while work is captured");
    emulated_cuda::fail_call(call, 1, kLaunchFailure);
    expect_error([&] { device(0).end_capture(stream); }, call);
    if (!device(0).capturing(stream)) memory(0).synchronize();
  }
  emulated_cuda::fail_call("cudaStreamBeginCapture", 1, kLaunchFailure);
  const StreamRef other = device(0).create_stream(0);
  expect_error([&] { device(0).begin_capture(other); }, "cudaStreamBeginCapture");
  EXPECT_FALSE(device(0).capturing(other));
  expect_error([&] { device(0).end_capture(other); }, "cuda:0: nothing is being captured on this stream");
}

TEST_F(CudaDriver, TicketsUseTheirEventsAgain) {
  const StreamRef stream = device(0).create_stream(0);
  const std::int64_t before = calls("cudaEventCreateWithFlags");
  const auto made = [&] { return calls("cudaEventCreateWithFlags") - before; };
  for (int i = 0; i < 20; ++i) memory(0).wait(memory(0).mark(stream));
  EXPECT_LE(made(), 2);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 10; ++i) memory(0).mark(stream);
    memory(0).synchronize();
  }
  EXPECT_EQ(made(), 10) << "what is behind a wait for the device needs no other";
  const std::int64_t asked = calls("cudaEventQuery");
  EXPECT_TRUE(memory(0).reached(memory(0).mark(stream)));
  const Ticket last = memory(0).mark(stream);
  memory(0).synchronize();
  EXPECT_LE(calls("cudaEventQuery"), asked + 1);
  EXPECT_TRUE(memory(0).reached(last));
  EXPECT_LE(calls("cudaEventQuery"), asked + 1) << "it is known already";
  device(0).destroy_stream(stream);
}

TEST_F(CudaDriver, APoolTakesNoMoreThanTheDeviceMayGiveAndRefundsWhatItGivesBack) {
  Options options(backend().options());
  options.set_text("capacity", "64MiB");
  backend().configure(options);
  const std::unique_ptr<DriverPool> pool = memory(0).make_driver_pool({});
  EXPECT_EQ(pool->acquire(0, {}), nullptr);
  void* const most = pool->acquire(48 * MiB, {});
  ASSERT_NE(most, nullptr);
  EXPECT_EQ(memory(0).usage().free_bytes, 16 * MiB);
  EXPECT_EQ(pool->acquire(17 * MiB, {}), nullptr);
  emulated_cuda::fail_call("cudaMallocFromPoolAsync", 1, kNoMemory);
  EXPECT_EQ(pool->acquire(MiB, {}), nullptr);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_EQ(memory(0).usage().free_bytes, 16 * MiB);
  EXPECT_GE(pool->reserved_bytes(), 48 * MiB);
  pool->release(most, 48 * MiB, std::array{StreamRef{}});
  EXPECT_EQ(memory(0).usage().free_bytes, 64 * MiB);
  device(0).synchronize();
  EXPECT_EQ(pool->reserved_bytes(), 0U);
  backend().configure(Options(backend().options()));
}

TEST_F(CudaDriver, APoolThatCannotBeSetUpIsNotKept) {
  for (int nth = 1; nth <= 4; ++nth) {
    emulated_cuda::fail_call("cudaMemPoolSetAttribute", nth, kLaunchFailure);
    expect_error([&] { memory(0).make_driver_pool({}); }, "cudaMemPoolSetAttribute failed");
  }
  EXPECT_EQ(calls("cudaMemPoolCreate"), 4);
  EXPECT_EQ(calls("cudaMemPoolDestroy"), 4);
  EXPECT_TRUE(device(0).share_memory_with(1)) << "none of them is shared";
  EXPECT_EQ(calls("cudaMemPoolSetAccess"), 0);
  const std::unique_ptr<DriverPool> pool = memory(0).make_driver_pool({});
  EXPECT_EQ(calls("cudaMemPoolSetAccess"), 1);
}

TEST_F(CudaDriver, APoolJoinsStreamsOnOneOfItsOwn) {
  const std::unique_ptr<DriverPool> pool = memory(0).make_driver_pool({});
  const StreamRef one = device(0).create_stream(0), two = device(0).create_stream(0);
  const std::int64_t streams = calls("cudaStreamCreateWithPriority");
  for (int i = 0; i < 3; ++i) pool->release(pool->acquire(MiB, one), MiB, std::array{one});
  EXPECT_EQ(calls("cudaStreamCreateWithPriority"), streams) << "one stream needs none";
  for (int i = 0; i < 3; ++i) {
    void* const address = pool->acquire(MiB, one);
    device(0).synchronize(one);
    pool->release(address, MiB, std::array{one, two});
  }
  EXPECT_EQ(calls("cudaStreamCreateWithPriority"), streams + 1);
  EXPECT_EQ(calls("cudaFreeAsync"), 6);
  device(0).synchronize();
  for (const StreamRef stream : {one, two}) device(0).destroy_stream(stream);
}

TEST_F(CudaDriver, IsLookedAtByItsAddressOnTheBus) {
  void* const library = dlopen(TENON_FAKE_NVML, RTLD_NOW);  // which then has NVML's name
  ASSERT_NE(library, nullptr);
  auto& reporter = dynamic_cast<ReportsUse&>(backend());
  EXPECT_EQ(reporter.look(0).total_bytes, 80'000'000'000U);
  EXPECT_EQ(reporter.visible_devices(2), 2);
  expect_error([&] { reporter.look(1); }, "Not Found");
  expect_error([&] { reporter.look(2); }, "cudaDeviceGetAttribute");
  dlclose(library);
}

}  // namespace
}  // namespace tenon::test
