// What the _out forms share.
#include <tenon/autograd/variable.h>
#include <tenon/ops/pointwise/binary_operands.h>
#include <tenon/ops/support/out_argument.h>

namespace tenon::detail {

void check_out_argument(const char* op, const Tensor& argument) {
  if (autograd::any_requires_grad(argument)) {
    throw Error(
        std::string(op) +
        "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
        "requires grad.");
  }
}

Tensor& write_out(const char* op, Tensor& out, const Tensor& result) {
  check_out_argument(op, out);
  ops::check_same_device(op, {&out, &result});
  ops::check_castable(op, result.scalar_type(), out.scalar_type());
  NoGradGuard no_grad;
  if (out.sizes() != result.sizes()) out.resize_(result.sizes());
  ops::check_written(out);
  return out.copy_(result);
}

}  // namespace tenon::detail
