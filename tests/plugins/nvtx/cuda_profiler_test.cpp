// The profiler on an emulated CUDA device: kernels are timed by events of their stream, memory is the device's.
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon::test {
namespace {

TEST(CudaProfiler, TimesKernelsByEventsAndShowsTheColumnsOfTheDevice) {
  const Device device("cuda:0");
  const Tensor a = ones({64, 64}).to(device);
  profiler::Profile profile({.profile_memory = true});
  profile.start();
  const Tensor b = a.mm(a).relu();
  profile.stop();
  EXPECT_GE(profile.recording().device_events.size(), 2u);
  for (const profiler::DeviceEvent& event : profile.recording().device_events) {
    EXPECT_EQ(event.device, device);
    EXPECT_FALSE(event.is_virtual);
    EXPECT_GE(event.duration_us, 0);
    EXPECT_NE(event.event, profiler::kNone) << event.name;
  }
  const auto rows = profile.key_averages();
  EXPECT_EQ(rows.find("aten::mm")->device_memory_usage, 64 * 64 * 4);
  const std::string table = rows.table({.sort_by = "self_cuda_memory_usage", .row_limit = 10});
  EXPECT_THAT(table, ::testing::HasSubstr("Self CUDA Mem"));
}

}  // namespace
}  // namespace tenon::test
