// Updates of own parameters, and those of the others from their owners.
#include <tenon/optim/zero_redundancy_optimizer.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/nn/distributed/collectives.h>
#include <tenon/optim/state_transfer.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

namespace tenon::optim {

std::vector<int> partition_parameters(const std::vector<Tensor>& parameters, int ranks) {
  std::vector<std::size_t> order(parameters.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return parameters[i].numel(); });
  std::vector<std::int64_t> load(static_cast<std::size_t>(ranks));
  std::vector<int> owners(parameters.size());
  for (const std::size_t i : order) {
    const auto least = std::ranges::min_element(load);
    owners[i] = static_cast<int>(least - load.begin());
    *least += parameters[i].numel();
  }
  return owners;
}

ZeroRedundancyOptimizer::ZeroRedundancyOptimizer(Optimizer& optimizer, std::shared_ptr<Communicator> ranks)
    : optimizer_(optimizer), ranks_(std::move(ranks)), rank_(ranks_->rank()) {
  for (const OptimizerParamGroup& group : optimizer_.param_groups())
    for (const Tensor& parameter : group.params())
      if (parameter.requires_grad()) parameters_.push_back(parameter);
  owners_ = partition_parameters(parameters_, ranks_->size());
  drop_consolidated();
}

int ZeroRedundancyOptimizer::owner_of(const Tensor& parameter) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].is_same(parameter)) return owners_[i];
  return -1;
}

void ZeroRedundancyOptimizer::step() {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (owners_[i] == rank_ && parameters_[i].grad().defined()) optimizer_.step_parameter(parameters_[i]);
  for (int owner = 0; owner < ranks_->size(); ++owner) {
    std::vector<Tensor> theirs;
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (owners_[i] == owner) theirs.push_back(parameters_[i]);
    distributed::broadcast_coalesced(*ranks_, theirs, owner);
  }
}

std::size_t ZeroRedundancyOptimizer::state_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [key, state] : optimizer_.state()) {
    if (!state) continue;
    for (const StateTensor& slot : state->tensors())
      if (slot.tensor->defined())
        bytes += static_cast<std::size_t>(slot.tensor->numel()) * size_of(slot.tensor->scalar_type());
  }
  return bytes;
}

void ZeroRedundancyOptimizer::consolidate_state_dict(int to) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const int owner = owners_[i];
    if (owner == to || (rank_ != owner && rank_ != to)) continue;
    const std::string key = state_key(parameters_[i]);
    if (rank_ == owner) {
      const auto found = optimizer_.state().find(key);
      send_state(*ranks_, found == optimizer_.state().end() ? nullptr : found->second.get(), to);
    } else if (auto state = receive_state(*ranks_, optimizer_, owner)) {
      optimizer_.state()[key] = std::move(state);
    }
  }
}

void ZeroRedundancyOptimizer::drop_consolidated() {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (owners_[i] != rank_) optimizer_.state().erase(state_key(parameters_[i]));
}

}  // namespace tenon::optim
