// A training run on disk: everything that its next step depends on, so that a run that goes on from there equals one
// that was never interrupted, to the bit.
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/module.h>
#include <tenon/optim/grad_scaler.h>
#include <tenon/optim/master_weights.h>
#include <tenon/optim/optimizer.h>
#include <tenon/runtime/config/experiment.h>
#include <tenon/train/experiment_result.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace tenon::train {

/// Where a run stands in its data. What decides the order of the examples is written too and held against the run that
/// goes on.
struct RunPosition {
  std::int64_t steps = 0;     ///< done since the very beginning
  int epoch = 0;              ///< under way: its steps or its test are not done
  double epoch_loss_sum = 0;  ///< of the steps done in that epoch
  double epoch_seconds = 0;   ///< that they took
  std::int64_t seed = 0;
  std::int64_t batch_size = 0;
  std::int64_t examples = 0;  ///< of the training part
  /// What decides which parameters there are and what they mean, by key: model.*, precision, masters, low-rank
  /// matrices.
  std::vector<std::pair<std::string, std::string>> settings;
};

/// What of a run is saved, borrowed from it.
struct RunParts {
  nn::Module& module;
  optim::Optimizer& optimizer;
  optim::GradScaler& scaler;
  optim::MasterWeights* masters = nullptr;  ///< null: none
};

/// What a run that goes on has to have in common with the one before it, besides its data: RunPosition::settings.
std::vector<std::pair<std::string, std::string>> lasting_settings(const ExperimentConfig& config);

/// Parameters, buffers, optimiser, masters of parameters, the scale of the loss where there is one, random generators,
/// position and the figures so far as one safetensors file, written beside its place, flushed to the disk and then
/// renamed.
void save_run(const std::filesystem::path& path, const RunParts& parts, const RunPosition& position,
              const ExperimentResult& so_far);

/// Puts all of it back. Throws Error that names the file: missing, truncated, of another model or optimiser, or of a
/// run whose seed, batch size or data differ from those in `now`. The figures go to `so_far`, unless that is null.
RunPosition load_run(const std::filesystem::path& path, const RunParts& parts, const RunPosition& now,
                     ExperimentResult* so_far = nullptr);

/// The steps of the run in that file, from its header alone. Throws Error.
TENON_API std::int64_t saved_steps(const std::filesystem::path& path);
/// So the examples of each of its steps.
std::int64_t saved_batch_size(const std::filesystem::path& path);

}  // namespace tenon::train
