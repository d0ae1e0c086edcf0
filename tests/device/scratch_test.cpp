// A kernel's workspace: where it comes from, and what it is aligned to.
#include <tenon/dispatch/call.h>

#include <gtest/gtest.h>

#include <device/fake_driver.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace tenon {
namespace {

/// Hands out the next address that is aligned as asked, and no better.
class CountingPolicy final : public Allocator {
 public:
  Block allocate(const Request& request) override {
    next_ = (next_ + request.alignment - 1) / request.alignment * request.alignment;
    auto* data = reinterpret_cast<void*>(next_);
    next_ += request.bytes;
    return {.data = data, .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block&, StreamRef) noexcept override {}

 private:
  std::uintptr_t next_ = kDefaultAlignment;
};

std::vector<std::uintptr_t>& scratches() {
  static std::vector<std::uintptr_t> all;
  return all;
}

void three_scratches(KernelContext& context, std::span<const TensorView>, std::span<const TensorView>, const void*) {
  for (const std::size_t bytes : {1, 100, 1000})
    scratches().push_back(reinterpret_cast<std::uintptr_t>(context.scratch(bytes)));
  EXPECT_EQ(context.scratch(0), nullptr);
}

TEST(Scratch, IsAlignedToWhatTheLibrariesOfADeviceWant) {
  const test::FakeDevices devices;
  DeviceState& state = device_state(test::fake());
  const AllocatorInfo counting{.name = "counting", .create = [](const AllocatorContext&) -> std::unique_ptr<Allocator> {
                                 return std::make_unique<CountingPolicy>();
                               }};
  state.swap_allocator(AllocatorStack::make(state.driver().memory(), StackConfig{.policy = counting}));
  register_kernel(DeviceType::named("fake"), "scratch_test", &three_scratches);
  scratches().clear();
  call_kernel(TENON_OP("scratch_test"), state, {}, {}, nullptr);
  ASSERT_EQ(scratches().size(), 3U);
  for (const std::uintptr_t address : scratches()) EXPECT_EQ(address % 256, 0U) << address;
}

}  // namespace
}  // namespace tenon
