// ModuleList and ModuleDict: modules held by position or by name; how they are called is up to their owner.
#pragma once

#include <tenon/nn/containers/cloneable.h>

#include <initializer_list>
#include <iterator>
#include <memory>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenon::nn {

class ModuleListImpl : public Cloneable<ModuleListImpl> {
 public:
  using Iterator = std::vector<std::shared_ptr<Module>>::iterator;
  using ConstIterator = std::vector<std::shared_ptr<Module>>::const_iterator;

  ModuleListImpl() = default;
  template <class First, class... Rest,
            class = std::enable_if_t<!(sizeof...(Rest) == 0 && std::is_same_v<std::decay_t<First>, ModuleListImpl>)>>
  explicit ModuleListImpl(First&& first, Rest&&... rest) {
    push_back(std::forward<First>(first));
    (push_back(std::forward<Rest>(rest)), ...);
  }

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override {
    auto copy = std::make_shared<ModuleListImpl>();
    for (const auto& module : modules_) copy->push_back(module->clone(device));
    return copy;
  }
  void reset() override {}
  void pretty_print(std::ostream& stream) const override { stream << "tenon::nn::ModuleList"; }

  /// Appends a module, named by its position.
  void push_back(std::shared_ptr<Module> module) { insert(size(), std::move(module)); }
  template <class M, class = std::enable_if_t<std::is_base_of_v<Module, std::decay_t<M>>>>
  void push_back(M&& module) {
    push_back(std::static_pointer_cast<Module>(std::make_shared<std::decay_t<M>>(std::forward<M>(module))));
  }
  template <class M>
  void push_back(const ModuleHolder<M>& holder) {
    push_back(std::static_pointer_cast<Module>(holder.ptr()));
  }
  /// Appends every module of a container.
  template <class Container>
  void extend(const Container& container) {
    for (const auto& module : container) push_back(module);
  }
  /// Puts a module in front of the one at that position; size() appends. Throws Error for a larger one.
  void insert(std::size_t index, std::shared_ptr<Module> module) {
    if (index > size()) throw Error("Index out of range");
    register_module(std::to_string(size()), module);  // may refuse it: before anything has changed
    modules_.insert(modules_.begin() + static_cast<std::ptrdiff_t>(index), std::move(module));
    // Names are positions: those from here on move by one.
    for (std::size_t i = index; i < size(); ++i) children_[std::to_string(i)] = modules_[i];
  }
  template <class M>
  void insert(std::size_t index, const ModuleHolder<M>& holder) {
    insert(index, std::static_pointer_cast<Module>(holder.ptr()));
  }
  template <class M, class = std::enable_if_t<std::is_base_of_v<Module, std::decay_t<M>>>>
  void insert(std::size_t index, M&& module) {
    insert(index, std::static_pointer_cast<Module>(std::make_shared<std::decay_t<M>>(std::forward<M>(module))));
  }

  /// Iterates over the modules in order.
  Iterator begin() { return modules_.begin(); }
  ConstIterator begin() const { return modules_.begin(); }
  /// See begin().
  Iterator end() { return modules_.end(); }
  ConstIterator end() const { return modules_.end(); }
  /// The module at that position as a T. Throws Error behind the end, or where it is of another type.
  template <class T>
  T& at(std::size_t index) {
    auto* module = ptr(index)->template as<T>();
    if (module == nullptr)
      throw Error("Unable to cast module[" + std::to_string(index) + "] to " + demangle(typeid(T)));
    return *module;
  }
  template <class T>
  const T& at(std::size_t index) const {
    return const_cast<ModuleListImpl*>(this)->at<T>(index);
  }
  /// The module at that position; with a type, null where it is of another. Throws Error behind the end.
  std::shared_ptr<Module> ptr(std::size_t index) const {
    if (index >= size()) throw Error("Index out of range");
    return modules_[index];
  }
  template <class T>
  std::shared_ptr<T> ptr(std::size_t index) const {
    return std::dynamic_pointer_cast<T>(ptr(index));
  }
  std::shared_ptr<Module> operator[](std::size_t index) const { return ptr(index); }
  /// The number of modules.
  std::size_t size() const noexcept { return modules_.size(); }
  /// Whether there are no modules.
  bool is_empty() const noexcept { return modules_.empty(); }

 private:
  std::vector<std::shared_ptr<Module>> modules_;
};
TENON_MODULE(ModuleList);

class ModuleDictImpl : public Cloneable<ModuleDictImpl> {
 public:
  using Iterator = OrderedDict<std::string, std::shared_ptr<Module>>::Iterator;
  using ConstIterator = OrderedDict<std::string, std::shared_ptr<Module>>::ConstIterator;

  ModuleDictImpl() = default;
  explicit ModuleDictImpl(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules) {
    update(modules);
  }
  explicit ModuleDictImpl(const OrderedDict<std::string, std::shared_ptr<Module>>& modules) { update(modules); }

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override {
    auto copy = std::make_shared<ModuleDictImpl>();
    for (const auto& item : children_) copy->insert(item.key(), item.value()->clone(device));
    return copy;
  }
  void reset() override {}
  void pretty_print(std::ostream& stream) const override { stream << "tenon::nn::ModuleDict"; }

  /// Iterates over keys and modules in the order of insertion.
  Iterator begin() { return children_.begin(); }
  ConstIterator begin() const { return children_.begin(); }
  /// See begin().
  Iterator end() { return children_.end(); }
  ConstIterator end() const { return children_.end(); }
  /// The number of modules.
  std::size_t size() const noexcept { return children_.size(); }
  /// Whether there are no modules.
  bool empty() const noexcept { return children_.is_empty(); }
  /// Whether there is a module under that key.
  bool contains(const std::string& key) const noexcept { return children_.contains(key); }
  /// Removes every module.
  void clear() { children_.clear(); }
  /// The keys in the order of insertion.
  std::vector<std::string> keys() const { return children_.keys(); }
  /// The modules in the order of insertion.
  std::vector<std::shared_ptr<Module>> values() const { return children_.values(); }
  /// Keys and modules in the order of insertion.
  OrderedDict<std::string, std::shared_ptr<Module>> items() const { return children_; }
  std::shared_ptr<Module> operator[](const std::string& key) const { return children_[key]; }
  /// The module under that key as a T. Throws Error where there is none, or where it is of another type.
  template <class T>
  T& at(const std::string& key) {
    auto* module = children_[key]->template as<T>();
    if (module == nullptr) throw Error("Unable to cast module[" + key + "] to " + demangle(typeid(T)));
    return *module;
  }
  template <class T>
  const T& at(const std::string& key) const {
    return const_cast<ModuleDictImpl*>(this)->at<T>(key);
  }

  /// Adds a module and returns it. Throws Error for a key that is empty, has a dot or is taken: update() replaces.
  std::shared_ptr<Module> insert(std::string key, std::shared_ptr<Module> module) {
    return register_module(std::move(key), std::move(module));
  }
  /// Takes a module out and returns it. Throws Error where there is none under that key.
  std::shared_ptr<Module> pop(const std::string& key) {
    std::shared_ptr<Module> module = children_[key];
    unregister_module(key);
    return module;
  }
  /// Keys that are there are replaced.
  void update(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules) {
    for (const auto& [key, module] : modules) put(key, module);
  }
  template <class Container>
  void update(const Container& modules) {
    for (const auto& item : modules) put(item.key(), item.value());
  }

 private:
  void put(const std::string& key, std::shared_ptr<Module> module) {
    if (contains(key)) {
      replace_module(key, std::move(module));
    } else {
      insert(key, std::move(module));
    }
  }
};
TENON_MODULE(ModuleDict);

}  // namespace tenon::nn
