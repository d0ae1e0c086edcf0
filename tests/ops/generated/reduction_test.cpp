// Reductions over random dimensions of tensors in random layouts, with NaNs, ties and empty sizes, held against loops
// in float64; their gradients against differences.
#include "differences.h"

namespace tenon::test {
namespace {

using Values = std::vector<double>;

double sum_of(const Values& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

double product_of(const Values& values) {
  double result = 1;
  for (const double value : values) result *= value;
  return result;
}

/// The position of the first largest (smallest, by `sign` -1), or of the first NaN.
std::size_t first_extreme(const Values& values, double sign) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) return i;
    if (sign * values[i] > sign * values[best]) best = i;
  }
  return best;
}

double norm_of(const Values& values, double p) {
  double result = 0;
  bool is_first = true;
  for (const double value : values) {
    const double size = std::abs(value);
    if (p == 0) {
      result += value != 0 ? 1 : 0;
    } else if (std::isinf(p)) {
      if (is_first || std::isnan(size) || (p > 0 ? size > result : size < result))
        result = std::isnan(result) ? result : size;
      is_first = false;
    } else {
      result += std::pow(size, p);
    }
  }
  return p == 0 || std::isinf(p) ? result : std::pow(result, 1 / p);
}

double variance_of(const Values& values, double correction) {
  const auto count = static_cast<double>(values.size());
  const double mean = sum_of(values) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return squares / (count - correction);
}

/// Some dimensions of a tensor, reduced.
struct Reduced {
  Sizes dims;     ///< as they are given: some from the end
  Sizes out;      ///< with the reduced ones at 1
  Sizes dropped;  ///< without them

  Sizes shape(bool keepdim) const { return keepdim ? out : dropped; }
};

Reduced draw_dims(Draws& draws, const Sizes& sizes, bool is_one) {
  const auto rank = static_cast<std::int64_t>(sizes.size());
  std::vector<std::int64_t> all(sizes.size());
  for (std::size_t d = 0; d < all.size(); ++d) all[d] = static_cast<std::int64_t>(d);
  draws.shuffle(all);
  all.resize(is_one ? 1 : static_cast<std::size_t>(draws.integer(1, rank)));
  Reduced reduced{.dims = all, .out = sizes};
  for (const std::int64_t dim : all) reduced.out[static_cast<std::size_t>(dim)] = 1;
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (std::ranges::find(all, static_cast<std::int64_t>(d)) == all.end()) reduced.dropped.push_back(sizes[d]);
  for (std::int64_t& dim : reduced.dims)
    if (draws.one_in(2)) dim -= rank;
  return reduced;
}

/// fold(the values that go into each element), in row-major order.
Array fold(const Array& x, const Reduced& reduced, bool keepdim, const std::function<double(const Values&)>& function) {
  std::vector<Values> groups(static_cast<std::size_t>(product(reduced.out)));
  const Array index(reduced.out);
  for_each_place(x.sizes, [&](const Sizes& at) {
    Sizes to = at;
    for (std::size_t d = 0; d < to.size(); ++d) to[d] = reduced.out[d] == 1 ? 0 : to[d];
    groups[index.index(to)].push_back(x[at]);
  });
  Array want(reduced.shape(keepdim));
  for (std::size_t i = 0; i < groups.size(); ++i) want.values[i] = function(groups[i]);
  return want;
}

Array draw_values(Draws& draws, bool with_nans) {
  Array x(draws.sizes(draws.integer(1, 4), 1, draws.one_in(10) ? 40 : 6));
  for (double& value : x.values) value = draws.number();
  if (draws.one_in(3))  // ties
    for (double& value : x.values) value = std::round(value);
  if (with_nans && draws.one_in(3))
    for (double& value : x.values) value = draws.one_in(5) ? NAN : value;
  return x;
}

TEST(GeneratedReduction, OverSeveralDimensions) {
  for_each_case(47, 400, [](Draws& draws) {
    const Array x = draw_values(draws, true);
    const Reduced over = draw_dims(draws, x.sizes, false);
    const bool keep = draws.one_in(2);
    SCOPED_TRACE(text_of(x.sizes) + " over " + text_of(over.dims) + (keep ? ", kept" : ""));
    const Tensor input = draws.laid_out(x);
    const auto count = [](const Values& v) { return static_cast<double>(v.size()); };
    expect_near(input.sum(over.dims, keep), fold(x, over, keep, sum_of));
    expect_near(input.mean(over.dims, keep),
                fold(x, over, keep, [&](const Values& v) { return sum_of(v) / count(v); }));
    expect_near(input.amax(over.dims, keep),
                fold(x, over, keep, [](const Values& v) { return v[first_extreme(v, 1)]; }));
    expect_near(input.amin(over.dims, keep),
                fold(x, over, keep, [](const Values& v) { return v[first_extreme(v, -1)]; }));
    expect_near(input.logsumexp(over.dims, keep), fold(x, over, keep, [](const Values& v) {
                  double sum = 0;
                  for (const double value : v) sum += std::exp(value);
                  return std::log(sum);
                }));
    for (const bool unbiased : {true, false}) {
      const auto variance = [&](const Values& v) { return variance_of(v, unbiased ? 1 : 0); };
      expect_near(input.var(over.dims, unbiased, keep), fold(x, over, keep, variance));
      expect_near(input.std(over.dims, unbiased, keep),
                  fold(x, over, keep, [&](const Values& v) { return std::sqrt(variance(v)); }));
    }
    for (const double p : {0., 0.5, 1., 2., 3., kInfinity, -kInfinity})
      expect_near(input.norm(p, over.dims, keep), fold(x, over, keep, [p](const Values& v) { return norm_of(v, p); }));
  });
}

TEST(GeneratedReduction, AlongOneDimension) {
  for_each_case(53, 400, [](Draws& draws) {
    const Array x = draw_values(draws, true);
    const Reduced over = draw_dims(draws, x.sizes, true);
    const std::int64_t dim = over.dims[0];
    const bool keep = draws.one_in(2);
    SCOPED_TRACE(text_of(x.sizes) + " along " + std::to_string(dim) + (keep ? ", kept" : ""));
    const Tensor input = draws.laid_out(x);
    expect_near(input.prod(dim, keep), fold(x, over, keep, product_of));
    for (const double sign : {1., -1.}) {
      const auto position = [sign](const Values& v) { return static_cast<double>(first_extreme(v, sign)); };
      const auto value = [sign](const Values& v) { return v[first_extreme(v, sign)]; };
      const auto [extremes, positions] = sign > 0 ? input.max(dim, keep) : input.min(dim, keep);
      expect_near(extremes, fold(x, over, keep, value));
      expect_near(positions, fold(x, over, keep, position));
      expect_near(sign > 0 ? input.argmax(dim, keep) : input.argmin(dim, keep), fold(x, over, keep, position));
    }
    const auto is_true = [](double value) { return value != 0; };
    expect_near(input.any(dim, keep),
                fold(x, over, keep, [&](const Values& v) { return std::ranges::any_of(v, is_true); }));
    expect_near(input.all(dim, keep),
                fold(x, over, keep, [&](const Values& v) { return std::ranges::all_of(v, is_true); }));
  });
}

TEST(GeneratedReduction, OfNothing) {
  for_each_case(59, 100, [](Draws& draws) {
    Sizes sizes = draws.sizes(draws.integer(1, 4), 1, 4);
    const auto rank = static_cast<std::int64_t>(sizes.size());
    const std::int64_t empty_dim = draws.integer(0, rank - 1);
    sizes[static_cast<std::size_t>(empty_dim)] = 0;
    const Tensor input = zeros(sizes, TensorOptions(kFloat64));
    const std::int64_t dim = draws.integer(0, rank - 1);
    SCOPED_TRACE(text_of(sizes) + " along " + std::to_string(dim));
    Sizes shape = sizes;
    shape.erase(shape.begin() + dim);
    const IntArrayRef dims(&dim, 1);
    expect_near(input.sum(dims), Array(shape, 0));
    expect_near(input.mean(dims), Array(shape, NAN));
    expect_near(input.prod(dim), Array(shape, 1));
    expect_near(input.var(dims, true), Array(shape, NAN));
    expect_near(input.logsumexp(dims), Array(shape, -INFINITY));
    expect_near(input.norm(2, dims), Array(shape, 0));
    expect_near(input.any(dim), Array(shape, 0));
    expect_near(input.all(dim), Array(shape, 1));
    if (dim == empty_dim) {  // there is no largest of nothing, even where no element of the result is asked for
      EXPECT_ANY_THROW(input.amax(dims));
      EXPECT_ANY_THROW(input.argmin(dim));
      EXPECT_ANY_THROW(input.max(dim));
    } else {
      expect_near(input.amax(dims), Array(shape));
      expect_near(input.argmin(dim), Array(shape));
    }
  });
}

TEST(GeneratedReduction, RunningSumsAndProducts) {
  for_each_case(61, 300, [](Draws& draws) {
    const Array x = draw_values(draws, true);
    const auto rank = static_cast<std::int64_t>(x.sizes.size());
    const std::int64_t dim = draws.integer(0, rank - 1);
    SCOPED_TRACE(text_of(x.sizes) + " along " + std::to_string(dim));
    Array sums = x, products = x;
    for_each_place(x.sizes, [&](const Sizes& at) {
      Sizes before = at;
      if (before[static_cast<std::size_t>(dim)]-- == 0) return;
      sums[at] += sums[before];
      products[at] *= products[before];
    });
    const Tensor input = draws.laid_out(x);
    const std::int64_t given = draws.one_in(2) ? dim : dim - rank;
    expect_near(input.cumsum(given), sums);
    expect_near(input.cumprod(given), products);
  });
}

TEST(GeneratedReduction, SortedWithTiesAndNaNsLast) {
  for_each_case(67, 300, [](Draws& draws) {
    const Array x = draw_values(draws, true);
    const auto rank = static_cast<std::int64_t>(x.sizes.size());
    const std::int64_t dim = draws.integer(0, rank - 1);
    const bool descending = draws.one_in(2);
    SCOPED_TRACE(text_of(x.sizes) + " along " + std::to_string(dim) + (descending ? ", descending" : ""));
    const Tensor input = draws.laid_out(x);
    const auto [sorted, places] = input.sort(/*stable=*/true, dim, descending);
    Array want(x.sizes), want_places(x.sizes);
    const std::int64_t length = x.sizes[static_cast<std::size_t>(dim)];
    for_each_place(x.sizes, [&](const Sizes& at) {
      if (at[static_cast<std::size_t>(dim)] != 0) return;
      std::vector<std::pair<double, std::int64_t>> line;
      Sizes place = at;
      for (std::int64_t i = 0; i < length; ++i) {
        place[static_cast<std::size_t>(dim)] = i;
        line.emplace_back(x[place], i);
      }
      // NaN is larger than everything.
      std::ranges::stable_sort(line, [&](const auto& a, const auto& b) {
        const double l = descending ? b.first : a.first, r = descending ? a.first : b.first;
        return !std::isnan(l) && (std::isnan(r) || l < r);
      });
      for (std::int64_t i = 0; i < length; ++i) {
        place[static_cast<std::size_t>(dim)] = i;
        want[place] = line[static_cast<std::size_t>(i)].first;
        want_places[place] = static_cast<double>(line[static_cast<std::size_t>(i)].second);
      }
    });
    expect_near(sorted, want);
    expect_near(places, want_places);
  });
}

TEST(GeneratedReduction, Gradients) {
  for_each_case(71, 120, [](Draws& draws) {
    Array x(draws.sizes(draws.integer(1, 3), 1, 4));
    std::vector<std::int64_t> ranks(x.values.size());  // no ties: an extreme has one gradient only where it is alone
    for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<std::int64_t>(i);
    draws.shuffle(ranks);
    for (std::size_t i = 0; i < ranks.size(); ++i)
      x.values[i] = (draws.one_in(2) ? 1 : -1) * (0.5 + 0.05 * static_cast<double>(ranks[i]));
    const Reduced over = draw_dims(draws, x.sizes, false);
    const bool keep = draws.one_in(2);
    const std::int64_t one = over.dims[0];
    SCOPED_TRACE(text_of(x.sizes) + " over " + text_of(over.dims));
    expect_gradient(draws, x, [&](const Tensor& t) { return t.sum(over.dims, keep); });
    expect_gradient(draws, x, [&](const Tensor& t) { return t.mean(over.dims, keep); });
    expect_gradient(draws, x, [&](const Tensor& t) { return t.amax(over.dims, keep); });
    expect_gradient(draws, x, [&](const Tensor& t) { return t.amin(over.dims, keep); });
    expect_gradient(draws, x, [&](const Tensor& t) { return t.logsumexp(over.dims, keep); });
    expect_gradient(draws, x, [&](const Tensor& t) { return t.var(over.dims, false, keep); });
    if (fold(x, over, keep, [](const Values& v) { return static_cast<double>(v.size()); }).values[0] > 1) {
      expect_gradient(draws, x, [&](const Tensor& t) { return t.std(over.dims, true, keep); });
    }
    for (const double p : {0.5, 1., 2., 3., kInfinity, -kInfinity})
      expect_gradient(draws, x, [&, p](const Tensor& t) { return t.norm(p, over.dims, keep); });
    expect_gradient(draws, x, [&](const Tensor& t) { return t.prod(one, keep); });
    expect_gradient(draws, x, [&](const Tensor& t) { return t.cumsum(one); });
    expect_gradient(draws, x, [&](const Tensor& t) { return t.cumprod(one); });
    expect_gradient(draws, x, [&](const Tensor& t) { return t.log_softmax(one); });
  });
}

// Where a formula divides 0 by 0 or raises it to a negative power, the gradient is 0, as PyTorch's.
TEST(GeneratedReduction, GradientsAtZeroAreZeroAndNotNaN) {
  for (const double p : {0.5, 1., 1.5, 2., 3.}) {
    const Tensor x = tenon::tensor({0., 0., 0.}, TensorOptions(kFloat64)).set_requires_grad(true);
    x.norm(p).backward();
    expect_near(x.grad(), Array({3}, 0));
  }
  for (const double p : {0.5, 1., 1.5}) {  // one 0 beside others
    const Tensor x = tenon::tensor({0., 4.}, TensorOptions(kFloat64)).set_requires_grad(true);
    x.norm(p).backward();
    EXPECT_EQ(x.grad()[0].item<double>(), 0) << p;
    EXPECT_NEAR(x.grad()[1].item<double>(), 1, 1e-12) << p;
  }
  const Tensor same = full({4}, 2.5, TensorOptions(kFloat64)).set_requires_grad(true);
  same.std().backward();
  expect_near(same.grad(), Array({4}, 0));
}

}  // namespace
}  // namespace tenon::test
