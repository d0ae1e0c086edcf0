// Writes to places that indices or masks name.
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/indexing/index_put.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/shape/concat.h>
#include <tenon/ops/support/composite.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/values.h>

#include <fmt/format.h>

namespace tenon {

using namespace ops;

Tensor& Tensor::masked_scatter_(const Tensor& mask, const Tensor& source) const {
  TENON_SCOPE(masked_scatter_, *this, mask, source)
  if (scalar_type() != source.scalar_type()) {
    throw Error(std::string("masked_scatter: expected self and source to have same dtypes but got ") +
                tenon::toString(scalar_type()) + " and " + tenon::toString(source.scalar_type()));
  }
  if (mask.scalar_type() != kBool && mask.scalar_type() != kUInt8) {
    throw Error(std::string("masked_scatter_ only supports boolean masks, but got mask with dtype ") +
                tenon::toString(mask.scalar_type()));
  }
  const Tensor chosen = mask.to(kBool).expand(sizes());
  const std::int64_t count = has_values(chosen) ? chosen.sum().item<std::int64_t>() : 0;
  if (count > source.numel()) {
    throw Error(
        fmt::format("masked_scatter: expected self and source to have same number of elements where the mask is "
                    "true: Number of elements of source ({}) < number of ones in mask ({})",
                    source.numel(), count));
  }
  if (dim() == 0) {
    const Tensor none = zeros({1}, source.options());
    const Tensor first = cat({source.reshape({-1}), none}).select(0, 0);
    return copy_(tenon::where(chosen, first, *this));  // recorded for both, whether it is chosen or not
  }
  return index_put_(std::vector<std::optional<Tensor>>{chosen}, source.reshape({-1}).narrow(0, 0, count), false);
}
Tensor Tensor::masked_scatter(const Tensor& mask, const Tensor& source) const {
  TENON_SCOPE(masked_scatter, *this, mask, source)
  const Dims sizes = broadcast_sizes(impl().sizes(), mask.impl().sizes());
  return as_fresh(expand(sizes).clone(MemoryFormat::Contiguous).masked_scatter_(mask.expand(sizes), source));
}

Tensor Tensor::put(const Tensor& index, const Tensor& source, bool accumulate) const {
  TENON_SCOPE(put, *this, index, source, accumulate)
  if (index.scalar_type() != kInt64) {
    throw Error(std::string("put_(): Expected a long tensor for index, but got ") +
                tenon::toString(index.scalar_type()));
  }
  if (scalar_type() != source.scalar_type()) {
    throw Error(std::string("put_(): self and source expected to have the same dtype, but got self.dtype = ") +
                tenon::toString(scalar_type()) + " and source.dtype = " + tenon::toString(source.scalar_type()));
  }
  if (source.numel() != index.numel()) {
    throw IndexError(
        fmt::format("put_(): Expected source and index to have the same number of elements, but got "
                    "source.numel() = {}, index.numel() = {}",
                    source.numel(), index.numel()));
  }
  if (numel() == 0 && index.numel() > 0) throw IndexError("put_(): tried to put elements into an empty tensor");
  const Tensor flat = clone(MemoryFormat::Contiguous).view({-1});
  const Tensor written =
      as_owned(flat.index_put(std::vector<std::optional<Tensor>>{index.reshape({-1})}, source.reshape({-1}), accumulate)
                   .view(sizes()));
  return is_contiguous() ? written : as_fresh(empty_like(*this).copy_(written));
}
Tensor& Tensor::put_(const Tensor& index, const Tensor& source, bool accumulate) const {
  TENON_SCOPE(put_, *this, index, source, accumulate)
  return overwrite("put_", *this, put(index, source, accumulate));
}

Tensor Tensor::take_along_dim(const Tensor& indices, std::optional<std::int64_t> dim) const {
  TENON_SCOPE(take_along_dim, *this, indices, dim)
  if (indices.scalar_type() != kInt64 && indices.scalar_type() != kInt32) {
    throw Error(std::string("torch.take_along_dim(): dtype of indices should be Long but got ") +
                tenon::toString(indices.scalar_type()));
  }
  if (!dim) return reshape({-1}).gather(0, indices.reshape({-1}));
  if (this->dim() != indices.dim()) {
    throw Error(
        fmt::format("torch.take_along_dim(): input and indices should have the same number of dimensions, but got {} "
                    "dimensions for input, and {} dimensions for indices",
                    this->dim(), indices.dim()));
  }
  const int at = wrap_dim(*dim, impl().rank());
  if (this->dim() == 0) return gather(0, indices);
  // Each is broadcast in the other dims.
  Dims values = impl().sizes(), places = indices.impl().sizes();
  values[at] = places[at] = 1;
  values = places = broadcast_sizes(values, places);
  values[at] = size(at);
  places[at] = indices.size(at);
  return expand(values).gather(at, indices.expand(places));
}

Tensor Tensor::index_copy(std::int64_t dim, const Tensor& index, const Tensor& source) const {
  TENON_AUTOCAST_METHOD(index_copy, *this, dim, index, source)
  return as_fresh(clone(MemoryFormat::Contiguous).index_copy_(dim, index, source));
}
Tensor Tensor::index_fill(std::int64_t dim, const Tensor& index, const Scalar& value) const {
  TENON_SCOPE(index_fill, *this, dim, index, value)
  return as_fresh(clone().index_fill_(dim, index, value));
}
Tensor Tensor::index_fill(std::int64_t dim, const Tensor& index, const Tensor& value) const {
  TENON_SCOPE(index_fill, *this, dim, index, value)
  return as_fresh(clone().index_fill_(dim, index, value));
}
Tensor Tensor::argwhere() const {
  TENON_SCOPE(argwhere, *this)
  return nonzero();
}

}  // namespace tenon
