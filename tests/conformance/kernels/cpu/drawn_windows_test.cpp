// Pooling and folding of drawn pictures beside loops.
#include <tenon/kernel/attributes/linear.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "drawn.h"

namespace tenon::conformance {
namespace {

using DrawnWindows = CpuCase;

struct Pool {
  Sizes x, y;
  PoolAttributes a;
  i64 planes = 1, in_plane = 1, out_plane = 1;

  Sizes in() const { return {x.begin() + 2, x.end()}; }
  Sizes out() const { return {y.begin() + 2, y.end()}; }
  /// Calls visit(element of the plane) for what output `o` of a plane sees, in its order; says how many taps lie inside
  /// the padded picture.
  template <class F>
  i64 window(i64 o, const F& visit) const {
    const Sizes at = coordinates(o, out()), sizes = in();
    Sizes taps(a.kernel, a.kernel + a.spatial);
    i64 padded = 0;
    for (i64 k = 0; k < product_of_sizes(taps); ++k) {
      const Sizes tap = coordinates(k, taps);
      i64 place = 0;
      bool inside = true, in_padding = true;
      for (std::size_t d = 0; d < at.size(); ++d) {
        const i64 p = at[d] * a.stride[d] - a.padding[d] + tap[d] * a.dilation[d];
        inside = inside && p >= 0 && p < sizes[d];
        in_padding = in_padding && p < sizes[d] + a.padding[d];
        place = place * sizes[d] + p;
      }
      padded += in_padding ? 1 : 0;
      if (inside) visit(place);
    }
    return padded;
  }
};

/// `is_average`: windows without dilation, each of which reaches the picture.
Pool any_pool(Draw& draw, bool is_average) {
  for (;;) {
    Pool p;
    p.a.spatial = draw.one_in(2) ? 2 : static_cast<std::int32_t>(draw.number(1, 3));
    p.x = {draw.number(1, 3), draw.number(1, 4)};
    const bool is_two_by_two = draw.one_in(4);
    bool fits = true;
    p.y = p.x;
    for (int d = 0; d < p.a.spatial; ++d) {
      constexpr i64 kSides[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 34, 66};
      i64 size = draw.any_of(kSides);
      if (p.a.spatial == 2 && d == 1 && draw.one_in(15)) size = draw.number(1020, 1040);
      if (p.a.spatial == 3) size = draw.number(1, 8);
      p.a.kernel[d] = is_two_by_two ? 2 : draw.number(1, 4);
      p.a.stride[d] = is_two_by_two ? 2 : draw.number(1, 4);
      p.a.padding[d] = is_two_by_two ? 0 : draw.number(0, p.a.kernel[d] / 2);
      p.a.dilation[d] = is_two_by_two || is_average ? 1 : draw.number(1, 2);
      const i64 left = size + 2 * p.a.padding[d] - p.a.dilation[d] * (p.a.kernel[d] - 1) - 1;
      fits = fits && left >= 0;
      i64 out = left / p.a.stride[d] + 1;
      // Rounded up where the last window still begins in the picture.
      if (draw.one_in(3) && left % p.a.stride[d] != 0 && out * p.a.stride[d] < size + p.a.padding[d]) ++out;
      p.x.push_back(size);
      p.y.push_back(out);
    }
    p.planes = p.x[0] * p.x[1];
    p.in_plane = product_of_sizes(p.in());
    p.out_plane = product_of_sizes(p.out());
    if (fits && p.planes * p.out_plane < 9000) return p;
  }
}

TEST_F(DrawnWindows, TheFirstMaximumOfEachAndItsGradient) {
  for_draws(120, [](Bench& bench, Draw& draw) {
    const Pool p = any_pool(draw, false);
    const Dtype dtypes[] = {Dtype::kFloat32, Dtype::kFloat32, Dtype::kFloat64,
                            Dtype::kFloat16, Dtype::kInt64,   Dtype::kInt32};
    const Dtype dtype = draw.any_of(dtypes);
    const bool is_floating = dtype >= Dtype::kFloat16;
    Tensor x = draw.plain(dtype, p.x);
    if (is_floating && draw.one_in(3)) x.set(draw.number(0, x.count() - 1), std::nan(""));
    if (is_floating && draw.one_in(3)) x.set(draw.number(0, x.count() - 1), -kInfinity);
    const Tensor dy = draw.plain(dtype, p.y), y(dtype, p.y), index(Dtype::kInt64, p.y), dx(dtype, p.x);
    bench.run("max_pool", {y, index}, {x}, &p.a);
    bench.run("max_pool_backward", {dx}, {dy, index}, &p.a);
    Wanted values(dtype, p.y), places(Dtype::kInt64, p.y), slopes(dtype, p.x);
    Doubles sums(static_cast<std::size_t>(x.count()));
    for (i64 i = 0; i < y.count(); ++i) {
      const i64 plane = i / p.out_plane * p.in_plane;
      i64 best = -1;
      p.window(i % p.out_plane, [&](i64 place) {
        const double one = x.real(plane + place);
        if (best < 0 || std::isnan(one) || one > x.real(plane + best)) best = place;
      });
      places.set(i, static_cast<double>(best));
      if (best >= 0) sums[static_cast<std::size_t>(plane + best)] += dy.real(i);
      // Of padding alone nothing is less.
      values.set(i, best >= 0 ? x.real(plane + best) : is_floating ? -kInfinity : y.real(i));
    }
    for (i64 i = 0; i < dx.count(); ++i) slopes.set(i, sums[static_cast<std::size_t>(i)]);
    const std::string which = to_string(p.x);
    values.expect(y, "max_pool of " + which);
    places.expect(index, "index of " + which);
    slopes.expect(dx, "max_pool_backward of " + which);
  });
}

TEST_F(DrawnWindows, TheMeanOfEachAndItsGradient) {
  for_draws(90, [](Bench& bench, Draw& draw) {
    Pool p = any_pool(draw, true);
    p.a.count_include_pad = draw.one_in(2);
    p.a.divisor_override = draw.one_in(4) ? draw.number(1, 7) : 0;
    const Dtype dtypes[] = {Dtype::kFloat32, Dtype::kFloat64, Dtype::kBFloat16};
    const Dtype dtype = draw.any_of(dtypes);
    const Tensor x = draw.plain(dtype, p.x), dy = draw.plain(dtype, p.y), y(dtype, p.y), dx(dtype, p.x);
    bench.run("avg_pool", {y}, {x}, &p.a);
    bench.run("avg_pool_backward", {dx}, {dy}, &p.a);
    Doubles means, slopes(static_cast<std::size_t>(x.count()));
    for (i64 i = 0; i < y.count(); ++i) {
      const i64 plane = i / p.out_plane * p.in_plane;
      double sum = 0;
      i64 inside = 0;
      const i64 padded = p.window(i % p.out_plane, [&](i64 place) {
        sum += x.real(plane + place);
        ++inside;
      });
      const i64 divisor = p.a.divisor_override != 0 ? p.a.divisor_override : p.a.count_include_pad ? padded : inside;
      means.push_back(inside == 0 && divisor == 0 ? y.real(i) : sum / static_cast<double>(divisor));
      p.window(i % p.out_plane, [&](i64 place) {
        slopes[static_cast<std::size_t>(plane + place)] += dy.real(i) / static_cast<double>(divisor);
      });
    }
    const double e = 16 * epsilon_of(dtype);
    expect_near(
        y, [&](i64 i) { return means[static_cast<std::size_t>(i)]; }, e, "avg_pool", e);
    expect_near(
        dx, [&](i64 i) { return slopes[static_cast<std::size_t>(i)]; }, e, "avg_pool_backward", e);
  });
}

TEST_F(DrawnWindows, AdaptiveOnesReachFromShareToShare) {
  for_draws(90, [](Bench& bench, Draw& draw) {
    PoolAttributes a{.spatial = static_cast<std::int32_t>(draw.number(1, 3))};
    Sizes x_sizes{draw.number(1, 3), draw.number(1, 3)}, y_sizes = x_sizes;
    for (int d = 0; d < a.spatial; ++d) {
      x_sizes.push_back(draw.number(1, a.spatial == 3 ? 7 : 12));
      y_sizes.push_back(draw.number(1, a.spatial == 3 ? 7 : 12));
    }
    const Sizes in(x_sizes.begin() + 2, x_sizes.end()), out(y_sizes.begin() + 2, y_sizes.end());
    const i64 in_plane = product_of_sizes(in), out_plane = product_of_sizes(out);
    const Dtype dtype = draw.one_in(2) ? Dtype::kFloat32 : Dtype::kFloat64;
    const Tensor x = draw.plain(dtype, x_sizes), dy = draw.plain(dtype, y_sizes), y(dtype, y_sizes),
                 index(Dtype::kInt64, y_sizes), mean(dtype, y_sizes), dx(dtype, x_sizes);
    bench.run("adaptive_max_pool", {y, index}, {x}, &a);
    bench.run("adaptive_avg_pool", {mean}, {x}, &a);
    bench.run("adaptive_avg_pool_backward", {dx}, {dy}, &a);
    Doubles slopes(static_cast<std::size_t>(x.count()));
    for (i64 i = 0; i < y.count(); ++i) {
      const Sizes at = coordinates(i % out_plane, out);
      const i64 plane = i / out_plane * in_plane;
      std::vector<i64> seen;
      for (i64 k = 0; k < in_plane; ++k) {
        const Sizes place = coordinates(k, in);
        bool inside = true;
        for (std::size_t d = 0; d < in.size(); ++d)
          inside =
              inside && place[d] >= at[d] * in[d] / out[d] && place[d] < ((at[d] + 1) * in[d] + out[d] - 1) / out[d];
        if (inside) seen.push_back(k);
      }
      double sum = 0;
      i64 best = seen[0];
      for (const i64 k : seen) {
        sum += x.real(plane + k);
        if (x.real(plane + k) > x.real(plane + best)) best = k;
        slopes[static_cast<std::size_t>(plane + k)] += dy.real(i) / static_cast<double>(seen.size());
      }
      ASSERT_EQ(index.integer(i), best) << i;
      ASSERT_EQ(y.real(i), x.real(plane + best)) << i;
      ASSERT_NEAR(mean.real(i), sum / static_cast<double>(seen.size()), 1e-6) << i;
    }
    const double e = 16 * epsilon_of(dtype);
    expect_near(
        dx, [&](i64 i) { return slopes[static_cast<std::size_t>(i)]; }, e, "gradient", e);
  });
}

TEST_F(DrawnWindows, ColumnsHoldTheWindowsAndAreAddedBack) {
  for_draws(60, [](Bench& bench, Draw& draw) {
    PoolAttributes a;
    const i64 batch = draw.number(1, 3), channels = draw.number(1, 4);
    Sizes size(2), out(2);
    for (std::size_t d = 0; d < 2; ++d) {
      do {
        size[d] = draw.number(1, 9);
        a.kernel[d] = draw.number(1, 3);
        a.stride[d] = draw.number(1, 3);
        a.padding[d] = draw.number(0, 2);
        a.dilation[d] = draw.number(1, 2);
        out[d] = size[d] + 2 * a.padding[d] - a.dilation[d] * (a.kernel[d] - 1) - 1;
      } while (out[d] < 0);
      out[d] = out[d] / a.stride[d] + 1;
    }
    const i64 taps = a.kernel[0] * a.kernel[1], windows = out[0] * out[1];
    const Dtype dtypes[] = {Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt32, Dtype::kInt64, Dtype::kFloat16};
    const Dtype dtype = draw.any_of(dtypes);
    const Sizes picture{batch, channels, size[0], size[1]}, columns{batch, channels * taps, windows};
    const Tensor x = draw.plain(dtype, picture), dy = draw.plain(dtype, columns), y(dtype, columns), dx(dtype, picture);
    bench.run("im2col", {y}, {x}, &a);
    bench.run("col2im", {dx}, {dy}, &a);
    Wanted wanted(dtype, columns), back(dtype, picture);
    Doubles sums(static_cast<std::size_t>(x.count()));
    for (i64 i = 0; i < y.count(); ++i) {
      const i64 window = i % windows, tap = i / windows % taps, plane = i / windows / taps;
      const i64 row = window / out[1] * a.stride[0] - a.padding[0] + tap / a.kernel[1] * a.dilation[0];
      const i64 column = window % out[1] * a.stride[1] - a.padding[1] + tap % a.kernel[1] * a.dilation[1];
      const bool inside = row >= 0 && row < size[0] && column >= 0 && column < size[1];
      const i64 place = (plane * size[0] + row) * size[1] + column;
      wanted.set(i, inside ? x.real(place) : 0);
      if (inside) sums[static_cast<std::size_t>(place)] += dy.real(i);
    }
    for (i64 i = 0; i < dx.count(); ++i) back.set(i, sums[static_cast<std::size_t>(i)]);
    wanted.expect(y, "im2col");
    back.expect(dx, "col2im");
  });
}

}  // namespace
}  // namespace tenon::conformance
