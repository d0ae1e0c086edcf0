// matmul and convolutions against loops in double.
// Long: the cases share the loops that they are held against.
#include <tenon/kernel/attributes/linear.h>

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "harness.h"
#include "support/every_device.h"
#include "target.h"

namespace tenon::conformance {
namespace {

double product(const Tensor& a, const Tensor& b, i64 batch, i64 i, i64 j) {
  const std::size_t r = a.sizes().size();
  const i64 m = a.sizes()[r - 2], k = a.sizes()[r - 1], n = b.sizes()[r - 1];
  double sum = 0;
  for (i64 p = 0; p < k; ++p) sum += a.real((batch * m + i) * k + p) * b.real((batch * k + p) * n + j);
  return sum;
}

// A rounding of every partial sum, at the size that sums have here.
double bound(Dtype dtype, i64 terms, double want) {
  const double compute = dtype == Dtype::kFloat64 ? 0x1p-53 : 0x1p-24;
  return epsilon_of(dtype) * 2 * std::fabs(want) + compute * 4 * static_cast<double>(terms + 4);
}

/// What a sum of few integers becomes in one of 8 bits; others hold it.
double wrapped(Dtype dtype, double sum) {
  if (dtype == Dtype::kUInt8) return static_cast<std::uint8_t>(static_cast<i64>(sum));
  if (dtype == Dtype::kInt8) return static_cast<std::int8_t>(static_cast<i64>(sum));
  return sum;
}

/// On a slow target, products of many terms have every pair of layouts, each in one triple; they have all triples where
/// every device is asked for (TENON_TEST_DEVICES=all), and those of few terms always.
bool is_left_out(i64 terms, Layout left, Layout right, Layout out) {
  if (!target().slow || terms < 2000 || test::wants_every_device()) return false;
  return (static_cast<int>(left) + static_cast<int>(right) + static_cast<int>(out)) % 3 != 0;
}

TEST(Matmul, MatchesLoopsForEveryLayoutAndType) {
  struct Case {
    i64 batch, m, k, n;
  };
  std::map<std::pair<i64, Dtype>, std::vector<double>> known;  // the same numbers in every layout and at every level
  for_each_bench([&](Bench& bench) {
    i64 number = 0;
    for (const Case c :
         {Case{0, 1, 1, 1}, Case{0, 7, 13, 5}, Case{0, 128, 37, 10}, Case{0, 33, 0, 4}, Case{0, 1, 65, 130},
          Case{0, 131, 1, 67}, Case{3, 7, 5, 9}, Case{5, 1, 17, 1}, Case{2, 40, 33, 70}, Case{0, 0, 3, 2}}) {
      ++number;
      for (const Dtype dtype : kAllTypes) {
        if (dtype == Dtype::kBool) continue;
        std::vector<double>& wanted = known[{number, dtype}];
        for (const Layout left : {Layout::kContiguous, Layout::kTransposed, Layout::kStrided}) {
          for (const Layout right : {Layout::kContiguous, Layout::kTransposed, Layout::kStrided}) {
            for (const Layout out : {Layout::kContiguous, Layout::kTransposed, Layout::kStrided}) {
              if (is_left_out(c.m * c.k * c.n, left, right, out)) continue;
              Random random(41);
              auto sizes = [&](i64 rows, i64 columns) {
                return c.batch ? Sizes{c.batch, rows, columns} : Sizes{rows, columns};
              };
              const Tensor a = random_tensor(dtype, sizes(c.m, c.k), left, random);
              const Tensor b = random_tensor(dtype, sizes(c.k, c.n), right, random);
              Tensor y(dtype, sizes(c.m, c.n), out);
              bench.run("matmul", {y}, {a, b, Tensor()});
              for (i64 i = static_cast<i64>(wanted.size()); i < y.count(); ++i)
                wanted.push_back(wrapped(dtype, product(a, b, i / (c.m * c.n), i / c.n % c.m, i % c.n)));
              for (i64 i = 0; i < y.count(); ++i) {
                const double want = wanted[static_cast<std::size_t>(i)];
                ASSERT_LE(std::fabs(y.real(i) - want), bound(dtype, c.k, want))
                    << name_of(dtype) << " " << c.batch << " x " << c.m << " x " << c.k << " x " << c.n << " "
                    << name_of(left) << " " << name_of(right) << " " << name_of(out) << " at " << i << ": got "
                    << y.real(i) << ", expected " << want;
              }
            }
          }
        }
      }
    }
  });
}

// By rows of the matrix where they are contiguous: as many terms as vectors of them, and some more.
TEST(Matmul, MultipliesAMatrixByAVectorRowByRow) {
  for_each_bench([](Bench& bench) {
    Random random(47);
    for (const i64 terms : {1, 15, 16, 31, 64, 79, 784, 20000}) {
      const i64 rows = terms > 1000 ? 3 : 37;
      const Tensor matrix = random_tensor(Dtype::kFloat32, {rows, terms}, Layout::kContiguous, random);
      const Tensor turned = random_tensor(Dtype::kFloat32, {terms, rows}, Layout::kTransposed, random);
      const Tensor column = random_tensor(Dtype::kFloat32, {terms, 1}, Layout::kContiguous, random);
      const Tensor row = random_tensor(Dtype::kFloat32, {1, terms}, Layout::kContiguous, random);
      for (const double beta : {0.0, 1.0, 3.0}) {
        const MatmulAttributes attributes{.alpha = 0.5, .beta = beta};
        for (const bool on_the_left : {false, true}) {
          const Tensor &a = on_the_left ? row : matrix, &b = on_the_left ? turned : column;
          const Sizes sizes = on_the_left ? Sizes{1, rows} : Sizes{rows, 1};
          const Tensor addend = random_tensor(Dtype::kFloat32, sizes, Layout::kContiguous, random);
          Tensor y(Dtype::kFloat32, sizes);
          bench.run("matmul", {y}, {a, b, addend}, &attributes);
          for (i64 i = 0; i < rows; ++i) {
            const double exact = product(a, b, 0, on_the_left ? 0 : i, on_the_left ? i : 0);
            const double want = 0.5 * exact + beta * addend.real(i);
            ASSERT_LE(std::fabs(y.real(i) - want), bound(Dtype::kFloat32, terms, want) + 0x1p-21)
                << terms << " terms, beta " << beta << (on_the_left ? ", vector on the left" : "") << " at " << i
                << ": got " << y.real(i) << ", expected " << want;
          }
        }
      }
    }
  });
}

TEST(Matmul, ScalesAndAddsABroadcastAddend) {
  for_each_bench([](Bench& bench) {
    Random random(43);
    for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64}) {
      const Tensor a = random_tensor(dtype, {33, 20}, Layout::kContiguous, random);
      const Tensor b = random_tensor(dtype, {20, 17}, Layout::kTransposed, random);
      const Tensor bias = random_tensor(dtype, {17}, Layout::kContiguous, random);
      Tensor y(dtype, {33, 17});
      MatmulAttributes attributes{.alpha = 0.5, .beta = 3};
      bench.run("matmul", {y}, {a, b, bias.expanded({33, 17})}, &attributes);
      for (i64 i = 0; i < y.count(); ++i) {
        const double want = 0.5 * product(a, b, 0, i / 17, i % 17) + 3 * bias.real(i % 17);
        ASSERT_LE(std::fabs(y.real(i) - want), bound(dtype, 40, want));
      }
      // Into itself, and an addend that beta = 0 must not read.
      Tensor z(dtype, {33, 17});
      z.fill([](i64 i) { return static_cast<double>(i % 5); });
      bench.run("matmul", {z}, {a, b, z}, &attributes);
      ASSERT_LE(std::fabs(z.real(8) - (0.5 * product(a, b, 0, 0, 8) + 3 * 3)), bound(dtype, 40, 20));
      attributes.beta = 0;
      Tensor poison(dtype, {33, 17});
      poison.fill([](i64) { return std::nan(""); });
      bench.run("matmul", {z}, {a, b, poison}, &attributes);
      ASSERT_LE(std::fabs(z.real(8) - 0.5 * product(a, b, 0, 0, 8)), bound(dtype, 40, 20));
    }
  });
}

// One matrix for all of a batch is one tall product only where the addend follows as its rows do.
TEST(Matmul, OfABatchWithOneMatrixAddsWhateverStridesTheAddendHas) {
  for_each_bench([](Bench& bench) {
    Random random(53);
    const Sizes sizes{3, 4, 6};
    for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64}) {
      const Tensor a = random_tensor(dtype, {3, 4, 5}, Layout::kContiguous, random);
      const Tensor b = random_tensor(dtype, {5, 6}, Layout::kContiguous, random).expanded({3, 5, 6});
      const MatmulAttributes attributes{.alpha = 0.5, .beta = 3};
      for (const Sizes& own : {Sizes{3, 4, 6}, Sizes{4, 6}, Sizes{6}, Sizes{3, 1, 6}, Sizes{3, 1, 1}, Sizes{4, 1}}) {
        const Tensor addend = random_tensor(dtype, own, Layout::kContiguous, random).expanded(sizes);
        Tensor y(dtype, sizes);
        bench.run("matmul", {y}, {a, b, addend}, &attributes);
        for (i64 i = 0; i < y.count(); ++i) {
          const double want = 0.5 * product(a, b, i / 24, i / 6 % 4, i % 6) + 3 * addend.real(i);
          ASSERT_LE(std::fabs(y.real(i) - want), bound(dtype, 40, want))
              << name_of(dtype) << ", an addend of " << own.size() << " dimensions, the first " << own[0] << ", at "
              << i;
        }
      }
    }
  });
}

TEST(Matmul, BroadcastsABatchWithStrideZero) {
  for_each_bench([](Bench& bench) {
    Random random(47);
    const Tensor a = random_tensor(Dtype::kFloat32, {4, 9, 20}, Layout::kContiguous, random);
    const Tensor b = random_tensor(Dtype::kFloat32, {1, 20, 17}, Layout::kContiguous, random).expanded({4, 20, 17});
    Tensor y(Dtype::kFloat32, {4, 9, 17});
    bench.run("matmul", {y}, {a, b, Tensor()});
    for (i64 i = 0; i < y.count(); ++i) {
      const double want = product(a, b, i / (9 * 17), i / 17 % 9, i % 17);
      ASSERT_LE(std::fabs(y.real(i) - want), bound(Dtype::kFloat32, 20, want));
    }
  });
}

// Rows of all products that follow each other at one distance are no tall matrix yet: they may overlap, or their
// elements lie apart.
TEST(Matmul, TakesABatchForOneTallMatrixOnlyWhereItIsOne) {
  struct Case {
    Sizes a, a_strides, y_strides;
  };
  for_each_bench([](Bench& bench) {
    for (const Case& c : {Case{{4, 1, 20}, {40, 40, 2}, {17, 17, 1}},    // x[:, None, ::2]
                          Case{{4, 1, 20}, {20, 20, 1}, {34, 34, 2}},    // the result so
                          Case{{4, 3, 20}, {3, 1, 3}, {51, 17, 1}},      // x.unfold(0, 20, 1)
                          Case{{4, 1, 20}, {1, 1, 1}, {17, 17, 1}},      // the same of one column
                          Case{{4, 3, 20}, {60, 20, 1}, {51, 1, 3}}}) {  // the result column by column
      Random random(53);
      const Tensor a = random_tensor(Dtype::kFloat32, {240}, Layout::kContiguous, random).restrided(c.a, c.a_strides);
      const Tensor b = random_tensor(Dtype::kFloat32, {1, 20, 17}, Layout::kContiguous, random).expanded({4, 20, 17});
      const Tensor y = Tensor(Dtype::kFloat32, {204}).restrided({4, c.a[1], 17}, c.y_strides);
      bench.run("matmul", {y}, {a, b, Tensor()});
      for (i64 i = 0; i < y.count(); ++i) {
        const double want = product(a, b, i / (c.a[1] * 17), i / 17 % c.a[1], i % 17);
        ASSERT_LE(std::fabs(y.real(i) - want), bound(Dtype::kFloat32, 20, want))
            << c.a[1] << " rows " << c.a_strides[0] << " apart, at " << i;
      }
    }
  });
}

struct ConvCase {
  Sizes x, w;
  ConvAttributes a;
};

ConvCase conv_case(Sizes x, Sizes w, i64 stride, i64 padding, i64 dilation, i64 groups) {
  ConvCase c{std::move(x), std::move(w), {}};
  c.a.spatial = static_cast<std::int32_t>(c.x.size()) - 2;
  c.a.groups = groups;
  for (int d = 0; d < c.a.spatial; ++d) {
    c.a.stride[d] = stride;
    c.a.padding[d] = padding;
    c.a.dilation[d] = dilation;
  }
  return c;
}

std::vector<ConvCase> conv_cases() {
  return {
      conv_case({2, 1, 8, 8}, {6, 1, 5, 5}, 1, 2, 1, 1),
      conv_case({4, 6, 9, 7}, {16, 6, 3, 3}, 1, 0, 1, 1),
      conv_case({5, 16, 8, 8}, {32, 16, 3, 3}, 2, 1, 1, 1),
      conv_case({2, 8, 11, 11}, {8, 4, 3, 3}, 1, 2, 2, 2),
      conv_case({3, 12, 6, 6}, {12, 1, 3, 3}, 1, 1, 1, 12),
      conv_case({2, 3, 17}, {5, 3, 4}, 3, 1, 1, 1),
      conv_case({2, 2, 5, 6, 7}, {3, 2, 2, 3, 2}, 1, 1, 1, 1),
      conv_case({1, 64, 5, 5}, {32, 64, 1, 1}, 1, 0, 1, 1),
      conv_case({7, 3, 16, 16}, {64, 3, 7, 7}, 2, 3, 1, 1),
      conv_case({3, 8, 3, 3}, {200, 8, 3, 3}, 1, 1, 1,
                1),  // more weights than pictures: slices of channels, and a rest
      conv_case({26, 8, 4, 4}, {16, 8, 3, 3}, 1, 1, 1, 1),  // two slices of pictures a thread, and a rest
      // Windows of one element: planes side by side and a rest, large planes, and planes with a stride.
      conv_case({5, 33, 6, 7}, {70, 33, 1, 1}, 1, 0, 1, 1),
      conv_case({3, 16, 20, 20}, {9, 16, 1, 1}, 1, 0, 1, 1),
      conv_case({5, 24, 9, 8}, {40, 24, 1, 1}, 2, 0, 1, 1),
      conv_case({3, 6, 5, 4, 7}, {8, 6, 1, 1, 1}, 2, 0, 1, 1),
  };
}

Sizes conv_output(const ConvCase& c) {
  Sizes y{c.x[0], c.w[0]};
  for (int d = 0; d < c.a.spatial; ++d) {
    const auto at = static_cast<std::size_t>(d) + 2;
    y.push_back((c.x[at] + 2 * c.a.padding[d] - c.a.dilation[d] * (c.w[at] - 1) - 1) / c.a.stride[d] + 1);
  }
  return y;
}

// Calls visit(index of y, of x, of w) for every multiplication of the convolution.
template <class F>
void each_term(const ConvCase& c, const Sizes& y_sizes, const F& visit) {
  Sizes window(c.w.begin() + 2, c.w.end());
  i64 y_count = 1, taps = 1;
  for (const i64 s : y_sizes) y_count *= s;
  for (const i64 s : window) taps *= s;
  const i64 in_group = c.w[1], out_group = c.w[0] / c.a.groups;
  std::vector<Sizes> places;
  for (i64 tap = 0; tap < taps; ++tap) places.push_back(coordinates(tap, window));
  for (i64 yi = 0; yi < y_count; ++yi) {
    const Sizes at = coordinates(yi, y_sizes);
    const i64 group = at[1] / out_group;
    for (i64 channel = 0; channel < in_group; ++channel) {
      for (i64 tap = 0; tap < taps; ++tap) {
        const Sizes& k = places[static_cast<std::size_t>(tap)];
        i64 xi = at[0] * c.x[1] + group * in_group + channel;
        bool inside = true;
        for (std::size_t d = 0; d < window.size(); ++d) {
          const i64 p = at[d + 2] * c.a.stride[d] - c.a.padding[d] + k[d] * c.a.dilation[d];
          inside = inside && p >= 0 && p < c.x[d + 2];
          xi = xi * c.x[d + 2] + p;
        }
        if (inside) visit(yi, xi, (at[1] * in_group + channel) * taps + tap);
      }
    }
  }
}

struct Wanted {
  Wanted() = default;
  explicit Wanted(i64 count) : sum(static_cast<std::size_t>(count)), size(sum.size()) {}
  void add(i64 i, double term) {
    sum[static_cast<std::size_t>(i)] += term;
    size[static_cast<std::size_t>(i)] += std::fabs(term);
  }
  std::vector<double> sum, size;  // size: of the terms without their signs
};

TEST(Convolution, ForwardAndBackwardMatchLoops) {
  struct Sums {
    Wanted y, dx, dw;
  };
  std::map<std::pair<std::size_t, Dtype>, Sums> known;  // the same numbers at every level and in every layout
  const std::vector<ConvCase> cases = conv_cases();
  for_each_bench([&](Bench& bench) {
    for (std::size_t index = 0; index < cases.size(); ++index) {
      const ConvCase& c = cases[index];
      const Sizes y_sizes = conv_output(c);
      for (const Dtype dtype : kFloats) {
        for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast}) {
          Random random(53);
          const Tensor x = random_tensor(dtype, c.x, layout, random, -1, 1);
          const Tensor w = random_tensor(dtype, c.w, layout, random, -1, 1);
          const Tensor bias = random_tensor(dtype, {c.w[0]}, Layout::kContiguous, random, -1, 1);
          const Tensor dy = random_tensor(dtype, y_sizes, layout, random, -1, 1);
          Tensor y(dtype, y_sizes, layout), dx(dtype, c.x, layout), dw(dtype, c.w, layout);
          bench.run("conv", {y}, {x, w, bias}, &c.a);
          bench.run("conv_backward_input", {dx}, {dy, w}, &c.a);
          bench.run("conv_backward_weight", {dw}, {dy, x}, &c.a);
          Sums& sums = known[{index, dtype}];
          if (sums.y.sum.empty()) {
            sums = {Wanted(y.count()), Wanted(x.count()), Wanted(dw.count())};
            i64 plane = 1;
            for (std::size_t d = 2; d < y_sizes.size(); ++d) plane *= y_sizes[d];
            for (i64 i = 0; i < y.count(); ++i) sums.y.add(i, bias.real(i / plane % c.w[0]));
            const auto numbers = [](const Tensor& of) {
              std::vector<double> all;
              for (i64 i = 0; i < of.count(); ++i) all.push_back(of.real(i));
              return all;
            };
            const std::vector<double> xs = numbers(x), ws = numbers(w), dys = numbers(dy);
            each_term(c, y_sizes, [&](i64 yi, i64 xi, i64 wi) {
              const double from = xs[static_cast<std::size_t>(xi)], by = ws[static_cast<std::size_t>(wi)],
                           slope = dys[static_cast<std::size_t>(yi)];
              sums.y.add(yi, from * by);
              sums.dx.add(xi, slope * by);
              sums.dw.add(wi, slope * from);
            });
          }
          auto check = [&](const Tensor& got, const Wanted& want, const char* what) {
            // cuDNN may round the sums of each tap to 16 bits before it adds them up: on an H100 a gradient of x was
            // off by 2^-11.5 of the size of its terms in bfloat16, where they cancel.
            const bool is_taps = size_of(dtype) == 2 && std::string_view(what) == "dx";
            const double lost = is_taps ? epsilon_of(dtype) / 4 : 0;
            i64 worst = -1;
            double most = 0;  // beyond what is allowed
            for (i64 i = 0; i < got.count(); ++i) {
              const auto at = static_cast<std::size_t>(i);
              const double allowed = bound(dtype, 400, want.sum[at]) + lost * want.size[at];
              const double beyond = std::fabs(got.real(i) - want.sum[at]) - allowed;
              if (beyond <= most) continue;  // NaN is not
              most = beyond;
              worst = i;
            }
            EXPECT_EQ(worst, -1) << what << " " << name_of(dtype) << " " << name_of(layout) << " x " << to_string(c.x)
                                 << " w " << to_string(c.w) << ": got " << got.real(std::max<i64>(worst, 0))
                                 << ", expected " << want.sum[static_cast<std::size_t>(std::max<i64>(worst, 0))]
                                 << ", of terms of size "
                                 << want.size[static_cast<std::size_t>(std::max<i64>(worst, 0))];
          };
          check(y, sums.y, "y");
          check(dx, sums.dx, "dx");
          check(dw, sums.dw, "dw");
        }
      }
    }
  });
}

// A convolution of 3 x 3 with stride 1, in double, one element at a time.
struct Plain3x3 {
  const Tensor &x, &w, &dy;
  i64 padding;

  // Calls visit(n, index in x, index in w, index in dy) for the taps that y[n, o, h, w] has of channel c.
  template <class F>
  void taps(i64 n, i64 o, i64 c, i64 h, i64 v, const F& visit) const {
    const Sizes &xs = x.sizes(), &ys = dy.sizes();
    for (i64 k = 0; k < 9; ++k) {
      const i64 row = h + k / 3 - padding, column = v + k % 3 - padding;
      if (row < 0 || row >= xs[2] || column < 0 || column >= xs[3]) continue;
      visit(((n * xs[1] + c) * xs[2] + row) * xs[3] + column, (o * xs[1] + c) * 9 + k,
            ((n * ys[1] + o) * ys[2] + h) * ys[3] + v);
    }
  }
  double value(i64 index) const {
    const Sizes at = coordinates(index, dy.sizes());
    double sum = 0;
    for (i64 c = 0; c < x.sizes()[1]; ++c) {
      taps(at[0], at[1], c, at[2], at[3], [&](i64 xi, i64 wi, i64) { sum += x.real(xi) * w.real(wi); });
    }
    return sum;
  }
  double input_gradient(i64 index) const {
    const Sizes at = coordinates(index, x.sizes()), &ys = dy.sizes();
    double sum = 0;
    for (i64 o = 0; o < ys[1]; ++o) {
      for (i64 k = 0; k < 9; ++k) {
        const i64 h = at[2] + padding - k / 3, v = at[3] + padding - k % 3;
        if (h < 0 || h >= ys[2] || v < 0 || v >= ys[3]) continue;
        sum += dy.real(((at[0] * ys[1] + o) * ys[2] + h) * ys[3] + v) * w.real((o * x.sizes()[1] + at[1]) * 9 + k);
      }
    }
    return sum;
  }
  double weight_gradient(i64 index) const {
    const Sizes at = coordinates(index, w.sizes()), &ys = dy.sizes();
    const i64 wanted = index;
    double sum = 0;
    for (i64 n = 0; n < ys[0]; ++n) {
      for (i64 h = 0; h < ys[2]; ++h) {
        for (i64 v = 0; v < ys[3]; ++v) {
          taps(n, at[0], at[1], h, v, [&](i64 xi, i64 wi, i64 yi) {
            if (wi == wanted) sum += dy.real(yi) * x.real(xi);
          });
        }
      }
    }
    return sum;
  }
};

// So large that they are computed by tiles: every place of a tile, odd sizes, and each padding.
TEST(Convolution, LargeOnesMatchLoopsWhereLooked) {
  for_each_bench([](Bench& bench) {
    if (target().slow || bench.is_whole()) return;  // the cpu's are in cpu/convolution_tiles_test.cpp
    for (const ConvCase& c : {conv_case({2, 64, 46, 45}, {70, 64, 3, 3}, 1, 1, 1, 1),
                              conv_case({3, 66, 41, 42}, {65, 66, 3, 3}, 1, 0, 1, 1),
                              conv_case({2, 64, 43, 44}, {64, 64, 3, 3}, 1, 2, 1, 1)}) {
      const Sizes y_sizes = conv_output(c);
      Random random(61);
      const Tensor x = random_tensor(Dtype::kFloat32, c.x, Layout::kContiguous, random, -1, 1);
      const Tensor w = random_tensor(Dtype::kFloat32, c.w, Layout::kContiguous, random, -1, 1);
      const Tensor bias = random_tensor(Dtype::kFloat32, {c.w[0]}, Layout::kContiguous, random, -1, 1);
      const Tensor dy = random_tensor(Dtype::kFloat32, y_sizes, Layout::kContiguous, random, -1, 1);
      Tensor y(Dtype::kFloat32, y_sizes), dx(Dtype::kFloat32, c.x), dw(Dtype::kFloat32, c.w);
      bench.run("conv", {y}, {x, w, bias}, &c.a);
      bench.run("conv_backward_input", {dx}, {dy, w}, &c.a);
      bench.run("conv_backward_weight", {dw}, {dy, x}, &c.a);
      const Plain3x3 plain{x, w, dy, c.a.padding[0]};
      const i64 plane = y_sizes[2] * y_sizes[3];
      // Steps that share no factor with the sizes visit every row, column and border.
      for (i64 i = 0; i < y.count(); i += 211) {
        const double want = plain.value(i) + bias.real(i / plane % c.w[0]);
        ASSERT_NEAR(y.real(i), want, bound(Dtype::kFloat32, 600, want)) << "y at " << i << " of " << to_string(y_sizes);
      }
      for (i64 i = 0; i < dx.count(); i += 211) {
        const double want = plain.input_gradient(i);
        ASSERT_NEAR(dx.real(i), want, bound(Dtype::kFloat32, 600, want)) << "dx at " << i << " of " << to_string(c.x);
      }
      for (i64 i = 0; i < dw.count(); i += 211) {
        const double want = plain.weight_gradient(i);
        ASSERT_NEAR(dw.real(i), want, bound(Dtype::kFloat32, 4000, want)) << "dw at " << i << " of " << to_string(c.w);
      }
    }
  });
}

TEST(Convolution, GivesTheSameBitsTwice) {
  for_each_bench([](Bench& bench) {
    const ConvCase c = conv_case({8, 16, 14, 14}, {32, 16, 3, 3}, 1, 1, 1, 1);
    const Sizes y_sizes = conv_output(c);
    Random random(59);
    const Tensor x = random_tensor(Dtype::kFloat32, c.x, Layout::kContiguous, random);
    const Tensor dy = random_tensor(Dtype::kFloat32, y_sizes, Layout::kContiguous, random);
    Tensor first(Dtype::kFloat32, c.w), second(Dtype::kFloat32, c.w);
    bench.run("conv_backward_weight", {first}, {dy, x}, &c.a);
    bench.run("conv_backward_weight", {second}, {dy, x}, &c.a);
    expect_near(
        second, [&](i64 i) { return first.real(i); }, 0, "second run");
  });
}

}  // namespace
}  // namespace tenon::conformance
