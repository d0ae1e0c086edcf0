// Ranks: the processes that train one model together, as the loop sees them. Alone without a communicator.
//
// Note [One batch for all ranks]: a step's batch is divided over the ranks as it is over micro-batches, and each part's
// loss counts by its share, so that gradients and losses add up to those of the whole batch. With gradients reduced in
// the order of ranks, N ranks have the bits of one process with train.micro_batches = N.
//
// Note [Two ways at once]: with train.tensor_parallel = T, T neighbours divide the layers, and the N / T groups of them
// are data ranks: rank r has part r % T of the layers and part r / T of the batch. Gradients are summed among the ranks
// that have the same part of the layers. The stages of a pipeline are devices of each data rank.
#pragma once

#include <tenon/comm/communicator.h>
#include <tenon/memory/stats.h>
#include <tenon/nn/distributed/reducer.h>
#include <tenon/nn/distributed/sharding.h>
#include <tenon/nn/module.h>
#include <tenon/optim/sharded_optimizer.h>
#include <tenon/optim/zero_redundancy_optimizer.h>
#include <tenon/runtime/config/experiment.h>
#include <tenon/train/experiment_result.h>
#include <tenon/train/parallel/tensor_parallel.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
struct RunState;  // run_experiment.h
}

namespace tenon::train {

class Ranks {
 public:
  /// `communicator` may be null: one process. Throws ConfigError where the ranks are no multiple of
  /// train.tensor_parallel.
  Ranks(const ExperimentConfig& config, std::shared_ptr<Communicator> communicator);

  bool are_many() const { return size() > 1; }
  int rank() const { return communicator_ ? communicator_->rank() : 0; }
  int size() const { return communicator_ ? communicator_->size() : 1; }
  /// Into how many parts a batch is divided over the ranks, and which is this one's: see Note [Two ways at once].
  int batch_parts() const { return data_ ? data_->size() : 1; }
  int batch_part() const { return data_ ? data_->rank() : 0; }
  /// Null: layers are not divided.
  const SharedTensorParallel& tensor_parallel() const { return tensor_parallel_; }
  /// Of the threads that a kernel may use on a machine those of each rank there.
  int threads_of_each(int all) const;
  /// Whether this one writes what all of them come to.
  bool is_writer() const { return rank() == 0; }

  /// Calls `set_up` on every rank, which sends nothing. Where it fails on some, the first of them throws its error, and
  /// all others that one's: what is wrong for all is said once.
  void together(const std::function<void()>& set_up) const;
  /// `facts` of this rank's run, what came of its data and of a saved state, have to be those of all.
  /// Throws ConfigError on rank 0 that names what differs and who has what, on the others that one's words.
  void compare(const std::string& facts) const;
  /// Before the first step, once the models are found to be of the same form: parameters and buffers become those of
  /// rank 0, each rank gets random numbers of its own.
  void begin(const nn::Module& module);
  /// As distributed.shard says, after begin(): this rank has its part alone, on `device`.
  void shard(const nn::Module& module, optim::Optimizer& optimizer, Device device);
  /// Gradients are sent in buckets that hold a copy of each.
  bool has_buckets() const { return batch_parts() > 1 && !has_stages_ && !divides_gradients(); }
  /// Whether gradients are divided, and whether parameters are too.
  bool divides_gradients() const {
    return are_many() && (options_.text("shard") == "gradients" || divides_parameters());
  }
  bool divides_parameters() const { return are_many() && options_.text("shard") == "parameters"; }
  /// What a rank then holds of this module, before it is divided.
  distributed::ShardingBytes sharding_bytes(const nn::Module& module) const;
  /// Tensors of the sizes whose states this rank holds, of a module that is not divided yet.
  std::vector<Tensor> remembered(const nn::Module& module) const;
  bool is_sharded() const { return sharded_ != nullptr || shards_ != nullptr; }
  /// The update, where is_sharded().
  void step();
  /// After a test: what it gathered goes.
  void after_test() {
    if (sharding_) sharding_->give_back();
  }
  /// Where divides_gradients(): of the gradients of all ranks together.
  void clip_grad_norm(double norm) { sharding_->clip_grad_norm(norm); }
  /// `save` on rank 0, which has what all ranks remember meanwhile.
  void save_on_writer(const std::function<void()>& save);

  /// Before forward passes, in training and in a test: what batch norm remembers becomes that of rank 0.
  void share_buffers(const nn::Module& module);
  /// The backward pass from `loss` ends with gradients that are summed over the ranks, if it is the last of a step or
  /// gradients are divided: others then only add up.
  void before_backward(const Tensor& loss, bool is_last);
  /// After it. Throws Error where parameters were left without a gradient.
  void after_backward(bool is_last) const;

  /// Behind the last backward pass of a pipeline, whose passes send nothing: gradients are summed over the data ranks.
  void sum_gradients(const nn::Module& module) const;

  /// Of numbers that each rank has its part of, as the batch is divided; the same on every rank.
  double sum(double part) const;
  void sum(std::vector<double>& parts) const;
  /// Whether one of them says so.
  bool any(bool mine) const;
  /// Whether one of them ends the run here; of many, `all` becomes what each rank's memory came to.
  bool after_step(bool ends, const MemoryStats& mine, std::vector<RankMemory>& all) const;
  /// What the gradients' way took: figures of a result.
  void note_communication(std::vector<std::pair<std::string, double>>& figures) const;

  /// This rank cannot go on: the others are told why. See Note [Ranks end together] of communicator.h.
  void abort(const std::exception& reason) const noexcept;

 private:
  distributed::ShardingOptions sharding_options() const;

  const Options& options_;
  std::shared_ptr<Communicator> communicator_;
  SharedTensorParallel tensor_parallel_;
  std::shared_ptr<Communicator> data_;  ///< that have other parts of the batch and the same of the layers; null: none
  bool has_stages_ = false;
  std::unique_ptr<distributed::Reducer> reducer_;
  std::unique_ptr<optim::ZeroRedundancyOptimizer> sharded_;
  std::shared_ptr<distributed::Sharding> sharding_;
  std::unique_ptr<optim::ShardedOptimizer> shards_;
};

/// Whether the run goes on from its state file, as rank 0 has found it: the others may have looked at another moment.
/// Throws DistributedError.
RunState as_rank_0_says(RunState state);

/// Throws ConfigError for an experiment that several ranks cannot share.
void check_ranks(const ExperimentConfig& config);

}  // namespace tenon::train
