// Distances of all pairs of rows: both partners are selected, the norm is another operator's.
#include <tenon/ops/indexing/indexing.h>
#include <tenon/ops/linalg/pair_distances.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/reduction.h>
#include <tenon/ops/support/support.h>
#include <tenon/tensor/literal.h>

#include <fmt/format.h>

#include <vector>

namespace tenon {

using namespace ops;

Tensor pdist(const Tensor& input, double p) {
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

}  // namespace tenon
