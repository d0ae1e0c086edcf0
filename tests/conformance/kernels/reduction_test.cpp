// Reductions, arguments of extremes, softmax, losses, pooling and optimiser steps against loops in double.
// Long: the cases share the loops that they are held against.
#include <tenon/core/error.h>
#include <tenon/kernel/attributes/linear.h>
#include <tenon/kernel/attributes/normalization.h>
#include <tenon/kernel/attributes/optimizer.h>
#include <tenon/kernel/attributes/reduction.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "harness.h"
#include "target.h"

namespace tenon::conformance {
namespace {

// Every subset of dimensions of a few shapes, and the elements that go into each output.
struct ReduceCase {
  Sizes in, out;
  std::vector<std::vector<i64>> members;
};

i64 product_of(const Sizes& sizes) {
  i64 count = 1;
  for (const i64 size : sizes) count *= size;
  return count;
}

std::vector<std::vector<i64>> all_members(const Sizes& in, const Sizes& out) {
  std::vector<std::vector<i64>> all(static_cast<std::size_t>(product_of(out)));
  for (i64 i = 0; i < product_of(in); ++i) {
    const Sizes at = coordinates(i, in);
    i64 to = 0;
    for (std::size_t d = 0; d < in.size(); ++d) to = to * out[d] + (out[d] == 1 ? 0 : at[d]);
    all[static_cast<std::size_t>(to)].push_back(i);
  }
  return all;
}

std::vector<ReduceCase> all_reduce_cases() {
  std::vector<ReduceCase> cases;
  const i64 many = target().slow ? 17011 : 70001;
  for (const Sizes& in : {Sizes{}, Sizes{1}, Sizes{67}, Sizes{31, 37}, Sizes{5, 7, 11}, Sizes{3, 4, 5, 13},
                          Sizes{1031, 3}, Sizes{2, many}, Sizes{many + 2, 2}, Sizes{0, 3}, Sizes{4, 600}}) {
    for (unsigned mask = 0; mask < (1u << in.size()); ++mask) {
      Sizes out = in;
      for (std::size_t d = 0; d < in.size(); ++d) {
        if (mask & (1u << d)) out[d] = 1;
      }
      cases.push_back({in, out, all_members(in, out)});
    }
  }
  return cases;
}
const std::vector<ReduceCase>& reduce_cases() {
  static const auto& cases = *new std::vector<ReduceCase>(all_reduce_cases());
  return cases;
}

using Fold = std::function<double(const std::vector<double>&)>;

void check_reduction(Bench& bench, std::string_view kernel, std::span<const Dtype> dtypes, const Fold& fold,
                     double slack, const void* attributes = nullptr, i64 most = INT64_MAX) {
  for (const ReduceCase& c : reduce_cases()) {
    const i64 count = product_of(c.in);
    if (count > most) continue;
    for (const Dtype dtype : dtypes) {
      std::vector<double> wanted;  // the same numbers in every layout
      for (const Layout layout : {Layout::kContiguous, Layout::kTransposed, Layout::kStrided}) {
        if (count > 20000 && (dtype != Dtype::kFloat32 || layout == Layout::kStrided)) continue;
        if (count > 20000 && target().slow && layout != Layout::kContiguous) continue;
        Random random(61);
        const Tensor x = random_tensor(dtype, c.in, layout, random, 0.5, 1.5);
        const Tensor got(dtype, c.out, Layout::kTransposed);
        bench.run(kernel, {got}, {x}, attributes);
        std::vector<double> values;
        for (i64 i = 0; i < got.count(); ++i) {
          const auto at = static_cast<std::size_t>(i);
          if (at == wanted.size()) {
            values.clear();
            for (const i64 member : c.members[at]) values.push_back(x.real(member));
            wanted.push_back(fold(values));
          }
          const double want = wanted[at];
          if (std::isnan(want) && std::isnan(got.real(i))) continue;
          if (want == got.real(i)) continue;
          ASSERT_LE(std::fabs(got.real(i) - want), slack * epsilon_of(dtype) * std::fabs(want) + 1e-7 * slack)
              << kernel << " " << name_of(dtype) << " " << name_of(layout) << " " << to_string(c.in) << " -> "
              << to_string(c.out) << " element " << i << ": got " << got.real(i) << ", expected " << want;
        }
      }
    }
  }
}

double sum_of(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x;
  return sum;
}

// Down the columns of matrices, as the gradient of a bias: rows that begin at multiples of 16 bytes and others, more
// and fewer columns than a block takes, rows in one part and in several.
TEST(Reduction, SumsOfColumnsInSixteenBits) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16}) {
      for (const Sizes& in :
           {Sizes{1100, 72}, Sizes{5, 264}, Sizes{70, 520}, Sizes{40, 68}, Sizes{40, 67}, Sizes{1, 64}}) {
        for (const Layout layout : {Layout::kContiguous, Layout::kStrided}) {
          Random random(67);
          const Tensor x = random_tensor(dtype, in, layout, random, 0.5, 1.5);
          Tensor y(dtype, {1, in[1]});
          bench.run("sum", {y}, {x});
          for (i64 column = 0; column < in[1]; ++column) {
            double want = 0;
            for (i64 row = 0; row < in[0]; ++row) want += x.real(row * in[1] + column);
            ASSERT_LE(std::fabs(y.real(column) - want), epsilon_of(dtype) * want)
                << name_of(dtype) << " " << name_of(layout) << " " << to_string(in) << " column " << column;
          }
        }
      }
    }
  });
}

TEST(Reduction, SumAndMean) {
  for_each_bench([](Bench& bench) {
    check_reduction(bench, "sum", kFloats, sum_of, 4);
    check_reduction(
        bench, "mean", kFloats, [](const auto& v) { return sum_of(v) / static_cast<double>(v.size()); }, 4);
  });
}

TEST(Reduction, SumsOfIntegersAreExact) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : {Dtype::kBool, Dtype::kUInt8, Dtype::kInt8, Dtype::kInt32, Dtype::kInt64}) {
      Random random(67);
      const Tensor x = random_tensor(dtype, {31, 37}, Layout::kTransposed, random, -9, 9);
      Tensor y(Dtype::kInt64, {31, 1});
      bench.run("sum", {y}, {x});
      for (i64 i = 0; i < 31; ++i) {
        i64 want = 0;
        for (i64 j = 0; j < 37; ++j) want += x.integer(i * 37 + j);
        ASSERT_EQ(y.integer(i), want);
      }
    }
  });
}

TEST(Reduction, ExtremesTruthAndProduct) {
  for_each_bench([](Bench& bench) {
    check_reduction(
        bench, "amax", kFloats,
        [](const auto& v) {
          double most = -INFINITY;
          for (const double x : v) most = std::max(most, x);
          return most;
        },
        0);
    check_reduction(
        bench, "amin", kFloats,
        [](const auto& v) {
          double least = INFINITY;
          for (const double x : v) least = std::min(least, x);
          return least;
        },
        0);
    Random random(71);
    for (const Dtype dtype : kAllTypes) {
      Tensor x = random_tensor(dtype, {13, 29}, Layout::kTransposed, random, 0, 1.9);
      Tensor any(Dtype::kBool, {13, 1}), all(Dtype::kBool, {13, 1});
      for (i64 j = 0; j < 29; ++j) x.set(2 * 29 + j, 0), x.set(3 * 29 + j, 1);
      bench.run("any", {any}, {x});
      bench.run("all", {all}, {x});
      for (i64 i = 0; i < 13; ++i) {
        bool has = false, every = true;
        for (i64 j = 0; j < 29; ++j) has |= x.real(i * 29 + j) != 0, every &= x.real(i * 29 + j) != 0;
        ASSERT_EQ(any.integer(i), has);
        ASSERT_EQ(all.integer(i), every);
      }
    }
    Tensor x(Dtype::kFloat64, {3, 5}), y(Dtype::kFloat64, {3, 1});
    x.fill([](i64 i) { return 1 + 0.25 * static_cast<double>(i % 5); });
    bench.run("prod", {y}, {x});
    expect_near(
        y, [](i64) { return 1 * 1.25 * 1.5 * 1.75 * 2; }, 1e-15, "prod");
  });
}

TEST(Reduction, NanWinsOverEveryExtreme) {
  for_each_bench([](Bench& bench) {
    Tensor x(Dtype::kFloat32, {2, 100}), y(Dtype::kFloat32, {2, 1});
    x.fill([](i64 i) { return i == 137 ? std::nan("") : static_cast<double>(i); });
    for (const char* kernel : {"amax", "amin"}) {
      bench.run(kernel, {y}, {x});
      EXPECT_FALSE(std::isnan(y.real(0))) << kernel;
      EXPECT_TRUE(std::isnan(y.real(1))) << kernel;
    }
    DimAttributes dim{.dim = 1};
    Tensor index(Dtype::kInt64, {2, 1});
    bench.run("argmax", {index}, {x}, &dim);
    EXPECT_EQ(index.integer(0), 99);
    EXPECT_EQ(index.integer(1), 37);
  });
}

TEST(Reduction, Norms) {
  for_each_bench([](Bench& bench) {
    for (const double p : {2.0, 1.0, 3.0, 0.0, HUGE_VAL, -HUGE_VAL}) {
      NormAttributes attributes{.p = p};
      check_reduction(
          bench, "norm", std::span(kFloats, 2),
          [p](const auto& v) {
            double sum = 0, most = 0, least = INFINITY;
            for (const double x : v) {
              sum += p == 0 ? x != 0 : std::pow(std::fabs(x), p);
              most = std::max(most, std::fabs(x));
              least = std::min(least, std::fabs(x));
            }
            if (p == 0) return sum;
            if (std::isinf(p)) return p > 0 ? most : least;
            return std::pow(sum, 1 / p);
          },
          8, &attributes, p == 2 ? INT64_MAX : 20000);
    }
  });
}

TEST(Reduction, SumsDoNotDependOnTheNumberOfThreads) {
  for_each_bench([](Bench& bench) {
    Random random(73);
    const Tensor x = random_tensor(Dtype::kFloat32, {500, 1001}, Layout::kContiguous, random);
    const int before = bench.driver().threads();
    std::vector<double> bits;
    for (const int threads : {1, 2, 5}) {
      bench.driver().set_threads(threads);
      Tensor y(Dtype::kFloat32, {1, 1});
      bench.run("sum", {y}, {x});
      bits.push_back(y.real(0));
    }
    bench.driver().set_threads(before);
    EXPECT_EQ(bits[0], bits[1]);
    EXPECT_EQ(bits[0], bits[2]);
  });
}

TEST(ArgReduction, FirstOfEqualsForEveryType) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : kAllTypes) {
      for (const int dim : {0, 1, 2}) {
        Random random(79);
        const Sizes sizes{5, 17, 7};
        const Tensor x = random_tensor(dtype, sizes, Layout::kTransposed, random, 0, 5);
        Sizes out = sizes;
        out[static_cast<std::size_t>(dim)] = 1;
        for (const bool max : {true, false}) {
          Tensor values(dtype, out), index(Dtype::kInt64, out), alone(Dtype::kInt64, out);
          DimAttributes attributes{.dim = dim};
          bench.run(max ? "max_dim" : "min_dim", {values, index}, {x}, &attributes);
          bench.run(max ? "argmax" : "argmin", {alone}, {x}, &attributes);
          for (i64 i = 0; i < index.count(); ++i) {
            Sizes at = coordinates(i, out);
            i64 best = -1;
            double value = 0;
            for (i64 k = 0; k < sizes[static_cast<std::size_t>(dim)]; ++k) {
              at[static_cast<std::size_t>(dim)] = k;
              const double candidate = x.real((at[0] * 17 + at[1]) * 7 + at[2]);
              if (best < 0 || (max ? candidate > value : candidate < value)) best = k, value = candidate;
            }
            ASSERT_EQ(index.integer(i), best);
            ASSERT_EQ(alone.integer(i), best);
            ASSERT_EQ(values.real(i), value);
          }
        }
      }
    }
  });
}

TEST(Softmax, ForwardAndBackwardMatchLoops) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : kFloats) {
      for (const Layout layout : {Layout::kContiguous, Layout::kTransposed, Layout::kStrided}) {
        for (const int dim : {0, 1, 2}) {
          Random random(83);
          const Sizes sizes{6, 45, 10};
          const Tensor x = random_tensor(dtype, sizes, layout, random, -5, 5);
          const Tensor dy = random_tensor(dtype, sizes, Layout::kContiguous, random, -1, 1);
          Tensor y(dtype, sizes), z(dtype, sizes), dx(dtype, sizes), dz(dtype, sizes, layout);
          DimAttributes attributes{.dim = dim};
          bench.run("softmax", {y}, {x}, &attributes);
          bench.run("log_softmax", {z}, {x}, &attributes);
          bench.run("softmax_backward", {dx}, {dy, y}, &attributes);
          bench.run("log_softmax_backward", {dz}, {dy, z}, &attributes);
          auto line = [&](i64 i, const test::FunctionRef<void(i64)>& visit) {
            Sizes at = coordinates(i, sizes);
            for (i64 k = 0; k < sizes[static_cast<std::size_t>(dim)]; ++k) {
              at[static_cast<std::size_t>(dim)] = k;
              visit((at[0] * 45 + at[1]) * 10 + at[2]);
            }
          };
          for (i64 i = 0; i < y.count(); ++i) {
            double sum = 0, dot = 0, total = 0;
            line(i, [&](i64 k) {
              sum += std::exp(x.real(k));
              dot += dy.real(k) * y.real(k);
              total += dy.real(k);
            });
            const double e = epsilon_of(dtype);
            const double p = std::exp(x.real(i)) / sum;
            ASSERT_NEAR(y.real(i), p, 8 * e * p + 1e-7);
            ASSERT_NEAR(z.real(i), std::log(p), 8 * e * (1 + std::fabs(std::log(p))));
            ASSERT_NEAR(dx.real(i), y.real(i) * (dy.real(i) - dot), 16 * e);
            ASSERT_NEAR(dz.real(i), dy.real(i) - std::exp(z.real(i)) * total, 16 * e * (1 + std::fabs(total)));
          }
        }
      }
    }
  });
}

TEST(NllLoss, WeightsIgnoredClassesAndReductions) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : kFloats) {
      const double unit = std::max(1e-5, 4 * epsilon_of(dtype));
      for (const bool spatial : {false, true}) {
        Random random(89);
        const i64 n = 9, c = 5, s = spatial ? 6 : 1;
        const Tensor x =
            random_tensor(dtype, spatial ? Sizes{n, c, s} : Sizes{n, c}, Layout::kContiguous, random, -3, 0);
        const Tensor w = random_tensor(dtype, {c}, Layout::kContiguous, random, 0.5, 2);
        Tensor target(Dtype::kInt64, spatial ? Sizes{n, s} : Sizes{n});
        target.fill([&](i64) { return static_cast<double>(random.integer(0, c)); });
        target.set_integer(3, -100);
        for (const bool weighted : {false, true}) {
          for (const auto reduction : {LossReduction::kNone, LossReduction::kMean, LossReduction::kSum}) {
            NllLossAttributes attributes{.reduction = reduction};
            const bool none = reduction == LossReduction::kNone;
            Tensor loss(dtype, none ? target.sizes() : Sizes{}), total(dtype, {});
            const Tensor weight = weighted ? w : Tensor();
            bench.run("nll_loss", {loss, total}, {x, target, weight}, &attributes);
            Tensor dloss(dtype, loss.sizes()), dx(dtype, x.sizes());
            dloss.fill([](i64 i) { return 1.5 + 0.25 * static_cast<double>(i); });
            bench.run("nll_loss_backward", {dx}, {dloss, target, weight, total}, &attributes);
            double sum = 0, weights = 0;
            std::vector<double> gradient(static_cast<std::size_t>(x.count()), 0.0);
            for (i64 i = 0; i < n * s; ++i) {
              const i64 t = target.integer(i);
              if (t < 0) continue;
              const double scale = weighted ? w.real(t) : 1;
              const i64 at = (i / s * c + t) * s + i % s;
              if (none) {
                ASSERT_NEAR(loss.real(i), -scale * x.real(at), std::max(1e-6, 8 * epsilon_of(dtype)));
              }
              sum -= scale * x.real(at);
              weights += scale;
              gradient[static_cast<std::size_t>(at)] = -scale * dloss.real(none ? i : 0);
            }
            const bool mean = reduction == LossReduction::kMean;
            if (!none) {
              ASSERT_NEAR(loss.real(0), mean ? sum / weights : sum, unit * (1 + std::fabs(sum)));
            }
            ASSERT_NEAR(total.real(0), weights, unit * (1 + weights));
            for (i64 i = 0; i < x.count(); ++i) {
              const double want = gradient[static_cast<std::size_t>(i)] / (mean ? weights : 1);
              ASSERT_NEAR(dx.real(i), want, unit * (1 + std::fabs(want)));
            }
          }
        }
        Tensor bad(Dtype::kInt64, target.sizes());
        bad.fill([](i64) { return 12; });
        Tensor loss(dtype, {}), total(dtype, {});
        NllLossAttributes attributes;
        try {
          bench.run("nll_loss", {loss, total}, {x, bad, Tensor()}, &attributes);
          FAIL() << "a class out of range was accepted";
        } catch (const Error& error) {
          EXPECT_TRUE(std::string_view(error.what()).starts_with("Target 12 is out of bounds.")) << error.what();
        }
      }
    }
  });
}

PoolAttributes pool(i64 kernel, i64 stride, i64 padding, i64 dilation) {
  PoolAttributes a;
  for (int d = 0; d < 2; ++d) {
    a.kernel[d] = kernel;
    a.stride[d] = stride;
    a.padding[d] = padding;
    a.dilation[d] = dilation;
  }
  return a;
}

TEST(Pooling, MaximumAndAverageMatchLoops) {
  for_each_bench([](Bench& bench) {
    for (const PoolAttributes& a : {pool(2, 2, 0, 1), pool(3, 2, 1, 1), pool(3, 1, 1, 2), pool(3, 3, 0, 1)}) {
      for (const Dtype dtype : kFloats) {
        Random random(97);
        const i64 h = 13, w = 10, planes = 6;
        const i64 oh = (h + 2 * a.padding[0] - a.dilation[0] * (a.kernel[0] - 1) - 1) / a.stride[0] + 1;
        const i64 ow = (w + 2 * a.padding[1] - a.dilation[1] * (a.kernel[1] - 1) - 1) / a.stride[1] + 1;
        const Tensor x = random_tensor(dtype, {2, 3, h, w}, Layout::kContiguous, random);
        const Tensor dy = random_tensor(dtype, {2, 3, oh, ow}, Layout::kContiguous, random);
        Tensor y(dtype, {2, 3, oh, ow}), index(Dtype::kInt64, {2, 3, oh, ow}), dx(dtype, {2, 3, h, w});
        bench.run("max_pool", {y, index}, {x}, &a);
        bench.run("max_pool_backward", {dx}, {dy, index});
        std::vector<double> gradient(static_cast<std::size_t>(x.count()), 0.0), average_gradient = gradient;
        Tensor mean(dtype, {2, 3, oh, ow}), dmean(dtype, {2, 3, h, w});
        if (a.dilation[0] == 1) {
          bench.run("avg_pool", {mean}, {x}, &a);
          bench.run("avg_pool_backward", {dmean}, {dy}, &a);
        }
        for (i64 p = 0; p < planes; ++p) {
          for (i64 o = 0; o < oh * ow; ++o) {
            double best = -INFINITY, sum = 0;
            i64 where = -1;
            const i64 at = p * oh * ow + o;
            for (i64 k = 0; k < a.kernel[0] * a.kernel[1]; ++k) {
              const i64 r = o / ow * a.stride[0] - a.padding[0] + k / a.kernel[1] * a.dilation[0];
              const i64 c = o % ow * a.stride[1] - a.padding[1] + k % a.kernel[1] * a.dilation[1];
              if (r < 0 || r >= h || c < 0 || c >= w) continue;
              const double value = x.real(p * h * w + r * w + c);
              sum += value;
              average_gradient[static_cast<std::size_t>(p * h * w + r * w + c)] +=
                  dy.real(at) / static_cast<double>(a.kernel[0] * a.kernel[1]);
              if (value > best) best = value, where = r * w + c;
            }
            ASSERT_EQ(y.real(at), best);
            ASSERT_EQ(index.integer(at), where);
            gradient[static_cast<std::size_t>(p * h * w + where)] += dy.real(at);
            if (a.dilation[0] == 1) {
              ASSERT_NEAR(mean.real(at), sum / static_cast<double>(a.kernel[0] * a.kernel[1]), 8 * epsilon_of(dtype));
            }
          }
        }
        for (i64 i = 0; i < x.count(); ++i) {
          ASSERT_NEAR(dx.real(i), gradient[static_cast<std::size_t>(i)], 16 * epsilon_of(dtype));
          if (a.dilation[0] == 1) {
            ASSERT_NEAR(dmean.real(i), average_gradient[static_cast<std::size_t>(i)], 16 * epsilon_of(dtype));
          }
        }
      }
    }
  });
}

TEST(Optimizer, StepsFollowTheirFormulas) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : kFloats) {
      const double e = epsilon_of(dtype);  // the result is rounded once, in 16 bits too
      Random random(101);
      const Sizes sizes{31, 37};
      Tensor p = random_tensor(dtype, sizes, Layout::kContiguous, random), m(dtype, sizes), v(dtype, sizes),
             most(dtype, sizes), g = random_tensor(dtype, sizes, Layout::kContiguous, random);
      auto clone = [](const Tensor& t) {
        Tensor copy(t.dtype(), t.sizes());
        return copy.fill([&](i64 i) { return t.real(i); });
      };
      Tensor start = clone(p);
      SgdAttributes sgd{.learning_rate = 0.1,
                        .momentum = 0.9,
                        .dampening = 0.2,
                        .weight_decay = 0.01,
                        .nesterov = false,
                        .first_step = true};
      bench.run("sgd_step", {p, m}, {g}, &sgd);
      expect_near(
          p, [&](i64 i) { return start.real(i) - 0.1 * (g.real(i) + 0.01 * start.real(i)); }, 1e-5 + e,
          "first sgd step", 1e-6);
      Tensor second = clone(p), buffer = clone(m);
      sgd.first_step = false;
      bench.run("sgd_step", {p, m}, {g}, &sgd);
      expect_near(
          p,
          [&](i64 i) {
            return second.real(i) - 0.1 * (0.9 * buffer.real(i) + 0.8 * (g.real(i) + 0.01 * second.real(i)));
          },
          1e-5 + e, "second sgd step", 1e-6);

      for (const bool amsgrad : {false, true}) {
        for (const bool decoupled : {false, true}) {
          m.fill([](i64 i) { return 0.01 * static_cast<double>(i % 7); });
          v.fill([](i64 i) { return 0.02 * static_cast<double>(i % 5); });
          most.fill([](i64 i) { return 0.03 * static_cast<double>(i % 3); });
          const Tensor p0 = clone(p), m0 = clone(m), v0 = clone(v), s0 = clone(most);
          AdamAttributes adam{
              .learning_rate = 0.01, .weight_decay = 0.1, .decoupled = decoupled, .amsgrad = amsgrad, .step = 3};
          bench.run("adam_step", {p, m, v, amsgrad ? most : Tensor()}, {g}, &adam);
          expect_near(
              p,
              [&](i64 i) {
                const double value = decoupled ? p0.real(i) * (1 - 0.01 * 0.1) : p0.real(i);
                const double gradient = g.real(i) + (decoupled ? 0 : 0.1 * value);
                const double first = 0.9 * m0.real(i) + 0.1 * gradient;
                const double square = 0.999 * v0.real(i) + 0.001 * gradient * gradient;
                const double under = amsgrad ? std::max(square, s0.real(i)) : square;
                return value - 0.01 / (1 - std::pow(0.9, 3)) * first /
                                   (std::sqrt(under) / std::sqrt(1 - std::pow(0.999, 3)) + 1e-8);
              },
              2e-4 + e, "adam step", 1e-6);
        }
      }
    }
  });
}

}  // namespace
}  // namespace tenon::conformance
