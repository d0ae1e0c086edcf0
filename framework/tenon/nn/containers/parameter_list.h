// ParameterList and ParameterDict: parameters held by position or by name.
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/containers/cloneable.h>

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

namespace tenon::nn {

class TENON_EXPORT ParameterListImpl : public Cloneable<ParameterListImpl> {
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
  TENON_API void pretty_print(std::ostream& stream) const override;

  /// Registers a parameter under its position as a name. Whether it requires a gradient stays as it is.
  TENON_API void append(const Tensor& parameter);
  void append(const OrderedDict<std::string, Tensor>::Item& item) { append(item.value()); }
  /// Appends every parameter of a container: tensors, or the items of an OrderedDict.
  template <class Container>
  void extend(const Container& container) {
    for (const auto& parameter : container) append(parameter);
  }
  TENON_API ParameterListImpl& operator+=(const ParameterListImpl& other);

  /// Iterates over positions, as names, and parameters.
  Iterator begin() { return parameters_.begin(); }
  ConstIterator begin() const { return parameters_.begin(); }
  /// See begin().
  Iterator end() { return parameters_.end(); }
  ConstIterator end() const { return parameters_.end(); }
  /// The parameter at that position. Throws Error behind the end.
  TENON_API Tensor& at(std::size_t index);
  const Tensor& at(std::size_t index) const { return const_cast<ParameterListImpl*>(this)->at(index); }
  Tensor& operator[](std::size_t index) { return at(index); }
  const Tensor& operator[](std::size_t index) const { return at(index); }
  /// The number of parameters.
  std::size_t size() const noexcept { return parameters_.size(); }
  /// Whether there are no parameters.
  bool is_empty() const noexcept { return parameters_.is_empty(); }
};
TENON_LIBRARY_MODULE(ParameterList);

class TENON_EXPORT ParameterDictImpl : public Cloneable<ParameterDictImpl> {
 public:
  using Iterator = OrderedDict<std::string, Tensor>::Iterator;
  using ConstIterator = OrderedDict<std::string, Tensor>::ConstIterator;

  ParameterDictImpl() = default;
  TENON_API explicit ParameterDictImpl(const OrderedDict<std::string, Tensor>& parameters);
  void reset() override {}
  TENON_API void pretty_print(std::ostream& stream) const override;

  /// Registers a parameter under that key and returns it; whether it requires a gradient stays as it is. Throws Error
  /// for a key that is empty, has a dot or is taken.
  TENON_API Tensor& insert(std::string key, Tensor parameter);
  /// Takes the parameter under that key out and returns it. Throws Error where there is none.
  TENON_API Tensor pop(const std::string& key);
  /// Replaces parameters by those of the same names. Throws Error for a name that is not there: insert() is for new
  /// ones.
  template <class Container>
  void update(const Container& container) {
    for (const auto& item : container) get(item.key()) = item.value();
  }
  /// Removes every parameter.
  TENON_API void clear();
  /// The keys in the order of insertion.
  TENON_API std::vector<std::string> keys() const;
  /// The parameters in the order of insertion.
  TENON_API std::vector<Tensor> values() const;
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
  TENON_API bool contains(const std::string& key) const noexcept;
  /// The parameter under that key. Throws Error where there is none.
  TENON_API Tensor& get(const std::string& key);
  TENON_API const Tensor& get(const std::string& key) const;
  Tensor& operator[](const std::string& key) { return get(key); }
  const Tensor& operator[](const std::string& key) const { return get(key); }
};
TENON_LIBRARY_MODULE(ParameterDict);

}  // namespace tenon::nn
