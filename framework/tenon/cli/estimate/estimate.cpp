// The estimate, or why there is none.
#include <tenon/cli/estimate/estimate.h>
#include <tenon/train/estimate/memory_estimate.h>

namespace tenon::cli {

Estimate estimate_of(const ExperimentConfig& config, const train::PlannedRank& rank) {
  Estimate estimate;
  try {
    estimate.memory = estimate_memory(config, rank);
  } catch (const std::exception& error) {
    estimate.problem = error.what();
  }
  return estimate;
}

}  // namespace tenon::cli
