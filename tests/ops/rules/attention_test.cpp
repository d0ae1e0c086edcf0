// Attention: one head or many, masks of any rank and dtype, layouts and what falls back to operators, against the plain
// formula.
#include "../../support/message_of.h"

#include <tenon/autograd/autograd.h>
#include <tenon/dispatch/dispatch.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensor/generator.h>
#include <tenon/tensor/literal.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

using Heads = std::vector<std::int64_t>;

Tensor swinging(const Heads& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return arange(1, static_cast<double>(count) + 1, TensorOptions(kFloat64)).mul(1.3).sin().view(sizes);
}

Tensor by_formula(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& added, double scale) {
  Tensor scores = q.matmul(k.transpose(-2, -1)) * scale;
  if (added.defined()) scores = scores + added;
  const Tensor high = scores.amax(-1, true).clamp_min(-1e30);
  const Tensor e = (scores - high).exp();
  return e.matmul(v) / e.sum(-1, true).clamp_min(1e-300);
}

/// With the host's kernels, then without them.
void either_way(const std::function<void()>& check) {
  check();
  const Kernel kernel = find_kernel(kCPU, intern_operator("attention"));
  register_kernel(kCPU, "attention", nullptr);
  check();
  register_kernel(kCPU, "attention", kernel);
}

TEST(AttentionRules, LeadingDimensionsBroadcastWhateverTheirNumber) {
  either_way([] {
    for (const auto& [lead_q, lead_k, lead_v] :
         std::vector<std::tuple<Heads, Heads, Heads>>{{{}, {}, {}},
                                                      {{3}, {3}, {3}},
                                                      {{2, 3}, {2, 3}, {2, 3}},
                                                      {{2, 1}, {1, 3}, {3}},
                                                      {{2, 2, 3}, {3}, {2, 1, 1}},
                                                      {{0, 2}, {0, 2}, {0, 2}}}) {
      const auto with = [](Heads lead, std::int64_t rows, std::int64_t columns) {
        lead.insert(lead.end(), {rows, columns});
        return swinging(lead);
      };
      const Tensor q = with(lead_q, 4, 5), k = with(lead_k, 6, 5), v = with(lead_v, 6, 2);
      const Tensor got = scaled_dot_product_attention(q, k, v), want = by_formula(q, k, v, {}, 1 / std::sqrt(5.));
      ASSERT_EQ(got.sizes(), want.sizes());
      EXPECT_TRUE(got.allclose(want, 1e-9, 1e-12));
      EXPECT_TRUE(scaled_dot_product_attention(q, k, v, std::nullopt, 0, false, 0.3)
                      .allclose(by_formula(q, k, v, {}, 0.3), 1e-9, 1e-12));
    }
  });
}

TEST(AttentionRules, AMaskIsTruthOrAddedAndBroadcasts) {
  const Tensor q = swinging({2, 3, 4, 5}), k = swinging({2, 3, 6, 5}), v = swinging({2, 3, 6, 2});
  const double scale = 1 / std::sqrt(5.), minus = -std::numeric_limits<double>::infinity();
  either_way([&] {
    for (const Heads& sizes : {Heads{4, 6}, Heads{6}, Heads{1, 6}, Heads{4, 1}, Heads{}, Heads{3, 4, 6},
                               Heads{2, 1, 4, 6}, Heads{2, 3, 1, 6}}) {
      const Tensor added = swinging(sizes) * 3, seen = swinging(sizes).gt(-0.3);
      EXPECT_TRUE(
          scaled_dot_product_attention(q, k, v, added).allclose(by_formula(q, k, v, added, scale), 1e-9, 1e-12));
      const Tensor hidden = zeros(sizes, kFloat64).masked_fill(seen.logical_not(), minus);
      EXPECT_TRUE(scaled_dot_product_attention(q, k, v, seen).allclose(by_formula(q, k, v, hidden, scale), 1e-9, 1e-12))
          << sizes.size();
    }
    const Tensor later = ones({4, 6}, kBool).triu(1);
    const Tensor causal = zeros({4, 6}, kFloat64).masked_fill(later, minus);
    EXPECT_TRUE(scaled_dot_product_attention(q, k, v, std::nullopt, 0, true)
                    .allclose(by_formula(q, k, v, causal, scale), 1e-9, 1e-12));
    EXPECT_TRUE(scaled_dot_product_attention(q, k, v, zeros({4, 6}, kBool)).equal(zeros({2, 3, 4, 2}, kFloat64)))
        << "whoever sees nothing gets nothing";
  });
  EXPECT_THROW(scaled_dot_product_attention(q, k, v, swinging({5, 6})), Error);
  const Tensor half = swinging({2, 4, 5}).to(kFloat16);
  EXPECT_EQ(scaled_dot_product_attention(half, half, half, zeros({4, 4})).scalar_type(), kFloat16);
}

TEST(AttentionRules, GradientsAreThoseOfTheFormulaInEveryLayout) {
  const auto leaf = [](const Tensor& x) { return x.detach().clone().requires_grad_(); };
  const Tensor q = swinging({2, 3, 4, 5}), k = swinging({2, 3, 6, 5}), v = swinging({2, 3, 6, 2}),
               added = swinging({4, 6});
  const Tensor weight = swinging({2, 3, 4, 2}).cos();
  const Tensor a = leaf(q), b = leaf(k), c = leaf(v), m = leaf(added);
  (by_formula(a, b, c, m, 0.7) * weight).sum().backward();
  either_way([&] {
    for (const bool turned : {false, true}) {
      for (const bool wants_mask : {false, true}) {
        const Tensor x = leaf(turned ? q.transpose(1, 2).contiguous() : q),
                     y = leaf(turned ? k.transpose(2, 3).contiguous() : k),
                     z = leaf(turned ? v.transpose(0, 1).contiguous() : v), mask = wants_mask ? leaf(added) : added;
        const Tensor got = scaled_dot_product_attention(turned ? x.transpose(1, 2) : x, turned ? y.transpose(2, 3) : y,
                                                        turned ? z.transpose(0, 1) : z, mask, 0, false, 0.7);
        (got * weight).sum().backward();
        EXPECT_TRUE((turned ? x.grad().transpose(1, 2) : x.grad()).allclose(a.grad(), 1e-7, 1e-9));
        EXPECT_TRUE((turned ? y.grad().transpose(2, 3) : y.grad()).allclose(b.grad(), 1e-7, 1e-9));
        EXPECT_TRUE((turned ? z.grad().transpose(0, 1) : z.grad()).allclose(c.grad(), 1e-7, 1e-9));
        if (wants_mask) {
          EXPECT_TRUE(mask.grad().allclose(m.grad(), 1e-7, 1e-9));
        }
      }
    }
  });
}

TEST(AttentionRules, WithoutKeysThereIsNothingToSee) {
  EXPECT_TRUE(scaled_dot_product_attention(ones({2, 3}), ones({0, 3}), ones({0, 4})).equal(zeros({2, 4})));
  EXPECT_EQ(scaled_dot_product_attention(ones({0, 3}), ones({2, 3}), ones({2, 4})).sizes().vec(), (Heads{0, 4}));
  EXPECT_EQ(scaled_dot_product_attention(ones({2, 3}), ones({5, 3}), ones({5, 0})).sizes().vec(), (Heads{2, 0}));
  EXPECT_TRUE(
      scaled_dot_product_attention(ones({2, 0}), ones({2, 0}), tensor({{1.f}, {3.f}}), std::nullopt, 0, false, 1.)
          .equal(full({2, 1}, 2.f)));
}

TEST(AttentionRules, DroppedWeightsAreThoseOfTheSeed) {
  const Tensor q = swinging({1, 2, 8, 4}), eye_ = eye(8, TensorOptions(kFloat64)).expand({1, 2, 8, 8});
  const Tensor plain = scaled_dot_product_attention(q, q, eye_);
  const auto drawn = [&](std::uint64_t seed) {
    manual_seed(seed);
    return scaled_dot_product_attention(q, q, eye_, std::nullopt, 0.5);
  };
  const Tensor one = drawn(1);
  EXPECT_TRUE(one.equal(drawn(1)));
  EXPECT_FALSE(one.equal(drawn(2)));
  const Tensor kept = one.ne(0);
  EXPECT_TRUE(one.allclose(plain * 2 * kept, 1e-9, 1e-12));
  EXPECT_GT(kept.sum().item<std::int64_t>(), 30);
  EXPECT_LT(kept.sum().item<std::int64_t>(), 98);
  EXPECT_TRUE(scaled_dot_product_attention(q, q, eye_, std::nullopt, 1).equal(zeros({1, 2, 8, 8}, kFloat64)));
}

}  // namespace
}  // namespace tenon::test
