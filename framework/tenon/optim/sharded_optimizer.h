// ShardedOptimizer: an optimiser of divided parameters (nn/distributed/sharding.h): each rank updates its shards, and
// remembers what belongs to them. States are saved whole, so that a run goes on with another number of ranks, or alone.
//
//   distributed::Sharding sharding(module, ranks);
//   optim::AdamW adamw(module.parameters(), 1e-3);          // before or after the module is divided
//   optim::ShardedOptimizer optimizer(adamw, sharding);
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/distributed/sharding.h>
#include <tenon/optim/optimizer.h>

#include <cstddef>
#include <memory>
#include <string>

namespace tenon::optim {

class TENON_EXPORT ShardedOptimizer {
 public:
  /// The optimiser is borrowed: its groups have this rank's shards from now on in place of the module's parameters, and
  /// what it remembered of these is cut alike. Suits optimisers that update element by element and keep what they
  /// remember as it is: not L-BFGS, nor states in 8 bits by blocks. Throws Error for those that keep them so.
  TENON_API ShardedOptimizer(Optimizer& optimizer, std::shared_ptr<distributed::Sharding> sharding);

  /// Updates the shards; where parameters stay whole, every rank then takes those of the others. Every rank calls it.
  TENON_API void step();
  /// Zeroes the gradients of shards, or gives their memory back.
  void zero_grad(bool set_to_none = true) { optimizer_.zero_grad(set_to_none); }

  /// For Optimizer::save(): the rank `to` has the states of whole parameters, in host memory, until
  /// drop_consolidated(). Every rank calls it.
  TENON_API void consolidate_state_dict(int to = 0);
  /// Each rank has its own states again.
  TENON_API void drop_consolidated();

 private:
  using Member = distributed::FlatParameter::Member;
  std::unique_ptr<OptimizerParamState> whole_state(const distributed::FlatParameter& flat, const Member& member,
                                                   int to) const;
  void cut_state(const Member& member, Device device);

  Optimizer& optimizer_;
  std::shared_ptr<distributed::Sharding> sharding_;
  Optimizer::StateMap own_;  ///< of this rank, while the optimiser has whole ones
  bool is_consolidated_ = false;
};

}  // namespace tenon::optim
