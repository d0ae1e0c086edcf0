// For operators that are written with other operators.
#include <tenon/ops/support/composite.h>
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/write_checks.h>

namespace tenon::ops {

Tensor& overwrite(const char* op, const Tensor& self, const Tensor& result) {
  check_castable(op, result.scalar_type(), self.scalar_type());
  check_inplace_sizes(self, result.impl().sizes());
  return self.copy_(result);
}

Tensor before_write(const Tensor& self, std::initializer_list<const Tensor*> others) {
  if (!autograd::modes.grad_enabled) return self;
  bool recorded = autograd::requires_grad(self);
  for (const Tensor* other : others) recorded = recorded || autograd::requires_grad(*other);
  return recorded ? self.clone() : self;
}

void without_derivative(const char* op, std::initializer_list<const Tensor*> inputs, const Tensor& result) {
  Recording recording = record<0>("NotImplemented", inputs, [op](Backward&) {
    throw Error(std::string("the derivative for '") + op + "' is not implemented.");
  });
  recording.output(result);
}

}  // namespace tenon::ops
