// Reductions of what is so large that several partial results are joined, and of sizes around the width of a vector,
// beside loops.
#include <tenon/ops/all_ops.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace tenon {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Elements at the ends of parts of 65536, and on both sides of each.
const std::vector<std::int64_t> kPlaces = {0, 1, 65535, 65536, 100000, 131071, 131072, 131148};
constexpr std::int64_t kLong = 131149;

/// `of` gets a long line in four layouts of which it reduces the last dim: as one row, of every second element, and as
/// the second of three rows and columns of a matrix.
void in_layouts(const Tensor& line, const std::function<void(const Tensor& x)>& of) {
  of(line);
  Tensor wide = zeros({line.numel(), 2}, line.options());
  wide.select(1, 0).copy_(line);
  of(wide.select(1, 0));
  of(wide.t());
}

double last_of(const Tensor& result) { return (result.dim() == 0 ? result : result[0]).to(kFloat64).item<double>(); }

TEST(LargeReduction, EveryPartCountsInSumsProductsAndNorms) {
  for (const Dtype dtype : {kFloat32, kFloat64, kInt64}) {
    const Tensor line = ones({kLong}, dtype);
    double product = 1, sum = kLong, squares = kLong, cubes = kLong;
    for (const std::int64_t place : kPlaces) {
      const double value = place % 2 == 0 ? 2 : -3;
      line[place].fill_(value);
      product *= value;
      sum += value - 1;
      squares += value * value - 1;
      cubes += std::abs(value * value * value) - 1;
    }
    in_layouts(line, [&](const Tensor& x) {
      EXPECT_EQ(last_of(x.prod(-1)), product);
      EXPECT_EQ(last_of(x.sum(-1)), sum);
      if (dtype == kInt64) return;
      EXPECT_NEAR(last_of(x.mean(-1)), sum / kLong, 1e-6);
      EXPECT_NEAR(last_of(x.norm(2, -1)), std::sqrt(squares), 1e-4);
      EXPECT_NEAR(last_of(x.norm(3, -1)), std::cbrt(cubes), 1e-4);
      EXPECT_EQ(last_of(x.norm(1, -1)), sum + 2. * 3 * 3);  // three of -3
      EXPECT_EQ(last_of(x.norm(0, -1)), kLong);
    });
  }
}

TEST(LargeReduction, OneElementOfAnyPartDecidesOverExtremesAndTruth) {
  for (const Dtype dtype : {kFloat32, kFloat64, kInt64, kBool}) {
    for (const std::int64_t place : kPlaces) {
      const Tensor truth = ones({kLong}, dtype), lies = zeros({kLong}, dtype);
      truth[place].fill_(0);
      lies[place].fill_(1);
      EXPECT_FALSE(truth.all().item<bool>());
      EXPECT_TRUE(lies.any().item<bool>());
      EXPECT_TRUE(ones({kLong}, dtype).all().item<bool>());
      EXPECT_FALSE(zeros({kLong}, dtype).any().item<bool>());
      if (dtype == kBool) continue;
      in_layouts(lies, [&](const Tensor& x) {
        EXPECT_EQ(last_of(x.amax(-1)), 1);
        EXPECT_EQ(last_of(x.argmax(-1)), place);
      });
      in_layouts(lies.neg(), [&](const Tensor& x) {
        EXPECT_EQ(last_of(x.amin(-1)), -1);
        EXPECT_EQ(last_of(x.argmin(-1)), place);
      });
      if (dtype == kInt64) continue;
      EXPECT_EQ(last_of(lies.mul(-5).norm(kInfinity)), 5);
      EXPECT_EQ(last_of(lies.neg().add(3).norm(-kInfinity)), 2);
      const Tensor with_nan = zeros({kLong}, dtype);
      with_nan[place].fill_(std::nan(""));
      for (const Tensor& result : {with_nan.amax(), with_nan.amin(), with_nan.sum(), with_nan.prod(), with_nan.mean(),
                                   with_nan.norm(kInfinity), with_nan.var(), with_nan.logsumexp(0)})
        EXPECT_TRUE(std::isnan(result.item<double>())) << place;
    }
  }
}

TEST(LargeReduction, VariancesAndExponentialsJoinTheirParts) {
  for (const Dtype dtype : {kFloat32, kFloat64}) {
    const Tensor line = arange(kLong, TensorOptions(kFloat64)).div(kLong).to(dtype);
    const double n = kLong, mean = (n - 1) / (2 * n), variance = (n * n - 1) / 12 / (n * n);
    in_layouts(line, [&](const Tensor& x) {
      EXPECT_NEAR(last_of(x.var(-1)), variance * n / (n - 1), 1e-7);
      EXPECT_NEAR(last_of(x.mean(-1)), mean, 1e-7);
      EXPECT_NEAR(last_of(x.std(-1)), std::sqrt(variance * n / (n - 1)), 1e-7);
      EXPECT_NEAR(last_of(x.logsumexp(-1)), std::log(n * (std::exp(1.) - 1)), 1e-4);
    });
  }
}

TEST(LargeReduction, ColumnsAreReducedInPartsOfRows) {
  for (const std::int64_t width : {1, 2, 255, 256, 257}) {
    const std::int64_t rows = 65536 / std::min<std::int64_t>(width, 256) * 2 + 3;
    const Tensor x = ones({rows, width}, kFloat32), lies = zeros({rows, width}, kFloat32);
    for (const std::int64_t row : {std::int64_t{0}, rows / 2, rows - 1}) {
      x[row].fill_(2);
      x[row][width - 1].fill_(3);
    }
    lies[rows - 2][width / 2].fill_(7);
    const Tensor product = x.prod(0), sum = x.sum(0), highest = lies.amax(0), lowest = lies.neg().amin(0),
                 some = lies.any(0), every = x.all(0), norm = x.norm(2, 0), where = lies.argmax(0);
    for (std::int64_t c = 0; c < width; c += std::max<std::int64_t>(1, width / 7)) {
      const double value = c == width - 1 ? 3 : 2;
      EXPECT_EQ(product[c].item<double>(), value * value * value) << width << ", " << c;
      EXPECT_EQ(sum[c].item<double>(), static_cast<double>(rows) + 3 * (value - 1));
      EXPECT_NEAR(norm[c].item<double>(), std::sqrt(static_cast<double>(rows) + 3 * (value * value - 1)), 1e-3);
      EXPECT_EQ(highest[c].item<double>(), c == width / 2 ? 7 : 0);
      EXPECT_EQ(lowest[c].item<double>(), c == width / 2 ? -7 : 0);
      EXPECT_EQ(some[c].item<bool>(), c == width / 2);
      EXPECT_TRUE(every[c].item<bool>());
      EXPECT_EQ(where[c].item<std::int64_t>(), c == width / 2 ? rows - 2 : 0);
    }
    EXPECT_EQ(product[width - 1].item<double>(), 27);
    EXPECT_EQ(highest[width / 2].item<double>(), 7);
    EXPECT_EQ(where[width / 2].item<std::int64_t>(), rows - 2);
  }
}

/// Numbers from -3 to 4, the same ones each time.
Tensor mixed(std::int64_t count, Dtype dtype, std::int64_t step = 5) {
  return arange(count, TensorOptions(kInt64)).mul(step).remainder(8).sub(3).to(dtype);
}

TEST(LineReduction, EveryLengthAroundTheWidthOfAVectorIsThatOfALoop) {
  for (const Dtype dtype : {kFloat32, kFloat64, kFloat16, kBFloat16, kInt64, kInt32, kInt8}) {
    for (const std::int64_t n : {1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 191, 255, 257}) {
      const Tensor x = mixed(n, dtype);
      double sum = 0, squares = 0, least = kInfinity, most = -kInfinity;
      std::int64_t at_least = 0, at_most = 0, hits = 0;
      std::vector<double> values;
      for (std::int64_t i = 0; i < n; ++i) {
        const auto v = static_cast<double>(i * 5 % 8 - 3);
        values.push_back(v);
        sum += v;
        squares += v * v;
        hits += v != 0;
        if (v < least) least = v, at_least = i;
        if (v > most) most = v, at_most = i;
      }
      const std::string which = std::string(toString(dtype)) + " of " + std::to_string(n);
      EXPECT_EQ(last_of(x.sum()), sum) << which;
      EXPECT_EQ(last_of(x.amin()), least) << which;
      EXPECT_EQ(last_of(x.amax()), most) << which;
      EXPECT_EQ(last_of(x.argmin()), static_cast<double>(at_least)) << which;
      EXPECT_EQ(last_of(x.argmax()), static_cast<double>(at_most)) << which;
      EXPECT_EQ(x.all().item<bool>(), hits == n) << which;
      EXPECT_EQ(x.any().item<bool>(), hits > 0) << which;
      EXPECT_EQ(last_of(x.count_nonzero(0)), static_cast<double>(hits)) << which;
      std::vector<double> sorted = values;
      std::sort(sorted.begin(), sorted.end());
      const auto [up, from] = x.sort(0);
      const auto [down, from_down] = x.sort(0, true);
      const auto [running, last_place] = x.cummax(0);
      const Tensor summed = x.to(kFloat64).cumsum(0);
      double carried = 0, best = -kInfinity;
      for (std::int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<std::size_t>(i);
        ASSERT_EQ(last_of(up[i]), sorted[at]) << which;
        ASSERT_EQ(last_of(down[i]), sorted[values.size() - 1 - at]) << which;
        ASSERT_EQ(values[static_cast<std::size_t>(from[i].item<std::int64_t>())], sorted[at]);
        best = std::max(best, values[at]);
        carried += values[at];
        ASSERT_EQ(last_of(running[i]), best);
        ASSERT_EQ(last_of(summed[i]), carried);
      }
      if (!x.is_floating_point()) continue;
      EXPECT_NEAR(last_of(x.norm(2)), std::sqrt(squares), 0.005 * std::sqrt(squares)) << which;
      EXPECT_EQ(last_of(x.norm(0)), static_cast<double>(hits)) << which;
      EXPECT_EQ(last_of(x.norm(kInfinity)), std::max(most, -least)) << which;
      const Tensor shares = x.to(kFloat32).softmax(0);
      EXPECT_NEAR(last_of(shares.sum()), 1, 1e-5);
      EXPECT_NEAR(last_of(shares[at_most]) / last_of(shares[at_least]), std::exp(most - least), 1e-2);
    }
  }
}

TEST(LineReduction, ProductsOfEveryLengthAndLayout) {
  for (const Dtype dtype : {kFloat32, kFloat64, kInt64}) {
    for (const std::int64_t n : {1, 2, 31, 32, 33, 64, 65}) {
      for (std::int64_t place = 0; place < n; ++place) {
        const Tensor x = ones({n, 2}, dtype);
        x[place][0].fill_(-3);
        EXPECT_EQ(last_of(x.select(1, 0).prod()), -3);
        EXPECT_EQ(last_of(x.prod(0)), -3);
        EXPECT_EQ(last_of(x.prod()), -3);
        EXPECT_EQ(last_of(x.t().contiguous().prod(1)), -3);
        EXPECT_EQ(last_of(x.select(1, 0).cumprod(0)[n - 1]), -3);
      }
    }
  }
}

TEST(LineReduction, ManyLinesAreSharedOutAmongThreads) {
  for (const auto& [rows, length] :
       {std::pair<std::int64_t, std::int64_t>{8200, 3}, {3, 8200}, {130, 131}, {1, 9000}}) {
    const Tensor x = mixed(rows * length, kFloat32, 7).view({rows, length}), wide = x.to(kFloat64);
    const Tensor turned = x.t().contiguous().t();
    for (const Tensor& one : {x, turned}) {
      EXPECT_TRUE(one.sum(1).to(kFloat64).equal(wide.cumsum(1).select(1, length - 1)));
      EXPECT_TRUE(one.amax(1).equal(std::get<0>(one.sort(1)).select(1, length - 1)));
      EXPECT_TRUE(one.gather(1, one.argmax(1, true)).squeeze(1).equal(one.amax(1)));
      EXPECT_TRUE(one.gather(1, one.argmin(1, true)).squeeze(1).equal(one.amin(1)));
      EXPECT_TRUE(std::get<0>(one.cummax(1)).select(1, length - 1).equal(one.amax(1)));
      EXPECT_TRUE(std::get<0>(one.cummin(1)).select(1, length - 1).equal(one.amin(1)));
      EXPECT_TRUE(std::get<0>(one.topk(2, 1)).equal(std::get<0>(one.sort(1, true)).narrow(1, 0, 2)));
      EXPECT_TRUE(allclose(one.softmax(1), wide.exp().div(wide.exp().sum(1, true)).to(kFloat32)));
      EXPECT_TRUE(allclose(one.log_softmax(1), wide.sub(wide.exp().sum(1, true).log()).to(kFloat32), 1e-4, 1e-5));
      EXPECT_TRUE(allclose(one.softmax(0), wide.exp().div(wide.exp().sum(0, true)).to(kFloat32)));
      EXPECT_TRUE(allclose(one.var(1), wide.sub(wide.mean(1, true)).square().sum(1).div(length - 1).to(kFloat32)));
    }
  }
}

}  // namespace
}  // namespace tenon
