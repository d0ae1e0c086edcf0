// Serving as an experiment: requests arrive, wait until their keys and values fit, get one symbol a step, and leave.
#pragma once

#include <tenon/runtime/config/experiment.h>
#include <tenon/train/experiment_result.h>
#include <tenon/train/progress.h>

#include <cstdint>

namespace tenon::train {

/// Whether the experiment serves instead of training: serve.requests > 0.
bool serves(const ExperimentConfig& config);

/// Throws ConfigError for settings of [serve] that do not fit one another, and for a model that does not serve.
void check_serving(const ExperimentConfig& config);

/// All requests, or those of the first `most_steps` steps where that is not 0. A step admits requests in the order of
/// their arrival as long as their keys and values fit into serve.kv_memory, computes the prompts of those and one
/// symbol of the others, and lets go of those that have all their symbols. Where the device or serve.kv_memory has no
/// room for the next symbol, the request that came last gives up its cache and waits again, as in vLLM. The same seed
/// gives the same symbols to the last bit under every cache and allocator, as long as nobody had to give up. Throws
/// OutOfMemory where one request alone does not fit.
///
/// Of its figures, `kv_waste` is the mean share of what the caches had reserved that held no symbol, and `tokens_hash`
/// 52 bits of a hash over all symbols, request by request.
ExperimentResult run_serving(const ExperimentConfig& config, ProgressSink& progress, std::int64_t most_steps = 0);

}  // namespace tenon::train
