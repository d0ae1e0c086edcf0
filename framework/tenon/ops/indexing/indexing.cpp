// Indexing by tensors: positions or masks, one per dimension, with the results' dimensions placed as in NumPy.
#include <tenon/kernel/attributes/indexing.h>
#include <tenon/kernel/attributes/reduction.h>
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/indexing/indexing.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/values.h>
#include <tenon/tensor/libtorch/warning.h>

#include <algorithm>

namespace tenon {

using namespace ops;
using Indices = std::vector<std::optional<Tensor>>;

namespace {

[[noreturn]] void too_many(const Tensor& self, std::size_t given) {
  throw IndexError("too many indices for tensor of dimension " + std::to_string(self.dim()) + " (got " +
                   std::to_string(given) + ")");
}

/// What is indexed, and by what: a position for each of its leading dimensions, or nothing.
struct Expanded {
  Tensor self;
  Indices indices;
};

/// Masks become positions; other indices become int64 on self's device. For a mask of no dimension self gets a
/// dimension of size 1, of which the mask takes its one position or none.
Expanded expanded(const Tensor& given, const Indices& indices) {
  if (static_cast<std::int64_t>(indices.size()) > given.dim()) too_many(given, indices.size());
  Tensor self = given;
  Indices result;
  for (const std::optional<Tensor>& index : indices) {
    if (!index || !index->defined()) {
      result.emplace_back();
      continue;
    }
    const Dtype dtype = index->scalar_type();
    if (dtype == kBool || dtype == kUInt8) {
      if (dtype == kUInt8) {
        TENON_WARN("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.");
      }
      for (std::int64_t i = 0; i < index->dim(); ++i) {
        const std::int64_t at = static_cast<std::int64_t>(result.size()) + i;
        if (at >= self.dim() || index->size(i) != self.size(at)) {
          throw IndexError("The shape of the mask " + to_string(index->sizes()) + " at index " + std::to_string(i) +
                           " does not match the shape of the indexed tensor " + to_string(self.sizes()) + " at index " +
                           std::to_string(at));
        }
      }
      check_has_values("index", *index, "how many elements a mask takes");
      if (index->dim() == 0) self = self.unsqueeze(static_cast<std::int64_t>(result.size()));
      const Tensor places = (index->dim() == 0 ? index->reshape({1}) : *index).nonzero();
      for (std::int64_t i = 0; i < places.size(1); ++i) result.emplace_back(places.select(1, i));
    } else if (dtype == kInt64 || dtype == kInt32) {
      result.emplace_back(index->to(kInt64).to(TensorOptions(self.device())));
    } else {
      throw IndexError("tensors used as indices must be long, int, byte or bool tensors");
    }
  }
  if (static_cast<std::int64_t>(result.size()) > self.dim()) too_many(given, result.size());
  return {self, result};
}

/// How an advanced index is laid out: self with the indexed dimensions first, and where the index dimensions go in the
/// result.
struct Plan {
  Tensor self;
  std::vector<Tensor> indices;  ///< broadcast to one shape
  Dims index_sizes;
  std::vector<std::int64_t> order;  ///< self's dimensions: indexed ones, then the others
  std::int64_t front = 0;           ///< where the index dimensions stand in the result
  IndexAttributes attributes;
};

Plan plan(const Tensor& given_self, const Indices& given) {
  NoGradGuard no_grad;
  const auto [self, indices] = expanded(given_self, given);
  Plan plan;
  plan.self = self;
  std::vector<std::int64_t> indexed;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i]) continue;
    try {
      plan.index_sizes =
          indexed.empty() ? indices[i]->impl().sizes() : broadcast_sizes(plan.index_sizes, indices[i]->impl().sizes());
    } catch (const Error&) {
      std::string all;
      for (const auto& index : indices) {
        if (index) all += (all.empty() ? "" : ", ") + to_string(index->sizes());
      }
      throw IndexError("shape mismatch: indexing tensors could not be broadcast together with shapes " + all);
    }
    plan.attributes.dims[indexed.size()] = static_cast<std::int32_t>(i);
    indexed.push_back(static_cast<std::int64_t>(i));
    plan.indices.push_back(*indices[i]);
  }
  bool adjacent = true;
  for (std::size_t i = 1; i < indexed.size(); ++i) adjacent = adjacent && indexed[i] == indexed[i - 1] + 1;
  plan.order = indexed;
  std::int64_t rank = self.dim();
  for (std::int64_t i = 0; i < rank; ++i) {
    if (std::find(indexed.begin(), indexed.end(), i) == indexed.end()) plan.order.push_back(i);
  }
  plan.front = adjacent && !indexed.empty() ? indexed[0] : 0;
  for (Tensor& index : plan.indices) index = index.expand(plan.index_sizes);
  return plan;
}

/// The result's dimensions as the kernel sees them (index dimensions first), from where they stand.
Dims kernel_order(const Plan& plan, int rest) {
  const int count = plan.index_sizes.rank();
  Dims order;
  for (int i = 0; i < count; ++i) order.push_back(plan.front + i);
  for (int i = 0; i < rest; ++i) order.push_back(i < plan.front ? i : i + count);
  return order;
}

void run_indexed(OperatorId op, const Tensor& target, const Tensor& source, const Plan& plan,
                 const IndexAttributes& attributes) {
  std::vector<TensorView> inputs{view_of(source)};
  for (const Tensor& index : plan.indices) inputs.push_back(view_of(index));
  const TensorView output = view_of(target);
  call_kernel(op, ops::state_of(target), {&output, 1}, inputs, &attributes);
}

/// The tensors among the indices in a node's slots: a write to one of them before backward is then refused, hooks see
/// them, and they go with what else is saved.
class SavedIndices {
 public:
  explicit SavedIndices(const Indices& indices) : size_(indices.size()) {
    for (std::size_t i = 0; i < size_; ++i) {
      if (indices[i] && indices[i]->defined()) given_ |= 1U << i;
    }
  }
  void save(Recording& recording, const Indices& indices) const {
    std::size_t slot = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      if (is_given(i)) recording.save(slot++, *indices[i]);
    }
  }
  Indices in(const Backward& b) const {
    Indices indices(size_);
    std::size_t slot = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      if (is_given(i)) indices[i] = b.saved(slot++);
    }
    return indices;
  }

 private:
  bool is_given(std::size_t i) const { return (given_ >> i & 1U) != 0; }

  std::size_t size_;  ///< at most kMaxRank
  std::uint32_t given_ = 0;
};

/// record() with the indices saved: `formula` gets them behind the Backward.
template <class Formula>
Recording record_indexed(const char* name, std::initializer_list<const Tensor*> inputs, const Indices& indices,
                         const Formula& formula) {
  if (!must_record(inputs)) return {};
  const SavedIndices saved(indices);
  const auto with_indices = [formula, saved](Backward& b) { formula(b, saved); };
  Recording recording = indices.size() <= 2 ? record<2>(name, inputs, with_indices)  // nearly always
                                            : record<std::size_t{kMaxRank}>(name, inputs, with_indices);
  saved.save(recording, indices);
  return recording;
}

void check_not_empty(const Plan& plan) {
  if (plan.index_sizes.product() == 0) return;
  for (std::size_t i = 0; i < plan.indices.size(); ++i) {
    const std::int64_t dim = plan.attributes.dims[i];
    if (plan.self.size(dim) == 0)
      throw IndexError("index is out of bounds for dimension with size 0 (dimension " + std::to_string(dim) + ")");
  }
}

/// Whether a mask among the indices has no values, so that what a write to them reaches is unknown.
bool is_unknown(const Indices& indices) {
  return std::any_of(indices.begin(), indices.end(), [](const std::optional<Tensor>& index) {
    return index && index->defined() && !has_values(*index) &&
           (index->scalar_type() == kBool || index->scalar_type() == kUInt8);
  });
}

void put_raw(const Tensor& values, const Plan& plan, bool accumulate) {
  NoGradGuard no_grad;
  check_not_empty(plan);
  const Tensor target = plan.self.permute(plan.order);
  const int rest = target.impl().rank() - static_cast<int>(plan.indices.size());
  Dims sizes;  // of the result, as the user sees it
  Dims rest_sizes;
  for (int i = 0; i < rest; ++i) rest_sizes.push_back(target.size(static_cast<std::int64_t>(plan.indices.size()) + i));
  for (int i = 0; i < plan.front; ++i) sizes.push_back(rest_sizes[i]);
  for (const std::int64_t size : plan.index_sizes) sizes.push_back(size);
  for (int i = static_cast<int>(plan.front); i < rest; ++i) sizes.push_back(rest_sizes[i]);
  Tensor source = values.to(plan.self.scalar_type());
  // Leading ones beyond the rank are dropped.
  while (source.impl().rank() > sizes.rank() && source.size(0) == 1) source = source.squeeze(0);
  if (!is_expandable_to(source.impl().sizes(), sizes)) {
    throw Error("shape mismatch: value tensor of shape " + to_string(values.sizes()) +
                " cannot be broadcast to indexing result of shape " + to_string(sizes));
  }
  source = source.expand(sizes);
  if (source.is_alias_of(plan.self)) source = source.clone();
  if (plan.indices.empty()) {  // nothing names a part: everything is written
    accumulate ? target.add_(source) : target.copy_(source);
    return;
  }
  source = source.permute(kernel_order(plan, rest));
  IndexAttributes attributes = plan.attributes;
  attributes.accumulate = accumulate;
  if (sizes.product() == 0) return;
  run_indexed(TENON_OP("index_put"), target, source, plan, attributes);
}

/// Strides of what index() returns: what is left of self decides first, then the first index, as in PyTorch, where
/// both are operands of one loop. `source` is self in the plan's order, `order` the kernel's order of `sizes`.
Dims indexed_strides(const Plan& plan, const Tensor& source, const Dims& order, const Dims& sizes) {
  const int count = static_cast<int>(plan.indices.size());
  const int places = plan.index_sizes.rank();
  Dims of_self = Dims::filled(sizes.rank(), 0), of_index = Dims::filled(sizes.rank(), 0);
  for (int i = 0; i < sizes.rank(); ++i) {
    const int at = static_cast<int>(order[i]);
    if (i < places) {
      of_index[at] = plan.indices[0].stride(i);
    } else {
      of_self[at] = source.stride(count + i - places);
    }
  }
  return result_strides(sizes, {{sizes, of_self}, {sizes, of_index}});
}

}  // namespace

Tensor index(const Tensor& self, const Indices& indices) {
  TENON_SCOPE(index, self, indices)
  if (std::none_of(indices.begin(), indices.end(), [](const auto& index) { return index && index->defined(); }))
    return self.numel() == 0 ? self.clone(MemoryFormat::Contiguous) : self.alias();
  const Plan plan = tenon::plan(self, indices);
  check_not_empty(plan);
  const Dims whole = self.impl().sizes();
  Recording recording =
      record_indexed("IndexBackward0", {&self}, indices, [whole](Backward& b, const SavedIndices& saved) {
        b.set(0, b.grad().new_zeros(whole).index_put(saved.in(b), b.grad(), true));
      });
  Tensor result;
  {
    NoGradGuard no_grad;
    const Tensor source = plan.self.permute(plan.order);
    const int rest = source.impl().rank() - static_cast<int>(plan.indices.size());
    Dims sizes = plan.index_sizes;
    for (int i = 0; i < rest; ++i) sizes.push_back(source.size(static_cast<std::int64_t>(plan.indices.size()) + i));
    const Dims order = kernel_order(plan, rest);
    Dims visible;
    visible.resize(sizes.rank());
    for (int i = 0; i < sizes.rank(); ++i) visible[static_cast<int>(order[i])] = sizes[i];
    const Dims strides = indexed_strides(plan, source, order, visible);
    result = allocate_strided(ops::state_of(self), visible, strides, self.scalar_type());
    const Tensor target = result.permute(order);
    if (sizes.product() > 0) run_indexed(TENON_OP("index"), target, source, plan, plan.attributes);
  }
  recording.output(result);
  return result;
}

Tensor& index_put_(Tensor& self, const Indices& indices, const Tensor& values, bool accumulate) {
  return self.index_put_(indices, values, accumulate);
}

Tensor& Tensor::index_put_(const Indices& indices, const Tensor& values, bool accumulate) const {
  TENON_SCOPE(index_put_, *this, indices, values, accumulate)
  autograd::check_inplace(*this, autograd::requires_grad(values));
  check_written(*this);
  if (values.scalar_type() != scalar_type()) {
    throw Error(std::string("Index put requires the source and destination dtypes match, got ") +
                tenon::toString(scalar_type()) + " for the destination and " + tenon::toString(values.scalar_type()) +
                " for the source.");
  }
  if (values.dim() > 0) check_same_device("index_put_", {this, &values});
  const Dims value_sizes = values.impl().sizes();
  if (static_cast<std::int64_t>(indices.size()) > dim()) too_many(*this, indices.size());
  Recording recording = record_indexed(
      "IndexPutBackward0", {this, &values}, indices, [value_sizes, accumulate](Backward& b, const SavedIndices& saved) {
        if (b.needs(0))
          b.set(0, accumulate ? b.grad() : b.grad().index_put(saved.in(b), b.grad().new_zeros({}), false));
        if (b.needs(1)) {
          Tensor gradient = b.grad().index(saved.in(b));
          // Leading dimensions of size 1 that the write dropped come back.
          if (value_sizes.rank() > gradient.impl().rank()) {
            Dims inner;
            for (int i = value_sizes.rank() - gradient.impl().rank(); i < value_sizes.rank(); ++i)
              inner.push_back(value_sizes[i]);
            gradient = gradient.sum_to_size(inner).reshape(value_sizes);
          }
          b.set(1, gradient);
        }
      });
  if (has_values(*this) || !is_unknown(indices)) {
    const Plan plan = tenon::plan(*this, indices);
    put_raw(values.device() == device() ? values : values.to(TensorOptions(device())), plan, accumulate);
  }
  finish_inplace(*this, recording);
  return const_cast<Tensor&>(*this);
}
Tensor Tensor::index_put(const Indices& indices, const Tensor& values, bool accumulate) const {
  TENON_AUTOCAST_METHOD(index_put, *this, indices, values, accumulate)
  return clone(MemoryFormat::Preserve).index_put_(indices, values, accumulate);
}
Tensor Tensor::index(const Indices& indices) const { return tenon::index(*this, indices); }

Tensor Tensor::nonzero() const {
  TENON_SCOPE(nonzero, *this)
  NoGradGuard no_grad;
  check_has_values("nonzero", *this);
  Tensor count = allocate_like(*this, Dims{}, Dtype::kInt64);
  run(TENON_OP("count_nonzero_all"), ops::state_of(*this), {view_of(count)}, {view_of(*this)});
  Tensor result = allocate_like(*this, Dims{count.item<std::int64_t>(), dim()}, Dtype::kInt64);
  run(TENON_OP("nonzero"), ops::state_of(*this), {view_of(result)}, {view_of(*this)});
  return result;
}
Tensor Tensor::masked_select(const Tensor& mask) const {
  TENON_SCOPE(masked_select, *this, mask)
  if (mask.scalar_type() != kBool && mask.scalar_type() != kUInt8)
    throw Error("masked_select: expected BoolTensor or ByteTensor for mask");
  check_has_values("masked_select", mask);
  const Dims sizes = broadcast_sizes(impl().sizes(), mask.impl().sizes());
  if (sizes.rank() == 0) return reshape({1}).masked_select(mask);
  return expand(sizes).index(Indices{mask.to(kBool).expand(sizes)});
}
Tensor Tensor::take(const Tensor& index) const {
  TENON_SCOPE(take, *this, index)
  return reshape({-1}).index(Indices{index.contiguous()});
}

}  // namespace tenon
