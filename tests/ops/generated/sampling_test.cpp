// Resampled lines, points of a grid and shuffled pixels held against loops in float64; gradients against differences.
#include <tenon/core/error.h>
#include <tenon/ops/nn/resample.h>
#include <tenon/ops/nn/vision.h>

#include "differences.h"

namespace tenon::test {
namespace {

/// Keys' kernel, piece by piece.
double keys(double x, double a) {
  x = std::abs(x);
  if (x < 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  if (x < 2) return a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a;
  return 0;
}

/// The weight of each of `in` elements in element `i` of `out`.
std::vector<double> shares(std::int64_t i, std::int64_t in, std::int64_t out, const ResampleOptions& o) {
  std::vector<double> shares(static_cast<std::size_t>(in), 0);
  const auto give = [&](std::int64_t at, double share) {
    shares[static_cast<std::size_t>(std::clamp<std::int64_t>(at, 0, in - 1))] += share;
  };
  const double place = static_cast<double>(i);
  double step = o.scale ? 1 / *o.scale : static_cast<double>(in) / static_cast<double>(out);
  if (o.mode == Resampling::kNearest || o.mode == Resampling::kNearestExact) {
    const auto rounded = static_cast<float>(step);  // PyTorch's positions are of single precision
    const double half = o.mode == Resampling::kNearest ? 0 : 0.5;
    give(static_cast<std::int64_t>(std::floor(static_cast<float>((place + half) * rounded))), 1);
    return shares;
  }
  const bool is_linear = o.mode == Resampling::kLinear;
  if (o.align_corners && !o.antialias) step = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  if (o.antialias) {  // the filter is as wide as the elements that fall into one
    const double wide = std::max(step, 1.), centre = (place + 0.5) * step;
    double total = 0;
    const auto filter = [&](std::int64_t j) {
      const double x = (static_cast<double>(j) + 0.5 - centre) / wide;
      return is_linear ? std::max(0., 1 - std::abs(x)) : keys(x, -0.5);
    };
    for (std::int64_t j = 0; j < in; ++j) total += filter(j);
    for (std::int64_t j = 0; j < in; ++j) give(j, filter(j) / total);
    return shares;
  }
  double position = o.align_corners ? place * step : (place + 0.5) * step - 0.5;
  if (is_linear) position = std::max(position, 0.);
  const double base = std::floor(position), t = position - base;
  const auto first = static_cast<std::int64_t>(base);
  if (is_linear) {
    give(first, 1 - t);
    give(first + 1, t);
  } else {
    for (std::int64_t k = -1; k <= 2; ++k) give(first + k, keys(static_cast<double>(k) - t, -0.75));
  }
  return shares;
}

TEST(GeneratedSampling, LinesOfAnotherLengthInEveryMode) {
  for_each_case(313, 400, [](Draws& draws) {
    const Array x(draws.tensor(draws.sizes(draws.integer(1, 3), 1, 7)));
    const auto rank = static_cast<std::int64_t>(x.sizes.size());
    const std::int64_t dim = draws.integer(0, rank - 1), in = x.sizes[static_cast<std::size_t>(dim)];
    const std::int64_t out = draws.integer(1, 12);
    ResampleOptions o{.mode = draws.of(std::vector<Resampling>{Resampling::kNearest, Resampling::kNearestExact,
                                                               Resampling::kLinear, Resampling::kCubic})};
    const bool is_smooth = o.mode == Resampling::kLinear || o.mode == Resampling::kCubic;
    o.antialias = is_smooth && draws.one_in(3);
    o.align_corners = is_smooth && !o.antialias && draws.one_in(2);
    // A given scale near to the sizes' own, as a caller would have it.
    if (draws.one_in(3)) o.scale = (static_cast<double>(out) + 0.3) / static_cast<double>(in);
    SCOPED_TRACE(text_of(x.sizes) + " along " + std::to_string(dim) + " to " + std::to_string(out) + ", mode " +
                 std::to_string(static_cast<int>(o.mode)) + (o.align_corners ? ", corners" : "") +
                 (o.antialias ? ", antialias" : "") + (o.scale ? ", scale " + std::to_string(*o.scale) : ""));
    Sizes sizes = x.sizes;
    sizes[static_cast<std::size_t>(dim)] = out;
    Array want(sizes);
    for_each_place(sizes, [&](const Sizes& at) {
      const std::vector<double> all = shares(at[static_cast<std::size_t>(dim)], in, out, o);
      // A linear mode leaves a dim that keeps its size alone, whatever its scale.
      const bool is_kept = in == out && !o.antialias && (!o.scale || o.mode == Resampling::kLinear);
      for (std::int64_t j = 0; j < in; ++j) {
        Sizes from = at;
        from[static_cast<std::size_t>(dim)] = j;
        want[at] +=
            x[from] * (is_kept ? (j == at[static_cast<std::size_t>(dim)] ? 1 : 0) : all[static_cast<std::size_t>(j)]);
      }
    });
    const std::int64_t given = draws.one_in(2) ? dim : dim - rank;
    const auto function = [&](const Tensor& t) { return resample(t, given, out, o); };
    expect_near(function(draws.laid_out(x)), want, 1e-7);
    expect_gradient(draws, x, function);
    EXPECT_THROW(resample(draws.laid_out(x), given, 0, o), Error);
    EXPECT_THROW(resample(draws.laid_out(x).narrow(dim, 0, 0), given, 2, o), Error);
    if (is_smooth && in != out) {
      EXPECT_THROW(resample(draws.laid_out(x).to(kInt64), given, out, o), Error);
    }
  });
}

/// Between the borders by mirroring, at the elements or half an element beyond them.
double mirrored(double x, std::int64_t size, bool align_corners) {
  const double low = align_corners ? 0 : -0.5, high = static_cast<double>(size) - (align_corners ? 1 : 0.5);
  if (low == high) return 0;
  while (x < low || x > high) x = x < low ? 2 * low - x : 2 * high - x;
  return x;
}

double inside(double x, std::int64_t size, GridPadding padding, bool align_corners) {
  if (padding == GridPadding::kZeros) return x;
  if (padding == GridPadding::kReflection) x = mirrored(x, size, align_corners);
  return std::clamp(x, 0., static_cast<double>(size - 1));
}

/// Which elements of a line a coordinate sees, and with what share; outside there is nothing.
std::vector<std::pair<std::int64_t, double>> seen(double coordinate, std::int64_t size, GridInterpolation mode,
                                                  GridPadding padding, bool align_corners) {
  const double length = static_cast<double>(size);
  double x = align_corners ? (coordinate + 1) / 2 * (length - 1) : ((coordinate + 1) * length - 1) / 2;
  std::vector<std::pair<std::int64_t, double>> all;
  const auto give = [&](double at, double share) {
    if (at >= 0 && at < length) all.emplace_back(static_cast<std::int64_t>(at), share);
  };
  if (mode == GridInterpolation::kBicubic) {
    const double base = std::floor(x);
    for (int k = -1; k <= 2; ++k)
      give(std::floor(inside(base + k, size, padding, align_corners)), keys(k - (x - base), -0.75));
    return all;
  }
  x = inside(x, size, padding, align_corners);
  if (mode == GridInterpolation::kNearest) {
    give(std::nearbyint(x), 1);
    return all;
  }
  give(std::floor(x), 1 - (x - std::floor(x)));
  give(std::floor(x) + 1, x - std::floor(x));
  return all;
}

TEST(GeneratedSampling, PointsOfAGridInEveryMode) {
  for_each_case(317, 300, [](Draws& draws) {
    const std::int64_t spatial = draws.integer(2, 3);
    const auto mode = static_cast<GridInterpolation>(draws.integer(0, spatial == 3 ? 1 : 2));
    const auto padding = static_cast<GridPadding>(draws.integer(0, 2));
    const bool align_corners = draws.one_in(2);
    Sizes of_x = draws.sizes(spatial, 1, 4), of_grid = draws.sizes(spatial, 1, 3);
    const std::int64_t batch = draws.integer(1, 2), channels = draws.integer(1, 2);
    Sizes out = of_grid;
    for (Sizes* sizes : {&of_x, &out}) sizes->insert(sizes->begin(), {batch, channels});
    of_grid.insert(of_grid.begin(), batch);
    of_grid.push_back(spatial);
    const Array x(draws.tensor(of_x));
    Array grid(draws.tensor(of_grid));
    for (double& value : grid.values) value = value * 0.9 + 0.00271;  // no point on an element or between two
    SCOPED_TRACE(text_of(of_x) + " at " + text_of(of_grid) + ", mode " + std::to_string(static_cast<int>(mode)) +
                 ", padding " + std::to_string(static_cast<int>(padding)) + (align_corners ? ", corners" : ""));
    Array want(out);
    for_each_place(out, [&](const Sizes& at) {
      std::vector<std::vector<std::pair<std::int64_t, double>>> along;
      Sizes choices;
      for (std::int64_t d = 0; d < spatial; ++d) {
        Sizes point{at[0]};
        point.insert(point.end(), at.begin() + 2, at.end());
        point.push_back(spatial - 1 - d);  // x, the innermost, comes first
        const std::int64_t size = of_x[static_cast<std::size_t>(d) + 2];
        along.push_back(seen(grid[point], size, mode, padding, align_corners));
        choices.push_back(static_cast<std::int64_t>(along.back().size()));
      }
      for_each_place(choices, [&](const Sizes& choice) {
        Sizes from{at[0], at[1]};
        double share = 1;
        for (std::size_t d = 0; d < choice.size(); ++d) {
          const auto& [place, own] = along[d][static_cast<std::size_t>(choice[d])];
          from.push_back(place);
          share *= own;
        }
        want[at] += share * x[from];
      });
    });
    const auto sample = [&](const Tensor& i, const Tensor& g) {
      return grid_sampler(i, g, static_cast<std::int64_t>(mode), static_cast<std::int64_t>(padding), align_corners);
    };
    const Tensor input = draws.laid_out(x), points = draws.laid_out(grid);
    expect_near(sample(input, points), want);
    expect_gradient(draws, x, [&](const Tensor& t) { return sample(t, points); });
    if (mode != GridInterpolation::kNearest)
      expect_gradient(draws, grid, [&](const Tensor& t) { return sample(input, t); });
    EXPECT_THROW(sample(input, points.to(kFloat32)), Error);
    EXPECT_THROW(sample(input, points.narrow(-1, 0, spatial - 1)), Error);
    EXPECT_THROW(sample(input, cat({points, points})), Error);
    EXPECT_THROW(sample(input.narrow(2, 0, 0), points), Error);
    if (spatial == 3) {
      EXPECT_THROW(grid_sampler(input, points, 2, 0, false), Error);
    }
  });
}

TEST(GeneratedSampling, GridsOfAffineMaps) {
  for_each_case(331, 150, [](Draws& draws) {
    const std::int64_t spatial = draws.integer(2, 3), batch = draws.integer(1, 3);
    Sizes size = draws.sizes(spatial, 1, 5);
    const Array theta(draws.tensor({batch, spatial, spatial + 1}));
    const bool align_corners = draws.one_in(2);
    SCOPED_TRACE(text_of(size) + (align_corners ? ", corners" : ""));
    Sizes out = size;
    out.insert(out.begin(), batch);
    out.push_back(spatial);
    Array want(out);
    for_each_place(out, [&](const Sizes& at) {
      double sum = theta[{at[0], at.back(), spatial}];
      for (std::int64_t d = 0; d < spatial; ++d) {  // d 0 is x, the last dim of the size
        const auto dim = static_cast<std::size_t>(spatial - 1 - d);
        const auto n = static_cast<double>(size[dim]), i = static_cast<double>(at[dim + 1]);
        const double coordinate = align_corners ? (n > 1 ? 2 * i / (n - 1) - 1 : 0) : (2 * i + 1) / n - 1;
        sum += theta[{at[0], at.back(), d}] * coordinate;
      }
      want[at] = sum;
    });
    size.insert(size.begin(), {batch, draws.integer(1, 3)});
    const auto function = [&](const Tensor& t) { return affine_grid_generator(t, size, align_corners); };
    expect_near(function(draws.laid_out(theta)), want);
    expect_gradient(draws, theta, function);
  });
}

TEST(GeneratedSampling, PixelsShuffledAndBack) {
  for_each_case(337, 150, [](Draws& draws) {
    const std::int64_t r = draws.integer(1, 3), channels = draws.integer(1, 2);
    const Sizes leading = draws.sizes(draws.integer(0, 2), draws.one_in(8) ? 0 : 1, 2);
    const Sizes plane = draws.sizes(2, 1, 3);
    const auto with = [&](std::int64_t c, std::int64_t h, std::int64_t w) {
      Sizes sizes = leading;
      sizes.insert(sizes.end(), {c, h, w});
      return sizes;
    };
    const Array x(draws.tensor(with(channels * r * r, plane[0], plane[1])));
    SCOPED_TRACE(text_of(x.sizes) + " by " + std::to_string(r));
    Array want(with(channels, plane[0] * r, plane[1] * r));
    for_each_place(want.sizes, [&](const Sizes& at) {
      const std::size_t c = leading.size();
      Sizes from(at);
      from[c] = (at[c] * r + at[c + 1] % r) * r + at[c + 2] % r;
      from[c + 1] /= r;
      from[c + 2] /= r;
      want[at] = x[from];
    });
    expect_near(pixel_shuffle(draws.laid_out(x), r), want);
    expect_near(pixel_unshuffle(draws.laid_out(want), r), x);
    expect_gradient(draws, x, [&](const Tensor& t) { return pixel_shuffle(t, r); });
    expect_gradient(draws, want, [&](const Tensor& t) { return pixel_unshuffle(t, r); });
    const Tensor input = draws.laid_out(x);
    EXPECT_THROW(pixel_shuffle(input, 0), Error);
    EXPECT_THROW(pixel_unshuffle(input, -1), Error);
    EXPECT_THROW(pixel_shuffle(input, channels * r * r + 1), Error);
    EXPECT_THROW(pixel_unshuffle(input, plane[0] + 1), Error);
    EXPECT_THROW(pixel_unshuffle(input, plane[1] + 1), Error);
    EXPECT_THROW(pixel_shuffle(input.flatten(), 1), Error);
  });
}

}  // namespace
}  // namespace tenon::test
