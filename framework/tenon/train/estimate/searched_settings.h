// Settings that say what to look for rather than how much: they become numbers before a run begins.
#pragma once

#include <tenon/core/export.h>
#include <tenon/runtime/config/experiment.h>
#include <tenon/train/progress.h>
#include <tenon/train/run_experiment.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon {

/// with_checkpoint_blocks() and with_largest_batch(): what run_experiment() takes. Returns their figures. No device may
/// be open; none is afterwards. Throws what they throw.
TENON_API std::vector<std::pair<std::string, double>> settle_searched(ExperimentConfig& config, ProgressSink& progress,
                                                                      const RunState& state = {});

namespace train {

/// So, as far as addresses alone say it, for an estimate. No device may be open; none is afterwards.
TENON_API ExperimentConfig with_searched(const ExperimentConfig& config);

}  // namespace train
}  // namespace tenon
