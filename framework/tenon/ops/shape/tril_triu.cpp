// Triangles and diagonals of matrices. Declared in tril_triu.h and tensor.h.
#include <tenon/kernel/attributes/indexing.h>
#include <tenon/ops/shape/tril_triu.h>
#include <tenon/ops/support/composite.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace tenon {

using namespace ops;

namespace {

Tensor triangle(OperatorId op, bool lower, const Tensor& self, std::int64_t diagonal) {
  if (self.dim() < 2)
    throw Error(std::string(lower ? "tril" : "triu") + ": input tensor must have at least 2 dimensions");
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

Tensor Tensor::tril(std::int64_t diagonal) const {
  TENON_SCOPE(tril, *this, diagonal)
  return triangle(TENON_OP("tril"), true, *this, diagonal);
}
Tensor Tensor::triu(std::int64_t diagonal) const {
  TENON_SCOPE(triu, *this, diagonal)
  return triangle(TENON_OP("triu"), false, *this, diagonal);
}
Tensor& Tensor::tril_(std::int64_t diagonal) const {
  TENON_SCOPE(tril_, *this, diagonal)
  return overwrite("tril_", *this, tril(diagonal));
}
Tensor& Tensor::triu_(std::int64_t diagonal) const {
  TENON_SCOPE(triu_, *this, diagonal)
  return overwrite("triu_", *this, triu(diagonal));
}

Tensor Tensor::diag(std::int64_t offset) const {
  TENON_SCOPE(diag, *this, offset)
  if (dim() == 2) return diagonal(offset).clone();
  if (dim() != 1) throw Error("matrix or a vector expected: diag() got a tensor of sizes " + to_string(sizes()));
  const std::int64_t n = numel() + std::abs(offset);
  Recording recording = record<0>("DiagBackward0", {this}, [offset](Backward& b) { b.set(0, b.grad().diag(offset)); });
  NoGradGuard no_grad;
  Tensor result = as_fresh(new_zeros({n, n}));
  run(TENON_OP("copy"), ops::state_of(*this), {view_of(result.diagonal(offset))}, {view_of(*this)});
  recording.output(result);
  return result;
}
Tensor Tensor::diag_embed(std::int64_t offset, std::int64_t dim1, std::int64_t dim2) const {
  TENON_SCOPE(diag_embed, *this, offset, dim1, dim2)
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
Tensor Tensor::diagflat(std::int64_t offset) const {
  TENON_SCOPE(diagflat, *this, offset)
  return reshape({-1}).diag(offset);
}

Tensor& Tensor::fill_diagonal_(const Scalar& value, bool wrap) const {
  TENON_SCOPE(fill_diagonal_, *this, value, wrap)
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

}  // namespace tenon
