// Activations beyond the rows of kernel/rows/unary.inl: with other arguments, or of several operands.
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/pointwise/activation.h>
#include <tenon/ops/pointwise/unary.h>
#include <tenon/ops/support/scalar_operand.h>
#include <tenon/ops/support/support.h>

namespace tenon {

using namespace ops;

Tensor gelu(const Tensor& self, std::string_view approximate) {
  TENON_SCOPE(gelu, self, approximate)
  check_floating("GeluKernelImpl", self);
  if (approximate == "tanh") return ops::unary<pointwise::GeluTanh>(self);
  if (approximate != "none")
    throw Error("approximate argument must be either none or tanh, got '" + std::string(approximate) + "'");
  return ops::unary<pointwise::Gelu>(self);
}
/// Elements are compared with the one; the other is written as one of them.
static PointwiseAttributes threshold_parameters(const Tensor& self, const Scalar& threshold, const Scalar& value) {
  const Dtype dtype = self.scalar_type();
  return {{computed_element_of(threshold, dtype), element_of(value, dtype), {}}};
}
Tensor threshold(const Tensor& self, const Scalar& threshold, const Scalar& value) {
  TENON_SCOPE(threshold, self, threshold, value)
  return ops::unary<pointwise::Threshold>(self, threshold_parameters(self, threshold, value));
}
Tensor& threshold_(Tensor& self, const Scalar& threshold, const Scalar& value) {
  TENON_SCOPE(threshold_, self, threshold, value)
  return ops::unary_inplace<pointwise::Threshold>(self, threshold_parameters(self, threshold, value));
}

Tensor prelu(const Tensor& self, const Tensor& weight) {
  TENON_AUTOCAST(prelu, self, weight)
  Tensor slopes = weight;
  if (weight.numel() != 1) {
    const std::int64_t channels = self.dim() > 1 ? self.size(1) : 1;
    if (channels != weight.numel()) {
      throw Error("Mismatch of parameter numbers and input channel size. Found parameter numbers = " +
                  std::to_string(weight.numel()) + " and channel size = " + std::to_string(channels) + ".");
    }
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(self.dim()), 1);
    sizes[1] = channels;
    slopes = weight.view(sizes);
  } else if (weight.dim() > self.dim()) {
    slopes = weight.view({});  // a number: the result has self's sizes
  }
  // What is positive takes no part in the slope's gradient, infinite or not.
  const Tensor is_positive = self.gt(0);
  return where(is_positive, self, self.masked_fill(is_positive, 0).mul(slopes));
}
Tensor rrelu(const Tensor& self, const Scalar& lower, const Scalar& upper, bool training) {
  TENON_SCOPE(rrelu, self, lower, upper, training)
  const Tensor x = self.contiguous();
  if (!training) return leaky_relu(x, (lower.toDouble() + upper.toDouble()) / 2);
  Tensor slopes;
  {
    NoGradGuard no_grad;
    slopes = empty_like(x).uniform_(lower.toDouble(), upper.toDouble());
  }
  return where(x.gt(0), x, x.mul(slopes));
}
Tensor& rrelu_(Tensor& self, const Scalar& lower, const Scalar& upper, bool training) {
  TENON_SCOPE(rrelu_, self, lower, upper, training)
  if (!training) return leaky_relu_(self, (lower.toDouble() + upper.toDouble()) / 2);
  return self.copy_(rrelu(self, lower, upper, training));
}
Tensor glu(const Tensor& self, std::int64_t dim) {
  TENON_SCOPE(glu, self, dim)
  if (self.dim() == 0) throw Error("glu does not support scalars because halving size must be even");
  check_floating("glu_cpu", self);
  const int at = wrap_dim(dim, self.impl().rank());
  const std::int64_t length = self.size(at);
  if (length % 2 != 0) {
    throw Error("Halving dimension must be even, but dimension " + std::to_string(at) + " is size " +
                std::to_string(length));
  }
  return self.narrow(at, 0, length / 2).mul(self.narrow(at, length / 2, length / 2).sigmoid());
}

}  // namespace tenon
