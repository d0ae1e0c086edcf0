// ZeroRedundancyOptimizer: an optimiser whose states are divided over the ranks. Each rank updates the parameters that
// are its own, so that it remembers nothing of the others, and then takes those as their owners have them: the first
// stage of ZeRO. Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
// 2020; names and the division are those of torch.distributed.optim.ZeroRedundancyOptimizer.
//
//   optim::AdamW adamw(model.parameters(), 1e-3);                 // as without it, on every rank
//   optim::ZeroRedundancyOptimizer optimizer(adamw, ranks);
//   optimizer.step();                                             // in place of adamw.step()
#pragma once

#include <tenon/comm/communicator.h>
#include <tenon/core/export.h>
#include <tenon/optim/optimizer.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace tenon::optim {

/// Which rank each parameter belongs to: the largest first, each to the rank that has least so far.
TENON_API std::vector<int> partition_parameters(const std::vector<Tensor>& parameters, int ranks);

class TENON_EXPORT ZeroRedundancyOptimizer {
 public:
  /// Divides the parameters that require a gradient. The optimiser is borrowed: its options, groups and schedules stay
  /// what they are, and states that it has of the others' parameters are dropped. Suits optimisers that update each
  /// parameter by itself: not L-BFGS.
  TENON_API ZeroRedundancyOptimizer(Optimizer& optimizer, std::shared_ptr<Communicator> ranks);

  /// Updates this rank's parameters, which have the same gradients on every rank, and takes those of the others. Throws
  /// what the optimiser's step() throws, DistributedError.
  TENON_API void step();
  /// Of this rank.
  bool owns(const Tensor& parameter) const { return owner_of(parameter) == rank_; }
  /// By parameter, in the order of the groups.
  const std::vector<int>& owners() const { return owners_; }
  /// Bytes of the states that this rank holds.
  TENON_API std::size_t state_bytes() const;

  /// For Optimizer::save(): the rank `to` gets the states of all ranks, in host memory, until drop_consolidated().
  /// Every rank calls it.
  TENON_API void consolidate_state_dict(int to = 0);
  /// States of other ranks' parameters go; also those that Optimizer::load() has brought.
  TENON_API void drop_consolidated();

 private:
  TENON_API int owner_of(const Tensor& parameter) const;

  Optimizer& optimizer_;
  std::shared_ptr<Communicator> ranks_;
  int rank_;
  std::vector<Tensor> parameters_;
  std::vector<int> owners_;
};

}  // namespace tenon::optim
