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
    TENON_ARG(std::optional<Dtype>, dtype) = std::nullopt; \
  };
TENON_SOFTMAX_OPTIONS(SoftmaxFuncOptions)
TENON_SOFTMAX_OPTIONS(SoftminFuncOptions)
TENON_SOFTMAX_OPTIONS(LogSoftmaxFuncOptions)
#undef TENON_SOFTMAX_OPTIONS

struct GumbelSoftmaxFuncOptions {
  TENON_ARG(double, tau) = 1.0;
  TENON_ARG(bool, hard) = false;
  TENON_ARG(int, dim) = -1;
};
struct RReLUFuncOptions {
  TENON_ARG(double, lower) = 1.0 / 8.0;
  TENON_ARG(double, upper) = 1.0 / 3.0;
  TENON_ARG(bool, training) = false;
  TENON_ARG(bool, inplace) = false;
};

TENON_API Tensor elu(Tensor input, const ELUFuncOptions& options = {});
TENON_API Tensor selu(Tensor input, const SELUFuncOptions& options = {});
TENON_API Tensor celu(Tensor input, const CELUFuncOptions& options = {});
TENON_API Tensor relu(Tensor input, const ReLUFuncOptions& options = {});
TENON_API Tensor relu6(Tensor input, const ReLU6FuncOptions& options = {});
TENON_API Tensor rrelu(Tensor input, const RReLUFuncOptions& options = {});
TENON_API Tensor leaky_relu(Tensor input, const LeakyReLUFuncOptions& options = {});
TENON_API Tensor hardtanh(Tensor input, const HardtanhFuncOptions& options = {});
TENON_API Tensor threshold(Tensor input, const ThresholdFuncOptions& options);
TENON_API Tensor prelu(const Tensor& input, const Tensor& weight);
TENON_API Tensor gelu(const Tensor& input, const GELUFuncOptions& options = {});
TENON_API Tensor glu(const Tensor& input, const GLUFuncOptions& options = {});
TENON_API Tensor hardshrink(const Tensor& input, const HardshrinkFuncOptions& options = {});
TENON_API Tensor softshrink(const Tensor& input, const SoftshrinkFuncOptions& options = {});
TENON_API Tensor softplus(const Tensor& input, const SoftplusFuncOptions& options = {});
TENON_API Tensor logsigmoid(const Tensor& input);
TENON_API Tensor silu(const Tensor& input);
TENON_API Tensor mish(const Tensor& input);
TENON_API Tensor softsign(const Tensor& input);
TENON_API Tensor tanhshrink(const Tensor& input);
TENON_API Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& options);
TENON_API Tensor softmin(const Tensor& input, const SoftminFuncOptions& options);
TENON_API Tensor log_softmax(const Tensor& input, const LogSoftmaxFuncOptions& options);
/// Jang et al., "Categorical reparameterization with Gumbel-softmax", 2016.
TENON_API Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxFuncOptions& options = {});

}  // namespace tenon::nn::functional
