// Reductions, scans and sorts of drawn operands beside loops.
#include <tenon/kernel/attributes/reduction.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "drawn.h"

namespace tenon::conformance {
namespace {

using DrawnLines = CpuCase;

bool is_floating(Dtype dtype) { return dtype >= Dtype::kFloat16; }

/// NaN and infinities at some places.
void put_special_numbers(Draw& draw, Tensor& x) {
  if (!is_floating(x.dtype()) || x.count() == 0) return;
  constexpr double kSpecial[] = {std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity};
  for (i64 k = draw.number(0, 2); k > 0; --k) x.set(draw.number(0, x.count() - 1), draw.any_of(kSpecial));
}

double most_of(const Doubles& all) {
  double most = -kInfinity;
  for (const double x : all) most = std::isnan(x) || x > most ? x : std::isnan(most) ? most : std::max(most, x);
  return most;
}
double least_of(const Doubles& all) {
  double least = kInfinity;
  for (const double x : all) least = std::isnan(x) || x < least ? x : least;
  return least;
}
double sum_of(const Doubles& all) { return std::accumulate(all.begin(), all.end(), 0.0); }

struct Fold {
  const char* name;
  double (*value)(const Doubles&);
  bool gives_truth, takes_special_numbers, takes_integers;
};
constexpr Fold kFolds[] = {
    {"sum", &sum_of, false, false, true},
    {"mean", [](const Doubles& all) { return sum_of(all) / static_cast<double>(all.size()); }, false, false, false},
    {"prod", [](const Doubles& all) { return std::accumulate(all.begin(), all.end(), 1.0, std::multiplies<>()); },
     false, false, true},
    {"amax", &most_of, false, true, true},
    {"amin", &least_of, false, true, true},
    {"any",
     [](const Doubles& all) -> double { return std::any_of(all.begin(), all.end(), [](double x) { return x != 0; }); },
     true, true, true},
    {"all",
     [](const Doubles& all) -> double { return std::all_of(all.begin(), all.end(), [](double x) { return x != 0; }); },
     true, true, true},
};

struct Reduced {
  Sizes sizes, out;
  /// The elements that go into each result.
  std::vector<Doubles> groups(const Tensor& x) const {
    std::vector<Doubles> all(static_cast<std::size_t>(product_of_sizes(out)));
    for (i64 i = 0; i < x.count(); ++i) {
      i64 group = 0, rest = i, step = 1;
      for (std::size_t d = sizes.size(); d-- > 0;) {
        if (out[d] != 1) group += rest % sizes[d] * step;
        step *= out[d];
        rest /= sizes[d];
      }
      all[static_cast<std::size_t>(group)].push_back(x.real(i));
    }
    return all;
  }
};
Reduced any_reduced(Draw& draw) {
  Reduced r;
  r.sizes = draw.sizes(static_cast<int>(draw.number(0, 4)), draw.one_in(20) ? 150000 : 2500);
  r.out = r.sizes;
  for (i64& size : r.out)
    if (draw.one_in(2)) size = 1;
  return r;
}

TEST_F(DrawnLines, AreReducedOverEveryChoiceOfDimensions) {
  for_draws(300, [](Bench& bench, Draw& draw) {
    const Fold fold = draw.any_of(kFolds);
    Dtype dtype = draw.any_of(kAllTypes);
    if (!fold.takes_integers && !is_floating(dtype)) dtype = Dtype::kFloat32;
    const Reduced r = any_reduced(draw);
    const std::string name = fold.name;
    Tensor x = draw.operand(dtype, r.sizes);
    if (name == "prod") {  // a few that are not 1
      draw.fill(x, 1, 1);
      for (int k = 0; k < 6 && x.count() > 0; ++k) x.set_integer(draw.number(0, x.count() - 1), draw.number(1, 2));
    }
    if (fold.takes_special_numbers) put_special_numbers(draw, x);
    const bool is_whole = (name == "sum" || name == "prod") && !is_floating(dtype);
    const Dtype to = fold.gives_truth ? Dtype::kBool : is_whole ? Dtype::kInt64 : dtype;
    if (name[1] == 'm' && x.count() == 0) return;  // of nothing there is no largest
    const std::vector<Doubles> groups = r.groups(x);
    const Tensor y = draw.room(to, r.out);
    bench.run(fold.name, {y}, {x});
    Wanted wanted(to, r.out);
    for (i64 g = 0; g < y.count(); ++g) wanted.set(g, fold.value(groups[static_cast<std::size_t>(g)]));
    wanted.expect(y, name + " of " + to_string(r.sizes) + " " + std::string(name_of(dtype)));
  });
}

// One running sum would be off in its fourth digit.
TEST_F(DrawnLines, SumsOfManyElementsKeepTheirDigits) {
  for_each_bench([](Bench& bench) {
    constexpr i64 kMany = 65536;
    const Tensor x = Tensor(Dtype::kFloat32, {2, kMany}).fill([](i64) { return 0.1; });
    const Tensor all(Dtype::kFloat32, {1, 1}), rows(Dtype::kFloat32, {2, 1});
    bench.run("sum", {all}, {x});
    bench.run("sum", {rows}, {x});
    const double wanted = kMany * static_cast<double>(0.1F);
    EXPECT_NEAR(all.real(0) / (2 * wanted), 1, 1e-5);
    for (const i64 row : {0, 1}) EXPECT_NEAR(rows.real(row) / wanted, 1, 1e-5) << row;
  });
}

TEST_F(DrawnLines, HaveNormsOfEveryOrderAndVariances) {
  for_draws(150, [](Bench& bench, Draw& draw) {
    const Reduced r = any_reduced(draw);
    const Dtype dtype = draw.any_of(kFloats);
    const Tensor x = draw.operand(dtype, r.sizes);
    if (x.count() == 0) return;
    constexpr double kOrders[] = {0, 1, 2, 3, 0.5, kInfinity, -kInfinity};
    const NormAttributes a{.p = draw.any_of(kOrders)};
    const VarAttributes correction{.correction = static_cast<double>(draw.number(0, 2))};
    const Tensor norm = draw.room(dtype, r.out), variance = draw.room(dtype, r.out), mean = draw.room(dtype, r.out),
                 deviation = draw.room(dtype, r.out);
    bench.run("norm", {norm}, {x}, &a);
    bench.run("var_mean", {variance, mean}, {x}, &correction);
    bench.run("std", {deviation}, {x}, &correction);
    const std::vector<Doubles> groups = r.groups(x);
    const double e = (dtype == Dtype::kFloat64 ? 1024 : 64) * epsilon_of(dtype);
    for (i64 g = 0; g < norm.count(); ++g) {
      const Doubles& all = groups[static_cast<std::size_t>(g)];
      double sum = 0, most = 0, least = kInfinity, total = 0, squares = 0;
      for (const double one : all) {
        sum += a.p == 0 ? one != 0 : std::pow(std::fabs(one), a.p);
        most = std::max(most, std::fabs(one));
        least = std::min(least, std::fabs(one));
        total += one;
      }
      const auto count = static_cast<double>(all.size());
      for (const double one : all) squares += (one - total / count) * (one - total / count);
      const double wanted = std::isinf(a.p) ? (a.p > 0 ? most : least) : a.p == 0 ? sum : std::pow(sum, 1 / a.p);
      const double freedom = std::max(0.0, count - correction.correction), var = squares / freedom;
      const auto expect = [&](const Tensor& got, double value, const char* what) {
        const double one = got.real(g);
        if (one == value || (std::isnan(one) && std::isnan(value))) return;
        if (std::isinf(one) && value > 60000) return;  // beyond float16
        ASSERT_NEAR(one, value, e * (1 + std::fabs(value)))
            << what << " of " << to_string(r.sizes) << " " << name_of(dtype) << ", order " << a.p;
      };
      expect(norm, wanted, "norm");
      expect(mean, total / count, "mean");
      expect(variance, var, "variance");
      expect(deviation, std::sqrt(var), "deviation");
    }
  });
}

/// A tensor's lines along a dimension: calls visit(places of a line's elements).
template <class F>
void each_line(const Sizes& sizes, int dim, const F& visit) {
  const auto at = static_cast<std::size_t>(dim);
  const i64 length = sizes.empty() ? 1 : sizes[at];
  i64 step = 1;
  for (std::size_t d = at + 1; d < sizes.size(); ++d) step *= sizes[d];
  const i64 count = product_of_sizes(sizes);
  for (i64 first = 0; first < count; ++first) {
    if (first / step % length != 0) continue;
    std::vector<i64> places;
    for (i64 k = 0; k < length; ++k) places.push_back(first + k * step);
    visit(places);
  }
}

struct Line {
  Sizes sizes;
  int dim = 0;
};
Line any_line(Draw& draw, bool may_be_empty) {
  Line line;
  do {
    line.sizes = draw.sizes(static_cast<int>(draw.number(0, 4)), draw.one_in(20) ? 40000 : 2500);
  } while (!may_be_empty && product_of_sizes(line.sizes) == 0);
  if (!line.sizes.empty()) line.dim = static_cast<int>(draw.number(0, static_cast<i64>(line.sizes.size()) - 1));
  return line;
}

TEST_F(DrawnLines, RunningSumsAndExtremesGoAlongADimension) {
  for_draws(120, [](Bench& bench, Draw& draw) {
    const Line line = any_line(draw, true);
    const Dtype dtype = draw.any_of(kAllTypes), sums = is_floating(dtype) ? dtype : Dtype::kInt64;
    const DimAttributes a{.dim = line.dim};
    Tensor x = draw.operand(dtype, line.sizes);
    const Tensor y = draw.room(sums, line.sizes);
    bench.run("cumsum", {y}, {x}, &a);
    Wanted wanted(sums, line.sizes);
    each_line(line.sizes, line.dim, [&](const std::vector<i64>& places) {
      double sum = 0;
      for (const i64 place : places) wanted.set(place, sum += x.real(place));
    });
    wanted.expect(y, "cumsum");

    put_special_numbers(draw, x);
    const bool is_max = draw.one_in(2);
    const Tensor values = draw.room(dtype, line.sizes), index = draw.room(Dtype::kInt64, line.sizes);
    bench.run(is_max ? "cummax" : "cummin", {values, index}, {x}, &a);
    Wanted extremes(dtype, line.sizes), where(Dtype::kInt64, line.sizes);
    each_line(line.sizes, line.dim, [&](const std::vector<i64>& places) {
      std::size_t best = 0;  // the last of equals; NaN above all
      for (std::size_t k = 0; k < places.size(); ++k) {
        const double one = x.real(places[k]), other = x.real(places[best]);
        if (std::isnan(one) || (!std::isnan(other) && (is_max ? one >= other : one <= other))) best = k;
        extremes.set(places[k], x.real(places[best]));
        where.set(places[k], static_cast<double>(best));
      }
    });
    extremes.expect(values, is_max ? "cummax" : "cummin");
    where.expect(index, "where");
  });
}

TEST_F(DrawnLines, TheFirstOfEqualExtremesIsFound) {
  for_draws(120, [](Bench& bench, Draw& draw) {
    const Line line = any_line(draw, false);
    const Dtype dtype = draw.any_of(kAllTypes);
    Tensor x = draw.operand(dtype, line.sizes);
    put_special_numbers(draw, x);
    Sizes out = line.sizes;
    if (!out.empty()) out[static_cast<std::size_t>(line.dim)] = 1;
    const bool is_max = draw.one_in(2);
    const DimAttributes a{.dim = line.dim};
    const Tensor values = draw.room(dtype, out), index = draw.room(Dtype::kInt64, out),
                 alone = draw.room(Dtype::kInt64, out);
    bench.run(is_max ? "max_dim" : "min_dim", {values, index}, {x}, &a);
    bench.run(is_max ? "argmax" : "argmin", {alone}, {x}, &a);
    Wanted extremes(dtype, out), where(Dtype::kInt64, out);
    i64 row = 0;
    each_line(line.sizes, line.dim, [&](const std::vector<i64>& places) {
      std::size_t best = 0;
      for (std::size_t k = 1; k < places.size(); ++k) {
        const double one = x.real(places[k]), other = x.real(places[best]);
        if (std::isnan(other)) break;
        if (std::isnan(one) || (is_max ? one > other : one < other)) best = k;
      }
      extremes.set(row, x.real(places[best]));
      where.set(row++, static_cast<double>(best));
    });
    extremes.expect(values, "values");
    where.expect(index, "index");
    where.expect(alone, "index alone");
  });
}

TEST_F(DrawnLines, AreSortedWithEqualsInTheirOrderAndTheLargestTaken) {
  for_draws(120, [](Bench& bench, Draw& draw) {
    const Line line = any_line(draw, false);
    const Dtype dtype = draw.any_of(kAllTypes);
    Tensor x = draw.operand(dtype, line.sizes);
    put_special_numbers(draw, x);
    const auto dim = static_cast<std::size_t>(line.dim);
    const i64 length = line.sizes.empty() ? 1 : line.sizes[dim];
    const bool is_sort = draw.one_in(2), descending = draw.one_in(2);
    Sizes out = line.sizes;
    const i64 taken = is_sort || out.empty() ? length : draw.number(0, length);
    if (!out.empty()) out[dim] = taken;
    const SortAttributes sort{.dim = line.dim, .descending = descending};
    const TopkAttributes topk{.k = taken, .dim = line.dim, .largest = descending};
    const Tensor values = draw.room(dtype, out), index = draw.room(Dtype::kInt64, out);
    bench.run(is_sort ? "sort" : "topk", {values, index}, {x},
              is_sort ? static_cast<const void*>(&sort) : static_cast<const void*>(&topk));
    Wanted wanted(dtype, out), where(Dtype::kInt64, out);
    std::vector<std::vector<i64>> results;
    each_line(out, line.dim, [&](const std::vector<i64>& places) { results.push_back(places); });
    if (taken == 0) return;
    std::size_t row = 0;
    each_line(line.sizes, line.dim, [&](const std::vector<i64>& places) {
      std::vector<std::size_t> order(places.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        const double one = x.real(places[a]), other = x.real(places[b]);
        if (std::isnan(one) || std::isnan(other))
          return descending ? std::isnan(one) && !std::isnan(other) : !std::isnan(one);
        return descending ? one > other : one < other;
      });
      for (std::size_t k = 0; k < static_cast<std::size_t>(taken); ++k) {
        wanted.set(results[row][k], x.real(places[order[k]]));
        where.set(results[row][k], static_cast<double>(order[k]));
      }
      ++row;
    });
    wanted.expect(values, is_sort ? "sort" : "topk");
    where.expect(index, "index");
  });
}

TEST_F(DrawnLines, PlacesThatAreNotZeroAreCountedAndListed) {
  for_draws(60, [](Bench& bench, Draw& draw) {
    const Sizes sizes = draw.sizes(static_cast<int>(draw.number(0, 4)), 2500);
    const Tensor x = draw.spread(draw.any_of(kAllTypes), sizes, 0, 2);
    std::vector<i64> places;
    for (i64 i = 0; i < x.count(); ++i)
      if (x.real(i) != 0) places.push_back(i);
    const auto count = static_cast<i64>(places.size()), rank = static_cast<i64>(sizes.size());
    Tensor number(Dtype::kInt64, {});
    bench.run("count_nonzero_all", {number}, {x});
    ASSERT_EQ(number.integer(0), count);
    const Tensor index = draw.room(Dtype::kInt64, {count, rank});
    bench.run("nonzero", {index}, {x});
    for (i64 i = 0; i < index.count(); ++i)
      ASSERT_EQ(index.integer(i),
                coordinates(places[static_cast<std::size_t>(i / rank)], sizes)[static_cast<std::size_t>(i % rank)]);
  });
}

}  // namespace
}  // namespace tenon::conformance
