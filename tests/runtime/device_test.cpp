// A plain program: device_state() with no configuration at all.
#include <tenon/device/device_state.h>
#include <tenon/dispatch/dispatch.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/runtime/plugins/plugins.h>

#include "runtime/fixture.h"

#include <gmock/gmock.h>

#include <cstring>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Devices : public testing::Test {
 protected:
  void TearDown() override {
    shutdown();
    set_allocator("cpu", allocator_from_spec(kDefaultAllocator));
  }
};

TEST_F(Devices, TheCpuOpensByItselfUnderTheDefaultAllocator) {
  DeviceState& cpu = device_state("cpu");
  EXPECT_EQ(cpu.allocator().config().policy.name, kDefaultAllocator);
  const Block block = cpu.allocator().allocate({.bytes = 1000});
  std::memset(block.data, 1, block.bytes);
  EXPECT_EQ(cpu.allocator().stats().requested_bytes.current, 1000);
  cpu.allocator().deallocate(block);
  EXPECT_EQ(cpu.allocator().stats().requested_bytes.current, 0);
}

TEST_F(Devices, AChosenAllocatorServesDevicesThatAreOpenedLater) {
  load_plugin(fixture("tiny").string());
  set_allocator("cpu", allocator_from_spec("tiny:chunk=1KiB"));
  EXPECT_EQ(device_state("cpu").allocator().config().policy.name, "tiny");
  EXPECT_EQ(device_state("cpu").allocator().config().options.size("chunk"), KiB);
}

TEST_F(Devices, OptionsOfABackendComeBeforeItsFirstDevice) {
  Options options(find_backend("simulated").options());
  options.set("capacity", std::string("3GiB"));
  set_backend_options("simulated", options);
  EXPECT_EQ(device_state("simulated:0").driver().properties().capacity_bytes, 3 * GiB);
  EXPECT_THAT(message_of<ConfigError>([&] { set_backend_options("simulated", options); }), HasSubstr("too late"));
}

TEST_F(Devices, AnOptionOfABackendIsSetByNameAndValue) {
  set_backend_option("simulated", "capacity", "3GiB");
  set_backend_option("simulated", "count", 2);
  EXPECT_EQ(device_state("simulated:1").driver().properties().capacity_bytes, 3 * GiB) << "the first one stays set";
  EXPECT_THAT(message_of<ConfigError>([] { set_backend_option("simulated", "capacty", "1GiB"); }),
              AllOf(HasSubstr("device.simulated"), HasSubstr("did you mean 'capacity'?")));
  EXPECT_THAT(message_of<ConfigError>([] { set_backend_option("simulated", "capacity", "1GiB"); }),
              HasSubstr("too late"));
}

// It registers other kernels when it is configured, long after its register function.
TEST_F(Devices, AnOptionOfTheCpuChoosesItsKernels) {
  const OperatorId add = intern_operator("add");
  device_state("cpu");
  const Kernel widest = require_kernel(kCPU, add);
  shutdown();
  set_backend_option("cpu", "isa", "sse2");
  device_state("cpu");
  const Kernel narrow = require_kernel(kCPU, add);
  shutdown();
  set_backend_option("cpu", "isa", "auto");
  device_state("cpu");
  EXPECT_EQ(require_kernel(kCPU, add), widest);
  if (find_backend("cpu").device(0).properties().details.front().second == "sse2") GTEST_SKIP() << "it has one level";
  EXPECT_NE(narrow, widest);
}

TEST_F(Devices, AnAllocatorForAnOpenDeviceIsRefusedWithWhatToDo) {
  device_state("cpu");
  EXPECT_THAT(message_of<ConfigError>([] { set_allocator("cpu", allocator_from_spec("direct")); }),
              AllOf(HasSubstr("'direct' comes too late for cpu"), HasSubstr("served by 'caching'"),
                    HasSubstr("tenon::shutdown()"), HasSubstr("tenon::swap_allocator()")));
  shutdown();
  set_allocator("cpu", allocator_from_spec("direct"));
  EXPECT_EQ(device_state("cpu").allocator().config().policy.name, "direct");
}

TEST_F(Devices, AnIndexThatIsNotThereSaysHowManyThereAre) {
  EXPECT_EQ(message_of<Error>([] { device_state("cpu:3"); }),
            "no device cpu:3: there is 1 of this kind, cpu:0; name that");
  set_backend_option("simulated", "count", 2);
  EXPECT_EQ(message_of<Error>([] { device_state("simulated:2"); }),
            "no device simulated:2: there are 2 of this kind, simulated:0 to simulated:1; name one of them, or raise "
            "device.simulated.count");
}

TEST_F(Devices, AfterAShutdownADeviceOpensAgain) {
  device_state("cpu");
  shutdown();
  const Block block = device_state("cpu").allocator().allocate({.bytes = 64});
  device_state("cpu").allocator().deallocate(block);
}

}  // namespace
}  // namespace tenon::test
