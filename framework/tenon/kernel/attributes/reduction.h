// Attributes of reductions, scans and sorting.
#pragma once

#include <cstdint>

namespace tenon {

/// argmax, argmin, max_dim, min_dim, cumsum, cumprod, cummax, cummin, softmax, log_softmax and their backwards,
/// index_select, gather.
struct DimAttributes {
  std::int32_t dim = 0;
};

/// norm: (sum |x|^p)^(1/p); p = infinity, -infinity and 0 as in PyTorch.
struct NormAttributes {
  double p = 2;
};

/// var: sum (x - mean)^2 / max(0, n - correction); std: its square root.
struct VarAttributes {
  double correction = 1;
};

struct SortAttributes {
  std::int32_t dim = 0;
  bool descending = false;
};

/// The k largest (or smallest), sorted from best to worst.
struct TopkAttributes {
  std::int64_t k = 1;
  std::int32_t dim = 0;
  bool largest = true;
};

}  // namespace tenon
