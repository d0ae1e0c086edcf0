// Several simulated devices through the public functions: which is meant, in which order they work, and what a block
// that is used again too early does.
#include <tenon/autograd/autograd.h>
#include <tenon/core/error.h>
#include <tenon/device/devices.h>
#include <tenon/device/memory_api.h>
#include <tenon/device/order/stream.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/libtorch/threads_and_devices.h>

#include "plugins/simulated/machine.h"
#include "support/expect_error.h"

#include <gmock/gmock.h>

#include <future>
#include <optional>
#include <thread>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class SimulatedDevices : public SimulatedMachine {
 protected:
  void SetUp() override { have({{"count", std::int64_t{3}}, {"capacity", std::string("1GiB")}}); }
};

/// Holds up a stream until it is let go.
class Gate {
 public:
  Gate(Device device, StreamRef stream) {
    device_state(device).driver().enqueue(stream, [opened = gate_.get_future().share()] { opened.wait(); });
  }
  ~Gate() { open(); }
  void open() {
    if (!is_open_) gate_.set_value();
    is_open_ = true;
  }

 private:
  std::promise<void> gate_;
  bool is_open_ = false;
};

TEST_F(SimulatedDevices, AreCountedWithoutBeingOpened) {
  EXPECT_EQ(device_count(kSimulated), 3);
  EXPECT_TRUE(is_available(kSimulated));
  EXPECT_TRUE(open_devices().empty());
  EXPECT_EQ(device_count(kCPU), 1);
  EXPECT_EQ(device_count(DeviceType::named("abacus")), 0);
  EXPECT_FALSE(is_available(DeviceType::named("abacus")));
}

TEST_F(SimulatedDevices, TheCurrentOneIsMeantWhereNoIndexIsGiven) {
  {
    const DeviceGuard guard(kOne);
    EXPECT_EQ(guard.original_device(), kZero);
    EXPECT_EQ(ones({2}, TensorOptions(Device(kSimulated))).device(), kOne);
    std::thread([] { EXPECT_EQ(current_device(kSimulated), 0) << "every thread has its own"; }).join();
  }
  EXPECT_EQ(ones({2}, TensorOptions(Device(kSimulated))).device(), kZero);
  set_device("simulated:2");
  EXPECT_EQ(current_device(kSimulated), 2);
  EXPECT_EQ(ones({2}).to("simulated").get_device(), 2);
  set_device(kZero);
}

TEST_F(SimulatedDevices, OneThatIsNotThereIsRefused) {
  EXPECT_THAT([] { set_device("simulated:3"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("simulated:3"), HasSubstr("there are 3 of this kind"))));
  expect_error([] { DeviceGuard guard{Device(kSimulated)}; }, "an index is missing");
  EXPECT_EQ(current_device(kSimulated), 0);
}

TEST_F(SimulatedDevices, TellTheirProperties) {
  const DeviceProperties properties = device_properties(kOne);
  EXPECT_EQ(properties.capacity_bytes, std::size_t{1} << 30);
  EXPECT_TRUE(properties.asynchronous);
}

TEST_F(SimulatedDevices, HaveMemoryOfTheirOwn) {
  const Tensor here = ones({1 << 20}, TensorOptions(kOne));
  EXPECT_EQ(memory_allocated(kOne), std::size_t{4} << 20);
  EXPECT_EQ(memory_allocated(kZero), 0U);
  const Tensor there = here.to("simulated:2");
  EXPECT_EQ(memory_allocated("simulated:2"), std::size_t{4} << 20);
}

TEST_F(SimulatedDevices, AnEventOrdersStreamsOfTwoDevices) {
  const Stream producer(kZero), consumer(kOne);
  Event produced(kZero);
  int value = 0, seen = -1;
  {
    Gate gate(kZero, producer);
    device_state(kZero).driver().enqueue(producer, [&value] { value = 42; });
    produced.record(producer.ref());
    consumer.wait_event(produced);
    device_state(kOne).driver().enqueue(consumer, [&] { seen = value; });
    EXPECT_FALSE(produced.query());
    EXPECT_FALSE(consumer.query());
  }
  consumer.synchronize();
  EXPECT_EQ(seen, 42);
  expect_error([&] { Event(kCPU).block(consumer); }, "two kinds");
}

TEST_F(SimulatedDevices, AStreamOutlivesNothingThatWaitsForIt) {
  const Stream waiting(kOne);
  Event last(kZero);
  {
    const Stream gone(kZero);
    last.record(gone.ref());
    waiting.wait_event(last);
  }
  waiting.synchronize();
  EXPECT_TRUE(last.query());
}

TEST_F(SimulatedDevices, ACopyBetweenThemIsQueuedAndTheHostGoesOn) {
  const Tensor x = arange(4, TensorOptions(kZero).dtype(kFloat32));
  const Stream side(kZero);
  std::optional<Gate> gate;
  gate.emplace(kZero, side.ref());
  Tensor y;
  {
    const StreamGuard on(side);
    y = x.to(kOne, kFloat32);
  }
  EXPECT_FALSE(side.query()) << "the copy waits behind the gate, and nobody waits for it";
  gate.reset();
  EXPECT_TRUE(y.cpu().equal(arange(4, kFloat32))) << "what reads it comes after it";
}

TEST_F(SimulatedDevices, AutogradGoesBackOverTheCopy) {
  const Tensor x = arange(3, TensorOptions(kZero).dtype(kFloat32)).set_requires_grad(true);
  const Tensor y = x.to("simulated:1");
  EXPECT_EQ(y.grad_fn()->name(), "ToCopyBackward0");
  y.square().sum().backward();
  EXPECT_EQ(x.grad().device(), kZero);
  EXPECT_TRUE(x.grad().cpu().equal(2 * arange(3, kFloat32)));
}

/// What a copy to the host, queued on a side stream that is held up, brings of x, whose memory was given back and taken
/// again meanwhile.
Tensor copied_from_a_freed_block(bool says_so) {
  const DeviceGuard guard(kZero);
  Tensor x = full({1000}, 1., TensorOptions(kZero));
  synchronize(kZero);
  const void* const block = x.data_ptr();
  Tensor host = empty({1000}).pin_memory(kZero);
  const Stream side(kZero);
  std::optional<Gate> gate;
  gate.emplace(kZero, side.ref());
  {
    const StreamGuard on(side);
    host.copy_(x, /*non_blocking=*/true);
  }
  if (says_so) x.record_stream(side);
  x = Tensor();
  const Tensor next = full({1000}, 2., TensorOptions(kZero));
  EXPECT_EQ(next.data_ptr() == block, !says_so);
  gate.reset();
  side.synchronize();
  return host.clone();
}

TEST_F(SimulatedDevices, ABlockUsedAgainTooEarlyGivesWrongNumbers) {
  EXPECT_TRUE(copied_from_a_freed_block(/*says_so=*/true).equal(full({1000}, 1.)));
  EXPECT_TRUE(copied_from_a_freed_block(/*says_so=*/false).equal(full({1000}, 2.))) << "a program's mistake is seen";
}

TEST_F(SimulatedDevices, WithoutGpusCudaIsNotAvailable) {
  if (is_available(kCUDA)) GTEST_SKIP() << "this machine has one";
  EXPECT_EQ(cuda::device_count(), 0U);
  EXPECT_FALSE(cuda::is_available());
  EXPECT_THROW(cuda::set_device(0), Error);
  EXPECT_THROW(ones({1}).cuda(1), Error);
}

}  // namespace
}  // namespace tenon::test
