// Normalisation over features.
#include <tenon/nn/modules/normalization.h>

#include <tenon/nn/functional/normalization.h>
#include <tenon/nn/init.h>
#include <tenon/nn/parameter.h>
#include <tenon/ops/ops.h>

#include <ostream>

namespace tenon::nn {

namespace F = functional;

namespace {
void print_list(std::ostream& stream, const std::vector<std::int64_t>& list) {
  stream << "[";
  for (std::size_t i = 0; i < list.size(); ++i) stream << (i ? ", " : "") << list[i];
  stream << "]";
}
}  // namespace

LayerNormImpl::LayerNormImpl(LayerNormOptions given) : options(std::move(given)) { LayerNormImpl::reset(); }
void LayerNormImpl::reset() {
  if (options.elementwise_affine()) {
    weight = register_parameter("weight", new_parameter(options.normalized_shape()));
    bias = register_parameter("bias", new_parameter(options.normalized_shape()));
  } else {
    weight = register_parameter("weight", Tensor(), /*requires_grad=*/false);
    bias = register_parameter("bias", Tensor(), /*requires_grad=*/false);
  }
  reset_parameters();
}
void LayerNormImpl::reset_parameters() {
  if (!options.elementwise_affine()) return;
  init::ones_(weight);
  init::zeros_(bias);
}
void LayerNormImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << "tenon::nn::LayerNorm(";
  print_list(stream, options.normalized_shape());
  stream << ", eps=" << options.eps() << ", elementwise_affine=" << options.elementwise_affine() << ")";
}
Tensor LayerNormImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  return F::detail::layer_norm(input, options.normalized_shape(), weight, bias, options.eps());
}

RMSNormImpl::RMSNormImpl(RMSNormOptions given) : options(std::move(given)) { RMSNormImpl::reset(); }
void RMSNormImpl::reset() {
  weight = register_parameter(
      "weight", options.elementwise_affine() ? init::ones_(new_parameter(options.normalized_shape())) : Tensor(),
      options.elementwise_affine());
}
void RMSNormImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << "tenon::nn::RMSNorm(";
  print_list(stream, options.normalized_shape());
  stream << ", eps=" << options.eps() << ", elementwise_affine=" << options.elementwise_affine() << ")";
}
Tensor RMSNormImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < options.normalized_shape().size(); ++i) dims.push_back(-1 - static_cast<std::int64_t>(i));
  const Tensor y = input * (input.square().mean(dims, /*keepdim=*/true) + options.eps()).rsqrt();
  return weight.defined() ? y * weight : y;
}

GroupNormImpl::GroupNormImpl(const GroupNormOptions& given) : options(given) { GroupNormImpl::reset(); }
void GroupNormImpl::reset() {
  if (options.affine()) {
    weight = register_parameter("weight", new_parameter({options.num_channels()}));
    bias = register_parameter("bias", new_parameter({options.num_channels()}));
  } else {
    weight = register_parameter("weight", Tensor(), /*requires_grad=*/false);
    bias = register_parameter("bias", Tensor(), /*requires_grad=*/false);
  }
  reset_parameters();
}
void GroupNormImpl::reset_parameters() {
  if (!options.affine()) return;
  init::ones_(weight);
  init::zeros_(bias);
}
void GroupNormImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << "tenon::nn::GroupNorm(" << options.num_groups() << ", " << options.num_channels()
         << ", eps=" << options.eps() << ", affine=" << options.affine() << ")";
}
Tensor GroupNormImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  return F::detail::group_norm(input, options.num_groups(), weight, bias, options.eps());
}

Tensor LocalResponseNormImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  return F::detail::local_response_norm(input, options.size(), options.alpha(), options.beta(), options.k());
}
void LocalResponseNormImpl::pretty_print(std::ostream& stream) const {
  stream << "tenon::nn::LocalResponseNorm(" << options.size() << ", alpha=" << options.alpha()
         << ", beta=" << options.beta() << ", k=" << options.k() << ")";
}
Tensor CrossMapLRN2dImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  // The same map as LocalResponseNorm, whose window leans the other way for even sizes.
  return F::detail::local_response_norm(input, options.size(), options.alpha(), options.beta(),
                                        static_cast<double>(options.k()));
}
void CrossMapLRN2dImpl::pretty_print(std::ostream& stream) const {
  stream << "tenon::nn::CrossMapLRN2d(" << options.size() << ", alpha=" << options.alpha()
         << ", beta=" << options.beta() << ", k=" << options.k() << ")";
}

template class Cloneable<LayerNormImpl>;
template class Cloneable<RMSNormImpl>;
template class Cloneable<GroupNormImpl>;
template class Cloneable<LocalResponseNormImpl>;
template class Cloneable<CrossMapLRN2dImpl>;

}  // namespace tenon::nn
