// The host's memory where a file has to grow, a system refuses, and nothing limits it.
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/sources/host_memory_source.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace tenon {
namespace {

using ::testing::HasSubstr;

/// A figure of /proc, in kibibytes there.
std::size_t proc_bytes(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key)) return std::strtoull(line.c_str() + key.size(), nullptr, 10) * KiB;
  return 0;
}

TEST(HostMemoryUsage, WithoutACapacityIsTheMachines) {
  HostMemorySource source({});
  struct sysinfo info {};
  ASSERT_EQ(::sysinfo(&info), 0);
  EXPECT_EQ(source.usage().total_bytes, std::size_t{info.totalram} * info.mem_unit);
  EXPECT_EQ(source.traits().capacity_bytes, 0u);
  // Others use the machine meanwhile: it is that figure, and none of the others.
  const std::size_t before = proc_bytes("/proc/meminfo", "MemAvailable:"), left = source.usage().free_bytes,
                    after = proc_bytes("/proc/meminfo", "MemAvailable:");
  ASSERT_NE(before, 0u);
  EXPECT_GE(left, std::min(before, after) - std::min(before, after) / 20);
  EXPECT_LE(left, std::max(before, after) + std::max(before, after) / 20);
}

TEST(HostMemoryUsage, OfSegmentsLeavesNoAddressesBehind) {
  HostMemorySource source({});
  const std::size_t before = proc_bytes("/proc/self/status", "VmSize:");
  constexpr int kTimes = 60;
  std::vector<void*> segments;
  for (int i = 0; i < kTimes; ++i) segments.push_back(source.acquire(9 * MiB + 1));
  EXPECT_LT(proc_bytes("/proc/self/status", "VmSize:"), before + kTimes * (9 * MiB + 4 * KiB) + 16 * MiB);
  for (void* const segment : segments) source.release(segment, 9 * MiB + 1);
  EXPECT_LT(proc_bytes("/proc/self/status", "VmSize:"), before + 16 * MiB);
}

TEST(HostMemoryPages, AreThereWhereverTheFileHadToGrow) {
  constexpr std::size_t kPage = 64 * KiB, kStep = 64 * GiB;
  HostMemorySource source({.page_bytes = kPage});
  auto* const space = static_cast<unsigned char*>(source.reserve(4 * kPage));
  // Nothing is written to the first, which takes no memory.
  const Physical large = source.create(kStep - kPage), last = source.create(kPage), beyond = source.create(2 * kPage);
  EXPECT_EQ(large.value, 1u);
  EXPECT_EQ(last.value, kStep / kPage);
  EXPECT_EQ(beyond.value, kStep / kPage + 1);
  EXPECT_EQ(source.used_bytes(), kStep + 2 * kPage);
  source.map(space, kPage, last, 0);
  source.map(space + kPage, 2 * kPage, beyond, 0);
  source.map(space + 3 * kPage, kPage, large, kStep - 2 * kPage);
  for (std::size_t i = 0; i < 4; ++i) space[i * kPage] = space[(i + 1) * kPage - 1] = static_cast<unsigned char>(i + 1);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(space[i * kPage], i + 1);
  source.unmap(space, 4 * kPage);
  // A hole is as long as the extent.
  source.destroy(last, kPage);
  source.map(space, kPage, beyond, 0);
  EXPECT_EQ(space[0], 2);
  source.unmap(space, kPage);
  source.destroy(beyond, 2 * kPage);
  source.destroy(large, kStep - kPage);
  EXPECT_EQ(source.used_bytes(), 0u);
  source.unreserve(space, 4 * kPage);
}

template <class Call>
std::string host_refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "served";
}

TEST(HostMemoryRefusals, SayWhatFailedWhyAndWhatToLookAt) {
  constexpr std::size_t kPage = 64 * KiB;
  HostMemorySource source({.device = "here", .page_bytes = kPage});
  EXPECT_EQ(host_refusal([&] { source.create(kPage + 1); }),
            "here: physical memory comes in multiples of 64KiB, not 65537");
  auto* const space = static_cast<char*>(source.reserve(kPage));
  const Physical physical = source.create(kPage);
  EXPECT_EQ(host_refusal([&] { source.map(space + 1, kPage, physical, 0); }),
            "here: cannot map 64.0 KiB: Invalid argument; the number of mappings is limited by vm.max_map_count");
  EXPECT_EQ(host_refusal([] { HostMemorySource({.device = "there", .page_bytes = 4097}); }),
            "there: option 'page' is 4097; it must be a multiple of the system's page, 4KiB");
  EXPECT_EQ(source.reserve(std::size_t{1} << 62), nullptr);
  source.unreserve(nullptr, kPage);
  source.unreserve(space, kPage);
  source.destroy(physical, kPage);
}

/// In a process of its own, whose files may not grow.
[[noreturn]] void create_where_files_may_not_grow() {
  std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit least { 4096, 4096 };
  ::setrlimit(RLIMIT_FSIZE, &least);
  HostMemorySource source({.device = "small", .capacity_bytes = 8 * MiB});
  const std::string said = host_refusal([&] { source.create(2 * MiB); });
  const bool is_right =
      said == "small: cannot grow the memfd to 64.0 GiB: File too large; check the limit on file sizes (ulimit -f)" &&
      source.used_bytes() == 0;
  std::_Exit(is_right ? 99 : 1);
}

TEST(HostMemoryDeathTest, WhereFilesMayNotGrowItSaysSoAndCountsNothing) {
  EXPECT_EXIT(create_where_files_may_not_grow(), ::testing::ExitedWithCode(99), "");
}

}  // namespace
}  // namespace tenon
