// Random cases for tests by generation: numbers, sizes, and tensors that lie in memory in every way a view can.
//
// The seed is fixed, and each case names its own in what a failure prints. TENON_TEST_CASES multiplies the number of
// cases.
#pragma once

#include <tenon/ops/ops.h>
#include <tenon/tensor/literal.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace tenon::test {

using Sizes = std::vector<std::int64_t>;

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline std::string text_of(const Sizes& sizes) {
  std::string text = "(";
  for (const std::int64_t size : sizes) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + ")";
}

inline std::int64_t product(const Sizes& sizes) {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) product *= size;
  return product;
}

/// Calls visit(coordinates) for each element, the last dimension fastest.
inline void for_each_place(const Sizes& sizes, const std::function<void(const Sizes&)>& visit) {
  if (product(sizes) == 0) return;
  Sizes at(sizes.size(), 0);
  while (true) {
    visit(at);
    std::size_t d = sizes.size();
    while (d > 0 && ++at[d - 1] == sizes[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

/// An array of doubles in row-major order, for the plain loops that a tensor is held against.
struct Array {
  Sizes sizes;
  std::vector<double> values;

  explicit Array(Sizes s, double value = 0)
      : sizes(std::move(s)), values(static_cast<std::size_t>(product(sizes)), value) {}
  /// A copy of the tensor's values.
  explicit Array(const Tensor& tensor) : sizes(tensor.sizes().vec()) {
    const Tensor flat = tensor.detach().to(kFloat64).contiguous();
    values.assign(flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
  }

  std::size_t index(const Sizes& at) const {
    std::int64_t index = 0;
    for (std::size_t d = 0; d < sizes.size(); ++d) index = index * sizes[d] + at[d];
    return static_cast<std::size_t>(index);
  }
  double& operator[](const Sizes& at) { return values[index(at)]; }
  double operator[](const Sizes& at) const { return values[index(at)]; }
};

/// The same sizes, and each value within `tolerance`, relative to values above one; nan is nan.
inline void expect_near(const Tensor& got, const Array& want, double tolerance = 1e-9) {
  ASSERT_EQ(got.sizes().vec(), want.sizes);
  const Array values(got);
  for (std::size_t i = 0; i < want.values.size(); ++i) {
    const double a = values.values[i], b = want.values[i];
    if ((std::isnan(a) && std::isnan(b)) || a == b) continue;
    ASSERT_FALSE(std::isinf(b)) << "element " << i << " is " << a << ", not " << b;
    ASSERT_LE(std::abs(a - b), tolerance * std::max(1.0, std::abs(b)))
        << "element " << i << " of " << text_of(want.sizes);
  }
}

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : engine_(seed) {}

  /// low <= value <= high.
  std::int64_t integer(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool one_in(std::int64_t count) { return integer(1, count) == 1; }
  /// A multiple of 1/64 in [-2, 2): sums of few of them are exact.
  double number() { return static_cast<double>(integer(-128, 127)) / 64; }
  Sizes sizes(std::int64_t rank, std::int64_t low, std::int64_t high) {
    Sizes sizes(static_cast<std::size_t>(rank));
    for (std::int64_t& size : sizes) size = integer(low, high);
    return sizes;
  }
  template <class T>
  const T& of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(integer(0, static_cast<std::int64_t>(list.size()) - 1))];
  }
  template <class T>
  void shuffle(std::vector<T>& list) {
    for (std::size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[static_cast<std::size_t>(integer(0, static_cast<std::int64_t>(i) - 1))]);
  }

  /// Float64 numbers, in one of the ways that a view can lie.
  Tensor tensor(const Sizes& sizes) {
    Array drawn(sizes);
    for (double& value : drawn.values) value = number();
    return laid_out(drawn);
  }
  /// These values, in one of the ways that a view can lie: whole, permuted, with gaps, from a later start.
  Tensor laid_out(const Array& array) {
    std::vector<double> values = array.values;
    const Tensor whole = tenon::tensor(values, TensorOptions(kFloat64)).view(array.sizes);
    return in_some_layout(whole);
  }
  /// The same values as `whole`, of any dtype.
  Tensor in_some_layout(const Tensor& whole) {
    const std::int64_t rank = whole.dim();
    const std::int64_t way = integer(0, 3);
    if (rank == 0 || way == 0) return whole;
    if (way == 1) {  // permuted in memory
      std::vector<std::int64_t> order(static_cast<std::size_t>(rank)), back(order.size());
      for (std::size_t d = 0; d < order.size(); ++d) order[d] = static_cast<std::int64_t>(d);
      shuffle(order);
      for (std::size_t d = 0; d < order.size(); ++d)
        back[static_cast<std::size_t>(order[d])] = static_cast<std::int64_t>(d);
      return whole.permute(order).contiguous().permute(back);
    }
    const std::int64_t dim = integer(0, rank - 1);
    Sizes larger = whole.sizes().vec();
    std::int64_t& size = larger[static_cast<std::size_t>(dim)];
    const std::int64_t length = size, step = way == 2 ? integer(2, 3) : 1, start = integer(0, 3);
    size = start + length * step + 1;
    const Tensor around = full(larger, 77, whole.options());
    const Tensor view = around.slice(dim, start, start + length * step, step);
    view.copy_(whole);
    return view;
  }

 private:
  std::mt19937_64 engine_;
};

/// Calls test(draws) for `count` cases; what fails says the case's seed.
inline void for_each_case(std::uint64_t seed, int count, const std::function<void(Draws&)>& test) {
  if (const char* more = std::getenv("TENON_TEST_CASES")) count *= std::max(1, std::atoi(more));
  for (int i = 0; i < count; ++i) {
    const std::uint64_t own = seed * 1'000'000 + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("case with seed " + std::to_string(own));
    Draws draws(own);
    try {
      test(draws);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace tenon::test
