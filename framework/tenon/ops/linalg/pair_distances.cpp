// Distances of all pairs of rows: the norm is another operator's. pdist selects both partners, cdist broadcasts them or
// multiplies.
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/indexing/indexing.h>
#include <tenon/ops/linalg/linear.h>
#include <tenon/ops/linalg/pair_distances.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/reduction.h>
#include <tenon/ops/reduce/row_norm.h>
#include <tenon/ops/shape/concat.h>
#include <tenon/ops/support/support.h>
#include <tenon/tensor/literal.h>

#include <fmt/format.h>

#include <vector>

namespace tenon {

using namespace ops;

Tensor pdist(const Tensor& input, double p) {
  TENON_AUTOCAST(pdist, input, p)
  check_floating("pdist", input);
  if (input.dim() != 2) throw Error(fmt::format("pdist only supports 2D tensors, got: {}D", input.dim()));
  if (p < 0) throw Error(fmt::format("pdist only supports non-negative p values, got {}", p));
  std::vector<std::int64_t> first, second;
  for (std::int64_t i = 0; i < input.size(0); ++i) {
    for (std::int64_t j = i + 1; j < input.size(0); ++j) {
      first.push_back(i);
      second.push_back(j);
    }
  }
  const auto rows = [&](const std::vector<std::int64_t>& list) {
    return input.index_select(0, tenon::tensor(list, TensorOptions(kInt64)).to(input.device()));
  };
  return row_norm(rows(first).sub(rows(second)), p);
}

namespace {

/// |a - b|^2 = |a|^2 - 2 a b + |b|^2 of all rows, as one product; no gradient where it is 0.
Tensor euclidean_by_product(const Tensor& a, const Tensor& b) {
  const Tensor a_square = a.square().sum(-1, true), b_square = b.square().sum(-1, true);
  const Tensor left = cat({a.mul(-2), a_square, ones_like(a_square)}, -1);
  const Tensor right = cat({b, ones_like(b_square), b_square}, -1);
  const Tensor squares = left.matmul(right.mT()).clamp_min(0);
  const Tensor zero = squares.eq(0);
  return squares.masked_fill(zero, 1).sqrt().masked_fill(zero, 0);
}

}  // namespace

Tensor cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<std::int64_t> compute_mode) {
  TENON_AUTOCAST(cdist, x1, x2, p, compute_mode)
  check_floating("cdist", x1);
  check_floating("cdist", x2);
  if (x1.dim() < 2) throw Error(fmt::format("cdist only supports at least 2D tensors, X1 got: {}D", x1.dim()));
  if (x2.dim() < 2) throw Error(fmt::format("cdist only supports at least 2D tensors, X2 got: {}D", x2.dim()));
  if (x1.size(-1) != x2.size(-1)) {
    throw Error(fmt::format("X1 and X2 must have the same number of columns. X1: {} X2: {}", x1.size(-1), x2.size(-1)));
  }
  if (p < 0) throw Error(fmt::format("cdist only supports non-negative p values, got {}", p));
  if (compute_mode && (*compute_mode < 0 || *compute_mode > 2)) {
    throw Error(fmt::format("possible modes: 0, 1, 2, but was: {}", *compute_mode));
  }
  check_same_device("cdist", {&x1, &x2});
  const std::int64_t mode = compute_mode.value_or(0);
  constexpr std::int64_t kFewRows = 25;
  const bool many = mode == 1 || (mode == 0 && (x1.size(-2) > kFewRows || x2.size(-2) > kFewRows));
  if (p == 2 && many && x1.numel() > 0 && x2.numel() > 0) return euclidean_by_product(x1, x2);
  return row_norm(x1.unsqueeze(-2).sub(x2.unsqueeze(-3)), p);
}

}  // namespace tenon
