// Functional activations: the operators, with their parameters and their in-place forms from the options.
#include <tenon/nn/functional/activation.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/ops/ops.h>

namespace tenon::nn::functional {

Tensor elu(Tensor x, const ELUFuncOptions& o) {
  return o.inplace() ? tenon::elu_(x, o.alpha()) : tenon::elu(x, o.alpha());
}
Tensor selu(Tensor x, const SELUFuncOptions& o) { return o.inplace() ? tenon::selu_(x) : tenon::selu(x); }
Tensor celu(Tensor x, const CELUFuncOptions& o) {
  return o.inplace() ? tenon::celu_(x, o.alpha()) : tenon::celu(x, o.alpha());
}
Tensor relu(Tensor x, const ReLUFuncOptions& o) { return o.inplace() ? tenon::relu_(x) : tenon::relu(x); }
Tensor relu6(Tensor x, const ReLU6FuncOptions& o) { return o.inplace() ? tenon::relu6_(x) : tenon::relu6(x); }
Tensor rrelu(Tensor x, const RReLUFuncOptions& o) {
  return o.inplace() ? tenon::rrelu_(x, o.lower(), o.upper(), o.training())
                     : tenon::rrelu(x, o.lower(), o.upper(), o.training());
}
Tensor leaky_relu(Tensor x, const LeakyReLUFuncOptions& o) {
  return o.inplace() ? tenon::leaky_relu_(x, o.negative_slope()) : tenon::leaky_relu(x, o.negative_slope());
}
Tensor hardtanh(Tensor x, const HardtanhFuncOptions& o) {
  return o.inplace() ? tenon::hardtanh_(x, o.min_val(), o.max_val()) : tenon::hardtanh(x, o.min_val(), o.max_val());
}
Tensor threshold(Tensor x, const ThresholdFuncOptions& o) {
  return o.inplace() ? tenon::threshold_(x, o.threshold(), o.value()) : tenon::threshold(x, o.threshold(), o.value());
}
Tensor prelu(const Tensor& x, const Tensor& weight) { return tenon::prelu(x, weight); }
Tensor gelu(const Tensor& x, const GELUFuncOptions& o) { return tenon::gelu(x, o.approximate()); }
Tensor glu(const Tensor& x, const GLUFuncOptions& o) { return tenon::glu(x, o.dim()); }
Tensor hardshrink(const Tensor& x, const HardshrinkFuncOptions& o) { return tenon::hardshrink(x, o.lambda()); }
Tensor softshrink(const Tensor& x, const SoftshrinkFuncOptions& o) { return tenon::softshrink(x, o.lambda()); }
Tensor softplus(const Tensor& x, const SoftplusFuncOptions& o) { return tenon::softplus(x, o.beta(), o.threshold()); }
Tensor logsigmoid(const Tensor& x) { return tenon::log_sigmoid(x); }
Tensor silu(const Tensor& x) { return tenon::silu(x); }
Tensor mish(const Tensor& x) { return tenon::mish(x); }
Tensor softsign(const Tensor& x) { return tenon::softsign(x); }
Tensor tanhshrink(const Tensor& x) { return tenon::tanhshrink(x); }

Tensor softmax(const Tensor& x, const SoftmaxFuncOptions& o) { return tenon::softmax(x, o.dim(), o.dtype()); }
Tensor softmin(const Tensor& x, const SoftminFuncOptions& o) { return tenon::softmin(x, o.dim(), o.dtype()); }
Tensor log_softmax(const Tensor& x, const LogSoftmaxFuncOptions& o) {
  return tenon::log_softmax(x, o.dim(), o.dtype());
}

Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxFuncOptions& o) {
  Tensor noise;
  {
    NoGradGuard no_grad;
    noise = tenon::empty_like(logits).exponential_().log_().neg_();
  }
  Tensor soft = ((logits + noise) / o.tau()).softmax(o.dim());
  if (!o.hard()) return soft;
  // One-hot forward, soft backward.
  const Tensor index = std::get<1>(soft.max(o.dim(), /*keepdim=*/true));
  return tenon::zeros_like(logits).scatter(o.dim(), index, 1.0) - soft.detach() + soft;
}

}  // namespace tenon::nn::functional
