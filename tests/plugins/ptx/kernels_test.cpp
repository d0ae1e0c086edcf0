// Kernels as nvcc makes them, interpreted: the results are those of the host.
#include "kernels.h"
#include "device_arrays.h"

#include "support/emulated_cuda/emulated_cuda.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace tenon::ptx_test {
namespace {

using emulated_cuda::Order;

/// Under the order of blocks and threads as they are numbered, and under drawn ones.
class PtxKernels : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (GetParam() == 0) {
      emulated_cuda::start({});
    } else {
      emulated_cuda::start({.order = Order::kSeeded, .seed = static_cast<std::uint64_t>(GetParam())});
    }
  }
  void TearDown() override {
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    emulated_cuda::start({});
  }

  static std::vector<float> some_floats(std::size_t count) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>((i * 7919) % 1000) / 100 - 5;
    return values;
  }
};

TEST_P(PtxKernels, VectorsOfFour) {
  const std::vector<float> x = some_floats(1000), y = some_floats(1000);
  float* out = on_device(y);
  axpy(out, on_device(x), 0.5F, 1000, nullptr);
  const std::vector<float> got = fetched(out, 1000);
  for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(got[i], std::fma(0.5F, x[i], y[i])) << i;
}

TEST_P(PtxKernels, SumsOfBlocksAndOfAGrid) {
  const std::vector<float> x = some_floats(5003);
  const double want = std::accumulate(x.begin(), x.end(), 0.0);
  float* sums = on_device(std::vector<float>(5));
  block_sums(sums, on_device(x), 5003, 5, nullptr);
  const std::vector<float> parts = fetched(sums, 5);
  EXPECT_NEAR(std::accumulate(parts.begin(), parts.end(), 0.0), want, 1e-2);
  float* sum = on_device(std::vector<float>(1));
  grid_sum(sum, sums, on_device(std::vector<unsigned>(1)), on_device(x), 5003, 5, nullptr);
  EXPECT_NEAR(fetched(sum, 1)[0], want, 1e-2);
}

TEST_P(PtxKernels, SoftmaxOfRows) {
  const int rows = 7, columns = 193;
  const std::vector<float> x = some_floats(rows * columns);
  float* y = on_device(std::vector<float>(x.size()));
  softmax(y, on_device(x), rows, columns, nullptr);
  const std::vector<float> got = fetched(y, x.size());
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int c = 0; c < columns; ++c)
      sum += std::exp(static_cast<double>(x[static_cast<std::size_t>(r * columns + c)]));
    for (int c = 0; c < columns; ++c) {
      const auto i = static_cast<std::size_t>(r * columns + c);
      ASSERT_NEAR(got[i], std::exp(static_cast<double>(x[i])) / sum, 1e-6);
    }
  }
}

/// The mathematical library of CUDA, as nvcc inlines and calls it, within a few units in the last place.
template <class T>
void expect_functions(const std::vector<T>& x, const std::vector<T>& got, double ulps) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const T v = x[i];
    const long double w = v;
    const long double want[kFunctions] = {
        std::exp(w),         std::log(w),        std::sin(w),   std::cos(w),    std::tan(w),
        std::tanh(w),        std::erf(w),        std::erfc(w),  std::lgamma(w), std::pow(std::fabs(w), 2.5L),
        std::atan2(w, 3.0L), std::fmod(w, 1.5L), std::round(w), std::floor(w),  std::rint(w),
        std::sqrt(w),        1 / std::sqrt(w),   std::cbrt(w),  std::log1p(w),  std::expm1(w),
        std::sinh(w),        std::asin(w),       w / 3,         std::exp2(w)};
    for (int f = 0; f < kFunctions; ++f) {
      const T one = got[i * kFunctions + static_cast<std::size_t>(f)];
      const T expected = static_cast<T>(want[f]);
      if (std::isnan(expected) || std::isinf(expected)) {
        EXPECT_TRUE(std::isnan(expected) ? std::isnan(one) : one == expected)
            << "function " << f << " of " << v << ": " << one;
        continue;
      }
      const T unit =
          std::max(std::nextafter(std::fabs(expected), std::numeric_limits<T>::infinity()) - std::fabs(expected),
                   f == 8 ? std::numeric_limits<T>::epsilon() / 4 : std::numeric_limits<T>::denorm_min());
      EXPECT_LE(std::fabs(static_cast<double>(one - expected)), ulps * static_cast<double>(unit))
          << "function " << f << " of " << v << ": " << one << " and not " << expected;
    }
  }
}

TEST_P(PtxKernels, MathematicalFunctions) {
  std::vector<float> x = {0.0F,
                          -0.0F,
                          1.0F,
                          -1.0F,
                          0.5F,
                          0.999F,
                          3.7F,
                          -2.2F,
                          12.5F,
                          1e-6F,
                          1e5F,
                          88.0F,
                          -100.0F,
                          1e-40F,
                          std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()};
  float* y = on_device(std::vector<float>(x.size() * kFunctions));
  functions(y, on_device(x), static_cast<int>(x.size()), nullptr);
  expect_functions(x, fetched(y, x.size() * kFunctions), 8);
  std::vector<double> z = {0.0,
                           -0.0,
                           1.0,
                           -1.0,
                           0.5,
                           0.999,
                           3.7,
                           -2.2,
                           12.5,
                           1e-6,
                           1e9,
                           700.0,
                           -100.0,
                           1e-310,
                           std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()};
  double* u = on_device(std::vector<double>(z.size() * kFunctions));
  functions(u, on_device(z), static_cast<int>(z.size()), nullptr);
  expect_functions(z, fetched(u, z.size() * kFunctions), 8);
}

TEST_P(PtxKernels, ReducedPrecision) {
  const std::vector<float> x = {0,     -0.0F, 1,     1.0009765F, 65504, 65520,
                                1e-8F, 6e-8F, 3e38F, -3.4e38F,   0.1F,  std::numeric_limits<float>::infinity()};
  auto* half = on_device(std::vector<std::uint16_t>(x.size()));
  auto* brain = on_device(std::vector<std::uint16_t>(x.size()));
  halves(half, brain, on_device(x), static_cast<int>(x.size()), nullptr);
  const auto halved = fetched(half, x.size());
  const auto brained = fetched(brain, x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(halved[i], std::bit_cast<std::uint16_t>(static_cast<_Float16>(x[i]))) << x[i];
    const auto bits = std::bit_cast<std::uint32_t>(x[i]);
    EXPECT_EQ(brained[i], static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)) << x[i];
  }
}

TEST_P(PtxKernels, WholeNumbers) {
  const std::vector<std::int32_t> edges = {0, 1, -1, 2, 7, -8, 31, 32, 12345, -99999, 2147483647, -2147483647};
  std::vector<std::int32_t> a, b;
  for (const auto p : edges) {
    for (const auto q : edges) a.push_back(p), b.push_back(q);
  }
  auto* y = on_device(std::vector<std::int64_t>(a.size() * kWholes));
  wholes(y, on_device(a), on_device(b), static_cast<int>(a.size()), nullptr);
  const auto got = fetched(y, a.size() * kWholes);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::int64_t p = a[i], q = b[i];
    const auto up = static_cast<std::uint32_t>(p), uq = static_cast<std::uint32_t>(q);
    const std::int64_t wide = static_cast<std::int64_t>(static_cast<std::uint64_t>(p) << 20) ^ q;
    std::uint32_t reversed = 0;
    for (int bit = 0; bit < 32; ++bit) reversed |= (up >> bit & 1) << (31 - bit);
    const auto byte = [&](int n) {
      return static_cast<std::uint32_t>((n < 4 ? up >> (8 * n) : uq >> (8 * (n - 4))) & 0xff);
    };
    const std::int64_t want[kWholes] = {q == 0 ? 0 : p / q,
                                        q == 0 ? 0 : p % q,
                                        p * q,
                                        (p * q) >> 32,
                                        std::popcount(up) * 100 + std::countl_zero(uq),
                                        reversed,
                                        byte(5) | byte(1) << 8 | byte(7) << 16 | byte(3) << 24,
                                        (uq << 7) | (up >> 25),
                                        wide / 12345 + wide % 777,
                                        wide >> (q & 63),
                                        p > q && p % 2 == 0 ? std::max(p, q) : std::min(p, q),
                                        static_cast<std::int64_t>(up / 7 + static_cast<std::uint64_t>(wide) / 1000003)};
    for (int f = 0; f < kWholes; ++f)
      EXPECT_EQ(got[i * kWholes + static_cast<std::size_t>(f)], want[f]) << f << " of " << p << ", " << q;
  }
}

TEST_P(PtxKernels, CountsByAtomics) {
  std::vector<unsigned char> x(3001);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<unsigned char>(i * i);
  unsigned* counts = on_device(std::vector<unsigned>(256));
  histogram(counts, on_device(x), static_cast<int>(x.size()), nullptr);
  const auto got = fetched(counts, 256);
  for (unsigned value = 0; value < 256; ++value)
    EXPECT_EQ(got[value], static_cast<unsigned>(std::count(x.begin(), x.end(), static_cast<unsigned char>(value))));
}

TEST_P(PtxKernels, VotesAndShuffles) {
  std::vector<int> x(32);
  std::iota(x.begin(), x.end(), -4);
  unsigned* y = on_device(std::vector<unsigned>(32 * 7));
  votes(y, on_device(x), nullptr);
  const auto got = fetched(y, 32 * 7);
  for (int i = 0; i < 32; ++i) {
    const unsigned* out = got.data() + i * 7;
    EXPECT_EQ(out[0], 0xffffffe0U);
    EXPECT_EQ(out[1], 1U);
    EXPECT_EQ(out[2], 1U);
    EXPECT_EQ(static_cast<int>(out[3]), (i < 3 ? i : i - 3) - 4);
    EXPECT_EQ(static_cast<int>(out[4]), i / 8 * 8 + 2 - 4);
    EXPECT_EQ(static_cast<int>(out[5]), (i % 16 + 5 < 16 ? i + 5 : i) - 4);
    EXPECT_EQ(out[6], i % 2 == 1 ? 0xaaaa8000U : 0U);
  }
}

TEST_P(PtxKernels, VotesOfABlockAndNamesInBraces) {
  std::vector<int> x(96);
  std::iota(x.begin(), x.end(), -4);
  int* y = on_device(std::vector<int>(96 * kBlockVotes));
  block_votes(y, on_device(x), nullptr);
  const auto got = fetched(y, 96 * kBlockVotes);
  for (int i = 0; i < 96; ++i) {
    const int* out = got.data() + i * kBlockVotes;
    EXPECT_EQ(out[0], 91);
    EXPECT_EQ(out[1], 1);
    EXPECT_EQ(out[2], 0);
    EXPECT_EQ(out[3], 1);
    EXPECT_EQ(out[4], (i == 11 ? 2 : 0) + (i > 4));
  }
}

TEST_P(PtxKernels, SharedMemoryIsReadInOtherSizesThanItWasWritten) {
  std::uint16_t* y = on_device(std::vector<std::uint16_t>(64));
  halves_of_words(y, nullptr);
  const auto got = fetched(y, 64);
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(got[i], i % 2 == 0 ? 7 : i / 2);
}

TEST_P(PtxKernels, IndicesInThreeDimensions) {
  int* y = on_device(std::vector<int>(2 * 3 * 24));
  where(y, dim3(2, 3), dim3(4, 3, 2), nullptr);
  const auto got = fetched(y, 2 * 3 * 24);
  EXPECT_EQ(got[0], 0);
  EXPECT_EQ(got[23], 3 + 20 + 100);
  EXPECT_EQ(got.back(), 3 + 20 + 100 + 1000 + 20000);
}

INSTANTIATE_TEST_SUITE_P(Orders, PtxKernels, testing::Values(0, 1, 2));

}  // namespace
}  // namespace tenon::ptx_test
