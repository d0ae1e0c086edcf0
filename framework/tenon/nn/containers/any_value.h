// AnyValue: a value of any copyable type, asked back by exactly that type. What goes in and out of a type-erased
// forward().
#pragma once

#include <tenon/core/error.h>
#include <tenon/core/export.h>
#include <tenon/core/owned.h>
#include <tenon/core/recycled.h>

#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace tenon::nn {

/// A type's name for people: "float", "test::AGIUnit".
TENON_API std::string demangle(const std::type_info& type);

class AnyValue {
 public:
  template <class T, class = std::enable_if_t<!std::is_same_v<std::decay_t<T>, AnyValue>>>
  explicit AnyValue(T&& value) : content_(new Holder<std::decay_t<T>>(std::forward<T>(value))) {}
  AnyValue(const AnyValue& other) : content_(other.content_->clone()) {}
  AnyValue(AnyValue&&) = default;
  AnyValue& operator=(const AnyValue& other) {
    content_ = other.content_->clone();
    return *this;
  }
  AnyValue& operator=(AnyValue&&) = default;

  /// Null unless the value is a T. Types are compared by name: a value may have come from another shared object.
  template <class T>
  T* try_get() {
    static_assert(!std::is_reference_v<T>, "AnyValue stores values, not references");
    return type_info() == typeid(T) ? &static_cast<Holder<T>&>(*content_).value : nullptr;
  }
  /// Throws Error naming both types.
  template <class T>
  T get() {
    if (T* value = try_get<T>()) return *value;
    throw Error("Attempted to cast AnyValue to " + demangle(typeid(T)) + ", but its actual type is " +
                demangle(type_info()));
  }
  /// The type of what is held.
  const std::type_info& type_info() const noexcept { return content_->type(); }

 private:
  struct Base : Recycled {
    virtual ~Base() = default;
    virtual Owned<Base> clone() const = 0;
    virtual const std::type_info& type() const = 0;
  };
  template <class T>
  struct Holder final : Base {
    template <class U>
    explicit Holder(U&& v) : value(std::forward<U>(v)) {}
    Owned<Base> clone() const override { return Owned<Base>(new Holder(value)); }
    const std::type_info& type() const override { return typeid(T); }
    T value;
  };

  Owned<Base> content_;
};

}  // namespace tenon::nn
