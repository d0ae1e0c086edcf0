// The host's memory as a device: what is refused is not counted, what is given back is gone.
#include <tenon/core/units.h>
#include <tenon/memory/sources/host_memory_source.h>

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace tenon {
namespace {

TEST(HostMemorySource, DoesNotCountWhatTheMachineRefuses) {
  HostMemorySource source({});
  EXPECT_EQ(source.acquire(std::size_t{1} << 60), nullptr);
  EXPECT_EQ(source.used_bytes(), 0u);
}

TEST(HostMemorySource, ShowsAsFreeWhatItsCapacityStillAllows) {
  HostMemorySource source({.capacity_bytes = 4 * MiB});
  void* const place = source.acquire(3 * MiB);
  EXPECT_EQ(source.usage().free_bytes, 1 * MiB);
  void* const rest = source.acquire(1 * MiB);
  EXPECT_EQ(source.usage().free_bytes, 0u);
  source.release(place, 3 * MiB);
  source.release(rest, 1 * MiB);
  EXPECT_EQ(source.usage().free_bytes, 4 * MiB);
}

std::size_t address_space_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmSize:") continue;
    std::size_t kibibytes = 0;
    status >> kibibytes;
    return kibibytes * KiB;
  }
  return 0;
}

TEST(HostMemorySource, KeepsNoAddressesBesideThoseThatAreReserved) {
  HostMemorySource source({});
  const std::size_t before = address_space_bytes();
  ASSERT_NE(before, 0u);
  constexpr int kTimes = 200;
  std::vector<void*> ranges;
  for (int i = 0; i < kTimes; ++i) {
    ranges.push_back(source.reserve(2 * MiB));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(ranges.back()) % (2 * MiB), 0u);
  }
  EXPECT_LT(address_space_bytes(), before + kTimes * 2 * MiB + 64 * MiB);
  for (void* const range : ranges) source.unreserve(range, 2 * MiB);
  EXPECT_LT(address_space_bytes(), before + 64 * MiB);
}

}  // namespace
}  // namespace tenon
