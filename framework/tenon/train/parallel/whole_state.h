// States of runs whose layers are divided over ranks: they are saved whole, so that a run goes on with any number of
// ranks, or with one process.
#pragma once

#include <tenon/optim/optimizer.h>
#include <tenon/tensor/tensor.h>
#include <tenon/train/parallel/tensor_parallel.h>

#include <utility>
#include <vector>

namespace tenon::train {

/// What of a run is in parts.
struct DividedRun {
  const TensorParallel& ranks;
  optim::Optimizer& optimizer;
  const std::vector<Tensor>& trained;    ///< the model's parameters that learn
  const std::vector<Tensor>& optimised;  ///< in their order, what the optimiser has of each: itself, or its master
};

/// While it lives rank 0 has whole parameters and states, in host memory, in place of its parts. Every rank makes one
/// at the same time; one tensor after the other is sent.
class WholeState {
 public:
  explicit WholeState(const DividedRun& run);
  ~WholeState();
  WholeState(const WholeState&) = delete;
  WholeState& operator=(const WholeState&) = delete;

 private:
  std::vector<std::pair<Tensor, Tensor>> parameters_;  ///< and their parts
  std::vector<std::pair<Tensor*, Tensor>> states_;
};

/// Parameters, and their masters, become as large as they are whole, for a state to be loaded.
void make_room_for_whole(const DividedRun& run);
/// Of what was loaded each rank keeps its parts.
void keep_parts(const DividedRun& run);

}  // namespace tenon::train
