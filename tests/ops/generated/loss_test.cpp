// Losses of elements and of vectors over random sizes and reductions, held against loops in float64; gradients against
// differences.
#include "losses.h"

#include <numbers>

namespace tenon::test {
namespace {

// --- losses of elements ---------------------------------------------------------------------------------------------

/// Two tensors that broadcast to `sizes`; the second is nowhere a multiple of 1/128 away from the first.
struct Pair {
  Array x, t;
  Sizes sizes;

  Array terms(const std::function<double(double, double)>& formula) const {
    Array terms(sizes);
    const auto of = [](const Array& array, const Sizes& at) {
      const std::size_t missing = at.size() - array.sizes.size();
      Sizes own(at.begin() + static_cast<std::ptrdiff_t>(missing), at.end());
      for (std::size_t d = 0; d < own.size(); ++d) own[d] = array.sizes[d] == 1 ? 0 : own[d];
      return array[own];
    };
    for_each_place(sizes, [&](const Sizes& at) { terms[at] = formula(of(x, at), of(t, at)); });
    return terms;
  }
};

Sizes narrowed(Draws& draws, Sizes sizes) {
  for (std::int64_t& size : sizes)
    if (draws.one_in(5)) size = 1;
  if (!sizes.empty() && draws.one_in(5)) sizes.erase(sizes.begin());
  return sizes;
}

Pair draw_pair(Draws& draws, bool broadcasts = true) {
  const Sizes sizes = draws.sizes(draws.integer(0, 3), 1, 5);
  const Sizes of_x = broadcasts && draws.one_in(3) ? narrowed(draws, sizes) : sizes;
  const Sizes of_t = broadcasts && draws.one_in(3) ? narrowed(draws, sizes) : sizes;
  Pair pair{.x = Array(draws.tensor(of_x)), .t = Array(draws.tensor(of_t)), .sizes = {}};
  for (double& value : pair.t.values) value += 0.0031;
  const std::size_t rank = std::max(of_x.size(), of_t.size());
  for (std::size_t d = 0; d < rank; ++d) {
    std::int64_t size = 1;
    for (const Sizes& own : {of_x, of_t})
      if (d + own.size() >= rank) size = std::max(size, own[d + own.size() - rank]);
    pair.sizes.push_back(size);
  }
  return pair;
}

using PairLoss = std::function<Tensor(const Tensor&, const Tensor&, std::int64_t)>;

void expect_pair(Draws& draws, const Pair& pair, const PairLoss& loss,
                 const std::function<double(double, double)>& formula, bool of_target = true) {
  const Tensor x = draws.laid_out(pair.x), t = draws.laid_out(pair.t);
  expect_reduced([&](std::int64_t r) { return loss(x, t, r); }, pair.terms(formula));
  const std::int64_t reduction = draws.integer(0, 2);
  expect_gradient(draws, pair.x, [&](const Tensor& v) { return loss(v, t, reduction); });
  if (of_target) expect_gradient(draws, pair.t, [&](const Tensor& v) { return loss(x, v, reduction); });
}

TEST(GeneratedLoss, DistancesOfElements) {
  for_each_case(127, 200, [](Draws& draws) {
    const Pair pair = draw_pair(draws);
    SCOPED_TRACE(text_of(pair.x.sizes) + " and " + text_of(pair.t.sizes));
    expect_pair(
        draws, pair, [](const Tensor& x, const Tensor& t, std::int64_t r) { return mse_loss(x, t, r); },
        [](double x, double t) { return (x - t) * (x - t); });
    expect_pair(
        draws, pair, [](const Tensor& x, const Tensor& t, std::int64_t r) { return l1_loss(x, t, r); },
        [](double x, double t) { return std::abs(x - t); });
    const double beta = draws.of(std::vector<double>{0, 0.4, 1, 2.5});
    expect_pair(
        draws, pair, [=](const Tensor& x, const Tensor& t, std::int64_t r) { return smooth_l1_loss(x, t, r, beta); },
        [=](double x, double t) {
          const double d = std::abs(x - t);
          return d < beta ? d * d / (2 * beta) : d - beta / 2;
        });
    const double delta = draws.of(std::vector<double>{0.4, 1, 2.5});
    expect_pair(
        draws, pair, [=](const Tensor& x, const Tensor& t, std::int64_t r) { return huber_loss(x, t, r, delta); },
        [=](double x, double t) {
          const double d = std::abs(x - t);
          return d < delta ? d * d / 2 : delta * (d - delta / 2);
        });
  });
}

TEST(GeneratedLoss, OfOneAndMinusOne) {
  for_each_case(131, 200, [](Draws& draws) {
    Pair pair = draw_pair(draws);
    for (double& sign : pair.t.values) sign = draws.one_in(2) ? 1 : -1;
    const double margin = draws.of(std::vector<double>{0.0017, 0.3, 1.3});
    SCOPED_TRACE(text_of(pair.x.sizes) + " and " + text_of(pair.t.sizes) + ", margin " + std::to_string(margin));
    expect_pair(
        draws, pair,
        [=](const Tensor& x, const Tensor& t, std::int64_t r) { return hinge_embedding_loss(x, t, margin, r); },
        [=](double x, double t) { return t == 1 ? x : std::max(0., margin - x); }, false);
    expect_pair(
        draws, pair, [=](const Tensor& x, const Tensor& t, std::int64_t r) { return soft_margin_loss(x, t, r); },
        [=](double x, double t) { return std::log1p(std::exp(-t * x)); });
    const double other = draws.number();
    expect_pair(
        draws, pair,
        [=](const Tensor& x, const Tensor& t, std::int64_t r) {
          return margin_ranking_loss(x, full({}, other, TensorOptions(kFloat64)), t, margin, r);
        },
        [=](double x, double t) { return std::max(0., -t * (x - other) + margin); }, false);
    expect_pair(
        draws, pair,
        [=](const Tensor& x, const Tensor& t, std::int64_t r) {
          return margin_ranking_loss(full({}, other, TensorOptions(kFloat64)), x, t, margin, r);
        },
        [=](double x, double t) { return std::max(0., -t * (other - x) + margin); }, false);
  });
}

TEST(GeneratedLoss, OfCountsAndLogarithms) {
  for_each_case(137, 200, [](Draws& draws) {
    Pair pair = draw_pair(draws);
    for (double& count : pair.t.values) count = static_cast<double>(draws.integer(0, 3));
    SCOPED_TRACE(text_of(pair.x.sizes) + " and " + text_of(pair.t.sizes));
    const bool is_full = draws.one_in(2);
    const auto stirling = [=](double t) {
      return is_full && t > 1 ? t * std::log(t) - t + 0.5 * std::log(2 * std::numbers::pi * t) : 0;
    };
    expect_pair(
        draws, pair,
        [=](const Tensor& x, const Tensor& t, std::int64_t r) { return poisson_nll_loss(x, t, true, is_full, 0.1, r); },
        [=](double x, double t) { return std::exp(x) - t * x + stirling(t); }, false);
    for (double& rate : pair.x.values) rate = 0.25 + std::abs(rate);
    expect_pair(
        draws, pair,
        [=](const Tensor& x, const Tensor& t, std::int64_t r) {
          return poisson_nll_loss(x, t, false, is_full, 0.1, r);
        },
        [=](double x, double t) { return x - t * std::log(x + 0.1) + stirling(t); }, false);
    expect_pair(
        draws, pair, [](const Tensor& x, const Tensor& t, std::int64_t r) { return kl_div(x, t, r); },
        [](double x, double t) { return t == 0 ? 0 : t * (std::log(t) - x); }, false);
    expect_pair(
        draws, pair, [](const Tensor& x, const Tensor& t, std::int64_t r) { return kl_div(x, t, r, true); },
        [](double x, double t) { return std::exp(t) * (t - x); });
  });
}

TEST(GeneratedLoss, BinaryCrossEntropyWeighted) {
  for_each_case(139, 200, [](Draws& draws) {
    Pair pair = draw_pair(draws, false);
    for (double& t : pair.t.values) t = std::abs(t) / 3;
    const Sizes narrow = narrowed(draws, pair.sizes);
    Array w(narrow), positive(narrow);
    for (double& value : w.values) value = std::abs(draws.number());
    for (double& value : positive.values) value = std::abs(draws.number());
    const bool has_weight = draws.one_in(2), has_positive = draws.one_in(2);
    SCOPED_TRACE(text_of(pair.sizes) + (has_weight ? ", weighted by " : " beside ") + text_of(narrow));
    const Tensor weight = has_weight ? draws.laid_out(w) : Tensor();
    const Tensor pos_weight = has_positive ? draws.laid_out(positive) : Tensor();
    const auto spread = [&](const Array& array, bool is_given) {
      const Tensor all = ones(pair.sizes, TensorOptions(kFloat64));
      return Array(is_given ? all * draws.laid_out(array) : all);
    };
    const Array weights = spread(w, has_weight), positives = spread(positive, has_positive);
    Array terms(pair.sizes), of_chances(pair.sizes), chances = pair.x;
    for (std::size_t i = 0; i < terms.values.size(); ++i) {
      const double x = pair.x.values[i], t = pair.t.values[i], p = 1 / (1 + std::exp(-x));
      chances.values[i] = p;
      terms.values[i] = -weights.values[i] * (positives.values[i] * t * std::log(p) + (1 - t) * std::log(1 - p));
      of_chances.values[i] = -weights.values[i] * (t * std::log(p) + (1 - t) * std::log(1 - p));
    }
    const Tensor x = draws.laid_out(pair.x), t = draws.laid_out(pair.t), p = draws.laid_out(chances);
    const auto of_logits = [&](const Tensor& a, const Tensor& b, std::int64_t r) {
      return binary_cross_entropy_with_logits(a, b, weight, pos_weight, r);
    };
    const auto of_chance = [&](const Tensor& a, const Tensor& b, std::int64_t r) {
      return binary_cross_entropy(a, b, weight, r);
    };
    expect_reduced([&](std::int64_t r) { return of_logits(x, t, r); }, terms);
    expect_reduced([&](std::int64_t r) { return of_chance(p, t, r); }, of_chances);
    const std::int64_t r = draws.integer(0, 2);
    expect_gradient(draws, pair.x, [&](const Tensor& v) { return of_logits(v, t, r); });
    expect_gradient(draws, pair.t, [&](const Tensor& v) { return of_logits(x, v, r); });
    expect_gradient(draws, chances, [&](const Tensor& v) { return of_chance(v, t, r); });
    expect_gradient(draws, pair.t, [&](const Tensor& v) { return of_chance(p, v, r); });
  });
}

// --- losses of vectors ----------------------------------------------------------------------------------------------

TEST(GeneratedLoss, CosinesAndTriplets) {
  for_each_case(151, 200, [](Draws& draws) {
    const Array a = draw_margin_rows(draws);
    Array b = a, c = a;
    for (double& value : b.values) value = draws.number() + 0.0053;
    for (double& value : c.values) value = draws.number() + 0.0093;
    const bool is_one = a.sizes.size() == 1;
    const std::int64_t samples = is_one ? 1 : a.sizes[0], features = a.sizes.back();
    const Sizes shape = is_one ? Sizes{} : Sizes{samples};
    const double p = static_cast<double>(draws.integer(1, 3)), margin = draws.of(std::vector<double>{0.3, 1.3});
    const bool swaps = draws.one_in(2);
    SCOPED_TRACE(text_of(a.sizes) + ", p " + std::to_string(p) + (swaps ? ", swapped" : ""));
    Array cosines(shape), triplets(shape), signs(shape);
    for (std::int64_t s = 0; s < samples; ++s) {
      const auto row = static_cast<std::size_t>(s);
      const auto sum = [&](const std::function<double(std::size_t)>& term) {
        double total = 0;
        for (std::int64_t f = 0; f < features; ++f) total += term(static_cast<std::size_t>(s * features + f));
        return total;
      };
      const auto dot = [&](const Array& l, const Array& r) {
        return sum([&](std::size_t i) { return l.values[i] * r.values[i]; });
      };
      const double cosine = dot(a, b) / std::sqrt((dot(a, a) + 1e-12) * (dot(b, b) + 1e-12));
      signs.values[row] = draws.one_in(2) ? 1 : -1;
      cosines.values[row] = signs.values[row] == 1 ? 1 - cosine : std::max(0., cosine - 0.1);
      const auto distance = [&](const Array& l, const Array& r) {
        return std::pow(sum([&](std::size_t i) { return std::pow(std::abs(l.values[i] - r.values[i] + 1e-6), p); }),
                        1 / p);
      };
      const double far = swaps ? std::min(distance(a, c), distance(b, c)) : distance(a, c);
      triplets.values[row] = std::max(0., distance(a, b) - far + margin);
    }
    const Tensor x = draws.laid_out(a), y = draws.laid_out(b), z = draws.laid_out(c), sign = draws.laid_out(signs);
    const std::int64_t reduction = draws.integer(0, 2);
    expect_reduced([&](std::int64_t r) { return cosine_embedding_loss(x, y, sign, 0.1, r); }, cosines);
    expect_gradient(draws, a, [&](const Tensor& t) { return cosine_embedding_loss(t, y, sign, 0.1, reduction); });
    expect_gradient(draws, b, [&](const Tensor& t) { return cosine_embedding_loss(x, t, sign, 0.1, reduction); });
    const auto triplet = [&](const Tensor& i, const Tensor& j, const Tensor& k, std::int64_t r) {
      return triplet_margin_loss(i, j, k, margin, p, 1e-6, swaps, r);
    };
    expect_reduced([&](std::int64_t r) { return triplet(x, y, z, r); }, triplets);
    expect_gradient(draws, a, [&](const Tensor& t) { return triplet(t, y, z, reduction); });
    expect_gradient(draws, b, [&](const Tensor& t) { return triplet(x, t, z, reduction); });
    expect_gradient(draws, c, [&](const Tensor& t) { return triplet(x, y, t, reduction); });
  });
}

}  // namespace
}  // namespace tenon::test
