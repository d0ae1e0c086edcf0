// ExpandingArray: D numbers, or one number that stands for all D of them: kernel_size({3, 2}) and kernel_size(3).
#pragma once

#include <tenon/core/error.h>
#include <tenon/tensor/shape/array_ref.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

namespace tenon {

template <std::size_t D, class T = std::int64_t>
class ExpandingArray {
 public:
  ExpandingArray(std::initializer_list<T> list) : ExpandingArray(std::vector<T>(list)) {}  // NOLINT: as in libtorch
  ExpandingArray(const std::vector<T>& values) { assign(values.begin(), values.size()); }  // NOLINT
  ExpandingArray(T single) { values_.fill(single); }                                       // NOLINT
  ExpandingArray(const std::array<T, D>& values) : values_(values) {}                      // NOLINT
  /// Anything that has data() and size(): an ArrayRef, a span. Throws Error unless it holds D values.
  template <class List,
            class = std::enable_if_t<std::is_convertible_v<decltype(*std::declval<const List&>().data()), T>>,
            class = decltype(std::declval<const List&>().size())>
  ExpandingArray(const List& values) {  // NOLINT
    assign(values.data(), values.size());
  }

  std::array<T, D>& operator*() { return values_; }
  const std::array<T, D>& operator*() const { return values_; }
  std::array<T, D>* operator->() { return &values_; }
  const std::array<T, D>* operator->() const { return &values_; }
  T& operator[](std::size_t i) { return values_[i]; }
  const T& operator[](std::size_t i) const { return values_[i]; }
  /// Iterates over the D elements.
  auto begin() const { return values_.begin(); }
  /// See begin().
  auto end() const { return values_.end(); }
  /// The D elements, one behind the other.
  const T* data() const { return values_.data(); }
  /// D, whatever list it was made from.
  std::size_t size() const noexcept { return D; }
  /// The elements as a vector of length D.
  std::vector<T> vec() const { return {values_.begin(), values_.end()}; }
  operator ArrayRef<T>() const { return values_; }  // NOLINT: goes where a list of sizes goes

  /// Whether every element is `value`.
  bool all_equal(T value) const {
    for (const T& v : values_) {
      if (!(v == value)) return false;
    }
    return true;
  }

 protected:
  ExpandingArray() = default;

  template <class It>
  void assign(It first, std::size_t count) {
    if (count != D) {
      throw Error("Expected " + std::to_string(D) + " values, but instead got " + std::to_string(count));
    }
    for (T& value : values_) value = *first++;
  }

  std::array<T, D> values_{};
};

/// Elements may be absent: output_size({3, nullopt}).
template <std::size_t D, class T = std::int64_t>
class ExpandingArrayWithOptionalElem : public ExpandingArray<D, std::optional<T>> {
  using Base = ExpandingArray<D, std::optional<T>>;

 public:
  using Base::Base;
  ExpandingArrayWithOptionalElem(std::initializer_list<T> list)  // NOLINT
      : ExpandingArrayWithOptionalElem(std::vector<T>(list)) {}
  ExpandingArrayWithOptionalElem(const std::vector<T>& values) {
    this->assign(values.begin(), values.size());
  }                                                                                                    // NOLINT
  ExpandingArrayWithOptionalElem(T single) : Base(std::optional<T>(single)) {}                         // NOLINT
  ExpandingArrayWithOptionalElem(const std::array<T, D>& values) { this->assign(values.begin(), D); }  // NOLINT
};

/// "[3, 2]"; without brackets where D is 1.
template <std::size_t D, class T>
std::ostream& operator<<(std::ostream& out, const ExpandingArray<D, T>& array) {
  if (D == 1) return out << array[0];
  out << '[';
  for (std::size_t i = 0; i < D; ++i) out << (i ? ", " : "") << array[i];
  return out << ']';
}
template <std::size_t D, class T>
std::ostream& operator<<(std::ostream& out, const ExpandingArrayWithOptionalElem<D, T>& array) {
  const auto print = [&](const std::optional<T>& v) { v ? out << *v : out << "None"; };
  if (D == 1) {
    print(array[0]);
    return out;
  }
  out << '[';
  for (std::size_t i = 0; i < D; ++i) {
    if (i) out << ", ";
    print(array[i]);
  }
  return out << ']';
}

}  // namespace tenon
