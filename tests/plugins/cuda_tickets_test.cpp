// Tickets of the CUDA plugin: of streams that are destroyed, of other devices, and while the device is waited for.
#include "plugins/emulated_device.h"

#include <tenon/device/foreign_streams.h>

#include <cuda_runtime_api.h>
#include <future>

namespace tenon::test {
namespace {

using emulated_cuda::Order;

class CudaTickets : public EmulatedCuda {
 protected:
  void SetUp() override { restart({.order = Order::kLastMoment}); }

  /// Work that takes until somebody asks for it, and the ticket after it.
  Ticket busy(StreamRef stream, int index = 0) {
    device(index).fill(block(index), 1, 64, stream);
    return memory(0).mark(stream);
  }
  void* block(int index) {
    if (blocks_[index] == nullptr) blocks_[index] = memory(index).acquire(4096);
    return blocks_[index];
  }
  void TearDown() override {
    for (int index : {0, 1}) {
      if (blocks_[index] == nullptr) continue;
      device(index).synchronize();
      memory(index).release(blocks_[index], 4096);
    }
    EmulatedCuda::TearDown();
  }

 private:
  void* blocks_[2] = {};
};

TEST_F(CudaTickets, WorkThatIsQueuedWhileTheDeviceIsWaitedForIsNotReachedByThat) {
  const StreamRef first = device(0).create_stream(0);
  const StreamRef second = device(0).create_stream(0);
  std::promise<void> open;
  std::promise<void> waiting;
  device(0).enqueue(first, [&] {
    waiting.set_value();
    open.get_future().wait();
  });
  std::thread waiter([&] { device(0).synchronize(); });
  waiting.get_future().wait();  // the wait for the device is under way
  const Ticket late = busy(second);
  open.set_value();
  waiter.join();
  EXPECT_FALSE(memory(0).reached(late)) << "it has not run: " << emulated_cuda::queued_work() << " are queued";
  memory(0).wait(late);
  EXPECT_TRUE(memory(0).reached(late));
  device(0).destroy_stream(first);
  device(0).destroy_stream(second);
}

TEST_F(CudaTickets, AWaitIsForTheTicketThatIsGivenAndNotForAnEarlierOne) {
  const StreamRef stream = device(0).create_stream(0);
  busy(stream);
  const Ticket middle = busy(stream), last = busy(stream);
  memory(0).wait(middle);
  EXPECT_TRUE(memory(0).reached(middle));
  EXPECT_FALSE(memory(0).reached(last));
  memory(0).wait(last);
  EXPECT_EQ(emulated_cuda::queued_work(), 0U);
  device(0).destroy_stream(stream);
}

TEST_F(CudaTickets, ATicketOutlivesItsStream) {
  const StreamRef stream = device(0).create_stream(0);
  const Ticket ticket = busy(stream);
  device(0).destroy_stream(stream);
  EXPECT_FALSE(memory(0).reached(ticket));
  memory(0).wait(ticket);
  EXPECT_TRUE(memory(0).reached(ticket));
}

TEST_F(CudaTickets, AStreamThatGetsAnOldHandleBeginsALineOfItsOwn) {
  const StreamRef old = device(0).create_stream(0);
  for (int i = 0; i < 20; ++i) device(0).fill(block(0), 1, 64, old);
  const Ticket before = busy(old);
  device(0).destroy_stream(old);
  const StreamRef young = device(0).create_stream(0);
  ASSERT_EQ(young.id, old.id) << "the test needs a handle that is given again";
  const Ticket after = busy(young);
  memory(0).wait(after);
  EXPECT_TRUE(memory(0).reached(after)) << "the old stream's work holds it up";
  memory(0).wait(before);
  EXPECT_TRUE(memory(0).reached(before));
  device(0).destroy_stream(young);
}

TEST_F(CudaTickets, AStreamOfAnotherLibraryThatGetsAnOldHandleIsNotTheOldOne) {
  const StreamRef old = device(0).create_stream(0);
  busy(old);
  device(0).destroy_stream(old);
  cudaStream_t handle = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(reinterpret_cast<std::uint64_t>(handle), old.id) << "the test needs a handle that is given again";
  TakesForeignStreams* const driver = takes_foreign_streams(device(0));
  ASSERT_NE(driver, nullptr);
  const StreamRef theirs = driver->foreign_stream(reinterpret_cast<std::uint64_t>(handle));
  bool ran = false;
  device(0).enqueue(theirs, [&] { ran = true; });
  memory(0).wait(memory(0).mark(theirs));
  EXPECT_TRUE(ran) << "the ticket was one of the old stream";
  EXPECT_EQ(driver->foreign_stream(0), StreamRef{});
  EXPECT_EQ(cudaStreamDestroy(handle), cudaSuccess);
}

// CUDA ends a capture when it is asked for the id of the captured stream.
TEST_F(CudaTickets, ACapturedStreamOfAnotherLibraryIsTakenAndMarkedAndTheCaptureGoesOn) {
  cudaStream_t handle = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), cudaSuccess);
  TakesForeignStreams* const driver = takes_foreign_streams(device(0));
  ASSERT_NE(driver, nullptr);
  cudaStreamBeginCapture(handle, cudaStreamCaptureModeThreadLocal);
  const StreamRef theirs = driver->foreign_stream(reinterpret_cast<std::uint64_t>(handle));
  const Ticket inside = memory(0).mark(theirs);
  EXPECT_FALSE(memory(0).reached(inside)) << "what is captured does not run now";
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(handle, &graph), cudaSuccess);
  memory(0).wait(inside);
  EXPECT_TRUE(memory(0).reached(inside));
  cudaGraphDestroy(graph);
  const Ticket after = memory(0).mark(theirs);
  memory(0).wait(after);
  EXPECT_TRUE(memory(0).reached(after));
  EXPECT_EQ(cudaStreamDestroy(handle), cudaSuccess);
}

TEST_F(CudaTickets, AMarkOnADestroyedStreamMeansWhatItStillHadToDo) {
  const StreamRef stream = device(0).create_stream(0);
  device(0).fill(block(0), 1, 64, stream);
  device(0).destroy_stream(stream);
  const Ticket ticket = memory(0).mark(stream);
  EXPECT_FALSE(memory(0).reached(ticket));
  memory(0).wait(ticket);
  EXPECT_EQ(emulated_cuda::queued_work(), 0U);
}

TEST_F(CudaTickets, MemoryMayBeUsedOnAStreamOfAnotherDevice) {
  const StreamRef foreign = device(1).create_stream(0);
  const Ticket ticket = busy(foreign, 1);
  EXPECT_FALSE(memory(0).reached(ticket));
  device(0).synchronize();  // waits for cuda:0 alone
  EXPECT_FALSE(memory(0).reached(ticket));
  memory(0).wait(ticket);
  EXPECT_TRUE(memory(0).reached(ticket));
  device(1).destroy_stream(foreign);
}

TEST_F(CudaTickets, AreReachedUnderEveryOrderOfTheDevice) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    restart({.order = Order::kSeeded, .seed = seed});
    std::vector<StreamRef> streams;
    std::vector<Ticket> tickets;
    void* memory_of_all = memory(0).acquire(4096);
    for (int i = 0; i < 3; ++i) streams.push_back(device(0).create_stream(0));
    for (int i = 0; i < 12; ++i) {
      const StreamRef stream = streams[static_cast<std::size_t>(i % 3)];
      device(0).fill(static_cast<char*>(memory_of_all) + 64 * (i % 3), static_cast<std::uint8_t>(i), 64, stream);
      tickets.push_back(memory(0).mark(stream));
    }
    for (const Ticket ticket : tickets) memory(0).wait(ticket);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(fetch(0, static_cast<char*>(memory_of_all) + 64 * i, 1)[0], 9 + i);
    for (const StreamRef stream : streams) device(0).destroy_stream(stream);
    device(0).synchronize();
    memory(0).release(memory_of_all, 4096);
  }
}

}  // namespace
}  // namespace tenon::test
