// Sharding: the parameters of a module divided over the ranks by units (its blocks), their gradients with them, while
// operators find whole parameters when they read them. ZeRO 2 and 3; what FullyShardedDataParallel is made of.
//
//   forward    gather 1 │ compute 1        │ compute 2        │ …       gather k + 1 beside computing k (prefetch)
//                       └ gather 2 ────────┘ give 1 back, gather 3
//   backward   gather n-1 │ compute n-1      give back, reduce-scatter its gradients beside computing n-2
//   update     of shards
//
// Note [Parameters that come when they are read]: a parameter's memory is given back between uses. Whoever asks for its
// address (an operator, in forward, in backward, in the second run of a checkpointed part) gets the whole unit
// gathered first; see StorageSource. A unit goes when the operator that has read another one has been called, or its
// gradients are there, so that no more than two are whole at a time. The root, what is in no unit, stays from its first
// use to the end of backward. An address that a program keeps for itself is valid until another unit is read.
//
// Note [Order between ranks]: all ranks read units in the same order, since they run the same program, and gradients
// are reduced in the opposite order of units, whichever are there first.
//
// Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", 2020; Zhao et
// al., "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel", 2023.
#pragma once

#include <tenon/core/owned.h>
#include <tenon/nn/distributed/flat_parameter.h>
#include <tenon/nn/distributed/reducer.h>
#include <tenon/nn/module.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::distributed {

/// Which modules are units, by path; of nested ones the outermost counts. PyTorch's auto_wrap_policy.
using WrapPolicy = std::function<bool(const std::string& path, const nn::Module& module)>;
/// Modules whose name ends in a digit: layers of a Sequential or a ModuleList, "block3".
TENON_API bool is_numbered(const std::string& path, const nn::Module& module);

/// Parameters that are gathered together, by their positions among named_parameters().
struct ShardUnit {
  std::string path;  ///< empty: the root, what is in no unit
  /// Of one dtype each, and with a gradient or without: of each group one flat parameter is made.
  std::vector<std::vector<std::size_t>> groups;
};

/// The root first, if it has parameters, then units in the order of the module. A parameter that is registered twice is
/// in the first.
TENON_API std::vector<ShardUnit> shard_units(const nn::Module& module, const WrapPolicy& policy);

struct ShardingOptions {
  bool parameters = true;               ///< false: they stay whole, and only gradients are divided (ZeRO 2)
  bool average = true;                  ///< gradients are added up and divided by the number of ranks, or only added up
  bool overlap = true;                  ///< gradients are on their way while backward goes on
  bool prefetch = true;                 ///< the next unit is on its way while one computes
  bool find_unused_parameters = false;  ///< looks at each graph for parameters that it does not reach
  std::optional<Device> device{};       ///< where shards live; none: where the parameters are
  WrapPolicy policy = is_numbered;
};

/// How many bytes a rank holds at most, as requested: what tests hold the allocator's figures against.
struct ShardingBytes {
  std::int64_t shards = 0;           ///< between uses
  std::int64_t parameters = 0;       ///< shards, the root and the two largest units that follow each other
  std::int64_t gradient_shards = 0;  ///< between backward and the update
  std::int64_t gradients = 0;        ///< shards, the root's bucket, those of two units, and the largest gradient
};
/// Of a module whose parameters are still whole.
TENON_API ShardingBytes sharding_bytes(const nn::Module& module, int ranks, const ShardingOptions& options = {});

class TENON_EXPORT Sharding {
 public:
  /// Divides the parameters, which every rank has with the same values. Throws Error for a module without any, and for
  /// one on several devices.
  TENON_API Sharding(const nn::Module& module, std::shared_ptr<Communicator> ranks,
                     const ShardingOptions& options = {});
  TENON_API ~Sharding();
  Sharding(const Sharding&) = delete;
  Sharding& operator=(const Sharding&) = delete;

  /// Every flat parameter, the root's first.
  TENON_API std::vector<FlatParameter*> flats() const;
  /// What this rank has of each parameter, in the order of named_parameters(): leaves of one dim, some of them empty.
  TENON_API std::vector<std::pair<std::string, Tensor>> shards() const;

  /// Before a backward pass from `outputs`. Throws Error where the pass before left parameters without a gradient.
  TENON_API void prepare_for_backward(const std::vector<Tensor>& outputs = {});
  /// After a backward pass. Throws Error where it left parameters without a gradient, naming them.
  TENON_API void check_finished() const;
  /// Gradients only add up on this rank, whole, while it is off.
  TENON_API void set_synchronizing(bool on);

  /// Gives back all that is whole between uses.
  TENON_API void give_back();
  /// After an update of shards: with options.parameters off every rank takes what the others have updated.
  TENON_API void gather_updates();
  /// Scales the gradients of all ranks' shards so that their norm together is at most max_norm; returns the norm
  /// before, the same on every rank. Every rank calls it after backward.
  TENON_API double clip_grad_norm(double max_norm);
  /// Parameters look into whole ones in host memory on rank `to` until forget_host_copy(), for saving. Every rank calls
  /// both.
  TENON_API void copy_to_host(int to);
  /// Parameters look where they looked before.
  TENON_API void forget_host_copy();

  /// What the reductions took since the beginning.
  TENON_API const ReducerStats& stats() const;
  /// How often a unit was gathered.
  TENON_API std::int64_t gathers() const;
  /// The ranks that it was given.
  TENON_API const std::shared_ptr<Communicator>& communicator() const;

 private:
  class Impl;
  Owned<Impl> impl_;
};

}  // namespace tenon::distributed
