// Operands that are drawn: sizes around the widths of vectors and blocks, layouts with gaps and broadcast dimensions,
// and small whole numbers, which every dtype holds exactly, so that a kernel's result is a loop's in every bit.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "cpu_case.h"

namespace tenon::conformance {

using Doubles = std::vector<double>;

inline i64 product_of_sizes(const Sizes& sizes) {
  i64 count = 1;
  for (const i64 size : sizes) count *= size;
  return count;
}

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  i64 number(i64 low, i64 high) { return random_.integer(low, high + 1); }
  bool one_in(i64 many) { return number(1, many) == 1; }
  template <class List>
  auto any_of(const List& list) {
    return *(std::begin(list) + number(0, static_cast<i64>(std::size(list)) - 1));
  }

  /// Of `rank` dimensions and at most `most` elements; now and then without any.
  Sizes sizes(int rank, i64 most) {
    static constexpr i64 kSizes[] = {1,  1,  1,  2,  2,  3,  4,   5,   7,   8,   9,   15,   16,   17,
                                     31, 32, 33, 63, 64, 65, 127, 129, 255, 257, 511, 1025, 1536, 20011};
    Sizes all;
    for (int d = 0; d < rank; ++d) {
      i64 size = any_of(kSizes);
      while (size > most) size = any_of(kSizes);
      most /= size;
      all.push_back(size);
    }
    for (int d = rank - 1; d > 0; --d) std::swap(all[at(d)], all[at(number(0, d))]);
    if (rank > 0 && one_in(40)) all[at(number(0, rank - 1))] = 0;
    return all;
  }

  /// Memory for a result, in any layout.
  Tensor room(Dtype dtype, Sizes sizes) {
    const int rank = static_cast<int>(sizes.size());
    if (rank == 0 || one_in(4)) return Tensor(dtype, sizes);
    std::vector<std::pair<int, int>> swaps;
    for (i64 k = number(0, rank - 1); k > 0; --k)
      swaps.emplace_back(static_cast<int>(number(0, rank - 1)), static_cast<int>(number(0, rank - 1)));
    for (const auto& [a, b] : swaps) std::swap(sizes[at(a)], sizes[at(b)]);
    Sizes whole = sizes, first(sizes.size());
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      if (!one_in(4)) continue;
      first[d] = number(0, 2);
      whole[d] += first[d] + number(0, 2);
    }
    const Layout layouts[] = {Layout::kContiguous, Layout::kContiguous, Layout::kTransposed, Layout::kStrided,
                              Layout::kChannelsLast};
    Tensor result(dtype, whole, any_of(layouts));
    for (int d = 0; d < rank; ++d) result = result.narrowed(d, first[at(d)], sizes[at(d)]);
    for (auto swap = swaps.rbegin(); swap != swaps.rend(); ++swap)
      result = result.transposed(swap->first, swap->second);
    return result;
  }

  /// Numbers low to high; truth and what has no sign hold theirs.
  Tensor operand(Dtype dtype, const Sizes& sizes, i64 low = -3, i64 high = 3) {
    return fill(room(dtype, sizes), low, high);
  }
  /// The same, contiguous.
  Tensor plain(Dtype dtype, const Sizes& sizes, i64 low = -3, i64 high = 3) {
    return fill(Tensor(dtype, sizes), low, high);
  }
  Tensor fill(Tensor tensor, i64 low, i64 high) {
    const bool has_sign = tensor.dtype() != Dtype::kBool && tensor.dtype() != Dtype::kUInt8;
    for (i64 i = 0; i < tensor.count(); ++i) {
      const i64 value = number(low, high);
      tensor.set_integer(i, has_sign ? value : std::abs(value));
    }
    return tensor;
  }
  /// Some of its dimensions are broadcast.
  Tensor spread(Dtype dtype, const Sizes& sizes, i64 low = -3, i64 high = 3) {
    if (!one_in(3)) return operand(dtype, sizes, low, high);
    Sizes own = sizes;
    own.erase(own.begin(), own.begin() + number(0, static_cast<i64>(own.size())));
    for (i64& size : own)
      if (one_in(3)) size = 1;
    return operand(dtype, own, low, high).expanded(sizes);
  }

 private:
  static std::size_t at(i64 dimension) { return static_cast<std::size_t>(dimension); }
  Random random_;
};

/// Calls test(bench, draw) so often at each level, with other numbers each time and on one to three threads.
inline void for_draws(int count, const test::FunctionRef<void(Bench&, Draw&)>& test) {
  std::uint64_t seed = 0;
  for_each_bench([&](Bench& bench) {
    for (int i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE(::testing::Message() << "draw " << ++seed);
      Draw draw(seed);
      bench.driver().set_threads(static_cast<int>(draw.number(1, 3)));
      test(bench, draw);
    }
  });
}

/// What a loop gives for each element, as it is in the result's dtype: whole numbers wrap.
class Wanted {
 public:
  Wanted(Dtype dtype, const Sizes& sizes) : tensor_(dtype, sizes) {}
  void set(i64 index, double value) { tensor_.set(index, value); }
  void expect(const Tensor& got, std::string_view what) const {
    for (i64 i = 0; i < got.count(); ++i) {
      const double value = got.real(i), wanted = tensor_.real(i);
      if (value == wanted || (value != value && wanted != wanted)) continue;
      ASSERT_EQ(value, wanted) << what << " of " << name_of(got.dtype()) << " " << to_string(got.sizes()) << " at "
                               << to_string(coordinates(i, got.sizes()));
    }
  }

 private:
  Tensor tensor_;
};

}  // namespace tenon::conformance
