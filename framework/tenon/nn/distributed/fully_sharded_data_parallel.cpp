// A module around divided parameters.
#include <tenon/nn/distributed/fully_sharded_data_parallel.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/nn/distributed/collectives.h>
#include <tenon/nn/distributed/distributed_data_parallel.h>

#include <string>

namespace tenon::nn::parallel {
namespace {

/// The shard as a parameter of that path: in modules that stand for the module's own.
void register_shard(Module& in, const std::string& path, const Tensor& shard) {
  const std::size_t dot = path.find('.');
  if (dot == std::string::npos) {
    in.register_parameter(path, shard, shard.requires_grad());
    return;
  }
  const std::string name = path.substr(0, dot);
  const auto children = in.named_children();
  const auto& child = children.contains(name) ? children[name] : in.register_module(name, std::make_shared<Module>());
  register_shard(*child, path.substr(dot + 1), shard);
}

}  // namespace

FullyShardedDataParallelBase::FullyShardedDataParallelBase(std::shared_ptr<Module> module,
                                                           std::shared_ptr<Communicator> ranks,
                                                           const FullyShardedDataParallelOptions& options)
    : Module("FullyShardedDataParallel"), inner_(std::move(module)) {
  check_same_parameters(*inner_, *ranks);
  if (options.sync_module_states) {
    std::vector<Tensor> state = inner_->parameters();
    for (const Tensor& buffer : inner_->buffers()) state.push_back(buffer);
    distributed::broadcast_coalesced(*ranks, state, /*root=*/0);
  }
  sharding_ = std::make_shared<distributed::Sharding>(
      *inner_, std::move(ranks),
      distributed::ShardingOptions{.parameters = options.sharding_strategy == ShardingStrategy::FULL_SHARD,
                                   .prefetch = options.prefetch,
                                   .find_unused_parameters = options.find_unused_parameters,
                                   .policy = options.auto_wrap_policy});
  for (const auto& [path, shard] : sharding_->shards()) register_shard(*this, path, shard);
}

void FullyShardedDataParallelBase::train(bool on) {
  Module::train(on);
  inner_->train(on);
}

void FullyShardedDataParallelBase::synchronize(bool on) {
  is_synchronizing_ = on;
  sharding_->set_synchronizing(on);
}

void FullyShardedDataParallelBase::before_forward() { sharding_->check_finished(); }

void FullyShardedDataParallelBase::after_forward(const std::vector<Tensor>& outputs) {
  if (GradMode::is_enabled()) sharding_->prepare_for_backward(outputs);
}

void FullyShardedDataParallelBase::save_whole(const std::function<void(const Module&)>& save, int to) {
  sharding_->copy_to_host(to);
  if (sharding_->communicator()->rank() == to) save(*inner_);
  sharding_->forget_host_copy();
}

}  // namespace tenon::nn::parallel
