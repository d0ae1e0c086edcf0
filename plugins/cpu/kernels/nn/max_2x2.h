// Max2x2: maxima of windows of two by two with stride 2, which most small networks have, and where they stand.
#pragma once

#include "kernels/level.h"

#include <type_traits>

namespace tenon::cpu::TENON_CPU_LEVEL {

/// Whether a later element takes the place of the largest so far; NaN does.
template <class T>
inline bool exceeds(T candidate, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<bool>(static_cast<int>(candidate > value) | __builtin_isnan(candidate));
  } else {
    return candidate > value;
  }
}

/// Rows are often shorter than a vector: so the maxima of pairs side by side are taken over many rows at once, and
/// those of two rows in whole vectors, whose end the next row overwrites. Where a maximum stands is a number as wide as
/// an element, so that both have the same lanes.
template <class T>
class Max2x2 {
 public:
  /// One plane: `rows` of `width` maxima, from rows of `in_width` elements; `index` counts them from the plane's first.
  void plane(i64 rows, i64 in_width, i64 width, const T* x, T* y, i64* index) {
    if (2 * width == in_width && width <= kMost) return whole_rows(rows, width, x, y, index);
    for (i64 row = 0; row < rows; ++row) {
      for (i64 start = 0; start < width; start += kMost) {
        const i64 count = smaller(kMost, width - start), first = 2 * (row * in_width + start);
        take_pairs(x + first, 0, count);
        take_pairs(x + first + in_width, count, count);
        take_rows(count, 0, in_width);
        hand_out(count, first, y + row * width + start, index + row * width + start);
      }
    }
  }

 private:
  using Place = std::conditional_t<sizeof(T) == 4, i32, i64>;
  static constexpr i64 kMost = 512;  // outputs at once
  static constexpr i64 kVector = 16;

  // What one row leaves over belongs to the next.
  void whole_rows(i64 rows, i64 width, const T* x, T* y, i64* index) {
    const i64 at_once = kMost / width;
    for (i64 row = 0; row < rows; row += at_once) {
      const i64 count = smaller(at_once, rows - row), first = 4 * row * width;
      take_pairs(x + first, 0, 2 * count * width);
      for (i64 r = 0; r < count; ++r) take_rows(width, r, 2 * width);
      hand_out(count * width, first, y + row * width, index + row * width);
    }
  }

  void take_pairs(const T* x, i64 at, i64 count) {
    for (i64 i = 0; i < count; ++i) {
      const T left = x[2 * i], right = x[2 * i + 1];
      const bool is_right = exceeds(right, left);
      pairs_[at + i] = is_right ? right : left;
      rights_[at + i] = is_right ? 1 : 0;
    }
  }
  // `below`: from an element to the one below it.
  void take_rows(i64 width, i64 row, i64 below) {
    const T *upper = pairs_ + 2 * row * width, *lower = upper + width;
    const Place *upper_right = rights_ + 2 * row * width, *lower_right = upper_right + width;
    const auto first = static_cast<Place>(4 * row * width), second = static_cast<Place>(first + below);
    for (i64 start = 0; start < width; start += kVector) {
#pragma GCC ivdep
      for (i64 i = start; i < start + kVector; ++i) {
        const bool is_lower = exceeds(lower[i], upper[i]);
        values_[row * width + i] = is_lower ? lower[i] : upper[i];
        const Place right = is_lower ? lower_right[i] : upper_right[i];
        places_[row * width + i] = (is_lower ? second : first) + static_cast<Place>(2 * i) + right;
      }
    }
  }
  void hand_out(i64 count, i64 first, T* y, i64* index) const {
    for (i64 i = 0; i < count; ++i) y[i] = values_[i];
    for (i64 i = 0; i < count; ++i) index[i] = first + places_[i];
  }

  T pairs_[2 * kMost + kVector] = {}, values_[kMost + kVector];
  Place rights_[2 * kMost + kVector] = {}, places_[kMost + kVector];
};

}  // namespace tenon::cpu::TENON_CPU_LEVEL
