// The refusal of operators that need values which are not there.
#include <tenon/ops/support/values.h>

#include <tenon/core/error.h>

#include <fmt/format.h>

namespace tenon::ops {

void check_has_values(const char* op, const Tensor& tensor, const char* what) {
  if (has_values(tensor)) return;
  throw NotImplementedError(
      fmt::format("{}: {} depends on values, and tensors on {} have none", op, what, tensor.device().type().name()));
}

}  // namespace tenon::ops
