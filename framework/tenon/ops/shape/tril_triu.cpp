// Triangles and diagonals of matrices. Declared in view.h.
#include <tenon/kernel/attributes/indexing.h>
#include <tenon/ops/shape/view.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/support.h>

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

Tensor Tensor::tril(std::int64_t diagonal) const { return triangle(TENON_OP("tril"), true, *this, diagonal); }
Tensor Tensor::triu(std::int64_t diagonal) const { return triangle(TENON_OP("triu"), false, *this, diagonal); }
Tensor Tensor::diag(std::int64_t offset) const {
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

}  // namespace tenon
