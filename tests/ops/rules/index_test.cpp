// Rows filled, added, copied and reduced by their positions: what positions may be, whom gradients go to.
#include "../../support/message_of.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensor/literal.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

using Widths = std::vector<std::int64_t>;

Tensor real(const Tensor& x) { return x.to(kFloat64); }
Tensor upwards(const Widths& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return arange(1, count + 1).view(sizes);
}

TEST(IndexFillRules, RowsAreFilledOnceHoweverOftenTheyAreNamed) {
  const Tensor x = upwards({3, 2});
  EXPECT_TRUE(x.index_fill(0, tensor({2, 0, 2}), 9).equal(tensor({{9, 9}, {3, 4}, {9, 9}})));
  EXPECT_TRUE(x.index_fill(-1, tensor(1), 9).equal(tensor({{1, 9}, {3, 9}, {5, 9}})));
  EXPECT_TRUE(x.index_fill(0, zeros({0}, kInt64), 9).equal(x));
  EXPECT_TRUE(x.index_fill(0, tensor({-1}), 9).equal(tensor({{1, 2}, {3, 4}, {9, 9}})));
  EXPECT_TRUE(x.index_fill(0, tensor({1}), tensor(7.9)).equal(tensor({{1, 2}, {7, 7}, {5, 6}})));
  EXPECT_EQ(tensor(1).index_fill(0, tensor({0}), 4).item<std::int64_t>(), 4);
  const Tensor leaf = real(x).requires_grad_(), value = real(tensor(2.)).requires_grad_();
  leaf.mul(1).index_fill_(0, tensor({2, 0, 2}), value).mul(real(upwards({3, 2}))).sum().backward();
  EXPECT_TRUE(leaf.grad().equal(real(tensor({{0, 0}, {3, 4}, {0, 0}}))));
  EXPECT_EQ(value.grad().item<double>(), 14);
  EXPECT_EQ(message_of([&] { x.index_fill(0, tensor({1}), tensor({1})); }),
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with 1 dimension(s).");
  EXPECT_EQ(message_of<IndexError>([&] { x.index_fill(0, tensor({1}).to(kInt32), 1); }),
            "index_fill_(): Expected dtype int64 for index.");
  EXPECT_EQ(message_of<IndexError>([&] { x.index_fill(0, tensor({{1}}), 1); }), "Index has to be a vector/scalar");
  EXPECT_THROW(x.index_fill(0, tensor({3}), 1), IndexError);
  EXPECT_THROW(real(x).requires_grad_().index_fill_(0, tensor({0}), 1), Error);
}

TEST(IndexSelectRules, PicksByAVectorOrANumber) {
  const Tensor x = upwards({3, 2});
  for (const Dtype dtype : {kInt64, kInt32}) {
    EXPECT_TRUE(x.index_select(0, tensor({2, 0, 2}).to(dtype)).equal(tensor({{5, 6}, {1, 2}, {5, 6}})));
    EXPECT_TRUE(x.index_select(-1, tensor(1).to(dtype)).equal(tensor({{2}, {4}, {6}})));
  }
  EXPECT_EQ(x.index_select(0, zeros({0}, kInt64)).sizes().vec(), (Widths{0, 2}));
  EXPECT_EQ(tensor(7).index_select(0, tensor({0})).dim(), 0);
  const Tensor leaf = real(x).requires_grad_();
  leaf.index_select(0, tensor({2, 0, 2})).mul(real(upwards({3, 2}))).sum().backward();
  EXPECT_TRUE(leaf.grad().equal(real(tensor({{3, 4}, {0, 0}, {6, 8}}))));
  EXPECT_EQ(message_of<IndexError>([&] { x.index_select(0, tensor({{0}})); }),
            "index_select(): Index is supposed to be a vector");
  EXPECT_EQ(message_of<IndexError>([] {
              tensor(7).index_select(0, tensor({0, 0}));
            }),
            "index_select(): Index to scalar can have only 1 value, got 2 value(s)");
  EXPECT_THROW(x.index_select(0, tensor({1.f})), Error);
  EXPECT_THROW(x.index_select(0, tensor({3})), IndexError);
  EXPECT_THROW(x.index_select(2, tensor({0})), IndexError);
}

TEST(IndexAddRules, RowsAreAddedOnceForEachNameAndBroadcast) {
  const Tensor x = zeros({3, 2}, kInt64), rows = upwards({3, 2});
  EXPECT_TRUE(x.index_add(0, tensor({2, 0, 2}), rows).equal(tensor({{3, 4}, {0, 0}, {6, 8}})));
  EXPECT_TRUE(x.index_add(0, tensor({2, 0, 2}), rows, 3).equal(tensor({{9, 12}, {0, 0}, {18, 24}})));
  EXPECT_TRUE(x.index_add(1, tensor({1}), rows.narrow(1, 0, 1)).equal(tensor({{0, 1}, {0, 3}, {0, 5}})));
  EXPECT_TRUE(x.index_add(0, tensor({1, 1}), tensor({{5}, {6}})).equal(tensor({{0, 0}, {11, 11}, {0, 0}})));
  EXPECT_TRUE(zeros({3}, kInt64).index_add(0, tensor(1), tensor(4)).equal(tensor({0, 4, 0})));
  EXPECT_EQ(tensor(1).index_add(0, tensor({0, 0}), tensor({4, 5})).item<std::int64_t>(), 10);
  EXPECT_TRUE(zeros({2}, kBool).index_add(0, tensor({1}), tensor({true}), 7).equal(tensor({false, true})));
  const Tensor base = real(x).requires_grad_(), source = real(rows).requires_grad_(),
               column = real(tensor({{5}, {6}})).requires_grad_();
  base.index_add(0, tensor({2, 0, 2}), source, 3).mul(real(upwards({3, 2}))).sum().backward();
  EXPECT_TRUE(base.grad().equal(real(upwards({3, 2}))));
  EXPECT_TRUE(source.grad().equal(real(tensor({{15, 18}, {3, 6}, {15, 18}}))));
  base.index_add(0, tensor({1, 2}), column).mul(real(upwards({3, 2}))).sum().backward();
  EXPECT_TRUE(column.grad().equal(real(tensor({{7}, {11}}))));
  Tensor line = arange(5);
  line.index_add_(0, tensor({1, 2, 3, 4}), line.slice(0, 0, 4));
  EXPECT_TRUE(line.equal(tensor({0, 1, 3, 5, 7}))) << "read before it is written";
  EXPECT_THROW(zeros({1}).expand({3}).index_add_(0, tensor({0}), ones({1})), Error);
  EXPECT_THROW(tensor({1}).to(kInt8).index_add(0, tensor({0}), tensor({1}).to(kInt8), 300), Error);
}

TEST(IndexAddRules, RowsAreBroadcastAlongWhicheverDimensionTheyLie) {
  for (const std::int64_t dim : {0, 1, 2}) {
    Widths sizes{1, 1, 1};
    sizes[static_cast<std::size_t>(dim)] = 2;
    const Tensor base = zeros({2, 3, 4}, kFloat64), wanted = zeros({2, 3, 4}, kFloat64),
                 source = real(tensor({5, 7})).view(sizes).requires_grad_();
    wanted.select(dim, 0).fill_(7);
    wanted.select(dim, 1).fill_(5);
    const Tensor sum = base.index_add(dim, tensor({1, 0}), source);
    EXPECT_TRUE(sum.equal(wanted)) << dim;
    sum.mul(wanted).sum().backward();
    const double each = static_cast<double>(24 / base.size(dim));
    EXPECT_TRUE(source.grad().equal(real(tensor({5 * each, 7 * each})).view(sizes))) << dim;
  }
}

TEST(ScatterReduceRules, WhatFallsOnAPlaceIsReducedWithItOrAlone) {
  const Tensor x = real(tensor({{5., -1., 2.}, {0., 4., 3.}})), y = real(tensor({{1., 2., -3., 4.}, {6., 7., 8., 9.}}));
  const Tensor index = tensor({{0, 0, 2, 0}, {1, 2, 2, 1}});
  for (const char* how : {"sum", "prod", "mean", "amax", "amin"}) {
    for (const bool with : {true, false}) {
      const std::string name = how;
      const Tensor got = x.scatter_reduce(1, index, y, how, with);
      for (std::int64_t i = 0; i < 2; ++i) {
        for (std::int64_t j = 0; j < 3; ++j) {
          std::vector<double> all;
          for (std::int64_t k = 0; k < 4; ++k)
            if (index[i][k].item<std::int64_t>() == j) all.push_back(y[i][k].item<double>());
          if (with || all.empty()) all.push_back(x[i][j].item<double>());
          double want = all[0];
          for (std::size_t k = 1; k < all.size(); ++k) {
            if (name == "sum" || name == "mean") want += all[k];
            if (name == "prod") want *= all[k];
            if (name == "amax") want = std::max(want, all[k]);
            if (name == "amin") want = std::min(want, all[k]);
          }
          if (name == "mean") want /= static_cast<double>(all.size());
          EXPECT_NEAR(got[i][j].item<double>(), want, 1e-12) << name << with << i << j;
        }
      }
      EXPECT_TRUE(x.clone().scatter_reduce_(1, index, y, how, with).equal(got));
      EXPECT_TRUE(x.t().scatter_reduce(0, index.t(), y.t(), how, with).equal(got.t()));
      EXPECT_TRUE(x.scatter_reduce(-1, index.to(kInt32), y, how, with).equal(got));
      EXPECT_TRUE(x.scatter_reduce(1, zeros({0, 4}, kInt64), y, how, with).equal(x));
    }
  }
  for (const Dtype dtype : {kUInt8, kInt8, kInt16, kInt32, kInt64}) {
    const Tensor a = tensor({3, 5}).to(dtype), b = tensor({4, 2, 7}).to(dtype), at = tensor({0, 0, 0});
    EXPECT_TRUE(a.scatter_reduce(0, at, b, "amax", false).equal(tensor({7, 5}).to(dtype)));
    EXPECT_TRUE(a.scatter_reduce(0, at, b, "amin", false).equal(tensor({2, 5}).to(dtype)));
    EXPECT_TRUE(a.scatter_reduce(0, at, b, "mean", true).equal(tensor({4, 5}).to(dtype)));
  }
  const Tensor truth = tensor({false, true});
  EXPECT_TRUE(truth.scatter_reduce(0, tensor({0}), tensor({true}), "amax").equal(tensor({true, true})));
  EXPECT_TRUE(truth.scatter_reduce(0, tensor({1}), tensor({false}), "amin").equal(tensor({false, false})));
  EXPECT_EQ(tensor(3.).scatter_reduce(0, tensor(0), tensor(4.), "prod").item<double>(), 12);
  EXPECT_TRUE(x.scatter(1, index, y, "add").equal(x.scatter_reduce(1, index, y, "sum")));
  EXPECT_TRUE(x.clone().scatter_(1, index, y, "multiply").equal(x.scatter_reduce(1, index, y, "prod")));
  EXPECT_EQ(message_of([&] { x.scatter_reduce(1, index, y, "max"); }),
            "reduce argument must be either sum, prod, mean, amax or amin, got max.");
  EXPECT_EQ(tensor(3.).scatter_reduce(0, tensor({0, 0}), tensor({4., 5.}), "prod").item<double>(), 60);
  EXPECT_TRUE(x.t().scatter_reduce(0, index.t(), y.t(), "sum").is_contiguous());
  EXPECT_EQ(message_of([&] { x.scatter(1, index, y, "sum"); }),
            "reduce argument must be either add or multiply, got sum.");
  EXPECT_THROW(x.scatter_reduce(1, index, y.to(kFloat32), "sum"), Error);
  EXPECT_THROW(x.scatter_reduce(1, index.to(kFloat32), y, "sum"), Error);
  EXPECT_THROW(x.scatter_reduce(1, index, y.narrow(1, 0, 3), "amax"), Error);
}

TEST(ScatterReduceRules, AllThatEqualTheExtremeShareItsGradient) {
  const auto gradients = [](const char* how, bool with) {
    const Tensor x = real(tensor({4., 9., 1.})).requires_grad_(),
                 y = real(tensor({4., 2., 4., 7., 7., 5.})).requires_grad_();
    x.scatter_reduce(0, tensor({0, 0, 0, 2, 2}), y, how, with).mul(12).sum().backward();
    return std::pair(x.grad(), y.grad());
  };
  const auto [x_max, y_max] = gradients("amax", true);
  EXPECT_TRUE(x_max.equal(real(tensor({4., 12., 0.}))));
  EXPECT_TRUE(y_max.equal(real(tensor({4., 0., 4., 6., 6., 0.}))));
  const auto [x_alone, y_alone] = gradients("amax", false);
  EXPECT_TRUE(x_alone.equal(real(tensor({0., 12., 0.}))));
  EXPECT_TRUE(y_alone.equal(real(tensor({4., 0., 4., 6., 6., 0.})))) << "self counts though its share is dropped";
  const auto [x_min, y_min] = gradients("amin", true);
  EXPECT_TRUE(x_min.equal(real(tensor({0., 12., 12.}))));
  EXPECT_TRUE(y_min.equal(real(tensor({0., 12., 0., 0., 0., 0.}))));
}

TEST(UniqueRules, ValuesWithTheirPlacesAndCounts) {
  const Tensor x = tensor({{3, 1}, {3, 2}});
  const auto [values, inverse, counts] = _unique2(x, true, true, true);
  EXPECT_TRUE(values.equal(tensor({1, 2, 3})) && counts.equal(tensor({1, 1, 2})));
  EXPECT_TRUE(inverse.equal(tensor({{2, 0}, {2, 1}})));
  EXPECT_EQ(std::get<1>(_unique2(x, true, false, false)).numel(), 0);
  EXPECT_EQ(std::get<2>(_unique2(x, true, true, false)).numel(), 0);
  EXPECT_TRUE(std::get<1>(_unique(x, true, true)).equal(inverse));
  const Tensor none = empty({0, 3});
  EXPECT_EQ(std::get<1>(_unique2(none, true, true, true)).sizes().vec(), (Widths{0, 3}));
  EXPECT_EQ(std::get<0>(_unique2(none, true, true, true)).sizes().vec(), (Widths{0}));
  const Tensor rows = tensor({{2, 1}, {1, 5}, {2, 1}});
  const auto [slices, places, often] = unique_dim(rows, 0);
  EXPECT_TRUE(slices.equal(tensor({{1, 5}, {2, 1}})) && places.equal(tensor({1, 0, 1})) && often.equal(tensor({1, 2})));
  EXPECT_TRUE(std::get<0>(unique_dim(rows.t(), -1)).equal(slices.t()));
  EXPECT_EQ(std::get<0>(unique_dim(empty({0, 3}), 0)).sizes().vec(), (Widths{0, 3}));
  EXPECT_EQ(
      message_of([] {
        unique_dim(empty({0, 3}), 1);
      }),
      "unique_dim: there are 0 sized dimensions, and they aren't selected, so unique cannot be applied (sizes [0, "
      "3], dim 1)");
  const Tensor runs = tensor({1, 1, 2, 2, 1});
  const auto [first, run, length] = unique_consecutive(runs, true, true);
  EXPECT_TRUE(first.equal(tensor({1, 2, 1})) && run.equal(tensor({0, 0, 1, 1, 2})) && length.equal(tensor({2, 2, 1})));
  EXPECT_EQ(std::get<1>(unique_consecutive(runs, false, true)).numel(), 0);
  EXPECT_EQ(std::get<2>(unique_consecutive(runs, true, false)).numel(), 0);
  EXPECT_TRUE(std::get<0>(unique_consecutive(rows, false, false, 0)).equal(rows));
  EXPECT_TRUE(std::get<2>(unique_consecutive(rows, false, false, 0)).equal(tensor({1, 1, 1})))
      << "of rows all are given";
  EXPECT_TRUE(std::get<1>(unique_consecutive(x, true, false)).equal(tensor({{0, 1}, {2, 3}})));
  EXPECT_EQ(std::get<0>(unique_consecutive(empty({0}), true, true)).numel(), 0);
  EXPECT_TRUE(isin(tensor({1, 2, 3}), tensor({3, 1})).equal(tensor({true, false, true})));
  EXPECT_TRUE(isin(tensor({1, 2, 3}), tensor({3, 1}), false, true).equal(tensor({false, true, false})));
  EXPECT_TRUE(isin(tensor({1, 2}), empty({0}, kInt64)).equal(tensor({false, false})));
  EXPECT_TRUE(isin(tensor({1, 2}), empty({0}, kInt64), false, true).equal(tensor({true, true})));
  EXPECT_TRUE(isin(tensor({1, 2, 9}), 9).equal(tensor({false, false, true})));
}

TEST(SearchRules, TheFirstOrTheLastPlaceThatKeepsTheOrder) {
  const Tensor edges = tensor({1., 3., 3., 5.});
  for (double v = 0; v <= 6; v += 0.5) {
    const std::vector<double> list{1, 3, 3, 5};
    const auto low = std::lower_bound(list.begin(), list.end(), v) - list.begin();
    const auto high = std::upper_bound(list.begin(), list.end(), v) - list.begin();
    EXPECT_EQ(searchsorted(edges, tensor(v)).item<std::int64_t>(), low) << v;
    EXPECT_EQ(searchsorted(edges, tensor(v), false, true).item<std::int64_t>(), high) << v;
    EXPECT_EQ(searchsorted(edges, tensor(v), false, false, "right").item<std::int64_t>(), high) << v;
    EXPECT_EQ(bucketize(v, edges).item<std::int64_t>(), low);
    EXPECT_EQ(bucketize(tensor({v}), edges, true, true).item<std::int64_t>(), high);
  }
  EXPECT_EQ(searchsorted(edges, tensor(1.), true).scalar_type(), kInt32);
  EXPECT_EQ(searchsorted(edges, tensor(1.)).scalar_type(), kInt64);
  EXPECT_EQ(searchsorted(edges, tensor(std::numeric_limits<double>::quiet_NaN())).item<std::int64_t>(), 4);
  EXPECT_EQ(searchsorted(empty({0}), tensor(1.f)).item<std::int64_t>(), 0);
  EXPECT_EQ(searchsorted(edges, empty({0, 2})).sizes().vec(), (Widths{0, 2}));
  EXPECT_TRUE(
      searchsorted(tensor({3., 1.}), tensor({2.}), false, false, std::nullopt, tensor({1, 0})).equal(tensor({1})));
  EXPECT_TRUE(searchsorted(tensor({{1, 3}, {2, 4}}), tensor({{2}, {2}})).equal(tensor({{1}, {0}})));
  EXPECT_EQ(message_of([&] {
              bucketize(tensor({1.}), edges.view({2, 2}));
            }),
            "boundaries tensor must be 1 dimension, but got dim(2)");
}

}  // namespace
}  // namespace tenon::test
