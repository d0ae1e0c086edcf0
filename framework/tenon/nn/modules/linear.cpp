// Linear maps and reshaping modules.
#include <tenon/nn/modules/linear.h>

#include <tenon/nn/init.h>
#include <tenon/nn/parameter.h>
#include <tenon/ops/ops.h>

#include <cmath>
#include <ostream>

namespace tenon::nn {

void IdentityImpl::pretty_print(std::ostream& stream) const { stream << "tenon::nn::Identity()"; }
Tensor IdentityImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  return input;
}

LinearImpl::LinearImpl(const LinearOptions& options) : options(options) { LinearImpl::reset(); }

void LinearImpl::reset() {
  weight = register_parameter("weight", new_parameter({options.out_features(), options.in_features()}));
  bias = options.bias() ? register_parameter("bias", new_parameter({options.out_features()}))
                        : register_parameter("bias", {}, /*requires_grad=*/false);
  reset_parameters();
}

void LinearImpl::reset_parameters() {
  // With a = sqrt(5) the bound is 1 / sqrt(fan_in), as in PyTorch.
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (bias.defined()) {
    const double bound = options.in_features() > 0 ? 1 / std::sqrt(static_cast<double>(options.in_features())) : 0;
    init::uniform_(bias, -bound, bound);
  }
}

void LinearImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << "tenon::nn::Linear(in_features=" << options.in_features()
         << ", out_features=" << options.out_features() << ", bias=" << options.bias() << ")";
}

Tensor LinearImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  if (ForwardOverride* other = forward_override()) return other->forward(*this, input);
  return tenon::linear(input, weight, bias);
}

BilinearImpl::BilinearImpl(const BilinearOptions& options) : options(options) { BilinearImpl::reset(); }

void BilinearImpl::reset() {
  weight = register_parameter("weight",
                              new_parameter({options.out_features(), options.in1_features(), options.in2_features()}));
  bias = options.bias() ? register_parameter("bias", new_parameter({options.out_features()}))
                        : register_parameter("bias", {}, /*requires_grad=*/false);
  reset_parameters();
}

void BilinearImpl::reset_parameters() {
  const double bound = 1 / std::sqrt(static_cast<double>(weight.size(1)));
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}

void BilinearImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << "tenon::nn::Bilinear(in1_features=" << options.in1_features()
         << ", in2_features=" << options.in2_features() << ", out_features=" << options.out_features()
         << ", bias=" << options.bias() << ")";
}

Tensor BilinearImpl::forward(const Tensor& input1, const Tensor& input2) {
  const ModuleScope scope(*this);
  return tenon::bilinear(input1, input2, weight, bias);
}

FlattenImpl::FlattenImpl(const FlattenOptions& options) : options(options) {}

void FlattenImpl::pretty_print(std::ostream& stream) const {
  stream << "tenon::nn::Flatten(start_dim=" << options.start_dim() << ", end_dim=" << options.end_dim() << ")";
}

Tensor FlattenImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  return input.flatten(options.start_dim(), options.end_dim());
}

UnflattenImpl::UnflattenImpl(UnflattenOptions options) : options(std::move(options)) {}

void UnflattenImpl::pretty_print(std::ostream& stream) const {
  if (!options.namedshape().empty()) {
    stream << "tenon::nn::Unflatten(dim=\"" << options.dimname() << "\", unflattened_size={";
    const char* separator = "";
    for (const auto& [name, size] : options.namedshape()) {
      stream << separator << "{\"" << name << "\", " << size << "}";
      separator = ", ";
    }
    stream << "})";
    return;
  }
  stream << "tenon::nn::Unflatten(dim=" << options.dim() << ", unflattened_size={";
  for (std::size_t i = 0; i < options.sizes().size(); ++i) stream << (i ? ", " : "") << options.sizes()[i];
  stream << "})";
}

Tensor UnflattenImpl::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  if (!options.namedshape().empty()) {
    throw Error("Unflatten: dimensions have no names here; give the dimension's number instead of '" +
                options.dimname() + "'");
  }
  return input.unflatten(options.dim(), options.sizes());
}

template class Cloneable<IdentityImpl>;
template class Cloneable<LinearImpl>;
template class Cloneable<BilinearImpl>;
template class Cloneable<FlattenImpl>;
template class Cloneable<UnflattenImpl>;

}  // namespace tenon::nn
