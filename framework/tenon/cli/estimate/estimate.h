// Memory before a run.
#pragma once

#include <tenon/report/run/estimate_report.h>

namespace tenon::cli {

/// Of several ranks this one. No device may be open. Throws nothing: an estimate that cannot be made stops no run.
Estimate estimate_of(const ExperimentConfig& config, const train::PlannedRank& rank = {});

}  // namespace tenon::cli
