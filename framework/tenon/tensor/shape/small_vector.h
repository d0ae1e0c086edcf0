// SmallVector: a vector whose first N elements live inside it. By hand: installed headers need no library, so not
// Boost.Container's small_vector.
#pragma once

#include <tenon/core/recycled.h>

#include <cstddef>
#include <initializer_list>
#include <new>
#include <utility>

namespace tenon {

template <class T, std::size_t N>
class SmallVector {
  static_assert(alignof(T) <= alignof(std::max_align_t), "recycled memory has no larger alignment");

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() = default;
  explicit SmallVector(std::size_t count) { resize(count); }
  SmallVector(std::initializer_list<T> items) {
    reserve(items.size());
    for (const T& item : items) push_back(item);
  }
  template <class Iterator>
  SmallVector(Iterator first, Iterator last) {
    for (; first != last; ++first) push_back(*first);
  }
  SmallVector(const SmallVector& other) {
    reserve(other.size_);
    for (const T& item : other) push_back(item);
  }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) {
      clear();
      reserve(other.size_);
      for (const T& item : other) push_back(item);
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      destroy();
      take(other);
    }
    return *this;
  }
  ~SmallVector() { destroy(); }

  /// The number of elements.
  std::size_t size() const { return size_; }
  /// Whether there are no elements.
  bool empty() const { return size_ == 0; }
  /// The first element's address.
  T* data() { return data_; }
  const T* data() const { return data_; }
  /// Iterates over the elements.
  T* begin() { return data_; }
  /// See begin().
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  /// The last element; there has to be one.
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  /// Makes room for so many elements.
  void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    T* grown = static_cast<T*>(take_recycled(capacity * sizeof(T)));
    for (std::size_t i = 0; i < size_; ++i) {
      new (grown + i) T(std::move(data_[i]));
      data_[i].~T();
    }
    release_heap();
    data_ = grown;
    capacity_ = capacity;
  }
  /// Appends an element made of the arguments.
  template <class... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    if (size_ == capacity_) reserve(2 * capacity_);
    return *new (data_ + size_++) T(std::forward<Arguments>(arguments)...);
  }
  /// Appends an element.
  void push_back(const T& item) {
    if (size_ == capacity_) {
      T copy(item);
      reserve(2 * capacity_);
      new (data_ + size_++) T(std::move(copy));
    } else {
      new (data_ + size_++) T(item);
    }
  }
  void push_back(T&& item) { emplace_back(std::move(item)); }
  /// Ends the last element; there has to be one.
  void pop_back() { data_[--size_].~T(); }
  /// Makes it so many elements: new ones are default ones, those beyond end.
  void resize(std::size_t count) {
    while (size_ > count) pop_back();
    reserve(count);
    while (size_ < count) new (data_ + size_++) T();
  }
  /// Ends every element and keeps the room.
  void clear() {
    while (size_ > 0) pop_back();
  }

 private:
  T* inline_data() { return reinterpret_cast<T*>(inline_); }
  void release_heap() {
    if (data_ != inline_data()) give_recycled(data_, capacity_ * sizeof(T));
  }
  void destroy() {
    clear();
    release_heap();
    data_ = inline_data();
    capacity_ = N;
  }
  void take(SmallVector& other) {
    if (other.data_ != other.inline_data()) {
      data_ = std::exchange(other.data_, other.inline_data());
      size_ = std::exchange(other.size_, 0);
      capacity_ = std::exchange(other.capacity_, N);
      return;
    }
    for (std::size_t i = 0; i < other.size_; ++i) new (data_ + i) T(std::move(other.data_[i]));
    size_ = other.size_;
    other.clear();
  }

  alignas(T) unsigned char inline_[N * sizeof(T)];
  T* data_ = inline_data();
  std::size_t size_ = 0;
  std::size_t capacity_ = N;
};

}  // namespace tenon
