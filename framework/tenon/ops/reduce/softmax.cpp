// Softmax and its logarithm along a dimension, and logsumexp.
#include <tenon/autograd/kept_results.h>
#include <tenon/kernel/attributes/reduction.h>
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/softmax.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/support.h>

#include <limits>

namespace tenon {

using namespace ops;

namespace {

Tensor softmax_backward(OperatorId op, const Tensor& gradient, const Tensor& y, int at) {
  Tensor result = allocate_like(y, y.impl().sizes(), y.scalar_type());
  const DimAttributes attributes{at};
  run(op, ops::state_of(y), {view_of(result)}, {view_of(gradient), view_of(y)}, &attributes);
  return result;
}

Tensor softmax_impl(OperatorId op, bool logarithm, const Tensor& self, std::int64_t dim, std::optional<Dtype> dtype) {
  const Tensor input = dtype ? self.to(*dtype) : self;
  check_floating(logarithm ? "log_softmax" : "softmax", input);
  const int at = wrap_dim(dim, input.impl().rank());
  Recording recording =
      record<1>(logarithm ? "LogSoftmaxBackward0" : "SoftmaxBackward0", {&input}, [at, logarithm](Backward& b) {
        const Tensor y = b.saved(0);
        const Tensor& gradient = b.grad();
        if (differentiating_twice()) {
          const auto total = [&](const Tensor& tensor) { return y.dim() == 0 ? tensor : tensor.sum(at, true); };
          if (logarithm) {
            b.set(0, gradient.sub(y.exp().mul(total(gradient))));
          } else {
            b.set(0, y.mul(gradient.sub(total(gradient.mul(y)))));
          }
        } else {
          b.set(0, softmax_backward(logarithm ? TENON_OP("log_softmax_backward") : TENON_OP("softmax_backward"),
                                    gradient, y, at));
        }
      });
  Tensor result;
  autograd::computed_once(logarithm ? "log_softmax" : "softmax", {&result}, [&] {
    result = allocate_like(input, input.impl().sizes(), input.scalar_type());
    const DimAttributes attributes{at};
    run(op, ops::state_of(input), {view_of(result)}, {view_of(input)}, &attributes);
  });
  if (recording) {
    recording.output(result);
    recording.save_output(0, result);
  }
  return result;
}

}  // namespace

Tensor Tensor::softmax(std::int64_t dim, std::optional<Dtype> dtype) const {
  TENON_AUTOCAST_METHOD(softmax, *this, dim, dtype)
  return softmax_impl(TENON_OP("softmax"), false, *this, dim, dtype);
}
Tensor Tensor::log_softmax(std::int64_t dim, std::optional<Dtype> dtype) const {
  TENON_AUTOCAST_METHOD(log_softmax, *this, dim, dtype)
  return softmax_impl(TENON_OP("log_softmax"), true, *this, dim, dtype);
}
Tensor softmin(const Tensor& self, std::int64_t dim, std::optional<Dtype> dtype) {
  TENON_SCOPE(softmin, self, dim, dtype)
  return self.neg().softmax(dim, dtype);
}

Tensor Tensor::logsumexp(IntArrayRef dim, bool keepdim) const {
  TENON_AUTOCAST_METHOD(logsumexp, *this, dim, keepdim)
  if (!is_floating_point()) return to(ops::floating_default("logsumexp")).logsumexp(dim, keepdim);
  const std::uint32_t mask = dim_mask(dim, impl().rank());
  if (numel() == 0) return exp().sum(OptionalIntArrayRef(dim), keepdim).log();  // of nothing: -inf
  const Dims kept = reduced_sizes(impl().sizes(), mask, true);
  Recording recording = record<2>("LogsumexpBackward0", {this}, [kept](Backward& b) {
    b.set(0, b.grad().view(kept).mul(b.saved(0).sub(b.saved(1).view(kept)).exp()));
  });
  Tensor result;
  {
    NoGradGuard no_grad;
    Tensor highest = amax(dim, true);
    highest = highest.masked_fill(highest.abs().eq(std::numeric_limits<double>::infinity()), 0);
    result = sub(highest).exp().sum(OptionalIntArrayRef(dim), true).log().add(highest);
    if (!keepdim) result = as_owned(result.view(reduced_sizes(impl().sizes(), mask, false)));
  }
  if (recording) {
    recording.save(0, *this);
    recording.output(result);
    recording.save_output(1, result);
  }
  return result;
}

}  // namespace tenon
