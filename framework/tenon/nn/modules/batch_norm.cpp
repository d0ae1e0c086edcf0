// Normalisation over a batch or over an instance.
#include <tenon/nn/modules/batch_norm.h>

#include <tenon/autograd/checkpoint.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/statistics_updates.h>
#include <tenon/core/error.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/functional/normalization.h>
#include <tenon/nn/init.h>
#include <tenon/nn/parameter.h>
#include <tenon/ops/ops.h>

#include <fmt/format.h>

#include <ostream>

namespace tenon::nn {
namespace {

void check_rank(const Tensor& input, std::int64_t low, std::int64_t high) {
  if (input.dim() < low || input.dim() > high) {
    throw Error(low == high ? fmt::format("expected {}D input (got {}D input)", low, input.dim())
                            : fmt::format("expected {}D or {}D input (got {}D input)", low, high, input.dim()));
  }
}

template <class Impl>
Tensor batch_norm(Impl& self, const Tensor& input) {
  double factor = self.options.momentum().value_or(0.0);
  const bool tracks = self.is_training() && self.options.track_running_stats() && !is_recomputing() &&
                      !is_statistics_update_left_out() && self.num_batches_tracked.defined();
  if (tracks && !self.options.momentum()) factor = 1.0 / (1 + self.num_batches_tracked.template item<double>());
  Tensor output = functional::detail::batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias,
                                                 self.is_training() || !self.options.track_running_stats(), factor,
                                                 self.options.eps());
  if (tracks) {  // behind it, as it may fail
    NoGradGuard no_grad;
    self.num_batches_tracked.add_(1);
  }
  return output;
}

template <class Impl>
Tensor instance_norm(Impl& self, const Tensor& input) {
  return functional::detail::instance_norm(input, self.running_mean, self.running_var, self.weight, self.bias,
                                           self.is_training() || !self.options.track_running_stats(),
                                           self.options.momentum(), self.options.eps());
}

std::string text(const std::optional<double>& value) { return value ? fmt::format("{}", *value) : "None"; }
double number(double value) { return value; }
double number(const std::optional<double>& value) { return value.value_or(0); }

}  // namespace

template <class Derived, class Options>
NormImplBase<Derived, Options>::NormImplBase(const Options& given) : options(given) {
  NormImplBase::reset();
}

template <class Derived, class Options>
void NormImplBase<Derived, Options>::reset() {
  const std::int64_t size = options.num_features();
  if (options.affine()) {
    weight = this->register_parameter("weight", new_parameter({size}));
    bias = this->register_parameter("bias", new_parameter({size}));
  } else {
    weight = this->register_parameter("weight", Tensor(), /*requires_grad=*/false);
    bias = this->register_parameter("bias", Tensor(), /*requires_grad=*/false);
  }
  if (options.track_running_stats()) {
    running_mean = this->register_buffer("running_mean", new_buffer({size}, 0.0));
    running_var = this->register_buffer("running_var", new_buffer({size}, 1.0));
    num_batches_tracked = this->register_buffer("num_batches_tracked", new_buffer({}, 0, TensorOptions(kInt64)));
  } else {
    running_mean = this->register_buffer("running_mean", Tensor());
    running_var = this->register_buffer("running_var", Tensor());
    num_batches_tracked = this->register_buffer("num_batches_tracked", Tensor());
  }
  reset_parameters();
}

template <class Derived, class Options>
void NormImplBase<Derived, Options>::reset_running_stats() {
  if (!options.track_running_stats()) return;
  running_mean.zero_();
  running_var.fill_(1);
  num_batches_tracked.zero_();
}

template <class Derived, class Options>
void NormImplBase<Derived, Options>::reset_parameters() {
  reset_running_stats();
  if (!options.affine()) return;
  init::ones_(weight);
  init::zeros_(bias);
}

template <class Derived, class Options>
void NormImplBase<Derived, Options>::print_as(std::ostream& stream, const char* name) const {
  stream << std::boolalpha << "tenon::nn::" << name << "(" << options.num_features() << ", eps=" << options.eps()
         << ", momentum=";
  if constexpr (std::is_same_v<Options, BatchNormOptions>) {
    if (!options.momentum()) {
      stream << text(options.momentum());
    } else {
      stream << number(options.momentum());
    }
  } else {
    stream << number(options.momentum());
  }
  stream << ", affine=" << options.affine() << ", track_running_stats=" << options.track_running_stats() << ")";
}

#define TENON_NORM(D, low, high)                                                                                     \
  void BatchNorm##D##dImpl::pretty_print(std::ostream& stream) const { print_as(stream, "BatchNorm" #D "d"); }       \
  Tensor BatchNorm##D##dImpl::forward(const Tensor& input) {                                                         \
    const ModuleScope scope(*this);                                                                                  \
    if (ForwardOverride* other = forward_override()) return other->forward(*this, input);                            \
    check_rank(input, low, D + 2);                                                                                   \
    return batch_norm(*this, input);                                                                                 \
  }                                                                                                                  \
  void InstanceNorm##D##dImpl::pretty_print(std::ostream& stream) const { print_as(stream, "InstanceNorm" #D "d"); } \
  Tensor InstanceNorm##D##dImpl::forward(const Tensor& input) {                                                      \
    const ModuleScope scope(*this);                                                                                  \
    check_rank(input, high, D + 2);                                                                                  \
    return input.dim() == D + 2 ? instance_norm(*this, input) : instance_norm(*this, input.unsqueeze(0)).squeeze(0); \
  }                                                                                                                  \
  template class NormImplBase<BatchNorm##D##dImpl, BatchNormOptions>;                                                \
  template class NormImplBase<InstanceNorm##D##dImpl, InstanceNormOptions>;
TENON_NORM(1, 2, 2)
TENON_NORM(2, 4, 3)
TENON_NORM(3, 5, 4)
#undef TENON_NORM

template class Cloneable<BatchNorm1dImpl>;
template class Cloneable<InstanceNorm1dImpl>;
template class Cloneable<BatchNorm2dImpl>;
template class Cloneable<InstanceNorm2dImpl>;
template class Cloneable<BatchNorm3dImpl>;
template class Cloneable<InstanceNorm3dImpl>;

namespace {

/// The module's own tensors, one by one, so that what stays is not rounded on the way.
void convert_own(Module& module, Dtype dtype) {
  if (module.as<BatchNorm1dImpl>() || module.as<BatchNorm2dImpl>() || module.as<BatchNorm3dImpl>()) return;
  for (const std::vector<Tensor>& tensors : {module.parameters(false), module.buffers(false)}) {
    for (const Tensor& tensor : tensors) {
      if (tensor.is_floating_point()) tensor.set_data(tensor.to(dtype));
    }
  }
}

}  // namespace

void to_half_but_batch_norm(Module& module, Dtype dtype) {
  if (dtype != Dtype::kFloat16 && dtype != Dtype::kBFloat16) {
    throw Error(fmt::format("to_half_but_batch_norm() converts to float16 or bfloat16, not to {}", name_of(dtype)));
  }
  const NoGradGuard no_grad;
  const PurposeGuard purpose(Purpose::kParameter);
  module.apply([dtype](Module& part) { convert_own(part, dtype); });
}

}  // namespace tenon::nn
