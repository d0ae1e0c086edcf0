// Dimensions of several operands: dropped, ordered and joined.
#include "kernels/offsets.cuh"

#include <algorithm>
#include <cstdlib>

namespace tenon::cuda {

void fill_nest(const NestParts& nest, const TensorView* const* views, int operands, NestOrder order) {
  struct Dimension {
    i64 size = 1;
    i64 strides[8] = {};
  };
  const TensorView& shape = *views[0];
  Dimension dimensions[kMaxRank];  // outermost first, those of size 1 left out
  int rank = 0;
  i64 total = 1;
  for (int d = 0; d < shape.rank; ++d) {
    total *= shape.sizes[d];
    if (shape.sizes[d] == 1) continue;
    Dimension& dimension = dimensions[rank++];
    dimension.size = shape.sizes[d];
    for (int k = 0; k < operands; ++k) {
      const TensorView& view = *views[k];
      const int own = d - (shape.rank - view.rank);
      const bool broadcast = own < 0 || view.sizes[own] == 1;
      dimension.strides[k] = broadcast ? 0 : view.strides[own] * static_cast<i64>(size_of(view.dtype));
    }
  }
  if (order == NestOrder::kReordered) {
    std::stable_sort(dimensions, dimensions + rank,
                     [](const Dimension& a, const Dimension& b) { return a.strides[0] > b.strides[0]; });
  }
  int joined = 0;  // how many dimensions are left; the last of them may take in the next
  for (int d = 0; d < rank; ++d) {
    const Dimension& inner = dimensions[d];
    const bool joins = joined > 0 && std::equal(inner.strides, inner.strides + operands, dimensions[joined - 1].strides,
                                                [&](i64 one, i64 outer) { return outer == one * inner.size; });
    if (joins) {
      const i64 size = dimensions[joined - 1].size * inner.size;
      dimensions[joined - 1] = inner;
      dimensions[joined - 1].size = size;
    } else {
      dimensions[joined++] = inner;
    }
  }
  if (joined == 0) joined = 1;  // one element: a dimension of size 1
  *nest.total = total;
  *nest.rank = joined;
  *nest.wide = total > 0x7fffffff;
  for (int k = 0; k < operands; ++k) nest.data[k] = static_cast<char*>(views[k]->data);
  for (int d = 0; d < joined; ++d) {
    const Dimension& dimension = dimensions[joined - 1 - d];
    nest.sizes[d] = Divider(static_cast<u64>(std::max<i64>(dimension.size, 1)));
    for (int k = 0; k < operands; ++k) nest.strides[k][d] = dimension.strides[k];
  }
}

}  // namespace tenon::cuda
