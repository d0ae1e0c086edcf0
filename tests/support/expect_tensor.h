// One assertion: a tensor has these sizes, this dtype and, but for rounding, these elements.
#pragma once

#include <tenon/tensor/tensor.h>

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tenon::test {

inline void expect_tensor(const Tensor& seen, const std::vector<std::int64_t>& sizes, Dtype dtype,
                          const std::vector<double>& elements) {
  ASSERT_TRUE(seen.defined());
  EXPECT_EQ(seen.sizes().vec(), sizes);
  EXPECT_EQ(seen.scalar_type(), dtype) << toString(seen.scalar_type()) << " instead of " << toString(dtype);
  ASSERT_EQ(seen.numel(), static_cast<std::int64_t>(elements.size()));
  const Tensor flat = seen.detach().to(kDouble).contiguous();
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const double value = flat.data_ptr<double>()[i];
    if (std::isnan(elements[i])) {
      EXPECT_TRUE(std::isnan(value)) << "element " << i << " is " << value;
    } else if (std::isinf(elements[i])) {
      EXPECT_EQ(value, elements[i]) << "element " << i;
    } else {
      EXPECT_NEAR(value, elements[i], 2e-6 * std::max(1.0, std::abs(elements[i]))) << "element " << i;
    }
  }
}

}  // namespace tenon::test
