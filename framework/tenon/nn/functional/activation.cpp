// Functional activations: nearly all are a row of the pointwise list.
#include <tenon/nn/functional/activation.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/ops/ops.h>
#include <tenon/ops/pointwise/unary.h>

#include <fmt/format.h>

#include <initializer_list>

namespace tenon::nn::functional {
namespace {

template <class Row>
Tensor apply(const Tensor& x, bool inplace, std::initializer_list<double> parameters = {}) {
  PointwiseAttributes attributes;
  int i = 0;
  for (const double p : parameters) attributes.parameters[i++] = Scalar(p).value();
  return inplace ? ops::unary_inplace<Row>(x, attributes) : ops::unary<Row>(x, attributes);
}

Tensor as_dtype(const Tensor& x, const std::optional<Dtype>& dtype) { return dtype ? x.to(*dtype) : x; }

}  // namespace

Tensor elu(Tensor x, const ELUFuncOptions& o) { return apply<pointwise::Elu>(x, o.inplace(), {o.alpha(), 1, 1}); }
Tensor selu(Tensor x, const SELUFuncOptions& o) { return apply<pointwise::Selu>(x, o.inplace()); }
Tensor celu(Tensor x, const CELUFuncOptions& o) {
  if (o.alpha() == 0) throw Error("ZeroDivisionError: alpha cannot be 0 for CELU");
  return apply<pointwise::Celu>(x, o.inplace(), {o.alpha()});
}
Tensor relu(Tensor x, const ReLUFuncOptions& o) { return apply<pointwise::Relu>(x, o.inplace()); }
Tensor relu6(Tensor x, const ReLU6FuncOptions& o) { return apply<pointwise::Relu6>(x, o.inplace()); }
Tensor leaky_relu(Tensor x, const LeakyReLUFuncOptions& o) {
  return apply<pointwise::LeakyRelu>(x, o.inplace(), {o.negative_slope()});
}
Tensor hardtanh(Tensor x, const HardtanhFuncOptions& o) {
  return apply<pointwise::Hardtanh>(x, o.inplace(), {o.min_val(), o.max_val()});
}
Tensor threshold(Tensor x, const ThresholdFuncOptions& o) {
  return apply<pointwise::Threshold>(x, o.inplace(), {o.threshold(), o.value()});
}
Tensor gelu(const Tensor& x, const GELUFuncOptions& o) {
  if (o.approximate() == "none") return apply<pointwise::Gelu>(x, false);
  if (o.approximate() == "tanh") return apply<pointwise::GeluTanh>(x, false);
  throw Error(fmt::format("gelu: approximate argument must be either none or tanh, not '{}'", o.approximate()));
}
Tensor hardshrink(const Tensor& x, const HardshrinkFuncOptions& o) {
  return apply<pointwise::Hardshrink>(x, false, {o.lambda()});
}
Tensor softshrink(const Tensor& x, const SoftshrinkFuncOptions& o) {
  if (!(o.lambda() >= 0)) {
    throw Error(fmt::format("lambda must be greater or equal to 0, but found to be {}.", o.lambda()));
  }
  return apply<pointwise::Softshrink>(x, false, {o.lambda()});
}
Tensor softplus(const Tensor& x, const SoftplusFuncOptions& o) {
  return apply<pointwise::Softplus>(x, false, {o.beta(), o.threshold()});
}
Tensor logsigmoid(const Tensor& x) { return apply<pointwise::LogSigmoid>(x, false); }
Tensor silu(const Tensor& x) { return apply<pointwise::Silu>(x, false); }
Tensor mish(const Tensor& x) { return apply<pointwise::Mish>(x, false); }
Tensor softsign(const Tensor& x) { return apply<pointwise::Softsign>(x, false); }
Tensor tanhshrink(const Tensor& x) { return apply<pointwise::Tanhshrink>(x, false); }

Tensor rrelu(Tensor x, const RReLUFuncOptions& o) {
  if (!o.training())
    return leaky_relu(x, LeakyReLUOptions().negative_slope((o.lower() + o.upper()) / 2).inplace(o.inplace()));
  Tensor slope;
  {
    NoGradGuard no_grad;
    slope = tenon::empty_like(x).uniform_(o.lower(), o.upper());
    slope = tenon::where(x.ge(0), tenon::ones_like(x), slope);
  }
  return o.inplace() ? x.mul_(slope) : x.mul(slope);
}

Tensor prelu(const Tensor& x, const Tensor& weight) {
  Tensor slope = weight;
  if (weight.numel() != 1) {
    const std::int64_t channels = x.dim() > 1 ? x.size(1) : 1;
    if (weight.numel() != channels) {
      throw Error(
          fmt::format("Mismatch of parameter numbers and input channel size. Found parameter numbers = {} and channel "
                      "size = {}.",
                      weight.numel(), channels));
    }
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(x.dim()), 1);
    if (x.dim() > 1) sizes[1] = channels;
    slope = weight.view(sizes);
  }
  return tenon::relu(x) - slope * tenon::relu(-x);
}

Tensor glu(const Tensor& x, const GLUFuncOptions& o) {
  if (x.dim() == 0) throw Error("glu does not support scalars because halving size must be even");
  if (x.size(o.dim()) % 2 != 0) {
    throw Error(fmt::format("Halving dimension must be even, but dimension {} is size {}", o.dim(), x.size(o.dim())));
  }
  const std::vector<Tensor> halves = x.chunk(2, o.dim());
  return halves[0] * tenon::sigmoid(halves[1]);
}

Tensor softmax(const Tensor& x, const SoftmaxFuncOptions& o) { return as_dtype(x, o.dtype()).softmax(o.dim()); }
Tensor softmin(const Tensor& x, const SoftminFuncOptions& o) { return (-as_dtype(x, o.dtype())).softmax(o.dim()); }
Tensor log_softmax(const Tensor& x, const LogSoftmaxFuncOptions& o) {
  return as_dtype(x, o.dtype()).log_softmax(o.dim());
}

Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxFuncOptions& o) {
  Tensor noise;
  {
    NoGradGuard no_grad;
    noise = tenon::empty_like(logits).exponential_().log_().neg_();
  }
  const Tensor soft = ((logits + noise) / o.tau()).softmax(o.dim());
  if (!o.hard()) return soft;
  // One-hot forward, soft backward.
  const Tensor index = std::get<1>(soft.max(o.dim(), /*keepdim=*/true));
  return tenon::zeros_like(logits).scatter(o.dim(), index, 1.0) - soft.detach() + soft;
}

}  // namespace tenon::nn::functional
