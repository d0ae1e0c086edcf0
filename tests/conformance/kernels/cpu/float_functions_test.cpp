// The elementary functions of float32 that are our own, over all of its range: at most 2 units in the last place from
// the C library's in double, and its zeros, infinities and NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "cpu_case.h"

namespace tenon::conformance {
namespace {

using FloatFunctions = CpuCase;

/// How far a float is from a number, in units of the last place that a float has there.
double units_between(float got, double wanted) {
  const double size = std::fabs(wanted);
  const int exponent = size < 0x1p-126 ? -126 : std::ilogb(size);
  return std::fabs(static_cast<double>(got) - wanted) / std::ldexp(1.0, exponent - 23);
}

TEST_F(FloatFunctions, AreWithinTwoUnitsOfTheLastPlaceEverywhere) {
  struct Function {
    const char* name;
    double (*value)(double);
    double units, least = 0;  // smaller results may be 0
  };
  constexpr Function kFunctions[] = {
      {"exp", [](double x) { return std::exp(x); }, 2},
      {"log", [](double x) { return std::log(x); }, 2},
      {"tanh", [](double x) { return std::tanh(x); }, 2},
      {"erf", [](double x) { return std::erf(x); }, 2},
      {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, 3, 0x1p-126},
      {"sqrt", [](double x) { return std::sqrt(x); }, 0.5},
  };
  // Every so many floats of both signs, some of which are NaN, and what lies between the bounds of each function's
  // parts.
  std::vector<float> numbers{0.0F, -0.0F, 1.0F, -1.0F, INFINITY, -INFINITY, NAN, 0x1p-149F, -0x1p-149F, 0x1p-126F};
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 299993)
    numbers.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  for (double x = -110; x < 100; x += 0.037) numbers.push_back(static_cast<float>(x));
  for (double x = 0.1; x < 4; x += 0.0011) numbers.push_back(static_cast<float>(x));
  const auto count = static_cast<i64>(numbers.size());
  Tensor x(Dtype::kFloat32, {count}), y(Dtype::kFloat32, {count});
  std::copy(numbers.begin(), numbers.end(), static_cast<float*>(x.view().data));
  for_each_bench([&](Bench& bench) {
    for (const Function& f : kFunctions) {
      bench.run(f.name, {y}, {x});
      const auto* const got = static_cast<const float*>(y.view().data);
      for (i64 i = 0; i < count; ++i) {
        const float from = numbers[static_cast<std::size_t>(i)];
        const double wanted = f.value(from);
        if (std::isnan(wanted)) {
          ASSERT_TRUE(std::isnan(got[i])) << f.name << " of " << from;
          continue;
        }
        ASSERT_EQ(std::signbit(got[i]), std::signbit(wanted)) << f.name << " of " << from;
        const bool is_beyond = std::fabs(wanted) > static_cast<double>(std::numeric_limits<float>::max());
        if (is_beyond) {
          ASSERT_TRUE(std::isinf(got[i])) << f.name << " of " << from;
          continue;
        }
        if (std::fabs(wanted) < f.least && got[i] == 0) continue;
        ASSERT_LE(units_between(got[i], wanted), f.units)
            << f.name << " of " << from << ": got " << got[i] << ", expected " << wanted;
      }
    }
  });
}

}  // namespace
}  // namespace tenon::conformance
