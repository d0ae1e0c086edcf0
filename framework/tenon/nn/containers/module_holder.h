// ModuleHolder: a module by reference. `Linear layer(3, 4)` makes a LinearImpl behind a shared pointer; copies of the
// holder are the same module. TENON_MODULE(Linear) defines the holder of LinearImpl.
#pragma once

#include <tenon/core/error.h>
#include <tenon/nn/module_scope.h>

#include <cstddef>
#include <iosfwd>
#include <memory>
#include <type_traits>
#include <utility>

namespace tenon::nn {

template <class Contained>
class ModuleHolder;

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

/// Whether T is a holder of a Contained: copying one is not constructing a Contained from it.
template <class T, class Contained>
concept HolderOf = std::is_base_of_v<ModuleHolder<Contained>, std::remove_cvref_t<T>>;

}  // namespace detail

template <class Contained>
class ModuleHolder : detail::ModuleHolderTag {
 public:
  using ContainedType = Contained;

  /// A default-constructed module; use nullptr for none.
  ModuleHolder() : ModuleHolder(make_default()) {}
  ModuleHolder(std::nullptr_t) {}  // NOLINT: as in libtorch
  template <class Head, class... Tail>
  requires(sizeof...(Tail) > 0 || !detail::HolderOf<Head, Contained>) explicit ModuleHolder(Head&& head, Tail&&... tail)
      : ModuleHolder(std::make_shared<Contained>(std::forward<Head>(head), std::forward<Tail>(tail)...)) {}
  ModuleHolder(std::shared_ptr<Contained> module) : impl_(module.get()), owner_(std::move(module)) {}  // NOLINT
  ModuleHolder(const ModuleHolder&) = default;
  ModuleHolder(ModuleHolder&& other) noexcept : impl_(other.impl_), owner_(std::move(other.owner_)) {
    other.impl_ = nullptr;
  }
  ModuleHolder& operator=(const ModuleHolder&) = default;
  ModuleHolder& operator=(ModuleHolder&& other) noexcept {
    impl_ = other.impl_;
    owner_ = std::move(other.owner_);
    if (this != &other) other.impl_ = nullptr;
    return *this;
  }
  ~ModuleHolder() = default;

  explicit operator bool() const noexcept { return !is_empty(); }
  /// Whether there is no module in it: it was made from nullptr, or moved from.
  bool is_empty() const noexcept { return impl_ == nullptr; }

  Contained* operator->() { return get(); }
  const Contained* operator->() const { return get(); }
  Contained& operator*() { return *get(); }
  const Contained& operator*() const { return *get(); }
  /// A share of the module. Throws Error on an empty holder.
  std::shared_ptr<Contained> ptr() const { return std::shared_ptr<Contained>(owner_, checked()); }
  /// The module, borrowed. Throws Error where the holder is empty.
  Contained* get() { return checked(); }
  const Contained* get() const { return checked(); }

  template <class... Arguments>
  decltype(auto) operator()(Arguments&&... arguments) {
    const ModuleScope scope(*impl_);
    return impl_->forward(std::forward<Arguments>(arguments)...);
  }
  template <class Argument>
  decltype(auto) operator[](Argument&& argument) {
    return (*impl_)[std::forward<Argument>(argument)];
  }

 protected:
  Contained* impl_ = nullptr;

 private:
  Contained* checked() const {
    if (impl_ == nullptr) throw Error("Accessing empty ModuleHolder");
    return impl_;
  }

  static std::shared_ptr<Contained> make_default() {
    if constexpr (std::is_default_constructible_v<Contained>) {
      return std::make_shared<Contained>();
    } else {
      static_assert(std::is_default_constructible_v<Contained>,
                    "this module has no default constructor: give arguments, or nullptr for an empty holder");
    }
  }

  // Shares what impl_ points to. Of one type for all modules: a pointer class for each of them was a tenth of what a
  // compiler does on nn.h.
  std::shared_ptr<void> owner_;
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
