// Writes to places that masks and indices name.
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
using test::kInf;
using test::kNan;

TEST(Placement, ElementsGoWhereMasksAndIndicesSay) {
  const Inputs in;
  expect_tensor(in.M.masked_scatter(in.M.gt(1.5), arange(10, kFloat)), {3, 4}, kFloat,
                {0, 1, 1, 1, 0, -1, 2, 3, 4, 5, -3, 0.5});
  expect_tensor(in.V.masked_scatter(tensor({{true}, {false}}), arange(9, kFloat)), {2, 5}, kFloat,
                {0, 1, 2, 3, 4, 2, 7, 1, 8, 2});
  expect_tensor(in.I.clone().masked_scatter_(in.B, in.K), {2, 3}, kLong, {0, 3, 2, -2, 0, 1});
  expect_tensor(in.E.masked_scatter(in.E.gt(0), in.V), {0, 3}, kFloat, {});
  expect_tensor(in.M.put(tensor({1, -1, 1}), tensor({10.f, 20.f, 30.f}), true), {3, 4}, kFloat,
                {3, 41, 2, 1, 0, -1, 4, 4, 2, 2, -3, 20.5});
  expect_tensor(in.M.t().put(tensor({1, 5}), tensor({10.f, 20.f})), {4, 3}, kFloat,
                {3, 10, 2, 1, -1, 20, 2, 4, -3, 1, 4, 0.5});
  expect_tensor(in.M.clone().t().put_(tensor({{1, 5}}), tensor({{10.f, 20.f}})), {4, 3}, kFloat,
                {3, 10, 2, 1, -1, 20, 2, 4, -3, 1, 4, 0.5});
  expect_tensor(in.M.take_along_dim(tensor({{3}, {0}, {1}}), 1), {3, 1}, kFloat, {1, 0, 2});
  expect_tensor(in.M.take_along_dim(tensor({{0, 2, 1, 0}}), 0), {1, 4}, kFloat, {3, 2, 4, 1});
  expect_tensor(in.M.take_along_dim(tensor({5, 0})), {2}, kFloat, {-1, 3});
  expect_tensor(in.M.index_copy(1, tensor({3, 0}), zeros({3, 2})), {3, 4}, kFloat,
                {0, 1, 2, 0, 0, -1, 4, 0, 0, 2, -3, 0});
  expect_tensor(in.M.index_fill(1, tensor({1}), 9), {3, 4}, kFloat, {3, 9, 2, 1, 0, 9, 4, 4, 2, 9, -3, 0.5});
  expect_tensor(in.M.index_fill(0, tensor({1, 2}), in.S), {3, 4}, kFloat,
                {3, 1, 2, 1, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5});
  expect_tensor(in.I.argwhere(), {5, 2}, kLong, {0, 0, 0, 1, 0, 2, 1, 0, 1, 2});
}

TEST(Placement, WhatFallsOnOnePlaceIsReduced) {
  const Inputs in;
  expect_tensor(
      in.M.scatter_reduce(0, tensor({{0, 2, 0, 0}, {0, 2, 2, 0}, {2, 2, 0, 1}}), in.M.mul(2).sub(1), "sum", true),
      {3, 4}, kFloat, {7, 1, -2, 9, 0, -1, 4, 4, 5, 3, 4, 0.5});
  expect_tensor(
      in.M.scatter_reduce(0, tensor({{0, 2, 0, 0}, {0, 2, 2, 0}, {2, 2, 0, 1}}), in.M.mul(2).sub(1), "sum", false),
      {3, 4}, kFloat, {4, 1, -4, 8, 0, -1, 4, 0, 3, 1, 7, 0.5});
  expect_tensor(
      in.M.scatter_reduce(0, tensor({{0, 2, 0, 0}, {0, 2, 2, 0}, {2, 2, 0, 1}}), in.M.mul(2).sub(1), "prod", true),
      {3, 4}, kFloat, {-15, 1, -42, 7, 0, -1, 4, 0, 6, -18, -21, 0.5});
  expect_tensor(
      in.M.scatter_reduce(0, tensor({{0, 2, 0, 0}, {0, 2, 2, 0}, {2, 2, 0, 1}}), in.M.mul(2).sub(1), "prod", false),
      {3, 4}, kFloat, {-5, 1, -21, 7, 0, -1, 4, 0, 3, -9, 7, 0.5});
  expect_tensor(
      in.M.scatter_reduce(0, tensor({{0, 2, 0, 0}, {0, 2, 2, 0}, {2, 2, 0, 1}}), in.M.mul(2).sub(1), "mean", true),
      {3, 4}, kFloat, {2.33333325, 1, -0.666666687, 3, 0, -1, 4, 2, 2.5, 0.75, 2, 0.5});
  expect_tensor(
      in.M.scatter_reduce(0, tensor({{0, 2, 0, 0}, {0, 2, 2, 0}, {2, 2, 0, 1}}), in.M.mul(2).sub(1), "mean", false),
      {3, 4}, kFloat, {2, 1, -2, 4, 0, -1, 4, 0, 3, 0.333333343, 7, 0.5});
  expect_tensor(
      in.M.scatter_reduce(0, tensor({{0, 2, 0, 0}, {0, 2, 2, 0}, {2, 2, 0, 1}}), in.M.mul(2).sub(1), "amax", true),
      {3, 4}, kFloat, {5, 1, 3, 7, 0, -1, 4, 4, 3, 3, 7, 0.5});
  expect_tensor(
      in.M.scatter_reduce(0, tensor({{0, 2, 0, 0}, {0, 2, 2, 0}, {2, 2, 0, 1}}), in.M.mul(2).sub(1), "amax", false),
      {3, 4}, kFloat, {5, 1, 3, 7, 0, -1, 4, 0, 3, 3, 7, 0.5});
  expect_tensor(
      in.M.scatter_reduce(0, tensor({{0, 2, 0, 0}, {0, 2, 2, 0}, {2, 2, 0, 1}}), in.M.mul(2).sub(1), "amin", true),
      {3, 4}, kFloat, {-1, 1, -7, 1, 0, -1, 4, 0, 2, -3, -3, 0.5});
  expect_tensor(
      in.M.scatter_reduce(0, tensor({{0, 2, 0, 0}, {0, 2, 2, 0}, {2, 2, 0, 1}}), in.M.mul(2).sub(1), "amin", false),
      {3, 4}, kFloat, {-1, 1, -7, 1, 0, -1, 4, 0, 3, -3, 7, 0.5});
  expect_tensor(in.I.scatter_reduce(1, tensor({{0, 0, 2}}), tensor({{3, -4, 2}}), "mean"), {2, 3}, kLong,
                {1, 3, 3, -2, 0, 3});
  expect_tensor(in.I.scatter_reduce(1, tensor({{0, 0, 2}}), tensor({{3, -4, 2}}), "amax", false), {2, 3}, kLong,
                {3, 3, 2, -2, 0, 3});
  expect_tensor(in.I.scatter_reduce(1, tensor({{0, 0, 2}}), tensor({{3, -4, 2}}), "prod"), {2, 3}, kLong,
                {-60, 3, 10, -2, 0, 3});
  expect_tensor(in.N.scatter_reduce(0, tensor({{0, 0, 0}}), tensor({{kNan, 1.f, 5.f}}), "amax"), {3, 3}, kFloat,
                {kNan, kNan, 5, kNan, kNan, kNan, 3, -kInf, kInf});
  expect_tensor(in.V.scatter(0, tensor({0, 0, 3}), tensor({1.f, 2.f, 4.f}), "add"), {5}, kFloat, {5, 7, 1, 12, 2});
  expect_tensor(in.V.scatter(0, tensor({0, 0, 3}), tensor({3.f, 2.f, 4.f}), "multiply"), {5}, kFloat,
                {12, 7, 1, 32, 2});
  expect_tensor(in.V.clone().scatter_(0, tensor({0, 0, 3}), 2, "multiply"), {5}, kFloat, {8, 7, 1, 16, 2});
  expect_tensor(in.V.clone().scatter_reduce_(0, empty({0}, kLong), in.V, "prod", false), {5}, kFloat, {2, 7, 1, 8, 2});
  expect_tensor(in.M.scatter_reduce(1, tensor({{3, 3}, {1, 1}}), in.M, "amin"), {3, 4}, kFloat,
                {3, 1, 2, 1, 0, -1, 4, 4, 2, 2, -3, 0.5});
}

TEST(Placement, ANumberIsAnElementToo) {
  EXPECT_TRUE(tensor(1.f).index_fill(0, tensor({0}), 5).equal(tensor(5.f)));
  EXPECT_TRUE(tensor(1.f).scatter_reduce(0, tensor(0), tensor(3.f), "prod").equal(tensor(3.f)));
}

TEST(Placement, AFillCountsOnceForItsValueWhoeverNamesThePlace) {
  const Tensor value = tensor(2.f).set_requires_grad(true);
  const Tensor x = zeros({3, 2}).set_requires_grad(true);
  const Tensor filled = x.index_fill(0, tensor({0, 0, -3}), value);
  EXPECT_TRUE(filled.equal(tensor({{2.f, 2.f}, {0.f, 0.f}, {0.f, 0.f}})));
  (filled * tensor({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}})).sum().backward();
  EXPECT_EQ(value.grad().item<float>(), 3);
  EXPECT_TRUE(x.grad().equal(tensor({{0.f, 0.f}, {3.f, 4.f}, {5.f, 6.f}})));
  EXPECT_TRUE(zeros({2}, kLong).index_fill(0, tensor({0}), tensor(2.5f)).equal(tensor({2, 0})));
  EXPECT_EQ(zeros({3}).index_fill_(0, tensor({1}), 3)._version(), 1);
  expect_error<IndexError>([] { zeros({3}).index_fill(0, tensor({0}, kInt), 1); },
                           "index_fill_(): Expected dtype int64 for index.");
}

TEST(Placement, TruthValuesAreOredHoweverLargeTheFactor) {
  const Tensor at = tensor({0, 0, 1}), given = tensor({true, true, false});
  for (const double alpha : {-1.0, 0.5, 1.0, 2.0}) {
    EXPECT_TRUE(zeros({3}, kBool).index_add(0, at, given, alpha).equal(tensor({true, false, false}))) << alpha;
    EXPECT_TRUE(ones({3}, kBool).index_add(0, at, given, alpha).equal(ones({3}, kBool))) << alpha;
  }
  EXPECT_TRUE(zeros({3}, kBool).index_add(0, at, given, 0).equal(zeros({3}, kBool)));
  expect_error([] { zeros({2}, kInt8).index_add(0, tensor({0}), ones({1}, kInt8), 300); },
               "type int8_t without overflow");
}

TEST(Placement, IndicesMayBeInt32) {
  const Tensor at = tensor({1, 1}, kInt), given = tensor({2.f, 4.f});
  EXPECT_TRUE(ones({3}).scatter(0, at, given, "add").equal(tensor({1.f, 7.f, 1.f})));
  EXPECT_TRUE(ones({3}).scatter(0, at, 3, "multiply").equal(tensor({1.f, 9.f, 1.f})));
  for (const auto* reduce : {"sum", "prod", "mean", "amax", "amin"}) {
    EXPECT_TRUE(
        ones({3}).scatter_reduce(0, at, given, reduce).equal(ones({3}).scatter_reduce(0, at.to(kLong), given, reduce)))
        << reduce;
  }
  EXPECT_TRUE(given.take_along_dim(at).equal(tensor({4.f, 4.f})));
  expect_error([&] { ones({3}).scatter_reduce(0, at.to(kInt16), given, "sum"); },
               "scatter(): Expected dtype int32/int64 for index");
}

TEST(Placement, LeavesWhatItReadsAlone) {
  const Tensor x = zeros({3});
  const Tensor y = x.scatter(0, tensor({1}), ones({1}), "add");
  EXPECT_TRUE(x.equal(zeros({3})));
  EXPECT_EQ(x.index_fill(0, tensor({1}), 3)._version(), 0);
  EXPECT_EQ(x.index_copy(0, tensor({1}), ones({1}))._version(), 0);
  EXPECT_EQ(x._version(), 0);
}

TEST(Placement, MistakesAreNamed) {
  const Tensor x = zeros({2, 3});
  expect_error([&] { x.masked_scatter(x.eq(0), zeros({5})); },
               "Number of elements of source (5) < number of ones in mask (6)");
  expect_error([&] { x.masked_scatter(x.eq(0), zeros({6}, kDouble)); }, "to have same dtypes but got Float and Double");
  expect_error([&] { x.put(tensor({0, 1}), zeros({3})); }, "source.numel() = 3, index.numel() = 2");
  expect_error([&] { x.put(zeros({1}), zeros({1})); }, "Expected a long tensor for index, but got Float");
  expect_error([&] { x.take_along_dim(zeros({2, 3}), 0); }, "dtype of indices should be Long but got Float");
  expect_error([&] { x.take_along_dim(tensor({1}), 0); },
               "but got 2 dimensions for input, and 1 dimensions for indices");
  expect_error([&] { x.index_fill(0, tensor({0}), zeros({2})); }, "but got tensor with 1 dimension(s)");
  expect_error(
      [&] {
        x.scatter(0, tensor({{0}}), ones({1, 1}), "max");
      },
      "reduce argument must be either add or multiply, got max.");
  expect_error(
      [&] {
        x.scatter_reduce(0, tensor({{0}}), ones({1, 1}), "add");
      },
      "must be either sum, prod, mean, amax or amin, got add.");
  expect_error([&] { x.scatter_reduce(0, tensor({{5}}), ones({1, 1}), "prod"); }, "out of bounds");
}

}  // namespace
}  // namespace tenon
