// ArrayRef: a borrowed, immutable run of values that also reads one value or a brace list, as in libtorch.
#pragma once

#include <tenon/core/error.h>
#include <tenon/tensor/shape/small_vector.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

namespace tenon {

template <class T>
class ArrayRef {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;
  using size_type = std::size_t;

  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}  // NOLINT: implicit as in c10
  constexpr ArrayRef(const T* data, std::size_t size) : data_(data), size_(size) {}
  constexpr ArrayRef(const T* begin, const T* end) : data_(begin), size_(static_cast<std::size_t>(end - begin)) {}
  ArrayRef(const std::vector<T>& items) : data_(items.data()), size_(items.size()) {  // NOLINT
    static_assert(!std::is_same_v<T, bool>, "vector<bool> has no elements to refer to");
  }
  template <std::size_t N>
  constexpr ArrayRef(const std::array<T, N>& items) : data_(items.data()), size_(N) {}  // NOLINT
  template <std::size_t N>
  constexpr ArrayRef(const T (&items)[N]) : data_(items), size_(N) {}  // NOLINT
  template <std::size_t N>
  ArrayRef(const SmallVector<T, N>& items) : data_(items.data()), size_(items.size()) {}  // NOLINT
  /// Valid until the end of the full expression, which is how arguments are passed. (Not items.begin(), of which GCC
  /// warns: a pragma against that is forgotten where a program precompiles this header.)
  constexpr ArrayRef(const std::initializer_list<T>& items)  // NOLINT
      : data_(items.size() == 0 ? nullptr : std::data(items)), size_(items.size()) {}

  /// Iterates over the elements; the array that they stand in must outlive this view of it.
  constexpr const T* begin() const { return data_; }
  /// See begin().
  constexpr const T* end() const { return data_ + size_; }
  /// The first element's address.
  constexpr const T* data() const { return data_; }
  /// The number of elements.
  constexpr std::size_t size() const { return size_; }
  /// Whether there are no elements.
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T& operator[](std::size_t i) const { return data_[i]; }
  /// The element at that position. Throws Error beyond the end.
  const T& at(std::size_t i) const {
    if (i >= size_) {
      throw Error("ArrayRef: invalid index Index = " + std::to_string(i) + "; Length = " + std::to_string(size_));
    }
    return data_[i];
  }
  /// The first element. Throws Error where there is none.
  const T& front() const {
    if (empty()) throw Error("ArrayRef: attempted to access front() of empty list");
    return data_[0];
  }
  /// The last element. Throws Error where there is none.
  const T& back() const {
    if (empty()) throw Error("ArrayRef: attempted to access back() of empty list");
    return data_[size_ - 1];
  }
  /// A view of `count` elements from `first` on. Throws Error beyond the end.
  ArrayRef slice(std::size_t first, std::size_t count) const {
    if (first > size_ || count > size_ - first) {
      throw Error("ArrayRef: invalid slice, N = " + std::to_string(first) + "; M = " + std::to_string(count) +
                  "; size = " + std::to_string(size_));
    }
    return {data_ + first, count};
  }
  ArrayRef slice(std::size_t first) const { return slice(first, first < size_ ? size_ - first : 0); }
  /// A copy of the elements.
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  /// Whether both have the same elements in the same order.
  bool equals(ArrayRef other) const {
    if (size_ != other.size_) return false;
    for (std::size_t i = 0; i < size_; ++i) {
      if (!(data_[i] == other.data_[i])) return false;
    }
    return true;
  }

 private:
  const T* data_ = nullptr;
  std::size_t size_ = 0;
};

using IntArrayRef = ArrayRef<std::int64_t>;

template <class T>
bool operator==(ArrayRef<T> a, ArrayRef<T> b) {
  return a.equals(b);
}
template <class T>
bool operator==(const std::vector<T>& a, ArrayRef<T> b) {
  return ArrayRef<T>(a).equals(b);
}
template <class T>
bool operator==(ArrayRef<T> a, const std::vector<T>& b) {
  return a.equals(ArrayRef<T>(b));
}

template <class T>
std::ostream& operator<<(std::ostream& stream, ArrayRef<T> items) {
  stream << "[";
  for (std::size_t i = 0; i < items.size(); ++i) stream << (i ? ", " : "") << items[i];
  return stream << "]";
}

/// "no list" is different from an empty one; also takes one number (x.sum(1)).
template <class T>
class OptionalArrayRef {
 public:
  constexpr OptionalArrayRef() = default;
  constexpr OptionalArrayRef(std::nullopt_t) {}                                                      // NOLINT
  constexpr OptionalArrayRef(ArrayRef<T> items) : items_(items) {}                                   // NOLINT
  constexpr OptionalArrayRef(const std::optional<ArrayRef<T>>& items) : items_(items) {}             // NOLINT
  constexpr OptionalArrayRef(const std::initializer_list<T>& items) : items_(ArrayRef<T>(items)) {}  // NOLINT
  OptionalArrayRef(const std::vector<T>& items) : items_(ArrayRef<T>(items)) {}                      // NOLINT
  constexpr OptionalArrayRef(const T& one) : items_(ArrayRef<T>(one)) {}                             // NOLINT
  /// Whether there is an array, be it an empty one.
  constexpr bool has_value() const { return items_.has_value(); }
  constexpr explicit operator bool() const { return has_value(); }
  /// The array. Throws std::bad_optional_access where there is none.
  constexpr const ArrayRef<T>& value() const { return items_.value(); }
  constexpr const ArrayRef<T>& operator*() const { return *items_; }
  constexpr const ArrayRef<T>* operator->() const { return &*items_; }

 private:
  std::optional<ArrayRef<T>> items_;
};

using OptionalIntArrayRef = OptionalArrayRef<std::int64_t>;

}  // namespace tenon
