// Operands of small whole numbers, so that sums are exact and equal those of loops bit by bit.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "cpu_case.h"

namespace tenon::conformance {

using Numbers = std::vector<float>;

inline i64 product_of(const Sizes& sizes) {
  i64 count = 1;
  for (const i64 size : sizes) count *= size;
  return count;
}
inline Numbers whole_numbers(const Sizes& sizes, std::uint64_t seed, i64 most = 2) {
  Random random(seed);
  Numbers all(static_cast<std::size_t>(product_of(sizes)));
  for (float& one : all) one = static_cast<float>(random.integer(-most, most + 1));
  return all;
}
inline float* floats(const Tensor& tensor) { return static_cast<float*>(tensor.view().data); }
inline Tensor tensor_of(const Sizes& sizes, const Numbers& numbers) {
  Tensor tensor(Dtype::kFloat32, sizes);
  std::copy(numbers.begin(), numbers.end(), floats(tensor));
  return tensor;
}
/// Where the first element is that differs; -1: nowhere.
inline i64 first_difference(const Tensor& got, const test::FunctionRef<float(i64)>& expected) {
  const float* const from = floats(got);
  for (i64 i = 0; i < got.count(); ++i)
    if (from[i] != expected(i)) return i;
  return -1;
}

}  // namespace tenon::conformance
