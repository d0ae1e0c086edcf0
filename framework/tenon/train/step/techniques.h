// The switches of [train] that give time, or arithmetic, for memory: read once, and held against each other.
#pragma once

#include <tenon/autograd/checkpoint.h>
#include <tenon/runtime/config/experiment.h>
#include <tenon/train/theory.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace tenon::train {

/// train.checkpoint_keep: the operators whose results checkpointed blocks keep.
struct KeptKinds {
  bool products = false;   ///< of matrices
  bool attention = false;  ///< what it gives, and each query's sum of weights
  bool convolutions = false;
  std::vector<std::string> operators;  ///< others, of keepable_operators()
};

/// What [train] says; see sections.cpp for what each does.
struct Techniques {
  std::int64_t micro_batches = 1;
  bool gradients_stay = false;  ///< zero_grad = "zero"
  bool optimizer_in_backward = false;
  std::int64_t chunked_loss = 0;
  std::int64_t checkpointed_blocks = 0;  ///< CheckpointedBlocks::kAll: all of them
  KeptKinds checkpoint_keep;
  double checkpoint_budget = 0;  ///< 0: none
  bool offload_activations = false;
  bool offload_optimizer = false;
  bool lora = false;  ///< lora_rank above 0
  bool master_weights = false;
};

using OperatorNames = std::set<std::string, std::less<>>;

/// What of a checkpointed block's results is kept; empty: nothing. It adds to `met` the operators that it is asked for.
CheckpointPolicy policy_of(const KeptKinds& kinds, std::shared_ptr<OperatorNames> met = nullptr);

/// Once a model has run that has so many blocks, and the operators in those that run again have been met: throws
/// ConfigError for train.checkpoint_blocks of more, and for a word of train.checkpoint_keep that keeps nothing.
void check_reach(const ExperimentConfig& config, std::int64_t blocks, const OperatorNames& met);

/// How much that is, of a block of such a model; 0 where no closed form is known.
KeptByBlock kept_of(const ActivationForm& form, const KeptKinds& kinds);

/// A figure of a run's result: how many blocks ran again.
inline constexpr const char* kCheckpointedBlocks = "checkpointed_blocks";

/// Why a budget of that share cannot be kept: where all blocks run again, `least` of the peak is left.
std::string leaves_too_much(double budget, std::int64_t blocks, double least);

/// Whether the closed form of a model with low-rank matrices is known: with activations on the device.
bool has_low_rank_form(const Options& train);

/// Whether a closed form of what blocks keep is known before the model is made: false also where only the model knows.
bool is_closed_form_known(const ExperimentConfig& config);

/// Throws ConfigError, with the reason, for techniques that make no sense together.
Techniques techniques_of(const ExperimentConfig& config);

}  // namespace tenon::train
