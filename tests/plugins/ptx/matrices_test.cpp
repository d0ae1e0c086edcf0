// Products of matrices, matrices from shared memory and asynchronous copies: results are those of their definition, and
// a kernel with a fault is found.
#include "matrices.h"
#include "device_arrays.h"

#include "support/emulated_cuda/emulated_cuda.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

namespace tenon::ptx_test {

struct MatrixFault {
  MatrixMutant mutant;
  const char* name;
  const char* sentence;
};
void PrintTo(const MatrixFault& fault, std::ostream* out) { *out << fault.name; }

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Numbers with their bits: the upper half of a float32, and a float16 that is built from its parts.
std::uint16_t brain(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}
std::uint16_t half(float value) {
  if (std::isnan(value)) return 0x7e00;
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const float size = std::fabs(value);
  if (std::isinf(size)) return sign | 0x7c00;
  if (size < 0x1p-14F) return static_cast<std::uint16_t>(sign | static_cast<int>(size * 0x1p24F));
  const int exponent = std::ilogb(size);
  const int fraction = static_cast<int>(std::ldexp(size, 10 - exponent)) - 1024;
  return static_cast<std::uint16_t>(sign | (exponent + 15) << 10 | fraction);
}

struct Product {
  std::vector<float> a = std::vector<float>(16 * 16), b = std::vector<float>(16 * 8), c = std::vector<float>(16 * 8);

  std::vector<float> computed(bool brains) const {
    const auto bits = [&](const std::vector<float>& values) {
      std::vector<std::uint16_t> all;
      for (const float value : values) all.push_back(brains ? brain(value) : half(value));
      return all;
    };
    float* const y = on_device(std::vector<float>(16 * 8, -1));
    (brains ? product_of_brains : product_of_halves)(y, on_device(bits(a)), on_device(bits(b)), on_device(c), nullptr);
    return fetched(y, 16 * 8);
  }
  float wanted(std::size_t row, std::size_t column) const {
    __float128 sum = 0;
    for (std::size_t k = 0; k < 16; ++k) {
      sum += static_cast<__float128>(a[row * 16 + k]) * static_cast<__float128>(b[column * 16 + k]);
    }
    return static_cast<float>(sum + static_cast<__float128>(c[row * 8 + column]));
  }
};

class PtxMatrices : public testing::Test {
 protected:
  void SetUp() override { emulated_cuda::start({}); }
};

TEST_F(PtxMatrices, ProductsAreThoseOfTheirDefinition) {
  for (const bool brains : {false, true}) {
    for (int draw = 0; draw < 20; ++draw) {
      Product product;
      std::uint32_t state = 17 + static_cast<std::uint32_t>(draw);
      const auto next = [&state](int range) {
        state = state * 1664525 + 1013904223;
        return static_cast<float>(static_cast<int>(state >> 16) % (2 * range + 1) - range);
      };
      // Seven bits each; at every second draw of very different sizes, in exact powers of two.
      const auto scaled = [&] { return std::ldexp(next(127), draw % 2 == 0 ? 0 : static_cast<int>(next(6))); };
      for (float& value : product.a) value = scaled();
      for (float& value : product.b) value = scaled();
      for (float& value : product.c) value = next(1000);
      const std::vector<float> y = product.computed(brains);
      for (std::size_t i = 0; i < y.size(); ++i)
        ASSERT_EQ(y[i], product.wanted(i / 8, i % 8)) << brains << " " << draw << " element " << i;
    }
  }
}

TEST_F(PtxMatrices, ProductsOfEdgeValues) {
  for (const bool brains : {false, true}) {
    Product product;
    const auto row = [&](std::size_t i, float left, float other) {
      for (std::size_t k = 0; k < 16; ++k) product.a[i * 16 + k] = k == 3 ? left : other;
    };
    for (float& value : product.b) value = 1;
    row(0, kInfinity, 1);
    row(1, -kInfinity, 1);
    row(2, kNan, 0);
    row(3, 0x1p-24F, 0);                       // the smallest of float16
    row(4, -0.0F, -0.0F);                      // and c of -0
    row(5, brains ? 0x1p-133F : 0x1p-23F, 0);  // subnormal
    row(6, brains ? 0x1.fep127F : 65504, brains ? 0x1.fep127F : 65504);
    for (std::size_t n = 0; n < 8; ++n) product.c[4 * 8 + n] = -0.0F;
    row(7, kInfinity, 0);
    for (std::size_t n = 0; n < 8; ++n) product.c[7 * 8 + n] = -kInfinity;
    row(8, 1, 0);
    for (std::size_t n = 0; n < 8; ++n) product.c[8 * 8 + n] = 0x1p-24F;
    const std::vector<float> y = product.computed(brains);
    EXPECT_EQ(y[0], kInfinity);
    EXPECT_EQ(y[8], -kInfinity);
    EXPECT_TRUE(std::isnan(y[16]));
    EXPECT_EQ(y[24], 0x1p-24F);
    EXPECT_EQ(y[32], 0);
    EXPECT_EQ(y[40], brains ? 0x1p-133F : 0x1p-23F);
    EXPECT_EQ(y[48], brains ? kInfinity : 65504 * 16);
    EXPECT_TRUE(std::isnan(y[56]));
    EXPECT_EQ(y[64], 1);  // rounded to even
  }
}

TEST_F(PtxMatrices, LanesGetTheirPartsOfMatrices) {
  std::vector<std::uint16_t> x(4 * 8 * 8);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint16_t>(i * 257 + 3);
  std::uint32_t* const out = on_device(std::vector<std::uint32_t>(32 * kMatrixWords));
  matrices(out, on_device(x), nullptr);
  const std::vector<std::uint32_t> y = fetched(out, 32 * kMatrixWords);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    for (const bool trans : {false, true}) {
      const std::size_t matrix_of[] = {0, 0, 1, 0, 1, 2, 3};
      for (std::size_t i = 0; i < 7; ++i) {
        const auto element = [&](std::size_t odd) -> std::uint32_t {
          const std::size_t line = lane / 4, along = lane % 4 * 2 + odd;
          return x[matrix_of[i] * 64 + (trans ? along * 8 + line : line * 8 + along)];
        };
        EXPECT_EQ(y[lane * kMatrixWords + (trans ? 7 : 0) + i], element(0) | element(1) << 16)
            << "lane " << lane << ", word " << i << (trans ? ", transposed" : "");
      }
    }
  }
}

TEST_F(PtxMatrices, CopiesArriveAndAreFilledUpWithZeros) {
  std::vector<std::uint32_t> x(32 * 4);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint32_t>(i * 0x01234567 + 0x80818283);
  std::vector<int> counts(32);
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = static_cast<int>(i < 16 ? i + 1 : i - 16);
  counts[0] = 0;
  std::uint32_t* const out = on_device(std::vector<std::uint32_t>(x.size(), 7));
  copies(out, on_device(x), on_device(counts), nullptr);
  const std::vector<std::uint32_t> y = fetched(out, x.size());
  for (std::size_t i = 0; i < 32; ++i) {
    unsigned char want[16] = {}, got[16];
    const auto count = static_cast<std::size_t>(counts[i]);
    std::memcpy(want, &x[4 * i], i < 16 || count < 8 ? count : 8);
    if (i >= 16) std::memcpy(want + 8, &x[4 * i + 2], 8);
    std::memcpy(got, &y[4 * i], 16);
    EXPECT_EQ(std::memcmp(want, got, 16), 0) << "packet " << i;
  }
}

class PtxMatrixMutants : public testing::TestWithParam<MatrixFault> {
 protected:
  void SetUp() override { emulated_cuda::start({}); }
};

TEST_P(PtxMatrixMutants, IsFound) {
  std::uint32_t* const y = on_device(std::vector<std::uint32_t>(64));
  const std::uint32_t* const x = on_device(std::vector<std::uint32_t>(64 * 4));
  run_mutant(MatrixMutant::kNone, y, x, nullptr);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_DEATH(
      run_mutant(GetParam().mutant, y, x, nullptr),
      std::string("kernel .*mutant_tile_kernel.*block \\(.*thread \\(.*matrices.cu:[0-9]+: .*") + GetParam().sentence);
}

INSTANTIATE_TEST_SUITE_P(
    All, PtxMatrixMutants,
    testing::Values(
        MatrixFault{MatrixMutant::kWaitsForTooFew, "WaitsForTooFew", "to which an asynchronous copy is on its way"},
        MatrixFault{MatrixMutant::kNeverWaits, "NeverWaits", "is on its way when its thread ends"},
        MatrixFault{MatrixMutant::kBarrierMissing, "BarrierMissing",
                    "that was never written|is on its way|races in shared memory"},
        MatrixFault{MatrixMutant::kRowMisaligned, "RowMisaligned", "ldmatrix.* uses 16 bytes at .* not aligned"},
        MatrixFault{MatrixMutant::kRowOutside, "RowOutside", "ldmatrix.* 16 bytes at 1024 of 1024 bytes of shared"},
        MatrixFault{MatrixMutant::kLaneMissing, "LaneMissing",
                    "ldmatrix.* waits for threads that never come|names thread 5 in its mask, which has ended"},
        MatrixFault{MatrixMutant::kHalfAWarp, "HalfAWarp", "needs all 32 threads of its warp"},
        MatrixFault{MatrixMutant::kCopyOverWhatIsRead, "CopyOverWhatIsRead", "cp.async.* races in shared memory"},
        MatrixFault{MatrixMutant::kCopyMisaligned, "CopyMisaligned", "cp.async.* uses 16 bytes at .* not aligned"},
        MatrixFault{MatrixMutant::kCopyTooLong, "CopyTooLong", "reads 20 bytes and writes 16"},
        MatrixFault{MatrixMutant::kCopyBeyondTheEnd, "CopyBeyondTheEnd", "uses 16 bytes at .*, where nothing is"},
        MatrixFault{MatrixMutant::kStoreIntoACopy, "StoreIntoACopy",
                    "st.* to which an asynchronous copy is on its way"}),
    [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace tenon::ptx_test
