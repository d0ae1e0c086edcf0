// Plans for many devices: how a model may be spread over them, and what each then needs.
//
//   data x tensor x pipeline = devices, and the stage of ZeRO among the data ranks
//
// Data ranks, data ranks of divided layers and data ranks of stages are run on addresses with the code that they would
// run. Of other layouts what a rank computes is: its layers (pipeline), its part of them (tensor), its part of the
// batch (data). What data ranks divide among them beside that follows from theory: Note [ZeRO by theory] of
// layouts.cpp.
#pragma once

#include <tenon/core/export.h>
#include <tenon/runtime/config/experiment.h>
#include <tenon/train/estimate/memory_estimate.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::train {

struct ParallelLayout {
  std::int64_t data = 1;      ///< groups of ranks that each compute a part of the batch
  std::int64_t tensor = 1;    ///< ranks that divide each layer
  std::int64_t pipeline = 1;  ///< stages that divide the layers
  int zero = 0;  ///< the stage of ZeRO: 1 divides states over the data ranks, 2 gradients too, 3 parameters
  std::int64_t devices() const { return data * tensor * pipeline; }
};

/// What one rank needs, in bytes at their peaks.
struct RankNeed {
  std::int64_t rank = 0;  ///< tensor ranks are neighbours, then data ranks, then stages: Megatron's order
  std::string layers;     ///< of its stage
  std::int64_t parameters = 0, gradients = 0, states = 0, activations = 0;
  std::int64_t communication = 0;  ///< buckets of gradients, gathered parameters
  std::int64_t requested = 0;      ///< of all together, at their common peak
  std::int64_t reserved = 0;       ///< by the allocator
};

/// Those whose product is `devices`, with every stage of ZeRO where there are several data ranks. Tensor ranks are as
/// few as possible first.
TENON_API std::vector<ParallelLayout> layouts_of(std::int64_t devices);

/// The experiment of one of the data groups, to be run on addresses as rank 0 of `layout.tensor` ranks: a device for
/// each stage, its part of the batch. Throws ConfigError, with the reason, where the model cannot be divided so.
TENON_API ExperimentConfig group_of(const ExperimentConfig& config, const ParallelLayout& layout);

/// The experiment of data ranks, of which each has divided layers or stages or neither, whose code runs on addresses as
/// it is. Throws ConfigError where the batch is too small for them.
TENON_API ExperimentConfig ranks_of(const ExperimentConfig& config, const ParallelLayout& layout);

/// What each stage's neediest rank needs, from what group_of()'s devices need alone: Note [ZeRO by theory].
TENON_API std::vector<RankNeed> needs_of(const ParallelLayout& layout, const std::vector<DeviceEstimate>& group);

}  // namespace tenon::train
