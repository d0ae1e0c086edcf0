// ModuleList and ModuleDict: modules held by position or by name; how they are called is up to their owner.
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/containers/cloneable.h>

#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenon::nn {

class TENON_EXPORT ModuleListImpl : public Cloneable<ModuleListImpl> {
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

  TENON_API std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  TENON_API void pretty_print(std::ostream& stream) const override;

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
  TENON_API void insert(std::size_t index, std::shared_ptr<Module> module);
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
  TENON_API std::shared_ptr<Module> ptr(std::size_t index) const;
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
TENON_LIBRARY_MODULE(ModuleList);

class TENON_EXPORT ModuleDictImpl : public Cloneable<ModuleDictImpl> {
 public:
  using Iterator = OrderedDict<std::string, std::shared_ptr<Module>>::Iterator;
  using ConstIterator = OrderedDict<std::string, std::shared_ptr<Module>>::ConstIterator;

  ModuleDictImpl() = default;
  TENON_API explicit ModuleDictImpl(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules);
  TENON_API explicit ModuleDictImpl(const OrderedDict<std::string, std::shared_ptr<Module>>& modules);

  TENON_API std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  TENON_API void pretty_print(std::ostream& stream) const override;

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
  TENON_API bool contains(const std::string& key) const noexcept;
  /// Removes every module.
  TENON_API void clear();
  /// The keys in the order of insertion.
  TENON_API std::vector<std::string> keys() const;
  /// The modules in the order of insertion.
  TENON_API std::vector<std::shared_ptr<Module>> values() const;
  /// Keys and modules in the order of insertion.
  TENON_API OrderedDict<std::string, std::shared_ptr<Module>> items() const;
  TENON_API std::shared_ptr<Module> operator[](const std::string& key) const;
  /// The module under that key as a T. Throws Error where there is none, or where it is of another type.
  template <class T>
  T& at(const std::string& key) {
    auto* module = (*this)[key]->template as<T>();
    if (module == nullptr) throw Error("Unable to cast module[" + key + "] to " + demangle(typeid(T)));
    return *module;
  }
  template <class T>
  const T& at(const std::string& key) const {
    return const_cast<ModuleDictImpl*>(this)->at<T>(key);
  }

  /// Adds a module and returns it. Throws Error for a key that is empty, has a dot or is taken: update() replaces.
  TENON_API std::shared_ptr<Module> insert(std::string key, std::shared_ptr<Module> module);
  /// Takes a module out and returns it. Throws Error where there is none under that key.
  TENON_API std::shared_ptr<Module> pop(const std::string& key);
  /// Keys that are there are replaced.
  TENON_API void update(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules);
  template <class Container>
  void update(const Container& modules) {
    for (const auto& item : modules) put(item.key(), item.value());
  }

 private:
  TENON_API void put(const std::string& key, std::shared_ptr<Module> module);
};
TENON_LIBRARY_MODULE(ModuleDict);

}  // namespace tenon::nn
