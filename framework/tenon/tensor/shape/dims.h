// Dims: sizes or strides, inline up to the largest rank: a shape needs no heap memory. Rules of broadcasting, too.
#pragma once

#include <tenon/core/error.h>
#include <tenon/core/export.h>
#include <tenon/kernel/tensor_view.h>
#include <tenon/tensor/shape/array_ref.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>

namespace tenon {

class Dims {
 public:
  Dims() = default;
  Dims(IntArrayRef values) { assign(values); }  // NOLINT
  Dims(std::initializer_list<std::int64_t> values) { assign(IntArrayRef(values)); }
  Dims(const Dims& other) { assign(other); }
  Dims& operator=(const Dims& other) {
    assign(other);
    return *this;
  }
  /// `rank` copies of `value`.
  static Dims filled(int rank, std::int64_t value) {
    Dims dims;
    dims.resize(rank);
    for (int i = 0; i < rank; ++i) dims.values_[i] = value;
    return dims;
  }

  /// How many numbers there are.
  int rank() const { return rank_; }
  /// rank(), as the standard's containers say it.
  std::size_t size() const { return static_cast<std::size_t>(rank_); }
  /// Whether there are no dims.
  bool empty() const { return rank_ == 0; }
  /// The first number's address.
  std::int64_t* data() { return values_; }
  const std::int64_t* data() const { return values_; }
  std::int64_t& operator[](int i) { return values_[i]; }
  std::int64_t operator[](int i) const { return values_[i]; }
  /// Iterates over the numbers.
  std::int64_t* begin() { return values_; }
  /// See begin().
  std::int64_t* end() { return values_ + rank_; }
  const std::int64_t* begin() const { return values_; }
  const std::int64_t* end() const { return values_ + rank_; }
  /// The last number; there has to be one.
  std::int64_t& back() { return values_[rank_ - 1]; }
  std::int64_t back() const { return values_[rank_ - 1]; }
  operator IntArrayRef() const { return {values_, size()}; }  // NOLINT
  /// A copy of the numbers.
  TENON_API std::vector<std::int64_t> vec() const;

  /// New elements are uninitialised.
  void resize(int rank) {
    if (rank > kMaxRank) too_many(rank);
    rank_ = rank;
  }
  /// Appends a number.
  void push_back(std::int64_t value) {
    if (rank_ == kMaxRank) too_many(rank_ + 1);
    values_[rank_++] = value;
  }
  /// Puts a number in front of the one at that place.
  void insert(int at, std::int64_t value) {
    push_back(value);
    for (int i = rank_ - 1; i > at; --i) values_[i] = values_[i - 1];
    values_[at] = value;
  }
  /// Takes the number at that place out.
  void erase(int at) {
    for (int i = at; i + 1 < rank_; ++i) values_[i] = values_[i + 1];
    --rank_;
  }
  /// The product of the numbers, unchecked; 1 for no dims.
  std::int64_t product() const {
    std::int64_t product = 1;
    for (int i = 0; i < rank_; ++i) product *= values_[i];
    return product;
  }
  friend bool operator==(const Dims& a, const Dims& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i) {
      if (a.values_[i] != b.values_[i]) return false;
    }
    return true;
  }

 private:
  void assign(IntArrayRef values) {
    resize(static_cast<int>(values.size()));
    for (int i = 0; i < rank_; ++i) values_[i] = values[static_cast<std::size_t>(i)];
  }
  void assign(const Dims& other) {
    rank_ = other.rank_;
    for (int i = 0; i < rank_; ++i) values_[i] = other.values_[i];
  }
  [[noreturn]] static TENON_API void too_many(int rank);

  std::int32_t rank_ = 0;
  std::int64_t values_[kMaxRank];
};

/// Row-major strides of a dense tensor.
TENON_API Dims contiguous_strides(const Dims& sizes);
/// Strides of the last-channel layouts (rank 4 and 5); row-major for other ranks.
TENON_API Dims channels_last_strides(const Dims& sizes);
/// What the layout of an operand says about that of a result.
struct Strided {
  const Dims& sizes;
  const Dims& strides;
};
/// Strides of a dense result whose dimensions lie in memory in the order of its operands', as in PyTorch's
/// TensorIterator: of two dimensions the first operand decides in which they have different strides. A dimension that
/// an operand repeats says nothing; where nobody decides, the result is row-major. Requires operands that can be
/// expanded to `sizes`.
TENON_API Dims result_strides(const Dims& sizes, std::initializer_list<Strided> operands);
/// The common shape of two operands. Throws Error in PyTorch's words where there is none.
TENON_API Dims broadcast_sizes(const Dims& a, const Dims& b);
/// Whether `from` can be expanded to `to`.
TENON_API bool is_expandable_to(const Dims& from, const Dims& to);
/// Strides that make a tensor look like `to`: 0 where it is broadcast. Requires is_expandable_to.
TENON_API Dims expanded_strides(const Dims& sizes, const Dims& strides, const Dims& to);
/// Strides under which `sizes` may be seen as `to` without a copy; empty optional where that is impossible.
TENON_API std::optional<Dims> view_strides(const Dims& sizes, const Dims& strides, const Dims& to);
/// Replaces one -1 in `to` by what is left of `elements`. Throws Error in PyTorch's words.
TENON_API Dims infer_sizes(IntArrayRef to, std::int64_t elements);
/// -rank … rank-1 to 0 … rank-1 (rank 0 counts as 1). Throws IndexError in PyTorch's words.
TENON_API int wrap_dim(std::int64_t dim, int rank, bool scalars_have_one = true);
/// "[2, 3]".
TENON_API std::string to_string(const Dims& dims);
inline std::string to_string(IntArrayRef dims) { return to_string(Dims(dims)); }
inline std::ostream& operator<<(std::ostream& stream, const Dims& dims) { return stream << to_string(dims); }

}  // namespace tenon
