// Turning and repeating along dims, and dims added. Semantics are those of PyTorch's functions of the same names.
#include <tenon/ops/create/factory.h>
#include <tenon/ops/shape/rearrange.h>
#include <tenon/ops/shape/view.h>
#include <tenon/ops/support/composite.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon {

using namespace ops;

// --- turning
// ------------------------------------------------------------------------------------------------------------

Tensor Tensor::movedim(IntArrayRef source, IntArrayRef destination) const {
  if (source.size() != destination.size()) {
    throw Error("movedim: Invalid source or destination dims: source (" + to_string(source) +
                " dims) should contain the same number of dims as destination (" + to_string(destination) + " dims)");
  }
  const int rank = impl().rank();
  Dims order = Dims::filled(std::max(rank, 1), -1);
  std::uint32_t taken = 0;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const int from = wrap_dim(source[i], rank);
    const int to = wrap_dim(destination[i], rank);
    if (taken >> from & 1) throw Error("movedim: repeated dim in `source` (" + to_string(source) + ")");
    if (order[to] != -1) throw Error("movedim: repeated dim in `destination` (" + to_string(destination) + ")");
    taken |= 1u << from;
    order[to] = from;
  }
  if (rank == 0) return alias();
  int next = 0;
  for (int to = 0; to < rank; ++to) {
    if (order[to] != -1) continue;
    while (taken >> next & 1) ++next;
    order[to] = next++;
  }
  return permute(order);
}

Tensor Tensor::rot90(std::int64_t k, IntArrayRef dims) const {
  if (dims.size() != 2) throw Error(fmt::format("expected total rotation dims == 2, but got dims = {}", dims.size()));
  if (dim() < 2) throw Error(fmt::format("expected total dims >= 2, but got total dims = {}", dim()));
  const int a = wrap_dim(dims[0], impl().rank());
  const int b = wrap_dim(dims[1], impl().rank());
  if (a == b) {
    throw Error(
        fmt::format("expected rotation dims to be different, but got dim0 = {} and dim1 = {}", dims[0], dims[1]));
  }
  switch ((k % 4 + 4) % 4) {
    case 1:
      return flip(b).transpose_(a, b);
    case 2:
      return flip({a, b});
    case 3:
      return flip(a).transpose_(a, b);
    default:
      return clone(MemoryFormat::Contiguous);
  }
}

Tensor Tensor::fliplr() const {
  if (dim() < 2) throw Error("Input must be >= 2-d.");
  return flip(1);
}
Tensor Tensor::flipud() const {
  if (dim() < 1) throw Error("Input must be >= 1-d.");
  return flip(0);
}

Tensor Tensor::diag_embed(std::int64_t offset, std::int64_t dim1, std::int64_t dim2) const {
  const int rank = impl().rank() + 1;
  const int a = wrap_dim(dim1, rank);
  const int b = wrap_dim(dim2, rank);
  if (a == b) throw Error(fmt::format("diagonal dimensions cannot be identical {}, {}", dim1, dim2));
  if (dim() == 0) throw IndexError("diag_embed(): Dimension specified as -1 but tensor has no dimensions");
  const std::int64_t side = size(-1) + std::abs(offset);
  Dims sizes = impl().sizes();
  sizes.erase(sizes.rank() - 1);
  sizes.insert(std::min(a, b), side);
  sizes.insert(std::max(a, b), side);
  Recording recording = record<0>("DiagEmbedBackward0", {this},
                                  [=](Backward& backward) { backward.set(0, backward.grad().diagonal(offset, a, b)); });
  NoGradGuard no_grad;
  Tensor result = new_zeros(sizes);
  result.diagonal(offset, a, b).copy_(*this);
  recording.output(as_fresh(result));
  return result;
}
Tensor Tensor::diagflat(std::int64_t offset) const { return reshape({-1}).diag(offset); }

// --- repeating
// ----------------------------------------------------------------------------------------------------------

Tensor Tensor::tile(IntArrayRef repeats) const {
  std::vector<std::int64_t> all = repeats.vec();
  while (static_cast<std::int64_t>(all.size()) < dim()) all.insert(all.begin(), 1);
  return repeat(all);
}

// --- in place
// -----------------------------------------------------------------------------------------------------------

Tensor& Tensor::tril_(std::int64_t diagonal) const { return overwrite("tril_", *this, tril(diagonal)); }
Tensor& Tensor::triu_(std::int64_t diagonal) const { return overwrite("triu_", *this, triu(diagonal)); }

Tensor& Tensor::fill_diagonal_(const Scalar& value, bool wrap) const {
  if (dim() < 2) throw Error("dimensions must larger than 1");
  std::int64_t shortest = size(0);
  std::int64_t step = 0;
  for (std::int64_t i = 0; i < dim(); ++i) {
    if (dim() > 2 && size(i) != size(0)) throw Error("all dimensions of input must be of equal length");
    shortest = std::min(shortest, size(i));
    step += stride(i);
  }
  as_strided({shortest}, {step}, storage_offset()).fill_(value);
  if (wrap && dim() == 2 && size(0) > size(1) + 1) {  // of a tall matrix: the diagonal starts anew below each square
    const std::int64_t skipped = size(1) + 1;
    const std::int64_t length = (numel() + skipped - 1) / skipped - shortest;
    const std::int64_t start = storage_offset() + stride(0) * skipped;
    as_strided({length}, {step}, start).fill_(value);
  }
  return const_cast<Tensor&>(*this);
}

// --- dims added
// ---------------------------------------------------------------------------------------------------------

Tensor atleast_1d(const Tensor& self) { return self.dim() == 0 ? self.reshape({1}) : self; }
Tensor atleast_2d(const Tensor& self) {
  if (self.dim() == 0) return self.reshape({1, 1});
  return self.dim() == 1 ? self.unsqueeze(0) : self;
}
Tensor atleast_3d(const Tensor& self) {
  if (self.dim() == 0) return self.reshape({1, 1, 1});
  if (self.dim() == 1) return self.unsqueeze(0).unsqueeze(-1);
  return self.dim() == 2 ? self.unsqueeze(-1) : self;
}

namespace {

std::vector<Tensor> each(TensorList tensors, Tensor (*change)(const Tensor&)) {
  std::vector<Tensor> result;
  for (const Tensor& tensor : tensors) result.push_back(change(tensor));
  return result;
}

}  // namespace

std::vector<Tensor> atleast_1d(TensorList tensors) { return each(tensors, &atleast_1d); }
std::vector<Tensor> atleast_2d(TensorList tensors) { return each(tensors, &atleast_2d); }
std::vector<Tensor> atleast_3d(TensorList tensors) { return each(tensors, &atleast_3d); }

Tensor dstack(TensorList tensors) {
  if (tensors.empty()) throw Error("dstack expects a non-empty TensorList");
  return cat(atleast_3d(tensors), 2);
}
Tensor column_stack(TensorList tensors) {
  if (tensors.empty()) throw Error("column_stack expects a non-empty TensorList");
  return hstack(each(tensors, [](const Tensor& x) { return x.dim() <= 1 ? x.reshape({x.numel(), 1}) : x; }));
}
Tensor row_stack(TensorList tensors) { return vstack(tensors); }

}  // namespace tenon
