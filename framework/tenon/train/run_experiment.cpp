// Training or serving, as the file says.
#include <tenon/train/run_experiment.h>

#include <tenon/train/estimate/largest_batch.h>
#include <tenon/train/input/batches.h>
#include <tenon/train/serve/serving.h>
#include <tenon/train/step/ranks.h>
#include <tenon/train/step/techniques.h>
#include <tenon/train/training.h>

namespace tenon {
void check_experiment(const ExperimentConfig& config) {
  if (train::serves(config)) {
    train::check_ranks(config);
    if (config.devices.size() > 1)
      throw config.error("device.names", "requests are served on one device: set device.name instead");
    return train::check_serving(config);
  }
  train::check_ranks(config);
  train::check_tensor_parallel(config);
  train::check_data(config);
  train::check_auto_batch(config);
  if (config.devices.size() > 1 && train::has_auto_batch(config))
    throw config.error("train.batch_size", "the largest batch is looked for on one device: set a number here");
  train::techniques_of(config);
}

ExperimentResult run_experiment(const ExperimentConfig& config, ProgressSink& progress, const RunState& state) {
  if (train::serves(config)) return train::run_serving(config, progress);
  if (train::has_auto_batch(config))
    throw Error("train.batch_size is \"auto\": settle_searched() says which number that is");
  if (config.section("train").size("checkpoint_memory") > 0)
    throw Error("train.checkpoint_memory is a budget: settle_searched() says which blocks keep to it");
  return train::Training(config, progress, {}, train::as_rank_0_says(state)).run();
}

}  // namespace tenon
