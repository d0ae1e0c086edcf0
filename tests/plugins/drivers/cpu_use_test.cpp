// How busy this machine is and who has its memory, beside what /proc says in the test's own words; and what the backend
// "cpu" says of the processor.
#include "support/expect_error.h"

#include <tenon/core/units.h>
#include <tenon/device/device_driver.h>
#include <tenon/device/device_use.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using testing::Contains;
using testing::Pair;

/// Bytes of an entry of /proc/meminfo.
double meminfo(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    double kibibytes = 0;
    if (word == name + ":" && file >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

/// Ticks of all cores: (busy, all).
std::pair<double, double> ticks() {
  std::ifstream file("/proc/stat");
  std::string word;
  std::array<double, 8> fields{};
  file >> word;
  for (double& field : fields) file >> field;
  const double all = std::accumulate(fields.begin(), fields.end(), 0.);
  return {all - fields[3] - fields[4], all};
}

std::size_t resident_bytes(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  std::size_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

class CpuUse : public testing::Test {
 protected:
  static Backend& backend() { return find_backend("cpu"); }
  static ReportsUse& reporter() { return dynamic_cast<ReportsUse&>(backend()); }
};

TEST_F(CpuUse, IsTheMemoryThatIsNotAvailable) {
  const double total = meminfo("MemTotal"), before = total - meminfo("MemAvailable");
  const DeviceUse use = reporter().look(0);
  const double after = total - meminfo("MemAvailable");
  EXPECT_EQ(static_cast<double>(use.total_bytes), total);
  const double slack = .05 * total;  // others take and give back meanwhile
  EXPECT_GE(static_cast<double>(use.used_bytes), std::min(before, after) - slack);
  EXPECT_LE(static_cast<double>(use.used_bytes), std::max(before, after) + slack);
  EXPECT_EQ(reporter().visible_devices(1), 1);
}

TEST_F(CpuUse, NamesTheFiveProcessesWithTheMostMemoryTheLargestFirst) {
  std::vector<char> held(64 << 20, 1);  // most likely one of them
  const DeviceUse use = reporter().look(0);
  ASSERT_FALSE(use.processes.empty());
  EXPECT_LE(use.processes.size(), 5U);
  bool has_this = false;
  for (std::size_t i = 0; i < use.processes.size(); ++i) {
    const ProcessUse& process = use.processes[i];
    EXPECT_GT(process.bytes, 0U);
    EXPECT_GT(process.pid, 0);
    EXPECT_LE(process.bytes, use.processes[i > 0 ? i - 1 : 0].bytes);
    if (process.pid != ::getpid()) continue;
    has_this = true;
    EXPECT_EQ(process.command, command_of_process(::getpid()));
    EXPECT_NEAR(static_cast<double>(process.bytes), static_cast<double>(resident_bytes(::getpid())), 16. * MiB);
  }
  if (!has_this) {
    EXPECT_EQ(use.processes.size(), 5U);
    EXPECT_GE(use.processes.back().bytes, held.size()) << "five others have more";
  }
}

TEST_F(CpuUse, IsThePartOfTheTicksThatWereNotIdleSinceTheLastLook) {
  constexpr double kEnough = 20, kApart = .2;
  constexpr int kAttempts =
      50;  // another process may come between two readings, and ticks of a virtual machine go back
  std::optional<double> told;
  double expected = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto [busy_before, all_before] = ticks();
    reporter().look(0);
    double all = all_before, busy = busy_before;
    while (all - all_before < kEnough) std::tie(busy, all) = ticks();  // on this core, busily
    told = reporter().look(0).busy;
    expected = (busy - busy_before) / (all - all_before);
    if (told && *told >= 0 && *told <= 1 && std::abs(*told - expected) <= kApart) return;
  }
  FAIL() << (told ? std::to_string(*told) : "nothing") << " in place of " << expected;
}

class CpuProperties : public CpuUse {
 protected:
  void TearDown() override { open({}); }
  static DeviceDriver& open(const std::vector<std::pair<std::string, std::string>>& settings) {
    backend().shutdown();
    Options options(backend().options());
    for (const auto& [name, value] : settings) options.set_text(name, value);
    backend().configure(options);
    return backend().device(0);
  }
  static std::map<std::string, std::string> details(DeviceDriver& driver) {
    const auto all = driver.properties().details;
    return {all.begin(), all.end()};
  }
  static std::string widest() {
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return !avx2 ? "sse2" : avx512 ? "avx512" : "avx2";
  }
};

TEST_F(CpuProperties, AreThoseOfThisMachine) {
  const DeviceProperties properties = open({{"threads", "2"}, {"page", "64KiB"}}).properties();
  cpu_set_t cores;
  ASSERT_EQ(::sched_getaffinity(0, sizeof cores, &cores), 0);
  EXPECT_EQ(properties.compute_units, CPU_COUNT(&cores)) << "that this process may run on";
  EXPECT_EQ(properties.capacity_bytes, 0U) << "what the machine gives";
  EXPECT_TRUE(properties.host_accessible);
  EXPECT_FALSE(properties.asynchronous);
  EXPECT_TRUE(properties.computes);
  EXPECT_THAT(properties.details, Contains(Pair("threads", "2")));
  EXPECT_THAT(properties.details, Contains(Pair("page", "64KiB")));
  EXPECT_THAT(properties.details, Contains(Pair("isa", widest())));
  EXPECT_THAT(properties.details, Contains(Pair("blas", testing::StartsWith("OpenBLAS ("))));
  EXPECT_THAT(properties.details, Contains(Pair("onednn", testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"))));
  EXPECT_EQ(backend().device(0).memory().traits().page_bytes, 64 * KiB);
}

TEST_F(CpuProperties, LevelsOfVectorsAreChosenUpToTheWidestOfThisMachine) {
  bool is_there = true;
  for (const std::string level : {"sse2", "avx2", "avx512"}) {
    if (is_there) {
      EXPECT_EQ(details(open({{"isa", level}})).at("isa"), level);
    } else {
      expect_error<ConfigError>(
          [&] {
            open({{"isa", level}});
          },
          "cpu: option 'isa' is " + level + ", but this machine has " + widest() + " at most");
    }
    if (level == widest()) is_there = false;
  }
  EXPECT_EQ(details(open({{"isa", "auto"}})).at("isa"), widest());
  expect_error<ConfigError>([] { open({{"isa", "mmx"}}); }, "isa");
}

TEST_F(CpuProperties, ThreadsAreTakenBackAndCountedUpToTheMost) {
  DeviceDriver& driver = open({});
  driver.set_threads(1000);
  EXPECT_EQ(driver.threads(), 256) << "the most";
  driver.set_threads(-1);
  EXPECT_EQ(driver.threads(), driver.properties().compute_units) << "all cores";
  driver.set_threads(1);
  EXPECT_EQ(driver.threads(), 1);
  expect_error<ConfigError>([] { open({{"threads", "257"}}); }, "threads");
  backend().device(0).set_threads(0);
}

}  // namespace
}  // namespace tenon::test
