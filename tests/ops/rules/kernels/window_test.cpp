// Pooling over windows of every small kernel, stride, padding and dilation, and attention to nothing, beside loops.
#include <tenon/ops/all_ops.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace tenon {
namespace {

/// Numbers of which no two are equal in a plane, the same ones each time.
Tensor plane(std::int64_t planes, std::int64_t h, std::int64_t w, Dtype dtype) {
  const Tensor i = arange(planes * h * w, TensorOptions(kInt64));
  return i.mul(37).remainder(101).sub(50).view({1, planes, h, w}).to(dtype);
}

double value_at(const Tensor& x, std::int64_t p, std::int64_t r, std::int64_t c) {
  return x.accessor<double, 4>()[0][p][r][c];
}

TEST(WindowRules, EverySmallWindowOfMaximaAndMeansIsThatOfALoop) {
  struct Window {
    std::int64_t kernel[2], stride[2], padding[2], dilation[2];
  };
  std::vector<Window> windows;
  for (std::int64_t kh = 1; kh <= 3; ++kh)
    for (std::int64_t kw = 1; kw <= 3; ++kw)
      for (std::int64_t sh = 1; sh <= 3; ++sh)
        for (std::int64_t sw = 1; sw <= 3; ++sw) windows.push_back({{kh, kw}, {sh, sw}, {0, 0}, {1, 1}});
  for (const auto& [p, q, d, e] : {std::tuple(1, 0, 1, 1), std::tuple(0, 1, 1, 1), std::tuple(0, 0, 2, 1),
                                   std::tuple(0, 0, 1, 2), std::tuple(1, 1, 2, 2)}) {
    windows.push_back({{2, 2}, {2, 2}, {p, q}, {d, e}});
    windows.push_back({{3, 2}, {1, 2}, {p, q}, {d, e}});
  }
  for (const Dtype dtype : {kFloat32, kFloat64}) {
    for (const Window& w : windows) {
      for (const auto& [h, wide] : {std::pair<std::int64_t, std::int64_t>{6, 8}, {7, 9}}) {
        const Tensor x = plane(2, h, wide, dtype), in_double = x.to(kFloat64);
        const auto [y, places] = max_pool2d_with_indices(x, w.kernel, w.stride, w.padding, w.dilation);
        const Tensor gradient = plane(2, y.size(2), y.size(3), dtype);
        const Tensor leaf = x.clone().requires_grad_();
        max_pool2d(leaf, w.kernel, w.stride, w.padding, w.dilation).backward(gradient);
        const Tensor expected_gradient = zeros(x.sizes(), kFloat64);
        const Tensor found = y.to(kFloat64), back = gradient.to(kFloat64);
        for (std::int64_t p = 0; p < 2; ++p) {
          for (std::int64_t r = 0; r < y.size(2); ++r) {
            for (std::int64_t c = 0; c < y.size(3); ++c) {
              double best = -std::numeric_limits<double>::infinity();
              std::int64_t at = -1;
              for (std::int64_t i = 0; i < w.kernel[0]; ++i) {
                for (std::int64_t j = 0; j < w.kernel[1]; ++j) {
                  const std::int64_t row = r * w.stride[0] - w.padding[0] + i * w.dilation[0],
                                     column = c * w.stride[1] - w.padding[1] + j * w.dilation[1];
                  if (row < 0 || row >= h || column < 0 || column >= wide) continue;
                  const double value = value_at(in_double, p, row, column);
                  if (value > best) best = value, at = row * wide + column;
                }
              }
              ASSERT_EQ(value_at(found, p, r, c), best) << w.kernel[0] << w.kernel[1] << w.stride[0] << w.stride[1];
              ASSERT_EQ((places.accessor<std::int64_t, 4>()[0][p][r][c]), at);
              expected_gradient.accessor<double, 4>()[0][p][at / wide][at % wide] += value_at(back, p, r, c);
            }
          }
        }
        ASSERT_TRUE(leaf.grad().to(kFloat64).equal(expected_gradient));
        if (w.dilation[0] * w.dilation[1] != 1) continue;
        for (const bool counts_padding : {true, false}) {
          const Tensor means = avg_pool2d(x, w.kernel, w.stride, w.padding, false, counts_padding).to(kFloat64);
          for (std::int64_t r = 0; r < means.size(2); ++r) {
            for (std::int64_t c = 0; c < means.size(3); ++c) {
              double sum = 0;
              std::int64_t inside = 0;
              for (std::int64_t i = 0; i < w.kernel[0]; ++i) {
                for (std::int64_t j = 0; j < w.kernel[1]; ++j) {
                  const std::int64_t row = r * w.stride[0] - w.padding[0] + i,
                                     column = c * w.stride[1] - w.padding[1] + j;
                  if (row < 0 || row >= h || column < 0 || column >= wide) continue;
                  sum += value_at(in_double, 1, row, column);
                  ++inside;
                }
              }
              const auto of = static_cast<double>(counts_padding ? w.kernel[0] * w.kernel[1] : inside);
              ASSERT_NEAR(value_at(means, 1, r, c), sum / of, 1e-5);
            }
          }
        }
      }
    }
  }
}

TEST(WindowRules, AttentionToNothingIsZeroAndHasNoGradient) {
  for (const auto& [batch, queries, keys] :
       {std::tuple<std::int64_t, std::int64_t, std::int64_t>{1, 3, 0}, {0, 3, 2}, {1, 0, 2}}) {
    const Tensor q = ones({batch, 2, queries, 4}, requires_grad()), k = ones({batch, 2, keys, 4}, requires_grad()),
                 v = ones({batch, 2, keys, 4}, requires_grad());
    const Tensor y = scaled_dot_product_attention(q, k, v);
    EXPECT_EQ(y.sizes(), q.sizes());
    y.sum().backward();
    EXPECT_TRUE(q.grad().equal(zeros(q.sizes())));
    EXPECT_TRUE(k.grad().equal(zeros(k.sizes())));
    EXPECT_TRUE(v.grad().equal(zeros(v.sizes())));
  }
}

TEST(WindowRules, AttentionOfEveryLengthAroundAVectorIsThatOfProducts) {
  for (const Dtype dtype : {kFloat32, kFloat64}) {
    for (const std::int64_t depth : {1, 4, 7, 16, 17}) {
      for (const auto& [queries, keys] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {1, 9}, {5, 3}, {17, 33}}) {
        const auto part = [&](std::int64_t length, std::int64_t step) {
          const Tensor i = arange(2 * 3 * length * depth, TensorOptions(kInt64));
          return i.mul(step).remainder(17).sub(8).to(kFloat64).div(8).view({2, 3, length, depth});
        };
        const Tensor q = part(queries, 5), k = part(keys, 7), v = part(keys, 11);
        for (const bool causal : {false, true}) {
          if (causal && queries != keys) continue;
          const auto leaf = [&](const Tensor& x) { return x.to(dtype).clone().requires_grad_(); };
          const Tensor a = leaf(q), b = leaf(k), c = leaf(v);
          const Tensor y = scaled_dot_product_attention(a, b, c, {}, 0, causal);
          const auto plain = [](const Tensor& x) { return x.clone().requires_grad_(); };
          const Tensor d = plain(q), e = plain(k), f = plain(v);
          const Tensor z =
              d.matmul(e.transpose(-1, -2)).div(std::sqrt(static_cast<double>(depth))).softmax(-1).matmul(f);
          EXPECT_TRUE(allclose(y.detach().to(kFloat64), z.detach(), 1e-4, 1e-5)) << depth << ", " << queries;
          const Tensor weights = part(queries, 3);
          (y * weights.to(dtype)).sum().backward();
          (z * weights).sum().backward();
          EXPECT_TRUE(allclose(a.grad().to(kFloat64), d.grad(), 1e-4, 1e-5))
              << depth << ", " << queries << ", " << keys;
          EXPECT_TRUE(allclose(b.grad().to(kFloat64), e.grad(), 1e-4, 1e-5))
              << depth << ", " << queries << ", " << keys;
          EXPECT_TRUE(allclose(c.grad().to(kFloat64), f.grad(), 1e-4, 1e-5))
              << depth << ", " << queries << ", " << keys;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon
