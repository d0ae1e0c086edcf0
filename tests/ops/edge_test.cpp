// Edges of operators: NaN, nothing, scalars, integers where floating numbers are usual. As in PyTorch.
#include "../support/expect_error.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>

#include <gtest/gtest.h>

#include <cmath>

namespace tenon {
namespace {

using test::expect_error;

TEST(Edge, MedianOfANaNIsNaN) {
  EXPECT_TRUE(std::isnan(tensor({1.0, static_cast<double>(NAN), 0.0}).median().item<float>()));
  EXPECT_EQ(tensor({1.0, 3.0, 2.0, 0.0}).median().item<float>(), 1);
}

TEST(Edge, LogSumExpOfNothingIsMinusInfinity) {
  EXPECT_TRUE(zeros({0, 3}).logsumexp(0).equal(full({3}, -INFINITY)));
  EXPECT_TRUE(zeros({0}).logsumexp(0).equal(full({}, -INFINITY)));
}

TEST(Edge, MeshgridFollowsItsIndexing) {
  const Tensor x = tensor({1.0, 2.0, 3.0});
  const Tensor y = tensor({4.0, 5.0});
  const std::vector<Tensor> ij = meshgrid({x, y}, "ij");
  const std::vector<Tensor> xy = meshgrid({x, y}, "xy");
  EXPECT_TRUE(xy[0].equal(ij[0].t())) << "the first input runs along the columns";
  EXPECT_TRUE(xy[1].equal(ij[1].t()));
  expect_error([&] { meshgrid({x, y}, "yx"); }, "indexing must be one of");
  expect_error([&] { meshgrid({x, ones({2}, kInt64)}, "ij"); }, "expects all tensors to have the same dtype");
  expect_error([&] { meshgrid({x, ones({2, 2})}, "ij"); }, "Expected 0D or 1D tensor");
}

TEST(Edge, FlipRollAndTakeHandleScalarsAndEmptiness) {
  EXPECT_TRUE(tensor(3.0f).flip({0}).equal(tensor(3.0f)));
  expect_error([] { ones({2, 2}).flip({0, 0}); }, "dim 0 appears multiple times in the list of dims");
  const Tensor nothing = zeros({0, 3});
  EXPECT_FALSE(nothing.roll(1, 0).is_same(nothing));
  EXPECT_TRUE(arange(6).reshape({2, 3}).take(tensor({{-1, 0}})).equal(tensor({{5, 0}})));
}

TEST(Edge, IntegersStayIntegers) {
  const Tensor x = tensor({-7, 3, 9});
  EXPECT_TRUE(hardtanh(x, -2, 5).equal(tensor({-2, 3, 5})));
  EXPECT_TRUE(relu6(x).equal(tensor({0, 3, 6})));
  EXPECT_EQ(relu6(x).scalar_type(), kInt64);
  EXPECT_TRUE(threshold(x, 3, 20).equal(tensor({20, 20, 9})));
  EXPECT_EQ(threshold(x, 3, 20).scalar_type(), kInt64);
  EXPECT_EQ(tensor({true, false}).sign().scalar_type(), kBool);
  EXPECT_TRUE(logspace(0, 3, 4, 10, kInt64).equal(tensor({1, 10, 100, 1000})));
  EXPECT_EQ(logspace(0, 3, 4, 10, kInt64).scalar_type(), kInt64);
}

TEST(Edge, WhatHasNoMeaningIsRefused) {
  expect_error(
      [] {
        ones({2, 3, 4}).contiguous(MemoryFormat::ChannelsLast);
      },
      "required rank 4 tensor to use channels_last format");
  expect_error([] { ones({2, 3, 4}).clone(MemoryFormat::ChannelsLast); }, "required rank 4 tensor");
  expect_error([] { randint(0, 300, {3}, kUInt8); }, "to - 1 is out of bounds for unsigned char");
  EXPECT_EQ(randint(0, 256, {3}, kUInt8).numel(), 3);
  expect_error([] { isclose(ones({1}), ones({1}), -1); }, "rtol must be greater than or equal to zero, but got -1");
  const Tensor one = ones({2}, kInt64);
  expect_error([&] { addcdiv(one, one, one); }, "Integer division with addcdiv is no longer supported");
  expect_error([&] { elu(one); }, "\"elu_cpu\" not implemented for 'Long'");
  expect_error([&] { silu(one); }, "\"silu_cpu\" not implemented for 'Long'");
  expect_error([&] { leaky_relu(one); }, "\"leaky_relu_cpu\" not implemented for 'Long'");
  expect_error(
      [] {
        addmm(ones({3}), ones({2, 2}), ones({2, 2}));
      },
      "The expanded size of the tensor (2) must match the existing size (3) at non-singleton dimension 1");
  expect_error<IndexError>([] { ones({}).slice(0, 0, 1); }, "slice() cannot be applied to a 0-dim tensor.");
  expect_error<IndexError>([] { ones({2})[tensor({1})]; }, "Can only index with tensors that are scalars (zero-dim)");
  expect_error<IndexError>(
      [] {
        ones({2, 3, 4})[2];
      },
      "select(): index 2 out of range for tensor of size [2, 3, 4] at dimension 0");
}

}  // namespace
}  // namespace tenon
