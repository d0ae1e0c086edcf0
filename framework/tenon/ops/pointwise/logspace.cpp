// The factory whose elements are powers. Declared in factory.h.
#include <tenon/ops/create/factory.h>
#include <tenon/ops/create/with_grad.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/support/operator_scope.h>

#include <cmath>

namespace tenon {

Tensor logspace(const Scalar& start, const Scalar& end, std::int64_t steps, double base, const TensorOptions& options) {
  TENON_SCOPE(logspace, start, end, steps, base, options)
  if (options.has_dtype() && !is_floating_point(options.dtype())) {
    const TensorOptions exact = options.dtype(kFloat64).requires_grad(std::nullopt);
    return tenon::pow(Scalar(base), tenon::linspace(start, end, steps, exact)).to(options.dtype());
  }
  const Tensor exponents = tenon::linspace(start, end, steps, options.requires_grad(std::nullopt));
  return ops::with_grad(exponents.mul(std::log(base)).exp(), options);
}

}  // namespace tenon
