// Type promotion, as in PyTorch's table: bool < integers < floats; uint8 with a signed integer widens to hold both.
#include <tenon/core/dtype.h>

#include <algorithm>

namespace tenon {

Dtype promote_types(Dtype a, Dtype b) {
  if (a == b) return a;
  const Dtype low = std::min(a, b);
  const Dtype high = std::max(a, b);
  if (low == Dtype::kFloat16 && high == Dtype::kBFloat16) return Dtype::kFloat32;
  if (low == Dtype::kUInt8 && high == Dtype::kInt8) return Dtype::kInt16;
  return high;
}

}  // namespace tenon
