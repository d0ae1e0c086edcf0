// Capture and graphs of the CUDA plugin.
#include "plugins/emulated_device.h"

#include "support/expect_error.h"

#include <memory>

namespace tenon::test {
namespace {

class CudaCapture : public EmulatedCuda {
 protected:
  void SetUp() override {
    EmulatedCuda::SetUp();
    stream_ = device(0).create_stream(0);
    address_ = static_cast<unsigned char*>(memory(0).acquire(4096));
    device(0).fill(address_, 0, 4096, {});
    device(0).synchronize();
  }
  void TearDown() override {
    device(0).synchronize();
    memory(0).release(address_, 4096);
    device(0).destroy_stream(stream_);
    EmulatedCuda::TearDown();
  }

  StreamRef stream_;
  unsigned char* address_ = nullptr;
};

TEST_F(CudaCapture, WhatIsCapturedRunsWithEachLaunchAndNotBefore) {
  device(0).begin_capture(stream_);
  EXPECT_TRUE(device(0).capturing(stream_));
  device(0).fill(address_, 5, 64, stream_);
  device(0).copy(address_ + 64, address_, 64, CopyKind::kDeviceToDevice, stream_);
  const GraphRef graph = device(0).end_capture(stream_);
  EXPECT_FALSE(device(0).capturing(stream_));
  EXPECT_EQ(fetch(0, address_, 1)[0], 0);
  for (int i = 0; i < 2; ++i) {
    device(0).fill(address_, 0, 128, stream_);
    device(0).launch(graph, stream_);
    device(0).synchronize(stream_);
    EXPECT_EQ(fetch(0, address_ + 127, 1)[0], 5);
  }
  device(0).destroy_graph(graph);
}

TEST_F(CudaCapture, MemoryEventsAndTicketsMayBeAskedForMeanwhile) {
  const StreamRef other = device(0).create_stream(0);
  const EventRef event = device(0).create_event(false);
  device(0).record(event, other);
  device(0).begin_capture(stream_);
  void* more = memory(0).acquire(4096);
  EXPECT_NE(more, nullptr);
  EXPECT_TRUE(device(0).query(event));
  const Ticket outside = memory(0).mark(other);
  EXPECT_TRUE(memory(0).reached(outside));
  void* pinned = device(0).pinned_host_memory()->acquire(4096);
  device(0).pinned_host_memory()->release(pinned, 4096);
  memory(0).release(more, 4096);
  device(0).fill(address_, 6, 64, stream_);
  const GraphRef graph = device(0).end_capture(stream_);  // throws if one of these ended the capture
  device(0).launch(graph, stream_);
  device(0).synchronize(stream_);
  EXPECT_EQ(fetch(0, address_, 1)[0], 6);
  device(0).destroy_graph(graph);
  device(0).destroy_event(event);
  device(0).destroy_stream(other);
}

TEST_F(CudaCapture, ATicketOfACapturedStreamIsReachedOnlyAfterItsEnd) {
  device(0).begin_capture(stream_);
  device(0).fill(address_, 1, 64, stream_);
  const Ticket ticket = memory(0).mark(stream_);
  EXPECT_FALSE(memory(0).reached(ticket));
  expect_error([&] { memory(0).wait(ticket); }, "end the capture first");
  const GraphRef graph = device(0).end_capture(stream_);
  memory(0).wait(ticket);
  EXPECT_TRUE(memory(0).reached(ticket));
  device(0).destroy_graph(graph);
}

TEST_F(CudaCapture, WaitingForTheDeviceIsRefusedAndTheCaptureGoesOn) {
  device(0).begin_capture(stream_);
  device(0).fill(address_, 2, 64, stream_);
  expect_error([&] { device(0).synchronize(); }, "end the capture first");
  const GraphRef graph = device(0).end_capture(stream_);
  device(0).launch(graph, stream_);
  device(0).synchronize();
  EXPECT_EQ(fetch(0, address_, 1)[0], 2);
  device(0).destroy_graph(graph);
}

TEST_F(CudaCapture, AStreamThatWaitsForACapturedEventJoins) {
  const StreamRef other = device(0).create_stream(0);
  const EventRef fork = device(0).create_event(false);
  const EventRef join = device(0).create_event(false);
  device(0).begin_capture(stream_);
  device(0).fill(address_, 1, 64, stream_);
  device(0).record(fork, stream_);
  device(0).wait(other, fork);
  EXPECT_TRUE(device(0).capturing(other));
  device(0).copy(address_ + 64, address_, 64, CopyKind::kDeviceToDevice, other);
  device(0).record(join, other);
  device(0).wait(stream_, join);
  device(0).fill(address_, 9, 64, stream_);
  const GraphRef graph = device(0).end_capture(stream_);
  device(0).launch(graph, stream_);
  device(0).synchronize(stream_);
  EXPECT_EQ(fetch(0, address_ + 64, 1)[0], 1);
  EXPECT_EQ(fetch(0, address_, 1)[0], 9);
  device(0).destroy_graph(graph);
  device(0).destroy_event(fork);
  device(0).destroy_event(join);
  device(0).destroy_stream(other);
}

TEST_F(CudaCapture, AStreamThatDoesNotJoinAgainIsAnError) {
  const StreamRef other = device(0).create_stream(0);
  const EventRef fork = device(0).create_event(false);
  device(0).begin_capture(stream_);
  device(0).record(fork, stream_);
  device(0).wait(other, fork);
  device(0).fill(address_, 1, 64, other);
  expect_error([&] { device(0).end_capture(stream_); }, "cudaStreamEndCapture");
  device(0).fill(address_, 3, 64, stream_);  // the stream is as before
  device(0).synchronize();
  EXPECT_EQ(fetch(0, address_, 1)[0], 3);
  device(0).destroy_event(fork);
  device(0).destroy_stream(other);
}

TEST_F(CudaCapture, ACapturedHostFunctionRunsWithEachLaunchAndBelongsToTheGraph) {
  int ran = 0;
  const auto held = std::make_shared<int>(1);
  device(0).begin_capture(stream_);
  device(0).enqueue(stream_, [held, &ran] { ++ran; });
  const GraphRef graph = device(0).end_capture(stream_);
  EXPECT_EQ(ran, 0);
  for (int i = 0; i < 3; ++i) device(0).launch(graph, stream_);
  device(0).synchronize(stream_);
  EXPECT_EQ(ran, 3);
  EXPECT_EQ(held.use_count(), 2);
  device(0).destroy_graph(graph);
  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(CudaCapture, WithoutABeginningThereIsNoEnd) {
  expect_error([&] { device(0).end_capture(stream_); }, "nothing is being captured");
}

}  // namespace
}  // namespace tenon::test
