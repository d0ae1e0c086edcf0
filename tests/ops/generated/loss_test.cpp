// Losses over random sizes, targets, weights and reductions, held against loops in float64; gradients against
// differences.
#include <tenon/core/error.h>

#include "differences.h"

#include <numbers>

namespace tenon::test {
namespace {

using Loss = std::function<Tensor(std::int64_t reduction)>;

constexpr std::int64_t kNoReduction = 0, kMeanOf = 1, kSumOf = 2;

Array number(double value) { return Array(Sizes{}, value); }

/// The loss under each reduction: the terms, their sum, and their sum divided by `counted`.
void expect_reduced(const Loss& loss, const Array& terms, double counted, double tolerance = 1e-9) {
  double sum = 0;
  for (const double term : terms.values) sum += term;
  expect_near(loss(kNoReduction), terms, tolerance);
  expect_near(loss(kSumOf), number(sum), tolerance);
  expect_near(loss(kMeanOf), number(sum / counted), tolerance);
}

void expect_reduced(const Loss& loss, const Array& terms) {
  expect_reduced(loss, terms, static_cast<double>(terms.values.size()));
}

// --- losses of classes ----------------------------------------------------------------------------------------------

/// Logits (C) or (N, C, …), a class or the ignored number for each sample, and a weight for each class.
struct Classes {
  Array logits;
  Sizes of_samples;
  std::int64_t count, ignored;
  std::vector<std::int64_t> target;
  std::vector<double> weights;  ///< ones where none is given
  bool has_weight;

  std::size_t class_dim() const { return logits.sizes.size() == 1 ? 0 : 1; }
  std::int64_t of(const Sizes& sample) const { return target[Array(of_samples).index(sample)]; }
  Sizes place(Sizes sample, std::int64_t c) const {
    sample.insert(sample.begin() + static_cast<std::ptrdiff_t>(class_dim()), c);
    return sample;
  }
  double logarithm(const Sizes& sample, std::int64_t c) const {  ///< of the softmax
    double sum = 0;
    for (std::int64_t k = 0; k < count; ++k) sum += std::exp(logits[place(sample, k)]);
    return logits[place(sample, c)] - std::log(sum);
  }
  double weight(std::int64_t c) const { return weights[static_cast<std::size_t>(c)]; }
  double counted() const {  ///< what a mean divides by
    double sum = 0;
    for (const std::int64_t c : target) sum += c == ignored ? 0 : weight(c);
    return sum;
  }
  Tensor target_in(Draws& draws) const {
    const Tensor whole = tenon::tensor(target, TensorOptions(kInt64)).view(of_samples);
    return draws.in_some_layout(whole);
  }
  Tensor weight_in(Draws& draws) const {
    return has_weight ? draws.in_some_layout(tenon::tensor(weights, TensorOptions(kFloat64))) : Tensor();
  }
};

Classes draw_classes(Draws& draws) {
  const std::int64_t rank = draws.integer(1, 4), count = draws.integer(1, 6);
  Sizes samples = draws.sizes(rank - 1, 1, 4), sizes = samples;
  sizes.insert(sizes.begin() + (rank == 1 ? 0 : 1), count);
  Classes classes{.logits = Array(draws.tensor(sizes)),
                  .of_samples = samples,
                  .count = count,
                  .ignored = draws.of(std::vector<std::int64_t>{-100, -1, 0, count - 1, count, 77}),
                  .has_weight = draws.one_in(2)};
  for (std::int64_t i = 0; i < product(samples); ++i)
    classes.target.push_back(draws.one_in(4) ? classes.ignored : draws.integer(0, count - 1));
  for (std::int64_t c = 0; c < count; ++c)
    classes.weights.push_back(classes.has_weight ? 0.25 + std::abs(draws.number()) : 1);
  return classes;
}

std::string described(const Classes& c) {
  return "logits " + text_of(c.logits.sizes) + ", ignored " + std::to_string(c.ignored) +
         (c.has_weight ? ", weighted" : "");
}

TEST(GeneratedLoss, OfLogProbabilitiesAtTheirClasses) {
  for_each_case(101, 300, [](Draws& draws) {
    const Classes c = draw_classes(draws);
    SCOPED_TRACE(described(c));
    Array terms(c.of_samples);
    for_each_place(c.of_samples, [&](const Sizes& s) {
      if (c.of(s) != c.ignored) terms[s] = -c.weight(c.of(s)) * c.logits[c.place(s, c.of(s))];
    });
    const Tensor x = draws.laid_out(c.logits), weight = c.weight_in(draws), target = c.target_in(draws);
    expect_reduced([&](std::int64_t r) { return nll_loss_nd(x, target, weight, r, c.ignored); }, terms, c.counted());
    const Tensor single = draws.in_some_layout(x.to(kFloat32));
    const Tensor single_weight = weight.defined() ? weight.to(kFloat32) : weight;
    expect_reduced([&](std::int64_t r) { return nll_loss_nd(single, target, single_weight, r, c.ignored); }, terms,
                   c.counted(), 1e-5);
    for (const std::int64_t reduction : {kNoReduction, kMeanOf, kSumOf}) {
      if (reduction == kMeanOf && c.counted() == 0) continue;
      expect_gradient(draws, c.logits,
                      [&](const Tensor& t) { return nll_loss_nd(t, target, weight, reduction, c.ignored); });
    }
  });
}

TEST(GeneratedLoss, CrossEntropySmoothedAndWeighted) {
  for_each_case(103, 300, [](Draws& draws) {
    const Classes c = draw_classes(draws);
    const double smoothing = draws.of(std::vector<double>{0, 0, 0.3, 1});
    SCOPED_TRACE(described(c) + ", smoothing " + std::to_string(smoothing));
    Array terms(c.of_samples);
    for_each_place(c.of_samples, [&](const Sizes& s) {
      if (c.of(s) == c.ignored) return;
      terms[s] = -(1 - smoothing) * c.weight(c.of(s)) * c.logarithm(s, c.of(s));
      for (std::int64_t k = 0; k < c.count; ++k)
        terms[s] -= smoothing / static_cast<double>(c.count) * c.weight(k) * c.logarithm(s, k);
    });
    const Tensor x = draws.laid_out(c.logits), weight = c.weight_in(draws), target = c.target_in(draws);
    const auto loss = [&](const Tensor& t, std::int64_t r) {
      return cross_entropy_loss(t, target, weight, r, c.ignored, smoothing);
    };
    expect_reduced([&](std::int64_t r) { return loss(x, r); }, terms, c.counted());
    for (const std::int64_t reduction : {kNoReduction, kMeanOf, kSumOf}) {
      if (reduction == kMeanOf && c.counted() == 0) continue;
      expect_gradient(draws, c.logits, [&](const Tensor& t) { return loss(t, reduction); });
    }
  });
}

TEST(GeneratedLoss, CrossEntropyOfChancesCountsEveryClassAndItsMeanEverySample) {
  for_each_case(107, 200, [](Draws& draws) {
    const Classes c = draw_classes(draws);
    const double smoothing = draws.of(std::vector<double>{0, 0.2});
    SCOPED_TRACE(described(c) + ", smoothing " + std::to_string(smoothing));
    Array chances(draws.tensor(c.logits.sizes));
    for (double& chance : chances.values) chance = std::abs(chance);
    Array terms(c.of_samples);
    for_each_place(c.of_samples, [&](const Sizes& s) {
      for (std::int64_t k = 0; k < c.count; ++k) {
        const double chance = chances[c.place(s, k)] * (1 - smoothing) + smoothing / static_cast<double>(c.count);
        terms[s] -= c.weight(k) * chance * c.logarithm(s, k);
      }
    });
    const Tensor x = draws.laid_out(c.logits), weight = c.weight_in(draws), target = draws.laid_out(chances);
    const auto loss = [&](const Tensor& t, const Tensor& of, std::int64_t r) {
      return cross_entropy_loss(t, of, weight, r, -100, smoothing);
    };
    expect_reduced([&](std::int64_t r) { return loss(x, target, r); }, terms);
    const std::int64_t reduction = draws.integer(0, 2);
    expect_gradient(draws, c.logits, [&](const Tensor& t) { return loss(t, target, reduction); });
    expect_gradient(draws, chances, [&](const Tensor& t) { return loss(x, t, reduction); });
    EXPECT_THROW(cross_entropy_loss(x, target, weight, reduction, 0, smoothing), Error);
  });
}

TEST(GeneratedLoss, ATargetOnePastEitherEndIsNoClass) {
  for_each_case(109, 100, [](Draws& draws) {
    Classes c = draw_classes(draws);
    c.ignored = -100;
    for (std::int64_t& label : c.target) label = std::clamp<std::int64_t>(label, 0, c.count - 1);
    const std::int64_t wrong = draws.one_in(2) ? c.count : -1;
    c.target[static_cast<std::size_t>(draws.integer(0, static_cast<std::int64_t>(c.target.size()) - 1))] = wrong;
    SCOPED_TRACE(described(c) + ", target " + std::to_string(wrong));
    const Tensor x = draws.laid_out(c.logits), target = c.target_in(draws);
    for (const std::int64_t reduction : {kNoReduction, kMeanOf, kSumOf})
      EXPECT_THROW(nll_loss_nd(x, target, {}, reduction), IndexError);
  });
}

TEST(GeneratedLoss, TargetsAndWeightsOfOtherSizesAreRefused) {
  for_each_case(113, 100, [](Draws& draws) {
    const Classes c = draw_classes(draws);
    SCOPED_TRACE(described(c));
    const Tensor x = draws.laid_out(c.logits);
    const auto zeros_of = [](const Sizes& sizes) { return zeros(sizes, TensorOptions(kInt64)); };
    const Tensor target = zeros_of(c.of_samples);
    for (std::size_t d = 0; d < c.of_samples.size(); ++d) {
      Sizes longer = c.of_samples;
      ++longer[d];
      EXPECT_THROW(nll_loss_nd(x, zeros_of(longer)), Error) << "along " << d;
    }
    Sizes deeper = c.of_samples;
    deeper.push_back(2);
    EXPECT_THROW(nll_loss_nd(x, zeros_of(deeper)), Error);
    EXPECT_THROW(nll_loss_nd(x, target, ones({c.count + 1}, TensorOptions(kFloat64))), Error);
    EXPECT_THROW(nll_loss_nd(x, target, ones({1, c.count}, TensorOptions(kFloat64))), Error);
    EXPECT_THROW(nll_loss_nd(x, target, ones({c.count})), Error);  // of another dtype
    EXPECT_THROW(nll_loss_nd(x, target.to(kFloat64)), Error);
    EXPECT_THROW(nll_loss_nd(x, target, {}, 3), Error);
    EXPECT_THROW(cross_entropy_loss(x, target, {}, 1, -100, 1.01), Error);
    EXPECT_THROW(cross_entropy_loss(x, target, {}, 1, -100, -0.01), Error);
  });
}

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

/// (N, C) or (C), no two elements a multiple of 1/64 apart.
Array draw_rows(Draws& draws) {
  Array x(draws.tensor(draws.sizes(draws.integer(1, 2), 1, 5)));
  for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] += 0.00037 * static_cast<double>(i + 1);
  return x;
}

TEST(GeneratedLoss, MarginsOverClasses) {
  for_each_case(149, 200, [](Draws& draws) {
    const Array x = draw_rows(draws);
    const bool is_one = x.sizes.size() == 1;
    const std::int64_t samples = is_one ? 1 : x.sizes[0], classes = x.sizes.back();
    const auto at = [&](std::int64_t s, std::int64_t c) { return x.values[static_cast<std::size_t>(s * classes + c)]; };
    std::vector<std::int64_t> labels, lists;
    std::vector<double> w;
    for (std::int64_t s = 0; s < samples; ++s) labels.push_back(draws.integer(0, classes - 1));
    for (std::int64_t i = 0; i < samples * classes; ++i)
      lists.push_back(draws.one_in(3) ? -1 : draws.integer(0, classes - 1));
    for (std::int64_t c = 0; c < classes; ++c) w.push_back(draws.number());
    const std::int64_t p = draws.integer(1, 2), reduction = draws.integer(0, 2);
    const double margin = draws.of(std::vector<double>{0.7, 1.3});
    SCOPED_TRACE(text_of(x.sizes) + ", p " + std::to_string(p) + ", margin " + std::to_string(margin));
    const bool has_weight = draws.one_in(2);
    const Sizes shape = is_one ? Sizes{} : Sizes{samples};
    Array terms(shape), of_lists(shape);
    for (std::int64_t s = 0; s < samples; ++s) {
      const std::int64_t y = labels[static_cast<std::size_t>(s)];
      double sum = 0;
      for (std::int64_t c = 0; c < classes; ++c)
        if (c != y)
          sum += std::pow(std::max(0., margin - at(s, y) + at(s, c)), p) *
                 (has_weight ? w[static_cast<std::size_t>(y)] : 1);
      terms.values[static_cast<std::size_t>(s)] = sum / static_cast<double>(classes);
      std::vector<std::int64_t> own;
      for (std::int64_t c = 0; c < classes && lists[static_cast<std::size_t>(s * classes + c)] >= 0; ++c)
        own.push_back(lists[static_cast<std::size_t>(s * classes + c)]);
      sum = 0;
      for (const std::int64_t label : own)
        for (std::int64_t c = 0; c < classes; ++c)
          if (std::ranges::find(own, c) == own.end()) sum += std::max(0., 1 - (at(s, label) - at(s, c)));
      of_lists.values[static_cast<std::size_t>(s)] = sum / static_cast<double>(classes);
    }
    const Tensor input = draws.laid_out(x);
    const Tensor target = tenon::tensor(labels, TensorOptions(kInt64)).view(shape);
    const Tensor several = draws.in_some_layout(tenon::tensor(lists, TensorOptions(kInt64)).view(x.sizes));
    const std::optional<Tensor> weight =
        has_weight ? std::optional(tenon::tensor(w, TensorOptions(kFloat64))) : std::nullopt;
    const auto of_one = [&](const Tensor& t, std::int64_t r) {
      return multi_margin_loss(t, target, p, margin, weight, r);
    };
    expect_reduced([&](std::int64_t r) { return of_one(input, r); }, terms);
    expect_gradient(draws, x, [&](const Tensor& t) { return of_one(t, reduction); });
    expect_reduced([&](std::int64_t r) { return multilabel_margin_loss(input, several, r); }, of_lists);
    expect_gradient(draws, x, [&](const Tensor& t) { return multilabel_margin_loss(t, several, reduction); });
    for (const std::int64_t wrong : {classes, std::int64_t{-2}}) {
      const Tensor bad = several.clone(MemoryFormat::Contiguous);
      bad.view({-1})[0].fill_(wrong);
      EXPECT_THROW(multilabel_margin_loss(input, bad), Error);
    }
    EXPECT_THROW(multi_margin_loss(input, target, 3), Error);
  });
}

TEST(GeneratedLoss, CosinesAndTriplets) {
  for_each_case(151, 200, [](Draws& draws) {
    const Array a = draw_rows(draws);
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
