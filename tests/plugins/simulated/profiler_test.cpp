// The profiler on a simulated device with a cost model: kernels take the virtual time of that machine.
#include "plugins/simulated/machine.h"

#include <tenon/device/devices.h>
#include <tenon/device/order/virtual_time.h>
#include <tenon/ops/ops.h>
#include <tenon/profiler/profiler.h>

#include <gmock/gmock.h>

namespace tenon::test {
namespace {

class SimulatedProfile : public SimulatedMachine {
 protected:
  void SetUp() override { have({{"count", std::int64_t{2}}, {"tflops", 1.}, {"memory_gbs", 100.}}); }
};

TEST_F(SimulatedProfile, HasTheVirtualTimeOfEachOperatorsKernels) {
  const Tensor a = full({256, 512}, 1., TensorOptions(kZero)), b = full({512, 1024}, 1., TensorOptions(kZero));
  synchronize(kZero);
  profiler::Profile profile({.profile_memory = true});
  profile.start();
  const Tensor y = a.mm(b);
  const Tensor z = y.add(y);
  profile.stop();
  const auto rows = profile.key_averages();
  ASSERT_NE(rows.find("aten::mm"), nullptr);
  EXPECT_NEAR(rows.find("aten::mm")->self_device_time_total, 2. * 256 * 512 * 1024 / 1e6, 1e-6);
  EXPECT_GT(rows.find("aten::add")->self_device_time_total, 0);
  const std::string table = rows.table({.sort_by = "self_device_time_total"});
  for (const char* column : {"Self SIMULATED", "SIMULATED total", "SIMULATED Mem", "Self SIMULATED time total: "})
    EXPECT_THAT(table, ::testing::HasSubstr(column));
}

TEST_F(SimulatedProfile, LaysKernelsOfAStreamOneAfterAnother) {
  const Tensor a = full({256, 512}, 1., TensorOptions(kZero)), b = full({512, 1024}, 1., TensorOptions(kZero));
  profiler::Profile profile;
  profile.start();
  const Tensor y = a.mm(b), z = a.mm(b);
  profile.stop();
  const auto& events = profile.recording().device_events;
  ASSERT_GE(events.size(), 2u);
  for (std::size_t i = 1; i < events.size(); ++i)
    EXPECT_GE(events[i].start_us, events[i - 1].start_us + events[i - 1].duration_us - 1e-6);
  EXPECT_TRUE(events[0].is_virtual);
}

}  // namespace
}  // namespace tenon::test
