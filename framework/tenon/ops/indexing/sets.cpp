// Tensors as sets: sorting makes equal elements neighbours, and a new one begins where neighbours differ.
#include <tenon/ops/create/factory.h>
#include <tenon/ops/indexing/search.h>
#include <tenon/ops/indexing/sets.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/reduction.h>
#include <tenon/ops/shape/concat.h>
#include <tenon/ops/shape/view.h>
#include <tenon/ops/support/composite.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/values.h>

namespace tenon {

using namespace ops;

namespace {

using Unique = std::tuple<Tensor, Tensor, Tensor>;

/// Along dim 0: whether an element differs from the one before it; the first does.
Tensor run_starts(const Tensor& sorted) {
  const Tensor first = ones(sorted.narrow(0, 0, 1).sizes(), sorted.options().dtype(kBool));
  return cat({first, sorted.slice(0, 1).ne(sorted.slice(0, 0, -1))}, 0);
}

/// Lengths of the runs that start where `starts`, (n), is true.
Tensor run_lengths(const Tensor& starts) {
  const Tensor places = starts.nonzero().flatten();
  return cat({places.slice(0, 1), places.new_full({1}, starts.numel())}, 0).sub(places);
}

/// Equal elements of each column (dim 0) get the same number, smaller ones smaller numbers.
Tensor ranks(const Tensor& columns) {
  const auto [sorted, order] = columns.sort(0);
  return zeros(order.sizes(), order.options()).scatter_(0, order, run_starts(sorted).to(kInt64).cumsum(0).sub(1));
}

/// The lexicographic rank of each row of (n, c), c > 0: neighbouring columns are joined until there is one.
Tensor row_ranks(const Tensor& rows) {
  Tensor rank = ranks(rows);
  while (rank.size(1) > 1) {
    const std::int64_t paired = rank.size(1) / 2 * 2;
    Tensor joined = rank.slice(1, 0, paired, 2).mul(rows.size(0)).add(rank.slice(1, 1, paired, 2));
    if (paired < rank.size(1)) joined = cat({joined, rank.slice(1, paired)}, 1);
    rank = ranks(joined);
  }
  return rank.select(1, 0);
}

Tensor nothing(const Tensor& like) { return empty({0}, like.options().dtype(kInt64)); }

/// Slices along dim as rows of a matrix. Throws Error where slices are empty.
Tensor as_rows(const char* op, const Tensor& self, std::int64_t at) {
  for (std::int64_t i = 0; i < self.dim(); ++i) {
    if (i != at && self.size(i) == 0) {
      throw Error(std::string(op) +
                  ": there are 0 sized dimensions, and they aren't selected, so unique cannot be applied "
                  "(sizes " +
                  to_string(self.sizes()) + ", dim " + std::to_string(at) + ")");
    }
  }
  return self.movedim(at, 0).reshape({self.size(at), -1});
}

/// These slices along dim, each of them dense, as PyTorch lays them out.
Tensor slices_at(const Tensor& self, std::int64_t at, const Tensor& places) {
  return as_owned(self.movedim(at, 0).index_select(0, places).movedim(0, at));
}

}  // namespace

Unique _unique2(const Tensor& self, bool, bool return_inverse, bool return_counts) {
  TENON_SCOPE(_unique2, self)
  check_has_values("_unique2", self);
  Tensor values, inverse = nothing(self), counts = nothing(self);
  {
    NoGradGuard no_grad;
    const Tensor flat = self.reshape({-1});
    if (flat.numel() == 0) {
      values = flat.clone();
      if (return_inverse) inverse = zeros(self.sizes(), inverse.options());
    } else {
      const auto [sorted, order] = flat.sort(0);
      const Tensor starts = run_starts(sorted);
      values = sorted.masked_select(starts);
      if (return_inverse) {
        const Tensor numbers = starts.to(kInt64).cumsum(0).sub(1);
        inverse = zeros(flat.sizes(), inverse.options()).scatter_(0, order, numbers).view(self.sizes());
      }
      if (return_counts) counts = run_lengths(starts);
    }
  }
  without_derivative("_unique2", {&self}, values);
  return {values, inverse, counts};
}
std::tuple<Tensor, Tensor> _unique(const Tensor& self, bool sorted, bool return_inverse) {
  TENON_SCOPE(_unique, self, sorted, return_inverse)
  auto [values, inverse, counts] = _unique2(self, sorted, return_inverse, false);
  return {values, inverse};
}

Unique unique_dim(const Tensor& self, std::int64_t dim, bool, bool, bool) {
  TENON_SCOPE(unique_dim, self, dim)
  check_has_values("unique_dim", self);
  const int at = wrap_dim(dim, self.impl().rank(), false);
  Tensor values, inverse, counts;
  {
    NoGradGuard no_grad;
    if (self.size(at) == 0) {
      values = self.clone();
      inverse = counts = nothing(self);
    } else {
      const auto [sorted, order] = row_ranks(as_rows("unique_dim", self, at)).sort(0);
      const Tensor starts = run_starts(sorted);
      values = slices_at(self, at, order.masked_select(starts));
      inverse = zeros_like(order).scatter_(0, order, starts.to(kInt64).cumsum(0).sub(1));
      counts = run_lengths(starts);
    }
  }
  without_derivative("unique_dim", {&self}, values);
  return {values, inverse, counts};
}

Unique unique_dim_consecutive(const Tensor& self, std::int64_t dim, bool return_inverse, bool return_counts) {
  TENON_SCOPE(unique_dim_consecutive, self, dim, return_inverse, return_counts)
  check_has_values("unique_consecutive", self);
  const int at = wrap_dim(dim, self.impl().rank(), false);
  Tensor values, inverse = nothing(self), counts = nothing(self);
  {
    NoGradGuard no_grad;
    if (self.size(at) == 0) {
      values = self.clone();
    } else {
      const Tensor starts = run_starts(as_rows("unique_dim_consecutive", self, at)).any(1);
      values = slices_at(self, at, starts.nonzero().flatten());
      if (return_inverse) inverse = starts.to(kInt64).cumsum(0).sub(1);
      if (return_counts) counts = run_lengths(starts);
    }
  }
  without_derivative("unique_consecutive", {&self}, values);
  return {values, inverse, counts};
}

Unique unique_consecutive(const Tensor& self, bool return_inverse, bool return_counts,
                          std::optional<std::int64_t> dim) {
  TENON_SCOPE(unique_consecutive, self, return_inverse, return_counts, dim)
  // As PyTorch: of rows, all three are given whether asked for or not; and a vector is rows where its dimension is -1.
  if (dim && !(*dim == 0 && self.dim() == 1)) {
    return unique_dim_consecutive(self, *dim, /*return_inverse=*/true, /*return_counts=*/true);
  }
  auto [values, inverse, counts] = unique_dim_consecutive(self.reshape({-1}), 0, return_inverse, return_counts);
  return {values, return_inverse ? inverse.view(self.sizes()) : inverse, counts};
}

Tensor isin(const Tensor& elements, const Tensor& test_elements, bool, bool invert) {
  TENON_SCOPE(isin, elements, test_elements, invert)
  NoGradGuard no_grad;
  check_same_device("isin", {&elements, &test_elements});
  const Dtype dtype = result_type(elements, test_elements);
  const Tensor wanted = elements.to(dtype);
  if (test_elements.numel() == 0) return full(elements.sizes(), invert, elements.options().dtype(kBool));
  const Tensor sorted = std::get<0>(test_elements.to(dtype).reshape({-1}).sort(0));
  const Tensor place = searchsorted(sorted, wanted).clamp_max(sorted.numel() - 1);
  const Tensor found = sorted.index_select(0, place.reshape({-1})).view(elements.sizes());
  return invert ? found.ne(wanted) : found.eq(wanted);
}
Tensor isin(const Tensor& elements, const Scalar& test_element, bool assume_unique, bool invert) {
  return isin(elements, wrapped_scalar(test_element, ops::state_of(elements)), assume_unique, invert);
}
Tensor isin(const Scalar& element, const Tensor& test_elements, bool assume_unique, bool invert) {
  return isin(wrapped_scalar(element, ops::state_of(test_elements)), test_elements, assume_unique, invert);
}

}  // namespace tenon
