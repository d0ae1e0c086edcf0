// Memory before a run: the estimate that `tenon run --dry-run` prints, and that a run holds its own figures against.
#pragma once

#include <tenon/runtime/experiment.h>
#include <tenon/train/run_experiment.h>

#include <optional>
#include <string>

namespace tenon::cli {

struct Estimate {
  std::optional<MemoryEstimate> memory;
  std::string problem;  ///< why there is none
};

/// No device may be open. Throws nothing: an estimate that cannot be made stops no run.
Estimate estimate_of(const ExperimentConfig& config);

/// A few lines, each with a '#' before it, so that they may stand in the TOML that a dry run prints.
std::string as_comment(const Estimate& estimate);

/// A JSON object with bytes as integers; with what was measured, also `error`: estimate / measured - 1 for each peak.
std::string estimate_json(const Estimate& estimate, const MemoryStats* measured);

}  // namespace tenon::cli
