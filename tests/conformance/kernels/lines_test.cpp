// Lines of many elements, and of few that are special: sorted, selected, summed up to each, and as softmax.
#include <tenon/kernel/attributes/reduction.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness.h"

namespace tenon::conformance {
namespace {

/// Small whole numbers, so that there are many equals; of floats some are nan, infinite, or zeros of either sign.
Tensor with_special(Dtype dtype, const Sizes& sizes, Layout layout, Random& random) {
  Tensor x(dtype, sizes, layout);
  for (i64 i = 0; i < x.count(); ++i) {
    const i64 draw = random.integer(0, 100);
    if (!is_floating_point(dtype)) {
      x.set_integer(i, dtype == Dtype::kInt64 ? (draw - 50) * 3000000019 : is_signed(dtype) ? draw - 50 : draw);
    } else {
      const double special[] = {std::nan(""), -std::nan(""), kInfinity, -kInfinity, 0.0, -0.0};
      x.set(i, draw < 6 ? special[draw] : 0.25 * static_cast<double>(draw - 50));
    }
  }
  return x;
}

/// The element at position k of line `line` along dimension 1 of three, and where it is in row-major order.
i64 on_line(const Sizes& sizes, i64 line, i64 k) {
  return (line / sizes[2] * sizes[1] + k) * sizes[2] + line % sizes[2];
}

std::vector<i64> sorted_positions(const Tensor& x, i64 line, bool descending) {
  std::vector<i64> order(static_cast<std::size_t>(x.size(1)));
  std::iota(order.begin(), order.end(), 0);
  const auto value = [&](i64 k) { return x.real(on_line(x.sizes(), line, k)); };
  const auto whole = [&](i64 k) { return x.integer(on_line(x.sizes(), line, k)); };
  std::stable_sort(order.begin(), order.end(), [&](i64 a, i64 b) {
    if (!is_floating_point(x.dtype())) return descending ? whole(a) > whole(b) : whole(a) < whole(b);
    const double u = value(a), v = value(b);
    if (std::isnan(u) || std::isnan(v))
      return descending ? std::isnan(u) > std::isnan(v) : std::isnan(u) < std::isnan(v);
    return descending ? u > v : u < v;
  });
  return order;
}

void expect_sorted(const Tensor& x, const Tensor& values, const Tensor& index, bool descending) {
  const i64 lines = x.size(0) * x.size(2), k = values.size(1);
  for (i64 line = 0; line < lines; ++line) {
    const std::vector<i64> order = sorted_positions(x, line, descending);
    for (i64 i = 0; i < k; ++i) {
      const i64 to = on_line(values.sizes(), line, i),
                from = on_line(x.sizes(), line, order[static_cast<std::size_t>(i)]);
      ASSERT_EQ(index.integer(to), order[static_cast<std::size_t>(i)])
          << name_of(x.dtype()) << " " << to_string(x.sizes()) << " line " << line << " rank " << i;
      if (is_floating_point(x.dtype()) && std::isnan(x.real(from))) {
        ASSERT_TRUE(std::isnan(values.real(to)));
      } else {
        ASSERT_EQ(values.real(to), x.real(from));
        ASSERT_EQ(std::signbit(values.real(to)), std::signbit(x.real(from)));
      }
    }
  }
}

TEST(Sort, LongLinesKeepTheOrderOfEquals) {
  for_each_bench([](Bench& bench) {
    Random random(191);
    for (const Dtype dtype : {Dtype::kFloat32, Dtype::kInt64, Dtype::kInt8, Dtype::kBFloat16}) {
      for (const Sizes& sizes : {Sizes{1, 5003, 1}, Sizes{2, 1025, 3}}) {
        for (const bool descending : {false, true}) {
          const Tensor x = with_special(dtype, sizes, Layout::kStrided, random);
          Tensor values(dtype, sizes, Layout::kTransposed), index(Dtype::kInt64, sizes);
          SortAttributes attributes{.dim = 1, .descending = descending};
          bench.run("sort", {values, index}, {x}, &attributes);
          expect_sorted(x, values, index, descending);
        }
      }
    }
  });
}

TEST(Sort, ShortLinesOfEverySize) {
  for_each_bench([](Bench& bench) {
    Random random(193);
    for (const Dtype dtype : kAllTypes) {
      for (const i64 n : {0, 1, 2, 3, 33, 1024}) {
        if (n == 1024 && dtype != Dtype::kFloat32 && dtype != Dtype::kFloat64) continue;
        const Tensor x = with_special(dtype, {2, n, 1}, Layout::kContiguous, random);
        Tensor values(dtype, x.sizes()), index(Dtype::kInt64, x.sizes());
        SortAttributes attributes{.dim = 1, .descending = n % 2 == 0};
        bench.run("sort", {values, index}, {x}, &attributes);
        expect_sorted(x, values, index, attributes.descending);
      }
    }
    Tensor x(Dtype::kFloat32, {}), value(Dtype::kFloat32, {}), index(Dtype::kInt64, {});
    x.set(0, 2.5);
    SortAttributes attributes;
    bench.run("sort", {value, index}, {x}, &attributes);
    EXPECT_EQ(value.real(0), 2.5);
    EXPECT_EQ(index.integer(0), 0);
  });
}

TEST(Topk, OfLongLinesTakesTheFirstOfEquals) {
  for_each_bench([](Bench& bench) {
    Random random(197);
    for (const Dtype dtype : kAllTypes) {
      for (const i64 k : {1, 40, 600}) {
        for (const bool largest : {true, false}) {
          if (k == 600 && dtype != Dtype::kFloat32) continue;
          const Tensor x = with_special(dtype, {2, 2500, 2}, Layout::kTransposed, random);
          const Sizes out{2, k, 2};
          Tensor values(dtype, out, Layout::kStrided), index(Dtype::kInt64, out);
          TopkAttributes attributes{.k = k, .dim = 1, .largest = largest};
          bench.run("topk", {values, index}, {x}, &attributes);
          expect_sorted(x, values, index, largest);
        }
      }
    }
    // More than a block sorts are selected.
    const Tensor x = with_special(Dtype::kFloat32, {1, 4501, 1}, Layout::kContiguous, random);
    Tensor values(Dtype::kFloat32, {1, 1100, 1}), index(Dtype::kInt64, {1, 1100, 1});
    TopkAttributes attributes{.k = 1100, .dim = 1, .largest = false};
    bench.run("topk", {values, index}, {x}, &attributes);
    expect_sorted(x, values, index, false);
  });
}

TEST(Scan, ExtremesOfEveryTypeWithNanAndEquals) {
  for_each_bench([](Bench& bench) {
    Random random(199);
    for (const Dtype dtype : kAllTypes) {
      for (const Sizes& sizes :
           {Sizes{2, 67, 3}, Sizes{1, 1500, 2}, Sizes{1, 8200, 1}, Sizes{3, 1, 2}, Sizes{40, 9, 40}}) {
        for (const bool largest : {true, false}) {
          if (sizes[1] > 1000 && dtype != Dtype::kFloat32 && dtype != Dtype::kInt8) continue;
          Tensor x = with_special(dtype, sizes, Layout::kStrided, random);
          if (is_floating_point(dtype)) {  // the first half without nan, so that something runs
            for (i64 i = 0; i < x.count(); ++i) {
              if (i / sizes[2] % sizes[1] < sizes[1] / 2 && std::isnan(x.real(i))) x.set(i, 1);
            }
          }
          Tensor values(dtype, sizes, Layout::kTransposed), index(Dtype::kInt64, sizes);
          DimAttributes attributes{.dim = 1};
          bench.run(largest ? "cummax" : "cummin", {values, index}, {x}, &attributes);
          for (i64 line = 0; line < sizes[0] * sizes[2]; ++line) {
            i64 best = 0;
            for (i64 k = 0; k < sizes[1]; ++k) {
              const i64 at = on_line(sizes, line, k), was = on_line(sizes, line, best);
              const bool nan = std::isnan(x.real(at)), nan_before = std::isnan(x.real(was));
              const bool better = is_floating_point(dtype)
                                      ? (largest ? x.real(at) >= x.real(was) : x.real(at) <= x.real(was))
                                      : (largest ? x.integer(at) >= x.integer(was) : x.integer(at) <= x.integer(was));
              if (nan || (!nan_before && better)) best = k;
              ASSERT_EQ(index.integer(at), best) << name_of(dtype) << " " << to_string(sizes);
              const double value = x.real(on_line(sizes, line, best));
              if (!std::isnan(value)) {
                ASSERT_EQ(values.real(at), value);
              }
            }
          }
        }
      }
    }
  });
}

TEST(Scan, LongSumsProductsAndExponentials) {
  for_each_bench([](Bench& bench) {
    Random random(211);
    for (const Sizes& sizes : {Sizes{1, 2600, 2}, Sizes{30, 20, 30}, Sizes{1, 9001, 1}}) {
      DimAttributes attributes{.dim = 1};
      const Tensor x = random_tensor(Dtype::kFloat32, sizes, Layout::kStrided, random, 0.5, 1.5);
      Tensor sum(Dtype::kFloat32, sizes), product(Dtype::kFloat32, sizes), logs(Dtype::kFloat32, sizes);
      const Tensor whole = random_tensor(Dtype::kInt32, sizes, Layout::kContiguous, random, -100, 100);
      Tensor whole_sum(Dtype::kInt32, sizes), whole_product(Dtype::kInt32, sizes);
      bench.run("cumsum", {sum}, {x}, &attributes);
      bench.run("cumprod", {product}, {x}, &attributes);
      bench.run("logcumsumexp", {logs}, {x}, &attributes);
      bench.run("cumsum", {whole_sum}, {whole}, &attributes);
      bench.run("cumprod", {whole_product}, {whole}, &attributes);
      for (i64 line = 0; line < sizes[0] * sizes[2]; ++line) {
        double total = 0, times = 1, exponentials = 0;
        std::uint32_t whole_total = 0, whole_times = 1;
        for (i64 k = 0; k < sizes[1]; ++k) {
          const i64 i = on_line(sizes, line, k);
          total += x.real(i);
          times *= x.real(i);
          exponentials += std::exp(x.real(i));
          whole_total += static_cast<std::uint32_t>(whole.integer(i));
          whole_times *= static_cast<std::uint32_t>(whole.integer(i));
          ASSERT_NEAR(sum.real(i), total, 1e-6 * total);
          ASSERT_NEAR(product.real(i), times, 2e-7 * static_cast<double>(k + 2) * std::fabs(times) + 1e-37);
          ASSERT_NEAR(logs.real(i), std::log(exponentials), 2e-6 * (1 + std::log(exponentials)));
          ASSERT_EQ(whole_sum.integer(i), static_cast<std::int32_t>(whole_total));
          ASSERT_EQ(whole_product.integer(i), static_cast<std::int32_t>(whole_times));
        }
      }
    }
    Tensor x(Dtype::kFloat32, {7}), y(Dtype::kFloat32, {7});
    const double given[] = {-kInfinity, -kInfinity, 1, -kInfinity, kInfinity, std::nan(""), 2};
    x.fill([&](i64 i) { return given[i]; });
    DimAttributes attributes;
    bench.run("logcumsumexp", {y}, {x}, &attributes);
    const double want[] = {-kInfinity, -kInfinity, 1, 1, kInfinity, std::nan(""), std::nan("")};
    expect_near(
        y, [&](i64 i) { return want[i]; }, 1e-6, "logcumsumexp of infinities");
  });
}

TEST(Scan, SumsAndProductsOfEveryType) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : kAllTypes) {
      if (dtype == Dtype::kBool) continue;
      const Sizes sizes{3, 100, 2};
      Tensor x(dtype, sizes, Layout::kTransposed), sum(dtype, sizes), product(dtype, sizes, Layout::kStrided);
      x.fill([](i64 i) { return i / 2 % 3 == 0 ? 1.0 : 0.0; });
      DimAttributes attributes{.dim = 1};
      bench.run("cumsum", {sum}, {x}, &attributes);
      bench.run("cumprod", {product}, {x}, &attributes);
      for (i64 line = 0; line < 6; ++line) {
        double total = 0, times = 1;
        for (i64 k = 0; k < 100; ++k) {
          const i64 i = on_line(sizes, line, k);
          total += x.real(i);
          times *= x.real(i);
          ASSERT_EQ(sum.real(i), total) << name_of(dtype);
          ASSERT_EQ(product.real(i), times) << name_of(dtype);
        }
      }
      if (!is_floating_point(dtype)) continue;
      Tensor logs(dtype, sizes);
      bench.run("logcumsumexp", {logs}, {x}, &attributes);
      double exponentials = 0;
      for (i64 k = 0; k < 100; ++k) {
        exponentials += std::exp(x.real(k * 2));
        ASSERT_NEAR(logs.real(k * 2), std::log(exponentials), 64 * epsilon_of(dtype)) << name_of(dtype);
      }
    }
  });
}

TEST(Softmax, LongLinesAndInfinities) {
  for_each_bench([](Bench& bench) {
    Random random(223);
    for (const Dtype dtype : kFloats) {
      const Sizes sizes{2, 2700, 1};
      Tensor x = random_tensor(dtype, sizes, Layout::kContiguous, random, -8, 8);
      for (i64 i = 0; i < x.count(); i += 7) x.set(i, -kInfinity);  // of the first lane, too
      Tensor y(dtype, sizes), z(dtype, sizes);
      DimAttributes attributes{.dim = 1};
      bench.run("softmax", {y}, {x}, &attributes);
      bench.run("log_softmax", {z}, {x}, &attributes);
      for (i64 line = 0; line < 2; ++line) {
        double sum = 0;
        for (i64 k = 0; k < sizes[1]; ++k) sum += std::exp(x.real(line * sizes[1] + k));
        for (i64 k = 0; k < sizes[1]; ++k) {
          const i64 i = line * sizes[1] + k;
          const double p = std::exp(x.real(i)) / sum;
          ASSERT_NEAR(y.real(i), p, 16 * epsilon_of(dtype) * p + 1e-7);
          if (p == 0) {
            ASSERT_EQ(z.real(i), -kInfinity);
          } else {
            ASSERT_NEAR(z.real(i), std::log(p), 16 * epsilon_of(dtype) * (1 + std::fabs(std::log(p))));
          }
        }
      }
    }
    for (const double bad : {-kInfinity, kInfinity, std::nan("")}) {  // all -inf; one inf; one nan
      for (const i64 n : {3, 1500}) {
        Tensor x(Dtype::kFloat32, {n}), y(Dtype::kFloat32, {n}), z(Dtype::kFloat32, {n});
        x.fill([&](i64 i) { return i == n / 2 || bad == -kInfinity ? bad : 1.0; });
        DimAttributes attributes;
        bench.run("softmax", {y}, {x}, &attributes);
        bench.run("log_softmax", {z}, {x}, &attributes);
        for (i64 i = 0; i < n; ++i) {
          ASSERT_TRUE(std::isnan(y.real(i))) << bad << " " << i;
          ASSERT_TRUE(std::isnan(z.real(i))) << bad << " " << i;
        }
      }
    }
    Tensor x = random_tensor(Dtype::kFloat32, {5, 33}, Layout::kTransposed, random), y(Dtype::kFloat32, {5, 33});
    DimAttributes attributes{.dim = 1};
    bench.run("softmax", {y}, {x}, &attributes);
    bench.run("softmax", {x}, {x}, &attributes);
    expect_near(
        x, [&](i64 i) { return y.real(i); }, 0, "softmax in place");
  });
}

}  // namespace
}  // namespace tenon::conformance
