// What may stand in x.index({...}): numbers, slices, None, Ellipsis, booleans and tensors.
#pragma once

#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::indexing {

inline constexpr std::int64_t INDEX_MIN = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t INDEX_MAX = -(INDEX_MIN + 1);

enum class TensorIndexType { None, Ellipsis, Integer, Boolean, Slice, Tensor };

inline constexpr std::nullopt_t None = std::nullopt;

struct EllipsisIndexType final {};
inline constexpr EllipsisIndexType Ellipsis{};

class Slice final {
 public:
  explicit Slice(std::optional<std::int64_t> start = std::nullopt, std::optional<std::int64_t> stop = std::nullopt,
                 std::optional<std::int64_t> step = std::nullopt) {
    step_ = step.value_or(1);
    if (step_ == 0) throw Error("slice step cannot be zero");
    start_ = start.value_or(step_ < 0 ? INDEX_MAX : 0);
    stop_ = stop.value_or(step_ < 0 ? INDEX_MIN : INDEX_MAX);
  }
  /// The first position, as it was given; else 0, or INDEX_MAX for a negative step.
  std::int64_t start() const { return start_; }
  /// The position behind the last one, as it was given; else INDEX_MAX, or INDEX_MIN for a negative step.
  std::int64_t stop() const { return stop_; }
  /// The distance between positions; 1 unless given, never 0.
  std::int64_t step() const { return step_; }

 private:
  std::int64_t start_;
  std::int64_t stop_;
  std::int64_t step_;
};

inline std::ostream& operator<<(std::ostream& stream, const Slice& slice) {
  return stream << slice.start() << ":" << slice.stop() << ":" << slice.step();
}

class TENON_EXPORT TensorIndex final {
 public:
  TensorIndex(std::nullopt_t) {}                                        // NOLINT: all implicit as in libtorch
  TensorIndex(EllipsisIndexType) : type_(TensorIndexType::Ellipsis) {}  // NOLINT
  TensorIndex(const char* text) : type_(TensorIndexType::Ellipsis) {    // NOLINT
    if (std::string_view(text) != "...") {
      throw Error("Expected \"...\" to represent an ellipsis index, but got \"" + std::string(text) + "\"");
    }
  }
  TensorIndex(std::int64_t integer) : integer_(integer), type_(TensorIndexType::Integer) {}  // NOLINT
  TensorIndex(int integer) : TensorIndex(static_cast<std::int64_t>(integer)) {}              // NOLINT
  template <class T>
  requires std::is_same_v<T, bool> TensorIndex(T boolean)
      : boolean_(boolean), type_(TensorIndexType::Boolean) {}                                        // NOLINT
  TensorIndex(Slice slice) : slice_(slice), type_(TensorIndexType::Slice) {}                         // NOLINT
  TensorIndex(tenon::Tensor tensor) : tensor_(std::move(tensor)), type_(TensorIndexType::Tensor) {}  // NOLINT

  /// Whether it is None, which adds a dim of size 1.
  bool is_none() const { return type_ == TensorIndexType::None; }
  /// Whether it is `...`, which stands for as many dims as are left.
  bool is_ellipsis() const { return type_ == TensorIndexType::Ellipsis; }
  /// Whether it is a position.
  bool is_integer() const { return type_ == TensorIndexType::Integer; }
  /// Whether it is true or false.
  bool is_boolean() const { return type_ == TensorIndexType::Boolean; }
  /// Whether it is a slice.
  bool is_slice() const { return type_ == TensorIndexType::Slice; }
  /// Whether it is a tensor of positions or a mask.
  bool is_tensor() const { return type_ == TensorIndexType::Tensor; }
  /// The position; for is_integer() alone.
  std::int64_t integer() const { return integer_; }
  /// The truth value; for is_boolean() alone.
  bool boolean() const { return boolean_; }
  /// The slice; for is_slice() alone.
  const Slice& slice() const { return slice_; }
  /// The tensor; for is_tensor() alone.
  const tenon::Tensor& tensor() const { return tensor_; }

 private:
  std::int64_t integer_ = 0;
  bool boolean_ = false;
  Slice slice_;
  tenon::Tensor tensor_;
  TensorIndexType type_ = TensorIndexType::None;
};

TENON_API std::ostream& operator<<(std::ostream& stream, const TensorIndex& index);
TENON_API std::ostream& operator<<(std::ostream& stream, const std::vector<TensorIndex>& indices);

}  // namespace tenon::indexing
