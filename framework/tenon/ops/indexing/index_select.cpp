// Rows along one dimension, picked or written by a vector of positions. Declared in indexing.h and tensor.h.
#include <tenon/kernel/attributes/indexing.h>
#include <tenon/kernel/attributes/reduction.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/indexing/indexing.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/index_operand.h>
#include <tenon/ops/support/scalar_operand.h>
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/values.h>

namespace tenon {

using namespace ops;
using Indices = std::vector<std::optional<Tensor>>;

Tensor index_select(const Tensor& self, std::int64_t dim, const Tensor& index) {
  TENON_SCOPE(index_select, self, dim, index)
  check_index_dtype(index, "index_select");
  check_same_device("index_select", {&self, &index});
  if (index.dim() > 1) throw IndexError("index_select(): Index is supposed to be a vector");
  const int rank = self.impl().rank();
  const int at = wrap_dim(dim, rank);
  if (rank == 0 && index.numel() != 1) {
    throw IndexError("index_select(): Index to scalar can have only 1 value, got " + std::to_string(index.numel()) +
                     " value(s)");
  }
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
  run(TENON_OP("index_select"), ops::state_of(self), {view_of(result)}, {view_of(source), view_of(places)},
      &attributes);
  if (rank == 0) result.impl().set_contiguous({});
  recording.output(result);
  return result;
}
Tensor Tensor::index_select(std::int64_t dim, const Tensor& index) const {
  return tenon::index_select(*this, dim, index);
}

namespace {

void check_index_add(const Tensor& self, int dim, const Tensor& index, const Tensor& source) {
  if (index.dim() > 1) {
    throw IndexError("index_add_(): Index is supposed to be a vector, but got dim: " + std::to_string(index.dim()) +
                     " with type: " + toString(index.scalar_type()) + " and size: " + to_string(index.sizes()));
  }
  if (index.scalar_type() != kInt64 && index.scalar_type() != kInt32) {
    throw Error(std::string("index_add_(): Expected dtype int32/int64 for index but got: ") +
                toString(index.scalar_type()));
  }
  if (self.scalar_type() != source.scalar_type()) {
    throw Error(std::string("index_add_(): self (") + toString(self.scalar_type()) + ") and source (" +
                toString(source.scalar_type()) + ") must have the same scalar type");
  }
  if (dim != 0 && dim >= source.dim()) {
    throw Error("index_add_(): Indexing dim " + std::to_string(dim) +
                " is out of bounds of the source tensor with dim " + std::to_string(source.dim()));
  }
  const std::int64_t rows = source.dim() == 0 ? 1 : source.size(dim);
  if (index.numel() != rows) {
    throw Error("index_add_(): Number of indices (" + std::to_string(index.numel()) +
                ") should be equal to source.size(dim): (" + std::to_string(rows) +
                "), for dim: " + std::to_string(dim));
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

/// The source of index_add_() with its rows broadcast to those of the target: `wide`, of which `at` is the indexed
/// dimension.
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

/// The adjoint of spread(): the gradient of its result, summed to the source's sizes.
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
  TENON_SCOPE(index_add_, *this, dim, index, source, alpha)
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
        gradient = source_sizes.rank() == 0 ? gradient.sum() : gathered(gradient, at, source_sizes);
      }
      b.set(1, alpha.equal(1) ? gradient : gradient.mul(alpha));
    }
    if (b.needs(0)) b.set(0, b.grad());
  });
  if (recording) recording.save(0, places);
  // For bool element_of() makes every alpha but 0 a 1, so that adding is "or".
  // Kernels take it as a float64, which has not every int64.
  const ScalarValue factor = element_of(alpha, scalar_type());
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  const bool is_beyond = scalar_type() == kInt64 && (factor.integer > kExact || factor.integer < -kExact);
  const IndexAddAttributes attributes{at, is_beyond ? 1 : factor.real};
  {
    NoGradGuard no_grad;
    const Tensor target = dim == 0 && this->dim() == 0 ? reshape({1}) : *this;
    Tensor rows = source.dim() == 0 ? source.reshape({1}) : source;
    if (is_beyond) rows = rows.mul(Scalar(factor.integer));
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
  TENON_SCOPE(index_add, *this, dim, index, source, alpha)
  return as_fresh(clone(MemoryFormat::Contiguous).index_add_(dim, index, source, alpha));
}
namespace {

void check_index_copy(const Tensor& self, int dim, const Tensor& index, const Tensor& source) {
  const std::int64_t count = index.numel();
  if (index.dim() > 1) {
    throw IndexError("index_copy_(): Index should have dimension 1 or 0 (got " + std::to_string(index.dim()) + ")");
  }
  if (source.dim() == 0 && count != 1) {
    throw IndexError("index_copy_(): When source is scalar, index should have one element (got " +
                     std::to_string(count) + ")");
  }
  if (source.dim() != self.dim() && source.dim() != 0 && self.dim() != 0) {
    throw IndexError(
        "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
        "dimensionality (" +
        std::to_string(source.dim()) + "), destination dimensionality (" + std::to_string(self.dim()) + ")");
  }
  if (index.scalar_type() != kInt64) {
    throw Error(std::string("index_copy_(): Expected a long tensor for index, but got ") +
                toString(index.scalar_type()));
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
    throw Error(
        "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: " + listed(to) +
        " at dimension " + std::to_string(dim) + " and source slice shape: " + listed(from) + " at dimension 0.");
  }
  if (source.dim() != 0 && count != source.size(dim)) {
    throw IndexError("index_copy_(): Number of indices (" + std::to_string(count) +
                     ") should be equal to source.size(dim) (" + std::to_string(source.size(dim)) + ")");
  }
  if (count == 0 || !has_values(index)) return;
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
  TENON_SCOPE(index_copy_, *this, dim, index, source)
  const int at = wrap_dim(dim, impl().rank());
  check_same_device("index_copy_", {this, &index, &source});
  check_index_copy(*this, at, index, source);
  if (this->dim() == 0) return copy_(source.reshape({}));
  Indices indices(static_cast<std::size_t>(at) + 1);
  indices.back() = index.reshape({-1});
  return index_put_(indices, source.dim() == 0 ? source.reshape({1}) : source, false);
}
namespace {

/// Writes `value`, of no dimension, to the rows that `index` names. A row that is named twice counts once in the
/// gradient.
Tensor& fill_rows(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& value) {
  if (self.dim() == 0) {
    fill_rows(self.unsqueeze(0), dim, index, value);
    return const_cast<Tensor&>(self);
  }
  if (index.scalar_type() != kInt64) throw IndexError("index_fill_(): Expected dtype int64 for index.");
  const int at = wrap_dim(dim, self.impl().rank());
  if (index.dim() > 1) throw IndexError("Index has to be a vector/scalar");
  check_same_device("index_fill_", {&self, &index});
  autograd::check_inplace(self, autograd::requires_grad(value));
  const std::int64_t length = self.size(at);
  Recording recording = record<1>("IndexFillBackward0", {&self, &value}, [at, length](Backward& b) {
    const Tensor places = b.saved(0);
    if (b.needs(0)) b.set(0, b.grad().index_fill(at, places, Scalar(0)));
    if (b.needs(1) && !has_values(places)) {  // which rows are named twice is unknown
      b.set(1, b.grad().index_select(at, places).sum());
    } else if (b.needs(1)) {
      const Tensor filled = zeros({length}, places.options().dtype(kBool)).index_fill(0, places, Scalar(true));
      b.set(1, b.grad().index_select(at, filled.nonzero().flatten()).sum());
    }
  });
  if (recording) recording.save(0, index);
  {
    NoGradGuard no_grad;
    Indices indices(static_cast<std::size_t>(at) + 1);
    indices.back() = index;
    const Tensor element = has_values(value) ? scalar_tensor_like(value.item(), self) : value.to(self.scalar_type());
    self.index_put_(indices, element, false);  // counts as the write
  }
  if (recording) autograd::rebase_history(self, recording.node());
  return const_cast<Tensor&>(self);
}

}  // namespace

Tensor& Tensor::index_fill_(std::int64_t dim, const Tensor& index, const Scalar& value) const {
  TENON_SCOPE(index_fill_, *this, dim, index, value)
  return fill_rows(*this, dim, index, scalar_tensor_like(value, *this));
}
Tensor& Tensor::index_fill_(std::int64_t dim, const Tensor& index, const Tensor& value) const {
  TENON_SCOPE(index_fill_, *this, dim, index, value)
  if (value.dim() != 0) {
    throw Error("index_fill_ only supports a 0-dimensional value tensor, but got tensor with " +
                std::to_string(value.dim()) + " dimension(s).");
  }
  return fill_rows(*this, dim, index, value);
}

}  // namespace tenon
