// Training as an experiment: what a TOML file may say about model, data and training, and the run that it describes.
#pragma once

#include <tenon/core/export.h>
#include <tenon/runtime/config_schema.h>
#include <tenon/runtime/experiment.h>

#include <vector>

namespace tenon {

/// The sections [model], [data] and [train].
TENON_API std::vector<SectionSpec> training_sections();

/// Trains and tests. The same seed gives the same losses to the last bit whatever the allocator. All device memory is
/// given back before it returns. Throws ConfigError (an unknown model, a setting that does not fit the data), Error
/// (data files), OutOfMemory (when giving back what is cached and trying the step again did not help).
TENON_API ExperimentResult run_experiment(const ExperimentConfig& config, ProgressSink& progress);

}  // namespace tenon
