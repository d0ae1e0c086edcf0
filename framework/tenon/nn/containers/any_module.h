// AnyModule: a module whose type is forgotten until forward<R>(arguments…) asks for exactly the right one.
#pragma once

#include <tenon/core/owned.h>
#include <tenon/nn/containers/any_value.h>
#include <tenon/nn/module.h>

#include <array>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace tenon::nn {

/// What AnyModule sees of a module.
struct AnyModuleBase {
  explicit AnyModuleBase(const std::type_info& type) : type_info(type) {}
  virtual ~AnyModuleBase() = default;
  /// Calls the module's forward(); a result of type void becomes nullptr. Throws Error for a wrong number of arguments,
  /// or one that is not exactly of forward()'s type.
  virtual AnyValue forward(std::span<AnyValue> arguments) = 0;
  /// The module.
  virtual std::shared_ptr<Module> ptr() = 0;
  /// Another holder of the same module.
  virtual Owned<AnyModuleBase> copy() const = 0;
  /// A holder of a deep copy of the module, on another device if one is given. Throws Error as Module::clone() does.
  virtual Owned<AnyModuleBase> clone_module(const std::optional<Device>& device) const = 0;
  const std::type_info& type_info;
};

template <class ModuleType, class... Arguments>
struct AnyModuleContent final : AnyModuleBase {
  explicit AnyModuleContent(std::shared_ptr<ModuleType> m) : AnyModuleBase(typeid(ModuleType)), module(std::move(m)) {}

  AnyValue forward(std::span<AnyValue> given) override {
    Module& base = *module;
    if (base._forward_has_default_args()) return forward_with_defaults(given);
    if (given.size() != sizeof...(Arguments)) {
      std::string message = expects() + std::to_string(sizeof...(Arguments)) + received(given.size());
      if (given.size() < sizeof...(Arguments)) {
        const std::string name = demangle(type_info);
        message += " If " + name +
                   "'s forward() method has default arguments, please make sure the forward() method is " +
                   "declared with a corresponding `FORWARD_HAS_DEFAULT_ARGS` macro.";
      }
      throw Error(message);
    }
    return call(given, std::index_sequence_for<Arguments...>{});
  }
  std::shared_ptr<Module> ptr() override { return module; }
  Owned<AnyModuleBase> copy() const override { return Owned<AnyModuleBase>(new AnyModuleContent(*this)); }
  Owned<AnyModuleBase> clone_module(const std::optional<Device>& device) const override {
    return Owned<AnyModuleBase>(new AnyModuleContent(std::dynamic_pointer_cast<ModuleType>(module->clone(device))));
  }

  std::shared_ptr<ModuleType> module;

 private:
  std::string expects() const { return demangle(type_info) + "'s forward() method expects "; }
  static std::string received(std::size_t count) { return " argument(s), but received " + std::to_string(count) + "."; }

  AnyValue forward_with_defaults(std::span<AnyValue> given) {
    Module& base = *module;
    const unsigned int required = base._forward_num_required_args();
    if (given.size() < required || given.size() > sizeof...(Arguments)) {
      throw Error(expects() + "at least " + std::to_string(required) + " argument(s) and at most " +
                  std::to_string(sizeof...(Arguments)) + received(given.size()));
    }
    std::vector<AnyValue> arguments;
    for (AnyValue& value : given) arguments.push_back(std::move(value));
    arguments = base._forward_populate_default_args(std::move(arguments));
    return call(arguments, std::index_sequence_for<Arguments...>{});
  }
  template <class T>
  static std::decay_t<T>&& checked(std::span<AnyValue> arguments, std::size_t i) {
    using Value = std::decay_t<T>;
    if (Value* value = arguments[i].template try_get<Value>()) return std::move(*value);
    throw Error("Expected argument #" + std::to_string(i) + " to be of type " + demangle(typeid(Value)) +
                ", but received value of type " + demangle(arguments[i].type_info()));
  }
  template <std::size_t... I>
  AnyValue call([[maybe_unused]] std::span<AnyValue> arguments, std::index_sequence<I...>) {
    using Result = decltype(module->forward(checked<Arguments>(arguments, I)...));
    const ModuleScope scope(*module);
    if constexpr (std::is_void_v<Result>) {
      module->forward(checked<Arguments>(arguments, I)...);
      return AnyValue(nullptr);
    } else {
      return AnyValue(module->forward(checked<Arguments>(arguments, I)...));
    }
  }
};

class AnyModule {
 public:
  AnyModule() = default;
  template <class ModuleType, class = std::enable_if_t<std::is_base_of_v<Module, ModuleType>>>
  explicit AnyModule(std::shared_ptr<ModuleType> module) : content_(make(std::move(module), &ModuleType::forward)) {}
  template <class ModuleType, class = std::enable_if_t<std::is_base_of_v<Module, std::decay_t<ModuleType>>>>
  explicit AnyModule(ModuleType&& module)
      : AnyModule(std::make_shared<std::decay_t<ModuleType>>(std::forward<ModuleType>(module))) {}
  template <class ModuleType>
  explicit AnyModule(const ModuleHolder<ModuleType>& holder) : AnyModule(holder.ptr()) {}

  AnyModule(AnyModule&&) = default;
  AnyModule& operator=(AnyModule&&) = default;
  AnyModule(const AnyModule& other) : content_(other.content_ ? other.content_->copy() : Owned<AnyModuleBase>()) {}
  AnyModule& operator=(const AnyModule& other) {
    if (this != &other) content_ = other.content_ ? other.content_->copy() : Owned<AnyModuleBase>();
    return *this;
  }
  template <class ModuleType>
  AnyModule& operator=(std::shared_ptr<ModuleType> module) {
    return *this = AnyModule(std::move(module));
  }

  /// A deep copy of the module.
  AnyModule clone(const std::optional<Device>& device = std::nullopt) const {
    AnyModule copy;
    if (content_) copy.content_ = content_->clone_module(device);
    return copy;
  }

  /// Arguments must be of forward()'s types exactly; so must ReturnType.
  template <class... Arguments>
  AnyValue any_forward(Arguments&&... arguments) {
    expect_content("forward()");
    // An AnyValue stays as it is.
    std::array<AnyValue, sizeof...(Arguments)> values{AnyValue(std::forward<Arguments>(arguments))...};
    return content_->forward(values);
  }
  /// Calls the module's forward(). Throws Error for a wrong number of arguments, one of another type, or another result
  /// than ReturnType.
  template <class ReturnType = Tensor, class... Arguments>
  ReturnType forward(Arguments&&... arguments) {
    return any_forward(std::forward<Arguments>(arguments)...).template get<ReturnType>();
  }

  /// The module as a T. Throws Error where there is none, or where it is of another type.
  template <class T, class = std::enable_if_t<std::is_base_of_v<Module, T>>>
  T& get() {
    expect_content("get()");
    return checked<T>();
  }
  template <class T, class = std::enable_if_t<std::is_base_of_v<Module, T>>>
  const T& get() const {
    return const_cast<AnyModule*>(this)->get<T>();
  }
  template <class T, class Contained = typename T::ContainedType>
  T get() const {
    expect_content("get()");
    return T(ptr<Contained>());
  }

  /// The module. Throws Error where there is none.
  std::shared_ptr<Module> ptr() const {
    expect_content("ptr()");
    return content_->ptr();
  }
  template <class T, class = std::enable_if_t<std::is_base_of_v<Module, T>>>
  std::shared_ptr<T> ptr() const {
    expect_content("ptr()");
    const_cast<AnyModule*>(this)->checked<T>();
    return std::dynamic_pointer_cast<T>(ptr());
  }
  /// The module's type. Throws Error where there is none.
  const std::type_info& type_info() const {
    expect_content("type_info()");
    return content_->type_info;
  }
  /// Whether there is no module in it.
  bool is_empty() const noexcept { return !content_; }

 private:
  template <class ModuleType, class Owner, class Result, class... Arguments>
  static Owned<AnyModuleBase> make(std::shared_ptr<ModuleType> module, Result (Owner::*)(Arguments...)) {
    return Owned<AnyModuleBase>(new AnyModuleContent<ModuleType, Arguments...>(std::move(module)));
  }
  template <class ModuleType, class Owner, class Result, class... Arguments>
  static Owned<AnyModuleBase> make(std::shared_ptr<ModuleType> module, Result (Owner::*)(Arguments...) const) {
    return Owned<AnyModuleBase>(new AnyModuleContent<ModuleType, Arguments...>(std::move(module)));
  }
  void expect_content(const char* what) const {
    if (is_empty()) throw Error(std::string("Cannot call ") + what + " on an empty AnyModule");
  }
  template <class T>
  T& checked() {
    if (content_->type_info == typeid(T)) return *std::static_pointer_cast<T>(content_->ptr());
    throw Error("Attempted to cast module of type " + demangle(content_->type_info) + " to type " +
                demangle(typeid(T)));
  }

  Owned<AnyModuleBase> content_;
};

}  // namespace tenon::nn
