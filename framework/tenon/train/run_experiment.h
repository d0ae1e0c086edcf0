// Training as an experiment: what a TOML file may say about model, data and training, and the run that it describes.
#pragma once

#include <tenon/comm/communicator.h>
#include <tenon/core/export.h>
#include <tenon/runtime/config/experiment.h>
#include <tenon/runtime/config/section_spec.h>
#include <tenon/train/experiment_result.h>
#include <tenon/train/progress.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

namespace tenon {

/// The sections [model], [data], [train] and [serve].
TENON_API std::vector<SectionSpec> training_sections();

/// Where a run keeps the state that it can go on from, beside train.save, which is of a run that has ended.
struct RunState {
  std::filesystem::path
      file;            ///< written when the run is interrupted, and after every train.save_every steps; empty: never
  bool go_on = false;  ///< begin with what the file holds; the result is that of the whole run
  std::shared_ptr<Communicator> ranks = {};  ///< that train together; null: this process is alone
};

/// What can be said before anything is made: throws ConfigError for data that do not suit the model and for techniques
/// that make no sense together or change nothing, Error for data files that are missing. No device may be open where
/// train.checkpoint_blocks or train.checkpoint_keep is set: what the model's blocks are is asked of a run on addresses.
/// `ranks`: how many there are, of a run that several share; 0: that is not known.
TENON_API void check_experiment(const ExperimentConfig& config, int ranks = 0);

/// Trains and tests, or serves where serve.requests > 0 (serve/serving.h), which begins at its beginning when it is
/// resumed. The same seed gives the same losses to the last bit whatever the allocator. All device memory is
/// given back before it returns. When the sink asks it to stop it ends after the step and says so in its result. Throws
/// ConfigError (an unknown model, a setting that does not fit the data), Error (data files), OutOfMemory (when giving
/// back what is cached and trying the step again did not help), Error for train.batch_size = "auto" and
/// train.checkpoint_memory, of which settle_searched() (estimate/searched_settings.h) makes numbers.
TENON_API ExperimentResult run_experiment(const ExperimentConfig& config, ProgressSink& progress,
                                          const RunState& state = {});

}  // namespace tenon
