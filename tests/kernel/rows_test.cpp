// Pointwise rows by themselves, in double: values against PyTorch's, slopes against differences of the values.
#include "../support/row_checks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <string>

namespace tenon::test {
namespace {

constexpr unsigned kSeed = 29;
constexpr int kPoints = 200;
constexpr double kStep = 1e-6;

void expect_known(double value, double known, const std::string& what) {
  EXPECT_NEAR(value, known, 1e-13 * std::max(1.0, std::abs(known))) << what;
}

void expect_slope(double slope, double above, double below, const std::string& what) {
  const double difference = (above - below) / (2 * kStep);
  EXPECT_NEAR(slope, difference, 1e-7 * std::max(1.0, std::abs(difference)) + 1e-8 * std::abs(above)) << what;
}

TEST(Rows, UnaryValuesArePyTorchs) {
  for_each_row(pointwise::Unary{}, []<class Row>(Row) {
    using C = Check<Row>;
    for (const KnownUnary& known : C::kKnown) {
      expect_known(Row::template value<double>(known.x, C::kParameters), known.y,
                   std::string(Row::name) + " of " + std::to_string(known.x));
    }
  });
}

TEST(Rows, BinaryValuesArePyTorchs) {
  for_each_row(pointwise::Binary{}, []<class Row>(Row) {
    for (const KnownBinary& known : Check<Row>::kKnown) {
      expect_known(Row::template value<double>(known.a, known.b), known.y,
                   std::string(Row::name) + " of " + std::to_string(known.a) + ", " + std::to_string(known.b));
    }
  });
}

TEST(Rows, AUnarySlopeIsTheDerivative) {
  RecordProperty("seed", std::to_string(kSeed));
  for_each_row(pointwise::Unary{}, []<class Row>(Row) {
    using C = Check<Row>;
    const auto value = [](double x) { return Row::template value<double>(x, C::kParameters); };
    std::mt19937 random(kSeed);
    std::uniform_real_distribution<double> draw(C::kLow, C::kHigh);
    for (int i = 0; i < kPoints; ++i) {
      const double x = draw(random);
      expect_slope(Row::template slope<double>(x, value(x), C::kParameters), value(x + kStep), value(x - kStep),
                   std::string(Row::name) + " at " + std::to_string(x));
    }
  });
}

// What it saves is all that a slope may read.
TEST(Rows, AUnarySlopeReadsWhatTheRowSaves) {
  for_each_row(pointwise::Unary{}, []<class Row>(Row) {
    using C = Check<Row>;
    const double nowhere = std::nan("");
    for (const KnownUnary& known : C::kKnown) {
      const double x = Row::kSaves == pointwise::Saves::kInput ? known.x : nowhere;
      const double y = Row::kSaves == pointwise::Saves::kOutput ? known.y : nowhere;
      EXPECT_FALSE(std::isnan(Row::template slope<double>(x, y, C::kParameters))) << Row::name << " at " << known.x;
    }
  });
}

TEST(Rows, BinarySlopesAreTheDerivatives) {
  RecordProperty("seed", std::to_string(kSeed));
  for_each_row(pointwise::Binary{}, []<class Row>(Row) {
    const auto value = [](double a, double b) { return Row::template value<double>(a, b); };
    std::mt19937 random(kSeed);
    std::uniform_real_distribution<double> draw(Check<Row>::kLow, Check<Row>::kHigh);
    for (int i = 0; i < kPoints; ++i) {
      const double a = draw(random);
      double b = draw(random);
      if (std::abs(b) < 0.125) b += 0.25;  // quotients jump too often near 0
      const double y = value(a, b);
      const std::string what = std::string(Row::name) + " at " + std::to_string(a) + ", " + std::to_string(b);
      expect_slope(Row::template slope_a<double>(a, b, y), value(a + kStep, b), value(a - kStep, b), what);
      expect_slope(Row::template slope_b<double>(a, b, y), value(a, b + kStep), value(a, b - kStep), what);
    }
  });
}

TEST(Rows, BinarySlopesReadTheResultOnlyWhereTheRowSaysSo) {
  for_each_row(pointwise::Binary{}, []<class Row>(Row) {
    // div's reads y too, but it has a gradient of its own.
    if (Row::kReads == pointwise::Reads::kResult || Row::kReads == pointwise::Reads::kDivisor) return;
    for (const KnownBinary& known : Check<Row>::kKnown) {
      EXPECT_FALSE(std::isnan(Row::template slope_a<double>(known.a, known.b, std::nan("")))) << Row::name;
      EXPECT_FALSE(std::isnan(Row::template slope_b<double>(known.a, known.b, std::nan("")))) << Row::name;
    }
  });
}

TEST(Rows, ComparisonsHoldWhereTheirSignSays) {
  struct Held {
    double a, b;
    bool eq, ne, lt, le, gt, ge, both, either, one;
  };
  const double none = std::nan("");
  for (const Held& is : {Held{1, 2, false, true, true, true, false, false, true, true, false},
                         Held{2, 1, false, true, false, false, true, true, true, true, false},
                         Held{2, 2, true, false, false, true, false, true, true, true, false},
                         Held{0, 1, false, true, true, true, false, false, false, true, true},
                         Held{1, 0, false, true, false, false, true, true, false, true, true},
                         Held{0, 0, true, false, false, true, false, true, false, false, false},
                         Held{none, 1, false, true, false, false, false, false, true, true, false}}) {
    const auto holds = [&]<class Row>(Row) { return Row::template value<double>(is.a, is.b); };
    EXPECT_EQ(holds(pointwise::Eq{}), is.eq) << is.a << ", " << is.b;
    EXPECT_EQ(holds(pointwise::Ne{}), is.ne) << is.a << ", " << is.b;
    EXPECT_EQ(holds(pointwise::Lt{}), is.lt) << is.a << ", " << is.b;
    EXPECT_EQ(holds(pointwise::Le{}), is.le) << is.a << ", " << is.b;
    EXPECT_EQ(holds(pointwise::Gt{}), is.gt) << is.a << ", " << is.b;
    EXPECT_EQ(holds(pointwise::Ge{}), is.ge) << is.a << ", " << is.b;
    EXPECT_EQ(holds(pointwise::LogicalAnd{}), is.both) << is.a << ", " << is.b;
    EXPECT_EQ(holds(pointwise::LogicalOr{}), is.either) << is.a << ", " << is.b;
    EXPECT_EQ(holds(pointwise::LogicalXor{}), is.one) << is.a << ", " << is.b;
  }
}

TEST(Rows, PredicatesTellNumbersFromWhatIsNone) {
  struct Known {
    double x;
    bool nan, inf, finite, zero, negative;
  };
  for (const Known& is :
       {Known{0, false, false, true, true, false}, Known{-0.0, false, false, true, true, true},
        Known{1.5, false, false, true, false, false}, Known{-1.5, false, false, true, false, true},
        Known{INFINITY, false, true, false, false, false}, Known{-INFINITY, false, true, false, false, true},
        Known{NAN, true, false, false, false, false}}) {
    EXPECT_EQ(pointwise::IsNan::value(is.x), is.nan) << is.x;
    EXPECT_EQ(pointwise::IsInf::value(is.x), is.inf) << is.x;
    EXPECT_EQ(pointwise::IsFinite::value(is.x), is.finite) << is.x;
    EXPECT_EQ(pointwise::LogicalNot::value(is.x), is.zero) << is.x;
    EXPECT_EQ(pointwise::Signbit::value(is.x), is.negative) << is.x;
  }
}

TEST(Rows, BitwiseOnesWorkOnTheBitsOfIntegers) {
  const std::int64_t a = 0b1100, b = 0b1010;
  EXPECT_EQ(pointwise::BitwiseAnd::value(a, b), 0b1000);
  EXPECT_EQ(pointwise::BitwiseOr::value(a, b), 0b1110);
  EXPECT_EQ(pointwise::BitwiseXor::value(a, b), 0b0110);
  EXPECT_EQ(pointwise::ShiftLeft::value(a, std::int64_t{2}), 0b110000);
  EXPECT_EQ(pointwise::ShiftRight::value(a, std::int64_t{2}), 0b11);
}

TEST(Rows, ArithmeticOfIntegersIsExact) {
  using I = std::int64_t;
  // By the compiler, which refuses what is undefined: the squares that are not needed are too large.
  static_assert(pointwise::power(I{3}, I{39}) == 4052555153018976267);
  static_assert(pointwise::power(I{3}, I{41}) == -420491770248316829, "wraps");
  static_assert(pointwise::power(std::int32_t{-7}, std::int32_t{11}) == -1977326743);
  EXPECT_EQ(pointwise::power(I{-1}, I{-3}), -1);
  EXPECT_EQ(pointwise::power(I{-1}, I{-2}), 1);
  EXPECT_EQ(pointwise::power(I{1}, I{-5}), 1);
  EXPECT_EQ(pointwise::power(I{2}, I{-1}), 0);
  for (const I a : {-7, -6, 6, 7}) {
    for (const I b : {-3, 3}) {
      const I floored = pointwise::divide_floor(a, b), rest = pointwise::remainder_floor(a, b);
      EXPECT_EQ(floored, static_cast<I>(std::floor(static_cast<double>(a) / static_cast<double>(b)))) << a << ", " << b;
      EXPECT_EQ(floored * b + rest, a);
      EXPECT_EQ(pointwise::divide_trunc(a, b) * b + pointwise::remainder_c(a, b), a);
      EXPECT_EQ(pointwise::divide_trunc(a, b), a / b);
    }
  }
}

TEST(Rows, FloorDivisionAndItsRestHaveTheSignOfTheDivisor) {
  EXPECT_EQ(pointwise::divide_floor(-7.0, 2.0), -4);
  EXPECT_EQ(pointwise::divide_floor(7.0, -2.0), -4);
  EXPECT_EQ(pointwise::divide_floor(6.0, 0.1), 59) << "0.1 is a little more than a tenth";
  EXPECT_TRUE(std::signbit(pointwise::divide_floor(0.0, -2.0)));
  EXPECT_EQ(pointwise::divide_floor(1.0, 0.0), INFINITY);
  EXPECT_EQ(pointwise::remainder_floor(-7.0, 2.0), 1);
  EXPECT_EQ(pointwise::remainder_floor(7.0, -2.0), -1);
  EXPECT_EQ(pointwise::remainder_floor(-6.0, 2.0), 0);
}

TEST(Rows, SpecialFunctionsKnowTheirEnds) {
  EXPECT_EQ(pointwise::erfinv(1.0), INFINITY);
  EXPECT_EQ(pointwise::erfinv(-1.0), -INFINITY);
  EXPECT_TRUE(std::isnan(pointwise::erfinv(1.5)));
  for (const double x : {-0.9999, -0.5, 0.0, 0.3, 0.99, 0.999999})
    EXPECT_NEAR(std::erf(pointwise::erfinv(x)), x, 1e-15);
  EXPECT_EQ(pointwise::log_add_exp(INFINITY, INFINITY), INFINITY);
  EXPECT_NEAR(pointwise::polygamma(1.0, 1.0), 1.6449340668482264, 1e-13) << "pi^2 / 6";
  EXPECT_NEAR(pointwise::polygamma(2.0, 1.0), -2.4041138063191886, 1e-13) << "-2 zeta(3)";
  EXPECT_NEAR(pointwise::digamma(0.25), -4.227453533376265, 1e-13);
  EXPECT_NEAR(pointwise::digamma(-0.5), 0.03648997397857652, 1e-13);
}

TEST(Rows, SlopesWhereTheyJump) {
  EXPECT_EQ(pointwise::Maximum::slope_a(1.0, 1.0, 1.0), 0.5) << "equals share it";
  EXPECT_EQ(pointwise::Maximum::slope_b(1.0, 1.0, 1.0), 0.5);
  EXPECT_EQ(pointwise::Minimum::slope_a(1.0, 1.0, 1.0), 0.5);
  EXPECT_EQ(pointwise::Minimum::slope_b(1.0, 1.0, 1.0), 0.5);
  EXPECT_EQ(pointwise::Atan2::slope_a(0.0, 0.0, 0.0), 0) << "and no NaN";
  EXPECT_EQ(pointwise::Atan2::slope_b(0.0, 0.0, 0.0), 0);
  EXPECT_EQ(pointwise::Hardswish::slope(-3.0, 0.0), 0);
  EXPECT_EQ(pointwise::Hardswish::slope(3.0, 3.0), 1);
}

TEST(Rows, ComputeIntegersWhereTheyAreNotConverted) {
  using pointwise::Integers;
  for (const Integers kind : {Integers::kConverted, Integers::kRefused, Integers::kKept})
    EXPECT_FALSE(pointwise::computes(kind)) << static_cast<int>(kind);
  for (const Integers kind : {Integers::kSigned, Integers::kWrapped, Integers::kDivided})
    EXPECT_TRUE(pointwise::computes(kind)) << static_cast<int>(kind);
}

TEST(Rows, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  const auto insert = [&]<class Row>(Row) { EXPECT_TRUE(names.insert(Row::name).second) << Row::name; };
  for_each_row(pointwise::Unary{}, insert);
  for_each_row(pointwise::Binary{}, insert);
  for_each_row(pointwise::Comparison{}, insert);
  for_each_row(pointwise::Predicate{}, insert);
  for_each_row(pointwise::Bitwise{}, insert);
}

}  // namespace
}  // namespace tenon::test
