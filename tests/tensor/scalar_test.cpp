// Scalar: conversions that lose the number are refused, in c10's words and by its rules.
#include "../support/expect_error.h"

#include <tenon/ops/ops.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace tenon {
namespace {

using test::expect_error;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Scalar, RefusesTypesThatCannotHoldIt) {
  expect_error([] { Scalar(300).to<std::uint8_t>(); }, "value cannot be converted to type uint8_t without overflow");
  expect_error([] { Scalar(-129).to<std::int8_t>(); }, "value cannot be converted to type int8_t without overflow");
  expect_error([] { Scalar(40000).toShort(); }, "value cannot be converted to type int16_t without overflow");
  expect_error([] { Scalar(1e20).to<int>(); }, "value cannot be converted to type int without overflow");
  expect_error([] { Scalar(kNaN).toLong(); }, "value cannot be converted to type int64_t without overflow");
  expect_error([] { Scalar(std::ldexp(1.0, 63)).toLong(); }, "type int64_t without overflow");
  expect_error([] { Scalar(-0.5).toByte(); }, "value cannot be converted to type uint8_t without overflow");
  expect_error([] { Scalar(1e300).toFloat(); }, "value cannot be converted to type float without overflow");
  expect_error([] { Scalar(70000).toHalf(); }, "value cannot be converted to type at::Half without overflow");
  expect_error([] { Scalar(-1e39).toBFloat16(); }, "value cannot be converted to type at::BFloat16 without overflow");
}

TEST(Scalar, ConvertsWhateverFits) {
  EXPECT_EQ(Scalar(-3).toByte(), 253) << "a negative integer wraps, so that a + 255 * b can stand for a - b";
  EXPECT_EQ(Scalar(-255).toByte(), 1);
  expect_error([] { Scalar(-256).toByte(); }, "uint8_t");
  EXPECT_EQ(Scalar(-2.75).toInt(), -2);
  EXPECT_EQ(Scalar(std::numeric_limits<std::int64_t>::min()).toLong(), std::numeric_limits<std::int64_t>::min());
  EXPECT_TRUE(std::isnan(Scalar(kNaN).toFloat()));
  EXPECT_EQ(Scalar(-kInfinity).toFloat(), -kInfinity);
  EXPECT_EQ(static_cast<float>(Scalar(65504).toHalf()), 65504);
  EXPECT_TRUE(Scalar(1e300).toBool()) << "bool holds every number";
  EXPECT_TRUE(Scalar(kNaN).to<bool>());
  EXPECT_FALSE(Scalar(-0.0).toBool());
}

TEST(Scalar, OfATensorIsCheckedToo) {
  expect_error([] { tensor(300).item<std::uint8_t>(); }, "uint8_t without overflow");
  expect_error([] { tensor(kNaN).item<std::int64_t>(); }, "int64_t without overflow");
  EXPECT_TRUE(tensor(kNaN).item<bool>());
}

TEST(Scalar, TruthHasNoNegativeAndEqualsTruthOnly) {
  expect_error([] { -Scalar(true); }, "torch boolean negative, the `-` operator, is not supported.");
  EXPECT_EQ((-Scalar(2)).toLong(), -2);
  EXPECT_TRUE(Scalar(true).equal(true));
  EXPECT_FALSE(Scalar(true).equal(1));
  EXPECT_FALSE(Scalar(1).equal(true));
  EXPECT_TRUE(Scalar(2.0).equal(2));
}

}  // namespace
}  // namespace tenon
