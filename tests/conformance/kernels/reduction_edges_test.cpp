// What reductions and normalisations make of nan, of nothing, of wrapping integers, of operands that are left out, and
// of so much that it is cut into parts.
#include <tenon/kernel/attributes/normalization.h>
#include <tenon/kernel/attributes/reduction.h>

#include <gtest/gtest.h>

#include <cmath>

#include "harness.h"

namespace tenon::conformance {
namespace {

TEST(Reduction, TheFirstNanAndTheFirstOfEqualsWinOverParts) {
  for_each_bench([](Bench& bench) {
    const i64 n = 20011;
    for (const bool across : {false, true}) {
      const int dim = across ? 0 : 1;
      Tensor x(Dtype::kFloat32, across ? Sizes{n, 2} : Sizes{2, n}),
          index(Dtype::kInt64, across ? Sizes{1, 2} : Sizes{2, 1}), value(Dtype::kFloat32, index.sizes());
      const auto at = [&](i64 line, i64 k) { return across ? k * 2 + line : line * n + k; };
      x.fill([](i64) { return 1.0; });
      for (const i64 k : {15013, 17017, 20010}) x.set(at(0, k), 3), x.set(at(1, k), std::nan(""));
      x.set(at(1, 12), kInfinity);
      DimAttributes attributes{.dim = dim};
      bench.run("max_dim", {value, index}, {x}, &attributes);
      EXPECT_EQ(value.real(0), 3);
      EXPECT_EQ(index.integer(0), 15013);
      EXPECT_TRUE(std::isnan(value.real(1)));
      EXPECT_EQ(index.integer(1), 15013);
      bench.run("min_dim", {value, index}, {x}, &attributes);
      EXPECT_EQ(value.real(0), 1);
      EXPECT_EQ(index.integer(0), 0);
      EXPECT_EQ(index.integer(1), 15013);
      bench.run("argmin", {index}, {x}, &attributes);
      EXPECT_EQ(index.integer(0), 0);
      EXPECT_EQ(index.integer(1), 15013);
    }
  });
}

TEST(Reduction, ManyElementsOfEveryKind) {
  for_each_bench([](Bench& bench) {
    const i64 n = 20011;
    Random random(227);
    Tensor x = random_tensor(Dtype::kFloat32, {n, 3}, Layout::kContiguous, random, -1, 1);
    Tensor any(Dtype::kBool, {1, 3}), all(Dtype::kBool, {1, 3}), count(Dtype::kInt64, {}),
        variance(Dtype::kFloat32, {1, 3}), mean(Dtype::kFloat32, {1, 3}), product(Dtype::kFloat64, {1, 1}),
        sum(Dtype::kFloat64, {1, 1});
    for (i64 i = 0; i < n; ++i)
      x.set(i * 3, -0.0), x.set(i * 3 + 1, i == 19000 ? 0 : std::nan("")), x.set(i * 3 + 2, 0.5);
    x.set(18000 * 3 + 2, 4.5);
    bench.run("any", {any}, {x});
    bench.run("all", {all}, {x});
    bench.run("count_nonzero_all", {count}, {x});
    for (i64 c = 0; c < 3; ++c) {
      EXPECT_EQ(any.integer(c), c != 0);
      EXPECT_EQ(all.integer(c), c == 2);
    }
    EXPECT_EQ(count.integer(0), 2 * n - 1);
    VarAttributes attributes{.correction = 1};
    bench.run("var_mean", {variance, mean}, {x}, &attributes);
    const double nn = static_cast<double>(n);
    EXPECT_EQ(variance.real(0), 0);
    EXPECT_TRUE(std::isnan(variance.real(1)));
    EXPECT_NEAR(mean.real(2), 0.5 + 4 / nn, 1e-6);
    EXPECT_NEAR(variance.real(2), 16 / nn, 1e-8);
    Tensor small = random_tensor(Dtype::kFloat32, {n, 1}, Layout::kContiguous, random, 0.999, 1.001);
    double times = 1, total = 0;
    for (i64 i = 0; i < n; ++i) times *= small.real(i), total += small.real(i);
    bench.run("prod", {product}, {small});  // float32 to float64, in float64
    bench.run("sum", {sum}, {small});
    EXPECT_NEAR(product.real(0), times, 1e-11 * times);
    EXPECT_NEAR(sum.real(0), total, 1e-8 * total);
  });
}

TEST(Reduction, IntegersWrapAndEveryTypeHasExtremes) {
  for_each_bench([](Bench& bench) {
    Random random(229);
    for (const Dtype dtype : kAllTypes) {
      const Tensor x = random_tensor(dtype, {5, 31}, Layout::kTransposed, random, -9, 9);
      Tensor most(dtype, {5, 1}), least(dtype, {5, 1});
      bench.run("amax", {most}, {x});
      bench.run("amin", {least}, {x});
      for (i64 i = 0; i < 5; ++i) {
        double high = -kInfinity, low = kInfinity;
        for (i64 k = 0; k < 31; ++k) high = std::max(high, x.real(i * 31 + k)), low = std::min(low, x.real(i * 31 + k));
        ASSERT_EQ(most.real(i), high) << name_of(dtype);
        ASSERT_EQ(least.real(i), low) << name_of(dtype);
      }
      if (is_floating_point(dtype)) continue;
      Tensor product(Dtype::kInt64, {5, 1});
      bench.run("prod", {product}, {x});
      for (i64 i = 0; i < 5; ++i) {
        std::uint64_t want = 1;
        for (i64 k = 0; k < 31; ++k) want *= static_cast<std::uint64_t>(x.integer(i * 31 + k));
        ASSERT_EQ(product.integer(i), static_cast<i64>(want)) << name_of(dtype);
      }
    }
  });
}

TEST(Reduction, ReducedTypesKeepTheirNanAndMaySumToFloat32) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16}) {
      Random random(251);
      Tensor x = random_tensor(dtype, {3, 70}, Layout::kStrided, random, -1, 1);
      Tensor wide(Dtype::kFloat32, {3, 1}), euclid(dtype, {3, 1}), most(dtype, {3, 1}), least(dtype, {3, 1});
      NormAttributes attributes;
      x.set(150, std::nan(""));
      bench.run("sum", {wide}, {x});
      bench.run("norm", {euclid}, {x}, &attributes);
      bench.run("amax", {most}, {x});
      attributes.p = -kInfinity;
      bench.run("norm", {least}, {x}, &attributes);
      for (i64 r = 0; r < 2; ++r) {
        double sum = 0, squares = 0, high = -2, low = 2;
        for (i64 i = r * 70; i < (r + 1) * 70; ++i) {
          const double value = x.real(i);
          sum += value;
          squares += value * value;
          high = std::max(high, value);
          low = std::min(low, std::fabs(value));
        }
        ASSERT_NEAR(wide.real(r), sum, 1e-4);
        ASSERT_NEAR(euclid.real(r), std::sqrt(squares), 4 * epsilon_of(dtype) * std::sqrt(squares));
        ASSERT_EQ(most.real(r), high);
        ASSERT_EQ(least.real(r), low);
      }
      for (const Tensor& result : {wide, euclid, most, least}) ASSERT_TRUE(std::isnan(result.real(2)));
    }
  });
}

TEST(Reduction, OfNothingIsTheIdentity) {
  for_each_bench([](Bench& bench) {
    const Tensor x(Dtype::kFloat32, {3, 0, 2});
    const auto result = [&](const char* kernel, const void* attributes = nullptr) {
      Tensor y(Dtype::kFloat32, {3, 1, 2});
      bench.run(kernel, {y}, {x}, attributes);
      for (i64 i = 1; i < 6; ++i) EXPECT_TRUE(y.real(i) == y.real(0) || std::isnan(y.real(0))) << kernel;
      return y.real(0);
    };
    VarAttributes variance;
    NormAttributes euclid, highest{.p = kInfinity};
    EXPECT_EQ(result("sum"), 0);
    EXPECT_EQ(result("prod"), 1);
    EXPECT_TRUE(std::isnan(result("mean")));
    EXPECT_EQ(result("amax"), -kInfinity);
    EXPECT_EQ(result("amin"), kInfinity);
    EXPECT_EQ(result("norm", &euclid), 0);
    EXPECT_EQ(result("norm", &highest), 0);
    EXPECT_TRUE(std::isnan(result("var", &variance)));
    Tensor any(Dtype::kBool, {3, 1, 2}), all(Dtype::kBool, {3, 1, 2}), nothing(Dtype::kFloat32, {1, 0, 1});
    bench.run("any", {any}, {x});
    bench.run("all", {all}, {x});
    for (i64 i = 0; i < 6; ++i) {
      EXPECT_EQ(any.integer(i), 0);
      EXPECT_EQ(all.integer(i), 1);
    }
    bench.run("sum", {nothing}, {Tensor(Dtype::kFloat32, {3, 0, 2})});
  });
}

TEST(Normalization, LongRowsWithoutWeights) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : kFloats) {
      const i64 rows = 3, n = 2500;
      Random random(233);
      const Tensor x = random_tensor(dtype, {rows, n}, Layout::kContiguous, random, 1, 3);
      const Tensor dy = random_tensor(dtype, {rows, n}, Layout::kContiguous, random, -1, 1);
      // Statistics may have x's own dtype, too.
      Tensor y(dtype, {rows, n}), mean(dtype, {rows}), rstd(dtype, {rows}), dx(dtype, {rows, n}), db(dtype, {n});
      LayerNormAttributes attributes{.normalized = n, .eps = 1e-5};
      bench.run("layer_norm", {y, mean, rstd}, {x, Tensor(), Tensor()}, &attributes);
      bench.run("layer_norm_backward", {dx, Tensor(), db}, {dy, x, mean, rstd, Tensor()}, &attributes);
      const double unit = (dtype == Dtype::kFloat64 ? 4096 : 64) * epsilon_of(dtype);
      for (i64 r = 0; r < rows; ++r) {
        double m = 0, squares = 0, total = 0, dot = 0;
        for (i64 i = 0; i < n; ++i) m += x.real(r * n + i) / static_cast<double>(n);
        for (i64 i = 0; i < n; ++i) squares += std::pow(x.real(r * n + i) - m, 2);
        const double s = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
        ASSERT_NEAR(mean.real(r), m, unit * m);
        ASSERT_NEAR(rstd.real(r), s, unit * s);
        for (i64 i = 0; i < n; ++i) {
          const double hat = (x.real(r * n + i) - m) * s, g = dy.real(r * n + i);
          total += g / static_cast<double>(n);
          dot += g * hat / static_cast<double>(n);
          ASSERT_NEAR(y.real(r * n + i), hat, unit * (1 + std::fabs(hat)));
        }
        for (i64 i = 0; i < n; ++i) {
          const double hat = (x.real(r * n + i) - m) * s;
          ASSERT_NEAR(dx.real(r * n + i), s * (dy.real(r * n + i) - total - hat * dot), 4 * unit);
        }
      }
      for (i64 i = 0; i < n; ++i) {
        ASSERT_NEAR(db.real(i), dy.real(i) + dy.real(n + i) + dy.real(2 * n + i), unit * 3);
      }
    }
  });
}

TEST(Normalization, BatchNormOfManySamplesInReducedTypes) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBFloat16}) {
      for (const Sizes& sizes : {Sizes{3000, 3}, Sizes{2, 2, 9000}}) {
        if (sizes.size() == 3 && dtype != Dtype::kFloat32) continue;
        Random random(239);
        const i64 channels = sizes[1], inner = sizes.size() == 3 ? sizes[2] : 1, count = sizes[0] * inner;
        const Tensor x = random_tensor(dtype, sizes, Layout::kContiguous, random, 1, 3);
        const Tensor dy = random_tensor(dtype, sizes, Layout::kContiguous, random, -1, 1);
        Tensor y(dtype, sizes), mean(Dtype::kFloat32, {channels}), rstd(Dtype::kFloat32, {channels}), dx(dtype, sizes);
        BatchNormAttributes attributes{.training = true, .momentum = 0.1, .eps = 1e-5};
        bench.run("batch_norm", {y, mean, rstd, Tensor(), Tensor()}, {x, Tensor(), Tensor(), Tensor(), Tensor()},
                  &attributes);
        bench.run("batch_norm_backward", {dx, Tensor(), Tensor()}, {dy, x, mean, rstd, Tensor()}, &attributes);
        const double unit = 64 * epsilon_of(dtype), n = static_cast<double>(count);
        for (i64 c = 0; c < channels; ++c) {
          const auto at = [&](i64 k) { return (k / inner * channels + c) * inner + k % inner; };
          double m = 0, squares = 0, total = 0, dot = 0;
          for (i64 k = 0; k < count; ++k) m += x.real(at(k)) / n;
          for (i64 k = 0; k < count; ++k) squares += std::pow(x.real(at(k)) - m, 2);
          const double s = 1 / std::sqrt(squares / n + 1e-5);
          for (i64 k = 0; k < count; ++k)
            total += dy.real(at(k)) / n, dot += dy.real(at(k)) * (x.real(at(k)) - m) * s / n;
          ASSERT_NEAR(mean.real(c), m, 1e-5);
          ASSERT_NEAR(rstd.real(c), s, 1e-5);
          for (i64 k = 0; k < count; ++k) {
            const double hat = (x.real(at(k)) - m) * s;
            ASSERT_NEAR(y.real(at(k)), hat, unit * (1 + std::fabs(hat)));
            ASSERT_NEAR(dx.real(at(k)), s * (dy.real(at(k)) - total - hat * dot), 2 * unit);
          }
        }
      }
    }
  });
}

TEST(NllLoss, ManySamplesAndNoneAtAll) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : kFloats) {
      const i64 n = dtype == Dtype::kFloat32 ? 20011 : 300, c = 3;
      Random random(241);
      const Tensor x = random_tensor(dtype, {n, c}, Layout::kContiguous, random, -3, 0);
      Tensor target(Dtype::kInt64, {n}), loss(dtype, {}), total(dtype, {});
      target.fill([](i64 i) { return static_cast<double>(i % 3); });
      double sum = 0;
      for (i64 i = 0; i < n; ++i) sum -= x.real(i * c + i % 3);
      NllLossAttributes attributes;
      bench.run("nll_loss", {loss, total}, {x, target, Tensor()}, &attributes);
      EXPECT_NEAR(loss.real(0), sum / static_cast<double>(n), 4 * epsilon_of(dtype) * 3);
      EXPECT_NEAR(total.real(0), static_cast<double>(n), epsilon_of(dtype) * 2 * static_cast<double>(n));
      target.fill([](i64) { return -100; });
      bench.run("nll_loss", {loss, total}, {x, target, Tensor()}, &attributes);
      EXPECT_TRUE(std::isnan(loss.real(0)));
      EXPECT_EQ(total.real(0), 0);
    }
  });
}

}  // namespace
}  // namespace tenon::conformance
