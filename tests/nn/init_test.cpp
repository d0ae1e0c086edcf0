// First values of parameters: their bounds, how many are zero, and the ranks that are refused.
#include <tenon/nn/init.h>
#include <tenon/ops/ops.h>

#include <gtest/gtest.h>

#include <cmath>

namespace tenon::test {
namespace {

namespace init = nn::init;

/// The largest absolute value.
double reach(const Tensor& tensor) { return tensor.abs().max().item<double>(); }

TEST(Init, UniformValuesKeepWithinTheBoundOfTheirFan) {
  tenon::manual_seed(1);
  const double kaiming = std::sqrt(2.0) * std::sqrt(3.0 / 50), xavier = std::sqrt(6.0 / (50 + 40));
  const double kaiming_found = reach(init::kaiming_uniform_(tenon::empty({40, 50}), 0, kFanIn, kReLU));
  const double xavier_found = reach(init::xavier_uniform_(tenon::empty({40, 50})));
  EXPECT_LE(kaiming_found, kaiming * 1.000001);
  EXPECT_GT(kaiming_found, 0.98 * kaiming) << "of 2,000 values one comes near";
  EXPECT_LE(xavier_found, xavier * 1.000001);
  EXPECT_GT(xavier_found, 0.98 * xavier);
}

TEST(Init, SparseHasItsShareOfZerosInEachColumnRoundedUp) {
  const Tensor zeros = init::sparse_(tenon::empty({10, 7}), 0.25).eq(0).sum(0);
  for (std::int64_t column = 0; column < 7; ++column) EXPECT_EQ(zeros[column].item<std::int64_t>(), 3) << column;
}

TEST(Init, AShareAboveOneMakesEveryValueZero) { EXPECT_EQ(reach(init::sparse_(tenon::empty({3, 2}), 40)), 0); }

TEST(Init, AVectorHasNoFan) {
  EXPECT_THROW(init::kaiming_uniform_(tenon::empty({3})), Error);
  EXPECT_THROW(init::xavier_uniform_(tenon::empty({3})), Error);
  EXPECT_THROW(init::sparse_(tenon::empty({3}), 0.5), Error);
}

}  // namespace
}  // namespace tenon::test
