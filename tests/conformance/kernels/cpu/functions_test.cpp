// The cpu's own elementary functions of float32, over all floats: subnormals, what overflows, infinities and NaN. The
// reference is the C library's function of doubles.
#include <tenon/core/error.h>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "cpu_case.h"

namespace tenon::conformance {
namespace {

class CpuFunctions : public CpuCase {};

constexpr double kMostUlps = 2;

float of_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

/// Units in the last place of the float that `want` rounds to; infinity where one is NaN and the other is not, or where
/// zero has the other sign.
double ulps(double got, double want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) == std::isnan(got) ? 0 : kInfinity;
  const auto nearest = static_cast<float>(want);
  if (static_cast<float>(got) == nearest)
    return nearest != 0 || std::signbit(got) == std::signbit(want) ? 0 : kInfinity;
  if (std::isinf(want)) return kInfinity;
  int exponent = 0;
  std::frexp(want, &exponent);
  const double got_finite = std::isinf(got) ? std::copysign(0x1p128, got) : got;  // what follows the largest float
  return std::fabs(got_finite - want) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kSpecial[] = {0.0f,         -0.0f,      1.0f,       -1.0f,   0.5f,          -0.5f,
                              2.0f,         -2.0f,      2.5f,       3.0f,    -3.0f,         kInf,
                              -kInf,        NAN,        1e-45f,     -1e-45f, 3.4028235e38f, -3.4028235e38f,
                              88.7228f,     88.7229f,   -103.9f,    -104.1f, 16777215.0f,   16777216.0f,
                              -16777217.0f, 8388609.0f, 1.5707964f, 1e10f,   1e30f};

/// Every float of a lattice of bits that meets all exponents, and the special ones.
std::vector<float> floats() {
  std::vector<float> all(std::begin(kSpecial), std::end(kSpecial));
  for (std::uint64_t bits = 0; bits < (1ull << 32); bits += 224737)
    all.push_back(of_bits(static_cast<std::uint32_t>(bits)));
  return all;
}

Tensor tensor_of(const std::vector<float>& values) {
  return Tensor(Dtype::kFloat32, {static_cast<i64>(values.size())}).fill([&](i64 i) {
    return static_cast<double>(values[static_cast<std::size_t>(i)]);
  });
}

struct Function {
  const char* name;
  double (*reference)(double);
};
const Function kFunctions[] = {{"exp", std::exp},   {"exp2", std::exp2},   {"expm1", std::expm1}, {"log", std::log},
                               {"log2", std::log2}, {"log10", std::log10}, {"log1p", std::log1p}, {"tanh", std::tanh},
                               {"sinh", std::sinh}, {"cosh", std::cosh},   {"atanh", std::atanh}, {"erf", std::erf},
                               {"erfc", std::erfc}, {"sin", std::sin},     {"cos", std::cos},     {"tan", std::tan},
                               {"asin", std::asin}, {"acos", std::acos},   {"atan", std::atan}};

TEST_F(CpuFunctions, AreWithinTwoUlpsOfEveryFloat) {
  const std::vector<float> values = floats();
  for_each_bench([&](Bench& bench) {
    const Tensor x = tensor_of(values);
    for (const Function& function : kFunctions) {
      Tensor y(Dtype::kFloat32, x.sizes());
      bench.run(function.name, {y}, {x});
      for (i64 i = 0; i < x.count(); ++i)
        ASSERT_LE(ulps(y.real(i), function.reference(x.real(i))), kMostUlps)
            << function.name << " of " << x.real(i) << ": got " << y.real(i);
    }
  });
}

struct Pair {
  std::vector<float> a, b;
};
/// Each special number with each, then pairs of any exponents, and of near ones.
Pair pairs() {
  Pair pair;
  for (const float a : kSpecial) {
    for (const float b : kSpecial) {
      pair.a.push_back(a);
      pair.b.push_back(b);
    }
  }
  Random random(5);
  for (int i = 0; i < 20000; ++i) {
    auto a = static_cast<std::uint32_t>(random.bits()), b = static_cast<std::uint32_t>(random.bits());
    if (i % 2 == 0) {
      a = (a & 0x83ffffffu) | 0x3c000000u;
      b = (b & 0x83ffffffu) | 0x3c000000u;
    }
    pair.a.push_back(of_bits(a));
    pair.b.push_back(of_bits(b));
  }
  return pair;
}

TEST_F(CpuFunctions, OfTwoNumbersAreWithinTwoUlps) {
  struct Binary {
    const char* name;
    double (*reference)(double, double);
  };
  const Pair pair = pairs();
  for_each_bench([&](Bench& bench) {
    const Tensor a = tensor_of(pair.a), b = tensor_of(pair.b);
    for (const Binary& function : {Binary{"pow", std::pow}, Binary{"atan2", std::atan2}, Binary{"hypot", std::hypot}}) {
      Tensor y(Dtype::kFloat32, a.sizes());
      bench.run(function.name, {y}, {a, b});
      for (i64 i = 0; i < a.count(); ++i)
        ASSERT_LE(ulps(y.real(i), function.reference(a.real(i), b.real(i))), kMostUlps)
            << function.name << " of " << a.real(i) << " and " << b.real(i) << ": got " << y.real(i);
    }
  });
}

TEST_F(CpuFunctions, RemaindersAreExactWhateverTheQuotient) {
  const Pair pair = pairs();
  const auto same = [](double got, double want) {
    return (std::isnan(got) && std::isnan(want)) || (got == want && std::signbit(got) == std::signbit(want));
  };
  for_each_bench([&](Bench& bench) {
    const Tensor a = tensor_of(pair.a), b = tensor_of(pair.b);
    Tensor rest(Dtype::kFloat32, a.sizes()), modulo(Dtype::kFloat32, a.sizes()), floored(Dtype::kFloat32, a.sizes());
    bench.run("fmod", {rest}, {a, b});
    bench.run("remainder", {modulo}, {a, b});
    bench.run("floor_divide", {floored}, {a, b});
    for (i64 i = 0; i < a.count(); ++i) {
      const auto x = static_cast<float>(a.real(i)), y = static_cast<float>(b.real(i));
      const float c = std::fmod(x, y);
      const float python = c != 0 && (c < 0) != (y < 0) ? c + y : c;
      ASSERT_TRUE(same(rest.real(i), c)) << "fmod of " << x << " and " << y << ": got " << rest.real(i);
      ASSERT_TRUE(same(modulo.real(i), python)) << "remainder of " << x << " and " << y << ": got " << modulo.real(i);
      if (y == 0) {
        ASSERT_TRUE(same(floored.real(i), x / y)) << x << " by " << y << ": got " << floored.real(i);
      } else if (std::isnan(x) || std::isnan(y) || std::isinf(x)) {
        ASSERT_TRUE(std::isnan(floored.real(i))) << x << " by " << y << ": got " << floored.real(i);
      }
    }
  });
}

TEST_F(CpuFunctions, AreTheSameInVectorsAndOneByOne) {
  const std::vector<float> all = floats();
  for_each_bench([&](Bench& bench) {
    for (const Function& function : kFunctions) {
      for (std::size_t from = 0; from + 19 < all.size(); from += 4091) {
        const std::vector<float> some(all.begin() + static_cast<std::ptrdiff_t>(from),
                                      all.begin() + static_cast<std::ptrdiff_t>(from + 19));
        Tensor together(Dtype::kFloat32, {19});
        bench.run(function.name, {together}, {tensor_of(some)});
        for (i64 i = 0; i < 19; ++i) {
          Tensor alone(Dtype::kFloat32, {1});
          bench.run(function.name, {alone}, {tensor_of({some[static_cast<std::size_t>(i)]})});
          ASSERT_EQ(std::isnan(alone.real(0)), std::isnan(together.real(i))) << function.name;
          if (!std::isnan(alone.real(0))) {
            ASSERT_EQ(alone.real(0), together.real(i)) << function.name;
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace tenon::conformance
