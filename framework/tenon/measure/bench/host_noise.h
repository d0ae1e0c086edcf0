// How quiet the machine is: what may spoil a measurement, as sentences.
#pragma once

#include <tenon/core/export.h>
#include <tenon/measure/bench/bench.h>

#include <optional>
#include <string>
#include <vector>

namespace tenon::measure {

/// Taken before the measurement and after it.
struct HostState {
  double load = 0;       ///< average of the last minute
  double stolen_s = 0;   ///< by the hypervisor from all cores, since the machine started
  double all_s = 0;      ///< of all cores, idle too
  std::string governor;  ///< of the first core's frequency; empty where it is not told
};
TENON_API HostState host_state();

struct TENON_API HostNoise {
  int cores = 1;
  double load = 0;          ///< before the measurement
  double stolen_share = 0;  ///< of the time that the cores had during it
  double harness_spread =
      0;  ///< of the harness' rounds: half of them lie within this share of the median; the worst workload
  std::string governor;

  /// What to do about it: empty on a quiet machine.
  std::vector<std::string> warnings() const;
  /// Of them those about others who were busy on the machine.
  std::vector<std::string> of_others() const;
};
/// Of a measurement that knows no harness.
TENON_API HostNoise host_noise(const HostState& before, const HostState& after);
TENON_API HostNoise host_noise(const HostState& before, const HostState& after, const BenchResult& result);

}  // namespace tenon::measure
