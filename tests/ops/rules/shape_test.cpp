// Tensors cut, joined, broadcast, padded and rearranged: where the cuts lie, what is kept, and what is refused.
#include "../../support/message_of.h"
#include "numbered.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensor/literal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tenon::test {
namespace {

using Spans = std::vector<std::int64_t>;

Spans lengths_of(const std::vector<Tensor>& parts, std::int64_t dim = 0) {
  Spans lengths;
  for (const Tensor& part : parts) lengths.push_back(part.size(dim));
  return lengths;
}

TEST(SplitRules, PartsAreViewsThatFillTheWhole) {
  const Tensor x = numbered({7, 2});
  EXPECT_EQ(lengths_of(x.split(3)), (Spans{3, 3, 1}));
  EXPECT_EQ(lengths_of(x.split(7)), (Spans{7}));
  EXPECT_EQ(lengths_of(x.split(9)), (Spans{7}));
  EXPECT_EQ(lengths_of(x.split(1, 1), 1), (Spans{1, 1}));
  EXPECT_EQ(lengths_of(x.split(2, -2)), (Spans{2, 2, 2, 1}));
  EXPECT_EQ(lengths_of(empty({0, 2}).split(0)), (Spans{0}));
  EXPECT_EQ(lengths_of(empty({0, 2}).split(3)), (Spans{0}));
  EXPECT_EQ(lengths_of(x.split({2, 0, 5})), (Spans{2, 0, 5}));
  EXPECT_EQ(lengths_of(x.chunk(3)), (Spans{3, 3, 1}));
  EXPECT_EQ(lengths_of(x.chunk(4)), (Spans{2, 2, 2, 1}));
  EXPECT_EQ(lengths_of(x.chunk(5)), (Spans{2, 2, 2, 1})) << "fewer than asked for";
  EXPECT_EQ(lengths_of(empty({0, 2}).chunk(3)), (Spans{0, 0, 0}));
  EXPECT_EQ(x.unbind().size(), 7u);
  EXPECT_EQ(x.unbind(-1)[1].strides().vec(), (Spans{2}));
  EXPECT_TRUE(x.split(3)[1].equal(x.slice(0, 3, 6)));
  EXPECT_TRUE(x.split(3)[2].is_alias_of(x));
  EXPECT_TRUE(x.unbind(1)[1].equal(x.select(1, 1)));
}

TEST(SplitRules, TheirGradientsAreJoinedAndMissingOnesAreZero) {
  const auto gradient = [](auto use) {
    const Tensor leaf = ones({5, 2}).requires_grad_();
    use(leaf).sum().backward();
    return leaf.grad();
  };
  EXPECT_TRUE(gradient([](const Tensor& x) {
                return x.split(2)[1] * 3;
              }).equal(tensor({{0.f, 0.f}, {0.f, 0.f}, {3.f, 3.f}, {3.f, 3.f}, {0.f, 0.f}})));
  EXPECT_TRUE(gradient([](const Tensor& x) {
                return x.unbind(1)[1] * 3 + x.unbind(1)[0];
              }).equal(tensor({1.f, 3.f}).expand({5, 2})));
  EXPECT_TRUE(gradient([](const Tensor& x) {
                const auto parts = x.split({1, 4});
                return parts[0].sum() * 2 + parts[1].sum();
              })
                  .select(1, 0)
                  .equal(tensor({2.f, 1.f, 1.f, 1.f, 1.f})));
  const Tensor leaf = ones({4}).requires_grad_();
  EXPECT_THROW(leaf.mul(1).split(2)[0].add_(1), Error) << "one of several views of one node";
}

TEST(SplitRules, WhatDoesNotFitIsSaid) {
  const Tensor x = numbered({7, 2}), number = tensor(1);
  const std::string sum =
      "split_with_sizes expects split_sizes to sum exactly to 7 (input tensor's size at dimension "
      "0), but got split_sizes=";
  EXPECT_EQ(message_of([&] { x.split({3, 3}); }), sum + "[3, 3]");
  EXPECT_EQ(message_of([&] { x.split({3, 5}); }), sum + "[3, 5]");
  EXPECT_EQ(message_of([&] { x.split({7, 1}); }), sum + "[7, 1]");
  EXPECT_EQ(message_of([&] { x.split({8, -1}); }), sum + "[8, -1]");
  EXPECT_EQ(message_of([&] {
              x.split({-1, 8});
            }),
            "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=[-1, 8]");
  EXPECT_EQ(message_of([&] { number.split(1); }), "split expects at least a 1-dimensional tensor");
  EXPECT_EQ(message_of([&] { x.split(-1); }), "split expects split_size be non-negative, but got split_size=-1");
  EXPECT_EQ(message_of([&] { x.split(0); }),
            "split_size can only be 0 if dimension size is 0, but got dimension size of 7");
  EXPECT_EQ(message_of([&] { number.chunk(1); }), "chunk expects at least a 1-dimensional tensor");
  EXPECT_EQ(message_of([&] { x.chunk(1, 2); }), "chunk expects at least a 1-dimensional tensor");
  EXPECT_EQ(message_of([&] { x.chunk(0); }), "chunk expects `chunks` to be greater than 0, got: 0");
  EXPECT_THROW(number.unbind(), Error);
  const std::string dims = "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims";
  EXPECT_EQ(message_of([&] { number.tensor_split(1); }), dims);
  EXPECT_EQ(message_of([&] { number.tensor_split(Spans{1}); }), dims);
  EXPECT_EQ(message_of([&] { number.tensor_split(tensor(1)); }), dims);
  EXPECT_EQ(message_of([&] { x.tensor_split(0); }), "number of sections must be larger than 0, got 0");
  EXPECT_EQ(message_of([&] { x.tensor_split(tensor(1.f)); }),
            "tensor_split expected tensor_indices_or_sections to have dtype of long, but got Float");
  EXPECT_EQ(message_of([&] { x.tensor_split(tensor({{1}})); }),
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but "
            "got a tensor with 2 dims");
  EXPECT_EQ(message_of([&] { x.tensor_split(tensor(1).to(TensorOptions(Device("simulated:0")))); }),
            "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on simulated:0");
  const std::string rank = " requires a tensor with at least ";
  EXPECT_EQ(message_of([&] { number.hsplit(1); }),
            "torch.hsplit" + rank + "1 dimension, but got a tensor with 0 dimensions!");
  EXPECT_EQ(message_of([&] { x[0].vsplit(1); }),
            "torch.vsplit" + rank + "2 dimension, but got a tensor with 1 dimensions!");
  EXPECT_EQ(message_of([&] { x.dsplit(Spans{1}); }),
            "torch.dsplit" + rank + "3 dimension, but got a tensor with 2 dimensions!");
  EXPECT_EQ(
      message_of([&] { x.vsplit(2); }),
      "torch.vsplit attempted to split along dimension 0, but the size of the dimension 7 is not divisible by the "
      "split_size 2!");
  EXPECT_THROW(x.vsplit(0), Error);
}

TEST(SplitRules, SectionsDifferByOneAtMostAndIndicesAreCuts) {
  const Tensor x = numbered({7, 4});
  EXPECT_EQ(lengths_of(x.tensor_split(3)), (Spans{3, 2, 2}));
  EXPECT_EQ(lengths_of(x.tensor_split(9)), (Spans{1, 1, 1, 1, 1, 1, 1, 0, 0}));
  EXPECT_EQ(lengths_of(x.tensor_split({2, 5})), (Spans{2, 3, 2}));
  EXPECT_EQ(lengths_of(x.tensor_split({5, 2})), (Spans{5, 0, 5}));
  EXPECT_EQ(lengths_of(x.tensor_split(Spans{1}, -1), 1), (Spans{1, 3}));
  EXPECT_EQ(lengths_of(x.tensor_split(tensor(3))), (Spans{3, 2, 2}));
  EXPECT_EQ(lengths_of(x.tensor_split(tensor({2, 5}))), (Spans{2, 3, 2}));
  EXPECT_EQ(lengths_of(x.tensor_split(tensor({2, 9, 5, 9}).slice(0, 0, 4, 2))), (Spans{2, 3, 2}));
  EXPECT_EQ(lengths_of(x.hsplit(2), 1), (Spans{2, 2}));
  EXPECT_EQ(lengths_of(x.hsplit(Spans{1}), 1), (Spans{1, 3}));
  EXPECT_EQ(lengths_of(numbered({6}).hsplit(3)), (Spans{2, 2, 2})) << "of one dimension along it";
  EXPECT_EQ(lengths_of(x.vsplit(7)), (Spans{1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(lengths_of(x.vsplit(Spans{3})), (Spans{3, 4}));
  EXPECT_EQ(lengths_of(numbered({1, 2, 6}).dsplit(2), 2), (Spans{3, 3}));
  EXPECT_EQ(lengths_of(numbered({1, 2, 6}).dsplit(Spans{1}), 2), (Spans{1, 5}));
}

TEST(JoinRules, EmptyLinesAreSkippedAndDtypesPromoted) {
  const Tensor x = numbered({2, 3}), none = empty({0});
  EXPECT_TRUE(cat({none, x, none, x}, 1).equal(cat({x, x}, 1).to(kFloat32)));
  EXPECT_EQ(cat({none, x}, 0).scalar_type(), kFloat32) << "its dtype counts";
  EXPECT_EQ(cat({none, none}).sizes().vec(), (Spans{0}));
  EXPECT_EQ(cat({empty({0, 3}), ones({2, 3})}).sizes().vec(), (Spans{2, 3}));
  EXPECT_TRUE(cat({x, x}, -1).equal(cat({x, x}, 1)));
  const Tensor image = ones({1, 2, 3, 4}).contiguous(MemoryFormat::ChannelsLast);
  EXPECT_TRUE(cat({image, image}).is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_TRUE(cat({image, image.contiguous()}).is_contiguous());
  EXPECT_TRUE(cat({image.contiguous(), image}).is_contiguous());
  const Tensor a = ones({2}).requires_grad_(), b = empty({0}).requires_grad_(), c = ones({1}).requires_grad_();
  cat({a, b, c}).mul(tensor({1.f, 2.f, 3.f})).sum().backward();
  EXPECT_TRUE(a.grad().equal(tensor({1.f, 2.f})));
  EXPECT_EQ(b.grad().sizes().vec(), (Spans{0}));
  EXPECT_TRUE(c.grad().equal(tensor({3.f})));
  EXPECT_EQ(message_of([] { cat({}); }), "torch.cat(): expected a non-empty list of Tensors");
  EXPECT_EQ(message_of([] {
              cat({tensor(1), tensor(2)});
            }),
            "zero-dimensional tensor (at position 0) cannot be concatenated");
  EXPECT_EQ(message_of([&] { cat({x, x[0]}); }), "Tensors must have same number of dimensions: got 2 and 1");
  EXPECT_EQ(message_of([&] {
              cat({x, x.t()});
            }),
            "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 2 for tensor number 1 in "
            "the list.");
  EXPECT_NO_THROW(cat({x, x.t().slice(0, 0, 2)}, 1));
  EXPECT_THAT(message_of([&] {
                cat({x, x.to(TensorOptions(Device("simulated:0")))});
              }),
              testing::HasSubstr("at least two devices, cpu and simulated:0! (in operator cat)"));
}

TEST(JoinRules, StacksAddADimensionOrUseTheOneThatIsMeant) {
  const Tensor x = numbered({2, 3}), number = tensor(5), line = numbered({3});
  const auto sizes = [](const Tensor& t) { return t.sizes().vec(); };
  for (const std::int64_t dim : {0, 1, 2}) {
    EXPECT_EQ(stack({x, x, x, x}, dim).size(dim), 4);
    EXPECT_TRUE(stack({x, x + 1}, dim).select(dim, 1).equal(x + 1));
    EXPECT_TRUE(stack({x, x + 1}, dim - 3).equal(stack({x, x + 1}, dim)));
  }
  EXPECT_EQ(sizes(stack({number, number})), (Spans{2}));
  EXPECT_EQ(message_of([] { stack({}); }), "stack expects a non-empty TensorList");
  EXPECT_EQ(message_of([&] {
              stack({line, line, x});
            }),
            "stack expects each tensor to be equal size, but got [3] at entry 0 and [2, 3] at entry 2");
  EXPECT_EQ(sizes(hstack({number, line})), (Spans{4}));
  EXPECT_EQ(sizes(hstack({x, x})), (Spans{2, 6}));
  EXPECT_EQ(sizes(vstack({line, x})), (Spans{3, 3}));
  EXPECT_EQ(sizes(vstack({number, number})), (Spans{2, 1}));
  EXPECT_EQ(sizes(row_stack({line, x})), (Spans{3, 3}));
  EXPECT_EQ(sizes(dstack({line, line})), (Spans{1, 3, 2}));
  EXPECT_EQ(sizes(dstack({x, x})), (Spans{2, 3, 2}));
  EXPECT_EQ(sizes(column_stack({line, line})), (Spans{3, 2}));
  EXPECT_EQ(sizes(column_stack({x, numbered({2})})), (Spans{2, 4}));
  EXPECT_EQ(sizes(column_stack({number, number})), (Spans{1, 2}));
  EXPECT_EQ(message_of([] { hstack({}); }), "hstack expects a non-empty TensorList");
  EXPECT_EQ(message_of([] { vstack({}); }), "vstack expects a non-empty TensorList");
  EXPECT_EQ(message_of([] { dstack({}); }), "dstack expects a non-empty TensorList");
  EXPECT_EQ(message_of([] { column_stack({}); }), "column_stack expects a non-empty TensorList");
}

TEST(JoinRules, BlocksLieOnTheDiagonal) {
  EXPECT_TRUE(block_diag({tensor({{1, 2}}), tensor(3), tensor({4, 5})})
                  .equal(tensor({{1, 2, 0, 0, 0}, {0, 0, 3, 0, 0}, {0, 0, 0, 4, 5}})));
  EXPECT_EQ(block_diag({}).sizes().vec(), (Spans{1, 0}));
  EXPECT_EQ(block_diag({tensor({1}), tensor(1.f)}).scalar_type(), kFloat32);
  EXPECT_EQ(block_diag({tensor({1.f}).to(kFloat16), tensor(1.)}).scalar_type(), kFloat16) << "numbers weigh less";
  EXPECT_EQ(block_diag({tensor(1), tensor(1.)}).scalar_type(), kFloat32);
  EXPECT_EQ(message_of([] {
              block_diag({ones({2}), ones({1, 1, 1})});
            }),
            "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input 1 has 3 dimensions");
  EXPECT_EQ(message_of([] {
              block_diag({ones({2}), ones({2}, TensorOptions(Device("simulated:0")))});
            }),
            "torch.block_diag: input tensors must all be on the same device.");
}

TEST(ExpandRules, OnlyDimensionsOfOneGrow) {
  const Tensor x = numbered({3, 1});
  EXPECT_EQ(x.expand({2, 3, 4}).strides().vec(), (Spans{0, 1, 0}));
  EXPECT_EQ(x.expand({2, -1, 4}).sizes().vec(), (Spans{2, 3, 4}));
  EXPECT_EQ(x.expand({3, 0}).numel(), 0);
  EXPECT_TRUE(broadcast_to(x, {3, 2}).equal(x.expand({3, 2})));
  const Tensor leaf = ones({3, 1}).requires_grad_();
  leaf.expand({2, 3, 4}).sum().backward();
  EXPECT_TRUE(leaf.grad().equal(full({3, 1}, 8.f)));
  EXPECT_EQ(message_of([&] { x.expand({3}); }),
            "expand(CPULongType{[3, 1]}, size=[3]): the number of sizes provided (1) must be greater or equal to the "
            "number of dimensions in the tensor (2)");
  EXPECT_EQ(message_of([&] {
              x.expand({-1, 3, 1});
            }),
            "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension 0");
  EXPECT_EQ(
      message_of([&] {
        x.expand({5, 2, 4});
      }),
      "The expanded size of the tensor (2) must match the existing size (3) at non-singleton dimension 1.  Target "
      "sizes: [5, 2, 4].  Tensor sizes: [3, 1]");
  const auto both = broadcast_tensors({x, numbered({4})});
  EXPECT_EQ(both[0].sizes().vec(), (Spans{3, 4}));
  EXPECT_EQ(both[1].sizes().vec(), (Spans{3, 4}));
  const Tensor whole = numbered({3, 4});
  EXPECT_TRUE(broadcast_tensors({x, whole})[1].is_same(whole));
}

TEST(MeshgridRules, EachTensorRunsAlongItsDimension) {
  const Tensor a = tensor({1, 2}), b = tensor({3, 4, 5}), c = tensor(6);
  const auto ij = meshgrid({a, b, c}, "ij"), xy = meshgrid({a, b, c}, "xy"), one = meshgrid({a}, "xy");
  EXPECT_EQ(ij[0].sizes().vec(), (Spans{2, 3, 1}));
  EXPECT_EQ(xy[0].sizes().vec(), (Spans{3, 2, 1}));
  EXPECT_TRUE(ij[0].select(2, 0).equal(tensor({{1, 1, 1}, {2, 2, 2}})));
  EXPECT_TRUE(ij[1].select(2, 0).equal(tensor({{3, 4, 5}, {3, 4, 5}})));
  EXPECT_TRUE(xy[0].select(2, 0).equal(tensor({{1, 2}, {1, 2}, {1, 2}})));
  EXPECT_TRUE(xy[1].select(2, 0).equal(tensor({{3, 3}, {4, 4}, {5, 5}})));
  EXPECT_TRUE(one[0].equal(a));
  EXPECT_EQ(message_of([] { meshgrid({}, "ij"); }), "meshgrid expects a non-empty TensorList");
  EXPECT_EQ(message_of([&] { meshgrid({a}, "yx"); }),
            "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: yx");
  EXPECT_EQ(message_of([&] {
              meshgrid({a, ones({1, 1}, kInt64)}, "ij");
            }),
            "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got one of sizes [1, 1]");
  EXPECT_EQ(message_of([&] {
              meshgrid({a, b.to(kFloat32)}, "ij");
            }),
            "torch.meshgrid expects all tensors to have the same dtype, got Long and Float");
  EXPECT_EQ(message_of([&] {
              meshgrid({a, b.to(TensorOptions(Device("simulated:0")))}, "ij");
            }),
            "torch.meshgrid expects all tensors to have the same device");
}

}  // namespace
}  // namespace tenon::test
