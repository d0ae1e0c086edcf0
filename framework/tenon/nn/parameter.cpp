// Parameters and buffers: allocations with the right purpose.
#include <tenon/nn/parameter.h>

#include <tenon/memory/purpose.h>
#include <tenon/ops/ops.h>

namespace tenon::nn {

Tensor new_parameter(IntArrayRef sizes) {
  PurposeGuard purpose(Purpose::kParameter);
  return tenon::empty(sizes);
}

Tensor new_buffer(IntArrayRef sizes, Scalar value, TensorOptions options) {
  PurposeGuard purpose(Purpose::kParameter);
  return tenon::full(sizes, value, options);
}

}  // namespace tenon::nn
