// Indexing. Basic indices are views; tensors among them gather, with their results' dimensions placed as in NumPy.
#include <tenon/kernel/attributes/indexing.h>
#include <tenon/kernel/attributes/reduction.h>
#include <tenon/ops/factory.h>
#include <tenon/ops/fresh.h>
#include <tenon/ops/indexing.h>
#include <tenon/ops/support.h>
#include <tenon/ops/view.h>
#include <tenon/tensor/warning.h>

#include <algorithm>

namespace tenon {

using namespace ops;
using indexing::TensorIndex;
using Indices = std::vector<std::optional<Tensor>>;

namespace {

void check_index_dtype(const Tensor& index, const char* op) {
  if (index.scalar_type() != kInt64 && index.scalar_type() != kInt32) {
    throw Error(std::string(op) + "(): Expected dtype int32/int64 for index, got " + toString(index.scalar_type()));
  }
}

/// Masks become positions; the rest is int64 on self's device.
Indices expanded(const Tensor& self, const Indices& indices) {
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
                           " does not match the shape of the indexed tensor " + to_string(self.sizes()) + " at index " + std::to_string(at));
        }
      }
      const Tensor places = index->nonzero();
      for (std::int64_t i = 0; i < index->dim(); ++i) result.emplace_back(places.select(1, i));
    } else if (dtype == kInt64 || dtype == kInt32) {
      result.emplace_back(index->to(kInt64).to(TensorOptions(self.device())));
    } else {
      throw IndexError("tensors used as indices must be long, byte or bool tensors");
    }
  }
  if (static_cast<std::int64_t>(result.size()) > self.dim()) {
    throw IndexError("too many indices for tensor of dimension " + std::to_string(self.dim()) + " (got " + std::to_string(result.size()) + ")");
  }
  return result;
}

/// How an advanced index is laid out: self with the indexed dimensions first, and where the index dimensions go in the result.
struct Plan {
  std::vector<Tensor> indices;   ///< broadcast to one shape
  Dims index_sizes;
  std::vector<std::int64_t> order;  ///< self's dimensions: indexed ones, then the others
  std::int64_t front = 0;           ///< where the index dimensions stand in the result
  IndexAttributes attributes;
};

Plan plan(const Tensor& self, const Indices& given) {
  const Indices indices = expanded(self, given);
  Plan plan;
  std::vector<std::int64_t> indexed;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i]) continue;
    try {
      plan.index_sizes = indexed.empty() ? indices[i]->impl().sizes() : broadcast_sizes(plan.index_sizes, indices[i]->impl().sizes());
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

void run_indexed(OperatorId op, const Tensor& target, const Tensor& source, const Plan& plan, const IndexAttributes& attributes) {
  std::vector<TensorView> inputs{view_of(source)};
  for (const Tensor& index : plan.indices) inputs.push_back(view_of(index));
  const TensorView output = view_of(target);
  call_kernel(op, ops::state_of(target), {&output, 1}, inputs, &attributes);
}

void check_not_empty(const Tensor& self, const Plan& plan) {
  if (plan.index_sizes.product() == 0) return;
  for (std::size_t i = 0; i < plan.indices.size(); ++i) {
    const std::int64_t dim = plan.attributes.dims[i];
    if (self.size(dim) == 0) throw IndexError("index is out of bounds for dimension with size 0 (dimension " + std::to_string(dim) + ")");
  }
}

void put_raw(const Tensor& self, const Tensor& values, const Plan& plan, bool accumulate) {
  NoGradGuard no_grad;
  check_not_empty(self, plan);
  const Tensor target = self.permute(plan.order);
  const int rest = target.impl().rank() - static_cast<int>(plan.indices.size());
  Dims sizes;  // of the result, as the user sees it
  Dims rest_sizes;
  for (int i = 0; i < rest; ++i) rest_sizes.push_back(target.size(static_cast<std::int64_t>(plan.indices.size()) + i));
  for (int i = 0; i < plan.front; ++i) sizes.push_back(rest_sizes[i]);
  for (const std::int64_t size : plan.index_sizes) sizes.push_back(size);
  for (int i = static_cast<int>(plan.front); i < rest; ++i) sizes.push_back(rest_sizes[i]);
  Tensor source = values.to(self.scalar_type());
  // Leading ones beyond the rank are dropped.
  while (source.impl().rank() > sizes.rank() && source.size(0) == 1) source = source.squeeze(0);
  if (!is_expandable_to(source.impl().sizes(), sizes)) {
    throw Error("shape mismatch: value tensor of shape " + to_string(values.sizes()) +
                " cannot be broadcast to indexing result of shape " + to_string(sizes));
  }
  source = source.expand(sizes);
  if (source.is_alias_of(self)) source = source.clone();
  source = source.permute(kernel_order(plan, rest));
  IndexAttributes attributes = plan.attributes;
  attributes.accumulate = accumulate;
  if (sizes.product() == 0) return;
  run_indexed(TENON_OP("index_put"), target, source, plan, attributes);
}

}  // namespace

Tensor index(const Tensor& self, const Indices& indices) {
  if (std::none_of(indices.begin(), indices.end(), [](const auto& index) { return index && index->defined(); })) return self.alias();
  const Plan plan = tenon::plan(self, indices);
  check_not_empty(self, plan);
  const Dims whole = self.impl().sizes();
  Recording recording = record<0>("IndexBackward0", {&self}, [whole, indices](Backward& b) {
    b.set(0, b.grad().new_zeros(whole).index_put(indices, b.grad(), true));
  });
  Tensor result;
  {
    NoGradGuard no_grad;
    const Tensor source = self.permute(plan.order);
    const int rest = source.impl().rank() - static_cast<int>(plan.indices.size());
    Dims sizes = plan.index_sizes;
    for (int i = 0; i < rest; ++i) sizes.push_back(source.size(static_cast<std::int64_t>(plan.indices.size()) + i));
    const Dims order = kernel_order(plan, rest);
    Dims visible;
    visible.resize(sizes.rank());
    for (int i = 0; i < sizes.rank(); ++i) visible[static_cast<int>(order[i])] = sizes[i];
    result = allocate_like(self, visible, self.scalar_type());
    const Tensor target = result.permute(order);
    if (sizes.product() > 0) run_indexed(TENON_OP("index"), target, source, plan, plan.attributes);
  }
  recording.output(result);
  return result;
}

Tensor& index_put_(Tensor& self, const Indices& indices, const Tensor& values, bool accumulate) { return self.index_put_(indices, values, accumulate); }

Tensor& Tensor::index_put_(const Indices& indices, const Tensor& values, bool accumulate) const {
  autograd::check_inplace(*this, autograd::requires_grad(values));
  check_written(*this);
  if (values.scalar_type() != scalar_type()) {
    throw IndexError(std::string("Index put requires the source and destination dtypes match, got ") + tenon::toString(scalar_type()) +
                " for the destination and " + tenon::toString(values.scalar_type()) + " for the source.");
  }
  if (values.dim() > 0) check_same_device("index_put_", {this, &values});
  const Dims value_sizes = values.impl().sizes();
  Recording recording = record<0>("IndexPutBackward0", {this, &values}, [indices, value_sizes, accumulate](Backward& b) {
    if (b.needs(0)) b.set(0, accumulate ? b.grad() : b.grad().index_put(indices, b.grad().new_zeros({}), false));
    if (b.needs(1)) {
      Tensor gradient = b.grad().index(indices);
      // Leading dimensions of size 1 that the write dropped come back.
      if (value_sizes.rank() > gradient.impl().rank()) {
        Dims inner;
        for (int i = value_sizes.rank() - gradient.impl().rank(); i < value_sizes.rank(); ++i) inner.push_back(value_sizes[i]);
        gradient = gradient.sum_to_size(inner).reshape(value_sizes);
      }
      b.set(1, gradient);
    }
  });
  const Plan plan = tenon::plan(*this, indices);
  put_raw(*this, values.device() == device() ? values : values.to(TensorOptions(device())), plan, accumulate);
  finish_inplace(*this, recording);
  return const_cast<Tensor&>(*this);
}
Tensor Tensor::index_put(const Indices& indices, const Tensor& values, bool accumulate) const {
  return clone(MemoryFormat::Preserve).index_put_(indices, values, accumulate);
}
Tensor Tensor::index(const Indices& indices) const { return tenon::index(*this, indices); }

// --- x.index({…}) -----------------------------------------------------------------------------------------------------------

namespace {

std::int64_t consumed(ArrayRef<TensorIndex> indices) {
  std::int64_t count = 0;
  for (const TensorIndex& index : indices) {
    if (index.is_tensor()) {
      const Dtype dtype = index.tensor().scalar_type();
      count += dtype == kBool || dtype == kUInt8 ? index.tensor().dim() : 1;
    } else if (index.is_integer() || index.is_slice()) {
      ++count;
    }
  }
  return count;
}

/// Applies what is a view, collects what is not.
Tensor apply_basic(const Tensor& self, ArrayRef<TensorIndex> given, Indices& advanced) {
  Tensor result = self;
  std::int64_t dim = 0;
  const std::int64_t named = consumed(given);
  // x.index({i, tensor}): numbers become tensors only where tensors stand beside them; PyTorch selects, and so do we.
  const auto set = [&](Tensor index) {
    advanced.resize(static_cast<std::size_t>(std::max<std::int64_t>(dim + 1, static_cast<std::int64_t>(advanced.size()))));
    advanced[static_cast<std::size_t>(dim)] = std::move(index);
    ++dim;
  };
  std::int64_t named_at = -1;  // the position among the indices given is what an error names, as in PyTorch
  for (const TensorIndex& index : given) {
    ++named_at;
    if (index.is_none()) {
      result = result.unsqueeze(dim++);
    } else if (index.is_ellipsis()) {
      dim += self.dim() - named;
    } else if (index.is_slice()) {
      const indexing::Slice& slice = index.slice();
      if (slice.step() < 0) throw Error("step must be greater than zero");
      if (dim >= result.dim()) throw IndexError("too many indices for tensor of dimension " + std::to_string(self.dim()));
      if (slice.start() == 0 && slice.stop() >= result.size(dim) && slice.step() == 1) {
        ++dim;
        continue;
      }
      result = result.slice(dim++, slice.start(), slice.stop() == indexing::INDEX_MAX ? std::optional<std::int64_t>() : slice.stop(), slice.step());
    } else if (index.is_integer()) {
      if (self.dim() == 0) {
        throw IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number");
      }
      if (dim >= result.dim()) throw IndexError("too many indices for tensor of dimension " + std::to_string(self.dim()));
      const std::int64_t length = result.size(dim);
      if (index.integer() < -length || index.integer() >= length) {
        throw IndexError("index " + std::to_string(index.integer()) + " is out of bounds for dimension " + std::to_string(named_at) +
                         " with size " + std::to_string(length));
      }
      result = result.select(dim, index.integer());
    } else if (index.is_boolean()) {
      result = result.unsqueeze(dim);
      set(index.boolean() ? tenon::zeros({1}, TensorOptions(kInt64).device(self.device())) : tenon::empty({0}, TensorOptions(kInt64).device(self.device())));
    } else {
      const Tensor& tensor = index.tensor();
      const Dtype dtype = tensor.scalar_type();
      if (tensor.dim() == 0 && is_integral(dtype, true)) {
        if (dtype != kUInt8 && dtype != kBool) {
          const std::int64_t position = tensor.item<std::int64_t>();
          if (self.dim() == 0) throw IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number");
          if (dim >= result.dim()) throw IndexError("too many indices for tensor of dimension " + std::to_string(self.dim()));
          const std::int64_t length = result.size(dim);
          if (position < -length || position >= length) {
            throw IndexError("index " + std::to_string(position) + " is out of bounds for dimension " + std::to_string(named_at) + " with size " + std::to_string(length));
          }
          result = result.select(dim, position);
        } else {
          result = result.unsqueeze(dim);
          set(tensor.item<bool>() ? tenon::zeros({1}, TensorOptions(kInt64).device(self.device())) : tenon::empty({0}, TensorOptions(kInt64).device(self.device())));
        }
        continue;
      }
      if (dtype == kBool || dtype == kUInt8) {
        // A mask takes as many dimensions as it has.
        const std::int64_t width = tensor.dim();
        set(tensor);
        // The expansion inserts the others; later indices are counted from behind the mask's dimensions in `result`,
        // but only one entry stands for them in `advanced`.
        dim += width - 1;
        while (static_cast<std::int64_t>(advanced.size()) < dim) advanced.emplace_back(Tensor());
        continue;
      }
      set(tensor);
    }
  }
  return result;
}

/// Whether the indices are one mask and nothing else.
bool named_once_by_mask(const Indices& indices) {
  int masks = 0;
  for (const std::optional<Tensor>& index : indices) {
    if (!index || !index->defined()) continue;
    if (index->scalar_type() != kBool && index->scalar_type() != kUInt8) return false;
    ++masks;
  }
  return masks == 1;
}

/// Entries that pad a wide mask are dropped: expanded() makes the mask's own columns.
Indices without_padding(const Indices& advanced) {
  Indices result;
  for (std::size_t i = 0; i < advanced.size(); ++i) {
    result.push_back(advanced[i]);
    if (advanced[i] && advanced[i]->defined()) {
      const Dtype dtype = advanced[i]->scalar_type();
      if (dtype == kBool || dtype == kUInt8) i += static_cast<std::size_t>(std::max<std::int64_t>(advanced[i]->dim() - 1, 0));
    }
  }
  return result;
}

bool any_tensor(const Indices& indices) {
  return std::any_of(indices.begin(), indices.end(), [](const auto& index) { return index && index->defined(); });
}

}  // namespace

Tensor Tensor::index(ArrayRef<TensorIndex> indices) const {
  if (indices.empty()) throw Error("Passing an empty index list to Tensor::index() is not valid syntax");
  Indices advanced;
  Tensor result = apply_basic(*this, indices, advanced);
  if (!any_tensor(advanced)) return result.is_same(*this) ? alias() : result;
  return tenon::index(result, without_padding(advanced));
}
Tensor Tensor::index(std::initializer_list<TensorIndex> indices) const { return index(ArrayRef<TensorIndex>(indices)); }

Tensor& Tensor::index_put_(ArrayRef<TensorIndex> indices, const Tensor& values) {
  if (indices.empty()) throw Error("Passing an empty index list to Tensor::index_put_() is not valid syntax");
  Indices advanced;
  const Tensor target = apply_basic(*this, indices, advanced);
  if (!any_tensor(advanced)) {
    Tensor source = values;
    while (source.dim() > target.dim() && source.size(0) == 1) source = source.squeeze(0);
    if (!is_expandable_to(source.impl().sizes(), target.impl().sizes())) {
      throw Error("shape mismatch: value tensor of shape " + to_string(values.sizes()) + " cannot be broadcast to indexing result of shape " + to_string(target.sizes()) +
                  " (expand: the expanded size must match the existing size)");
    }
    target.copy_(source);
    return *this;
  }
  // One value under a mask is a fill, which takes any dtype.
  const Indices indices_left = without_padding(advanced);
  const bool fills = values.numel() == 1 && named_once_by_mask(indices_left);
  target.index_put_(indices_left, fills ? values.to(scalar_type()) : values, false);
  return *this;
}
Tensor& Tensor::index_put_(ArrayRef<TensorIndex> indices, const Scalar& value) {
  return index_put_(indices, scalar_tensor_like(value, *this));
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Tensor& values) { return index_put_(ArrayRef<TensorIndex>(indices), values); }
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Scalar& value) { return index_put_(ArrayRef<TensorIndex>(indices), value); }

Tensor Tensor::operator[](std::int64_t position) const {
  if (dim() == 0) {
    throw IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number");
  }
  return select(0, position);
}
Tensor Tensor::operator[](const Scalar& position) const {
  if (!position.isIntegral()) throw IndexError("Can only index tensors with integral scalars");
  return (*this)[position.toLong()];
}
Tensor Tensor::operator[](const Tensor& position) const {
  if (!position.defined()) throw IndexError("Can only index with tensors that are defined");
  if (position.dim() != 0) throw IndexError("Can only index with tensors that are scalars (zero-dim)");
  return (*this)[position.item()];
}

namespace indexing {
std::ostream& operator<<(std::ostream& stream, const TensorIndex& index) {
  if (index.is_none()) return stream << "None";
  if (index.is_ellipsis()) return stream << "...";
  if (index.is_integer()) return stream << index.integer();
  if (index.is_boolean()) return stream << (index.boolean() ? "true" : "false");
  if (index.is_slice()) return stream << index.slice();
  return stream << index.tensor();
}
std::ostream& operator<<(std::ostream& stream, const std::vector<TensorIndex>& indices) {
  stream << "(";
  for (std::size_t i = 0; i < indices.size(); ++i) stream << (i ? ", " : "") << indices[i];
  return stream << ")";
}
}  // namespace indexing

// --- along one dimension ------------------------------------------------------------------------------------------------------

Tensor index_select(const Tensor& self, std::int64_t dim, const Tensor& index) {
  check_index_dtype(index, "index_select");
  check_same_device("index_select", {&self, &index});
  if (index.dim() > 1) throw IndexError("index_select(): Index is supposed to be a vector");
  const int rank = self.impl().rank();
  const int at = wrap_dim(dim, rank);
  const Tensor places = index.to(kInt64).reshape({-1});
  const Dims whole = self.impl().sizes();
  Recording recording = record<1>("IndexSelectBackward0", {&self}, [whole, at](Backward& b) {
    b.set(0, b.grad().new_zeros(whole).index_add(at, b.saved(0), b.grad()));
  });
  if (recording) recording.save(0, places);
  const Tensor source = rank == 0 ? self.reshape({1}) : self;
  Dims sizes = source.impl().sizes();
  sizes[at] = places.numel();
  Tensor result = allocate_like(self, sizes, self.scalar_type());
  const DimAttributes attributes{at};
  run(TENON_OP("index_select"), ops::state_of(self), {view_of(result)}, {view_of(source), view_of(places)}, &attributes);
  if (rank == 0) result.impl().set_contiguous({});
  recording.output(result);
  return result;
}
Tensor Tensor::index_select(std::int64_t dim, const Tensor& index) const { return tenon::index_select(*this, dim, index); }

namespace {

/// The tensor, or a copy where it lies in the storage that is about to be written.
Tensor apart_from(const Tensor& written, const Tensor& read) {
  NoGradGuard no_grad;
  return read.is_alias_of(written) ? read.clone() : read;
}

}  // namespace

namespace {

void check_index_add(const Tensor& self, int dim, const Tensor& index, const Tensor& source) {
  if (index.dim() > 1) {
    throw IndexError("index_add_(): Index is supposed to be a vector, but got dim: " + std::to_string(index.dim()) +
                     " with type: " + toString(index.scalar_type()) + " and size: " + to_string(index.sizes()));
  }
  if (index.scalar_type() != kInt64 && index.scalar_type() != kInt32) {
    throw Error(std::string("index_add_(): Expected dtype int32/int64 for index but got: ") + toString(index.scalar_type()));
  }
  if (self.scalar_type() != source.scalar_type()) {
    throw Error(std::string("index_add_(): self (") + toString(self.scalar_type()) + ") and source (" +
                toString(source.scalar_type()) + ") must have the same scalar type");
  }
  if (dim != 0 && dim >= source.dim()) {
    throw Error("index_add_(): Indexing dim " + std::to_string(dim) + " is out of bounds of the source tensor with dim " +
                std::to_string(source.dim()));
  }
  const std::int64_t rows = source.dim() == 0 ? 1 : source.size(dim);
  if (index.numel() != rows) {
    throw Error("index_add_(): Number of indices (" + std::to_string(index.numel()) +
                ") should be equal to source.size(dim): (" + std::to_string(rows) + "), for dim: " + std::to_string(dim));
  }
  if (self.dim() <= 1) {
    if (source.dim() > 1) {
      throw Error("source.dim() (" + std::to_string(source.dim()) + ") must one or zero for given self.dim() (" +
                  std::to_string(self.dim()) + ")");
    }
    return;
  }
  if (index.numel() == 0) return;
  if (source.dim() == 0) throw IndexError("select() cannot be applied to a 0-dim tensor.");
  // A row of the source is added to a row of self as add_() would.
  Dims to = self.impl().sizes();
  Dims from = source.impl().sizes();
  to.erase(dim);
  from.erase(dim);
  const Dims sum = broadcast_sizes(to, from);
  if (!(sum == to)) {
    throw Error("output with shape " + to_string(to) + " doesn't match the broadcast shape " + to_string(sum));
  }
}

/// The source of index_add_() with its rows broadcast to those of the target: `wide`, of which `at` is the indexed dimension.
Tensor spread(const Tensor& source, int at, const Dims& wide) {
  if (source.impl().sizes() == wide || source.numel() == 0) return source;
  Tensor rows = source.movedim(at, 0);
  while (rows.impl().rank() < wide.rank()) rows = rows.unsqueeze(1);
  while (rows.impl().rank() > wide.rank()) rows = rows.squeeze(1);  // leading ones of a row
  Dims moved = wide;
  moved.erase(at);
  moved.insert(0, wide[at]);
  return rows.expand(moved).movedim(0, at);
}

/// The way back: the gradient of spread()'s result summed to the source's sizes.
Tensor gathered(const Tensor& gradient, int at, const Dims& source_sizes) {
  if (gradient.dim() == 0) return gradient.reshape(source_sizes);
  Dims row = source_sizes;
  const std::int64_t count = row[at];
  row.erase(at);
  while (row.rank() > gradient.impl().rank() - 1) row.erase(0);
  while (row.rank() < gradient.impl().rank() - 1) row.insert(0, 1);
  row.insert(0, count);
  const Tensor sum = gradient.movedim(at, 0).sum_to_size(row);
  Dims plain = source_sizes;
  plain.erase(at);
  plain.insert(0, count);
  return sum.reshape(plain).movedim(0, at);
}

}  // namespace

Tensor& Tensor::index_add_(std::int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) const {
  check_same_device("index_add_", {this, &index, &source});
  const int at = wrap_dim(dim, impl().rank());
  check_index_add(*this, at, index, source);
  autograd::check_inplace(*this, autograd::requires_grad(source));
  check_written(*this);
  const Tensor places = index.to(kInt64).reshape({-1});
  const Dims source_sizes = source.impl().sizes();
  Recording recording = record<1>("IndexAddBackward0", {this, &source}, [at, alpha, source_sizes](Backward& b) {
    if (b.needs(1)) {
      Tensor gradient = b.grad().index_select(at, b.saved(0));
      if (!(gradient.impl().sizes() == source_sizes)) {  // rows were broadcast
        gradient = source_sizes.rank() == 0 ? gradient.sum()
                                            : gathered(gradient, at, source_sizes);
      }
      b.set(1, alpha.equal(1) ? gradient : gradient.mul(alpha));
    }
    if (b.needs(0)) b.set(0, b.grad());
  });
  if (recording) recording.save(0, places);
  const IndexAddAttributes attributes{at, alpha.toDouble()};
  {
    NoGradGuard no_grad;
    const Tensor target = dim == 0 && this->dim() == 0 ? reshape({1}) : *this;
    Tensor rows = source.dim() == 0 ? source.reshape({1}) : source;
    if (target.dim() > 1) {
      Dims wide = target.impl().sizes();
      wide[at] = places.numel();
      rows = spread(rows, at, wide);
    }
    run(TENON_OP("index_add"), ops::state_of(*this), {view_of(target)},
        {view_of(apart_from(*this, places)), view_of(apart_from(*this, rows))}, &attributes);
  }
  finish_inplace(*this, recording);
  return const_cast<Tensor&>(*this);
}
Tensor Tensor::index_add(std::int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) const {
  return as_fresh(clone().index_add_(dim, index, source, alpha));
}
namespace {

void check_index_copy(const Tensor& self, int dim, const Tensor& index, const Tensor& source) {
  const std::int64_t count = index.numel();
  if (index.dim() > 1) {
    throw IndexError("index_copy_(): Index should have dimension 1 or 0 (got " + std::to_string(index.dim()) + ")");
  }
  if (source.dim() == 0 && count != 1) {
    throw IndexError("index_copy_(): When source is scalar, index should have one element (got " + std::to_string(count) + ")");
  }
  if (source.dim() != self.dim() && source.dim() != 0 && self.dim() != 0) {
    throw IndexError(
        "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source dimensionality (" +
        std::to_string(source.dim()) + "), destination dimensionality (" + std::to_string(self.dim()) + ")");
  }
  if (index.scalar_type() != kInt64) {
    throw Error(std::string("index_copy_(): Expected a long tensor for index, but got ") + toString(index.scalar_type()));
  }
  if (self.scalar_type() != source.scalar_type()) {
    throw Error(std::string("index_copy_(): self and source expected to have the same dtype, but got (self) ") +
                toString(self.scalar_type()) + " and (source) " + toString(source.scalar_type()));
  }
  Dims to = self.impl().sizes();
  Dims from = source.impl().sizes();
  if (to.rank() > 0) to.erase(dim);
  if (from.rank() > 0) from.erase(dim);
  if (!(to == from)) {
    const auto listed = [](const Dims& sizes) {
      const std::string text = to_string(sizes);
      return text.substr(1, text.size() - 2);
    };
    throw Error("index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: " + listed(to) +
                " at dimension " + std::to_string(dim) + " and source slice shape: " + listed(from) + " at dimension 0.");
  }
  if (source.dim() != 0 && count != source.size(dim)) {
    throw IndexError("index_copy_(): Number of indices (" + std::to_string(count) + ") should be equal to source.size(dim) (" +
                     std::to_string(source.size(dim)) + ")");
  }
  if (count == 0) return;
  const std::int64_t length = self.dim() == 0 ? 1 : self.size(dim);
  const Tensor places = index.reshape({-1});
  for (const Tensor& bound : {places.min(), places.max()}) {
    const auto position = bound.item<std::int64_t>();
    if (position < 0 || position >= length) {
      throw IndexError("index_copy_(): index " + std::to_string(position) + " is out of bounds for dimension " +
                       std::to_string(dim) + " with size " + std::to_string(length));
    }
  }
}

}  // namespace

Tensor& Tensor::index_copy_(std::int64_t dim, const Tensor& index, const Tensor& source) const {
  const int at = wrap_dim(dim, impl().rank());
  check_same_device("index_copy_", {this, &index, &source});
  check_index_copy(*this, at, index, source);
  if (this->dim() == 0) return copy_(source.reshape({}));
  Indices indices(static_cast<std::size_t>(at) + 1);
  indices.back() = index.reshape({-1});
  return index_put_(indices, source.dim() == 0 ? source.reshape({1}) : source, false);
}
Tensor& Tensor::index_fill_(std::int64_t dim, const Tensor& index, const Scalar& value) const {
  Indices indices(static_cast<std::size_t>(wrap_dim(dim, impl().rank())) + 1);
  indices.back() = index;
  return index_put_(indices, scalar_tensor_like(value, *this), false);
}

Tensor Tensor::gather(std::int64_t dim, const Tensor& index, bool) const {
  check_index_dtype(index, "gather");
  check_same_device("gather", {this, &index});
  if (index.dim() != this->dim() && index.numel() > 0) throw Error("Index tensor must have the same number of dimensions as input tensor");
  const int at = wrap_dim(dim, impl().rank());
  for (int i = 0; i < impl().rank(); ++i) {
    if (i != at && index.size(i) > size(i)) {
      throw Error("Size does not match at dimension " + std::to_string(i) + " expected index " + to_string(index.sizes()) + " to be smaller than self " + to_string(sizes()) + " apart from dimension " + std::to_string(at));
    }
  }
  const Tensor places = index.to(kInt64);
  const Dims whole = impl().sizes();
  Recording recording = record<1>("GatherBackward0", {this}, [whole, at](Backward& b) {
    b.set(0, b.grad().new_zeros(whole).scatter_add(at, b.saved(0), b.grad()));
  });
  if (recording) recording.save(0, places);
  Tensor result = allocate_like(*this, places.impl().sizes(), scalar_type());
  const DimAttributes attributes{at};
  run(TENON_OP("gather"), ops::state_of(*this), {view_of(result)}, {view_of(*this), view_of(places)}, &attributes);
  recording.output(result);
  return result;
}

namespace {

Tensor& scatter_impl(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source, bool add) {
  const char* name = add ? "scatter_add_" : "scatter_";
  check_index_dtype(index, name);
  check_same_device(name, {&self, &index, &source});
  check_same_dtype(name, {&self, &source});
  autograd::check_inplace(self, autograd::requires_grad(source));
  check_written(self);
  const int at = wrap_dim(dim, self.impl().rank());
  if (index.numel() > 0 && (index.dim() != self.dim() || index.dim() != source.dim())) {
    throw Error("Index tensor must have the same number of dimensions as self tensor");
  }
  for (int i = 0; index.numel() > 0 && i < self.impl().rank(); ++i) {
    if ((i != at && index.size(i) > self.size(i)) || index.size(i) > source.size(i)) {
      throw Error("Expected index " + to_string(index.sizes()) + " to be smaller than self " + to_string(self.sizes()) +
                  " apart from dimension " + std::to_string(at) + " and to be smaller size than src " + to_string(source.sizes()));
    }
  }
  const Tensor places = index.to(kInt64);
  const Dims source_sizes = source.impl().sizes();
  Recording recording = record<1>(add ? "ScatterAddBackward0" : "ScatterBackward0", {&self, &source}, [at, add, source_sizes](Backward& b) {
    const Tensor places = b.saved(0);
    if (b.needs(1)) {
      Tensor gradient = b.grad().gather(at, places);
      if (!(gradient.impl().sizes() == source_sizes)) {  // only the part that the index covers was read
        Tensor whole = b.grad().new_zeros(source_sizes);
        Tensor part = whole;
        for (int i = 0; i < source_sizes.rank(); ++i) part = part.narrow(i, 0, gradient.size(i));
        part.copy_(gradient);
        gradient = whole;
      }
      b.set(1, gradient);
    }
    if (b.needs(0)) b.set(0, add ? b.grad() : b.grad().scatter(at, places, Scalar(0)));
  });
  if (recording) recording.save(0, places);
  const ScatterAttributes attributes{at, add};
  run(TENON_OP("scatter"), ops::state_of(self), {view_of(self)},
      {view_of(apart_from(self, places)), view_of(apart_from(self, source))}, &attributes);
  finish_inplace(self, recording);
  return const_cast<Tensor&>(self);
}

}  // namespace

Tensor& Tensor::scatter_(std::int64_t dim, const Tensor& index, const Tensor& source) const { return scatter_impl(*this, dim, index, source, false); }
Tensor& Tensor::scatter_(std::int64_t dim, const Tensor& index, const Scalar& value) const {
  return scatter_impl(*this, dim, index, scalar_tensor_like(value, *this).expand(index.sizes()), false);
}
Tensor& Tensor::scatter_add_(std::int64_t dim, const Tensor& index, const Tensor& source) const { return scatter_impl(*this, dim, index, source, true); }
Tensor Tensor::scatter(std::int64_t dim, const Tensor& index, const Tensor& source) const { return as_fresh(clone().scatter_(dim, index, source)); }
Tensor Tensor::scatter(std::int64_t dim, const Tensor& index, const Scalar& value) const { return as_fresh(clone().scatter_(dim, index, value)); }
Tensor Tensor::scatter_add(std::int64_t dim, const Tensor& index, const Tensor& source) const { return as_fresh(clone().scatter_add_(dim, index, source)); }

Tensor Tensor::nonzero() const {
  NoGradGuard no_grad;
  Tensor count = allocate_like(*this, Dims{}, Dtype::kInt64);
  run(TENON_OP("count_nonzero_all"), ops::state_of(*this), {view_of(count)}, {view_of(*this)});
  Tensor result = allocate_like(*this, Dims{count.item<std::int64_t>(), dim()}, Dtype::kInt64);
  run(TENON_OP("nonzero"), ops::state_of(*this), {view_of(result)}, {view_of(*this)});
  return result;
}
Tensor Tensor::masked_select(const Tensor& mask) const {
  if (mask.scalar_type() != kBool && mask.scalar_type() != kUInt8) throw Error("masked_select: expected BoolTensor or ByteTensor for mask");
  const Dims sizes = broadcast_sizes(impl().sizes(), mask.impl().sizes());
  return expand(sizes).index(Indices{mask.to(kBool).expand(sizes)}).reshape({-1});
}
Tensor Tensor::take(const Tensor& index) const { return reshape({-1}).index(Indices{index}); }

Tensor one_hot(const Tensor& self, std::int64_t classes) {
  if (self.scalar_type() != kInt64) throw Error("one_hot is only applicable to index tensor.");
  if (self.numel() == 0 && classes <= 0) throw Error("Can not infer total number of classes from empty tensor.");
  if (self.numel() > 0 && self.min().item<std::int64_t>() < 0) throw Error("Class values must be non-negative.");
  const std::int64_t highest = self.numel() > 0 ? self.max().item<std::int64_t>() : -1;
  if (classes == -1) classes = highest + 1;
  if (classes <= highest) throw Error("Class values must be smaller than num_classes.");
  std::vector<std::int64_t> sizes = self.sizes().vec();
  sizes.push_back(classes);
  return as_fresh(tenon::zeros(sizes, self.options()).scatter_(-1, self.unsqueeze(-1), Scalar(1)));
}

// --- triangles ------------------------------------------------------------------------------------------------------------------

namespace {

Tensor triangle(OperatorId op, bool lower, const Tensor& self, std::int64_t diagonal) {
  if (self.dim() < 2) throw Error(std::string(lower ? "tril" : "triu") + ": input tensor must have at least 2 dimensions");
  Recording recording = record<0>(lower ? "TrilBackward0" : "TriuBackward0", {&self}, [lower, diagonal](Backward& b) {
    b.set(0, lower ? b.grad().tril(diagonal) : b.grad().triu(diagonal));
  });
  Tensor result = allocate_like(self, self.impl().sizes(), self.scalar_type());
  const TriangleAttributes attributes{diagonal};
  run(op, ops::state_of(self), {view_of(result)}, {view_of(self)}, &attributes);
  recording.output(result);
  return result;
}

}  // namespace

Tensor Tensor::tril(std::int64_t diagonal) const { return triangle(TENON_OP("tril"), true, *this, diagonal); }
Tensor Tensor::triu(std::int64_t diagonal) const { return triangle(TENON_OP("triu"), false, *this, diagonal); }
Tensor Tensor::diag(std::int64_t offset) const {
  if (dim() == 2) return diagonal(offset).clone();
  if (dim() != 1) throw Error("diag(): Supports 1D or 2D tensors. Got " + std::to_string(dim()) + "D");
  const std::int64_t n = numel() + std::abs(offset);
  Recording recording = record<0>("DiagBackward0", {this}, [offset](Backward& b) { b.set(0, b.grad().diag(offset)); });
  NoGradGuard no_grad;
  const Tensor result = as_fresh(new_zeros({n, n}));
  run(TENON_OP("copy"), ops::state_of(*this), {view_of(result.diagonal(offset))}, {view_of(*this)});
  recording.output(result);
  return result;
}

}  // namespace tenon
