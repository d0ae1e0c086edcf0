// Pointwise rows by themselves, in double: values against PyTorch's, slopes against differences of the values.
#include "../support/row_checks.h"

#include <gtest/gtest.h>

#include <cmath>
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
