// Functional activations: F::elu(x, F::ELUFuncOptions().alpha(0.4).inplace(true)).
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/options/activation_options.h>
#include <tenon/nn/options/arg.h>
#include <tenon/tensor/tensor.h>

#include <optional>

namespace tenon::nn::functional {

using ELUFuncOptions = ELUOptions;
using SELUFuncOptions = SELUOptions;
using CELUFuncOptions = CELUOptions;
using GLUFuncOptions = GLUOptions;
using GELUFuncOptions = GELUOptions;
using HardshrinkFuncOptions = HardshrinkOptions;
using SoftshrinkFuncOptions = SoftshrinkOptions;
using HardtanhFuncOptions = HardtanhOptions;
using LeakyReLUFuncOptions = LeakyReLUOptions;
using ReLUFuncOptions = ReLUOptions;
using ReLU6FuncOptions = ReLU6Options;
using SoftplusFuncOptions = SoftplusOptions;
using ThresholdFuncOptions = ThresholdOptions;

/// With a dtype the input is converted before.
#define TENON_SOFTMAX_OPTIONS(Name)                        \
  struct Name {                                            \
    Name(std::int64_t dim) : dim_(dim) {} /* NOLINT */     \
    TENON_ARG(std::int64_t, dim);                          \
    /** What the input is converted to before. */          \
    TENON_ARG(std::optional<Dtype>, dtype) = std::nullopt; \
  };
TENON_SOFTMAX_OPTIONS(SoftmaxFuncOptions)
TENON_SOFTMAX_OPTIONS(SoftminFuncOptions)
TENON_SOFTMAX_OPTIONS(LogSoftmaxFuncOptions)
#undef TENON_SOFTMAX_OPTIONS

struct GumbelSoftmaxFuncOptions {
  TENON_ARG(double, tau) = 1.0;   ///< the temperature: the smaller, the nearer to one-hot
  TENON_ARG(bool, hard) = false;  ///< give one-hot vectors, with the gradient of the soft ones
  TENON_ARG(int, dim) = -1;       ///< along which the elements sum up to 1
};
struct RReLUFuncOptions {
  TENON_ARG(double, lower) = 1.0 / 8.0;  ///< the least slope that is drawn
  TENON_ARG(double, upper) = 1.0 / 3.0;  ///< the largest slope that is drawn
  TENON_ARG(bool, training) = false;     ///< whether it is training: evaluation otherwise
  TENON_ARG(bool, inplace) = false;      ///< whether the input is overwritten
};

// Any sizes, and the same come out, unless said otherwise. Each throws Error for dtypes that are not floating, relu,
// relu6, hardtanh and threshold only for bool; prelu, softsign and tanhshrink take integers, and give floating dtypes.
/// x above 0, else alpha * (exp(x) - 1). Clevert et al., 2015.
TENON_API Tensor elu(Tensor input, const ELUFuncOptions& options = {});
/// scale * elu with the constants of Klambauer et al., 2017, that keep mean and variance.
TENON_API Tensor selu(Tensor input, const SELUFuncOptions& options = {});
/// max(0, x) + min(0, alpha * (exp(x / alpha) - 1)). Barron, 2017.
TENON_API Tensor celu(Tensor input, const CELUFuncOptions& options = {});
/// max(0, x).
TENON_API Tensor relu(Tensor input, const ReLUFuncOptions& options = {});
/// min(max(0, x), 6).
TENON_API Tensor relu6(Tensor input, const ReLU6FuncOptions& options = {});
/// x above 0, else a * x, with a from U(lower, upper) in training and its mean otherwise. Xu et al., 2015.
TENON_API Tensor rrelu(Tensor input, const RReLUFuncOptions& options = {});
/// x above 0, else negative_slope * x.
TENON_API Tensor leaky_relu(Tensor input, const LeakyReLUFuncOptions& options = {});
/// x kept between min_val and max_val.
TENON_API Tensor hardtanh(Tensor input, const HardtanhFuncOptions& options = {});
/// x where it is above the threshold, else the value.
TENON_API Tensor threshold(Tensor input, const ThresholdFuncOptions& options);
/// max(0, x) + weight * min(0, x); one weight for all, or one for each channel (dim 1). He et al., 2015.
TENON_API Tensor prelu(const Tensor& input, const Tensor& weight);
/// x times the normal distribution function of x, or its tanh approximation. Hendrycks and Gimpel, 2016.
TENON_API Tensor gelu(const Tensor& input, const GELUFuncOptions& options = {});
/// a * sigmoid(b), the halves of the input along `dim`, whose size is even. Dauphin et al., 2016.
TENON_API Tensor glu(const Tensor& input, const GLUFuncOptions& options = {});
/// x where |x| is above lambda, else 0.
TENON_API Tensor hardshrink(const Tensor& input, const HardshrinkFuncOptions& options = {});
/// x moved towards 0 by lambda, 0 in between.
TENON_API Tensor softshrink(const Tensor& input, const SoftshrinkFuncOptions& options = {});
/// log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold.
TENON_API Tensor softplus(const Tensor& input, const SoftplusFuncOptions& options = {});
/// log(1 / (1 + exp(-x))), without overflow.
TENON_API Tensor logsigmoid(const Tensor& input);
/// x * sigmoid(x). Elfwing et al., 2017.
TENON_API Tensor silu(const Tensor& input);
/// x * tanh(softplus(x)). Misra, 2019.
TENON_API Tensor mish(const Tensor& input);
/// x / (1 + |x|).
TENON_API Tensor softsign(const Tensor& input);
/// x - tanh(x).
TENON_API Tensor tanhshrink(const Tensor& input);
/// exp(x) / sum of exp(x) along `dim`; with a dtype the input is converted before.
TENON_API Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& options);
/// softmax() of -x.
TENON_API Tensor softmin(const Tensor& input, const SoftminFuncOptions& options);
/// The logarithm of softmax(), without its loss of precision.
TENON_API Tensor log_softmax(const Tensor& input, const LogSoftmaxFuncOptions& options);
/// softmax() of (logits + Gumbel noise) / tau along `dim`, in the logits' sizes; with `hard` 1 at the largest and 0
/// elsewhere, with the gradient of the soft one. Jang et al., "Categorical reparameterization with Gumbel-softmax",
/// 2016.
TENON_API Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxFuncOptions& options = {});

}  // namespace tenon::nn::functional
