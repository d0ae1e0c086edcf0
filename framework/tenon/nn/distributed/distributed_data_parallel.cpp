// The ranks' modules made and kept equal.
#include <tenon/nn/distributed/distributed_data_parallel.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/nn/distributed/collectives.h>
#include <tenon/ops/ops.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::nn::parallel {

/// Buckets of different sizes would be reduced into nonsense, or hang: sizes are compared first.
void check_same_parameters(const Module& module, Communicator& ranks) {
  if (ranks.size() == 1) return;
  std::vector<std::int64_t> mine = {0, 0};
  for (const Tensor& parameter : module.parameters()) {
    ++mine[0];
    mine[1] = (mine[1] * 31 + parameter.numel() * 64 + static_cast<std::int64_t>(parameter.scalar_type()) * 2 +
               (parameter.requires_grad() ? 1 : 0)) %
              1'000'000'007;
  }
  std::vector<std::int64_t> all(2 * static_cast<std::size_t>(ranks.size()));
  ranks
      .all_gather({.data = all.data(), .count = all.size(), .dtype = kInt64},
                  {.data = mine.data(), .count = 2, .dtype = kInt64})
      ->wait();
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const std::size_t at = 2 * static_cast<std::size_t>(rank);
    if (all[at] == all[0] && all[at + 1] == all[1]) continue;
    throw DistributedError(
        fmt::format("rank {} of {}: the model of rank {} has {} parameters, that of rank 0 has {}{}: every rank makes "
                    "the same model",
                    ranks.rank(), ranks.size(), rank, all[at], all[0],
                    all[at] == all[0] ? ", of other sizes or dtypes" : ""),
        {rank});
  }
}

DistributedDataParallelBase::DistributedDataParallelBase(std::shared_ptr<Module> module,
                                                         std::shared_ptr<Communicator> ranks,
                                                         const DistributedDataParallelOptions& options)
    : Module("DistributedDataParallel"), inner_(std::move(module)), ranks_(std::move(ranks)), options_(options) {
  if (options_.bucket_cap_mb <= 0)
    throw Error(fmt::format("bucket_cap_mb is {}: it must be more than 0", options_.bucket_cap_mb));
  register_module("module", inner_);
  check_same_parameters(*inner_, *ranks_);
  if (options_.init_sync) {
    std::vector<Tensor> state = inner_->parameters();
    for (const Tensor& buffer : inner_->buffers()) state.push_back(buffer);
    distributed::broadcast_coalesced(*ranks_, state, /*root=*/0);
  }
  std::vector<std::pair<std::string, Tensor>> parameters;
  for (const auto& named : inner_->named_parameters()) parameters.emplace_back(named.key(), named.value());
  const auto cap = static_cast<std::size_t>(options_.bucket_cap_mb * (1 << 20));
  reducer_ = std::make_unique<distributed::Reducer>(
      std::move(parameters), ranks_,
      distributed::ReducerOptions{.bucket_bytes = cap,
                                  .first_bucket_bytes = std::min(cap, std::size_t{1} << 20),
                                  .find_unused_parameters = options_.find_unused_parameters,
                                  .gradient_as_bucket_view = options_.gradient_as_bucket_view});
}

void DistributedDataParallelBase::before_forward() {
  if (!is_synchronizing_ || !options_.broadcast_buffers || !is_training()) return;
  if (const std::vector<Tensor> buffers = inner_->buffers(); !buffers.empty())
    distributed::broadcast_coalesced(*ranks_, buffers, /*root=*/0);
}

void DistributedDataParallelBase::after_forward(const std::vector<Tensor>& outputs) {
  if (is_synchronizing_ && GradMode::is_enabled()) reducer_->prepare_for_backward(outputs);
}

}  // namespace tenon::nn::parallel
