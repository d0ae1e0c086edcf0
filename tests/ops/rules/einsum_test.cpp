// Einstein's sums, norms of matrices, covariances and distances of pairs: what they are, and what they say of the rest.
#include "../../support/message_of.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensor/literal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

using Axes = std::vector<std::int64_t>;

Tensor waves(const Axes& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return arange(1, static_cast<double>(count) + 1, TensorOptions(kFloat64)).sin().view(sizes);
}
bool alike(const Tensor& a, const Tensor& b) { return a.sizes() == b.sizes() && a.allclose(b, 1e-9, 1e-12); }

TEST(EinsumRules, LettersMeetAndThoseNotInTheResultAreSummed) {
  const Tensor a = waves({2, 3}), b = waves({3, 4}), c = waves({2, 3, 4}), v = waves({3}), s = waves({3, 3});
  EXPECT_TRUE(alike(einsum("ij,jk->ik", {a, b}), a.mm(b)));
  EXPECT_TRUE(alike(einsum("ij,jk", {a, b}), a.mm(b)));
  EXPECT_TRUE(alike(einsum("ij,jk->ki", {a, b}), a.mm(b).t()));
  EXPECT_TRUE(alike(einsum("ba", {a}), a.t())) << "letters in their order";
  EXPECT_TRUE(alike(einsum("aB", {a}), a.t())) << "capitals first";
  EXPECT_TRUE(alike(einsum("ij->", {a}), a.sum()));
  EXPECT_TRUE(alike(einsum("ij->j", {a}), a.sum(0)));
  EXPECT_TRUE(alike(einsum("ii->i", {s}), s.diagonal()));
  EXPECT_TRUE(alike(einsum("ii", {s}), s.trace()));
  EXPECT_TRUE(alike(einsum("i,j->ij", {v, v}), v.outer(v)));
  EXPECT_TRUE(alike(einsum("ij,j", {a, v}), a.mv(v)));
  EXPECT_TRUE(alike(einsum("...j,jk->...k", {c.transpose(1, 2), b}), c.transpose(1, 2).matmul(b)));
  EXPECT_TRUE(alike(einsum("i...->...", {c}), c.sum(0)));
  EXPECT_TRUE(alike(einsum("...ij->...ji", {c}), c.transpose(1, 2)));
  EXPECT_TRUE(alike(einsum("i...->i", {c}), c.sum({1, 2})));
  EXPECT_TRUE(alike(einsum("...a,...a->...", {c, b}), (c * b).sum(-1))) << "ellipses broadcast";
  EXPECT_TRUE(alike(einsum("ij,ij->ij", {a, a.narrow(0, 0, 1)}), a * a[0])) << "so do sizes of 1";
  EXPECT_TRUE(alike(einsum("ij,jk->k", {a, b}), a.mm(b).sum(0)));
  EXPECT_TRUE(alike(einsum("bij,bjk->bik", {c, c.transpose(1, 2)}), c.bmm(c.transpose(1, 2))));
  EXPECT_TRUE(alike(einsum(" i j , j k -> i k ", {a, b}), a.mm(b)));
  for (const Axes& path : {Axes{0, 1, 0, 1}, Axes{1, 2, 0, 1}, Axes{2, 0, 1, 0}})
    EXPECT_TRUE(alike(einsum("ij,jk,j->ik", {a, b, v}, path), (a * v).mm(b)));
  EXPECT_TRUE(alike(einsum("ij,jk,j->ik", {a, b, v}), (a * v).mm(b)));
  const Tensor x = a.clone().requires_grad_(), y = b.clone().requires_grad_();
  einsum("ij,jk->ik", {x, y}).sum().backward();
  EXPECT_TRUE(alike(x.grad(), b.sum(1).expand({2, 3})) && alike(y.grad(), a.sum(0).unsqueeze(1).expand({3, 4})));
}

TEST(EinsumRules, WhatIsNoEquationIsSaid) {
  const Tensor a = waves({2, 3}), b = waves({3, 4});
  const auto said = [](const char* equation, const std::vector<Tensor>& operands) {
    return message_of([&] { einsum(equation, operands); });
  };
  EXPECT_EQ(said("i", {}), "einsum(): must provide at least one operand");
  EXPECT_EQ(said("....i", {a}), "einsum(): found '.' for operand 0 for which an ellipsis was already found");
  EXPECT_EQ(said("..i", {a}), "einsum(): found '.' for operand 0 that is not part of any ellipsis");
  EXPECT_EQ(said("ij->..", {a}), "einsum(): found '.' for the output that is not part of any ellipsis");
  EXPECT_EQ(said("i1", {a}),
            "einsum(): invalid subscript given at index 1 of operand 0: '1', subscripts must be in [a-zA-Z]");
  EXPECT_EQ(said("ij,jk,k", {a, b}), "einsum(): more operands specified in equation than were provided");
  EXPECT_EQ(said("ij", {a, b}), "einsum(): fewer operands were specified in the equation than were provided");
  EXPECT_EQ(said("ijk", {a}),
            "einsum(): the number of subscripts in the equation (3) does not match the number of dimensions (2) for "
            "operand 0 and no ellipsis was given");
  EXPECT_EQ(said("i", {a}),
            "einsum(): the number of subscripts in the equation (1) does not match the number of dimensions (2) for "
            "operand 0 and no ellipsis was given");
  EXPECT_EQ(
      said("ijk...", {a}),
      "einsum(): the number of subscripts in the equation (3) is more than the number of dimensions (2) for operand "
      "0");
  EXPECT_EQ(said("ij,ik", {a, b}),
            "einsum(): subscript i has size 3 for operand 1 which does not broadcast with previously seen size 2");
  EXPECT_EQ(said("ij->ii", {a}), "einsum(): output subscript i appears more than once in the output");
  EXPECT_EQ(said("ij->ik", {a}), "einsum(): output subscript k does not appear in the equation for any input operand");
  EXPECT_EQ(said("ii->i", {waves({1, 3})}),
            "einsum(): subscript i is repeated for an operand but the sizes don't match, 3 != 1");
  const auto along = [&](const Axes& path) { return message_of([&] { einsum("ij,jk->ik", {a, b}, path); }); };
  EXPECT_EQ(along({0}), "einsum(): expected contraction path given in path parameter to have size 2 but got 1");
  const std::string pair = " is not a pair of the 2 operands left)";
  EXPECT_EQ(along({0, 0}), "einsum(): invalid contraction path (0, 0" + pair);
  EXPECT_EQ(along({0, 2}), "einsum(): invalid contraction path (0, 2" + pair);
  EXPECT_EQ(along({1, -1}), "einsum(): invalid contraction path (-1, 1" + pair);
}

TEST(MatrixNormRules, SumAlongOneDimensionAndCompareAlongTheOther) {
  const Tensor x = tensor({{1., -2., 3.}, {-4., 0., 6.}}, TensorOptions(kFloat64));
  const double infinity = std::numeric_limits<double>::infinity();
  const auto norm = [&](double p) { return linalg::matrix_norm(x, p, {0, 1}).item<double>(); };
  EXPECT_EQ(norm(1), 9);
  EXPECT_EQ(norm(-1), 2);
  EXPECT_EQ(norm(infinity), 10);
  EXPECT_EQ(norm(-infinity), 6);
  EXPECT_EQ(linalg::matrix_norm(x, 1, {1, 0}).item<double>(), 10);
  EXPECT_NEAR(linalg::matrix_norm(x, "fro", {0, 1}).item<double>(), std::sqrt(66), 1e-12);
  EXPECT_EQ(linalg::matrix_norm(waves({2, 3, 4}), 1, {-1, 0}).sizes().vec(), (Axes{3}));
  EXPECT_EQ(linalg::matrix_norm(waves({2, 3, 4}), 1, {-1, 0}, true).sizes().vec(), (Axes{1, 3, 1}));
  EXPECT_NEAR(linalg::norm(x, std::nullopt, std::nullopt).item<double>(), std::sqrt(66), 1e-12);
  EXPECT_EQ(linalg::norm(x, Scalar(1), std::nullopt).item<double>(), 9) << "of a matrix, the matrix's";
  EXPECT_EQ(linalg::norm(x[0], Scalar(1), std::nullopt).item<double>(), 6);
  EXPECT_TRUE(alike(linalg::norm(x, Scalar(1), OptionalIntArrayRef(std::int64_t{1})), x.abs().sum(1)));
  EXPECT_TRUE(alike(linalg::vecdot(x, x, 1), (x * x).sum(1)));
  const auto said = [&](const Axes& dims, double p = 1) {
    return message_of([&] { linalg::matrix_norm(x, p, dims); });
  };
  EXPECT_EQ(said({0}), "linalg.matrix_norm: dim must be a 2-tuple. Got [0]");
  EXPECT_EQ(said({1, -1}), "linalg.matrix_norm: dims must be different. Got [1, -1]");
  EXPECT_EQ(said({0, 1}, 3), "linalg.matrix_norm: Order 3 not supported.");
  EXPECT_EQ(said({0, 1}, 2), "linalg.matrix_norm: order 2 needs singular values, which are not computed here");
  EXPECT_EQ(said({0, 1}, -2), "linalg.matrix_norm: order -2 needs singular values, which are not computed here");
  EXPECT_EQ(message_of([&] {
              linalg::matrix_norm(x[0], 1, {0, 1});
            }),
            "linalg.matrix_norm: The input tensor A must have at least 2 dimensions, got 1");
  EXPECT_EQ(message_of([&] {
              linalg::matrix_norm(x, "nuc", {0, 1});
            }),
            "linalg.matrix_norm: order nuc needs singular values, which are not computed here");
  EXPECT_EQ(message_of([&] { linalg::matrix_norm(x, "max", {0, 1}); }), "linalg.matrix_norm: Order max not supported.");
  EXPECT_EQ(message_of([] {
              linalg::norm(waves({2, 3, 4}), Scalar(1), std::nullopt);
            }),
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got 3D.");
  EXPECT_THAT(message_of([] { linalg::vector_norm(empty({0}), -1, std::nullopt); }),
              testing::StartsWith("linalg.vector_norm cannot compute the -1 norm on an empty tensor"));
  EXPECT_THROW(linalg::vector_norm(empty({0}), infinity, std::nullopt), Error);
  EXPECT_EQ(linalg::vector_norm(empty({0}), 0, std::nullopt).item<float>(), 0);
  EXPECT_THROW(linalg::vector_norm(tensor({1}), 2, std::nullopt), Error);
  EXPECT_EQ(linalg::vector_norm(tensor({3, 4}), 2, std::nullopt, false, kFloat64).item<double>(), 5);
  EXPECT_EQ(message_of([&] { linalg::multi_dot({x}); }), "multi_dot(): expected at least 2 tensors but got 1");
  const Tensor left = waves({2}), right = waves({3});
  EXPECT_TRUE(alike(linalg::multi_dot({left, x, right}), left.matmul(x).matmul(right)));
  EXPECT_TRUE(alike(linalg::multi_dot({left, x}), left.matmul(x)));
  EXPECT_TRUE(alike(linalg::multi_dot({x, right}), x.matmul(right)));
}

TEST(CovarianceRules, WeightsAreCountsOrShares) {
  const Tensor x = waves({2, 5}), counts = tensor({1, 2, 0, 3, 1}), shares = waves({5}).abs();
  const auto centred = [&](const Tensor& w) { return x - (x * w).sum(1, true) / w.sum(); };
  const Tensor c = counts.to(kFloat64), plain = ones({5}, kFloat64);
  EXPECT_TRUE(alike(cov(x), centred(plain).mm(centred(plain).t()) / 4));
  EXPECT_TRUE(alike(cov(x, 0), centred(plain).mm(centred(plain).t()) / 5));
  EXPECT_TRUE(alike(cov(x, 1, counts), (centred(c) * c).mm(centred(c).t()) / 6));
  const Tensor both = c * shares;
  EXPECT_TRUE(alike(cov(x, 1, counts, shares),
                    (centred(both) * both).mm(centred(both).t()) / (both.sum() - (both * shares).sum() / both.sum())));
  EXPECT_TRUE(
      alike(cov(x, 0, std::nullopt, shares), (centred(shares) * shares).mm(centred(shares).t()) / shares.sum()));
  EXPECT_TRUE(alike(cov(x[0]), x[0].var()));
  EXPECT_EQ(cov(x.narrow(1, 0, 2), 5)[0][0].item<double>(), std::numeric_limits<double>::infinity());
  const Tensor r = corrcoef(x);
  EXPECT_NEAR(r[0][0].item<double>(), 1, 1e-12);
  EXPECT_NEAR(r[0][1].item<double>(), (cov(x)[0][1] / (x[0].std() * x[1].std())).item<double>(), 1e-12);
  EXPECT_EQ(corrcoef(x[0]).item<double>(), 1);
  const auto said = [&](const Tensor& input, const std::optional<Tensor>& f, const std::optional<Tensor>& a) {
    return message_of([&] { cov(input, 1, f, a); });
  };
  EXPECT_EQ(said(waves({1, 1, 1}), {}, {}),
            "cov(): expected input to have two or fewer dimensions but got an input with 3 dimensions");
  EXPECT_EQ(said(tensor({true}), {}, {}), "cov(): bool dtype is not supported for input");
  EXPECT_EQ(said(x, shares, {}), "cov(): expected fweights to have integral dtype but got fweights with Double dtype");
  EXPECT_EQ(said(x, {}, counts),
            "cov(): expected aweights to have floating point dtype but got aweights with Long dtype");
  EXPECT_EQ(said(x, counts.view({1, 5}), {}),
            "cov(): expected fweights to have one or fewer dimensions but got fweights with 2 dimensions");
  EXPECT_EQ(said(x, counts.narrow(0, 0, 4), {}),
            "cov(): expected fweights to have the same numel as there are observations in the input but got 4 != 5");
  EXPECT_EQ(said(x, counts - 1, {}), "cov(): fweights cannot be negative");
  EXPECT_EQ(said(x, {}, -shares), "cov(): aweights cannot be negative");
  EXPECT_EQ(said(x, counts * 0, {}), "cov(): weights sum to zero, can't be normalized");
  EXPECT_EQ(message_of([] {
              corrcoef(waves({1, 1, 1}));
            }),
            "corrcoef(): expected input to have two or fewer dimensions but got an input with 3 dimensions");
}

TEST(DistanceRules, OfAllPairsByNormOrByProduct) {
  const Tensor a = waves({30, 4}), b = waves({3, 4}).cos();
  for (const double p : {0., 1., 2., 3., std::numeric_limits<double>::infinity()}) {
    const Tensor want = (a.unsqueeze(1) - b).norm(p, -1, false);
    for (const std::int64_t mode : {0, 1, 2})
      EXPECT_TRUE(cdist(a, b, p, mode).allclose(want, 1e-6, 1e-7)) << p << ' ' << mode;
    const Tensor pairs = pdist(b, p);
    ASSERT_EQ(pairs.sizes().vec(), (Axes{3}));
    EXPECT_TRUE(alike(pairs, stack({b[0] - b[1], b[0] - b[2], b[1] - b[2]}).norm(p, -1, false)));
  }
  EXPECT_EQ(cdist(a.view({2, 15, 4}), b, 2, std::nullopt).sizes().vec(), (Axes{2, 15, 3}));
  const Tensor same = a.clone().requires_grad_();
  cdist(same, a, 2, 1).sum().backward();
  EXPECT_TRUE(same.grad().isfinite().all().item<bool>()) << "no slope where the distance is 0";
  EXPECT_EQ(message_of([&] { cdist(a[0], b, 2, {}); }), "cdist only supports at least 2D tensors, X1 got: 1D");
  EXPECT_EQ(message_of([&] { cdist(a, b[0], 2, {}); }), "cdist only supports at least 2D tensors, X2 got: 1D");
  EXPECT_EQ(message_of([&] {
              cdist(a, waves({3, 5}), 2, {});
            }),
            "X1 and X2 must have the same number of columns. X1: 4 X2: 5");
  EXPECT_EQ(message_of([&] { cdist(a, b, -1, {}); }), "cdist only supports non-negative p values, got -1");
  EXPECT_EQ(message_of([&] { cdist(a, b, 2, 3); }), "possible modes: 0, 1, 2, but was: 3");
  EXPECT_THROW(cdist(a, b, 2, -1), Error);
  EXPECT_THROW(cdist(a, b.to(kInt64), 2, {}), Error);
  EXPECT_THROW(cdist(a.to(kInt64), b, 2, {}), Error);
  EXPECT_EQ(message_of([&] { pdist(a[0], 2); }), "pdist only supports 2D tensors, got: 1D");
  EXPECT_EQ(message_of([&] { pdist(a, -1); }), "pdist only supports non-negative p values, got -1");
  EXPECT_EQ(message_of([] { cosine_similarity(tensor({1}), tensor({2}), 0, 1e-8); }),
            "expected common dtype to be floating point, yet common dtype is Long");
  EXPECT_NEAR(cosine_similarity(a[0], a[1], 0, 1e-8).item<double>(),
              (a[0].dot(a[1]) / (a[0].norm() * a[1].norm())).item<double>(), 1e-12);
  EXPECT_EQ(cosine_similarity(zeros({3}), ones({3}), 0, 1e-8).item<double>(), 0);
  EXPECT_TRUE(
      alike(pairwise_distance(a.narrow(0, 0, 3), b, 2, 0.5, true), (a.narrow(0, 0, 3) - b + 0.5).norm(2, -1, true)));
}

}  // namespace
}  // namespace tenon::test
