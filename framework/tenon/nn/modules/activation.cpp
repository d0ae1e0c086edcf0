// Activations as modules: printing, and the call of the functional form.
#include <tenon/nn/modules/activation.h>

#include <tenon/nn/functional/activation.h>
#include <tenon/nn/init.h>
#include <tenon/nn/parameter.h>
#include <tenon/ops/ops.h>

#include <ostream>

namespace tenon::nn {

namespace F = functional;

#define TENON_ACTIVATION(Name, Input, call, printed)                         \
  Name##Impl::Name##Impl(const Name##Options& options) : options(options) {} \
  Tensor Name##Impl::forward(Input input) {                                  \
    const ModuleScope scope(*this);                                          \
    return call;                                                             \
  }                                                                          \
  void Name##Impl::pretty_print(std::ostream& stream) const {                \
    stream << std::boolalpha << "tenon::nn::" #Name "(" << printed << ")";   \
  }
/// ", inplace=true" only where it is.
#define TENON_INPLACE (options.inplace() ? ", inplace=true" : "")
TENON_ACTIVATION(ELU, Tensor, F::elu(std::move(input), options), "alpha=" << options.alpha() << TENON_INPLACE)
TENON_ACTIVATION(SELU, Tensor, F::selu(std::move(input), options), (options.inplace() ? "inplace=true" : ""))
TENON_ACTIVATION(CELU, Tensor, F::celu(std::move(input), options), "alpha=" << options.alpha() << TENON_INPLACE)
TENON_ACTIVATION(GELU, Tensor, F::gelu(input, options), "")
TENON_ACTIVATION(LeakyReLU, Tensor, F::leaky_relu(std::move(input), options),
                 "negative_slope=" << options.negative_slope() << TENON_INPLACE)
TENON_ACTIVATION(ReLU, Tensor,
                 forward_override() ? forward_override()->forward(*this, input) : F::relu(std::move(input), options),
                 (options.inplace() ? "inplace=true" : ""))
TENON_ACTIVATION(ReLU6, Tensor, F::relu6(std::move(input), options), (options.inplace() ? "inplace=true" : ""))
TENON_ACTIVATION(RReLU, Tensor,
                 F::rrelu(std::move(input), F::RReLUFuncOptions()
                                                .lower(options.lower())
                                                .upper(options.upper())
                                                .inplace(options.inplace())
                                                .training(is_training())),
                 "lower=" << options.lower() << ", upper=" << options.upper() << TENON_INPLACE)
TENON_ACTIVATION(GLU, const Tensor&, F::glu(input, options), "dim=" << options.dim())
TENON_ACTIVATION(Hardshrink, const Tensor&, F::hardshrink(input, options), options.lambda())
TENON_ACTIVATION(Softshrink, const Tensor&, F::softshrink(input, options), options.lambda())
TENON_ACTIVATION(Softplus, const Tensor&, F::softplus(input, options),
                 "beta=" << options.beta() << ", threshold=" << options.threshold())
TENON_ACTIVATION(Softmax, const Tensor&, F::softmax(input, options.dim()), "dim=" << options.dim())
TENON_ACTIVATION(Softmin, const Tensor&, F::softmin(input, options.dim()), "dim=" << options.dim())
TENON_ACTIVATION(LogSoftmax, const Tensor&, F::log_softmax(input, options.dim()), "dim=" << options.dim())
TENON_ACTIVATION(Threshold, Tensor, F::threshold(std::move(input), options),
                 "threshold=" << options.threshold() << ", value=" << options.value() << TENON_INPLACE)
#undef TENON_ACTIVATION

#define TENON_ACTIVATION(Name, call)                \
  Tensor Name##Impl::forward(const Tensor& input) { \
    const ModuleScope scope(*this);                 \
    return call;                                    \
  }                                                 \
  void Name##Impl::pretty_print(std::ostream& stream) const { stream << "tenon::nn::" #Name "()"; }
TENON_ACTIVATION(LogSigmoid, F::logsigmoid(input))
TENON_ACTIVATION(Sigmoid, tenon::sigmoid(input))
TENON_ACTIVATION(SiLU, F::silu(input))
TENON_ACTIVATION(Mish, F::mish(input))
TENON_ACTIVATION(Softsign, F::softsign(input))
TENON_ACTIVATION(Tanh, tenon::tanh(input))
TENON_ACTIVATION(Tanhshrink, F::tanhshrink(input))
#undef TENON_ACTIVATION

Tensor Softmax2dImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  if (input.dim() != 4 && input.dim() != 3) throw Error("Softmax2d requires a 3D or 4D tensor as input");
  return F::softmax(input, -3);
}
void Softmax2dImpl::pretty_print(std::ostream& stream) const { stream << "tenon::nn::Softmax2d()"; }

HardtanhImpl::HardtanhImpl(const HardtanhOptions& options) : options(options) { HardtanhImpl::reset(); }
void HardtanhImpl::reset() {
  if (!(options.min_val() < options.max_val())) throw Error("max_val must be greater than min_val");
}
Tensor HardtanhImpl::forward(Tensor input) {
  const ModuleScope scope(*this);
  return F::hardtanh(std::move(input), options);
}
void HardtanhImpl::pretty_print(std::ostream& stream) const {
  stream << "tenon::nn::Hardtanh(min_val=" << options.min_val() << ", max_val=" << options.max_val() << TENON_INPLACE
         << ")";
}
#undef TENON_INPLACE

PReLUImpl::PReLUImpl(const PReLUOptions& options) : options(options) { PReLUImpl::reset(); }
void PReLUImpl::reset() {
  Tensor initial = new_parameter({options.num_parameters()});
  weight = register_parameter("weight", init::constant_(initial, options.init()));
}
Tensor PReLUImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  return F::prelu(input, weight);
}
void PReLUImpl::pretty_print(std::ostream& stream) const {
  stream << "tenon::nn::PReLU(num_parameters=" << options.num_parameters() << ")";
}

template class Cloneable<ELUImpl>;
template class Cloneable<SELUImpl>;
template class Cloneable<CELUImpl>;
template class Cloneable<GELUImpl>;
template class Cloneable<LeakyReLUImpl>;
template class Cloneable<ReLUImpl>;
template class Cloneable<ReLU6Impl>;
template class Cloneable<RReLUImpl>;
template class Cloneable<GLUImpl>;
template class Cloneable<HardshrinkImpl>;
template class Cloneable<SoftshrinkImpl>;
template class Cloneable<SoftplusImpl>;
template class Cloneable<SoftmaxImpl>;
template class Cloneable<SoftminImpl>;
template class Cloneable<LogSoftmaxImpl>;
template class Cloneable<LogSigmoidImpl>;
template class Cloneable<SigmoidImpl>;
template class Cloneable<SiLUImpl>;
template class Cloneable<MishImpl>;
template class Cloneable<SoftsignImpl>;
template class Cloneable<TanhImpl>;
template class Cloneable<TanhshrinkImpl>;
template class Cloneable<Softmax2dImpl>;
template class Cloneable<HardtanhImpl>;
template class Cloneable<ThresholdImpl>;
template class Cloneable<PReLUImpl>;

}  // namespace tenon::nn
