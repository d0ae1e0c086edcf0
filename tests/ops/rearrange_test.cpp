// Splitting, turning, repeating and joining.
#include "../support/expect_error.h"
#include "../support/expect_tensor.h"
#include "front_end_inputs.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/ops/ops.h>

#include <gtest/gtest.h>

namespace tenon {
namespace {

using test::expect_error;
using test::expect_tensor;
using test::Inputs;

TEST(Rearrange, SplitsCutWhereNumPyCuts) {
  const Inputs in;
  {
    const auto result = in.V.tensor_split(3);
    ASSERT_EQ(result.size(), 3u);
    expect_tensor(result[0], {2}, kFloat, {2, 7});
    expect_tensor(result[1], {2}, kFloat, {1, 8});
    expect_tensor(result[2], {1}, kFloat, {2});
  }
  {
    const auto result = in.V.tensor_split({1, 3});
    ASSERT_EQ(result.size(), 3u);
    expect_tensor(result[0], {1}, kFloat, {2});
    expect_tensor(result[1], {2}, kFloat, {7, 1});
    expect_tensor(result[2], {2}, kFloat, {8, 2});
  }
  {
    const auto result = in.V.tensor_split(tensor({2, 9}));
    ASSERT_EQ(result.size(), 3u);
    expect_tensor(result[0], {2}, kFloat, {2, 7});
    expect_tensor(result[1], {3}, kFloat, {1, 8, 2});
    expect_tensor(result[2], {0}, kFloat, {});
  }
  {
    const auto result = in.M.tensor_split(7, 1);
    ASSERT_EQ(result.size(), 7u);
    expect_tensor(result[0], {3, 1}, kFloat, {3, 0, 2});
    expect_tensor(result[1], {3, 1}, kFloat, {1, -1, 2});
    expect_tensor(result[2], {3, 1}, kFloat, {2, 4, -3});
    expect_tensor(result[3], {3, 1}, kFloat, {1, 4, 0.5});
    expect_tensor(result[4], {3, 0}, kFloat, {});
    expect_tensor(result[5], {3, 0}, kFloat, {});
    expect_tensor(result[6], {3, 0}, kFloat, {});
  }
  {
    const auto result = in.M.hsplit(2);
    ASSERT_EQ(result.size(), 2u);
    expect_tensor(result[0], {3, 2}, kFloat, {3, 1, 0, -1, 2, 2});
    expect_tensor(result[1], {3, 2}, kFloat, {2, 1, 4, 4, -3, 0.5});
  }
  {
    const auto result = in.M.vsplit({1, 2});
    ASSERT_EQ(result.size(), 3u);
    expect_tensor(result[0], {1, 4}, kFloat, {3, 1, 2, 1});
    expect_tensor(result[1], {1, 4}, kFloat, {0, -1, 4, 4});
    expect_tensor(result[2], {1, 4}, kFloat, {2, 2, -3, 0.5});
  }
  {
    const auto result = in.T.dsplit(2);
    ASSERT_EQ(result.size(), 2u);
    expect_tensor(result[0], {2, 3, 2}, kFloat, {0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21});
    expect_tensor(result[1], {2, 3, 2}, kFloat, {2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23});
  }
  {
    const auto result = in.T.dsplit({1, 3});
    ASSERT_EQ(result.size(), 3u);
    expect_tensor(result[0], {2, 3, 1}, kFloat, {0, 4, 8, 12, 16, 20});
    expect_tensor(result[1], {2, 3, 2}, kFloat, {1, 2, 5, 6, 9, 10, 13, 14, 17, 18, 21, 22});
    expect_tensor(result[2], {2, 3, 1}, kFloat, {3, 7, 11, 15, 19, 23});
  }
  {
    const auto result = hsplit(in.V, {2, 4});
    ASSERT_EQ(result.size(), 3u);
    expect_tensor(result[0], {2}, kFloat, {2, 7});
    expect_tensor(result[1], {2}, kFloat, {1, 8});
    expect_tensor(result[2], {1}, kFloat, {2});
  }
}

TEST(Rearrange, DimsMove) {
  const Inputs in;
  expect_tensor(in.T.movedim({0, 1}, {2, 0}), {3, 4, 2}, kFloat,
                {0, 12, 1, 13, 2, 14, 3, 15, 4, 16, 5, 17, 6, 18, 7, 19, 8, 20, 9, 21, 10, 22, 11, 23});
  expect_tensor(in.T.moveaxis(0, -1), {3, 4, 2}, kFloat,
                {0, 12, 1, 13, 2, 14, 3, 15, 4, 16, 5, 17, 6, 18, 7, 19, 8, 20, 9, 21, 10, 22, 11, 23});
  expect_tensor(in.T.swapaxes(0, 2), {4, 3, 2}, kFloat,
                {0, 12, 4, 16, 8, 20, 1, 13, 5, 17, 9, 21, 2, 14, 6, 18, 10, 22, 3, 15, 7, 19, 11, 23});
  expect_tensor(swapdims(in.M, 0, 1), {4, 3}, kFloat, {3, 0, 2, 1, -1, 2, 2, 4, -3, 1, 4, 0.5});
  expect_tensor(in.M.rot90(), {4, 3}, kFloat, {1, 4, 0.5, 2, 4, -3, 1, -1, 2, 3, 0, 2});
  expect_tensor(in.M.rot90(2), {3, 4}, kFloat, {0.5, -3, 2, 2, 4, 4, -1, 0, 1, 2, 1, 3});
  expect_tensor(in.T.rot90(-1, {1, 2}), {2, 4, 3}, kFloat,
                {8, 4, 0, 9, 5, 1, 10, 6, 2, 11, 7, 3, 20, 16, 12, 21, 17, 13, 22, 18, 14, 23, 19, 15});
  expect_tensor(in.M.rot90(4), {3, 4}, kFloat, {3, 1, 2, 1, 0, -1, 4, 4, 2, 2, -3, 0.5});
  expect_tensor(in.M.fliplr(), {3, 4}, kFloat, {1, 2, 1, 3, 4, 4, -1, 0, 0.5, -3, 2, 2});
  expect_tensor(flipud(in.M), {3, 4}, kFloat, {2, 2, -3, 0.5, 0, -1, 4, 4, 3, 1, 2, 1});
  expect_tensor(in.V.broadcast_to({2, 5}), {2, 5}, kFloat, {2, 7, 1, 8, 2, 2, 7, 1, 8, 2});
  expect_tensor(in.V.tile(2), {10}, kFloat, {2, 7, 1, 8, 2, 2, 7, 1, 8, 2});
  expect_tensor(in.M.tile({2, 1, 2}), {2, 3, 8}, kFloat,
                {3, 1, 2, 1, 3, 1, 2, 1, 0, -1, 4, 4, 0, -1, 4, 4, 2, 2, -3, 0.5, 2, 2, -3, 0.5,
                 3, 1, 2, 1, 3, 1, 2, 1, 0, -1, 4, 4, 0, -1, 4, 4, 2, 2, -3, 0.5, 2, 2, -3, 0.5});
  expect_tensor(in.S.tile({2}), {2}, kFloat, {2.5, 2.5});
  expect_tensor(in.V.tile({2, 2}), {2, 10}, kFloat, {2, 7, 1, 8, 2, 2, 7, 1, 8, 2, 2, 7, 1, 8, 2, 2, 7, 1, 8, 2});
  expect_tensor(in.E.tile({2}), {0, 6}, kFloat, {});
  expect_tensor(in.V.slice(0, 0, 2).diag_embed(), {2, 2}, kFloat, {2, 0, 0, 7});
  expect_tensor(in.M.diag_embed(1), {3, 5, 5}, kFloat,
                {0, 3, 0, 0, 0, 0, 0, 1,  0, 0, 0, 0, 0, 2,  0, 0, 0, 0, 0, 1,   0, 0, 0, 0, 0,
                 0, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 4,  0, 0, 0, 0, 0, 4,   0, 0, 0, 0, 0,
                 0, 2, 0, 0, 0, 0, 0, 2,  0, 0, 0, 0, 0, -3, 0, 0, 0, 0, 0, 0.5, 0, 0, 0, 0, 0});
  expect_tensor(in.M.diag_embed(-1, 0, 2), {5, 3, 5}, kFloat,
                {0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0,   0,
                 2, 0, 0, 0, 0, 0, 1, 0,  0, 0, 0, -1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 2, 0,   0,
                 0, 0, 4, 0, 0, 0, 0, -3, 0, 0, 0, 0,  0, 1, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0.5, 0});
  expect_tensor(in.V.diagflat(-1), {6, 6}, kFloat, {0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0,
                                                    0, 0, 1, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 2, 0});
  expect_tensor(in.E.diag_embed(), {0, 3, 3}, kFloat, {});
}

TEST(Rearrange, TheDimOfANumberMayBeMoved) {
  for (const std::int64_t dim : {0, -1}) EXPECT_TRUE(tensor(3.f).movedim(dim, dim).equal(tensor(3.f)));
  EXPECT_TRUE(moveaxis(tensor(3.f), {0}, {-1}).equal(tensor(3.f)));
  expect_error<IndexError>([] { tensor(3.f).movedim(1, 0); }, "Dimension out of range");
}

TEST(Rearrange, NothingJoinedHasTheCommonDtype) {
  const Tensor whole = empty({0}, kLong), real = empty({0}).set_requires_grad(true);
  EXPECT_EQ(cat({whole, real}).scalar_type(), kFloat);
  EXPECT_EQ(cat({real, whole}).scalar_type(), kFloat);
  EXPECT_TRUE(cat({whole, real}).requires_grad());
}

TEST(Rearrange, RepetitionFollowsATensorOfNumbers) {
  const Inputs in;
  expect_tensor(in.V.repeat_interleave(tensor({0, 2, 1, 0, 3})), {6}, kFloat, {7, 7, 1, 2, 2, 2});
  expect_tensor(in.M.repeat_interleave(tensor({1, 0, 2}), 0), {3, 4}, kFloat,
                {3, 1, 2, 1, 2, 2, -3, 0.5, 2, 2, -3, 0.5});
  expect_tensor(in.M.repeat_interleave(tensor({2}), 1), {3, 8}, kFloat,
                {3, 3, 1, 1, 2, 2, 1, 1, 0, 0, -1, -1, 4, 4, 4, 4, 2, 2, 2, 2, -3, -3, 0.5, 0.5});
  expect_tensor(repeat_interleave(tensor({2, 0, 3})), {5}, kLong, {0, 0, 2, 2, 2});
  expect_tensor(repeat_interleave(tensor({0, 0})), {0}, kLong, {});
}

TEST(Rearrange, InPlaceFormsWriteTheTensorItself) {
  const Inputs in;
  expect_tensor(in.M.clone().tril_(-1), {3, 4}, kFloat, {0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 0, 0});
  expect_tensor(in.M.clone().triu_(1), {3, 4}, kFloat, {0, 1, 2, 1, 0, 0, 4, 4, 0, 0, 0, 0.5});
  expect_tensor(in.M.clone().fill_diagonal_(9), {3, 4}, kFloat, {9, 1, 2, 1, 0, 9, 4, 4, 2, 2, 9, 0.5});
  expect_tensor(zeros({7, 3}).fill_diagonal_(1, true), {7, 3}, kFloat,
                {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1});
  expect_tensor(zeros({2, 2, 2}).fill_diagonal_(1), {2, 2, 2}, kFloat, {1, 0, 0, 0, 0, 0, 0, 1});
  expect_tensor(in.T.clone().swapaxes_(0, 1), {3, 2, 4}, kFloat,
                {0, 1, 2, 3, 12, 13, 14, 15, 4, 5, 6, 7, 16, 17, 18, 19, 8, 9, 10, 11, 20, 21, 22, 23});
  expect_tensor(in.T.clone().as_strided_({2, 2}, {1, 3}, 2), {2, 2}, kFloat, {2, 5, 3, 6});
}

TEST(Rearrange, JoiningAddsDims) {
  const Inputs in;
  expect_tensor(atleast_1d(in.S), {1}, kFloat, {2.5});
  expect_tensor(atleast_2d(in.V), {1, 5}, kFloat, {2, 7, 1, 8, 2});
  expect_tensor(atleast_3d(in.V), {1, 5, 1}, kFloat, {2, 7, 1, 8, 2});
  expect_tensor(atleast_3d(in.M), {3, 4, 1}, kFloat, {3, 1, 2, 1, 0, -1, 4, 4, 2, 2, -3, 0.5});
  expect_tensor(dstack({in.V, in.V}), {1, 5, 2}, kFloat, {2, 2, 7, 7, 1, 1, 8, 8, 2, 2});
  expect_tensor(column_stack({in.V, in.V, in.S.expand({5, 2})}), {5, 4}, kFloat,
                {2, 2, 2.5, 2.5, 7, 7, 2.5, 2.5, 1, 1, 2.5, 2.5, 8, 8, 2.5, 2.5, 2, 2, 2.5, 2.5});
  expect_tensor(row_stack({in.V, in.V}), {2, 5}, kFloat, {2, 7, 1, 8, 2, 2, 7, 1, 8, 2});
  expect_tensor(dstack({in.S, in.S}), {1, 1, 2}, kFloat, {2.5, 2.5});
  expect_tensor(cartesian_prod({in.K, tensor({7, 8})}), {8, 2}, kLong,
                {0, 7, 0, 8, 2, 7, 2, 8, 1, 7, 1, 8, 2, 7, 2, 8});
  expect_tensor(combinations(in.V.slice(0, 0, 3)), {3, 2}, kFloat, {2, 7, 2, 1, 7, 1});
  expect_tensor(combinations(in.K, 3, true), {20, 3}, kLong,
                {0, 0, 0, 0, 0, 2, 0, 0, 1, 0, 0, 2, 0, 2, 2, 0, 2, 1, 0, 2, 2, 0, 1, 1, 0, 1, 2, 0, 2, 2,
                 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 1, 1, 2, 1, 2, 2, 2, 2, 1, 1, 1, 1, 1, 2, 1, 2, 2, 2, 2, 2});
  expect_tensor(combinations(in.K, 5), {0, 5}, kLong, {});
  expect_tensor(tril_indices(3, 4, 1), {2, 9}, kLong, {0, 0, 1, 1, 1, 2, 2, 2, 2, 0, 1, 0, 1, 2, 0, 1, 2, 3});
  expect_tensor(triu_indices(3, 2, -1, kInt), {2, 5}, kInt, {0, 0, 1, 1, 2, 0, 1, 0, 1, 1});
  expect_tensor(tril_indices(2, 2, -4), {2, 0}, kLong, {});
}

TEST(Rearrange, ViewsShareTheirMemory) {
  const Tensor x = zeros({4, 6});
  x.tensor_split(2)[1].fill_(1);
  x.movedim({0, 1}, {1, 0})[0].fill_(2);
  x.swapaxes(0, 1)[5].fill_(3);
  EXPECT_EQ(x.sum().item<float>(), (12 - 4) * 1 + 4 * 2 + 4 * 3);
  const Tensor wide = x.select(0, 0).broadcast_to({3, 6});
  EXPECT_TRUE(wide.is_alias_of(x));
  EXPECT_EQ(wide.strides().vec(), (std::vector<std::int64_t>{0, 1}));
  EXPECT_TRUE(x.hsplit(3)[1].is_alias_of(x));
  EXPECT_FALSE(x.rot90(4).is_alias_of(x));
}

TEST(Rearrange, InPlaceFormsAreDifferentiable) {
  const Tensor x = ones({2, 3}).set_requires_grad(true);
  Tensor y = x * 2;
  y.tril_();
  y.sum().backward();
  EXPECT_TRUE(x.grad().equal(ones({2, 3}).tril().mul(2)));
  expect_error([&] { x.tril_(); }, "leaf");
}

TEST(Rearrange, MistakesAreNamed) {
  const Tensor x = zeros({3, 4});
  expect_error([&] { tensor(1.f).tensor_split(2); },
               "expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
  expect_error([&] { x.tensor_split(0); }, "number of sections must be larger than 0, got 0");
  expect_error([&] { x.tensor_split(zeros({1})); }, "to have dtype of long, but got Float");
  expect_error([&] { x.hsplit(3); }, "the size of the dimension 4 is not divisible by the split_size 3!");
  expect_error([&] { x.dsplit(2); },
               "torch.dsplit requires a tensor with at least 3 dimension, but got a tensor with 2");
  expect_error([&] { x.movedim({0, 1}, 1); }, "should contain the same number of dims");
  expect_error([&] { x.movedim({0, 0}, {0, 1}); }, "movedim: repeated dim in `source` ([0, 0])");
  expect_error([&] { x.movedim({0, 1}, {1, 1}); }, "movedim: repeated dim in `destination` ([1, 1])");
  expect_error([&] { x.rot90(1, {0, 0}); }, "expected rotation dims to be different");
  expect_error([&] { x.select(0, 0).fliplr(); }, "Input must be >= 2-d.");
  expect_error([&] { x.diag_embed(0, 1, 1); }, "diagonal dimensions cannot be identical 1, 1");
  expect_error([&] { x.repeat_interleave(tensor({1, 2}), 0); }, "got repeats.size(0) = 2 and input.size(0) = 3");
  expect_error([&] { x.repeat_interleave(tensor({1, -2, 1}), 0); }, "repeats can not be negative");
  expect_error([&] { x.repeat_interleave(tensor({1, 2, 1}), 0, 9); }, "allocated size does not match required size");
  expect_error([&] { zeros({2, 3, 2}).fill_diagonal_(1); }, "all dimensions of input must be of equal length");
  expect_error([&] { combinations(x); }, "Expect a 1D vector, but got shape [3, 4]");
  expect_error([&] { tril_indices(-1, 2); }, "row must be non-negative, got-1");
}

TEST(Accessor, ReachesElementsByIndex) {
  const Tensor x = arange(24., kFloat).reshape({2, 3, 4}).transpose(0, 2);
  const auto a = x.accessor<float, 3>();
  EXPECT_EQ(a[3][1][1], x[3][1][1].item<float>());
  EXPECT_EQ(a[2].size(0), 3);
  EXPECT_EQ(a.stride(0), 1);
  a[0][0][0] = 42;
  const auto packed = x.packed_accessor32<float, 3>();
  EXPECT_EQ(packed[0][0][0], 42);
  EXPECT_EQ((x.packed_accessor64<float, 3>()[3][2][1]), 23);
  expect_error([&] { x.accessor<float, 2>(); }, "TensorAccessor expected 2 dims but tensor has 3");
  expect_error([&] { x.accessor<double, 3>(); }, "Double");
  expect_error([&] { zeros({1}).expand({std::int64_t{1} << 40}).packed_accessor32<float, 1>(); },
               "use packed_accessor64");
}

TEST(Stacking, OfNothingIsRefusedByName) {
  const std::vector<Tensor> none;
  expect_error([&] { hstack(none); }, "hstack expects a non-empty TensorList");
  expect_error([&] { vstack(none); }, "vstack expects a non-empty TensorList");
  expect_error([&] { dstack(none); }, "dstack expects a non-empty TensorList");
  expect_error([&] { column_stack(none); }, "column_stack expects a non-empty TensorList");
}

}  // namespace
}  // namespace tenon
