// Indexing where order, amount or bounds matter: many writes to few places, every type, wrong indices, nonzero of many.
#include <tenon/core/error.h>
#include <tenon/kernel/attributes/indexing.h>
#include <tenon/kernel/attributes/reduction.h>

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "harness.h"

namespace tenon::conformance {
namespace {

TEST(Indexing, TheLastOfManyEqualIndicesWins) {
  for_each_bench([](Bench& bench) {
    Random random(251);
    const i64 n = 9001;
    const Tensor values = random_tensor(Dtype::kInt32, {n}, Layout::kContiguous, random, -1000, 1000);
    for (const i64 places : {1, 70}) {
      const Tensor index = random_indices({n}, -places, places, random);
      Tensor self(Dtype::kInt32, {places}), sums(Dtype::kInt32, {places}), put(Dtype::kInt32, {places});
      self.fill([](i64) { return 5; });
      sums.fill([](i64) { return 5; });
      put.fill([](i64) { return 5; });
      std::vector<i64> last(static_cast<std::size_t>(places), 5), total(static_cast<std::size_t>(places), 5);
      Tensor positive(Dtype::kInt64, {n});
      for (i64 i = 0; i < n; ++i) {
        const i64 to = (index.integer(i) + places) % places;
        positive.set_integer(i, to);
        last[static_cast<std::size_t>(to)] = values.integer(i);
        total[static_cast<std::size_t>(to)] += values.integer(i);
      }
      IndexAttributes attributes;
      bench.run("index_put", {put}, {values, index}, &attributes);
      attributes.accumulate = true;
      bench.run("index_put", {sums}, {values, index}, &attributes);
      ScatterAttributes scatter;
      bench.run("scatter", {self}, {positive, values}, &scatter);
      for (i64 i = 0; i < places; ++i) {
        ASSERT_EQ(put.integer(i), last[static_cast<std::size_t>(i)]);
        ASSERT_EQ(self.integer(i), last[static_cast<std::size_t>(i)]);
        ASSERT_EQ(sums.integer(i), total[static_cast<std::size_t>(i)]);
      }
    }
  });
}

TEST(Indexing, SumsOfManyAreTheSameEachTime) {
  for_each_bench([](Bench& bench) {
    Random random(257);
    const i64 n = 6007;
    const Tensor dy = random_tensor(Dtype::kFloat32, {n, 3}, Layout::kTransposed, random, -4, 4);
    const Tensor index = random_indices({n}, 0, 5, random);
    Tensor first(Dtype::kFloat32, {6, 3}), again(Dtype::kFloat32, {6, 3});
    EmbeddingBackwardAttributes attributes;
    bench.run("embedding_backward", {first}, {dy, index}, &attributes);
    bench.run("embedding_backward", {again}, {dy, index}, &attributes);
    std::vector<double> want(18, 0.0);
    for (i64 i = 0; i < n * 3; ++i) want[static_cast<std::size_t>(index.integer(i / 3) * 3 + i % 3)] += dy.real(i);
    for (i64 i = 0; i < 18; ++i) {
      ASSERT_EQ(first.real(i), again.real(i));
      ASSERT_NEAR(first.real(i), want[static_cast<std::size_t>(i)], 0.02);
    }
  });
}

TEST(Indexing, EveryTypeIsGatheredScatteredAndSelected) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : kAllTypes) {
      Random random(263);
      const Tensor x = random_tensor(dtype, {4, 6}, Layout::kStrided, random, 0, 9);
      const Tensor index = random_indices({3, 6}, 0, 4, random), rows = random_indices({5}, 0, 4, random);
      Tensor y(dtype, {3, 6}, Layout::kTransposed), selected(dtype, {5, 6}), self(dtype, {4, 6}), want(dtype, {4, 6});
      DimAttributes dim;
      bench.run("gather", {y}, {x, index}, &dim);
      expect_near(
          y, [&](i64 i) { return x.real(index.integer(i) * 6 + i % 6); }, 0, "gather");
      bench.run("index_select", {selected}, {x, rows}, &dim);
      expect_near(
          selected, [&](i64 i) { return x.real(rows.integer(i / 6) * 6 + i % 6); }, 0, "index_select");
      for (const bool add : {false, true}) {
        self.fill([](i64) { return 1; });
        want.fill([](i64) { return 1; });
        ScatterAttributes scatter{.dim = 0, .add = add};
        bench.run("scatter", {self}, {index, y}, &scatter);
        for (i64 i = 0; i < 18; ++i) {
          const i64 to = index.integer(i) * 6 + i % 6;
          const double value = (add ? want.real(to) : 0) + y.real(i);
          want.set(to, dtype == Dtype::kBool ? value != 0 : value);
        }
        expect_near(
            self, [&](i64 i) { return want.real(i); }, 4 * epsilon_of(dtype), "scatter");
      }
    }
  });
}

TEST(Indexing, ScalarsAndNothing) {
  for_each_bench([](Bench& bench) {
    Tensor x(Dtype::kFloat32, {}), index(Dtype::kInt64, {}), y(Dtype::kFloat32, {}), one(Dtype::kFloat32, {1});
    x.set(0, 3);
    index.set_integer(0, 0);
    DimAttributes dim;
    bench.run("gather", {y}, {x, index}, &dim);
    EXPECT_EQ(y.real(0), 3);
    const Tensor line = Tensor(Dtype::kFloat32, {3}).fill([](i64 i) { return static_cast<double>(i); });
    index.set_integer(0, -1);
    IndexAttributes attributes;
    bench.run("index", {y}, {line, index}, &attributes);
    EXPECT_EQ(y.real(0), 2);
    index.set_integer(0, 1);
    bench.run("index_select", {one}, {line, index}, &dim);
    EXPECT_EQ(one.real(0), 1);
    const Tensor none(Dtype::kInt64, {0}), no_rows(Dtype::kFloat32, {0, 3});
    Tensor table(Dtype::kFloat32, {2, 3});
    table.fill([](i64) { return 7; });
    bench.run("index", {Tensor(Dtype::kFloat32, {0, 3})}, {table, none}, &attributes);
    bench.run("index_put", {table}, {no_rows, none}, &attributes);
    IndexAddAttributes add;
    bench.run("index_add", {table}, {none, no_rows}, &add);
    expect_near(
        table, [](i64) { return 7; }, 0, "nothing was written");
    EmbeddingBackwardAttributes embedding;
    bench.run("embedding_backward", {table}, {no_rows, none}, &embedding);
    expect_near(
        table, [](i64) { return 0; }, 0, "no gradient");
  });
}

TEST(Indexing, WrongIndicesAreNamedAndDoNoHarm) {
  for_each_bench([](Bench& bench) {
    const Tensor x = Tensor(Dtype::kFloat32, {4, 3}).fill([](i64) { return 1; });
    Tensor self(Dtype::kFloat32, {4, 3}), y(Dtype::kFloat32, {2, 3});
    Tensor rows(Dtype::kInt64, {2}), all(Dtype::kInt64, {2, 3});
    rows.fill([](i64 i) { return i == 0 ? 9 : 0; });
    all.fill([](i64 i) { return i == 4 ? -1 : 0; });
    self.fill([](i64) { return 1; });
    const auto refused = [&](const char* kernel, std::vector<Tensor> out, std::vector<Tensor> in,
                             const void* attributes, const std::string& message) {
      try {
        bench.run(kernel, std::move(out), std::move(in), attributes);
        ADD_FAILURE() << kernel << " took an index that is out of bounds";
      } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()).substr(0, message.size()), message) << kernel;
      }
    };
    DimAttributes dim;
    IndexAddAttributes add;
    IndexAttributes put;
    ScatterAttributes scatter;
    EmbeddingBackwardAttributes embedding;
    const std::string in_self = "index out of range in self: index 9 is out of bounds for dimension 0 with size 4";
    refused("index_select", {y}, {x, rows}, &dim, in_self);
    refused("index_add", {self}, {rows, y}, &add, in_self);
    refused("embedding_backward", {self}, {y, rows}, &embedding, in_self);
    refused("index_put", {self}, {y, rows}, &put, "index 9 is out of bounds for dimension 0 with size 4");
    refused("gather", {y}, {x, all}, &dim, "index -1 is out of bounds for dimension 0 with size 4");
    refused("scatter", {self}, {all, y}, &scatter, "index -1 is out of bounds for dimension 0 with size 4");
  });
}

TEST(Indexing, NonzeroOfManyInOrder) {
  for_each_bench([](Bench& bench) {
    Random random(269);
    for (const Dtype dtype : kAllTypes) {
      for (const Sizes& sizes : {Sizes{700}, Sizes{3, 50, 7}}) {
        Tensor x(dtype, sizes, Layout::kStrided), count(Dtype::kInt64, {});
        x.fill([&](i64) { return random.integer(0, 3) == 0 ? 0.0 : 1.0; });
        if (is_floating_point(dtype)) x.set(13, -0.0), x.set(14, std::nan(""));
        std::vector<i64> where;
        for (i64 i = 0; i < x.count(); ++i) {
          if (x.real(i) != 0) where.push_back(i);
        }
        const auto rank = static_cast<i64>(sizes.size());
        Tensor index(Dtype::kInt64, {static_cast<i64>(where.size()), rank}, Layout::kTransposed);
        bench.run("count_nonzero_all", {count}, {x});
        bench.run("nonzero", {index}, {x});
        ASSERT_EQ(count.integer(0), static_cast<i64>(where.size()));
        for (i64 i = 0; i < index.count(); ++i) {
          const Sizes at = coordinates(where[static_cast<std::size_t>(i / rank)], sizes);
          ASSERT_EQ(index.integer(i), at[static_cast<std::size_t>(i % rank)]) << name_of(dtype);
        }
      }
    }
    Tensor x(Dtype::kBool, {90000}), index(Dtype::kInt64, {2, 1});  // more blocks than one adds up at a time
    x.fill([](i64 i) { return i == 255 || i == 89999; });
    bench.run("nonzero", {index}, {x});
    EXPECT_EQ(index.integer(0), 255);
    EXPECT_EQ(index.integer(1), 89999);
  });
}

TEST(Indexing, TrianglesOfEveryTypeAndLayout) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : kAllTypes) {
      for (const Sizes& sizes : {Sizes{4, 5}, Sizes{2, 3, 1}, Sizes{0, 3, 3}, Sizes{2, 0}}) {
        Random random(271);
        const Tensor x = random_tensor(dtype, sizes, Layout::kTransposed, random, 1, 9);
        Tensor y(dtype, sizes, Layout::kStrided);
        const i64 columns = sizes.back(), rows = sizes[sizes.size() - 2];
        for (const i64 diagonal : {-7, -1, 2}) {
          TriangleAttributes attributes{.diagonal = diagonal};
          bench.run("triu", {y}, {x}, &attributes);
          expect_near(
              y, [&](i64 i) { return i % columns - i / columns % rows >= diagonal ? x.real(i) : 0; }, 0, "triu");
        }
      }
    }
  });
}

}  // namespace
}  // namespace tenon::conformance
