// Parameters by position and by name: what changes and prints them.
#include <tenon/nn/containers/parameter_list.h>

#include <ostream>

namespace tenon::nn {

/// "ParameterList(", a line for each: "(0): Parameter containing: [Float of size [3, 4]]", and ")".
static void print_parameters(std::ostream& stream, const char* kind,
                             const OrderedDict<std::string, Tensor>& parameters) {
  stream << kind << "(\n";
  for (const auto& item : parameters) {
    stream << "(" << item.key() << "): Parameter containing: [" << item.value().scalar_type() << " of size "
           << item.value().sizes() << "]\n";
  }
  stream << ")";
}

void ParameterListImpl::pretty_print(std::ostream& stream) const {
  print_parameters(stream, "tenon::nn::ParameterList", parameters_);
}

void ParameterListImpl::append(const Tensor& parameter) {
  register_parameter(std::to_string(parameters_.size()), parameter, parameter.requires_grad());
}

ParameterListImpl& ParameterListImpl::operator+=(const ParameterListImpl& other) {
  extend(OrderedDict(other.parameters_));  // a copy: `other` may be this one
  return *this;
}

Tensor& ParameterListImpl::at(std::size_t index) {
  if (index >= size()) throw Error("Index out of range");
  return parameters_[std::to_string(index)];
}

ParameterDictImpl::ParameterDictImpl(const OrderedDict<std::string, Tensor>& parameters) { parameters_ = parameters; }

void ParameterDictImpl::pretty_print(std::ostream& stream) const {
  print_parameters(stream, "tenon::nn::ParameterDict", parameters_);
}

Tensor& ParameterDictImpl::insert(std::string key, Tensor parameter) {
  const bool requires_grad = parameter.requires_grad();
  return register_parameter(std::move(key), std::move(parameter), requires_grad);
}

Tensor ParameterDictImpl::pop(const std::string& key) {
  Tensor parameter = parameters_[key];
  parameters_.erase(key);
  return parameter;
}

void ParameterDictImpl::clear() { parameters_.clear(); }
std::vector<std::string> ParameterDictImpl::keys() const { return parameters_.keys(); }
std::vector<Tensor> ParameterDictImpl::values() const { return parameters_.values(); }
Tensor& ParameterDictImpl::get(const std::string& key) { return parameters_[key]; }
const Tensor& ParameterDictImpl::get(const std::string& key) const { return parameters_[key]; }

bool ParameterDictImpl::contains(const std::string& key) const noexcept { return parameters_.contains(key); }

template class Cloneable<ParameterListImpl>;
template class Cloneable<ParameterDictImpl>;

}  // namespace tenon::nn
