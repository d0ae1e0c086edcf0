// Attributes of indexing kernels.
#pragma once

#include <cstdint>

namespace tenon {

/// index, index_put. dims[i] is the number to print for the i-th index tensor in an out-of-bounds error.
struct IndexAttributes {
  bool accumulate = false;
  std::int32_t dims[16] = {};
};

struct IndexAddAttributes {
  std::int32_t dim = 0;
  double alpha = 1;
};

struct ScatterAttributes {
  std::int32_t dim = 0;
  bool add = false;  ///< false: assign
};

struct EmbeddingBackwardAttributes {
  std::int64_t padding_index = -1;  ///< rows with this index get no gradient; -1 = none
  bool scale_by_frequency = false;
};

struct TriangleAttributes {
  std::int64_t diagonal = 0;
};

}  // namespace tenon
