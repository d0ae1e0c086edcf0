// Tensors without values: operators give the sizes that they would, and refuse by name what depends on values.
#include "../../support/message_of.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensor/literal.h>

#include <gtest/gtest.h>

#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using Extent = std::vector<std::int64_t>;

Tensor without_values(const Extent& sizes, Dtype dtype = kFloat32) {
  return empty(sizes, TensorOptions(dtype).device(Device("meta")));
}

TEST(MetaRules, WhatDependsOnValuesIsRefusedByName) {
  const Tensor x = without_values({3}), whole = without_values({3}, kInt64), truth = without_values({3}, kBool);
  const Tensor logp = zeros({4, 1, 3}, TensorOptions(Device("meta")));
  const std::string size = "the size of its output";
  const std::vector<std::pair<std::string, std::function<void()>>> calls{
      {"nonzero: " + size, [&] { x.nonzero(); }},
      {"masked_select: " + size, [&] { x.masked_select(truth); }},
      {"index: how many elements a mask takes", [&] { x.index({truth}); }},
      {"_unique2: " + size, [&] { _unique2(x, true, true, true); }},
      {"unique_dim: " + size, [&] { unique_dim(x, 0); }},
      {"unique_consecutive: " + size, [&] { unique_consecutive(x); }},
      {"bincount: " + size, [&] { whole.bincount(); }},
      {"equal: its result", [&] { x.equal(x); }},
      {"allclose: its result", [&] { x.allclose(x); }},
      {"one_hot: the number of classes (unless num_classes is given)", [&] { one_hot(whole); }},
      {"repeat_interleave: the size of its output (unless output_size is given)", [&] { x.repeat_interleave(whole); }},
      {"pack_padded_sequence: how many rows there are",
       [&] {
         _pack_padded_sequence(without_values({3, 3, 1}), whole, false);
       }},
      {"ctc_loss: the path through the targets",
       [&] {
         ctc_loss(logp, whole.view({1, 3}), IntArrayRef({4}), IntArrayRef({3}), 0, 0);
       }},
      {"ctc_loss: the path through the targets", [&] {
         ctc_loss(logp, whole.view({1, 3}), whole, whole, 0, 0);
       }}};
  for (const auto& [name, call] : calls)
    EXPECT_EQ(message_of<NotImplementedError>(call), name + " depends on values, and tensors on meta have none");
}

TEST(MetaRules, WhereTheSizesAreKnownTheyAreGiven) {
  const Tensor x = without_values({3, 4}), whole = without_values({3}, kInt64);
  const auto sizes = [](const Tensor& t) {
    EXPECT_EQ(t.device(), Device("meta:0"));
    return t.sizes().vec();
  };
  EXPECT_EQ(sizes(one_hot(whole, 7)), (Extent{3, 7}));
  EXPECT_EQ(sizes(repeat_interleave(whole, std::optional<std::int64_t>(9))), (Extent{9}));
  EXPECT_EQ(sizes(x.cumprod(1)), (Extent{3, 4}));
  EXPECT_EQ(sizes(whole.gcd(whole)), (Extent{3}));
  EXPECT_EQ(sizes(x.histc(5)), (Extent{5}));
  EXPECT_EQ(sizes(x.quantile(0.5, 1)), (Extent{3}));
  EXPECT_EQ(sizes(x.multinomial(2)), (Extent{3, 2}));
  EXPECT_EQ(sizes(cov(x, 1, without_values({4}, kInt64))), (Extent{3, 3}));
  EXPECT_EQ(sizes(multilabel_margin_loss(x, without_values({3, 4}, kInt64), 0)), (Extent{3}));
  EXPECT_EQ(sizes(x.index_copy(0, whole, x)), (Extent{3, 4}));
  EXPECT_EQ(sizes(x.index_fill(0, whole, without_values({}))), (Extent{3, 4}));
  EXPECT_EQ(sizes(x.index_fill(0, whole, 1)), (Extent{3, 4}));
  EXPECT_EQ(sizes(tril_indices(3, 3, 0, TensorOptions(kInt64).device(Device("meta")))), (Extent{2, 6}));
  EXPECT_EQ(sizes(combinations(x.select(1, 0), 2)), (Extent{3, 2}));
  EXPECT_EQ(sizes(searchsorted(x, x)), (Extent{3, 4}));
  EXPECT_EQ(sizes(x.matmul(x.t())), (Extent{3, 3}));
  EXPECT_EQ(sizes(x.sum(1)), (Extent{3}));
  EXPECT_EQ(sizes(cat({x, x})), (Extent{6, 4}));
  Tensor weight = without_values({5, 4});
  EXPECT_EQ(sizes(embedding_renorm_(weight, whole, 1, 2)), (Extent{5, 4}));
  const Tensor leaf = x.clone().requires_grad_();
  leaf.cumprod(1).sum().backward();
  EXPECT_EQ(sizes(leaf.grad()), (Extent{3, 4}));
  const Tensor value = without_values({}).requires_grad_();
  x.clone().index_fill_(0, whole, value).sum().backward();
  EXPECT_EQ(sizes(value.grad()), (Extent{}));
  std::ostringstream shown;
  shown << x << whole << without_values({});
  EXPECT_EQ(shown.str(),
            "tensor(..., device='meta', size=(3, 4))\n[ METAFloatType{3,4} ]tensor(..., device='meta', size=(3,))\n"
            "[ METALongType{3} ]tensor(..., device='meta', size=())\n[ METAFloatType{} ]");
}

}  // namespace
}  // namespace tenon::test
