// What the _out forms share.
#include <tenon/autograd/variable.h>
#include <tenon/ops/support/layout.h>
#include <tenon/ops/support/out_argument.h>
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/write_checks.h>

namespace tenon::detail {

void check_out_argument(const OutRule& rule, const char* op, const Tensor& argument) {
  if (!autograd::any_requires_grad(argument) || !rule.differentiable) return;
  throw Error(std::string(op) +
              "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
              "requires grad.");
}

Tensor accumulated_in(const OutRule& rule, const char* op, const Tensor& self, Dtype dtype) {
  if (rule.dtype == OutRule::Asks::kSame) return self.to(dtype);
  if (!self.is_floating_point()) return self;  // which the function refuses
  ops::check_castable(op, self.scalar_type(), dtype);
  return self.to(dtype);
}

Tensor& write_out(const OutRule& rule, const char* op, Tensor& out, const Tensor& result) {
  check_out_argument(rule, op, out);
  ops::check_same_device(op, {&out, &result});
  const Dtype dtype = out.scalar_type();
  switch (rule.dtype) {
    case OutRule::Asks::kCastable:
      ops::check_castable(op, result.scalar_type(), dtype);
      break;
    case OutRule::Asks::kSame:
      if (dtype == result.scalar_type()) break;
      throw Error(std::string("Expected out tensor to have dtype ") + result.dtype().name() + ", but got " +
                  out.dtype().name() + " instead (in operator " + op + ")");
    case OutRule::Asks::kTruth:
      if (dtype == kBool || dtype == kUInt8) break;
      throw Error(std::string(op) + " only supports bool tensor for result, got: " + toString(dtype));
  }
  NoGradGuard no_grad;
  ops::check_written(out);
  if (out.sizes() != result.sizes()) {
    const TensorImpl& like = result.impl();
    ops::resize_out(out, like.sizes(),
                    like.is_non_overlapping_and_dense() ? like.strides() : contiguous_strides(like.sizes()));
  }
  return out.copy_(result);
}

}  // namespace tenon::detail
