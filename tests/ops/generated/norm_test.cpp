// Normalisations of random sizes and layouts held against loops in float64, running statistics included; gradients
// against differences, or in long rows against the formula.
#include <tenon/core/error.h>
#include <tenon/ops/nn/normalization.h>

#include "differences.h"

namespace tenon::test {
namespace {

/// Which elements are normalised together, and which weight and bias an element has.
struct Sets {
  std::int64_t count, weights;
  std::function<std::size_t(const Sizes&)> of, weight;
};

struct Statistics {
  std::vector<double> mean, variance, count;  ///< of each set; the variance divided by the count
};

Statistics statistics_of(const Array& x, const Sets& sets) {
  const std::vector<double> zeros(static_cast<std::size_t>(sets.count), 0);
  Statistics s{zeros, zeros, zeros};
  for_each_place(x.sizes, [&](const Sizes& at) {
    s.mean[sets.of(at)] += x[at];
    ++s.count[sets.of(at)];
  });
  for (std::size_t i = 0; i < s.mean.size(); ++i) s.mean[i] /= s.count[i];
  for_each_place(x.sizes, [&](const Sizes& at) {
    const double d = x[at] - s.mean[sets.of(at)];
    s.variance[sets.of(at)] += d * d / s.count[sets.of(at)];
  });
  return s;
}

/// w (x - mean) / sqrt(variance + eps) + b, and the gradients of sum(result * scale) by the paper's formula; where the
/// statistics are `fixed` they do not depend on x.
struct Normalized {
  Array y, of_x, of_w, of_b;
};

Normalized normalized(const Array& x, const Array& w, const Array& b, const Array& scale, const Sets& sets,
                      const Statistics& s, double eps, bool fixed) {
  Normalized n{Array(x.sizes), Array(x.sizes), Array(w.sizes), Array(w.sizes)};
  std::vector<double> total(s.mean.size(), 0), dot = total;
  const auto unit = [&](const Sizes& at) {
    return (x[at] - s.mean[sets.of(at)]) / std::sqrt(s.variance[sets.of(at)] + eps);
  };
  for_each_place(x.sizes, [&](const Sizes& at) {
    const std::size_t c = sets.weight(at);
    n.y[at] = unit(at) * w.values[c] + b.values[c];
    n.of_w.values[c] += scale[at] * unit(at);
    n.of_b.values[c] += scale[at];
    total[sets.of(at)] += scale[at] * w.values[c];
    dot[sets.of(at)] += scale[at] * w.values[c] * unit(at);
  });
  for_each_place(x.sizes, [&](const Sizes& at) {
    const std::size_t i = sets.of(at);
    const double mean_part = fixed ? 0 : (total[i] + unit(at) * dot[i]) / s.count[i];
    n.of_x[at] = (scale[at] * w.values[sets.weight(at)] - mean_part) / std::sqrt(s.variance[i] + eps);
  });
  return n;
}

/// Weight and bias, each given or not.
struct Affine {
  Array w, b;
  bool has_weight, has_bias;
};

Affine draw_affine(Draws& draws, const Sizes& sizes) {
  Affine a{Array(sizes, 1), Array(sizes, 0), draws.one_in(2), draws.one_in(2)};
  if (a.has_weight) a.w = Array(draws.tensor(sizes));
  if (a.has_bias) a.b = Array(draws.tensor(sizes));
  return a;
}

using Normalize = std::function<Tensor(const Tensor& x, const Tensor& weight, const Tensor& bias)>;

void expect_normalized(Draws& draws, const Array& x, const Affine& affine, const Sets& sets, const Statistics& s,
                       double eps, bool fixed, const Normalize& function) {
  const Tensor scale = draws.tensor(x.sizes);
  const Normalized want = normalized(x, affine.w, affine.b, Array(scale), sets, s, eps, fixed);
  for (const Dtype dtype : {kFloat64, kFloat32}) {
    SCOPED_TRACE(toString(dtype));
    const double tolerance = dtype == kFloat64 ? 1e-9 : 2e-3;
    const auto leaf = [&](const Array& array) {
      return draws.in_some_layout(draws.laid_out(array).to(dtype)).set_requires_grad(true);
    };
    const Tensor input = leaf(x), weight = affine.has_weight ? leaf(affine.w) : Tensor(),
                 bias = affine.has_bias ? leaf(affine.b) : Tensor();
    const auto constant = [](const Tensor& t) { return t.defined() ? t.detach() : t; };
    const Tensor y = function(input, weight, bias);
    EXPECT_EQ(y.scalar_type(), dtype);
    expect_near(y, want.y, tolerance);
    (y * scale.to(dtype)).sum().backward();
    expect_near(input.grad(), want.of_x, tolerance);
    if (affine.has_weight) expect_near(weight.grad(), want.of_w, tolerance);
    if (affine.has_bias) expect_near(bias.grad(), want.of_b, tolerance);
    // Only one of the three may be asked for.
    const Tensor alone = leaf(x);
    (function(alone, constant(weight), constant(bias)) * scale.to(dtype)).sum().backward();
    expect_near(alone.grad(), want.of_x, tolerance);
  }
}

double draw_eps(Draws& draws) { return draws.of(std::vector<double>{1e-5, 1e-2, 0.3}); }

/// (N, C, …), sometimes with long lines.
Sizes draw_batch(Draws& draws, std::int64_t channels) {
  Sizes sizes = draws.sizes(draws.integer(0, 2), 1, 4);
  if (!sizes.empty() && draws.one_in(4)) sizes.back() = draws.integer(15, 70);
  sizes.insert(sizes.begin(), {draws.one_in(6) ? draws.integer(15, 40) : draws.integer(1, 4), channels});
  return sizes;
}

TEST(GeneratedNorm, OverTrailingDimensions) {
  for_each_case(157, 250, [](Draws& draws) {
    Sizes sizes = draws.sizes(draws.integer(1, 4), 1, 4);
    if (draws.one_in(4)) sizes.back() = draws.integer(15, 70);
    const auto first = static_cast<std::size_t>(draws.integer(0, static_cast<std::int64_t>(sizes.size()) - 1));
    const Sizes shape(sizes.begin() + static_cast<std::ptrdiff_t>(first), sizes.end());
    const Array x(draws.tensor(sizes));
    const double eps = draw_eps(draws);
    SCOPED_TRACE(text_of(sizes) + " over " + text_of(shape) + ", eps " + std::to_string(eps));
    const auto length = static_cast<std::size_t>(product(shape));
    const Sets sets{.count = product(sizes) / product(shape),
                    .weights = product(shape),
                    .of = [&](const Sizes& at) { return x.index(at) / length; },
                    .weight = [&](const Sizes& at) { return x.index(at) % length; }};
    expect_normalized(
        draws, x, draw_affine(draws, shape), sets, statistics_of(x, sets), eps, false,
        [&](const Tensor& t, const Tensor& w, const Tensor& b) { return layer_norm(t, shape, w, b, eps); });
  });
}

TEST(GeneratedNorm, OverGroupsOfChannels) {
  for_each_case(163, 250, [](Draws& draws) {
    const std::int64_t groups = draws.integer(1, 4), channels = groups * draws.integer(1, 3);
    const Array x(draws.tensor(draw_batch(draws, channels)));
    const double eps = draw_eps(draws);
    SCOPED_TRACE(text_of(x.sizes) + " in groups " + std::to_string(groups) + ", eps " + std::to_string(eps));
    const Sets sets{
        .count = x.sizes[0] * groups,
        .weights = channels,
        .of = [&](const Sizes& at) { return static_cast<std::size_t>(at[0] * groups + at[1] / (channels / groups)); },
        .weight = [](const Sizes& at) { return static_cast<std::size_t>(at[1]); }};
    expect_normalized(
        draws, x, draw_affine(draws, {channels}), sets, statistics_of(x, sets), eps, false,
        [&](const Tensor& t, const Tensor& w, const Tensor& b) { return group_norm(t, groups, w, b, eps); });
    EXPECT_THROW(group_norm(draws.laid_out(x), channels + 1), Error);
    EXPECT_THROW(group_norm(draws.laid_out(x), 0), Error);
  });
}

/// (1 - momentum) old + momentum new, by channel.
Array moved(const Array& old, const std::vector<double>& now, double momentum) {
  Array result = old;
  for (std::size_t c = 0; c < now.size(); ++c) result.values[c] = (1 - momentum) * old.values[c] + momentum * now[c];
  return result;
}

TEST(GeneratedNorm, OverTheBatchInTraining) {
  for_each_case(167, 250, [](Draws& draws) {
    const std::int64_t channels = draws.integer(1, 5);
    const Array x(draws.tensor(draw_batch(draws, channels)));
    const double eps = draw_eps(draws), momentum = draws.of(std::vector<double>{0, 0.1, 0.75, 1});
    SCOPED_TRACE(text_of(x.sizes) + ", eps " + std::to_string(eps) + ", momentum " + std::to_string(momentum));
    const Sets sets{.count = channels,
                    .weights = channels,
                    .of = [](const Sizes& at) { return static_cast<std::size_t>(at[1]); },
                    .weight = [](const Sizes& at) { return static_cast<std::size_t>(at[1]); }};
    const Statistics s = statistics_of(x, sets);
    const bool tracks = draws.one_in(2) && s.count[0] > 1;
    const Array mean(draws.tensor({channels})), variance(draws.tensor({channels}));
    expect_normalized(draws, x, draw_affine(draws, {channels}), sets, s, eps, false,
                      [&](const Tensor& t, const Tensor& w, const Tensor& b) {
                        const Tensor running_mean = tracks ? draws.laid_out(mean).to(t.scalar_type()) : Tensor();
                        const Tensor running_var = tracks ? draws.laid_out(variance).to(t.scalar_type()) : Tensor();
                        const Tensor y = batch_norm(t, w, b, running_mean, running_var, true, momentum, eps);
                        if (tracks) {
                          const double tolerance = t.scalar_type() == kFloat64 ? 1e-9 : 1e-5;
                          std::vector<double> unbiased = s.variance;
                          for (double& value : unbiased) value *= s.count[0] / (s.count[0] - 1);
                          expect_near(running_mean, moved(mean, s.mean, momentum), tolerance);
                          expect_near(running_var, moved(variance, unbiased, momentum), tolerance);
                        }
                        return y;
                      });
  });
}

TEST(GeneratedNorm, OverTheBatchByRunningStatistics) {
  for_each_case(173, 250, [](Draws& draws) {
    const std::int64_t channels = draws.integer(1, 5);
    const Array x(draws.tensor(draw_batch(draws, channels)));
    const double eps = draw_eps(draws);
    SCOPED_TRACE(text_of(x.sizes) + ", eps " + std::to_string(eps));
    const Sets sets{.count = channels,
                    .weights = channels,
                    .of = [](const Sizes& at) { return static_cast<std::size_t>(at[1]); },
                    .weight = [](const Sizes& at) { return static_cast<std::size_t>(at[1]); }};
    const Array mean(draws.tensor({channels}));
    Array variance(draws.tensor({channels}));
    for (double& value : variance.values) value = std::abs(value) + 0.1;
    const Statistics s{mean.values, variance.values, {}};
    expect_normalized(draws, x, draw_affine(draws, {channels}), sets, s, eps, true,
                      [&](const Tensor& t, const Tensor& w, const Tensor& b) {
                        const Tensor running_mean = draws.laid_out(mean).to(t.scalar_type());
                        const Tensor running_var = draws.laid_out(variance).to(t.scalar_type());
                        const Tensor y = batch_norm(t, w, b, running_mean, running_var, false, 0.5, eps);
                        expect_near(running_mean, mean, 1e-6);  // as they were
                        expect_near(running_var, variance, 1e-6);
                        EXPECT_THROW(batch_norm(t, w, b, {}, running_var, false, 0.5, eps), Error);
                        EXPECT_THROW(batch_norm(t, w, b, running_mean, {}, false, 0.5, eps), Error);
                        return y;
                      });
  });
}

TEST(GeneratedNorm, OfEachPictureByItself) {
  for_each_case(179, 200, [](Draws& draws) {
    const std::int64_t channels = draws.integer(1, 4);
    Sizes sizes = draw_batch(draws, channels);
    sizes.push_back(draws.integer(2, 4));
    const Array x(draws.tensor(sizes));
    const double eps = draw_eps(draws), momentum = draws.of(std::vector<double>{0.1, 0.75});
    SCOPED_TRACE(text_of(x.sizes) + ", eps " + std::to_string(eps) + ", momentum " + std::to_string(momentum));
    const Sets sets{.count = sizes[0] * channels,
                    .weights = channels,
                    .of = [&](const Sizes& at) { return static_cast<std::size_t>(at[0] * channels + at[1]); },
                    .weight = [](const Sizes& at) { return static_cast<std::size_t>(at[1]); }};
    const Statistics s = statistics_of(x, sets);
    const Array mean(draws.tensor({channels})), variance(draws.tensor({channels}));
    const bool tracks = draws.one_in(2);
    expect_normalized(draws, x, draw_affine(draws, {channels}), sets, s, eps, false,
                      [&](const Tensor& t, const Tensor& w, const Tensor& b) {
                        const Tensor running_mean = tracks ? draws.laid_out(mean).to(t.scalar_type()) : Tensor();
                        const Tensor running_var = tracks ? draws.laid_out(variance).to(t.scalar_type()) : Tensor();
                        const Tensor y = instance_norm(t, w, b, running_mean, running_var, true, momentum, eps);
                        if (!tracks) return y;
                        std::vector<double> means(static_cast<std::size_t>(channels), 0), variances = means;
                        const auto n = static_cast<double>(sizes[0]);
                        for (std::size_t i = 0; i < s.mean.size(); ++i) {
                          const std::size_t c = i % static_cast<std::size_t>(channels);
                          means[c] += s.mean[i] / n;
                          variances[c] += s.variance[i] * s.count[i] / (s.count[i] - 1) / n;
                        }
                        expect_near(running_mean, moved(mean, means, momentum), 1e-5);
                        expect_near(running_var, moved(variance, variances, momentum), 1e-5);
                        return y;
                      });
  });
}

TEST(GeneratedNorm, ByTheRootMeanSquare) {
  for_each_case(181, 200, [](Draws& draws) {
    const Sizes sizes = draws.sizes(draws.integer(1, 4), 1, 4);
    const auto first = static_cast<std::size_t>(draws.integer(0, static_cast<std::int64_t>(sizes.size()) - 1));
    const Sizes shape(sizes.begin() + static_cast<std::ptrdiff_t>(first), sizes.end());
    Array x(draws.tensor(sizes));
    for (double& value : x.values) value += 0.003;
    const Affine affine = draw_affine(draws, shape);
    std::optional<double> eps;
    if (draws.one_in(2)) eps = draw_eps(draws);
    SCOPED_TRACE(text_of(sizes) + " over " + text_of(shape));
    const auto length = static_cast<std::size_t>(product(shape));
    Array want = x;
    for (std::size_t row = 0; row < x.values.size() / length; ++row) {
      double squares = 0;
      for (std::size_t i = 0; i < length; ++i) squares += x.values[row * length + i] * x.values[row * length + i];
      const double root =
          std::sqrt(squares / static_cast<double>(length) + eps.value_or(std::numeric_limits<double>::epsilon()));
      for (std::size_t i = 0; i < length; ++i) want.values[row * length + i] *= affine.w.values[i] / root;
    }
    const Tensor weight = affine.has_weight ? draws.laid_out(affine.w) : Tensor();
    expect_near(rms_norm(draws.laid_out(x), shape, weight, eps), want);
    expect_gradient(
        draws, x, [&](const Tensor& t) { return rms_norm(t, shape, weight, eps); }, 1e-4);
    if (affine.has_weight)
      expect_gradient(draws, affine.w, [&](const Tensor& t) { return rms_norm(draws.laid_out(x), shape, t, eps); });
  });
}

TEST(GeneratedNorm, ParametersOfOtherSizesAreRefused) {
  for_each_case(191, 50, [](Draws& draws) {
    const std::int64_t channels = draws.integer(2, 5);
    const Tensor x = draws.tensor(draw_batch(draws, channels));
    const auto wrong = [&](std::int64_t size) { return ones({size}, TensorOptions(kFloat64)); };
    const Tensor right = wrong(channels);
    for (const Tensor& bad :
         {wrong(channels + 1), wrong(channels - 1), right.view({1, channels}), right.to(kFloat32)}) {
      SCOPED_TRACE(text_of(bad.sizes().vec()));
      EXPECT_THROW(batch_norm(x, bad, right, {}, {}, true, 0.1, 1e-5), Error);
      EXPECT_THROW(batch_norm(x, right, bad, {}, {}, true, 0.1, 1e-5), Error);
      EXPECT_THROW(group_norm(x, 1, bad, right), Error);
      EXPECT_THROW(group_norm(x, 1, right, bad), Error);
      const Tensor rows = x.flatten().narrow(0, 0, x.numel() / channels * channels).view({-1, channels});
      EXPECT_THROW(layer_norm(rows, {channels}, bad, right), Error);
      EXPECT_THROW(layer_norm(rows, {channels}, right, bad), Error);
      if (bad.scalar_type() == kFloat32) continue;
      EXPECT_THROW(batch_norm(x, right, right, bad, right, false, 0.1, 1e-5), Error);
      EXPECT_THROW(batch_norm(x, right, right, right, bad, true, 0.1, 1e-5), Error);
    }
    EXPECT_THROW(layer_norm(x, {x.size(-1) + 1}), Error);
    EXPECT_THROW(layer_norm(x, Sizes{}), Error);
  });
}

}  // namespace
}  // namespace tenon::test
