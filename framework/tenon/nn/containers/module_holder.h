// ModuleHolder: a module by reference. `Linear layer(3, 4)` makes a LinearImpl behind a shared pointer; copies of the
// holder are the same module. TENON_MODULE(Linear) defines the holder of LinearImpl.
#pragma once

#include <tenon/core/error.h>

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace tenon::nn {

namespace detail {

struct ModuleHolderTag {};

template <class T>
inline constexpr bool is_module_holder = std::is_base_of_v<ModuleHolderTag, std::decay_t<T>>;

template <class T, bool = is_module_holder<T>>
struct ContainedType {
  using type = T;
};
template <class T>
struct ContainedType<T, true> {
  using type = typename T::ContainedType;
};

/// Whether T is a holder of C: copying one is not constructing a C from it.
template <class T, class C>
constexpr bool is_holder_of() {
  if constexpr (is_module_holder<T>) {
    return std::is_same_v<typename std::decay_t<T>::ContainedType, C>;
  } else {
    return false;
  }
}

}  // namespace detail

template <class Contained>
class ModuleHolder : detail::ModuleHolderTag {
 public:
  using ContainedType = Contained;

  /// A default-constructed module; use nullptr for none.
  ModuleHolder() : impl_(make_default()) {}
  ModuleHolder(std::nullptr_t) {}  // NOLINT: as in libtorch
  template <class Head, class... Tail,
            class = std::enable_if_t<!(detail::is_holder_of<Head, Contained>() && sizeof...(Tail) == 0)>>
  explicit ModuleHolder(Head&& head, Tail&&... tail)
      : impl_(std::make_shared<Contained>(std::forward<Head>(head), std::forward<Tail>(tail)...)) {}
  ModuleHolder(std::shared_ptr<Contained> module) : impl_(std::move(module)) {}  // NOLINT

  explicit operator bool() const noexcept { return !is_empty(); }
  /// Whether there is no module in it: it was made from nullptr, or moved from.
  bool is_empty() const noexcept { return impl_ == nullptr; }

  Contained* operator->() { return get(); }
  const Contained* operator->() const { return get(); }
  Contained& operator*() { return *get(); }
  const Contained& operator*() const { return *get(); }
  /// Throws Error on an empty holder.
  const std::shared_ptr<Contained>& ptr() const {
    if (impl_ == nullptr) throw Error("Accessing empty ModuleHolder");
    return impl_;
  }
  /// The module, borrowed. Throws Error where the holder is empty.
  Contained* get() { return ptr().get(); }
  const Contained* get() const { return ptr().get(); }

  template <class... Arguments>
  decltype(auto) operator()(Arguments&&... arguments) {
    return impl_->forward(std::forward<Arguments>(arguments)...);
  }
  template <class Argument>
  decltype(auto) operator[](Argument&& argument) {
    return (*impl_)[std::forward<Argument>(argument)];
  }

 protected:
  std::shared_ptr<Contained> impl_;

 private:
  static std::shared_ptr<Contained> make_default() {
    if constexpr (std::is_default_constructible_v<Contained>) {
      return std::make_shared<Contained>();
    } else {
      static_assert(std::is_default_constructible_v<Contained>,
                    "this module has no default constructor: give arguments, or nullptr for an empty holder");
    }
  }
};

template <class Contained>
std::ostream& operator<<(std::ostream& stream, const ModuleHolder<Contained>& holder) {
  return stream << *holder;
}

}  // namespace tenon::nn

#define TENON_MODULE_IMPL(Name, ImplType)                                \
  class Name : public ::tenon::nn::ModuleHolder<ImplType> { /* NOLINT */ \
   public:                                                               \
    using ::tenon::nn::ModuleHolder<ImplType>::ModuleHolder;             \
    using Impl = ImplType;                                               \
  }
#define TENON_MODULE(Name) TENON_MODULE_IMPL(Name, Name##Impl)
