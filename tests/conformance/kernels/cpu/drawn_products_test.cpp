// Matrix products and convolutions of drawn operands beside loops, in every dtype that they take. Sums of few small
// whole numbers are exact, so that only the result is rounded.
#include <tenon/kernel/attributes/linear.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "drawn.h"

namespace tenon::conformance {
namespace {

using DrawnProducts = CpuCase;
using DrawnConvolutions = CpuCase;

Doubles numbers_of(const Tensor& tensor) {
  Doubles all;
  for (i64 i = 0; tensor.defined() && i < tensor.count(); ++i) all.push_back(tensor.real(i));
  return all;
}
double& at(Doubles& all, i64 index) { return all[static_cast<std::size_t>(index)]; }
void expect_numbers(const Tensor& got, const Doubles& sums, const std::string& what) {
  Wanted wanted(got.dtype(), got.sizes());
  for (i64 i = 0; i < got.count(); ++i) wanted.set(i, sums[static_cast<std::size_t>(i)]);
  wanted.expect(got, what);
}

constexpr Dtype kMultiplied[] = {Dtype::kFloat32,  Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16,
                                 Dtype::kBFloat16, Dtype::kInt64,   Dtype::kInt32,   Dtype::kUInt8};

TEST_F(DrawnProducts, OfMatricesOfEveryLayoutWithAndWithoutAnAddend) {
  for_draws(350, [](Bench& bench, Draw& draw) {
    constexpr i64 kSides[] = {0, 1, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 48, 64, 65, 100};
    const i64 batch = draw.one_in(2) ? 0 : draw.number(1, 5), many = batch == 0 ? 1 : batch;
    i64 m = draw.any_of(kSides), n = draw.any_of(kSides), k = draw.any_of(kSides);
    if (draw.one_in(6)) (draw.one_in(2) ? m : n) = 1;
    if (many * m * n * k > 150000) k = draw.number(0, 20);
    const Dtype dtype = draw.any_of(kMultiplied);
    const auto sizes = [&](i64 rows, i64 columns) {
      return batch ? Sizes{batch, rows, columns} : Sizes{rows, columns};
    };
    const Tensor a = draw.spread(dtype, sizes(m, k)), b = draw.spread(dtype, sizes(k, n));
    const Tensor y = draw.room(dtype, sizes(m, n));
    const bool has_addend = draw.one_in(2);
    const Tensor addend = !has_addend      ? Tensor()
                          : draw.one_in(3) ? draw.fill(y, -3, 3)
                                           : draw.spread(dtype, sizes(m, n));
    MatmulAttributes attributes;
    if (draw.one_in(3)) attributes.alpha = static_cast<double>(draw.number(1, 3));
    if (draw.one_in(3)) attributes.beta = static_cast<double>(draw.number(0, 2));
    const Doubles left = numbers_of(a), right = numbers_of(b), added = numbers_of(addend);
    Doubles wanted;
    for (i64 i = 0; i < many * m * n; ++i) {
      double sum = 0;
      for (i64 p = 0; p < k; ++p)
        sum += left[static_cast<std::size_t>(i / n * k + p)] *
               right[static_cast<std::size_t>((i / (m * n) * k + p) * n + i % n)];
      wanted.push_back(attributes.alpha * sum +
                       (has_addend && attributes.beta != 0 ? attributes.beta * added[static_cast<std::size_t>(i)] : 0));
    }
    bench.run("matmul", {y}, {a, b, addend}, &attributes);
    expect_numbers(y, wanted, "product of " + std::to_string(k) + " terms");
  });
}

struct LargeProduct {
  const char* cut;  // along which operands of 16 bits become float32 in panels of 4 MiB
  i64 batch, m, k, n;
};
constexpr LargeProduct kLargeProducts[] = {
    {"terms", 0, 2, 350000, 1},
    {"terms, many columns", 0, 3, 30001, 33},
    {"rows", 0, 1200, 2, 900},
    {"columns", 0, 900, 3, 1250},
    {"products", 5, 300, 3, 700},
    {"nothing: a vector", 0, 1, 65, 9000},
    {"nothing: a column", 0, 9000, 65, 1},
};

void check_large_product(Bench& bench, Draw& draw, const LargeProduct& c, Dtype dtype) {
  const auto sizes = [&](i64 rows, i64 columns) {
    return c.batch ? Sizes{c.batch, rows, columns} : Sizes{rows, columns};
  };
  const Tensor a = draw.operand(dtype, sizes(c.m, c.k), -1, 1), b = draw.operand(dtype, sizes(c.k, c.n), -1, 1);
  const Tensor y = draw.room(dtype, sizes(c.m, c.n));
  const Tensor addend = draw.one_in(2) ? draw.spread(dtype, sizes(c.m, c.n)) : Tensor();
  const Doubles left = numbers_of(a), right = numbers_of(b), added = numbers_of(addend);
  bench.run("matmul", {y}, {a, b, addend});
  // Of long sums all elements, of others those of some lines.
  const i64 step = c.k > 1000 ? 1 : 97;
  for (i64 i = 0; i < y.count(); i += step) {
    double sum = added.empty() ? 0 : added[static_cast<std::size_t>(i)];
    for (i64 p = 0; p < c.k; ++p)
      sum += left[static_cast<std::size_t>(i / c.n * c.k + p)] *
             right[static_cast<std::size_t>((i / (c.m * c.n) * c.k + p) * c.n + i % c.n)];
    Tensor wanted(dtype, {});
    wanted.set(0, sum);
    ASSERT_EQ(y.real(i), wanted.real(0)) << c.cut << ", " << name_of(dtype) << " " << to_string(a.sizes()) << " by "
                                         << to_string(b.sizes()) << " at " << i;
  }
}

TEST_F(DrawnProducts, OfLargeMatricesInPanelsAndOnAllThreads) {
  Bench& bench = *benches().front();
  bench.enter();
  std::uint64_t seed = 0;
  for (const LargeProduct& c : kLargeProducts) {
    Draw draw(++seed);
    bench.driver().set_threads(static_cast<int>(1 + seed % 3));
    check_large_product(bench, draw, c, Dtype::kFloat16);
    check_large_product(bench, draw, c, seed % 2 == 0 ? Dtype::kBFloat16 : Dtype::kFloat32);
  }
}

struct Convolution {
  Sizes x, w, y;
  ConvAttributes a;

  /// Calls visit(element of y, of x, of w) for each product.
  template <class F>
  void products(const F& visit) const {
    const i64 in = w[1], out_group = w[0] / a.groups;
    const auto spatial = static_cast<std::size_t>(a.spatial);
    Sizes in_plane(x.begin() + 2, x.end()), out_plane(y.begin() + 2, y.end()), window(w.begin() + 2, w.end());
    const i64 taps = product_of_sizes(window), positions = product_of_sizes(out_plane),
              plane = product_of_sizes(in_plane);
    for (i64 tap = 0; tap < taps; ++tap) {
      const Sizes k = coordinates(tap, window);
      for (i64 position = 0; position < positions; ++position) {
        const Sizes o = coordinates(position, out_plane);
        i64 from = 0;
        bool inside = true;
        for (std::size_t d = 0; d < spatial; ++d) {
          const i64 place = o[d] * a.stride[d] - a.padding[d] + k[d] * a.dilation[d];
          inside = inside && place >= 0 && place < in_plane[d];
          from = from * in_plane[d] + place;
        }
        if (!inside) continue;
        for (i64 n = 0; n < x[0]; ++n) {
          for (i64 o_channel = 0; o_channel < w[0]; ++o_channel) {
            for (i64 c = 0; c < in; ++c)
              visit((n * w[0] + o_channel) * positions + position,
                    (n * x[1] + o_channel / out_group * in + c) * plane + from, (o_channel * in + c) * taps + tap);
          }
        }
      }
    }
  }
};

Convolution any_convolution(Draw& draw) {
  constexpr i64 kChannels[] = {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 24, 32, 33, 40};
  for (;;) {
    Convolution c;
    c.a.spatial = draw.one_in(3) ? (draw.one_in(2) ? 1 : 3) : 2;
    c.a.groups = draw.one_in(4) ? draw.number(2, 4) : 1;
    const i64 batch = draw.number(1, 5);
    i64 in = draw.any_of(kChannels), out = draw.any_of(kChannels);
    if (c.a.groups > 1 && draw.one_in(3)) in = out = 1;  // a window for each channel
    c.x = {batch, in * c.a.groups};
    c.w = {out * c.a.groups, in};
    c.y = {batch, c.w[0]};
    const bool is_plain = draw.one_in(3);
    const i64 kernel = draw.number(1, 4), padding = draw.number(0, 2);
    bool fits = true;
    for (int d = 0; d < c.a.spatial; ++d) {
      const i64 size = draw.number(1, c.a.spatial == 3 ? 6 : 13);
      c.a.stride[d] = is_plain ? 1 : draw.number(1, 3);
      c.a.dilation[d] = is_plain ? 1 : draw.number(1, 2);
      c.a.padding[d] = is_plain ? padding : draw.number(0, 3);
      const i64 window = is_plain ? kernel : draw.number(1, 4);
      const i64 left = size + 2 * c.a.padding[d] - c.a.dilation[d] * (window - 1) - 1;
      fits = fits && left >= 0;
      c.x.push_back(size);
      c.w.push_back(window);
      c.y.push_back(left / c.a.stride[d] + 1);
    }
    if (fits && product_of_sizes(c.y) * product_of_sizes(c.w) / c.w[0] <= 150000) return c;
  }
}

// Each way that a convolution goes is chosen by sizes, layouts and dtype; all of them sum up the same products.
TEST_F(DrawnConvolutions, OfEveryShapeLayoutAndDtypeAreThoseOfLoopsWithTheirGradients) {
  for_draws(90, [](Bench& bench, Draw& draw) {
    const Convolution c = any_convolution(draw);
    const Dtype dtypes[] = {Dtype::kFloat32,  Dtype::kFloat32, Dtype::kFloat32,
                            Dtype::kBFloat16, Dtype::kFloat16, Dtype::kFloat64};
    const Dtype dtype = draw.any_of(dtypes);
    const auto layout = [&] {
      const Layout layouts[] = {Layout::kContiguous,   Layout::kContiguous,   Layout::kContiguous,
                                Layout::kChannelsLast, Layout::kChannelsLast, Layout::kTransposed};
      return draw.any_of(layouts);
    };
    const auto numbers = [&](const Sizes& sizes) { return draw.fill(Tensor(dtype, sizes, layout()), -2, 2); };
    const Tensor x = numbers(c.x), w = numbers(c.w), dy = numbers(c.y);
    const Tensor bias = draw.one_in(2) ? draw.fill(Tensor(dtype, {c.w[0]}), -2, 2) : Tensor();
    const Tensor y(dtype, c.y, layout()), dx(dtype, c.x, layout()), dw(dtype, c.w, layout());
    bench.run("conv", {y}, {x, w, bias}, &c.a);
    bench.run("conv_backward_input", {dx}, {dy, w}, &c.a);
    bench.run("conv_backward_weight", {dw}, {dy, x}, &c.a);
    const Doubles xs = numbers_of(x), ws = numbers_of(w), dys = numbers_of(dy), biases = numbers_of(bias);
    Doubles ys(dys.size()), dxs(xs.size()), dws(ws.size());
    const i64 positions = product_of_sizes(c.y) / c.y[0] / c.y[1];
    for (i64 i = 0; bias.defined() && i < y.count(); ++i)
      at(ys, i) = biases[static_cast<std::size_t>(i / positions % c.w[0])];
    c.products([&](i64 to, i64 from, i64 weight) {
      at(ys, to) += xs[static_cast<std::size_t>(from)] * ws[static_cast<std::size_t>(weight)];
      at(dxs, from) += dys[static_cast<std::size_t>(to)] * ws[static_cast<std::size_t>(weight)];
      at(dws, weight) += dys[static_cast<std::size_t>(to)] * xs[static_cast<std::size_t>(from)];
    });
    const std::string which = "x " + to_string(c.x) + " w " + to_string(c.w) + " groups " + std::to_string(c.a.groups);
    expect_numbers(y, ys, "y, " + which);
    expect_numbers(dx, dxs, "dx, " + which);
    expect_numbers(dw, dws, "dw, " + which);
  });
}

// What oneDNN computes has no columns in scratch: a convolution whose padding at its end it was told wrongly would be
// refused, and go the long way.
TEST_F(DrawnConvolutions, OfFloatsTakeLittleRoomWhateverTheirLayoutStridesPaddingAndDilation) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "oneDNN itself takes columns here";
  Bench& bench = *benches().front();
  bench.enter();
  bench.driver().set_threads(3);
  for (const int spatial : {1, 2, 3}) {
    for (int which = 0; which < 16; ++which) {
      Convolution c;
      c.a.spatial = spatial;
      c.x = {3, 16}, c.w = {16, 16}, c.y = {3, 16};
      i64 window = 1;
      for (int d = 0; d < spatial; ++d) {
        const bool is_first = d == 0;
        c.a.stride[d] = (which & 1) != 0 && is_first ? 3 : (which & 2) != 0 ? 2 : 1;
        c.a.dilation[d] = (which & 4) != 0 && !is_first ? 2 : 1;
        c.a.padding[d] = (which & 8) != 0 ? d + 1 : 0;
        c.x.push_back(spatial == 1 ? 200 : spatial == 2 ? 23 + d : 11 + d);
        c.w.push_back(spatial == 3 ? 4 : 7);
        window *= c.w.back();
        c.y.push_back((c.x.back() + 2 * c.a.padding[d] - c.a.dilation[d] * (c.w.back() - 1) - 1) / c.a.stride[d] + 1);
      }
      SCOPED_TRACE(::testing::Message() << to_string(c.x) << " by " << to_string(c.w) << ", case " << which);
      const i64 columns = c.y[0] * 16 * window * product_of_sizes(c.y) / c.y[0] / c.y[1] * 4;
      for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast}) {
        const auto ones = [&](const Sizes& sizes) {
          return Tensor(Dtype::kFloat32, sizes, layout).fill([](i64) { return 1; });
        };
        const Tensor x = ones(c.x), w = ones(c.w), y(Dtype::kFloat32, c.y, layout);
        EXPECT_LT(bench.workspace_of("conv", {y}, {x, w, Tensor()}, &c.a), columns) << name_of(layout);
      }
    }
  }
}

// oneDNN reads rooms that it never wrote where an element of the window meets padding alone.
TEST_F(DrawnConvolutions, ElementsOfAWindowThatMeetPaddingAloneHaveNoGradient) {
  for_draws(40, [](Bench& bench, Draw& draw) {
    constexpr i64 kChannels[] = {1, 3, 8, 16, 17, 32, 64};
    const Dtype dtype = draw.one_in(2) ? Dtype::kFloat32 : Dtype::kBFloat16;
    const int spatial = static_cast<int>(draw.number(1, 3));
    const i64 in = draw.any_of(kChannels), out = draw.any_of(kChannels);
    Convolution c{.x = {draw.number(1, 4), in}, .w = {out, in}, .y = {}, .a = {.spatial = spatial}};
    c.y = {c.x[0], out};
    for (int d = 0; d < spatial; ++d) {
      const i64 size = draw.number(1, 2), padding = draw.number(1, 3);
      c.a.padding[d] = padding;
      c.a.stride[d] = draw.number(1, 2);
      c.x.push_back(size);
      c.w.push_back(draw.number(1, size + 2 * padding));
      c.y.push_back((size + 2 * padding - c.w.back()) / c.a.stride[d] + 1);
    }
    if (product_of_sizes(c.w) * product_of_sizes(c.y) / out > 400000) return;
    const Tensor x = draw.plain(dtype, c.x, 1, 3), dy = draw.plain(dtype, c.y, 1, 3), dw(dtype, c.w);
    bench.run("conv_backward_weight", {dw}, {dy, x}, &c.a);
    const Doubles xs = numbers_of(x), dys = numbers_of(dy);
    Doubles dws(static_cast<std::size_t>(dw.count()));
    c.products([&](i64 to, i64 from, i64 weight) {
      at(dws, weight) += dys[static_cast<std::size_t>(to)] * xs[static_cast<std::size_t>(from)];
    });
    expect_numbers(dw, dws, "dw, x " + to_string(c.x) + " w " + to_string(c.w));
  });
}

}  // namespace
}  // namespace tenon::conformance
