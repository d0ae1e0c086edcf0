// Rows that are closed where their slope is 0: no gradient passes there, not even one that is no number.
#include "../support/row_checks.h"

#include <tenon/kernel/closed.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace tenon::test {
namespace {

/// With the parameters of the row's checks.
template <class Row>
double times(double dy, double saved) {
  return pointwise::slope_times<Row, double>(dy, saved, Check<Row>::kParameters);
}

TEST(ClosedRows, MultiplyAGradientByTheirSlopeWhereItIsNotZero) {
  for_each_row(pointwise::Unary{}, []<class Row>(Row) {
    for (const KnownUnary& known : Check<Row>::kKnown) {
      const double saved = Row::kSaves == pointwise::Saves::kOutput ? known.y : known.x;
      const double slope = Row::template slope<double>(saved, saved, Check<Row>::kParameters);
      if (slope == 0 || std::isnan(slope)) continue;
      const std::string what = std::string(Row::name) + " at " + std::to_string(known.x);
      if (std::isinf(slope)) {
        EXPECT_EQ(times<Row>(3, saved), 3 * slope) << what;
      } else {
        EXPECT_DOUBLE_EQ(times<Row>(3, saved), 3 * slope) << what;
        EXPECT_DOUBLE_EQ(times<Row>(-0.25, saved), -0.25 * slope) << what;
      }
      EXPECT_TRUE(std::isnan(times<Row>(std::nan(""), saved))) << what;
    }
  });
}

TEST(ClosedRows, LetNothingPassWhereTheirSlopeIsZeroWhichOthersDo) {
  int closed = 0;
  for_each_row(pointwise::Unary{}, [&]<class Row>(Row) {
    for (const KnownUnary& known : Check<Row>::kKnown) {
      const double saved = Row::kSaves == pointwise::Saves::kOutput ? known.y : known.x;
      if (Row::template slope<double>(saved, saved, Check<Row>::kParameters) != 0) continue;
      const std::string what = std::string(Row::name) + " at " + std::to_string(known.x);
      EXPECT_EQ(times<Row>(2, saved), 0) << what;
      for (const double dy : {std::nan(""), std::numeric_limits<double>::infinity()}) {
        if (pointwise::kCloses<Row>) {
          EXPECT_EQ(times<Row>(dy, saved), 0) << what;
        } else {
          EXPECT_TRUE(std::isnan(times<Row>(dy, saved))) << what;
        }
      }
      closed += pointwise::kCloses<Row>;
    }
  });
  EXPECT_GT(closed, 10);
}

TEST(ClosedRows, HardswishIsClosedUpToMinusThreeAndNotWhereItsSlopeIsZeroInBetween) {
  using pointwise::Hardswish;
  const double none = std::nan("");
  for (const double x : {-3.0, -3.5, -100.0}) {
    EXPECT_EQ(times<Hardswish>(none, x), 0) << x;
    EXPECT_EQ(times<Hardswish>(2, x), 0) << x;
  }
  EXPECT_NE(times<Hardswish>(2, -2.999), 0);
  EXPECT_EQ(times<Hardswish>(2, -1.5), 0);
  EXPECT_TRUE(std::isnan(times<Hardswish>(none, -1.5)));
  EXPECT_TRUE(std::isnan(times<Hardswish>(none, -2.999)));
  EXPECT_DOUBLE_EQ(times<Hardswish>(2, 0), 1);
  EXPECT_DOUBLE_EQ(times<Hardswish>(2, 4), 2);
  EXPECT_TRUE(std::isnan(times<Hardswish>(none, 4)));
}

TEST(ClosedRows, OthersPassANumberThatIsNoneWhereTheirSlopeIsZero) {
  EXPECT_TRUE(std::isnan(times<pointwise::Cos>(std::nan(""), 0)));
  EXPECT_TRUE(std::isnan(times<pointwise::Cos>(std::numeric_limits<double>::infinity(), 0)));
  EXPECT_EQ(times<pointwise::Cos>(3, 0), 0);
}

TEST(ClosedRows, ReluIsClosedAtZeroAndBelow) {
  using pointwise::Relu;
  const double none = std::nan("");
  EXPECT_EQ(times<Relu>(none, 0), 0);
  EXPECT_TRUE(std::isnan(times<Relu>(none, 1e-300)));
  EXPECT_EQ(times<Relu>(7, 1e-300), 7);
}

}  // namespace
}  // namespace tenon::test
