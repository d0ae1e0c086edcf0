// Load, frequency governor, stolen time, and how much the harness itself varied.
#include <tenon/measure/bench/host_noise.h>

#include <tenon/core/text/counted.h>
#include <tenon/replay/jobs/process_pool.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace tenon::measure {

namespace {

constexpr double kLoadOfACore = 0.5;
constexpr double kSpread = 0.05;
constexpr double kStolen = 0.02;

double spread_of(std::vector<double> values) {
  if (values.size() < 4) return 0;
  std::ranges::sort(values);
  const double middle = values[values.size() / 2];
  return middle > 0 ? (values[values.size() * 3 / 4] - values[values.size() / 4]) / middle : 0;
}

}  // namespace

HostState host_state() {
  HostState state;
  double loads[3] = {};
  if (::getloadavg(loads, 3) > 0) state.load = loads[0];
  std::ifstream stat("/proc/stat");  // "cpu  user nice system idle iowait irq softirq steal …" in ticks
  std::string word;
  stat >> word;
  double ticks = 0;
  for (int column = 0; column < 8 && stat >> ticks; ++column) {
    state.all_s += ticks / 100;
    if (column == 7) state.stolen_s = ticks / 100;
  }
  std::ifstream("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") >> state.governor;
  return state;
}

HostNoise host_noise(const HostState& before, const HostState& after) {
  HostNoise noise;
  noise.cores = static_cast<int>(replay::usable_cores());
  noise.load = before.load;
  noise.governor = before.governor;
  if (after.all_s > before.all_s)
    noise.stolen_share = (after.stolen_s - before.stolen_s) / (after.all_s - before.all_s);
  return noise;
}

HostNoise host_noise(const HostState& before, const HostState& after, const BenchResult& result) {
  HostNoise noise = host_noise(before, after);
  for (const auto& cells : result.cells)
    noise.harness_spread = std::max(noise.harness_spread, spread_of(cells.back().round_ns));
  return noise;
}

std::vector<std::string> HostNoise::of_others() const {
  std::vector<std::string> found;
  if (load > kLoadOfACore * cores)
    found.push_back(
        fmt::format("the load average was {:.1f} on {}: others are busy here", load, counted(cores, "core")));
  if (stolen_share > kStolen)
    found.push_back(fmt::format("the hypervisor took {:.0f} % of the processor time", 100 * stolen_share));
  return found;
}

std::vector<std::string> HostNoise::warnings() const {
  std::vector<std::string> found = of_others();
  if (!governor.empty() && governor != "performance")
    found.push_back(fmt::format("the frequency governor is '{}': 'performance' keeps the clock steady", governor));
  if (harness_spread > kSpread)
    found.push_back(
        fmt::format("the harness itself varied by {:.0f} % between rounds (half of them)", 100 * harness_spread));
  return found;
}

}  // namespace tenon::measure
