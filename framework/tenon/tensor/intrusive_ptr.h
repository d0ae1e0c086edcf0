// IntrusivePtr: shared ownership with the count inside the object. By hand: installed headers need no library, so not
// boost::intrusive_ptr; and a sole owner releases without a read-modify-write.
//
// Note [The last reference]
// Whoever holds the only reference may give it up with a plain load and a store: others can raise the count only
// through a reference of theirs, and there is none. That is what most objects of an operator go through, so it has to
// be cheap. It does not hold for an object that is also known by an address that owns nothing: between the load that
// sees 1 and the store of 0 somebody may come by that address. Such a type derives from WeaklyKnown, whose releases are
// one atomic step each, and only there is try_retain().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace tenon {

/// The base of what IntrusivePtr owns, and reaches through owners only. Born with a count of zero.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  /// One more reference. The caller holds one already.
  void retain() const { references_.fetch_add(1, std::memory_order_relaxed); }
  /// The first reference, while only the maker knows the object: no read-modify-write.
  void retain_new() const { references_.store(1, std::memory_order_relaxed); }
  /// True when the last reference is gone.
  bool release() const {
    // See Note [The last reference].
    if (references_.load(std::memory_order_acquire) == 1) {
      references_.store(0, std::memory_order_relaxed);
      return true;
    }
    return references_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  /// The number of references, as it was a moment ago.
  std::uint32_t use_count() const { return references_.load(std::memory_order_acquire); }

 protected:
  ~RefCounted() = default;
  mutable std::atomic<std::uint32_t> references_{0};
};

/// The base of what is also reached by somebody who owns nothing of it.
class WeaklyKnown : public RefCounted {
 public:
  /// One more reference. The first one shows the whole object to who comes by its address: see try_retain().
  void retain() const { references_.fetch_add(1, std::memory_order_release); }
  /// The first one, while only the maker counts references.
  void retain_new() const { references_.store(1, std::memory_order_release); }
  /// Gives up a reference: one atomic step. True for the last one.
  bool release() const { return references_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  /// Retains unless the object is already on its way out. The caller sees to it that the memory stays until it returns.
  bool try_retain() const {
    std::uint32_t seen = references_.load(std::memory_order_relaxed);
    while (seen != 0) {
      if (references_.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) return true;
    }
    return false;
  }

 protected:
  ~WeaklyKnown() = default;
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

  /// Gives up the object.
  void reset() {
    if (T* object = std::exchange(object_, nullptr); object && object->release()) destroy_counted(object);
  }
  /// Exchanges the two objects.
  void swap(IntrusivePtr& other) noexcept { std::swap(object_, other.object_); }
  /// The object, borrowed; null where there is none.
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
[[gnu::always_inline]] inline IntrusivePtr<T> make_intrusive(Arguments&&... arguments) {
  T* object = new T(std::forward<Arguments>(arguments)...);
  object->retain_new();
  return IntrusivePtr<T>::adopt(object);
}

}  // namespace tenon
