// Losses of classes over random sizes, targets, weights and reductions, held against loops in float64; gradients
// against differences.
#include "losses.h"

namespace tenon::test {
namespace {

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

TEST(GeneratedLoss, MarginsOverClasses) {
  for_each_case(149, 200, [](Draws& draws) {
    const Array x = draw_margin_rows(draws);
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

}  // namespace
}  // namespace tenon::test
