// States cut into shards, and joined again.
#include <tenon/optim/sharded_optimizer.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/state_transfer.h>

#include <unordered_map>
#include <utility>
#include <vector>

namespace tenon::optim {

using distributed::FlatParameter;

ShardedOptimizer::ShardedOptimizer(Optimizer& optimizer, std::shared_ptr<distributed::Sharding> sharding)
    : optimizer_(optimizer), sharding_(std::move(sharding)) {
  if (optimizer_.state_storage().in_8_bits)
    throw Error(
        "states in 8 bits are kept by blocks of 256 values, which end where no shard does: keep them as they "
        "are where parameters are divided over ranks");
  std::unordered_map<const TensorImpl*, std::pair<const Member*, Device>> members;
  for (FlatParameter* const flat : sharding_->flats())
    for (const Member& member : flat->members())
      members.emplace(&member.parameter.impl(), std::pair{&member, member.shard.device()});
  for (OptimizerParamGroup& group : optimizer_.param_groups()) {
    for (Tensor& parameter : group.params()) {
      const auto found = members.find(&parameter.impl());
      if (found == members.end()) continue;  // a shard already, or none of the module's
      cut_state(*found->second.first, found->second.second);
      parameter = found->second.first->shard;
    }
  }
}

/// What was remembered of the whole parameter.
void ShardedOptimizer::cut_state(const Member& member, Device device) {
  auto node = optimizer_.state().extract(state_key(member.parameter));
  if (node.empty() || member.range.count == 0 || !node.mapped()) return;
  const NoGradGuard no_grad;
  const PurposeGuard purpose(Purpose::kOptimizerState);
  const bool stays = optimizer_.state_storage().on_host;
  for (const StateTensor& slot : node.mapped()->tensors()) {
    Tensor& values = *slot.tensor;
    if (!values.defined()) continue;
    const Tensor part = values.reshape({-1}).narrow(0, member.range.begin, member.range.count);
    values = stays || part.device() == device ? part.clone() : part.to(device, part.scalar_type());
  }
  node.key() = state_key(member.shard);
  optimizer_.state().insert(std::move(node));
}

void ShardedOptimizer::step() {
  optimizer_.step();
  sharding_->gather_updates();
}

/// On `to` what all ranks remember of the member, in their order; null elsewhere, and where nobody remembers anything.
std::unique_ptr<OptimizerParamState> ShardedOptimizer::whole_state(const FlatParameter& flat, const Member& member,
                                                                   int to) const {
  Communicator& ranks = *sharding_->communicator();
  std::vector<std::unique_ptr<OptimizerParamState>> parts;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const auto range = distributed::shard_range(member.start, member.parameter.numel(), flat.share(), rank);
    if (range.count == 0 || (ranks.rank() != rank && ranks.rank() != to)) continue;
    const auto found = optimizer_.state().find(state_key(member.shard));
    const OptimizerParamState* const own = found == optimizer_.state().end() ? nullptr : found->second.get();
    if (ranks.rank() != to) {
      send_state(ranks, own, to);
    } else if (rank != to) {
      parts.push_back(receive_state(ranks, optimizer_, rank));
    } else {
      parts.push_back(own == nullptr ? nullptr : own->clone());
    }
  }
  if (parts.empty() || parts.front() == nullptr) return nullptr;
  const NoGradGuard no_grad;
  const PurposeGuard purpose(Purpose::kOther);
  std::vector<StateTensor> slots = parts.front()->tensors();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i].tensor->defined()) continue;
    std::vector<Tensor> values;
    for (const auto& part : parts) values.push_back(part->tensors()[i].tensor->to(Device(kCPU)).reshape({-1}));
    *slots[i].tensor = tenon::cat(values).view(member.parameter.sizes());
  }
  return std::move(parts.front());
}

void ShardedOptimizer::consolidate_state_dict(int to) {
  Optimizer::StateMap whole;
  for (FlatParameter* const flat : sharding_->flats())
    for (const Member& member : flat->members())
      if (auto state = whole_state(*flat, member, to)) whole[state_key(member.shard)] = std::move(state);
  if (sharding_->communicator()->rank() != to) return;
  own_ = std::exchange(optimizer_.state(), std::move(whole));
  is_consolidated_ = true;
}

void ShardedOptimizer::drop_consolidated() {
  if (!std::exchange(is_consolidated_, false)) return;
  optimizer_.state() = std::exchange(own_, {});
}

}  // namespace tenon::optim
