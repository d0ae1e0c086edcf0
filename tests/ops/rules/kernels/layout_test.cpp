// Copies, norms, convolutions and look-ups of every layout and small size, beside loops or sums of products.
#include <tenon/ops/all_ops.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace tenon {
namespace {

Tensor counted(IntArrayRef sizes, Dtype dtype, std::int64_t step = 7, std::int64_t most = 23) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return arange(count, TensorOptions(kInt64)).mul(step).remainder(most).view(sizes).to(dtype);
}
Tensor signed_counted(IntArrayRef sizes, std::int64_t step = 7) {
  return counted(sizes, kFloat64, step).sub(11).div(8);
}

/// The same elements in other layouts: transposed, with gaps, with rows beside, and moved.
std::vector<Tensor> layouts_of(const Tensor& x) {
  std::vector<Tensor> all = {x};
  if (x.dim() > 1) all.push_back(x.transpose(0, -1).contiguous().transpose(0, -1));
  std::vector<std::int64_t> gaps = x.sizes().vec(), beside = gaps;
  gaps.back() *= 2;
  beside[0] += 2;
  all.push_back(zeros(gaps, x.options()).slice(-1, 0, gaps.back(), 2).copy_(x));
  all.push_back(zeros(beside, x.options()).narrow(0, 1, x.size(0)).copy_(x));
  return all;
}

TEST(LayoutCopy, EveryDtypeFromAndToEveryLayoutAndSize) {
  for (const Dtype from : {kFloat32, kFloat64, kFloat16, kBFloat16, kInt64, kInt32, kInt16, kInt8, kUInt8}) {
    for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{1},
                                                   {31},
                                                   {33},
                                                   {65},
                                                   {3, 1},
                                                   {31, 33},
                                                   {33, 65},
                                                   {2, 3, 5},
                                                   {3, 40, 2},
                                                   {2, 1, 3, 4}}) {
      const Tensor x = counted(sizes, from);
      const Tensor expected = x.to(kInt64);
      for (const Tensor& source : layouts_of(x)) {
        EXPECT_TRUE(source.clone().equal(x));
        EXPECT_TRUE(source.contiguous().equal(x));
        for (const Dtype to : {from, kFloat32, kFloat64, kBFloat16, kInt64, kInt8}) {
          EXPECT_TRUE(source.to(to).to(kInt64).equal(expected)) << toString(from) << " to " << toString(to);
          for (const Tensor& target : layouts_of(zeros(sizes, to))) {
            target.copy_(source);
            ASSERT_TRUE(target.to(kInt64).equal(expected)) << toString(from) << " to " << toString(to);
          }
        }
      }
    }
  }
}

TEST(LayoutCopy, ExpandedAndFilledRowsAreWhole) {
  for (const Dtype dtype : {kFloat32, kFloat64, kInt16, kUInt8}) {
    for (const std::int64_t n : {1, 7, 32, 33, 64, 65, 20000}) {
      const Tensor row = counted({1, n}, dtype), column = counted({n, 1}, dtype);
      EXPECT_TRUE(row.expand({3, n}).contiguous()[2].equal(row[0]));
      EXPECT_TRUE(column.expand({n, 3}).contiguous().select(1, 2).equal(column.select(1, 0)));
      const Tensor wide = zeros({n, 2}, dtype);
      wide.select(1, 1).fill_(5);
      EXPECT_TRUE(wide.select(1, 1).eq(5).all().item<bool>());
      EXPECT_FALSE(wide.select(1, 0).any().item<bool>());
    }
  }
}

/// The gradients by difference of a weighted sum of what `of` gives.
void expect_slopes(const std::vector<Tensor>& operands, const std::function<Tensor(const std::vector<Tensor>&)>& of,
                   const std::string& which) {
  std::vector<Tensor> leaves;
  for (const Tensor& one : operands) leaves.push_back(one.clone().requires_grad_());
  const Tensor y = of(leaves), weights = signed_counted(y.sizes(), 5);
  (y * weights).sum().backward();
  const NoGradGuard off;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const std::int64_t count = operands[k].numel();
    for (std::int64_t i = 0; i < count; i += 1 + count / 6) {
      double ends[2];
      for (const int side : {0, 1}) {
        std::vector<Tensor> moved = operands;
        moved[k] = operands[k].clone();
        moved[k].view({-1})[i].add_(side == 0 ? -1e-5 : 1e-5);
        ends[side] = (of(moved) * weights).sum().item<double>();
      }
      ASSERT_NEAR(leaves[k].grad().reshape({-1})[i].item<double>(), (ends[1] - ends[0]) / 2e-5, 2e-5)
          << which << ", operand " << k << ", element " << i;
    }
  }
}

TEST(LayoutNorm, RowsGroupsAndBatchesAreThoseOfTheirFormulaWithTheirGradients) {
  for (const std::int64_t n : {1, 3, 8, 17, 65}) {
    for (const std::int64_t rows : {1, 3, 70}) {
      const Tensor x = signed_counted({rows, n}), w = signed_counted({n}, 3), b = signed_counted({n}, 5);
      const Tensor normal = (x - x.mean(1, true)) / (x.var(1, false, true) + 1e-5).sqrt();
      const std::string which = std::to_string(rows) + " x " + std::to_string(n);
      EXPECT_TRUE(allclose(layer_norm(x, {n}), normal)) << which;
      EXPECT_TRUE(allclose(layer_norm(x, {n}, w), normal * w)) << which;
      EXPECT_TRUE(allclose(layer_norm(x, {n}, w, b), normal * w + b)) << which;
      EXPECT_TRUE(allclose(layer_norm(x.to(kFloat32), {n}, w.to(kFloat32), b.to(kFloat32)),
                           (normal * w + b).to(kFloat32), 1e-3, 1e-4))
          << which;
      for (const Tensor& one : layouts_of(x))
        EXPECT_TRUE(allclose(layer_norm(one, {n}, w, b), normal * w + b)) << which;
      if (n == 1) continue;
      expect_slopes(
          {x, w, b}, [n](const auto& o) { return layer_norm(o[0], {n}, o[1], o[2]); }, which);
      expect_slopes(
          {x}, [n](const auto& o) { return layer_norm(o[0], {n}); }, which + " plain");
      expect_slopes(
          {x, w}, [n](const auto& o) { return layer_norm(o[0], {n}, o[1]); }, which + " scaled");
    }
  }
  for (const std::int64_t groups : {1, 2, 6}) {
    for (const std::vector<std::int64_t>& rest : {std::vector<std::int64_t>{3}, {5, 4}, {1, 3}}) {
      std::vector<std::int64_t> sizes = {2, 6};
      sizes.insert(sizes.end(), rest.begin(), rest.end());
      const Tensor x = signed_counted(sizes), w = signed_counted({6}, 3), b = signed_counted({6}, 5);
      const Tensor flat = x.reshape({2, groups, -1});
      std::vector<std::int64_t> by_channel = {6};
      by_channel.resize(1 + rest.size(), 1);
      const Tensor normal = ((flat - flat.mean(2, true)) / (flat.var(2, false, true) + 1e-5).sqrt()).view(sizes);
      const Tensor expected = normal * w.view(by_channel) + b.view(by_channel);
      EXPECT_TRUE(allclose(group_norm(x, groups, w, b), expected)) << groups;
      EXPECT_TRUE(allclose(group_norm(x, groups), normal)) << groups;
      for (const Tensor& one : layouts_of(x)) EXPECT_TRUE(allclose(group_norm(one, groups, w, b), expected)) << groups;
      expect_slopes(
          {x, w, b}, [groups](const auto& o) { return group_norm(o[0], groups, o[1], o[2]); }, "groups");
      expect_slopes(
          {x}, [groups](const auto& o) { return group_norm(o[0], groups); }, "plain groups");
    }
  }
}

/// A convolution by its sum of products.
Tensor looped(const Tensor& x, const Tensor& w, const std::int64_t (&stride)[2], const std::int64_t (&padding)[2],
              const std::int64_t (&dilation)[2], std::int64_t groups) {
  const std::int64_t n = x.size(0), out = w.size(0), in = w.size(1), kh = w.size(2), kw = w.size(3);
  const std::int64_t h = (x.size(2) + 2 * padding[0] - dilation[0] * (kh - 1) - 1) / stride[0] + 1;
  const std::int64_t v = (x.size(3) + 2 * padding[1] - dilation[1] * (kw - 1) - 1) / stride[1] + 1;
  const Tensor y = zeros({n, out, h, v}, kFloat64);
  const auto to = y.accessor<double, 4>();
  const auto from = x.accessor<double, 4>(), weight = w.accessor<double, 4>();
  for (std::int64_t b = 0; b < n; ++b)
    for (std::int64_t o = 0; o < out; ++o)
      for (std::int64_t r = 0; r < h; ++r)
        for (std::int64_t c = 0; c < v; ++c) {
          double sum = 0;
          for (std::int64_t i = 0; i < in; ++i)
            for (std::int64_t p = 0; p < kh; ++p)
              for (std::int64_t q = 0; q < kw; ++q) {
                const std::int64_t row = r * stride[0] - padding[0] + p * dilation[0],
                                   column = c * stride[1] - padding[1] + q * dilation[1];
                if (row < 0 || row >= x.size(2) || column < 0 || column >= x.size(3)) continue;
                sum += from[b][o / (out / groups) * in + i][row][column] * weight[o][i][p][q];
              }
          to[b][o][r][c] = sum;
        }
  return y;
}

TEST(LayoutConvolution, EverySmallShapeIsThatOfALoopWithItsGradients) {
  struct Case {
    std::int64_t n, in, out, kernel[2], stride[2], padding[2], dilation[2], groups;
  };
  std::vector<Case> cases = {
      {1, 1, 1, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1}, {2, 3, 4, {1, 1}, {2, 2}, {0, 0}, {1, 1}, 1},
      {2, 4, 6, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 2}, {1, 4, 4, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 4},
      {1, 4, 8, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 4}, {2, 3, 5, {3, 3}, {1, 1}, {0, 0}, {1, 1}, 1},
      {2, 3, 5, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1}, {1, 2, 3, {3, 2}, {2, 1}, {1, 0}, {1, 2}, 1},
      {1, 2, 2, {2, 3}, {1, 3}, {0, 2}, {2, 1}, 1}, {3, 2, 4, {5, 5}, {1, 1}, {2, 2}, {1, 1}, 2},
      {1, 8, 8, {3, 3}, {1, 1}, {1, 1}, {2, 2}, 1}, {2, 16, 16, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1}};
  for (const Case& c : cases) {
    for (const auto& [h, v] : {std::pair<std::int64_t, std::int64_t>{6, 7}, {9, 8}}) {
      const Tensor x = signed_counted({c.n, c.in, h, v}),
                   w = signed_counted({c.out, c.in / c.groups, c.kernel[0], c.kernel[1]}, 3),
                   b = signed_counted({c.out}, 5);
      const Tensor expected = looped(x, w, c.stride, c.padding, c.dilation, c.groups);
      const std::string which = std::to_string(c.in) + " to " + std::to_string(c.out) + ", kernel " +
                                std::to_string(c.kernel[0]) + ", groups " + std::to_string(c.groups);
      const auto of = [&c](const Tensor& x, const Tensor& w, const Tensor& b) {
        return conv2d(x, w, b, c.stride, c.padding, c.dilation, c.groups);
      };
      EXPECT_TRUE(allclose(of(x, w, {}), expected)) << which;
      EXPECT_TRUE(allclose(of(x, w, b), expected + b.view({-1, 1, 1}))) << which;
      EXPECT_TRUE(allclose(of(x.to(kFloat32), w.to(kFloat32), b.to(kFloat32)).to(kFloat64),
                           expected + b.view({-1, 1, 1}), 1e-3, 1e-4))
          << which;
      for (const Tensor& one : layouts_of(x)) {
        EXPECT_TRUE(allclose(of(one, w, {}), expected)) << which;
        EXPECT_TRUE(allclose(of(one.to(kFloat32), w.to(kFloat32), {}).to(kFloat64), expected, 1e-3, 1e-4)) << which;
      }
      for (const Tensor& one : layouts_of(w)) EXPECT_TRUE(allclose(of(x, one, {}), expected)) << which;
      expect_slopes(
          {x, w, b}, [&of](const auto& o) { return of(o[0], o[1], o[2]); }, which);
      // In float32 the gradients are those of float64.
      std::vector<Tensor> wide, narrow;
      for (const Tensor& one : {x, w, b}) {
        wide.push_back(one.clone().requires_grad_());
        narrow.push_back(one.to(kFloat32).requires_grad_());
      }
      const Tensor y = of(wide[0], wide[1], wide[2]), z = of(narrow[0], narrow[1], narrow[2]);
      const Tensor weights = signed_counted(y.sizes(), 5);
      (y * weights).sum().backward();
      (z * weights.to(kFloat32)).sum().backward();
      for (std::size_t k = 0; k < 3; ++k)
        EXPECT_TRUE(allclose(narrow[k].grad().to(kFloat64), wide[k].grad(), 1e-3, 1e-3)) << which << ", operand " << k;
      // A transposed convolution is the gradient of a plain one.
      const Tensor back = conv_transpose2d(
          weights, w, {}, c.stride, c.padding,
          {x.size(2) - ((y.size(2) - 1) * c.stride[0] - 2 * c.padding[0] + c.dilation[0] * (c.kernel[0] - 1) + 1),
           x.size(3) - ((y.size(3) - 1) * c.stride[1] - 2 * c.padding[1] + c.dilation[1] * (c.kernel[1] - 1) + 1)},
          c.groups, c.dilation);
      EXPECT_TRUE(allclose(back, wide[0].grad())) << which;
    }
  }
}

TEST(LayoutLookup, EveryDimLayoutAndDtypeIsThatOfALoop) {
  for (const Dtype dtype : {kFloat32, kFloat64, kInt64, kInt16, kBFloat16}) {
    const Tensor x = counted({3, 4, 5}, dtype, 7, 60);
    for (int dim = 0; dim < 3; ++dim) {
      const std::int64_t length = x.size(dim);
      const Tensor rows = counted({4}, kInt64, 5, length);
      const Tensor index = counted({2, 3, 2}, kInt64, 3, length);
      for (const Tensor& source : layouts_of(x)) {
        const Tensor selected = source.index_select(dim, rows);
        for (std::int64_t i = 0; i < 4; ++i)
          ASSERT_TRUE(selected.select(dim, i).equal(x.select(dim, rows[i].item<std::int64_t>())));
        for (const Tensor& places : layouts_of(index)) {
          const Tensor gathered = source.gather(dim, places);
          for (std::int64_t a = 0; a < 2; ++a)
            for (std::int64_t b = 0; b < 3; ++b)
              for (std::int64_t c = 0; c < 2; ++c) {
                std::int64_t at[3] = {a, b, c};
                at[dim] = index[a][b][c].item<std::int64_t>();
                ASSERT_TRUE(gathered[a][b][c].equal(x[at[0]][at[1]][at[2]]));
              }
        }
      }
      for (const Tensor& target : layouts_of(zeros({3, 4, 5}, dtype))) {
        std::vector<std::int64_t> sizes = {3, 4, 5};
        sizes[static_cast<std::size_t>(dim)] = 4;
        const Tensor added = counted(sizes, dtype, 3, 7);
        const Tensor expected = zeros({3, 4, 5}, kInt64);
        for (std::int64_t i = 0; i < 4; ++i)
          expected.select(dim, rows[i].item<std::int64_t>()).add_(added.select(dim, i).to(kInt64), 2);
        for (const Tensor& one : layouts_of(added)) {
          target.zero_();
          target.index_add_(dim, rows, one, 2);
          ASSERT_TRUE(target.to(kInt64).equal(expected)) << toString(dtype) << ", dim " << dim;
        }
        target.zero_();
        target.scatter_add_(dim, index, counted({2, 3, 2}, dtype, 3, 7));
        ASSERT_EQ(target.to(kInt64).sum().item<std::int64_t>(),
                  counted({2, 3, 2}, kInt64, 3, 7).sum().item<std::int64_t>());
      }
    }
  }
}

}  // namespace
}  // namespace tenon
