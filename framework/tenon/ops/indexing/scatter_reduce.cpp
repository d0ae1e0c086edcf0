// scatter() with a reduction: sorting the indices makes groups of what falls on one element, and a scan over each group
// reduces it. Declared in tensor.h.
#include <tenon/ops/create/factory.h>
#include <tenon/ops/indexing/index_put.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/shape/concat.h>
#include <tenon/ops/shape/padding.h>
#include <tenon/ops/support/composite.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/index_operand.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

#include <limits>

namespace tenon {

using namespace ops;

namespace {

enum class Reduce { kSum, kProduct, kMean, kMaximum, kMinimum };

Reduce reduction_of(std::string_view reduce) {
  if (reduce == "sum") return Reduce::kSum;
  if (reduce == "prod") return Reduce::kProduct;
  if (reduce == "mean") return Reduce::kMean;
  if (reduce == "amax") return Reduce::kMaximum;
  if (reduce == "amin") return Reduce::kMinimum;
  throw Error(fmt::format("reduce argument must be either sum, prod, mean, amax or amin, got {}.", reduce));
}

/// What changes nothing when it is reduced with anything.
Tensor neutral(Reduce reduce, const Tensor& like) {
  if (reduce == Reduce::kProduct) return ones({}, like.options());
  if (reduce != Reduce::kMaximum && reduce != Reduce::kMinimum) return zeros({}, like.options());
  const bool lowest = reduce == Reduce::kMaximum;
  const Dtype dtype = like.scalar_type();
  if (is_floating_point(dtype)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return full({}, lowest ? -infinity : infinity, like.options());
  }
  if (dtype == kBool) return full({}, !lowest, like.options());
  const int bits = static_cast<int>(8 * size_of(dtype)) - (is_signed(dtype) ? 1 : 0);
  const std::int64_t most = bits == 63 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << bits) - 1;
  return full({}, lowest ? (is_signed(dtype) ? -most - 1 : 0) : most, like.options());
}

Tensor joined(Reduce reduce, const Tensor& a, const Tensor& b) {
  if (reduce == Reduce::kMaximum) return maximum(a, b);
  return reduce == Reduce::kMinimum ? minimum(a, b) : a.mul(b);
}

/// The elements along one dim in groups of equal index: the indices sorted, and where each group ends.
struct Groups {
  Tensor index;    ///< ascending
  Tensor order;    ///< the places of index in the index given
  Tensor is_last;  ///< whether the next index is another
};

Groups groups_of(const Tensor& index, int at) {
  auto [sorted, order] = index.sort(at);
  const Tensor last = ones(sorted.narrow(at, 0, 1).sizes(), sorted.options().dtype(kBool));
  const Tensor is_last = cat({sorted.slice(at, 1).ne(sorted.slice(at, 0, -1)), last}, at);
  return {sorted, order, is_last};
}

/// self reduced with all elements of `source` that fall on it: the last result of a scan over each group is scattered.
Tensor scatter_scan(const Tensor& self, int at, const Tensor& index, const Tensor& source, Reduce reduce) {
  const Groups groups = groups_of(index, at);
  Tensor part = source;
  for (int i = 0; i < index.impl().rank(); ++i) part = part.narrow(i, 0, index.size(i));
  Tensor sum = part.gather(at, groups.order);
  const std::int64_t length = index.size(at);
  for (std::int64_t step = 1; step < length; step *= 2) {
    const Tensor later = sum.slice(at, step), earlier = sum.slice(at, 0, length - step);
    const Tensor same = groups.index.slice(at, step).eq(groups.index.slice(at, 0, length - step));
    sum = cat({sum.slice(at, 0, step), where(same, joined(reduce, later, earlier), later)}, at);
  }
  // Only the last element of each group is added to its place; the others are 0.
  const Tensor ends = sum.masked_fill(groups.is_last.logical_not(), 0);
  const Tensor none = zeros(self.sizes(), self.options());
  const Tensor reached = none.to(kInt64).scatter_add(at, groups.index, groups.is_last.to(kInt64)).gt(0);
  const Tensor arrived = where(reached, none.scatter_add(at, groups.index, ends), neutral(reduce, self));
  return joined(reduce, self, arrived);
}

/// The extremes' gradient is shared evenly by all that equal the result: PyTorch counts self among them even where it
/// is not included, and then drops its share. `base` is what self contributes to the values.
Tensor scatter_extreme(const Tensor& self, const Tensor& base, int at, const Tensor& index, const Tensor& source,
                       Reduce reduce, bool include_self) {
  const Dims source_sizes = source.impl().sizes();
  Recording recording =
      record<4>("ScatterReduceBackward0", {&self, &source}, [at, source_sizes, include_self](Backward& b) {
        const Tensor own = b.saved(0), given = b.saved(1), places = b.saved(2), result = b.saved(3);
        Tensor part = given;
        for (int i = 0; i < places.impl().rank(); ++i) part = part.narrow(i, 0, places.size(i));
        const Tensor own_wins = own.eq(result).to(own.scalar_type());
        const Tensor given_wins = part.eq(result.gather(at, places)).to(own.scalar_type());
        const Tensor count = own_wins.scatter_add(at, places, given_wins);
        const Tensor share = b.grad().div(count).masked_fill(count.eq(0), 0);
        if (b.needs(0)) {
          const Tensor gradient = own_wins.mul(share);
          b.set(0, include_self ? gradient : gradient.scatter(at, places, Scalar(0)));
        }
        if (b.needs(1)) {
          Tensor gradient = given_wins.mul(share.gather(at, places));
          std::vector<std::int64_t> missing;
          for (int i = source_sizes.rank() - 1; i >= 0; --i) {
            missing.push_back(0);
            missing.push_back(source_sizes[i] - gradient.size(i));
          }
          b.set(1, constant_pad_nd(gradient, missing, 0));
        }
      });
  if (recording) {
    recording.save(0, self);
    recording.save(1, source);
    recording.save(2, index);
  }
  Tensor result;
  {
    NoGradGuard no_grad;
    result = scatter_scan(base, at, index, source, reduce);
  }
  if (recording) {
    recording.output(result);
    recording.save_output(3, result);
  }
  return result;
}

Tensor reduced(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source, Reduce reduce,
               bool include_self) {
  check_same_device("scatter_reduce", {&self, &index, &source});
  check_same_dtype("scatter(): Expected self.dtype to be equal to src.dtype", {&self, &source});
  check_index_dtype(index, "scatter");
  if (index.scalar_type() == kInt32) return reduced(self, dim, index.to(kInt64), source, reduce, include_self);
  const int at = wrap_dim(dim, self.impl().rank());
  if (self.dim() == 0) {
    return as_owned(
        reduced(self.reshape({1}), 0, index.reshape({-1}), source.reshape({-1}), reduce, include_self).reshape({}));
  }
  if (!self.is_contiguous()) return reduced(self.contiguous(), dim, index, source, reduce, include_self);
  self.scatter_add(at, index, source.detach());  // throws where the sizes do not match
  if (index.numel() == 0) return self.scatter_add(at, index, source);
  const Tensor base = include_self ? self : self.scatter(at, index, neutral(reduce, self).expand(index.sizes()));
  switch (reduce) {
    case Reduce::kSum:
      return base.scatter_add(at, index, source);
    case Reduce::kMean: {
      const Tensor own = ones(self.sizes(), self.options().dtype(kInt64));
      const Tensor ones_given = ones(index.sizes(), index.options());
      Tensor count = include_self ? own : own.scatter(at, index, Scalar(0));
      count = count.scatter_add(at, index, ones_given).to(self.scalar_type());
      const Tensor sum = base.scatter_add(at, index, source);
      return self.is_floating_point() ? sum.div(count) : sum.div(count, "floor");
    }
    case Reduce::kProduct:
      return scatter_scan(base, at, index, source, reduce);
    default:
      return scatter_extreme(self, base.detach(), at, index, source, reduce, include_self);
  }
}

Reduce old_name(std::string_view reduce) {
  if (reduce == "add") return Reduce::kSum;
  if (reduce == "multiply") return Reduce::kProduct;
  throw Error(fmt::format("reduce argument must be either add or multiply, got {}.", reduce));
}

}  // namespace

Tensor Tensor::scatter(std::int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce) const {
  TENON_SCOPE(scatter, *this, dim, index, source, reduce)
  return reduced(*this, dim, index, source, old_name(reduce), true);
}
Tensor Tensor::scatter(std::int64_t dim, const Tensor& index, const Scalar& value, std::string_view reduce) const {
  return scatter(dim, index, scalar_tensor_like(value, *this).expand(index.sizes()), reduce);
}
Tensor& Tensor::scatter_(std::int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce) const {
  TENON_SCOPE(scatter_, *this, dim, index, source, reduce)
  return overwrite("scatter_", *this, before_write(*this, {&source}).scatter(dim, index, source, reduce));
}
Tensor& Tensor::scatter_(std::int64_t dim, const Tensor& index, const Scalar& value, std::string_view reduce) const {
  TENON_SCOPE(scatter_, *this, dim, index, value, reduce)
  return overwrite("scatter_", *this, before_write(*this).scatter(dim, index, value, reduce));
}
Tensor Tensor::scatter_reduce(std::int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                              bool include_self) const {
  TENON_SCOPE(scatter_reduce, *this, dim, index, source, reduce, include_self)
  return reduced(*this, dim, index, source, reduction_of(reduce), include_self);
}
Tensor& Tensor::scatter_reduce_(std::int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                                bool include_self) const {
  TENON_SCOPE(scatter_reduce_, *this, dim, index, source, reduce, include_self)
  return overwrite("scatter_reduce_", *this,
                   before_write(*this, {&source}).scatter_reduce(dim, index, source, reduce, include_self));
}

}  // namespace tenon
