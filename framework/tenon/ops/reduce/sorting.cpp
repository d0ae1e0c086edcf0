// Sorting along a dimension, and what is read off the order.
#include <tenon/kernel/attributes/reduction.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/picked.h>
#include <tenon/ops/reduce/sorting.h>
#include <tenon/ops/support/support.h>

namespace tenon {

using namespace ops;

std::tuple<Tensor, Tensor> Tensor::sort(std::int64_t dim, bool descending) const {
  TENON_SCOPE(sort, *this, dim, descending)
  const int at = wrap_dim(dim, impl().rank());
  Recording recording = record_picked("SortBackward0", *this, at, true);
  Tensor values = allocate_preserving(*this, scalar_type());
  Tensor indices = allocate_preserving(*this, Dtype::kInt64);
  const SortAttributes attributes{at, descending};
  run(TENON_OP("sort"), ops::state_of(*this), {view_of(values), view_of(indices)}, {view_of(*this)}, &attributes);
  if (recording) {
    recording.save(0, indices);
    recording.output(values);
  }
  return {values, indices};
}
Tensor Tensor::argsort(std::int64_t dim, bool descending) const {
  TENON_SCOPE(argsort, *this, dim, descending)
  return std::get<1>(detach().sort(dim, descending));
}

std::tuple<Tensor, Tensor> Tensor::topk(std::int64_t k, std::int64_t dim, bool largest, bool) const {
  TENON_SCOPE(topk, *this, k, dim, largest)
  const int at = wrap_dim(dim, impl().rank());
  const std::int64_t length = impl().rank() == 0 ? 1 : size(at);
  if (k < 0 || k > length)
    throw Error("selected index k out of range: k = " + std::to_string(k) + " of " + std::to_string(length));
  Recording recording = record_picked("TopkBackward0", *this, at, true);
  Dims sizes = impl().sizes();
  if (sizes.rank() > 0) sizes[at] = k;
  Tensor values = allocate_like(*this, sizes, scalar_type());
  Tensor indices = allocate_like(*this, sizes, Dtype::kInt64);
  // For a tensor of no dimension the result is its one element even for k = 0, as in PyTorch.
  const TopkAttributes attributes{impl().rank() == 0 ? 1 : k, at, largest};
  run(TENON_OP("topk"), ops::state_of(*this), {view_of(values), view_of(indices)}, {view_of(*this)}, &attributes);
  if (recording) {
    recording.save(0, indices);
    recording.output(values);
  }
  return {values, indices};
}

}  // namespace tenon
