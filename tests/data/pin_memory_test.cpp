// Page-locked host memory: tensors in it, copies that do not wait, and data loaders whose batches are in it. The
// simulated device has such memory, as CUDA's have.
#include "support/expect_error.h"

#include <tenon/autograd/autograd.h>
#include <tenon/data/data_loader.h>
#include <tenon/data/transforms.h>
#include <tenon/device/memory_api.h>
#include <tenon/nn/modules/sequence/packed_sequence.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/generator.h>
#include <tenon/tensor/libtorch/warning.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <map>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

using namespace data;  // NOLINT
using ::testing::HasSubstr;

struct LongNumbers : datasets::Dataset<LongNumbers> {
  Example<> get(std::size_t index) override {
    const auto i = static_cast<std::int64_t>(index);
    return {tenon::full({300}, static_cast<double>(i)), tenon::full({}, i * i)};
  }
  std::optional<std::size_t> size() const override { return 10; }
};

DataLoaderOptions pinned_options(std::size_t workers) { return DataLoaderOptions(4).workers(workers).pin_memory(true); }

struct Warnings final : WarningHandler {
  Warnings() : before(Warning::get_warning_handler()) { Warning::set_warning_handler(this); }
  ~Warnings() override { Warning::set_warning_handler(before); }
  void process(const SourceLocation&, const std::string& message, const bool) override { said += message; }
  WarningHandler* before;
  std::string said;
};

// The first of this file, since the others open a device that has such memory.
TEST(PinMemoryWithoutADevice, IsRefusedForATensorAndAWarningForALoader) {
  if (pinned_memory_device()) GTEST_SKIP() << "a device with page-locked host memory is open";
  const Tensor x = tenon::ones({3});
  EXPECT_FALSE(x.is_pinned());
  expect_error([&] { x.pin_memory(); }, "no open device has page-locked host memory");
  expect_error([&] { x.pin_memory(Device(kCPU)); }, "cpu:0 has no page-locked");
  Warnings warnings;
  auto loader =
      make_data_loader<samplers::SequentialSampler>(LongNumbers().map(transforms::Stack<>()), pinned_options(2));
  EXPECT_THAT(warnings.said, HasSubstr("'pin_memory' of the data loader is set but"));
  for (auto& batch : *loader) EXPECT_FALSE(batch.data.is_pinned());
}

class PinMemory : public ::testing::Test {
 protected:
  const Device device_{kSimulated, 0};
  DeviceState& state_ = device_state(device_);
  std::int64_t data_bytes() const {
    return pinned_host_allocator(device_)->stats().requested_by_purpose[static_cast<int>(Purpose::kData)].current;
  }
};

TEST_F(PinMemory, IsACopyWithTheSameValuesAndStrides) {
  const Tensor x = tenon::arange(12, TensorOptions(kFloat)).view({3, 4}).t();
  const Tensor pinned = x.pin_memory(device_);
  EXPECT_FALSE(x.is_pinned());
  EXPECT_TRUE(pinned.is_pinned());
  EXPECT_TRUE(pinned.is_pinned(device_));
  EXPECT_FALSE(pinned.is_pinned(Device(kCUDA)));
  EXPECT_TRUE(pinned.device().is_cpu());
  EXPECT_EQ(pinned.strides().vec(), x.strides().vec());
  EXPECT_TRUE(tenon::equal(pinned, x));
  EXPECT_TRUE(pinned.pin_memory(device_).is_same(pinned)) << "it is there already";
  EXPECT_TRUE(pinned[1].is_pinned()) << "a view";
  EXPECT_TRUE(tenon::equal(pinned + 1, x + 1)) << "ordinary host memory otherwise";
  EXPECT_TRUE(tenon::ones({2, 0}).pin_memory(device_).is_pinned());
}

// What lies the same way on both sides is moved as it is: no second copy on the device makes it contiguous first.
TEST_F(PinMemory, OfATransposedTensorTakesNoOtherMemoryOfTheDeviceWhenItMoves) {
  const Tensor x = tenon::arange(3000, TensorOptions(kFloat)).view({30, 100}).t();
  const auto allocations = [&] { return state_.allocator().stats().allocations.allocated; };
  const std::int64_t before = allocations();
  const Tensor there = x.pin_memory(device_).to(device_, kFloat, /*non_blocking=*/true);
  EXPECT_EQ(allocations() - before, 1);
  EXPECT_EQ(there.strides().vec(), x.strides().vec());
  const Tensor back = there.to(Device(kCPU), kFloat);
  EXPECT_EQ(allocations() - before, 1);
  EXPECT_TRUE(tenon::equal(back, x));
  EXPECT_TRUE(tenon::equal(there.narrow(1, 3, 20).to(Device(kCPU), kFloat), x.narrow(1, 3, 20))) << "a part of it";
  EXPECT_TRUE(tenon::equal(there.to(Device(kCPU), kDouble), x.to(kDouble))) << "converted";
}

TEST_F(PinMemory, ComesFromTheDevicesAllocatorOfItAndGoesBackThere) {
  const auto active = [&] { return host_memory_stats(device_).at("active_bytes.current"); };
  const std::int64_t before = active();
  Tensor pinned = tenon::ones({1000}).pin_memory();  // 4,000 bytes
  EXPECT_EQ(active() - before, 4096) << "a power of two";
  const void* const address = pinned.data_ptr();
  pinned = Tensor();
  EXPECT_EQ(active(), before);
  EXPECT_EQ(tenon::zeros({900}, TensorOptions().pinned_memory(true)).data_ptr(), address) << "from its cache";
  expect_error([&] { tenon::zeros({3}, TensorOptions(device_).pinned_memory(true)); },
               "only dense CPU tensors can be pinned");
}

TEST_F(PinMemory, StaysPinnedWhenItGrows) {
  const Tensor pinned = tenon::arange(4).pin_memory(device_);
  pinned.resize_({2000});
  EXPECT_TRUE(pinned.is_pinned(device_));
  EXPECT_EQ(pinned[3].item<std::int64_t>(), 3);
}

TEST_F(PinMemory, IsForTensorsOfTheHost) {
  expect_error([&] { tenon::ones({2}, TensorOptions(device_)).pin_memory(); },
               "cannot pin a tensor on simulated:0: only dense CPU tensors");
}

TEST_F(PinMemory, LetsGradientsThrough) {
  const Tensor x = tenon::ones({3}, requires_grad());
  (x.pin_memory(device_) * 2).sum().backward();
  EXPECT_TRUE(tenon::equal(x.grad(), tenon::full({3}, 2.0)));
}

TEST_F(PinMemory, IsCopiedFromWithoutWaitingAndNotGivenOutBeforeTheCopyIsDone) {
  DeviceDriver& driver = state_.driver();
  const StreamRef stream = current_stream(device_);
  Tensor pinned = tenon::arange(5000).pin_memory(device_);
  const void* const address = pinned.data_ptr();
  std::promise<void> go;
  driver.enqueue(stream, [wait = go.get_future().share()] { wait.wait(); });
  const Tensor arriving = pinned.to(TensorOptions(device_), true);  // would hang here if it waited
  pinned = Tensor();
  const Tensor next = tenon::zeros({5000}, TensorOptions(kInt64)).pin_memory(device_);
  EXPECT_NE(next.data_ptr(), address) << "the stream has still to read it";
  go.set_value();
  EXPECT_TRUE(tenon::equal(arriving.cpu(), tenon::arange(5000)));
  EXPECT_EQ(tenon::empty({5000}, TensorOptions(kInt64).pinned_memory(true)).data_ptr(), address) << "now it is done";
}

TEST_F(PinMemory, IsCopiedToWithoutWaiting) {
  DeviceDriver& driver = state_.driver();
  const Tensor source = tenon::arange(100).to(TensorOptions(device_));
  const Tensor pinned = tenon::zeros({100}, TensorOptions(kInt64)).pin_memory(device_);
  std::promise<void> go;
  driver.enqueue(current_stream(device_), [wait = go.get_future().share()] { wait.wait(); });
  pinned.copy_(source, true);
  EXPECT_EQ(pinned[7].item<std::int64_t>(), 0);
  go.set_value();
  driver.synchronize(current_stream(device_));
  EXPECT_EQ(pinned[7].item<std::int64_t>(), 7);
}

TEST_F(PinMemory, OfALoaderPutsItsBatchesThereAsData) {
  for (const std::size_t workers : {0, 2}) {
    SCOPED_TRACE(workers);
    const std::int64_t before = data_bytes();
    auto loader = make_data_loader<samplers::SequentialSampler>(LongNumbers().map(transforms::Stack<>()),
                                                                pinned_options(workers));
    std::int64_t next = 0;
    for (auto& batch : *loader) {
      EXPECT_TRUE(batch.data.is_pinned(device_));
      EXPECT_TRUE(batch.target.is_pinned(device_));
      const std::int64_t own = static_cast<std::int64_t>(batch.data.nbytes() + batch.target.nbytes());
      EXPECT_GE(data_bytes() - before, own) << "and what the workers have made ahead";
      for (std::int64_t i = 0; i < batch.target.size(0); ++i, ++next) {
        EXPECT_EQ(batch.target[i].item<std::int64_t>(), next * next);
        EXPECT_EQ(batch.data[i][299].item<float>(), static_cast<float>(next));
      }
    }
    EXPECT_EQ(next, 10);
    loader.reset();
    EXPECT_EQ(data_bytes(), before);
  }
}

TEST_F(PinMemory, OfALoaderTakesTheDeviceThatIsNamed) {
  const auto loader_of = [](const char* device) {
    return make_data_loader(LongNumbers().map(transforms::Stack<>()), pinned_options(1).pin_memory_device(device));
  };
  EXPECT_TRUE(loader_of("simulated:0")->begin()->data.is_pinned(Device(kSimulated, 0)));
  expect_error([&] { loader_of("cpu"); }, "has no page-locked host memory");
}

TEST_F(PinMemory, OfABatchGoesIntoWhateverItIsMadeOf) {
  const auto one = [] { return tenon::ones({2}); };
  std::vector<std::pair<Tensor, int>> list{{one(), 3}, {Tensor(), 4}};
  data::pin_memory(list, device_);
  EXPECT_TRUE(list[0].first.is_pinned());
  EXPECT_FALSE(list[1].first.defined());
  std::map<std::string, std::optional<Tensor>> named{{"x", one()}, {"none", std::nullopt}};
  data::pin_memory(named, device_);
  EXPECT_TRUE(named["x"]->is_pinned());
  auto mixed = std::make_tuple(one(), std::string("name"), TensorExample(one()));
  data::pin_memory(mixed, device_);
  EXPECT_TRUE(std::get<0>(mixed).is_pinned());
  EXPECT_TRUE(std::get<2>(mixed).data.is_pinned());
  auto packed = nn::utils::rnn::pack_padded_sequence(tenon::ones({3, 2, 4}), tenon::tensor({3, 2}));
  data::pin_memory(packed, device_);
  EXPECT_TRUE(packed.is_pinned()) << "by its own pin_memory()";
}

}  // namespace
}  // namespace tenon::test
