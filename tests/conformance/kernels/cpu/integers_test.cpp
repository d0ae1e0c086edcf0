// What adds and multiplies 64-bit integers does so modulo 2^64. UndefinedBehaviorSanitizer says where it is done in a
// signed type, which the language leaves undefined.
#include <tenon/kernel/attributes/indexing.h>
#include <tenon/kernel/attributes/linear.h>
#include <tenon/kernel/attributes/pointwise.h>
#include <tenon/kernel/attributes/reduction.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string_view>

#include "../harness.h"

namespace tenon::conformance {
namespace {

using u64 = std::uint64_t;

u64 word(const Tensor& tensor, i64 index) { return static_cast<u64>(tensor.integer(index)); }

// Around 2^62, so that four of them are more than there are numbers.
Tensor large(const Sizes& sizes, Layout layout = Layout::kContiguous) {
  Tensor x(Dtype::kInt64, sizes, layout);
  for (i64 i = 0; i < x.count(); ++i) x.set_integer(i, (i64{1} << 62) + 3 * i + 1);
  return x;
}

Tensor places(const Sizes& sizes, i64 below) {
  Tensor index(Dtype::kInt64, sizes);
  for (i64 i = 0; i < index.count(); ++i) index.set_integer(i, i % below);
  return index;
}

TEST(Integers, SumsAndProductsWrap) {
  for_each_bench([](Bench& bench) {
    for (const i64 n : {31, 40000}) {  // the second is cut into parts
      for (const Layout layout : {Layout::kContiguous, Layout::kTransposed}) {
        const Tensor x = large({3, n}, layout);
        Tensor sum(Dtype::kInt64, {3, 1}), product(Dtype::kInt64, {3, 1});
        bench.run("sum", {sum}, {x});
        bench.run("prod", {product}, {x});
        for (i64 i = 0; i < 3; ++i) {
          u64 total = 0, times = 1;
          for (i64 k = 0; k < n; ++k) total += word(x, i * n + k), times *= word(x, i * n + k);
          EXPECT_EQ(word(sum, i), total);
          EXPECT_EQ(word(product, i), times);
        }
      }
    }
  });
}

TEST(Integers, ProductsOfMatricesWrap) {
  for_each_bench([](Bench& bench) {
    const Tensor a = large({3, 17}), b = large({17, 5}), c = large({3, 5});
    Tensor y(Dtype::kInt64, {3, 5});
    const MatmulAttributes attributes{.alpha = 3, .beta = 5};
    bench.run("matmul", {y}, {a, b, c}, &attributes);
    for (i64 i = 0; i < y.count(); ++i) {
      u64 want = 5 * word(c, i);
      for (i64 k = 0; k < 17; ++k) want += 3 * word(a, i / 5 * 17 + k) * word(b, k * 5 + i % 5);
      EXPECT_EQ(word(y, i), want);
    }
  });
}

TEST(Integers, WhatIsAddedToElementsWraps) {
  for_each_bench([](Bench& bench) {
    const Tensor values = large({12});
    const Tensor index = places({12}, 4);
    for (const char* name : {"index_add", "scatter", "index_put"}) {
      Tensor self = large({4});
      u64 want[4];
      const u64 scale = name == std::string_view("index_add") ? 3 : 1;
      for (i64 i = 0; i < 4; ++i) want[i] = word(self, i);
      for (i64 i = 0; i < 12; ++i) want[i % 4] += scale * word(values, i);
      const IndexAddAttributes add{.dim = 0, .alpha = 3};
      const ScatterAttributes scatter{.dim = 0, .add = true};
      IndexAttributes put;
      put.accumulate = true;
      if (scale == 3)
        bench.run(name, {self}, {index, values}, &add);
      else if (name == std::string_view("scatter"))
        bench.run(name, {self}, {index, values}, &scatter);
      else
        bench.run(name, {self}, {values, index}, &put);
      for (i64 i = 0; i < 4; ++i) EXPECT_EQ(word(self, i), want[i]) << name;
    }
  });
}

TEST(Integers, ProductsThatAreAddedWrap) {
  for_each_bench([](Bench& bench) {
    const Tensor x = large({70}), a = large({70}, Layout::kStrided), b = large({70});
    Tensor y(Dtype::kInt64, {70});
    const TernaryAttributes attributes{.value = {3, 3}};
    bench.run("addcmul", {y}, {x, a, b}, &attributes);
    for (i64 i = 0; i < 70; ++i) EXPECT_EQ(word(y, i), word(x, i) + 3 * word(a, i) * word(b, i));
  });
}

TEST(Integers, SquaresAndTheSmallestNegatedWrap) {
  for_each_bench([](Bench& bench) {
    Tensor x = large({70}), y(Dtype::kInt64, {70});
    x.set_integer(3, std::numeric_limits<i64>::min());
    x.set_integer(66, -7);
    bench.run("square", {y}, {x});
    for (i64 i = 0; i < 70; ++i) EXPECT_EQ(word(y, i), word(x, i) * word(x, i));
    bench.run("neg", {y}, {x});
    for (i64 i = 0; i < 70; ++i) EXPECT_EQ(word(y, i), 0 - word(x, i));
    bench.run("abs", {y}, {x});
    for (i64 i = 0; i < 70; ++i) EXPECT_EQ(word(y, i), x.integer(i) < 0 ? 0 - word(x, i) : word(x, i));
  });
}

TEST(Integers, WindowsThatOverlapWrap) {
  for_each_bench([](Bench& bench) {
    // Windows of three of a line of ten: eight of them, and the places in the middle are in three.
    PoolAttributes a;
    a.kernel[1] = 3;
    const Tensor columns = large({1, 3, 8});
    Tensor back(Dtype::kInt64, {1, 1, 1, 10});
    bench.run("col2im", {back}, {columns}, &a);
    u64 want[10] = {};
    for (i64 i = 0; i < 24; ++i) want[i / 8 + i % 8] += word(columns, i);
    for (i64 i = 0; i < 10; ++i) EXPECT_EQ(word(back, i), want[i]);

    const Tensor gradient = large({1, 1, 12}), where = places({1, 1, 12}, 4);
    Tensor dx(Dtype::kInt64, {1, 1, 4});
    bench.run("max_pool_backward", {dx}, {gradient, where});
    for (i64 i = 0; i < 4; ++i) {
      EXPECT_EQ(word(dx, i), word(gradient, i) + word(gradient, i + 4) + word(gradient, i + 8));
    }
  });
}

}  // namespace
}  // namespace tenon::conformance
