// ParameterList and ParameterDict: parameters held by position or by name.
#pragma once

#include <tenon/nn/containers/cloneable.h>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace tenon::nn {

namespace detail {
/// "  (name): Parameter containing: [Float of size [3, 4]]"
inline void print_parameters(std::ostream& stream, const OrderedDict<std::string, Tensor>& parameters) {
  for (const auto& item : parameters) {
    stream << "(" << item.key() << "): Parameter containing: [" << item.value().scalar_type() << " of size "
           << item.value().sizes() << "]\n";
  }
}
}  // namespace detail

class ParameterListImpl : public Cloneable<ParameterListImpl> {
 public:
  using Iterator = OrderedDict<std::string, Tensor>::Iterator;
  using ConstIterator = OrderedDict<std::string, Tensor>::ConstIterator;

  ParameterListImpl() = default;
  template <class First, class... Rest,
            class = std::enable_if_t<!(sizeof...(Rest) == 0 && std::is_same_v<std::decay_t<First>, ParameterListImpl>)>>
  explicit ParameterListImpl(First&& first, Rest&&... rest) {
    append(std::forward<First>(first));
    (append(std::forward<Rest>(rest)), ...);
  }
  void reset() override {}
  void pretty_print(std::ostream& stream) const override {
    stream << "tenon::nn::ParameterList(\n";
    detail::print_parameters(stream, parameters_);
    stream << ")";
  }

  /// Registers a parameter under its position as a name. Whether it requires a gradient stays as it is.
  void append(const Tensor& parameter) {
    register_parameter(std::to_string(parameters_.size()), parameter, parameter.requires_grad());
  }
  void append(const OrderedDict<std::string, Tensor>::Item& item) { append(item.value()); }
  /// Appends every parameter of a container: tensors, or the items of an OrderedDict.
  template <class Container>
  void extend(const Container& container) {
    for (const auto& parameter : container) append(parameter);
  }
  ParameterListImpl& operator+=(const ParameterListImpl& other) {
    extend(OrderedDict(other.parameters_));  // a copy: `other` may be this one
    return *this;
  }

  /// Iterates over positions, as names, and parameters.
  Iterator begin() { return parameters_.begin(); }
  ConstIterator begin() const { return parameters_.begin(); }
  /// See begin().
  Iterator end() { return parameters_.end(); }
  ConstIterator end() const { return parameters_.end(); }
  /// The parameter at that position. Throws Error behind the end.
  Tensor& at(std::size_t index) {
    if (index >= size()) throw Error("Index out of range");
    return parameters_[std::to_string(index)];
  }
  const Tensor& at(std::size_t index) const { return const_cast<ParameterListImpl*>(this)->at(index); }
  Tensor& operator[](std::size_t index) { return at(index); }
  const Tensor& operator[](std::size_t index) const { return at(index); }
  /// The number of parameters.
  std::size_t size() const noexcept { return parameters_.size(); }
  /// Whether there are no parameters.
  bool is_empty() const noexcept { return parameters_.is_empty(); }
};
TENON_MODULE(ParameterList);

class ParameterDictImpl : public Cloneable<ParameterDictImpl> {
 public:
  using Iterator = OrderedDict<std::string, Tensor>::Iterator;
  using ConstIterator = OrderedDict<std::string, Tensor>::ConstIterator;

  ParameterDictImpl() = default;
  explicit ParameterDictImpl(const OrderedDict<std::string, Tensor>& parameters) { parameters_ = parameters; }
  void reset() override {}
  void pretty_print(std::ostream& stream) const override {
    stream << "tenon::nn::ParameterDict(\n";
    detail::print_parameters(stream, parameters_);
    stream << ")";
  }

  /// Registers a parameter under that key and returns it; whether it requires a gradient stays as it is. Throws Error
  /// for a key that is empty, has a dot or is taken.
  Tensor& insert(std::string key, Tensor parameter) {
    const bool requires_grad = parameter.requires_grad();
    return register_parameter(std::move(key), std::move(parameter), requires_grad);
  }
  /// Takes the parameter under that key out and returns it. Throws Error where there is none.
  Tensor pop(const std::string& key) {
    Tensor parameter = parameters_[key];
    parameters_.erase(key);
    return parameter;
  }
  /// Replaces parameters by those of the same names. Throws Error for a name that is not there: insert() is for new
  /// ones.
  template <class Container>
  void update(const Container& container) {
    for (const auto& item : container) parameters_[item.key()] = item.value();
  }
  /// Removes every parameter.
  void clear() { parameters_.clear(); }
  /// The keys in the order of insertion.
  std::vector<std::string> keys() const { return parameters_.keys(); }
  /// The parameters in the order of insertion.
  std::vector<Tensor> values() const { return parameters_.values(); }
  /// Iterates over keys and parameters in the order of insertion.
  Iterator begin() { return parameters_.begin(); }
  ConstIterator begin() const { return parameters_.begin(); }
  /// See begin().
  Iterator end() { return parameters_.end(); }
  ConstIterator end() const { return parameters_.end(); }
  /// The number of parameters.
  std::size_t size() const noexcept { return parameters_.size(); }
  /// Whether there are no parameters.
  bool empty() const noexcept { return parameters_.is_empty(); }
  /// Whether there is a parameter under that key.
  bool contains(const std::string& key) const noexcept { return parameters_.contains(key); }
  /// The parameter under that key. Throws Error where there is none.
  Tensor& get(const std::string& key) { return parameters_[key]; }
  const Tensor& get(const std::string& key) const { return parameters_[key]; }
  Tensor& operator[](const std::string& key) { return get(key); }
  const Tensor& operator[](const std::string& key) const { return get(key); }
};
TENON_MODULE(ParameterDict);

}  // namespace tenon::nn
