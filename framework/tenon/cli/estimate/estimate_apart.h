// An estimate in a process of its own: whatever the allocator's plugin does there is a fact to report.
#pragma once

#include <tenon/report/run/estimate_report.h>
#include <tenon/report/run/run_report.h>
#include <tenon/runtime/config/experiment.h>

#include <string>
#include <vector>

namespace tenon::cli {

struct EstimateApart {
  Estimate estimate;
  std::string stack;  ///< lines to put behind the problem; empty where there are none
  std::vector<RunFault> faults;
  std::string shortage;   ///< "a run would end out of memory: …", under its own ceilings; empty: it would not
  bool has_died = false;  ///< its process did not come to its end
  int exit_code = 0;      ///< of a run that ends so, or is refused; of what keeps an estimate from being made

  /// What is wrong with the allocator, in sentences for people; empty: nothing is.
  std::vector<std::string> complaints(const std::string& allocator) const;
  /// Why a run would not come to its end, the allocator's faults aside; empty: it would, as far as this says.
  std::string end_of_run() const;
};

/// The allocator may take `call_seconds` for one call. Of several ranks this one. Throws nothing.
EstimateApart estimate_apart(const ExperimentConfig& experiment, double call_seconds,
                             const train::PlannedRank& rank = {});

}  // namespace tenon::cli
