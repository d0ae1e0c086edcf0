// DistributedDataParallel: a copy of a module on every rank, each with its part of the batch; backward leaves the mean
// of all ranks' gradients on every one of them, so that the copies stay equal.
// torch.nn.parallel.DistributedDataParallel.
//
//   auto ranks = distributed::init_process_group("mpi");
//   nn::parallel::DistributedDataParallel model(net, ranks);        // parameters and buffers become those of rank 0
//   optim::SGD optimizer(model.parameters(), 0.1);
//   model.forward(x).sum().backward();                              // all-reduce beside backward
//   {
//     const auto guard = model.no_sync();                           // gradients add up on this rank, nothing is sent
//     model.forward(x).sum().backward();
//   }
#pragma once

#include <tenon/comm/communicator.h>
#include <tenon/core/owned.h>
#include <tenon/nn/containers/module_holder.h>
#include <tenon/nn/distributed/forwarded_module.h>
#include <tenon/nn/distributed/reducer.h>
#include <tenon/nn/module.h>

#include <memory>
#include <vector>

namespace tenon::nn::parallel {

/// PyTorch's keyword arguments, with its defaults.
struct DistributedDataParallelOptions {
  double bucket_cap_mb = 25;             ///< MiB of gradients that are sent together; the first bucket is of 1 MiB
  bool broadcast_buffers = true;         ///< buffers become those of rank 0 before each forward pass
  bool find_unused_parameters = false;   ///< for forward passes that do not use every parameter
  bool gradient_as_bucket_view = false;  ///< gradients lie in the buckets: less memory by one copy of them
  bool init_sync = true;                 ///< parameters and buffers become those of rank 0 at the beginning
};

/// Throws DistributedError where the ranks' modules differ in the names, sizes or dtypes of their parameters and
/// buffers, or in which of them are trained, naming the rank and the first that differs. Every rank calls it.
TENON_API void check_same_parameters(const Module& module, Communicator& ranks);

/// What does not depend on the module's type.
class TENON_EXPORT DistributedDataParallelBase : public Module {
 public:
  /// While it lives, backward sends nothing. For all but the last backward pass of an accumulated gradient.
  class NoSync {
   public:
    explicit NoSync(DistributedDataParallelBase& model) : model_(model), previous_(model.is_synchronizing_) {
      model_.is_synchronizing_ = false;
    }
    ~NoSync() { model_.is_synchronizing_ = previous_; }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    DistributedDataParallelBase& model_;
    bool previous_;
  };

  /// The forward passes of the scope belong to backward passes without communication.
  NoSync no_sync() { return NoSync(*this); }
  /// What communication took so far.
  const distributed::ReducerStats& reducer_stats() const { return reducer_->stats(); }
  /// Of each bucket the positions of its parameters among those that require a gradient.
  const std::vector<std::vector<std::size_t>>& buckets() const { return reducer_->buckets(); }
  /// The ranks that it was given.
  const std::shared_ptr<Communicator>& communicator() const { return ranks_; }

 protected:
  /// Throws Error where the ranks' modules differ, or no parameter requires a gradient.
  TENON_API DistributedDataParallelBase(std::shared_ptr<Module> module, std::shared_ptr<Communicator> ranks,
                                        const DistributedDataParallelOptions& options);
  TENON_API void before_forward();
  TENON_API void after_forward(const std::vector<Tensor>& outputs);

 private:
  std::shared_ptr<Module> inner_;
  std::shared_ptr<Communicator> ranks_;
  const DistributedDataParallelOptions options_;
  Owned<distributed::Reducer> reducer_;
  bool is_synchronizing_ = true;
};

/// ModuleType: a module's class; its holder or shared pointer is what it is made from. Its parameters are named
/// "module.…", as PyTorch's are.
template <class ModuleType>
class DistributedDataParallel
    : public detail::ForwardedModule<ModuleType, DistributedDataParallelBase, DistributedDataParallelOptions> {
 public:
  using detail::ForwardedModule<ModuleType, DistributedDataParallelBase,
                                DistributedDataParallelOptions>::ForwardedModule;
};

template <class ModuleType>
DistributedDataParallel(std::shared_ptr<ModuleType>, std::shared_ptr<Communicator>,
                        const DistributedDataParallelOptions& = {}) -> DistributedDataParallel<ModuleType>;
/// A holder is taken as the module in it.
template <class Holder>
requires(nn::detail::is_module_holder<Holder>)
    DistributedDataParallel(const Holder&, std::shared_ptr<Communicator>, const DistributedDataParallelOptions& = {})
->DistributedDataParallel<typename Holder::ContainedType>;

}  // namespace tenon::nn::parallel
