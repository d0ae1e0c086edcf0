// train.batch_size = "auto": the most examples a step for which there is memory.
#pragma once

#include <tenon/core/export.h>
#include <tenon/runtime/config/experiment.h>
#include <tenon/train/progress.h>
#include <tenon/train/run_experiment.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon {

/// What "auto" became.
struct BatchChoice {
  std::int64_t batch_size = 0;
  std::int64_t predicted = 0;     ///< on addresses alone; of a run that goes on, what it had
  int probes = 0;                 ///< runs on addresses
  int confirmations = 0;          ///< on the device itself; 0: it computes nothing, or the run goes on
  double seconds = 0;             ///< of all of them
  bool has_all_examples = false;  ///< it is the whole data set: memory is not what limits it

  /// For a result: "auto_batch_size", "auto_batch_predicted", "auto_batch_probes", "auto_batch_seconds".
  TENON_API std::vector<std::pair<std::string, double>> figures() const;
};

/// Turns train.batch_size = "auto" into the largest batch whose steps, and whose test, the device has memory for under
/// the experiment's allocator: predicted from runs on addresses alone, then confirmed by steps on the device until its
/// memory has settled, with fewer examples where these run out of memory. A run that goes on keeps the batch that it
/// had. Nothing where the configuration says a number. No device may be open; none is afterwards. Throws OutOfMemory
/// where the smallest batch does not fit, ConfigError where nothing limits the memory, and what run_experiment throws.
TENON_API std::optional<BatchChoice> with_largest_batch(ExperimentConfig& config, ProgressSink& progress,
                                                        const RunState& state = {});

namespace train {

/// Whether train.batch_size is "auto", and not yet a number.
TENON_API bool has_auto_batch(const ExperimentConfig& config);

/// Throws ConfigError where "auto" has nothing to fill: a device without end and no ceiling of the allocator.
void check_auto_batch(const ExperimentConfig& config);

/// With the batch that runs on addresses alone predict; as it is where it says a number.
ExperimentConfig with_predicted_batch(const ExperimentConfig& config);

}  // namespace train
}  // namespace tenon
