// Sizes of reductions.
#include <tenon/ops/support/shapes.h>

#include <string>

namespace tenon::ops {

Dims reduced_sizes(const Dims& sizes, std::uint32_t mask, bool keep) {
  Dims result;
  for (int i = 0; i < sizes.rank(); ++i) {
    if (!(mask >> i & 1)) {
      result.push_back(sizes[i]);
    } else if (keep) {
      result.push_back(1);
    }
  }
  return result;
}

std::uint32_t dim_mask(OptionalIntArrayRef dims, int rank) {
  if (!dims.has_value() || dims->empty()) return rank == 0 ? 0 : (1u << rank) - 1;
  std::uint32_t mask = 0;
  for (const std::int64_t dim : *dims) {
    const int wrapped = wrap_dim(dim, rank);
    if (rank == 0) continue;
    if (mask >> wrapped & 1) {
      throw Error("dim " + std::to_string(wrapped) + " appears multiple times in the list of dims");
    }
    mask |= 1u << wrapped;
  }
  return mask;
}

Tensor unsqueeze_mask(const Tensor& tensor, std::uint32_t mask, int rank) {
  Tensor result = tensor;
  for (int i = 0; i < rank; ++i) {
    if (mask >> i & 1) result = result.unsqueeze(i);
  }
  return result;
}

}  // namespace tenon::ops
