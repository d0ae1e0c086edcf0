// Products, norms and losses of margins.
#include "../support/expect_error.h"
#include "../support/expect_tensor.h"
#include "front_end_inputs.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/ops/ops.h>

#include <gtest/gtest.h>

#include <limits>

namespace tenon {
namespace {

using test::expect_error;
using test::expect_tensor;
using test::Inputs;
using test::kInf;
using test::kNan;

TEST(Products, AddToWhatTheyAreGiven) {
  const Inputs in;
  expect_tensor(in.V.slice(0, 0, 3).addmv(in.M, in.M.select(0, 1), 0.5, 2), {3}, kFloat, {23, 69.5, -23.5});
  expect_tensor(in.S.addmv(in.M, in.M.select(0, 1)), {3}, kFloat, {13.5, 35.5, -9.5});
  expect_tensor(in.V.slice(0, 0, 3).clone().addmv_(in.M, in.M.select(0, 1), 0), {3}, kFloat, {11, 33, -12});
  expect_tensor(in.M.addr(in.V.slice(0, 0, 3), in.V.slice(0, 1), 2, 0.5), {3, 4}, kFloat,
                {13, 3, 12, 4, 24.5, 1.5, 36, 15, 7.5, 4.5, -2, 2});
  expect_tensor(full({2, 2}, kNan).addr(in.V.slice(0, 0, 2), in.V.slice(0, 0, 2), 0), {2, 2}, kFloat, {4, 14, 14, 49});
  expect_tensor(in.I.addr(tensor({1, 2}), tensor({1, 2, 3})), {2, 3}, kLong, {6, 5, 8, 0, 4, 9});
  expect_tensor(zeros({3, 3}).addbmm(in.T, in.T.transpose(1, 2)), {3, 3}, kFloat,
                {748, 988, 1228, 988, 1356, 1724, 1228, 1724, 2220});
  expect_tensor(ones({2, 3, 3}).baddbmm_(in.T, in.T.transpose(1, 2), 2, 3), {2, 3, 3}, kFloat,
                {44, 116, 188, 116, 380, 644, 188, 644, 1100, 2204, 2852, 3500, 2852, 3692, 4532, 3500, 4532, 5564});
  expect_tensor(inner(in.M, in.M), {3, 3}, kFloat, {15, 11, 2.5, 11, 33, -12, 2.5, -12, 17.25});
  expect_tensor(inner(in.T, in.M), {2, 3, 3}, kFloat,
                {8, 19, -2.5, 36, 47, 3.5, 64, 75, 9.5, 92, 103, 15.5, 120, 131, 21.5, 148, 159, 27.5});
  expect_tensor(inner(in.S, in.M), {3, 4}, kFloat, {7.5, 2.5, 5, 2.5, 0, -2.5, 10, 10, 5, 5, -7.5, 1.25});
  expect_tensor(in.V.vdot(in.V), {}, kFloat, {122});
  expect_tensor(in.V.ger(in.V), {5, 5}, kFloat,
                {4, 14, 2, 16, 4, 14, 49, 7, 56, 14, 2, 7, 1, 8, 2, 16, 56, 8, 64, 16, 4, 14, 2, 16, 4});
  expect_tensor(kron(in.I, tensor({{1, 10}})), {2, 6}, kLong, {5, 50, 3, 30, 5, 50, -2, -20, 0, 0, 3, 30});
  expect_tensor(kron(in.V, in.I), {2, 15}, kFloat, {10, 6, 10, 35,  21, 35, 5,  3, 5, 40,  24, 40, 10, 6, 10,
                                                    -4, 0, 6,  -14, 0,  21, -2, 0, 3, -16, 0,  24, -4, 0, 6});
  expect_tensor(kron(in.S, in.V), {5}, kFloat, {5, 17.5, 2.5, 20, 5});
  expect_tensor(chain_matmul({in.M, in.M.t(), in.M}), {3, 4}, kFloat,
                {50, 9, 66.5, 60.25, 9, -46, 190, 137, 42, 49, -94.75, -36.875});
  expect_tensor(linalg::multi_dot({in.V.slice(0, 0, 3), in.M, in.M.t(), in.V.slice(0, 0, 3)}), {}, kFloat, {1844.25});
  expect_tensor(matrix_power(tensor({{1., 1.}, {1., 0.}}), 10), {2, 2}, kFloat, {89, 55, 55, 34});
  expect_tensor(matrix_power(in.T.slice(2, 0, 3), 0), {2, 3, 3}, kFloat,
                {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1});
  expect_tensor(tensordot(in.T, in.M, {2, 1}, {1, 0}), {2}, kFloat, {64.5, 250.5});
  expect_tensor(tensordot(in.V, in.V, IntArrayRef(), IntArrayRef()), {5, 5}, kFloat,
                {4, 14, 2, 16, 4, 14, 49, 7, 56, 14, 2, 7, 1, 8, 2, 16, 56, 8, 64, 16, 4, 14, 2, 16, 4});
  expect_tensor(tensordot(in.M, in.M, {1}, {1}), {3, 3}, kFloat, {15, 11, 2.5, 11, 33, -12, 2.5, -12, 17.25});
  expect_tensor(in.M.slice(1, 0, 3).cross(in.N.nan_to_num(1, 1, 1), 1), {3, 3}, kFloat,
                {0, -4, 2, -5, 4, 1, 5, -11, -4});
}

TEST(Products, OuterProductsJoinInTheCommonDtype) {
  const Tensor byte = tensor({3}, kByte);
  expect_tensor(byte.addr(tensor({-2.f}), tensor({5}, kByte), -1, 0), {1, 1}, kFloat, {-3});
  expect_tensor(byte.addr(tensor({-2.f}), tensor({5}, kByte), 0, 1), {1, 1}, kFloat, {-10});
  expect_tensor(tensor({3.}, kDouble).addr(tensor({-2}), tensor({5}, kByte), 0), {1, 1}, kDouble, {-10});
  expect_tensor(byte.addr(tensor({1}, kByte), tensor({2}, kByte), -1), {1, 1}, kByte, {255});
  expect_tensor(tensor({kNan}).addr(tensor({1.f}), tensor({2.f}), 0), {1, 1}, kFloat, {2});
  expect_tensor(tensor({true}).addr(tensor({true}), tensor({false}), false), {1, 1}, kBool, {0});
  expect_tensor(tensor({true}).addr(tensor({true}), tensor({true}), 2, 0), {1, 1}, kBool, {1});
  expect_error([&] { byte.addr(byte, byte, 0.5); },
               "For integral input tensors, argument beta must not be a floating point number.");
  expect_error([&] { byte.addr(byte, byte, true); }, "Boolean beta only supported for Boolean results.");
  expect_error([&] { byte.addr(byte, byte, 300); }, "type uint8_t without overflow");
  expect_error([&] { zeros({1}).addr_(zeros({1}), zeros({1})); }, "2D tensor expected, got 1D tensor for input");
  const Tensor x = tensor({{1.f, 2.f}}).set_requires_grad(true);
  const Tensor a = tensor({1.f, 2.f}).set_requires_grad(true), b = tensor({1.f, 2.f}).set_requires_grad(true);
  x.addr(a, b, 2, 3).sum().backward();
  EXPECT_TRUE(x.grad().equal(tensor({{4.f, 4.f}})));
  EXPECT_TRUE(a.grad().equal(tensor({9.f, 9.f})));
  EXPECT_TRUE(b.grad().equal(tensor({9.f, 9.f})));
}

TEST(Products, SmallIntegersStayWhatTheyAreWhereADimOfOneIsSummed) {
  for (const Dtype dtype : {kInt8, kInt16, kInt32, kByte}) {
    const Tensor row = tensor({{1, 2}}, dtype), column = tensor({{3}, {4}}, dtype);
    expect_tensor(tensordot(row, column, {0}, {0}), {2, 1}, dtype, {7, 14});
    expect_tensor(tensordot(column, row, {0}, {0}), {1, 2}, dtype, {7, 14});
  }
  expect_tensor(tensor(3).inner(tensor({1.f, 2.f})), {2}, kFloat, {3, 6});
}

TEST(Einsum, RepeatedSubscriptsStandBesideAnEllipsis) {
  const Tensor x = arange(18, kFloat).reshape({3, 3, 2});
  expect_tensor(einsum("ii...->i...", {x}), {3, 2}, kFloat, {0, 1, 8, 9, 16, 17});
  expect_tensor(einsum("ii...->...i", {x}), {2, 3}, kFloat, {0, 8, 16, 1, 9, 17});
  const Tensor y = x.reshape({2, 3, 3});
  expect_tensor(einsum("...ii->i...", {y}), {3, 2}, kFloat, {0, 9, 4, 13, 8, 17});
  expect_tensor(einsum("i...i->i...", {x.reshape({3, 2, 3})}), {3, 2}, kFloat, {0, 3, 7, 10, 14, 17});
}

TEST(Einsum, SumsWhatItsEquationSays) {
  const Inputs in;
  expect_tensor(einsum("bij,bkj->bik", {in.T, in.T}), {2, 3, 3}, kFloat,
                {14, 38, 62, 38, 126, 214, 62, 214, 366, 734, 950, 1166, 950, 1230, 1510, 1166, 1510, 1854});
  expect_tensor(einsum("ij", {in.M}), {3, 4}, kFloat, {3, 1, 2, 1, 0, -1, 4, 4, 2, 2, -3, 0.5});
  expect_tensor(einsum("ji", {in.M}), {4, 3}, kFloat, {3, 0, 2, 1, -1, 2, 2, 4, -3, 1, 4, 0.5});
  expect_tensor(einsum("ij->", {in.M}), {}, kFloat, {15.5});
  expect_tensor(einsum("ii->i", {in.M.slice(1, 0, 3)}), {3}, kFloat, {3, -1, -3});
  expect_tensor(einsum("ii", {in.M.slice(1, 0, 3)}), {}, kFloat, {-1});
  expect_tensor(einsum("i,j->ij", {in.V, in.V}), {5, 5}, kFloat,
                {4, 14, 2, 16, 4, 14, 49, 7, 56, 14, 2, 7, 1, 8, 2, 16, 56, 8, 64, 16, 4, 14, 2, 16, 4});
  expect_tensor(einsum("...j,jk", {in.T, in.M.t()}), {2, 3, 3}, kFloat,
                {8, 19, -2.5, 36, 47, 3.5, 64, 75, 9.5, 92, 103, 15.5, 120, 131, 21.5, 148, 159, 27.5});
  expect_tensor(einsum("...ij->...ji", {in.T}), {2, 4, 3}, kFloat,
                {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11, 12, 16, 20, 13, 17, 21, 14, 18, 22, 15, 19, 23});
  expect_tensor(einsum("ij,ij,ij->j", {in.M, in.M, in.M}), {4}, kFloat, {35, 8, 45, 65.125});
  expect_tensor(einsum("aB,aC", {in.M, in.M}), {4, 4}, kFloat,
                {13, 7, 0, 4, 7, 6, -8, -2, 0, -8, 29, 16.5, 4, -2, 16.5, 17.25});
  expect_tensor(einsum(" i j , j -> i ", {in.M, in.M.select(0, 0)}), {3}, kFloat, {15, 11, 2.5});
  expect_tensor(einsum("ij,jk,kl->il", {in.M, in.M.t(), in.M}, {1, 2, 0, 1}), {3, 4}, kFloat,
                {50, 9, 66.5, 60.25, 9, -46, 190, 137, 42, 49, -94.75, -36.875});
  expect_tensor(einsum("...,...", {in.M, in.V.slice(0, 0, 4)}), {3, 4}, kFloat,
                {6, 7, 2, 8, 0, -7, 4, 32, 4, 14, -3, 4});
  expect_tensor(einsum("ij,kj->ik", {in.M.slice(1, 0, 1), in.M}), {3, 3}, kFloat, {21, 21, 4.5, 0, 0, 0, 14, 14, 3});
  expect_tensor(einsum("...->", {in.T}), {}, kFloat, {276});
  expect_tensor(einsum(",ij", {in.S, in.M}), {3, 4}, kFloat, {7.5, 2.5, 5, 2.5, 0, -2.5, 10, 10, 5, 5, -7.5, 1.25});
  expect_tensor(einsum("ij,jk->ik", {zeros({0, 3}), zeros({3, 2})}), {0, 2}, kFloat, {});
  expect_tensor(einsum("...i,...i", {in.I.to(kInt), in.I.to(kInt)}), {2}, kInt, {59, 13});
  expect_tensor(einsum("iij->ji", {arange(8).view({2, 2, 2})}), {2, 2}, kLong, {0, 6, 1, 7});
}

TEST(Linalg, NormsOfVectorsAndMatrices) {
  const Inputs in;
  expect_tensor(linalg::vector_norm(in.M, 2, std::nullopt), {}, kFloat, {8.07774734});
  expect_tensor(linalg::vector_norm(in.M, 2, 1), {3}, kFloat, {3.87298346, 5.74456263, 4.15331173});
  expect_tensor(linalg::vector_norm(in.M, 1, std::nullopt), {}, kFloat, {23.5});
  expect_tensor(linalg::vector_norm(in.M, 1, 1), {3}, kFloat, {7, 9, 7.5});
  expect_tensor(linalg::vector_norm(in.M, 0, std::nullopt), {}, kFloat, {11});
  expect_tensor(linalg::vector_norm(in.M, 0, 1), {3}, kFloat, {4, 3, 4});
  expect_tensor(linalg::vector_norm(in.M, 3, std::nullopt), {}, kFloat, {5.93565512});
  expect_tensor(linalg::vector_norm(in.M, 3, 1), {3}, kFloat, {3.33222198, 5.05277443, 3.50678968});
  expect_tensor(linalg::vector_norm(in.M, kInf, std::nullopt), {}, kFloat, {4});
  expect_tensor(linalg::vector_norm(in.M, kInf, 1), {3}, kFloat, {3, 4, 3});
  expect_tensor(linalg::vector_norm(in.M, -kInf, std::nullopt), {}, kFloat, {0});
  expect_tensor(linalg::vector_norm(in.M, -kInf, 1), {3}, kFloat, {1, 0, 0.5});
  expect_tensor(linalg::vector_norm(in.V, -2), {}, kFloat, {0.806862831});
  expect_tensor(linalg::matrix_norm(in.M), {}, kFloat, {8.07774734});
  expect_tensor(linalg::matrix_norm(in.T, 1), {2}, kFloat, {21, 57});
  expect_tensor(linalg::matrix_norm(in.T, -1, {0, 2}, true), {1, 3, 1}, kFloat, {12, 20, 28});
  expect_tensor(linalg::matrix_norm(in.T, kInf, {2, 0}), {3}, kFloat, {18, 26, 34});
  expect_tensor(linalg::matrix_norm(in.M, -kInf), {}, kFloat, {7});
  expect_tensor(linalg::norm(in.T), {}, kFloat, {65.7571259});
  expect_tensor(linalg::norm(in.M, 1), {}, kFloat, {9});
  expect_tensor(linalg::norm(in.M, "fro"), {}, kFloat, {8.07774734});
  expect_tensor(linalg::norm(in.M, 1, 0), {4}, kFloat, {5, 4, 9, 5.5});
  expect_tensor(linalg::vecdot(in.M, in.M), {3}, kFloat, {15, 33, 17.25});
}

TEST(Linalg, GradientsOfNormsAreZeroWhereTheyWouldBeInfinite) {
  for (const double p : {-2.5, -1.0, -0.5, 0.5, 1.5, 2.0, 2.5, 3.0}) {
    const Tensor x = tensor({0.0, 3.0}, kDouble).set_requires_grad(true);
    linalg::vector_norm(x, p).backward();
    expect_tensor(x.grad(), {2}, kDouble, {0, p > 0 ? 1.0 : 0.0});
  }
  const Tensor x = tensor({1.0, 2.0, -3.0}, kDouble).set_requires_grad(true);
  linalg::vector_norm(x, -1).backward();
  expect_tensor(x.grad(), {3}, kDouble, {0.297520661, 0.074380165, -0.033057851});
}

TEST(Linalg, DistancesAreSmoothWhereRowsShareElements) {
  const Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}}, kDouble).set_requires_grad(true);
  const Tensor y = tensor({{1.0, 2.0}, {3.0, 5.0}}, kDouble).set_requires_grad(true);
  const auto second = [&](double p) {
    const Tensor first = autograd::grad({cdist(x, y, p).sum()}, {x}, {}, true, true)[0];
    return autograd::grad({first.square().sum() + first.sum()}, {x})[0];
  };
  expect_tensor(second(0.5), {2, 2}, kDouble, {0.5187287393, -0.3458191595, -0.5, 0.5});
  expect_tensor(second(1.5), {2, 2}, kDouble, {0.0084717668, -0.0056478445, 0.1984251315, -0.1984251315});
  expect_tensor(second(2), {2, 2}, kDouble, {0.0640038688, -0.0426692459, 2.7677669530, -0.3535533906});
  expect_tensor(second(3), {2, 2}, kDouble, {0.2039391129, -0.1359594086, 0.6299605249, -0.6299605249});
}

TEST(MarginLoss, OneSampleHasTheShapeOfItsTarget) {
  const Tensor x = tensor({1.f, 2.f, 3.f});
  expect_tensor(multi_margin_loss(x, tensor({1}), 1, 1, {}, Reduction::None), {1}, kFloat, {2.f / 3});
  expect_tensor(multi_margin_loss(x, tensor(1), 1, 1, {}, Reduction::None), {}, kFloat, {2.f / 3});
  expect_tensor(multi_margin_loss(tensor(1.f), tensor({0}), 1, 1, {}, Reduction::None), {1}, kFloat, {0});
  const double inf = std::numeric_limits<double>::infinity();
  expect_tensor(multi_margin_loss(x, tensor({1}), 2, inf, {}, Reduction::None), {1}, kFloat, {inf});
  expect_tensor(multilabel_margin_loss(x, tensor({1, -1, 0}), Reduction::None), {}, kFloat, {2.f / 3});
  expect_error(
      [&] {
        multi_margin_loss(x, tensor({0, 1}));
      },
      "Expected target size [1], but got [2]. Input has shape [3].");
  expect_error(
      [&] {
        multilabel_margin_loss(x, tensor({0, 1}));
      },
      "inconsistent target size: [2] for input of size: [3]");
}

TEST(MarginLoss, FunctionsAgreeWithTheirFormulas) {
  const Inputs in;
  expect_tensor(margin_ranking_loss(in.V, in.V.flip(0), in.V.sub(5).sign(), 0.5), {}, kFloat, {0.600000024});
  expect_tensor(hinge_embedding_loss(in.V, in.V.sub(5).sign(), 3), {}, kFloat, {3.79999995});
  expect_tensor(cosine_embedding_loss(in.M, in.M.flip(1), tensor({1, -1, 1}), 0.1, Reduction::None), {3}, kFloat,
                {0.333333313, 0, 1.57971013});
  expect_tensor(soft_margin_loss(in.V, in.V.sub(5).sign(), Reduction::Sum), {}, kFloat, {5.56836414});
  expect_tensor(multi_margin_loss(in.M, tensor({0, 2, 3}), 2, 0.5, ones({4}).mul(2)), {}, kFloat, {1.375});
  expect_tensor(multilabel_margin_loss(in.M, tensor({{0, 2, -1, 1}, {3, -1, 0, 0}, {1, 0, 2, 3}})), {}, kFloat,
                {0.0833333358});
  expect_tensor(triplet_margin_loss(in.M, in.M.flip(0), in.M.mul(2), 2, 2, 1e-6, true, Reduction::None), {3}, kFloat,
                {3.34717274, 0, 3.06684113});
  expect_tensor(poisson_nll_loss(in.M, in.M.abs(), true, true, 1e-8, Reduction::Mean), {}, kFloat, {10.5416718});
}

TEST(Products, MistakesAreNamed) {
  const Tensor x = zeros({2, 3}), v = zeros({3});
  expect_error([&] { v.addmv(x, v); }, "size mismatch, got input (3), mat (2x3), vec (3)");
  expect_error([&] { v.addmv(x, x); }, "vector + matrix @ vector expected, got 1, 2, 2");
  expect_error([&] { x.addr(x, v); }, "addr: Expected 1-D argument vec1, but got 2-D");
  expect_error(
      [&] {
        x.addbmm(zeros({1, 2, 3}), zeros({2, 3, 3}));
      },
      "batch1 and batch2 must have same number of batches, got 1 and 2");
  expect_error([&] { inner(x, zeros({2})); }, "but got shapes [2, 3] and [2]");
  expect_error([&] { tensordot(x, x, {0}, {1}); },
               "contracted dimensions need to match, but first has size 2 in dim 0");
  expect_error([&] { zeros({2, 2}).matrix_power(-1); }, "n must be >= 0");
  expect_error([&] { einsum("ij", {x, x}); }, "fewer operands were specified in the equation than were provided");
  expect_error([&] { einsum("ij,jk", {x}); }, "more operands specified in equation than were provided");
  expect_error([&] { einsum("ijk", {x}); }, "does not match the number of dimensions (2) for operand 0");
  expect_error([&] { einsum("ij->ijj", {x}); }, "output subscript j appears more than once in the output");
  expect_error([&] { einsum("ij->ik", {x}); },
               "output subscript k does not appear in the equation for any input operand");
  expect_error([&] { einsum("ii", {x}); }, "subscript i");
  expect_error([&] { einsum("i1", {x}); }, "subscripts must be in [a-zA-Z]");
  expect_error(
      [&] {
        einsum("ij,ik", {x, zeros({3, 2})});
      },
      "subscript i has size 3 for operand 1 which does not broadcast");
  expect_error([&] { linalg::matrix_norm(x, "nuc"); }, "needs singular values");
  expect_error([&] { linalg::matrix_norm(v); }, "must have at least 2 dimensions");
  expect_error([&] { linalg::vector_norm(zeros({0}), kInf); }, "on an empty tensor");
}

}  // namespace
}  // namespace tenon
