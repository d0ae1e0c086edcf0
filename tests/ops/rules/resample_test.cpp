// Interpolation of one dimension and samples at a grid, held against loops in double.
#include "../../support/message_of.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/ops/nn/resample.h>
#include <tenon/tensor/literal.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

double keys(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}

/// What stands at position i of `size`, by the mode's definition.
double sampled(const std::vector<double>& x, std::int64_t size, std::int64_t i, const ResampleOptions& o) {
  const auto in = static_cast<std::int64_t>(x.size());
  const auto at = [&](std::int64_t j) { return x[static_cast<std::size_t>(std::clamp<std::int64_t>(j, 0, in - 1))]; };
  const double ratio = o.scale ? 1 / *o.scale : static_cast<double>(in) / static_cast<double>(size);
  const auto place = static_cast<double>(i);
  if (o.mode == Resampling::kNearest) return at(static_cast<std::int64_t>(std::floor(place * ratio)));
  if (o.mode == Resampling::kNearestExact) return at(static_cast<std::int64_t>(std::floor((place + 0.5) * ratio)));
  const bool linear = o.mode == Resampling::kLinear;
  if (o.antialias) {
    const double step =
        o.align_corners ? (size > 1 ? static_cast<double>(in - 1) / static_cast<double>(size - 1) : 0) : ratio;
    const double wide = std::max(step, 1.0), centre = step * (place + 0.5), support = (linear ? 1 : 2) * wide;
    double sum = 0, total = 0;
    const auto first = std::max<std::int64_t>(static_cast<std::int64_t>(centre - support + 0.5), 0);
    const auto last = std::min(static_cast<std::int64_t>(centre + support + 0.5), in);
    for (std::int64_t j = first; j < last; ++j) {
      const double d = (static_cast<double>(j) - centre + 0.5) / wide;
      const double w = linear ? std::max(0.0, 1 - std::abs(d)) : keys(d, -0.5);
      sum += w * at(j), total += w;
    }
    return total == 0 ? 0 : sum / total;  // beyond the input there is nothing
  }
  double p = o.align_corners ? (size > 1 ? place * static_cast<double>(in - 1) / static_cast<double>(size - 1) : 0)
                             : (place + 0.5) * ratio - 0.5;
  const auto base = static_cast<std::int64_t>(std::floor(p));
  double sum = 0;
  for (std::int64_t j = base - 1; j <= base + 2; ++j) {
    const double d = p - static_cast<double>(j);
    sum += at(j) * (linear ? std::max(0.0, 1 - std::abs(d)) : keys(d, -0.75));
  }
  return sum;
}

TEST(ResampleRules, EachModeIsItsDefinition) {
  for (std::int64_t in = 1; in <= 7; ++in) {
    const Tensor x = arange(in, TensorOptions(kFloat64)).mul(1.7).sin();
    const std::vector<double> values(x.data_ptr<double>(), x.data_ptr<double>() + in);
    for (std::int64_t size = 1; size <= 9; ++size) {
      for (const Resampling mode :
           {Resampling::kNearest, Resampling::kNearestExact, Resampling::kLinear, Resampling::kCubic}) {
        for (const bool align : {false, true}) {
          for (const bool antialias : {false, true}) {
            for (const std::optional<double> scale : {std::optional<double>(), std::optional<double>(1.25)}) {
              const bool nearest = mode == Resampling::kNearest || mode == Resampling::kNearestExact;
              if (nearest && (align || antialias)) continue;
              const ResampleOptions o{.mode = mode, .align_corners = align, .scale = scale, .antialias = antialias};
              const Tensor got = resample(x, 0, size, o);
              ASSERT_EQ(got.numel(), size);
              const bool is_same = in == size && (!scale || mode == Resampling::kLinear) && !antialias;
              EXPECT_EQ(got.is_same(x), is_same);
              for (std::int64_t i = 0; i < size; ++i) {
                const double want = is_same ? values[static_cast<std::size_t>(i)] : sampled(values, size, i, o);
                EXPECT_NEAR(got[i].item<double>(), want, 1e-12)
                    << in << " to " << size << ", mode " << static_cast<int>(mode) << align << antialias
                    << scale.has_value();
              }
            }
          }
        }
      }
    }
  }
}

TEST(ResampleRules, OneDimensionIsTakenFromEitherEndAndGradientsFlowBack) {
  const Tensor x = arange(24, TensorOptions(kFloat64)).cos().view({2, 3, 4});
  const ResampleOptions linear{.mode = Resampling::kLinear};
  EXPECT_TRUE(resample(x, -2, 5, linear).equal(resample(x, 1, 5, linear)));
  EXPECT_TRUE(resample(x, 1, 5, linear).select(2, 3).equal(resample(x.select(2, 3), 1, 5, linear)));
  EXPECT_TRUE(resample(x, 1, 5).equal(x.index_select(1, tensor({0, 0, 1, 1, 2}))));
  const Tensor leaf = tensor({1., 2.}, TensorOptions(kFloat64)).requires_grad_();
  resample(leaf, 0, 4, linear).mul(tensor({1., 10., 100., 1000.}, TensorOptions(kFloat64))).sum().backward();
  EXPECT_TRUE(leaf.grad().allclose(tensor({33.5, 1077.5}, TensorOptions(kFloat64))));
  EXPECT_EQ(resample(tensor({1, 2}), 0, 4).scalar_type(), kInt64);
  EXPECT_THROW(resample(tensor({1, 2}), 0, 4, linear), Error);
  EXPECT_EQ(resample(x.to(kFloat16), 2, 7, linear).scalar_type(), kFloat16);
  const std::string text = "interpolate: Input and output sizes should be greater than 0, but got input size ";
  EXPECT_EQ(message_of([&] { resample(x, 1, 0); }), text + "3 and output size 0 in dimension 1");
  EXPECT_EQ(message_of([] { resample(empty({2, 0}), -1, 3); }), text + "0 and output size 3 in dimension 1");
}

/// A picture's value at a point by bilinear or nearest sampling; outside stand zeros, the border or mirror images.
double at_point(const Tensor& plane, double gx, double gy, int mode, int padding, bool align) {
  const std::int64_t h = plane.size(0), w = plane.size(1);
  const auto position = [&](double g, std::int64_t n) {
    const auto size = static_cast<double>(n);
    double p = align ? (g + 1) / 2 * (size - 1) : ((g + 1) * size - 1) / 2;
    if (padding == 2) {
      const double low = align ? 0 : -0.5, span = align ? size - 1 : size;
      if (span == 0) return 0.;
      double d = std::fmod(std::abs(p - low), 2 * span);
      p = (d > span ? 2 * span - d : d) + low;
    }
    return padding == 0 ? p : std::clamp(p, 0., size - 1);
  };
  const auto value = [&](std::int64_t y, std::int64_t x) {
    return y < 0 || y >= h || x < 0 || x >= w ? 0. : plane[y][x].item<double>();
  };
  const double px = position(gx, w), py = position(gy, h);
  if (mode == 1)
    return value(static_cast<std::int64_t>(std::nearbyint(py)), static_cast<std::int64_t>(std::nearbyint(px)));
  const auto x0 = static_cast<std::int64_t>(std::floor(px)), y0 = static_cast<std::int64_t>(std::floor(py));
  const double tx = px - static_cast<double>(x0), ty = py - static_cast<double>(y0);
  return (1 - ty) * ((1 - tx) * value(y0, x0) + tx * value(y0, x0 + 1)) +
         ty * ((1 - tx) * value(y0 + 1, x0) + tx * value(y0 + 1, x0 + 1));
}

TEST(GridRules, EachPointReadsItsNeighboursUnderEveryPadding) {
  for (const std::vector<std::int64_t>& size : std::vector<std::vector<std::int64_t>>{{3, 4}, {1, 2}, {1, 1}}) {
    const Tensor x = arange(2 * size[0] * size[1], TensorOptions(kFloat64)).sin().view({1, 2, size[0], size[1]});
    const Tensor grid = arange(2 * 30, TensorOptions(kFloat64)).mul(2.3).sin().mul(2.4).view({1, 5, 6, 2});
    for (const int mode : {0, 1}) {
      for (const int padding : {0, 1, 2}) {
        for (const bool align : {false, true}) {
          const Tensor got = grid_sampler(x, grid, mode, padding, align);
          for (std::int64_t i = 0; i < 5; ++i) {
            for (std::int64_t j = 0; j < 6; ++j) {
              for (std::int64_t c = 0; c < 2; ++c)
                EXPECT_NEAR(got[0][c][i][j].item<double>(),
                            at_point(x[0][c], grid[0][i][j][0].item<double>(), grid[0][i][j][1].item<double>(), mode,
                                     padding, align),
                            1e-9)
                    << mode << padding << align << ' ' << size[0] << 'x' << size[1];
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon::test
