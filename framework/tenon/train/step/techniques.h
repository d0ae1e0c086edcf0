// The switches of [train] that give time, or arithmetic, for memory: read once, and held against each other.
#pragma once

#include <tenon/runtime/config/experiment.h>

#include <cstdint>

namespace tenon::train {

/// What [train] says; see sections.cpp for what each does.
struct Techniques {
  std::int64_t micro_batches = 1;
  bool gradients_stay = false;  ///< zero_grad = "zero"
  bool optimizer_in_backward = false;
  std::int64_t chunked_loss = 0;
  std::int64_t checkpointed_blocks = 0;  ///< CheckpointedBlocks::kAll: all of them
  double checkpoint_budget = 0;          ///< 0: none
  bool offload_activations = false;
  bool offload_optimizer = false;
};

/// Throws ConfigError, with the reason, for techniques that make no sense together.
Techniques techniques_of(const ExperimentConfig& config);

}  // namespace tenon::train
