// IntrusivePtr: shared ownership with the count inside the object. By hand: installed headers need no library, so not
// boost::intrusive_ptr; and a sole owner releases without a read-modify-write.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace tenon {

/// The base of what IntrusivePtr owns. Born with a count of zero.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void retain() const { references_.fetch_add(1, std::memory_order_relaxed); }
  /// The first reference, while only the maker knows the object: no read-modify-write.
  void retain_new() const { references_.store(1, std::memory_order_relaxed); }
  /// True when the last reference is gone.
  bool release() const {
    // A sole owner needs no read-modify-write: nobody else can be raising the count.
    if (references_.load(std::memory_order_acquire) == 1) {
      references_.store(0, std::memory_order_relaxed);
      return true;
    }
    return references_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  /// Retains unless the object is already on its way out.
  bool try_retain() const {
    std::uint32_t seen = references_.load(std::memory_order_relaxed);
    while (seen != 0) {
      if (references_.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) return true;
    }
    return false;
  }
  std::uint32_t use_count() const { return references_.load(std::memory_order_acquire); }

 protected:
  ~RefCounted() = default;

 private:
  mutable std::atomic<std::uint32_t> references_{0};
};

/// What happens when the last reference goes; a type with its own way overloads this.
template <class T>
void destroy_counted(T* object) {
  delete object;
}

template <class T>
class IntrusivePtr {
 public:
  using element_type = T;
  IntrusivePtr() = default;
  IntrusivePtr(std::nullptr_t) {}  // NOLINT
  explicit IntrusivePtr(T* object) : object_(object) {
    if (object_) object_->retain();
  }
  /// Takes over a reference that the caller already counted.
  static IntrusivePtr adopt(T* object) {
    IntrusivePtr pointer;
    pointer.object_ = object;
    return pointer;
  }
  IntrusivePtr(const IntrusivePtr& other) : IntrusivePtr(other.object_) {}
  IntrusivePtr(IntrusivePtr&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> IntrusivePtr(const IntrusivePtr<U>& other)
      : IntrusivePtr(other.get()) {}  // NOLINT
  template <class U>
  requires std::is_convertible_v<U*, T*> IntrusivePtr(IntrusivePtr<U>&& other)
  noexcept : object_(other.detach()) {}  // NOLINT
  IntrusivePtr& operator=(const IntrusivePtr& other) {
    IntrusivePtr(other).swap(*this);
    return *this;
  }
  IntrusivePtr& operator=(IntrusivePtr&& other) noexcept {
    IntrusivePtr(std::move(other)).swap(*this);
    return *this;
  }
  ~IntrusivePtr() { reset(); }

  void reset() {
    if (T* object = std::exchange(object_, nullptr); object && object->release()) destroy_counted(object);
  }
  void swap(IntrusivePtr& other) noexcept { std::swap(object_, other.object_); }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  /// A std::shared_ptr that holds one of the references: std::shared_ptr<Node> node = x.grad_fn().
  operator std::shared_ptr<T>() const {  // NOLINT: implicit, for programs that name the pointer's type
    return object_ ? std::shared_ptr<T>(object_, [held = *this](T*) {}) : nullptr;
  }
  /// Gives up ownership without releasing.
  T* detach() { return std::exchange(object_, nullptr); }
  friend bool operator==(const IntrusivePtr& a, const IntrusivePtr& b) { return a.object_ == b.object_; }
  friend bool operator==(const IntrusivePtr& a, std::nullptr_t) { return a.object_ == nullptr; }

 private:
  T* object_ = nullptr;
};

/// An object on the heap, owned by the pointer.
template <class T, class... Arguments>
IntrusivePtr<T> make_intrusive(Arguments&&... arguments) {
  T* object = new T(std::forward<Arguments>(arguments)...);
  object->retain_new();
  return IntrusivePtr<T>::adopt(object);
}

}  // namespace tenon
