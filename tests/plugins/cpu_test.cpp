// The backend "cpu": one device, whose memory may be the host's, with as many threads as its options say.
#include "support/expect_error.h"

#include <tenon/core/error.h>
#include <tenon/device/device_driver.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace tenon {
namespace {

class Cpu : public testing::Test {
 protected:
  void TearDown() override { open({}); }

  static Backend& backend() { return find_backend("cpu"); }
  /// The device with these settings.
  static DeviceDriver& open(const std::vector<std::pair<std::string, std::string>>& settings) {
    backend().shutdown();
    Options options(backend().options());
    for (const auto& [name, value] : settings) options.set_text(name, value);
    backend().configure(options);
    return backend().device(0);
  }
};

TEST_F(Cpu, IsOneDevice) {
  EXPECT_EQ(backend().device_count(), 1);
  for (const int index : {-1, 1})
    test::expect_error([&] { backend().device(index); }, "cpu:" + std::to_string(index) + " does not exist");
}

TEST_F(Cpu, TakesMemoryOfTheHostForItsOwn) { EXPECT_TRUE(backend().takes_host_memory(Options(backend().options()))); }

TEST_F(Cpu, HasTheNameThatTheKernelGivesTheProcessor) {
  std::ifstream file("/proc/cpuinfo");
  std::string name;
  for (std::string line; std::getline(file, line) && name.empty();)
    if (line.starts_with("model name\t: ")) name = line.substr(13);
  if (name.empty()) GTEST_SKIP() << "/proc/cpuinfo names no model";
  EXPECT_EQ(backend().device(0).properties().name, name);
}

TEST_F(Cpu, UsesAsManyThreadsAsAreSaidAndAllCoresWhereNoneIs) {
  const int cores = backend().device(0).properties().compute_units;
  EXPECT_EQ(open({{"threads", "3"}}).threads(), 3);
  EXPECT_EQ(open({}).threads(), 3) << "what nobody says stays";
  EXPECT_EQ(Options(backend().options()).integer("threads"), 0);
  open({}).set_threads(0);
  EXPECT_EQ(backend().device(0).threads(), cores);
}

TEST_F(Cpu, GivesNoMoreMemoryThanItsCapacity) {
  MemorySource& memory = open({{"capacity", "1MiB"}}).memory();
  EXPECT_EQ(backend().device(0).properties().capacity_bytes, std::size_t{1} << 20);
  void* const all = memory.acquire(std::size_t{1} << 20);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(memory.acquire(4096), nullptr);
  memory.release(all, std::size_t{1} << 20);
}

TEST_F(Cpu, CopiesAndFillsNothingWhereThereIsNothing) {
  DeviceDriver& device = backend().device(0);
  device.copy(nullptr, nullptr, 0, CopyKind::kHostToDevice, {});
  device.fill(nullptr, 1, 0, {});
  char text[] = "abcdef";
  device.copy(text + 1, text, 4, CopyKind::kDeviceToDevice, {});  // ranges may overlap
  device.fill(text + 5, 'x', 1, {});
  EXPECT_STREQ(text, "aabcdx");
}

}  // namespace
}  // namespace tenon
