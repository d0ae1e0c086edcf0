// Sequential: modules applied one after another; the first may take any arguments, each next one takes what the one
// before returned.
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/containers/any_module.h>
#include <tenon/nn/containers/cloneable.h>
#include <tenon/nn/containers/named_any.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenon::nn {

class TENON_EXPORT SequentialImpl : public Cloneable<SequentialImpl> {
 public:
  using Iterator = std::vector<AnyModule>::iterator;
  using ConstIterator = std::vector<AnyModule>::const_iterator;

  SequentialImpl() = default;
  /// Modules, holders or AnyModules, named "0", "1", …
  template <class First, class... Rest,
            class = std::enable_if_t<!(sizeof...(Rest) == 0 &&
                                       (std::is_same_v<std::decay_t<First>, SequentialImpl> ||
                                        std::is_same_v<std::decay_t<First>, OrderedDict<std::string, AnyModule>>))>>
  explicit SequentialImpl(First&& first, Rest&&... rest) {
    modules_.reserve(1 + sizeof...(Rest));
    push_back(std::forward<First>(first));
    (push_back(std::forward<Rest>(rest)), ...);
  }
  TENON_API explicit SequentialImpl(OrderedDict<std::string, AnyModule>&& modules);
  /// Sequential({{"first", Linear(3, 4)}, {"second", ReLU()}})
  TENON_API explicit SequentialImpl(std::initializer_list<NamedAnyModule> modules);

  TENON_API std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  TENON_API void pretty_print(std::ostream& stream) const override;

  /// Throws Error when empty, or when the last module returns another type than ReturnType.
  template <class ReturnType = Tensor, class... Inputs>
  ReturnType forward(Inputs&&... inputs) {
    if (is_empty()) throw Error("Cannot call forward() on an empty Sequential");
    const ModuleScope scope(*this);
    AnyValue value = modules_.front().any_forward(std::forward<Inputs>(inputs)...);
    for (std::size_t i = 1; i < modules_.size(); ++i) value = modules_[i].any_forward(std::move(value));
    if (auto* result = value.try_get<ReturnType>()) return std::move(*result);
    throw Error("The type of the return value is " + demangle(value.type_info()) + ", but you asked for type " +
                demangle(typeid(ReturnType)));
  }

  /// Appends a module, under its position as a name or under the name given. Throws Error for a name that is empty, has
  /// a dot or is taken.
  template <class M>
  void push_back(std::shared_ptr<M> module) {
    push_back(std::to_string(size()), std::move(module));
  }
  template <class M>
  void push_back(std::string name, std::shared_ptr<M> module) {
    push_back(std::move(name), AnyModule(std::move(module)));
  }
  template <class M, class = std::enable_if_t<std::is_base_of_v<Module, std::decay_t<M>>>>
  void push_back(M&& module) {
    push_back(std::to_string(size()), std::forward<M>(module));
  }
  template <class M, class = std::enable_if_t<std::is_base_of_v<Module, std::decay_t<M>>>>
  void push_back(std::string name, M&& module) {
    push_back(std::move(name), std::make_shared<std::decay_t<M>>(std::forward<M>(module)));
  }
  template <class M>
  void push_back(const ModuleHolder<M>& holder) {
    push_back(std::to_string(size()), holder.ptr());
  }
  template <class M>
  void push_back(std::string name, const ModuleHolder<M>& holder) {
    push_back(std::move(name), holder.ptr());
  }
  TENON_API void push_back(AnyModule module);
  TENON_API void push_back(std::string name, AnyModule module);
  TENON_API void push_back(const NamedAnyModule& named);

  /// Appends every module of a container: a Sequential, a vector of modules or of AnyModules.
  template <class Container>
  void extend(const Container& container) {
    for (const auto& module : container) push_back(module);
  }

  /// Iterates over the modules, as AnyModule, in the order in which they run.
  Iterator begin() { return modules_.begin(); }
  ConstIterator begin() const { return modules_.begin(); }
  /// See begin().
  Iterator end() { return modules_.end(); }
  ConstIterator end() const { return modules_.end(); }

  /// The module at that position as a T. Throws Error behind the end, or where its type is not exactly T.
  template <class T>
  T& at(std::size_t index) {
    return checked(index).template get<T>();
  }
  template <class T>
  const T& at(std::size_t index) const {
    return checked(index).template get<T>();
  }
  /// The module at that position; with a type, as at() gives it. Throws Error behind the end.
  TENON_API std::shared_ptr<Module> ptr(std::size_t index) const;
  template <class T>
  std::shared_ptr<T> ptr(std::size_t index) const {
    return checked(index).template ptr<T>();
  }
  std::shared_ptr<Module> operator[](std::size_t index) const { return ptr(index); }
  /// The number of modules.
  std::size_t size() const noexcept { return modules_.size(); }
  /// Whether there are no modules.
  bool is_empty() const noexcept { return modules_.empty(); }

 private:
  TENON_API AnyModule& checked(std::size_t index);
  const AnyModule& checked(std::size_t index) const { return const_cast<SequentialImpl*>(this)->checked(index); }

  std::vector<AnyModule> modules_;
};

extern template class Cloneable<SequentialImpl>;

/// As TENON_MODULE, plus the list of named modules, which no forwarding constructor can take.
class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  using ModuleHolder<SequentialImpl>::ModuleHolder;
  using Impl = SequentialImpl;
  Sequential() = default;
  TENON_API Sequential(std::initializer_list<NamedAnyModule> modules);  // NOLINT
};

}  // namespace tenon::nn
