// Activations as modules; MultiheadAttention has a file of its own.
#pragma once

#include <tenon/nn/containers/cloneable.h>
#include <tenon/nn/options/activation_options.h>

namespace tenon::nn {

/// Modules whose forward takes the tensor by value, since some of them may overwrite it.
#define TENON_ACTIVATION(Name)                                        \
  class TENON_EXPORT Name##Impl : public Cloneable<Name##Impl> {      \
   public:                                                            \
    TENON_API explicit Name##Impl(const Name##Options& options = {}); \
    void reset() override {}                                          \
    TENON_API void pretty_print(std::ostream& stream) const override; \
    TENON_API Tensor forward(Tensor input);                           \
    Name##Options options;                                            \
  };                                                                  \
  TENON_MODULE(Name);
TENON_ACTIVATION(ELU)
TENON_ACTIVATION(SELU)
TENON_ACTIVATION(CELU)
TENON_ACTIVATION(GELU)
TENON_ACTIVATION(LeakyReLU)
TENON_ACTIVATION(ReLU)
TENON_ACTIVATION(ReLU6)
TENON_ACTIVATION(RReLU)
#undef TENON_ACTIVATION

/// Their options have one number that may be given directly.
#define TENON_ACTIVATION(Name, type)                                  \
  class TENON_EXPORT Name##Impl : public Cloneable<Name##Impl> {      \
   public:                                                            \
    TENON_API explicit Name##Impl(const Name##Options& options = {}); \
    void reset() override {}                                          \
    TENON_API void pretty_print(std::ostream& stream) const override; \
    TENON_API Tensor forward(const Tensor& input);                    \
    Name##Options options;                                            \
  };                                                                  \
  TENON_MODULE(Name);
TENON_ACTIVATION(GLU, std::int64_t)
TENON_ACTIVATION(Hardshrink, double)
TENON_ACTIVATION(Softshrink, double)
TENON_ACTIVATION(Softplus, double)
#undef TENON_ACTIVATION

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
  TENON_MODULE(Name);
TENON_ACTIVATION(Softmax)
TENON_ACTIVATION(Softmin)
TENON_ACTIVATION(LogSoftmax)
#undef TENON_ACTIVATION

/// Without options.
#define TENON_ACTIVATION(Name)                                        \
  class TENON_EXPORT Name##Impl : public Cloneable<Name##Impl> {      \
   public:                                                            \
    void reset() override {}                                          \
    TENON_API void pretty_print(std::ostream& stream) const override; \
    TENON_API Tensor forward(const Tensor& input);                    \
  };                                                                  \
  TENON_MODULE(Name);
TENON_ACTIVATION(LogSigmoid)
TENON_ACTIVATION(Sigmoid)
TENON_ACTIVATION(SiLU)
TENON_ACTIVATION(Mish)
TENON_ACTIVATION(Softsign)
TENON_ACTIVATION(Tanh)
TENON_ACTIVATION(Tanhshrink)
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
TENON_MODULE(Hardtanh);

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
TENON_MODULE(Threshold);

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
TENON_MODULE(PReLU);

}  // namespace tenon::nn
