// What a SaveOnCpuGuard takes away of what is saved, where it waits in between, and what comes back. The simulated
// device has page-locked memory, as CUDA's have.
#include <tenon/autograd/autograd.h>
#include <tenon/autograd/save_on_cpu.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
namespace {

using namespace autograd;

/// Saves its second argument, and shows what backward is given of it.
struct Keeps : Function<Keeps> {
  static inline Tensor seen;
  static Tensor forward(AutogradContext* context, Tensor x, Tensor kept) {
    context->save_for_backward({kept});
    return x * 1.;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    seen = context->get_saved_variables()[0];
    return {gradients[0], Tensor()};
  }
};

Device there() { return Device(kSimulated, 0); }
TensorOptions on_device(Dtype dtype = kFloat64) { return TensorOptions(dtype).device(there()); }
Tensor wanting() { return ones({}, TensorOptions(kFloat64).requires_grad(true)); }

std::int64_t activations(const MemoryStats& stats) {
  return stats.requested_by_purpose[static_cast<int>(Purpose::kActivation)].current;
}
/// Activations in the host's ordinary memory, and in what is page-locked for the device.
struct Host {
  std::int64_t ordinary = activations(device_state(Device(kCPU)).allocator().stats());
  std::int64_t pinned = activations(device_state(there()).pinned_host_allocator()->stats());
};

Purpose purpose_of(const Tensor& tensor) { return tensor.impl().storage().block().request.purpose; }

std::vector<std::pair<std::string, Tensor>> tensors_of_the_device() {
  const Tensor table = arange(24, TensorOptions(kFloat64)).view({4, 6}).to(TensorOptions(there()));
  return {{"dense", table},
          {"transposed", table.t()},
          {"permuted", table.view({2, 2, 6}).permute({1, 2, 0})},
          {"with holes", table.narrow(1, 2, 3)},
          {"a row", table[2]},
          {"expanded", table.narrow(1, 3, 1).expand({4, 6})},
          {"one number", table[1][2]},
          {"integers", arange(5).to(TensorOptions(there()))},
          {"float", arange(7, TensorOptions(kFloat32)).to(TensorOptions(there()))}};
}

TEST(SaveOnCpu, WaitsInTheHostsMemoryAsAnActivationAndComesBackInItsForm) {
  for (const bool pins : {true, false}) {
    for (const auto& [name, kept] : tensors_of_the_device()) {
      SCOPED_TRACE(name + (pins ? ", pinned" : ""));
      const Tensor x = wanting();
      const Host before;
      Tensor y = Keeps::apply(x, kept);
      const std::int64_t of_result = Host().ordinary - before.ordinary;
      y = Tensor();
      {
        const SaveOnCpuGuard guard({.pin_memory = pins});
        y = Keeps::apply(x, kept);
      }
      const Host after;
      const auto bytes =
          static_cast<std::int64_t>(static_cast<std::size_t>(kept.numel()) * size_of(kept.scalar_type()));
      EXPECT_EQ(after.pinned - before.pinned, pins ? bytes : 0);
      EXPECT_EQ(after.ordinary - before.ordinary - of_result, pins ? 0 : bytes);
      y.backward();
      const Tensor seen = std::exchange(Keeps::seen, Tensor());
      EXPECT_FALSE(seen.is_alias_of(kept));
      EXPECT_EQ(seen.device(), there());
      EXPECT_EQ(seen.scalar_type(), kept.scalar_type());
      const bool is_dense = kept.impl().is_non_overlapping_and_dense();
      EXPECT_EQ(seen.strides().vec(), is_dense ? kept.strides().vec() : kept.contiguous().strides().vec());
      EXPECT_EQ(purpose_of(seen), Purpose::kActivation) << "and no gradient, though backward asked for it";
      EXPECT_TRUE(seen.cpu().equal(kept.cpu()));
      EXPECT_EQ(Host().pinned, before.pinned) << "given back with the graph";
    }
  }
}

TEST(SaveOnCpu, IsAnActivationWhateverIsMadeAroundIt) {
  const Tensor x = wanting(), kept = ones({100}, on_device());
  const Host before;
  Tensor y;
  {
    const SaveOnCpuGuard guard;
    const PurposeGuard other(Purpose::kData);
    y = Keeps::apply(x, kept);
  }
  EXPECT_EQ(Host().pinned - before.pinned, 800);
  y.backward();
  Keeps::seen = Tensor();
}

TEST(SaveOnCpu, LeavesWhatIsOfTheHostOrEmptyOrAParameterWhereItIs) {
  Tensor parameter;
  {
    const PurposeGuard purpose(Purpose::kParameter);
    parameter = ones({100}, on_device());
  }
  const std::vector<std::pair<std::string, Tensor>> stay = {{"of the host", ones({100}, kFloat64)},
                                                            {"a parameter", parameter},
                                                            {"a view of a parameter", parameter.narrow(0, 5, 20)}};
  for (const bool pins : {true, false}) {
    for (const auto& [name, kept] : stay) {
      SCOPED_TRACE(name);
      Tensor y;
      const Host before;
      {
        const SaveOnCpuGuard guard({.pin_memory = pins});
        y = Keeps::apply(wanting(), kept);
      }
      EXPECT_EQ(Host().pinned, before.pinned);
      y.backward();
      EXPECT_TRUE(Keeps::seen.is_alias_of(kept));
      Keeps::seen = Tensor();
    }
    const Tensor empty_one = empty({0, 3}, on_device());
    const auto requests = [] { return device_state(there()).pinned_host_allocator()->stats().allocations.allocated; };
    const std::int64_t before = requests();
    const SaveOnCpuGuard guard({.pin_memory = pins});
    Keeps::apply(wanting(), empty_one).backward();
    EXPECT_EQ(requests(), before);
    EXPECT_EQ(Keeps::seen.sizes(), IntArrayRef({0, 3}));
    EXPECT_TRUE(Keeps::seen.impl().storage_ptr() == empty_one.impl().storage_ptr()) << "the same, not a copy";
    Keeps::seen = Tensor();
  }
}

TEST(SaveOnCpu, WhatStaysAndIsWrittenToBeforeBackwardIsRefused) {
  Tensor parameter;
  {
    const PurposeGuard purpose(Purpose::kParameter);
    parameter = ones({100}, on_device());
  }
  const std::vector<std::pair<std::string, Tensor>> stay = {{"SimulatedDoubleType [100]", parameter},
                                                            {"CPUDoubleType [3]", ones({3}, kFloat64)}};
  for (const bool pins : {true, false}) {
    for (const auto& [name, kept] : stay) {
      Tensor y;
      {
        const SaveOnCpuGuard guard({.pin_memory = pins});
        y = Keeps::apply(wanting(), kept);
      }
      kept.mul_(10);
      EXPECT_THAT([&] { y.backward(); },
                  ::testing::ThrowsMessage<Error>(::testing::AllOf(
                      ::testing::HasSubstr("one of the variables needed for gradient computation has been modified by "
                                           "an inplace operation"),
                      ::testing::HasSubstr("expected version"), ::testing::HasSubstr("SaveOnCpuGuard"))))
          << name;
    }
  }
}

TEST(SaveOnCpu, TheDeviceKeepsTheResultAloneAndGradientsAreThoseOfThePlainRun) {
  const auto live = [] { return device_state(there()).allocator().stats().requested_bytes.current; };
  const Tensor x = arange(50, TensorOptions(kFloat64)).mul(0.1).to(TensorOptions(there())).requires_grad_();
  const auto chain = [&] { return x.exp().sin().mul(x); };
  chain().sum().backward();
  const Tensor plain = x.grad().cpu();
  for (const bool pins : {true, false}) {
    x.mutable_grad().reset();
    const std::int64_t before = live();
    Tensor y;
    {
      const SaveOnCpuGuard guard({.pin_memory = pins});
      y = chain();
    }
    EXPECT_EQ(live() - before, 50 * 8);
    const Tensor loss = y.sum();
    loss.backward({}, /*retain_graph=*/true);
    EXPECT_TRUE(x.grad().cpu().equal(plain));
    x.mutable_grad().reset();
    loss.backward();
    EXPECT_TRUE(x.grad().cpu().equal(plain)) << "as often as the graph runs";
  }
  const std::int64_t before = live();
  const Tensor y = chain();
  EXPECT_EQ(live() - before, 3 * 50 * 8) << "no guard lives any more";
}

TEST(SaveOnCpu, WhatIsPinnedGoesAndComesInTheOrderOfTheStreamWithoutWaiting) {
  const Tensor x = wanting(), kept = arange(100).to(TensorOptions(there()));
  const StreamRef stream = current_stream(there());
  DeviceDriver& driver = device_state(there()).driver();
  const auto held_up = [&](const auto& action) {
    std::promise<void> go;
    driver.enqueue(stream, [wait = go.get_future().share()] { wait.wait(); });
    action();  // would hang here if it waited
    go.set_value();
    driver.synchronize(stream);
  };
  Tensor y;
  held_up([&] {
    const SaveOnCpuGuard guard;
    y = Keeps::apply(x, kept);
  });
  held_up([&] { y.backward(); });
  EXPECT_TRUE(std::exchange(Keeps::seen, Tensor()).cpu().equal(arange(100)));
}

}  // namespace
}  // namespace tenon
