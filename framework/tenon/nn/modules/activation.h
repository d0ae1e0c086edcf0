// Activations as modules; MultiheadAttention has a file of its own.
#pragma once

#include <tenon/nn/containers/cloneable.h>
#include <tenon/nn/options/activation_options.h>

namespace tenon::nn {

// Modules whose forward takes the tensor by value, since some of them may overwrite it. Any sizes, and the same come
// out. Each throws Error for dtypes that are not floating, ReLU and ReLU6 only for bool.
#define TENON_ACTIVATION(Name)                                        \
  class TENON_EXPORT Name##Impl : public Cloneable<Name##Impl> {      \
   public:                                                            \
    TENON_API explicit Name##Impl(const Name##Options& options = {}); \
    void reset() override {}                                          \
    TENON_API void pretty_print(std::ostream& stream) const override; \
    TENON_API Tensor forward(Tensor input);                           \
    Name##Options options;                                            \
  };                                                                  \
  TENON_LIBRARY_MODULE(Name);
/// x above 0, else alpha * (exp(x) - 1). Clevert et al., 2015.
TENON_ACTIVATION(ELU)
/// scale * elu(x) with the constants that keep mean and variance. Klambauer et al., 2017.
TENON_ACTIVATION(SELU)
/// max(0, x) + min(0, alpha * (exp(x / alpha) - 1)). Throws Error for an alpha of 0. Barron, 2017.
TENON_ACTIVATION(CELU)
/// x times the normal distribution function of x, or its tanh approximation. Hendrycks and Gimpel, 2016.
TENON_ACTIVATION(GELU)
/// x above 0, else negative_slope * x.
TENON_ACTIVATION(LeakyReLU)
/// max(0, x).
TENON_ACTIVATION(ReLU)
/// min(max(0, x), 6).
TENON_ACTIVATION(ReLU6)
/// x above 0, else a * x, with a from U(lower, upper) in training and its mean otherwise. Xu et al., 2015.
TENON_ACTIVATION(RReLU)
#undef TENON_ACTIVATION

// Their options have one number that may be given directly. Each throws Error for dtypes that are not floating.
#define TENON_ACTIVATION(Name, type)                                  \
  class TENON_EXPORT Name##Impl : public Cloneable<Name##Impl> {      \
   public:                                                            \
    TENON_API explicit Name##Impl(const Name##Options& options = {}); \
    void reset() override {}                                          \
    TENON_API void pretty_print(std::ostream& stream) const override; \
    TENON_API Tensor forward(const Tensor& input);                    \
    Name##Options options;                                            \
  };                                                                  \
  TENON_LIBRARY_MODULE(Name);
/// The first half of `dim`, whose size is even, times the sigmoid of the second: half as long. Dauphin et al., 2016.
TENON_ACTIVATION(GLU, std::int64_t)
/// x where |x| is above lambda, else 0; any sizes.
TENON_ACTIVATION(Hardshrink, double)
/// x moved towards 0 by lambda, 0 in between; any sizes. Throws Error for a negative lambda.
TENON_ACTIVATION(Softshrink, double)
/// log(1 + exp(beta * x)) / beta, and x itself where beta * x is above the threshold; any sizes.
TENON_ACTIVATION(Softplus, double)
#undef TENON_ACTIVATION

// Along one dim, in the input's sizes. Each throws Error for a dim out of range, and dtypes that are not floating.
#define TENON_ACTIVATION(Name)                                                \
  class TENON_EXPORT Name##Impl : public Cloneable<Name##Impl> {              \
   public:                                                                    \
    explicit Name##Impl(std::int64_t dim) : Name##Impl(Name##Options(dim)) {} \
    TENON_API explicit Name##Impl(const Name##Options& options);              \
    void reset() override {}                                                  \
    TENON_API void pretty_print(std::ostream& stream) const override;         \
    TENON_API Tensor forward(const Tensor& input);                            \
    Name##Options options;                                                    \
  };                                                                          \
  TENON_LIBRARY_MODULE(Name);
/// exp(x) / sum of exp(x) along `dim`.
TENON_ACTIVATION(Softmax)
/// Softmax of -x.
TENON_ACTIVATION(Softmin)
/// The logarithm of Softmax, without its loss of precision.
TENON_ACTIVATION(LogSoftmax)
#undef TENON_ACTIVATION

// Without options. Any sizes, and the same come out, unless said otherwise.
#define TENON_ACTIVATION(Name)                                        \
  class TENON_EXPORT Name##Impl : public Cloneable<Name##Impl> {      \
   public:                                                            \
    void reset() override {}                                          \
    TENON_API void pretty_print(std::ostream& stream) const override; \
    TENON_API Tensor forward(const Tensor& input);                    \
  };                                                                  \
  TENON_LIBRARY_MODULE(Name);
/// log(1 / (1 + exp(-x))), without overflow. Throws Error for dtypes that are not floating.
TENON_ACTIVATION(LogSigmoid)
/// 1 / (1 + exp(-x)); integers give the default dtype.
TENON_ACTIVATION(Sigmoid)
/// x * sigmoid(x). Throws Error for dtypes that are not floating. Elfwing et al., 2017.
TENON_ACTIVATION(SiLU)
/// x * tanh(softplus(x)). Throws Error for dtypes that are not floating. Misra, 2019.
TENON_ACTIVATION(Mish)
/// x / (1 + |x|); integers give the default dtype.
TENON_ACTIVATION(Softsign)
/// tanh(x); integers give the default dtype.
TENON_ACTIVATION(Tanh)
/// x - tanh(x); integers give the default dtype.
TENON_ACTIVATION(Tanhshrink)
/// Softmax over the channels of (N, C, H, W) or (C, H, W). Throws Error for other ranks, and dtypes that are not
/// floating.
TENON_ACTIVATION(Softmax2d)
#undef TENON_ACTIVATION

class TENON_EXPORT HardtanhImpl : public Cloneable<HardtanhImpl> {
 public:
  TENON_API explicit HardtanhImpl(const HardtanhOptions& options = {});
  TENON_API void reset() override;
  TENON_API void pretty_print(std::ostream& stream) const override;
  /// x kept between min_val and max_val; any sizes.
  TENON_API Tensor forward(Tensor input);
  HardtanhOptions options;
};
TENON_LIBRARY_MODULE(Hardtanh);

class TENON_EXPORT ThresholdImpl : public Cloneable<ThresholdImpl> {
 public:
  ThresholdImpl(double threshold, double value) : ThresholdImpl(ThresholdOptions(threshold, value)) {}
  TENON_API explicit ThresholdImpl(const ThresholdOptions& options);
  void reset() override {}
  TENON_API void pretty_print(std::ostream& stream) const override;
  /// x where it is above the threshold, else the value; any sizes.
  TENON_API Tensor forward(Tensor input);
  ThresholdOptions options;
};
TENON_LIBRARY_MODULE(Threshold);

/// Learns the slope below zero, one for all channels or one each.
class TENON_EXPORT PReLUImpl : public Cloneable<PReLUImpl> {
 public:
  TENON_API explicit PReLUImpl(const PReLUOptions& options = {});
  TENON_API void reset() override;
  TENON_API void pretty_print(std::ostream& stream) const override;
  /// max(0, x) + weight * min(0, x); one weight for all, or one for each channel (dim 1).
  TENON_API Tensor forward(const Tensor& input);
  PReLUOptions options;
  Tensor weight;
};
TENON_LIBRARY_MODULE(PReLU);

}  // namespace tenon::nn
