// Pooling modules: printing and the call of the functional form.
#include <tenon/nn/modules/pooling.h>

#include <tenon/nn/functional/pooling.h>
#include <tenon/nn/parameter.h>
#include <tenon/ops/ops.h>

#include <ostream>

namespace tenon::nn {

namespace F = functional;

#define TENON_POOL_CLASSES(D)                                                                                        \
  void MaxPool##D##dImpl::pretty_print(std::ostream& stream) const {                                                 \
    stream << std::boolalpha << "tenon::nn::MaxPool" #D "d(kernel_size=" << options.kernel_size()                    \
           << ", stride=" << options.stride() << ", padding=" << options.padding()                                   \
           << ", dilation=" << options.dilation() << ", ceil_mode=" << options.ceil_mode() << ")";                   \
  }                                                                                                                  \
  Tensor MaxPool##D##dImpl::forward(const Tensor& input) {                                                           \
    const ModuleScope scope(*this);                                                                                  \
    return F::max_pool##D##d(input, options);                                                                        \
  }                                                                                                                  \
  std::tuple<Tensor, Tensor> MaxPool##D##dImpl::forward_with_indices(const Tensor& input) {                          \
    return F::max_pool##D##d_with_indices(input, options);                                                           \
  }                                                                                                                  \
  void AvgPool##D##dImpl::pretty_print(std::ostream& stream) const {                                                 \
    stream << "tenon::nn::AvgPool" #D "d(kernel_size=" << options.kernel_size() << ", stride=" << options.stride()   \
           << ", padding=" << options.padding() << ")";                                                              \
  }                                                                                                                  \
  Tensor AvgPool##D##dImpl::forward(const Tensor& input) {                                                           \
    const ModuleScope scope(*this);                                                                                  \
    return F::avg_pool##D##d(input, options);                                                                        \
  }                                                                                                                  \
  void AdaptiveAvgPool##D##dImpl::pretty_print(std::ostream& stream) const {                                         \
    stream << "tenon::nn::AdaptiveAvgPool" #D "d(output_size=" << options.output_size() << ")";                      \
  }                                                                                                                  \
  Tensor AdaptiveAvgPool##D##dImpl::forward(const Tensor& input) {                                                   \
    const ModuleScope scope(*this);                                                                                  \
    return F::adaptive_avg_pool##D##d(input, options);                                                               \
  }                                                                                                                  \
  void AdaptiveMaxPool##D##dImpl::pretty_print(std::ostream& stream) const {                                         \
    stream << "tenon::nn::AdaptiveMaxPool" #D "d(output_size=" << options.output_size() << ")";                      \
  }                                                                                                                  \
  Tensor AdaptiveMaxPool##D##dImpl::forward(const Tensor& input) {                                                   \
    const ModuleScope scope(*this);                                                                                  \
    return F::adaptive_max_pool##D##d(input, options);                                                               \
  }                                                                                                                  \
  std::tuple<Tensor, Tensor> AdaptiveMaxPool##D##dImpl::forward_with_indices(const Tensor& input) {                  \
    return F::adaptive_max_pool##D##d_with_indices(input, options);                                                  \
  }                                                                                                                  \
  void MaxUnpool##D##dImpl::pretty_print(std::ostream& stream) const {                                               \
    stream << "tenon::nn::MaxUnpool" #D "d(kernel_size=" << options.kernel_size() << ", stride=" << options.stride() \
           << ", padding=" << options.padding() << ")";                                                              \
  }                                                                                                                  \
  Tensor MaxUnpool##D##dImpl::forward(const Tensor& input, const Tensor& indices,                                    \
                                      const std::optional<std::vector<std::int64_t>>& output_size) {                 \
    const ModuleScope scope(*this);                                                                                  \
    return F::max_unpool##D##d(input, indices,                                                                       \
                               F::MaxUnpool##D##dFuncOptions(options.kernel_size())                                  \
                                   .stride(options.stride())                                                         \
                                   .padding(options.padding())                                                       \
                                   .output_size(output_size));                                                       \
  }
TENON_POOL_CLASSES(1)
TENON_POOL_CLASSES(2)
TENON_POOL_CLASSES(3)
#undef TENON_POOL_CLASSES

#define TENON_LP_POOL_CLASS(D)                                                               \
  void LPPool##D##dImpl::pretty_print(std::ostream& stream) const {                          \
    stream << std::boolalpha << "tenon::nn::LPPool" #D "d(norm_type=" << options.norm_type() \
           << ", kernel_size=" << options.kernel_size() << ", stride=" << options.stride()   \
           << ", ceil_mode=" << options.ceil_mode() << ")";                                  \
  }                                                                                          \
  Tensor LPPool##D##dImpl::forward(const Tensor& input) {                                    \
    const ModuleScope scope(*this);                                                          \
    return F::lp_pool##D##d(input, options);                                                 \
  }
TENON_LP_POOL_CLASS(1)
TENON_LP_POOL_CLASS(2)
TENON_LP_POOL_CLASS(3)
#undef TENON_LP_POOL_CLASS

#define TENON_FRACTIONAL_POOL_CLASS(D)                                                                              \
  FractionalMaxPool##D##dImpl::FractionalMaxPool##D##dImpl(FractionalMaxPool##D##dOptions given)                    \
      : options(std::move(given)) {                                                                                 \
    FractionalMaxPool##D##dImpl::reset();                                                                           \
  }                                                                                                                 \
  void FractionalMaxPool##D##dImpl::reset() {                                                                       \
    _random_samples = register_buffer("_random_samples", given_buffer(options._random_samples(), _random_samples)); \
    if (options.output_size() && options.output_ratio()) {                                                          \
      throw Error("only one of output_size and output_ratio may be specified");                                     \
    }                                                                                                               \
    if (!options.output_size() && !options.output_ratio()) {                                                        \
      throw Error("FractionalMaxPool" #D "d requires specifying either an output size, or a pooling ratio");        \
    }                                                                                                               \
  }                                                                                                                 \
  void FractionalMaxPool##D##dImpl::pretty_print(std::ostream& stream) const {                                      \
    stream << "tenon::nn::FractionalMaxPool" #D "d()";                                                              \
  }                                                                                                                 \
  Tensor FractionalMaxPool##D##dImpl::forward(const Tensor& input) {                                                \
    const ModuleScope scope(*this);                                                                                 \
    return F::fractional_max_pool##D##d(input,                                                                      \
                                        FractionalMaxPool##D##dOptions(options)._random_samples(_random_samples));  \
  }                                                                                                                 \
  std::tuple<Tensor, Tensor> FractionalMaxPool##D##dImpl::forward_with_indices(const Tensor& input) {               \
    return F::fractional_max_pool##D##d_with_indices(                                                               \
        input, FractionalMaxPool##D##dOptions(options)._random_samples(_random_samples));                           \
  }
TENON_FRACTIONAL_POOL_CLASS(2)
TENON_FRACTIONAL_POOL_CLASS(3)
#undef TENON_FRACTIONAL_POOL_CLASS

TENON_DEFAULT_ARGS_OF(MaxUnpool1dImpl, {2, AnyValue(std::optional<std::vector<std::int64_t>>())})
TENON_DEFAULT_ARGS_OF(MaxUnpool2dImpl, {2, AnyValue(std::optional<std::vector<std::int64_t>>())})
TENON_DEFAULT_ARGS_OF(MaxUnpool3dImpl, {2, AnyValue(std::optional<std::vector<std::int64_t>>())})

template class Cloneable<MaxPool1dImpl>;
template class Cloneable<AvgPool1dImpl>;
template class Cloneable<AdaptiveAvgPool1dImpl>;
template class Cloneable<AdaptiveMaxPool1dImpl>;
template class Cloneable<MaxUnpool1dImpl>;
template class Cloneable<MaxPool2dImpl>;
template class Cloneable<AvgPool2dImpl>;
template class Cloneable<AdaptiveAvgPool2dImpl>;
template class Cloneable<AdaptiveMaxPool2dImpl>;
template class Cloneable<MaxUnpool2dImpl>;
template class Cloneable<MaxPool3dImpl>;
template class Cloneable<AvgPool3dImpl>;
template class Cloneable<AdaptiveAvgPool3dImpl>;
template class Cloneable<AdaptiveMaxPool3dImpl>;
template class Cloneable<MaxUnpool3dImpl>;
template class Cloneable<LPPool1dImpl>;
template class Cloneable<LPPool2dImpl>;
template class Cloneable<LPPool3dImpl>;
template class Cloneable<FractionalMaxPool2dImpl>;
template class Cloneable<FractionalMaxPool3dImpl>;

}  // namespace tenon::nn
