// Attention and alignments of random sizes: attention against its formula and the slopes of that, alignments against
// the sum over all of them.
#include <tenon/autograd/autograd.h>
#include <tenon/core/error.h>
#include <tenon/ops/nn/attention.h>
#include <tenon/ops/nn/ctc.h>

#include "differences.h"

namespace tenon::test {
namespace {

/// Leading sizes that broadcast to `whole`.
Sizes leading_of(Draws& draws, Sizes whole) {
  for (std::int64_t& size : whole)
    if (draws.one_in(5)) size = 1;
  if (!whole.empty() && draws.one_in(6)) whole.erase(whole.begin());
  return whole;
}

Sizes joined(Sizes sizes, std::initializer_list<std::int64_t> more) {
  sizes.insert(sizes.end(), more);
  return sizes;
}

/// A leading place as an operand of smaller leading sizes has it, and then `more`.
Sizes place_in(const Array& array, const Sizes& leading, std::initializer_list<std::int64_t> more) {
  const std::size_t own = array.sizes.size() - more.size();
  Sizes at(leading.end() - static_cast<std::ptrdiff_t>(own), leading.end());
  for (std::size_t d = 0; d < own; ++d) at[d] = array.sizes[d] == 1 ? 0 : at[d];
  at.insert(at.end(), more);
  return at;
}

struct Heads {
  Array q, k, v, mask;
  Sizes leading;
  std::int64_t queries, keys, features, values;
  enum { kNone, kCausal, kBool, kAdded } masking;
  double scale;
};

Heads draw_heads(Draws& draws) {
  const Sizes leading = draws.sizes(draws.integer(0, 3), 1, 2);
  const bool is_long = draws.one_in(12);
  Heads h{.q = Array(Sizes{}), .k = Array(Sizes{}), .v = Array(Sizes{}), .mask = Array(Sizes{}), .leading = leading};
  h.queries = is_long ? draws.integer(60, 140) : draws.integer(1, 6);
  h.keys = is_long ? draws.integer(60, 140) : draws.integer(1, 6);
  h.features = draws.integer(1, 5);
  h.values = draws.integer(1, 5);
  h.masking =
      draws.of(std::vector<decltype(Heads::masking)>{Heads::kNone, Heads::kCausal, Heads::kBool, Heads::kAdded});
  h.scale = draws.one_in(2) ? 1 / std::sqrt(static_cast<double>(h.features)) : 0.7;
  h.q = Array(draws.tensor(joined(leading, {h.queries, h.features})));
  h.k = Array(draws.tensor(joined(leading_of(draws, leading), {h.keys, h.features})));
  h.v = Array(draws.tensor(joined(leading_of(draws, leading), {h.keys, h.values})));
  h.mask = Array(draws.tensor(joined(leading_of(draws, leading), {draws.one_in(4) ? 1 : h.queries, h.keys})));
  for (double& value : h.mask.values)
    if (h.masking == Heads::kBool) value = draws.one_in(3) ? 0 : 1;
  return h;
}

struct Attended {
  Array y, of_q, of_k, of_v;
};

/// The formula, query by query; w is the weight of each key, and its slope w (dw - sum of w dw).
Attended attended(const Heads& h, const Array& scales) {
  Attended a{Array(scales.sizes), Array(h.q.sizes), Array(h.k.sizes), Array(h.v.sizes)};
  for_each_place(joined(h.leading, {h.queries}), [&](const Sizes& line) {
    const Sizes leading(line.begin(), line.end() - 1);
    const std::int64_t i = line.back();
    std::vector<double> w(static_cast<std::size_t>(h.keys)), dw(w.size(), 0);
    double total = 0, shared = 0;
    for (std::int64_t j = 0; j < h.keys; ++j) {
      double score = 0;
      for (std::int64_t f = 0; f < h.features; ++f)
        score += h.q[place_in(h.q, leading, {i, f})] * h.k[place_in(h.k, leading, {j, f})] * h.scale;
      const std::int64_t row = h.mask.sizes[h.mask.sizes.size() - 2] == 1 ? 0 : i;
      const double mask = h.mask[place_in(h.mask, leading, {row, j})];
      if (h.masking == Heads::kAdded) score += mask;
      const bool is_seen = h.masking == Heads::kCausal ? j <= i : h.masking != Heads::kBool || mask != 0;
      w[static_cast<std::size_t>(j)] = is_seen ? std::exp(score) : 0;
      total += w[static_cast<std::size_t>(j)];
    }
    for (std::int64_t j = 0; j < h.keys; ++j) {
      double& weight = w[static_cast<std::size_t>(j)];
      weight = total == 0 ? 0 : weight / total;  // a query that sees nothing
      for (std::int64_t c = 0; c < h.values; ++c) {
        const double scale = scales[joined(leading, {i, c})], value = h.v[place_in(h.v, leading, {j, c})];
        a.y[joined(leading, {i, c})] += weight * value;
        a.of_v[place_in(h.v, leading, {j, c})] += weight * scale;
        dw[static_cast<std::size_t>(j)] += scale * value;
      }
      shared += weight * dw[static_cast<std::size_t>(j)];
    }
    for (std::int64_t j = 0; j < h.keys; ++j) {
      const double slope = w[static_cast<std::size_t>(j)] * (dw[static_cast<std::size_t>(j)] - shared) * h.scale;
      for (std::int64_t f = 0; f < h.features; ++f) {
        a.of_q[place_in(h.q, leading, {i, f})] += slope * h.k[place_in(h.k, leading, {j, f})];
        a.of_k[place_in(h.k, leading, {j, f})] += slope * h.q[place_in(h.q, leading, {i, f})];
      }
    }
  });
  return a;
}

TEST(GeneratedAttention, ValuesAndGradientsUnderEveryMask) {
  for_each_case(347, 250, [](Draws& draws) {
    const Heads h = draw_heads(draws);
    SCOPED_TRACE("queries " + text_of(h.q.sizes) + ", keys " + text_of(h.k.sizes) + ", values " + text_of(h.v.sizes) +
                 ", mask " + std::to_string(h.masking) + " " + text_of(h.mask.sizes));
    const Tensor scale = draws.tensor(joined(h.leading, {h.queries, h.values}));
    const Attended want = attended(h, Array(scale));
    for (const Dtype dtype : {kFloat64, kFloat32}) {
      SCOPED_TRACE(toString(dtype));
      const double tolerance = dtype == kFloat64 ? 1e-9 : 1e-3;
      const auto leaf = [&](const Array& array) {
        return draws.in_some_layout(draws.laid_out(array).to(dtype)).set_requires_grad(true);
      };
      const Tensor q = leaf(h.q), k = leaf(h.k), v = leaf(h.v);
      std::optional<Tensor> mask;
      if (h.masking == Heads::kBool) mask = draws.in_some_layout(draws.laid_out(h.mask).to(kBool));
      if (h.masking == Heads::kAdded) mask = draws.in_some_layout(draws.laid_out(h.mask).to(dtype));
      const bool is_default = h.scale == 1 / std::sqrt(static_cast<double>(h.features));
      const std::optional<double> given = is_default ? std::nullopt : std::optional(h.scale);
      const Tensor y = scaled_dot_product_attention(q, k, v, mask, 0, h.masking == Heads::kCausal, given);
      expect_near(y, want.y, tolerance);
      (y * scale.to(dtype)).sum().backward();
      expect_near(q.grad(), want.of_q, tolerance);
      expect_near(k.grad(), want.of_k, tolerance);
      expect_near(v.grad(), want.of_v, tolerance);
      if (h.masking == Heads::kAdded) {  // a mask that wants a gradient is served otherwise
        const Tensor wanting = mask->detach().clone().set_requires_grad(true);
        expect_near(scaled_dot_product_attention(q.detach(), k.detach(), v.detach(), wanting, 0, false, given), want.y,
                    tolerance);
      }
    }
  });
}

// The identity as values shows the weights; each is 0 or its value without dropping, divided by 1 - p.
TEST(GeneratedAttention, DroppedWeightsAreZeroAndTheOthersLarger) {
  for_each_case(349, 60, [](Draws& draws) {
    const std::int64_t queries = draws.integer(1, 90), keys = draws.integer(1, 90);
    const double p = draws.of(std::vector<double>{0.25, 0.5, 0.75});
    const bool is_causal = draws.one_in(2);
    SCOPED_TRACE(text_of({queries, keys}) + ", p " + std::to_string(p));
    const Tensor q = draws.tensor({1, 2, queries, 3}), k = draws.tensor({1, 2, keys, 3});
    const Tensor v = eye(keys, TensorOptions(kFloat64)).expand({1, 2, keys, keys});
    const Array plain(scaled_dot_product_attention(q, k, v, std::nullopt, 0, is_causal));
    manual_seed(static_cast<std::uint64_t>(queries));
    const Tensor leaf = v.clone().set_requires_grad(true);
    const Tensor y = scaled_dot_product_attention(q, k, leaf, std::nullopt, p, is_causal);
    const Array weights(y);
    double dropped = 0, seen = 0;
    for (std::size_t i = 0; i < weights.values.size(); ++i) {
      if (plain.values[i] == 0) {
        EXPECT_EQ(weights.values[i], 0);
        continue;
      }
      ++seen;
      if (weights.values[i] == 0) {
        ++dropped;
      } else {
        ASSERT_NEAR(weights.values[i], plain.values[i] / (1 - p), 1e-12);
      }
    }
    if (seen > 500) {
      EXPECT_NEAR(dropped / seen, p, 5 * std::sqrt(p * (1 - p) / seen));
    }
    y.sum().backward();  // the same weights are dropped again
    const Array gradient(leaf.grad().sum(-1));
    for_each_place(gradient.sizes, [&](const Sizes& at) {
      double sum = 0;
      for (std::int64_t i = 0; i < queries; ++i) sum += weights[{at[0], at[1], i, at[2]}];
      ASSERT_NEAR(gradient[at], sum * static_cast<double>(keys), 1e-9);
    });
  });
}

// --- alignments -----------------------------------------------------------------------------------------------------

TEST(GeneratedCtc, IsTheSumOverAllAlignmentsAndItsGradientTheirShares) {
  for_each_case(353, 200, [](Draws& draws) {
    const std::int64_t steps = draws.integer(1, 5), batch = draws.integer(1, 3), classes = draws.integer(2, 3);
    const std::int64_t blank = draws.integer(0, classes - 1);
    const Array logits(draws.tensor({steps, batch, classes}));
    std::vector<std::int64_t> inputs, lengths, line, padded;
    const std::int64_t longest = draws.integer(1, 3);
    for (std::int64_t n = 0; n < batch; ++n) {
      inputs.push_back(draws.integer(1, steps));
      lengths.push_back(draws.integer(0, longest));
      for (std::int64_t i = 0; i < longest; ++i) {
        std::int64_t label = draws.integer(0, classes - 1);
        if (label == blank) label = (label + 1) % classes;
        padded.push_back(label);
        if (i < lengths.back()) line.push_back(label);
      }
    }
    if (line.empty()) return;
    SCOPED_TRACE(text_of(logits.sizes) + ", blank " + std::to_string(blank) + ", inputs " + text_of(inputs) +
                 ", targets " + text_of(line) + " of " + text_of(lengths));
    const Tensor x = draws.laid_out(logits);
    const Array log_probs(x.log_softmax(2));
    Array losses({batch});
    double mean = 0;
    bool has_infinite = false;
    for (std::int64_t n = 0; n < batch; ++n) {
      const std::vector<std::int64_t> target(padded.begin() + n * longest,
                                             padded.begin() + n * longest + lengths[static_cast<std::size_t>(n)]);
      double total = 0;
      const std::int64_t own = inputs[static_cast<std::size_t>(n)];
      for_each_place(Sizes(static_cast<std::size_t>(own), classes), [&](const Sizes& path) {
        std::vector<std::int64_t> read;
        double log_probability = 0;
        for (std::int64_t t = 0; t < own; ++t) {
          const std::int64_t label = path[static_cast<std::size_t>(t)];
          log_probability += log_probs[{t, n, label}];
          if (label != blank && (t == 0 || label != path[static_cast<std::size_t>(t - 1)])) read.push_back(label);
        }
        if (read == target) total += std::exp(log_probability);
      });
      losses[{n}] = -std::log(total);
      has_infinite = has_infinite || total == 0;
      mean += losses[{n}] / static_cast<double>(std::max<std::size_t>(1, target.size())) / static_cast<double>(batch);
    }
    const bool is_line = draws.one_in(2);
    const Tensor targets = is_line ? tenon::tensor(line, TensorOptions(kInt64))
                                   : tenon::tensor(padded, TensorOptions(kInt64)).view({batch, longest});
    const auto loss = [&](const Tensor& t, std::int64_t reduction, bool zero_infinity = false) {
      return ctc_loss(t.log_softmax(2), targets, inputs, lengths, blank, reduction, zero_infinity);
    };
    expect_near(loss(x, 0), losses);
    Array finite = losses;
    double sum = 0;
    for (double& value : finite.values) sum += value = std::isinf(value) ? 0 : value;
    expect_near(loss(x, 0, true), finite);
    expect_near(loss(x, 2, true), Array(Sizes{}, sum));
    if (!has_infinite) expect_near(loss(x, 1), Array(Sizes{}, mean));
    if (!has_infinite) expect_gradient(draws, logits, [&](const Tensor& t) { return loss(t, 1); });
    expect_gradient(draws, logits, [&](const Tensor& t) { return loss(t, 0, true); });
  });
}

}  // namespace
}  // namespace tenon::test
