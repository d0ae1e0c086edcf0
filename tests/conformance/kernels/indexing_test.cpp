// Indexing, scans, sorting, sequences and random numbers against loops.
// Long: the cases share the loops that they are held against.
#include <tenon/core/error.h>
#include <tenon/kernel/attributes/indexing.h>
#include <tenon/kernel/attributes/linear.h>
#include <tenon/kernel/attributes/pointwise.h>
#include <tenon/kernel/attributes/random.h>
#include <tenon/kernel/attributes/reduction.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness.h"

namespace tenon::conformance {
namespace {

TEST(Copy, EveryTypeToEveryTypeAndLayout) {
  for_each_bench([](Bench& bench) {
    for (const Dtype from : kAllTypes) {
      for (const Dtype to : kAllTypes) {
        for (const Sizes& sizes : {Sizes{}, Sizes{0, 3}, Sizes{67}, Sizes{31, 37}, Sizes{3, 5, 7, 11}}) {
          for (const Layout source : {Layout::kContiguous, Layout::kTransposed, Layout::kStrided}) {
            for (const Layout target : {Layout::kContiguous, Layout::kTransposed, Layout::kStrided}) {
              Random random(127);
              const Tensor x = random_tensor(from, sizes, source, random, -3, 100);
              Tensor y(to, sizes, target), want(to, sizes);
              bench.run("copy", {y}, {x});
              for (i64 i = 0; i < x.count(); ++i) {
                if (is_floating_point(from)) {
                  if (to == Dtype::kBool)
                    want.set_integer(i, x.real(i) != 0);
                  else
                    want.set(i, x.real(i));
                } else {
                  want.set_integer(i, x.integer(i));
                }
                ASSERT_EQ(y.real(i), want.real(i)) << name_of(from) << " to " << name_of(to) << " " << to_string(sizes)
                                                   << " " << name_of(source) << " " << name_of(target);
              }
            }
          }
        }
      }
    }
  });
}

TEST(Copy, FillsAndBroadcasts) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : kAllTypes) {
      for (const Layout layout : {Layout::kContiguous, Layout::kTransposed, Layout::kStrided}) {
        Tensor y(dtype, {31, 37}, layout);
        FillAttributes attributes{.value = {1.0, 1}};
        bench.run("fill", {y}, {}, &attributes);
        expect_near(
            y, [](i64) { return 1.0; }, 0, "fill");
        Random random(131);
        const Tensor row = random_tensor(dtype, {37}, Layout::kContiguous, random, 0, 9);
        bench.run("copy", {y}, {row.expanded({31, 37})});
        expect_near(
            y, [&](i64 i) { return row.real(i % 37); }, 0, "broadcast copy");
      }
    }
  });
}

TEST(Ternary, WhereMaskedFillClampAddcmulLerp) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : kAllTypes) {
      Random random(137);
      const Sizes sizes{31, 37};
      const Tensor a = random_tensor(dtype, sizes, Layout::kTransposed, random, -5, 5);
      const Tensor b = random_tensor(dtype, sizes, Layout::kContiguous, random, -5, 5);
      const Tensor c = random_tensor(dtype, sizes, Layout::kStrided, random, 1, 5);
      const Tensor mask = random_tensor(Dtype::kBool, sizes, Layout::kTransposed, random);
      Tensor y(dtype, sizes), want(dtype, sizes);
      bench.run("where", {y}, {mask, a, b});
      expect_near(
          y, [&](i64 i) { return mask.integer(i) ? a.real(i) : b.real(i); }, 0, "where");
      FillAttributes fill{.value = {1, 1}};
      bench.run("masked_fill", {y}, {a, mask}, &fill);
      expect_near(
          y, [&](i64 i) { return mask.integer(i) ? 1 : a.real(i); }, 0, "masked_fill");
      if (dtype == Dtype::kBool) continue;
      bench.run("clamp_tensor", {y}, {a, b, c});
      expect_near(
          y, [&](i64 i) { return std::min(std::max(a.real(i), b.real(i)), c.real(i)); }, 0, "clamp_tensor");
      bench.run("clamp_tensor", {y}, {a, Tensor(), c});
      expect_near(
          y, [&](i64 i) { return std::min(a.real(i), c.real(i)); }, 0, "clamp_tensor above");
      TernaryAttributes half{.value = {2, 2}};
      bench.run("addcmul", {y}, {a, b, c}, &half);
      want.fill([&](i64 i) { return a.real(i) + 2 * b.real(i) * c.real(i); });
      if (!is_floating_point(dtype)) {
        for (i64 i = 0; i < want.count(); ++i) want.set_integer(i, a.integer(i) + 2 * b.integer(i) * c.integer(i));
      }
      expect_near(
          y, [&](i64 i) { return want.real(i); }, 8 * epsilon_of(dtype), "addcmul", 8e1 * epsilon_of(dtype));
      if (!is_floating_point(dtype)) continue;
      bench.run("addcdiv", {y}, {a, b, c}, &half);
      expect_near(
          y, [&](i64 i) { return a.real(i) + 2 * b.real(i) / c.real(i); }, 8 * epsilon_of(dtype), "addcdiv",
          8e1 * epsilon_of(dtype));
      half.value = {0.25, 0};
      bench.run("lerp", {y}, {a, b, Tensor()}, &half);
      expect_near(
          y, [&](i64 i) { return a.real(i) + 0.25 * (b.real(i) - a.real(i)); }, 8 * epsilon_of(dtype), "lerp",
          8e1 * epsilon_of(dtype));
    }
  });
}

TEST(Indexing, IndexAndPut) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : kAllTypes) {
      Random random(139);
      const Tensor x = random_tensor(dtype, {7, 5, 11}, Layout::kTransposed, random, 0, 9);
      const Tensor i0 = random_indices({3, 4}, -7, 7, random),
                   i1 = random_indices({3, 1}, 0, 5, random).expanded({3, 4});
      Tensor y(dtype, {3, 4, 11}, Layout::kStrided);
      IndexAttributes attributes;
      attributes.dims[1] = 1;
      bench.run("index", {y}, {x, i0, i1}, &attributes);
      auto source = [&](i64 i) { return (((i0.integer(i / 11) + 7) % 7) * 5 + i1.integer(i / 11)) * 11 + i % 11; };
      expect_near(
          y, [&](i64 i) { return x.real(source(i)); }, 0, "index");

      const Tensor values = random_tensor(dtype, {4, 11}, Layout::kContiguous, random, 0, 9);
      for (const bool accumulate : {false, true}) {
        Tensor self(dtype, {7, 5, 11}), want(dtype, {7, 5, 11});
        for (i64 i = 0; i < x.count(); ++i) self.set(i, x.real(i)), want.set(i, x.real(i));
        attributes.accumulate = accumulate;
        bench.run("index_put", {self}, {values, i0, i1}, &attributes);
        for (i64 i = 0; i < 3 * 4 * 11; ++i) {
          const double before = accumulate ? want.real(source(i)) : 0;
          const double sum = before + values.real(i % 44);
          want.set(source(i), dtype == Dtype::kBool ? sum != 0 : sum);
        }
        expect_near(
            self, [&](i64 i) { return want.real(i); }, 4 * epsilon_of(dtype), "index_put");
      }
    }
    Random random(149);
    const Tensor x(Dtype::kFloat32, {10, 3});
    Tensor bad(Dtype::kInt64, {2}), y(Dtype::kFloat32, {2, 3});
    bad.fill([](i64) { return 12; });
    IndexAttributes attributes;
    attributes.dims[0] = 2;
    try {
      bench.run("index", {y}, {x, bad}, &attributes);
      FAIL() << "an index out of range was accepted";
    } catch (const IndexError& error) {
      EXPECT_TRUE(std::string_view(error.what()).starts_with("index 12 is out of bounds for dimension 2 with size 10"))
          << error.what();
    }
  });
}

TEST(Indexing, SelectAddGatherScatterEmbedding) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt64, Dtype::kBFloat16}) {
      for (const int dim : {0, 1, 2}) {
        Random random(151);
        const Sizes sizes{5, 6, 7};
        const Tensor x = random_tensor(dtype, sizes, Layout::kTransposed, random, 0, 4);
        Sizes out = sizes;
        const auto d = static_cast<std::size_t>(dim);
        out[d] = 9;
        const Tensor index = random_indices({9}, 0, sizes[d], random);
        Tensor y(dtype, out);
        DimAttributes attributes{.dim = dim};
        bench.run("index_select", {y}, {x, index}, &attributes);
        auto flat = [&](const Sizes& at, const Sizes& of) { return (at[0] * of[1] + at[1]) * of[2] + at[2]; };
        auto from = [&](i64 i, i64 position) {
          Sizes at = coordinates(i, out);
          at[d] = position;
          return flat(at, sizes);
        };
        expect_near(
            y, [&](i64 i) { return x.real(from(i, index.integer(coordinates(i, out)[d]))); }, 0, "index_select");

        Tensor self(dtype, sizes), want(dtype, sizes);
        self.fill([](i64) { return 1; });
        want.fill([](i64) { return 1; });
        IndexAddAttributes add{.dim = dim, .alpha = 2};
        bench.run("index_add", {self}, {index, y}, &add);
        for (i64 i = 0; i < y.count(); ++i) {
          const i64 to = from(i, index.integer(coordinates(i, out)[d]));
          want.set(to, want.real(to) + 2 * y.real(i));
        }
        expect_near(
            self, [&](i64 i) { return want.real(i); }, 64 * epsilon_of(dtype), "index_add");

        const Tensor many = random_indices(out, 0, sizes[d], random);
        bench.run("gather", {y}, {x, many}, &attributes);
        expect_near(
            y, [&](i64 i) { return x.real(from(i, many.integer(i))); }, 0, "gather");
        for (const bool sum : {false, true}) {
          self.fill([](i64) { return 1; });
          want.fill([](i64) { return 1; });
          ScatterAttributes scatter{.dim = dim, .add = sum};
          bench.run("scatter", {self}, {many, y}, &scatter);
          for (i64 i = 0; i < y.count(); ++i) {
            const i64 to = from(i, many.integer(i));
            want.set(to, (sum ? want.real(to) : 0) + y.real(i));
          }
          expect_near(
              self, [&](i64 i) { return want.real(i); }, 64 * epsilon_of(dtype), "scatter");
        }
      }
      Random random(157);
      const Tensor dy = random_tensor(dtype, {40, 33}, Layout::kContiguous, random, -4, 4);
      const Tensor index = random_indices({40}, 0, 11, random);
      for (const bool scale : {false, true}) {
        if (scale && dtype == Dtype::kInt64) continue;
        Tensor dw(dtype, {11, 33});
        EmbeddingBackwardAttributes attributes{.padding_index = 3, .scale_by_frequency = scale};
        bench.run("embedding_backward", {dw}, {dy, index}, &attributes);
        std::vector<double> want(11 * 33, 0.0), seen(11, 0.0);
        for (i64 i = 0; i < 40; ++i) seen[static_cast<std::size_t>(index.integer(i))] += 1;
        for (i64 i = 0; i < 40 * 33; ++i) {
          const i64 row = index.integer(i / 33);
          if (row != 3)
            want[static_cast<std::size_t>(row * 33 + i % 33)] +=
                dy.real(i) / (scale ? seen[static_cast<std::size_t>(row)] : 1);
        }
        expect_near(
            dw, [&](i64 i) { return want[static_cast<std::size_t>(i)]; }, 16 * epsilon_of(dtype), "embedding_backward",
            64 * epsilon_of(dtype));
      }
    }
  });
}

TEST(Indexing, TrianglesSequencesAndNonzero) {
  for_each_bench([](Bench& bench) {
    Random random(163);
    for (const i64 diagonal : {-2, 0, 1}) {
      const Tensor x = random_tensor(Dtype::kFloat32, {2, 5, 7}, Layout::kTransposed, random, 1, 2);
      Tensor low(Dtype::kFloat32, {2, 5, 7}), high(Dtype::kFloat32, {2, 5, 7});
      TriangleAttributes attributes{.diagonal = diagonal};
      bench.run("tril", {low}, {x}, &attributes);
      bench.run("triu", {high}, {x}, &attributes);
      expect_near(
          low, [&](i64 i) { return i % 7 - i / 7 % 5 <= diagonal ? x.real(i) : 0; }, 0, "tril");
      expect_near(
          high, [&](i64 i) { return i % 7 - i / 7 % 5 >= diagonal ? x.real(i) : 0; }, 0, "triu");
    }
    for (const Dtype dtype : {Dtype::kInt32, Dtype::kInt64, Dtype::kFloat32, Dtype::kFloat64}) {
      Tensor y(dtype, {23});
      SequenceAttributes sequence{.start = {3, 3}, .step = {2, 2}, .end = {47, 47}};
      bench.run("arange", {y}, {}, &sequence);
      expect_near(
          y, [](i64 i) { return 3.0 + 2.0 * static_cast<double>(i); }, 0, "arange");
      bench.run("linspace", {y}, {}, &sequence);
      expect_near(
          y, [](i64 i) { return 3.0 + 2.0 * static_cast<double>(i); }, 0, "linspace");
      Tensor unit(dtype, {4, 6});
      bench.run("eye", {unit}, {});
      expect_near(
          unit, [](i64 i) { return i / 6 == i % 6 ? 1.0 : 0.0; }, 0, "eye");
    }
    Tensor x(Dtype::kFloat32, {3, 4}, Layout::kTransposed), count(Dtype::kInt64, {}), where(Dtype::kInt64, {4, 2});
    x.fill([](i64 i) { return i % 3 == 0 ? 1.0 : 0.0; });
    bench.run("count_nonzero_all", {count}, {x});
    EXPECT_EQ(count.integer(0), 4);
    bench.run("nonzero", {where}, {x});
    expect_equal(
        where, [](i64 i) { return i % 2 == 0 ? i / 2 * 3 / 4 : i / 2 * 3 % 4; }, "nonzero");
  });
}

TEST(Scan, RunningResults) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt64, Dtype::kInt32}) {
      for (const int dim : {0, 1}) {
        Random random(167);
        const Tensor x = random_tensor(dtype, {9, 700}, Layout::kTransposed, random, 1, 3);
        Tensor sum(dtype, {9, 700}), most(dtype, {9, 700}), at(Dtype::kInt64, {9, 700});
        DimAttributes attributes{.dim = dim};
        bench.run("cumsum", {sum}, {x}, &attributes);
        bench.run("cummax", {most, at}, {x}, &attributes);
        const i64 length = dim ? 700 : 9, step = dim ? 1 : 700;
        for (i64 line = 0; line < (dim ? 9 : 700); ++line) {
          double running = 0, best = -1;
          i64 where = 0;
          for (i64 k = 0; k < length; ++k) {
            const i64 i = (dim ? line * 700 : line) + k * step;
            running += x.real(i);
            if (x.real(i) >= best) best = x.real(i), where = k;
            ASSERT_NEAR(sum.real(i), running, (dtype == Dtype::kFloat64 ? 64 : 4) * epsilon_of(dtype) * running);
            ASSERT_EQ(most.real(i), best);
            ASSERT_EQ(at.integer(i), where);
          }
        }
      }
    }
    Tensor x(Dtype::kFloat64, {6}), y(Dtype::kFloat64, {6});
    x.fill([](i64 i) { return 0.5 * static_cast<double>(i) - 1; });
    DimAttributes attributes{.dim = 0};
    bench.run("logcumsumexp", {y}, {x}, &attributes);
    double total = 0;
    for (i64 i = 0; i < 6; ++i) {
      total += std::exp(x.real(i));
      EXPECT_NEAR(y.real(i), std::log(total), 1e-14);
    }
  });
}

TEST(Sort, IsStableAndPutsNanLast) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : kAllTypes) {
      for (const bool descending : {false, true}) {
        Random random(173);
        Tensor x = random_tensor(dtype, {5, 90}, Layout::kTransposed, random, 0, 9);
        if (is_floating_point(dtype)) x.set(17, std::nan(""));
        Tensor values(dtype, {5, 90}), index(Dtype::kInt64, {5, 90});
        SortAttributes attributes{.dim = 1, .descending = descending};
        bench.run("sort", {values, index}, {x}, &attributes);
        Tensor best(dtype, {5, 7}), best_index(Dtype::kInt64, {5, 7});
        TopkAttributes top{.k = 7, .dim = 1, .largest = descending};
        bench.run("topk", {best, best_index}, {x}, &top);
        for (i64 row = 0; row < 5; ++row) {
          std::vector<i64> order(90);
          std::iota(order.begin(), order.end(), 0);
          std::stable_sort(order.begin(), order.end(), [&](i64 a, i64 b) {
            const double u = x.real(row * 90 + a), v = x.real(row * 90 + b);
            if (std::isnan(u) || std::isnan(v))
              return descending ? std::isnan(u) && !std::isnan(v) : !std::isnan(u) && std::isnan(v);
            return descending ? u > v : u < v;
          });
          for (i64 i = 0; i < 90; ++i) {
            ASSERT_EQ(index.integer(row * 90 + i), order[static_cast<std::size_t>(i)]);
            if (i < 7) {
              ASSERT_EQ(best_index.integer(row * 7 + i), order[static_cast<std::size_t>(i)]);
            }
          }
        }
      }
    }
  });
}

// Philox4x32-10 written plainly, from the paper (Salmon et al. 2011).
void philox(std::uint64_t seed, std::uint64_t block, std::uint32_t* out) {
  std::uint32_t c[4] = {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0};
  std::uint32_t k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int r = 0; r < 10; ++r) {
    const std::uint64_t p = 0xD2511F53ull * c[0], q = 0xCD9E8D57ull * c[2];
    const std::uint32_t next[4] = {static_cast<std::uint32_t>(q >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(q),
                                   static_cast<std::uint32_t>(p >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p)};
    std::copy_n(next, 4, c);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  std::copy_n(c, 4, out);
}
std::uint32_t word(const RandomAttributes& r, i64 i) {
  std::uint32_t block[4];
  philox(r.seed, r.offset + static_cast<std::uint64_t>(i / 4), block);
  return block[i % 4];
}

TEST(RandomNumbers, OfAUniformRangeAreNoMoreThanTheMostAskedFor) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat32, Dtype::kFloat64}) {
      RandomAttributes r{.seed = 5, .offset = 3};
      r.most = 0.99609375;  // before 1 in bfloat16
      Tensor y(dtype, {20011});
      bench.run("uniform", {y}, {}, &r);
      double highest = 0;
      for (i64 i = 0; i < y.count(); ++i) highest = std::max(highest, y.real(i));
      EXPECT_EQ(highest, r.most) << name_of(dtype);
    }
  });
}

TEST(RandomNumbers, AreTheOnesThatTheNoteFixes) {
  // The published vector: counter and key of zeros.
  std::uint32_t zero[4];
  philox(0, 0, zero);
  EXPECT_EQ(zero[0], 0x6627e8d5u);
  EXPECT_EQ(zero[1], 0xe169c58du);
  EXPECT_EQ(zero[2], 0xbc57ac4cu);
  EXPECT_EQ(zero[3], 0x9b00dbd8u);
  for_each_bench([](Bench& bench) {
    for (const i64 n : {0, 1, 5, 1031, 20011}) {
      RandomAttributes r{.seed = 0x123456789abcdefull, .offset = 77, .a = -1, .b = 3};
      Tensor y(Dtype::kFloat32, {n}), z(Dtype::kFloat64, {n});
      bench.run("uniform", {y}, {}, &r);
      expect_near(
          y, [&](i64 i) { return -1 + 4 * ((word(r, i) >> 8) * 0x1p-24); }, 2e-7, "uniform", 3e-7);
      bench.run("uniform", {z}, {}, &r);
      expect_near(
          z,
          [&](i64 i) {
            const std::uint64_t bits = (std::uint64_t{word(r, 2 * i + 1)} << 32 | word(r, 2 * i)) >> 11;
            return -1 + 4 * (static_cast<double>(bits) * 0x1p-53);
          },
          1e-15, "uniform float64", 1e-15);
      auto gauss = [&](i64 i) {
        const i64 j = i / 2 * 2;
        const double radius = std::sqrt(-2 * std::log((word(r, j) + 1.0) * 0x1p-32));
        const double angle = 2 * M_PI * (word(r, j + 1) * 0x1p-32);
        return -1 + 3 * (radius * (i % 2 ? std::sin(angle) : std::cos(angle)));
      };
      bench.run("normal", {y}, {}, &r);
      expect_near(y, gauss, 1e-5, "normal", 1e-5);
      bench.run("normal", {z}, {}, &r);
      expect_near(z, gauss, 1e-13, "normal float64", 1e-13);
      r.a = 2;
      bench.run("exponential", {y}, {}, &r);
      expect_near(
          y, [&](i64 i) { return -std::log((word(r, i) + 1.0) * 0x1p-32) / 2; }, 1e-5, "exponential", 1e-9);
      r.a = 0.3;
      Tensor mask(Dtype::kBool, {n});
      bench.run("bernoulli", {mask}, {Tensor()}, &r);
      expect_equal(
          mask, [&](i64 i) { return word(r, i) * 0x1p-32 < 0.3; }, "bernoulli");
      bench.run("bernoulli", {y}, {Tensor()}, &r);
      expect_near(
          y, [&](i64 i) { return word(r, i) * 0x1p-32 < 0.3 ? 1.0 : 0.0; }, 0, "bernoulli float32");
      Random random(179);
      const Tensor p = random_tensor(Dtype::kFloat32, {n}, Layout::kContiguous, random, 0, 1);
      bench.run("bernoulli", {mask}, {p}, &r);
      expect_equal(
          mask, [&](i64 i) { return word(r, i) * 0x1p-32 < p.real(i); }, "bernoulli of p");
      r.low = -5;
      r.high = 12;
      Tensor whole(Dtype::kInt64, {n});
      bench.run("randint", {whole}, {}, &r);
      auto draw = [&](i64 i) { return std::uint64_t{word(r, 2 * i + 1)} << 32 | word(r, 2 * i); };
      expect_equal(
          whole, [&](i64 i) { return -5 + static_cast<i64>(draw(i) % 17); }, "randint");
      bench.run("randperm", {whole}, {}, &r);
      std::vector<i64> order(static_cast<std::size_t>(n));
      std::iota(order.begin(), order.end(), 0);
      for (i64 i = n - 1; i > 0; --i) {
        std::swap(order[static_cast<std::size_t>(i)], order[draw(n - 1 - i) % static_cast<std::uint64_t>(i + 1)]);
      }
      expect_equal(
          whole, [&](i64 i) { return order[static_cast<std::size_t>(i)]; }, "randperm");
    }
  });
}

TEST(Folding, ColumnsAndBack) {
  for_each_bench([](Bench& bench) {
    Random random(181);
    PoolAttributes a;
    for (int d = 0; d < 2; ++d) a.kernel[d] = 3, a.stride[d] = 2, a.padding[d] = 1, a.dilation[d] = 1;
    const i64 h = 7, w = 6, oh = 4, ow = 3;
    for (const Dtype dtype : kFloats) {
      const Tensor x = random_tensor(dtype, {2, 3, h, w}, Layout::kContiguous, random);
      Tensor columns(dtype, {2, 27, oh * ow}), back(dtype, {2, 3, h, w});
      bench.run("im2col", {columns}, {x}, &a);
      bench.run("col2im", {back}, {columns}, &a);
      std::vector<double> want(static_cast<std::size_t>(x.count()), 0.0);
      for (i64 i = 0; i < columns.count(); ++i) {
        const i64 l = i % (oh * ow), tap = i / (oh * ow) % 9, plane = i / (oh * ow) / 9;
        const i64 r = l / ow * 2 - 1 + tap / 3, c = l % ow * 2 - 1 + tap % 3;
        const bool inside = r >= 0 && r < h && c >= 0 && c < w;
        const i64 at = (plane * h + r) * w + c;
        ASSERT_EQ(columns.real(i), inside ? x.real(at) : 0);
        if (inside) want[static_cast<std::size_t>(at)] += x.real(at);
      }
      expect_near(
          back, [&](i64 i) { return want[static_cast<std::size_t>(i)]; }, std::max(1e-6, 4 * epsilon_of(dtype)),
          "col2im");
    }
  });
}

}  // namespace
}  // namespace tenon::conformance
