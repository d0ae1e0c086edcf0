// Training or serving, as the file says.
#include <tenon/train/run_experiment.h>

#include <tenon/runtime/allocator_spec.h>
#include <tenon/train/estimate/address_run.h>
#include <tenon/train/estimate/largest_batch.h>
#include <tenon/train/input/batches.h>
#include <tenon/train/serve/serving.h>
#include <tenon/train/step/ranks.h>
#include <tenon/train/step/techniques.h>
#include <tenon/train/training.h>

#include <fmt/format.h>

namespace tenon {
namespace {

/// How many blocks there are, and what they compute, is known when the model has run.
void check_blocks(const ExperimentConfig& config) {
  const Options& train = config.section("train");
  if (train.integer("checkpoint_blocks") == 0 && train.text("checkpoint_keep") == "none") return;
  ExperimentConfig trial = train::on_addresses(config, 0);
  trial.allocator = allocator_from_spec(kDefaultAllocator);
  Options& few = trial.sections.find("train")->second;
  few.set("batch_size", train.integer("micro_batches") * static_cast<std::int64_t>(trial.devices.size()));
  few.set("checkpoint_budget", 0.0);
  few.set("checkpoint_memory", std::size_t{0});
  few.set("resume", std::string());
  try {
    train::run_on_addresses(trial, config.device, {.steps = 1, .tests = false});
  } catch (const PluginError&) {  // no such devices here: the run finds out in its first step
  }
}

/// What is known before the first step.
void check_profile(const ExperimentConfig& config) {
  const Options& profile = config.section("profile");
  if (profile.integer("row_limit") == 0)
    throw config.error("profile.row_limit", "tables without a row say nothing: set how many, or -1 for all");
  const std::int64_t before = profile.integer("skip_first") + profile.integer("wait") + profile.integer("warmup");
  const std::int64_t steps = train::serves(config) ? 0 : config.section("train").integer("max_steps");
  if (profile.boolean("enabled") && steps > 0 && before >= steps)
    throw config.error("profile.enabled",
                       fmt::format("nothing would be recorded: recording begins with step {} (skip_first + wait + "
                                   "warmup are {}), and train.max_steps is {}",
                                   before + 1, before, steps));
}

}  // namespace

void check_experiment(const ExperimentConfig& config, int ranks) {
  check_profile(config);
  if (train::serves(config)) {
    train::check_ranks(config);
    if (config.devices.size() > 1)
      throw config.error("device.names", "requests are served on one device: set device.name instead");
    return train::check_serving(config);
  }
  train::check_ranks(config);
  train::check_tensor_parallel(config);
  if (ranks > 0) train::check_tensor_ranks(config, ranks);
  train::check_data(config);
  train::check_auto_batch(config);
  if (config.devices.size() > 1 && train::has_auto_batch(config))
    throw config.error("train.batch_size", "the largest batch is looked for on one device: set a number here");
  train::techniques_of(config);
  check_blocks(config);
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
