// What would have saved memory: a run that ran out of it, with one setting changed at a time, on addresses alone.
#pragma once

#include <tenon/core/export.h>
#include <tenon/runtime/config/experiment.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tenon {

/// One setting, and the peaks of a run with it, until its memory has settled.
struct SavingChange {
  std::string setting;  ///< as on the command line: "train.checkpoint=true"
  std::int64_t peak_requested_bytes = 0;
  std::int64_t peak_reserved_bytes = 0;
  bool fits = false;  ///< under the ceilings that the experiment has itself: limits, the capacity in the file
};

struct SavingChanges {
  std::int64_t peak_requested_bytes = 0;  ///< of the run as it is
  std::vector<SavingChange> changes;      ///< that lower it, by what they save, the most first
  /// A line for each of the first three.
  TENON_API std::string text() const;
};

/// Tries what suits any training: half the batch, twice the micro-batches, checkpointing, 16 bits, states in 8 bits,
/// offload, gradients given back. What an experiment cannot have is left out, and so is what comes after `seconds`. No
/// device may be open; none is afterwards. Throws nothing.
TENON_API SavingChanges changes_that_save(const ExperimentConfig& config, double seconds = 20);

}  // namespace tenon
