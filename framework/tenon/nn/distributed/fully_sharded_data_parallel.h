// FullyShardedDataParallel: a module whose parameters, gradients and optimiser states are divided over the ranks, each
// of which computes its part of the batch. torch.distributed.fsdp.
//
//   auto ranks = distributed::init_process_group("mpi");
//   nn::parallel::FullyShardedDataParallel model(net, ranks);       // parameters become those of rank 0, then shards
//   optim::AdamW adamw(model.parameters(), 1e-3);                   // of this rank's shards
//   optim::ShardedOptimizer optimizer(adamw, model.sharding());
//   model.forward(x).sum().backward();
//   model.clip_grad_norm_(1.0);
//   optimizer.step();
//   optimizer.zero_grad();
#pragma once

#include <tenon/comm/communicator.h>
#include <tenon/nn/containers/module_holder.h>
#include <tenon/nn/distributed/forwarded_module.h>
#include <tenon/nn/distributed/sharding.h>
#include <tenon/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tenon::nn::parallel {

/// PyTorch's names.
enum class ShardingStrategy {
  FULL_SHARD,     ///< ZeRO 3: a parameter is whole while it is used
  SHARD_GRAD_OP,  ///< ZeRO 2: parameters stay whole, gradients and states are divided
};

struct FullyShardedDataParallelOptions {
  ShardingStrategy sharding_strategy = ShardingStrategy::FULL_SHARD;
  distributed::WrapPolicy auto_wrap_policy = distributed::is_numbered;  ///< which modules are units
  bool prefetch = true;                                                 ///< gathers a unit ahead, forward and backward
  bool find_unused_parameters = false;  ///< for forward passes that do not use every parameter
  bool sync_module_states = true;       ///< parameters and buffers become those of rank 0 at the beginning
};

/// What does not depend on the module's type. Its parameters() are this rank's shards, of one dim and some of them
/// empty, under the names of the module's; the module's own look into memory that is there while they are used.
class TENON_EXPORT FullyShardedDataParallelBase : public Module {
 public:
  using Module::train;
  /// Of the module too.
  TENON_API void train(bool on = true) override;
  /// While it lives, gradients add up on this rank, whole, and nothing is sent: less traffic, more memory.
  class NoSync {
   public:
    explicit NoSync(FullyShardedDataParallelBase& model) : model_(model), previous_(model.is_synchronizing_) {
      model_.synchronize(false);
    }
    ~NoSync() { model_.synchronize(previous_); }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    FullyShardedDataParallelBase& model_;
    bool previous_;
  };

  /// Backward passes of the scope add up only.
  NoSync no_sync() { return NoSync(*this); }
  /// Of all ranks' gradients together; returns the norm before.
  double clip_grad_norm_(double max_norm) { return sharding_->clip_grad_norm(max_norm); }
  /// What divides the parameters: for optim::ShardedOptimizer.
  const std::shared_ptr<distributed::Sharding>& sharding() const { return sharding_; }
  /// Calls `save` on rank `to` with the module, whose parameters are whole in host memory meanwhile. Every rank calls
  /// it.
  TENON_API void save_whole(const std::function<void(const Module&)>& save, int to = 0);

 protected:
  /// Throws Error where the ranks' modules differ, or there is no parameter.
  TENON_API FullyShardedDataParallelBase(std::shared_ptr<Module> module, std::shared_ptr<Communicator> ranks,
                                         const FullyShardedDataParallelOptions& options);
  TENON_API void before_forward();
  TENON_API void after_forward(const std::vector<Tensor>& outputs);

 private:
  void synchronize(bool on);

  std::shared_ptr<Module> inner_;
  std::shared_ptr<distributed::Sharding> sharding_;
  bool is_synchronizing_ = true;
};

/// ModuleType: a module's class; its holder or shared pointer is what it is made from.
template <class ModuleType>
class FullyShardedDataParallel
    : public detail::ForwardedModule<ModuleType, FullyShardedDataParallelBase, FullyShardedDataParallelOptions> {
 public:
  using detail::ForwardedModule<ModuleType, FullyShardedDataParallelBase,
                                FullyShardedDataParallelOptions>::ForwardedModule;
};

template <class ModuleType>
FullyShardedDataParallel(std::shared_ptr<ModuleType>, std::shared_ptr<Communicator>,
                         const FullyShardedDataParallelOptions& = {}) -> FullyShardedDataParallel<ModuleType>;
/// A holder is taken as the module in it.
template <class Holder>
requires(nn::detail::is_module_holder<Holder>)
    FullyShardedDataParallel(const Holder&, std::shared_ptr<Communicator>, const FullyShardedDataParallelOptions& = {})
->FullyShardedDataParallel<typename Holder::ContainedType>;

}  // namespace tenon::nn::parallel
