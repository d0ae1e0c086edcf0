// Parts put together and cut again.
#include <tenon/train/parallel/whole_state.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/distributed/collectives.h>
#include <tenon/ops/ops.h>

#include <cstdint>

namespace tenon::train {
namespace {

std::vector<std::int64_t> whole_sizes(const TensorParallel& ranks, const TensorPart& part) {
  std::vector<std::int64_t> sizes = part.parameter.sizes().vec();
  sizes[static_cast<std::size_t>(part.dim)] *= ranks.size();
  return sizes;
}

/// Of the whole's first dim, which is `sections` parts behind each other, or of its second one.
Tensor joined(const Tensor& of_ranks, const TensorPart& part, const std::vector<std::int64_t>& sizes) {
  if (part.dim == 1) return of_ranks.permute({1, 0, 2}).reshape(sizes);
  std::vector<std::int64_t> divided = {of_ranks.size(0), part.sections, of_ranks.size(1) / part.sections};
  for (std::int64_t dim = 2; dim < of_ranks.dim(); ++dim) divided.push_back(of_ranks.size(dim));
  return of_ranks.view(divided).transpose(0, 1).reshape(sizes);
}

Tensor whole_of(const TensorParallel& ranks, const TensorPart& part, const Tensor& own) {
  const Tensor mine = own.detach().contiguous();
  std::vector<std::int64_t> sizes = mine.sizes().vec();
  sizes.insert(sizes.begin(), ranks.size());
  const Tensor all = mine.new_empty(sizes);
  distributed::all_gather_into_tensor(*ranks.ranks(), all, mine)->wait();
  return joined(all, part, whole_sizes(ranks, part));
}

Tensor part_of(const TensorParallel& ranks, const TensorPart& part, const Tensor& whole) {
  const std::int64_t rank = ranks.ranks()->rank(), size = whole.size(part.dim) / ranks.size();
  if (part.dim == 1) return whole.detach().narrow(1, rank * size, size).clone(MemoryFormat::Contiguous);
  std::vector<std::int64_t> divided = {part.sections, ranks.size(), size / part.sections}, own = whole.sizes().vec();
  for (std::int64_t dim = 1; dim < whole.dim(); ++dim) divided.push_back(whole.size(dim));
  own[0] = size;
  return whole.detach().view(divided).select(1, rank).reshape(own).clone(MemoryFormat::Contiguous);
}

/// What the optimiser has of a parameter.
const Tensor& optimised_of(const DividedRun& run, const Tensor& parameter) {
  for (std::size_t i = 0; i < run.trained.size(); ++i)
    if (run.trained[i].is_same(parameter)) return run.optimised[i];
  return parameter;
}

/// The tensors that the optimiser remembers of it.
std::vector<Tensor*> states_of(const DividedRun& run, const Tensor& parameter) {
  std::vector<Tensor*> tensors;
  const auto found = run.optimizer.state().find(optim::state_key(optimised_of(run, parameter)));
  if (found == run.optimizer.state().end() || !found->second) return tensors;
  for (const optim::StateTensor& slot : found->second->tensors())
    if (slot.tensor->defined()) tensors.push_back(slot.tensor);
  return tensors;
}

/// The parameter, and its master where that is another tensor.
std::vector<Tensor> values_of(const DividedRun& run, const Tensor& parameter) {
  const Tensor& master = optimised_of(run, parameter);
  return master.is_same(parameter) ? std::vector<Tensor>{parameter} : std::vector<Tensor>{parameter, master};
}

/// Shows `parameter` with other values for a while. Unlike set_data() it keeps the node that gradients arrive at, and
/// with it the hooks of those who reduce them.
void lend(const Tensor& parameter, const Tensor& values) {
  const TensorImpl& from = values.impl();
  parameter.impl().set_storage(from.storage_ptr(), from.dtype());
  parameter.impl().set_strided(from.sizes(), from.strides(), from.offset());
}

}  // namespace

WholeState::WholeState(const DividedRun& run) {
  const NoGradGuard no_grad;
  const bool is_writer = run.ranks.ranks()->rank() == 0;
  for (const TensorPart& part : run.ranks.parts()) {
    // A state has its parameter's sizes, so they are gathered before these change.
    for (Tensor* const state : states_of(run, part.parameter)) {
      PurposeGuard purpose(Purpose::kOptimizerState);
      const Tensor whole = whole_of(run.ranks, part, *state);
      if (!is_writer) continue;
      states_.emplace_back(state, *state);
      *state = whole.to(kCPU, whole.scalar_type());
    }
    PurposeGuard purpose(Purpose::kParameter);
    std::vector<Tensor> wholes;
    const std::vector<Tensor> values = values_of(run, part.parameter);
    for (const Tensor& value : values) wholes.push_back(whole_of(run.ranks, part, value));
    for (std::size_t i = 0; is_writer && i < values.size(); ++i) {
      parameters_.emplace_back(values[i], values[i].detach());
      lend(values[i], wholes[i].to(kCPU, wholes[i].scalar_type()));
    }
  }
}

WholeState::~WholeState() {
  for (auto& [parameter, part] : parameters_) lend(parameter, part);
  for (auto& [state, part] : states_) *state = part;
}

void make_room_for_whole(const DividedRun& run) {
  const NoGradGuard no_grad;
  PurposeGuard purpose(Purpose::kParameter);
  for (const TensorPart& part : run.ranks.parts()) {
    const std::vector<std::int64_t> sizes = whole_sizes(run.ranks, part);
    for (const Tensor& value : values_of(run, part.parameter)) Tensor(value).set_data(value.detach().new_empty(sizes));
  }
}

void keep_parts(const DividedRun& run) {
  const NoGradGuard no_grad;
  for (const TensorPart& part : run.ranks.parts()) {
    for (Tensor* const state : states_of(run, part.parameter)) {
      PurposeGuard purpose(Purpose::kOptimizerState);
      *state = part_of(run.ranks, part, *state);
    }
    PurposeGuard purpose(Purpose::kParameter);
    for (const Tensor& value : values_of(run, part.parameter)) Tensor(value).set_data(part_of(run.ranks, part, value));
  }
}

}  // namespace tenon::train
