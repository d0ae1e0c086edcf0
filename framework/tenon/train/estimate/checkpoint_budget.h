// train.checkpoint_budget and train.checkpoint_memory: the fewest blocks that have to run again.
#pragma once

#include <tenon/core/export.h>
#include <tenon/runtime/config/experiment.h>
#include <tenon/train/progress.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon {

/// What a budget became.
struct CheckpointChoice {
  std::int64_t blocks = 0;      ///< run again in backward, the first so many
  std::int64_t of = 0;          ///< that the model has
  std::int64_t peak_bytes = 0;  ///< of what the budget is about
  int probes = 0;               ///< runs on addresses
  double seconds = 0;           ///< of all of them

  /// For a result: "checkpointed_blocks", "checkpoint_probes".
  TENON_API std::vector<std::pair<std::string, double>> figures() const;
};

/// Turns a budget into train.checkpoint_blocks, or train.checkpoint = false where none has to run again: by runs on
/// addresses alone under the experiment's allocator, so that it holds for every model, with every other technique.
/// `checkpoint_memory` is held against what the run reserves, tests included; `checkpoint_budget` against the peak of
/// activations in its steps. Nothing where neither is set, or where a closed form of the activations is known, by which
/// the run itself finds the share. Fewer blocks may take more where an allocator's cache is in the way: the answer is
/// found by halves, and fits. No device may be open; none is afterwards. Throws ConfigError where even all blocks leave
/// too much, and what run_experiment throws.
TENON_API std::optional<CheckpointChoice> with_checkpoint_blocks(ExperimentConfig& config, ProgressSink& progress);

namespace train {

/// So, for an estimate, which tells nobody.
ExperimentConfig with_checkpoint_blocks(const ExperimentConfig& config);

}  // namespace train
}  // namespace tenon
