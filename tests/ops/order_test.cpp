// Order: medians, quantiles, searches and sets.
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

TEST(Order, MediansAndModesNameTheirPlaces) {
  const Inputs in;
  {
    const auto result = in.M.median(1);
    expect_tensor(std::get<0>(result), {3}, kFloat, {1, 0, 0.5});
    expect_tensor(std::get<1>(result), {3}, kLong, {3, 0, 3});
  }
  {
    const auto result = in.N.median(0);
    expect_tensor(std::get<0>(result), {3}, kFloat, {kNan, kNan, kNan});
    expect_tensor(std::get<1>(result), {3}, kLong, {1, 0, 1});
  }
  {
    const auto result = in.N.median(1, true);
    expect_tensor(std::get<0>(result), {3, 1}, kFloat, {kNan, kNan, 3});
    expect_tensor(std::get<1>(result), {3, 1}, kLong, {1, 0, 0});
  }
  {
    const auto result = in.N.nanmedian(1);
    expect_tensor(std::get<0>(result), {3}, kFloat, {1, kNan, 3});
    expect_tensor(std::get<1>(result), {3}, kLong, {0, 0, 0});
  }
  expect_tensor(in.N.nanmedian(), {}, kFloat, {2});
  {
    const auto result = in.S.median(0);
    expect_tensor(std::get<0>(result), {}, kFloat, {2.5});
    expect_tensor(std::get<1>(result), {}, kLong, {0});
  }
  {
    const auto result = zeros({0, 3}).median(1);
    expect_tensor(std::get<0>(result), {0}, kFloat, {});
    expect_tensor(std::get<1>(result), {0}, kLong, {});
  }
  {
    const auto result = in.V.kthvalue(2);
    expect_tensor(std::get<0>(result), {}, kFloat, {2});
    expect_tensor(std::get<1>(result), {}, kLong, {0});
  }
  {
    const auto result = in.M.kthvalue(4, 1, true);
    expect_tensor(std::get<0>(result), {3, 1}, kFloat, {3, 4, 2});
    expect_tensor(std::get<1>(result), {3, 1}, kLong, {0, 3, 1});
  }
  {
    const auto result = in.I.kthvalue(1, 0);
    expect_tensor(std::get<0>(result), {3}, kLong, {-2, 0, 3});
    expect_tensor(std::get<1>(result), {3}, kLong, {1, 1, 1});
  }
  {
    const auto result = in.M.mode();
    expect_tensor(std::get<0>(result), {3}, kFloat, {1, 4, 2});
    expect_tensor(std::get<1>(result), {3}, kLong, {3, 3, 1});
  }
  {
    const auto result = in.I.mode(1, true);
    expect_tensor(std::get<0>(result), {2, 1}, kLong, {5, -2});
    expect_tensor(std::get<1>(result), {2, 1}, kLong, {2, 0});
  }
  {
    const auto result = in.K.mode();
    expect_tensor(std::get<0>(result), {}, kLong, {2});
    expect_tensor(std::get<1>(result), {}, kLong, {3});
  }
  {
    const auto result = in.S.mode();
    expect_tensor(std::get<0>(result), {}, kFloat, {2.5});
    expect_tensor(std::get<1>(result), {}, kLong, {0});
  }
  expect_tensor(in.M.msort(), {3, 4}, kFloat, {0, -1, -3, 0.5, 2, 1, 2, 1, 3, 2, 4, 4});
  {
    const auto result = in.I.sort(true, 1, true);
    expect_tensor(std::get<0>(result), {2, 3}, kLong, {5, 5, 3, 3, 0, -2});
    expect_tensor(std::get<1>(result), {2, 3}, kLong, {0, 2, 1, 2, 1, 0});
  }
  expect_tensor(in.I.argsort(true, 1, false), {2, 3}, kLong, {1, 0, 2, 0, 1, 2});
}

TEST(Order, QuantilesInterpolate) {
  const Inputs in;
  expect_tensor(in.M.quantile(0.3), {}, kFloat, {0.650000095});
  expect_tensor(in.M.quantile(0.3, 1), {3}, kFloat, {1, -0.0999999642, 0.150000125});
  expect_tensor(in.M.quantile(0.3, 1, true), {3, 1}, kFloat, {1, -0.0999999642, 0.150000125});
  expect_tensor(in.M.quantile(0.3, std::nullopt, true), {1, 1}, kFloat, {0.650000095});
  expect_tensor(in.M.quantile(tensor({0.f, 0.4f, 1.f}), 0), {3, 4}, kFloat,
                {0, -1, -3, 0.5, 1.60000002, 0.600000024, 1, 0.899999976, 3, 2, 4, 4});
  expect_tensor(in.M.quantile(tensor({0.f, 0.4f}), 1, true), {2, 3, 1}, kFloat,
                {1, -1, -3, 1.20000005, 0.800000072, 0.800000012});
  expect_tensor(in.M.quantile(tensor({0.1f, 0.4f}), std::nullopt, true), {2, 1, 1}, kFloat, {-0.899999976, 1});
  expect_tensor(in.V.quantile(0.4, 0, false, "linear"), {}, kFloat, {2});
  expect_tensor(in.V.quantile(0.4, 0, false, "lower"), {}, kFloat, {2});
  expect_tensor(in.V.quantile(0.4, 0, false, "higher"), {}, kFloat, {2});
  expect_tensor(in.V.quantile(0.4, 0, false, "midpoint"), {}, kFloat, {2});
  expect_tensor(in.V.quantile(0.4, 0, false, "nearest"), {}, kFloat, {2});
  expect_tensor(in.N.quantile(0.5, 1), {3}, kFloat, {kNan, kNan, 3});
  expect_tensor(in.N.nanquantile(0.5, 1), {3}, kFloat, {1.5, kNan, 3});
  expect_tensor(in.N.nanquantile(tensor({0.25f, 1.f})), {2}, kFloat, {1, kNan});
  expect_tensor(in.S.quantile(0.5), {}, kFloat, {2.5});
  expect_tensor(in.S.quantile(0.5, 0, true), {}, kFloat, {2.5});
}

TEST(Order, SearchesFindTheFirstOrTheLastPlace) {
  const Inputs in;
  expect_tensor(searchsorted(tensor({1.0f, 2.0f, 2.0f, 5.0f}), tensor({0.0f, 2.0f, 3.0f, 5.0f, 9.0f, kNan})), {6},
                kLong, {0, 1, 3, 3, 4, 4});
  expect_tensor(
      searchsorted(tensor({1.0f, 2.0f, 2.0f, 5.0f}), tensor({0.0f, 2.0f, 3.0f, 5.0f, 9.0f, kNan}), false, true), {6},
      kLong, {0, 3, 3, 4, 4, 4});
  expect_tensor(searchsorted(tensor({{1, 3, 5}, {2, 4, 6}}), tensor({{3, 6, 0}, {3, 6, 9}}), true), {2, 3}, kInt,
                {1, 3, 0, 1, 2, 3});
  expect_tensor(searchsorted(tensor({1, 3, 5}), 3), {}, kLong, {1});
  expect_tensor(searchsorted(tensor({5, 1, 3}), tensor({4}), false, false, "right", tensor({1, 2, 0})), {1}, kLong,
                {2});
  expect_tensor(searchsorted(zeros({0}), tensor({1.f})), {1}, kLong, {0});
  expect_tensor(bucketize(in.M, tensor({0., 2.})), {3, 4}, kLong, {2, 1, 1, 1, 0, 0, 2, 2, 1, 1, 0, 1});
  expect_tensor(bucketize(in.M, tensor({0., 2.}), true, true), {3, 4}, kInt, {2, 1, 2, 1, 1, 0, 2, 2, 2, 2, 0, 1});
  expect_tensor(isin(in.I, tensor({3, -2})), {2, 3}, kBool, {0, 1, 0, 1, 0, 1});
  expect_tensor(isin(in.M, tensor({2, 4}), false, true), {3, 4}, kBool, {1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1});
  expect_tensor(isin(in.I, 5), {2, 3}, kBool, {1, 0, 1, 0, 0, 0});
  expect_tensor(isin(in.N, in.N), {3, 3}, kBool, {1, 0, 1, 0, 0, 0, 1, 1, 1});
  expect_tensor(isin(in.K, empty({0}, kLong)), {4}, kBool, {0, 0, 0, 0});
}

TEST(Order, SearchesCompareInTheCommonDtype) {
  const Tensor whole = tensor({0, 2});
  EXPECT_EQ(searchsorted(whole, 0.75).item<int>(), 1);
  EXPECT_EQ(bucketize(0.75, whole).item<int>(), 1);
  EXPECT_EQ(searchsorted(whole.to(kByte), -0.625).item<int>(), 0);
  EXPECT_TRUE(searchsorted(whole, tensor({0.75f, 2.5f})).equal(tensor({1, 2})));
  EXPECT_TRUE(bucketize(tensor({0.75f}), whole).equal(tensor({1})));
  EXPECT_TRUE(searchsorted(tensor({0.0, 0.1, 2.0}, kDouble), tensor({0.1f})).equal(tensor({2}))) << "0.1f > 0.1";
  const Tensor small = tensor({0, 50}, kInt8);
  EXPECT_TRUE(searchsorted(small, tensor({300})).equal(tensor({2})));
  EXPECT_EQ(searchsorted(small, 300).item<int>(), 1) << "a number joins in the dtype of the tensor: 44";
}

TEST(Order, KthValuesKeepNoOthersAlive) {
  const auto [values, places] = rand({1000, 1000}).kthvalue(3);
  EXPECT_EQ(places.storage().nbytes(), 1000 * sizeof(std::int64_t));
  EXPECT_EQ(values.storage().nbytes(), 1000 * sizeof(float));
}

TEST(Order, TheTopOfANumberIsTheNumber) {
  const Tensor x = tensor(3.f).set_requires_grad(true);
  const auto [values, places] = x.topk(0);
  EXPECT_TRUE(values.equal(tensor(3.f)));
  EXPECT_TRUE(places.equal(tensor(0)));
  values.backward();
  EXPECT_EQ(x.grad().item<float>(), 1);
}

TEST(Order, UniqueElementsComeWithTheirNumbersAndCounts) {
  const Inputs in;
  {
    const auto result = _unique2(in.M, true, true, true);
    expect_tensor(std::get<0>(result), {8}, kFloat, {-3, -1, 0, 0.5, 1, 2, 3, 4});
    expect_tensor(std::get<1>(result), {3, 4}, kLong, {6, 4, 5, 4, 2, 1, 7, 7, 5, 5, 0, 3});
    expect_tensor(std::get<2>(result), {8}, kLong, {1, 1, 1, 1, 2, 3, 1, 2});
  }
  {
    const auto result = _unique2(in.N);
    expect_tensor(std::get<0>(result), {9}, kFloat, {-kInf, 1, 2, 3, kInf, kNan, kNan, kNan, kNan});
    expect_tensor(std::get<1>(result), {0}, kLong, {});
    expect_tensor(std::get<2>(result), {0}, kLong, {});
  }
  {
    const auto result = _unique2(zeros({0}), true, true, true);
    expect_tensor(std::get<0>(result), {0}, kFloat, {});
    expect_tensor(std::get<1>(result), {0}, kLong, {});
    expect_tensor(std::get<2>(result), {0}, kLong, {});
  }
  {
    const auto result = _unique(in.K, true, true);
    expect_tensor(std::get<0>(result), {3}, kLong, {0, 1, 2});
    expect_tensor(std::get<1>(result), {4}, kLong, {0, 2, 1, 2});
  }
  {
    const auto result = unique_dim(tensor({{1, 2, 1}, {0, 5, 5}, {1, 2, 1}, {1, 0, 9}}), 0, true, true, true);
    expect_tensor(std::get<0>(result), {3, 3}, kLong, {0, 5, 5, 1, 0, 9, 1, 2, 1});
    expect_tensor(std::get<1>(result), {4}, kLong, {2, 0, 2, 1});
    expect_tensor(std::get<2>(result), {3}, kLong, {1, 1, 2});
  }
  {
    const auto result = unique_dim(tensor({{1, 2, 1, 0}, {0, 5, 0, 5}}), 1, true, true, true);
    expect_tensor(std::get<0>(result), {2, 3}, kLong, {0, 1, 2, 5, 0, 5});
    expect_tensor(std::get<1>(result), {4}, kLong, {1, 2, 1, 0});
    expect_tensor(std::get<2>(result), {3}, kLong, {1, 2, 1});
  }
  {
    const auto result = unique_consecutive(in.M, true, true);
    expect_tensor(std::get<0>(result), {10}, kFloat, {3, 1, 2, 1, 0, -1, 4, 2, -3, 0.5});
    expect_tensor(std::get<1>(result), {3, 4}, kLong, {0, 1, 2, 3, 4, 5, 6, 6, 7, 7, 8, 9});
    expect_tensor(std::get<2>(result), {10}, kLong, {1, 1, 1, 1, 1, 1, 2, 2, 1, 1});
  }
  {
    const auto result = unique_consecutive(tensor({{1, 2}, {1, 2}, {0, 2}}), true, true, 0);
    expect_tensor(std::get<0>(result), {2, 2}, kLong, {1, 2, 0, 2});
    expect_tensor(std::get<1>(result), {3}, kLong, {0, 0, 1});
    expect_tensor(std::get<2>(result), {2}, kLong, {2, 1});
  }
  {
    const auto result = _unique2(in.B, true, true, true);
    expect_tensor(std::get<0>(result), {2}, kBool, {0, 1});
    expect_tensor(std::get<1>(result), {2, 3}, kLong, {1, 0, 1, 0, 0, 1});
    expect_tensor(std::get<2>(result), {2}, kLong, {3, 3});
  }
}

TEST(Order, EqualElementsShareTheGradientOfAMedianOfAll) {
  const Tensor x = tensor({3.f, 1.f, 2.f, 1.f, 1.f}).set_requires_grad(true);
  (x.median() * 3 + x.nanmedian() * 6).backward();
  EXPECT_TRUE(x.grad().allclose(tensor({0.f, 3.f, 0.f, 3.f, 3.f})));
  expect_error([] { tensor({true}).median(0); }, "\"median\" not implemented for 'Bool'");
}

TEST(Order, GradientsGoToTheChosen) {
  const Tensor x = tensor({3.f, 1.f, 2.f, 1.f}).set_requires_grad(true);
  std::get<0>(x.kthvalue(3, 0)).backward();
  EXPECT_TRUE(x.grad().equal(tensor({0.f, 0.f, 1.f, 0.f})));
  expect_error([&] { std::get<0>(_unique2(x)).sum().backward(); }, "the derivative for '_unique2' is not implemented");
}

TEST(Order, MistakesAreNamed) {
  const Tensor x = zeros({3, 4});
  expect_error([&] { x.kthvalue(5); }, "kthvalue(): selected number k out of range for dimension 1");
  expect_error([&] { zeros({0, 3}).median(0); }, "median(): Expected reduction dim 0 to have non-zero size.");
  expect_error([&] { zeros({0, 3}).mode(0); }, "mode(): Expected reduction dim 0 to have non-zero size.");
  expect_error([&] { x.quantile(1.5); }, "quantile() q must be in the range [0, 1] but got 1.5");
  expect_error([&] { x.quantile(tensor({1.5f})); }, "quantile() q values must be in the range [0, 1]");
  expect_error([&] { x.quantile(tensor({0.5}, kDouble)); },
               "quantile() q tensor must be same dtype as the input tensor");
  expect_error([&] { x.to(kLong).quantile(0.5); }, "quantile() input tensor must be either float or double dtype");
  expect_error([&] { x.quantile(0.5, 0, false, "cubic"); }, "but got cubic");
  expect_error([&] { zeros({0}).nanquantile(0.5); }, "nanquantile() input tensor must be non-empty");
  expect_error(
      [&] {
        searchsorted(x, zeros({2, 4}));
      },
      "but we got boundaries tensor [3, 4] and input value tensor [2, 4]");
  expect_error<NotImplementedError>(
      [] {
        searchsorted(tensor({false, true}), true);
      },
      "\"searchsorted_out_cpu\" not implemented for 'Bool'");
  expect_error([&] { searchsorted(x, 1); }, "boundaries tensor dim(2) and input value's dim(0) numel(1)");
  expect_error([&] { searchsorted(zeros({3}), zeros({1}), false, false, {}, zeros({3}, kInt)); },
               "sorter must be a tensor of long dtype but got dtype Int");
  expect_error([&] { searchsorted(zeros({3}), zeros({1}), false, false, "up"); },
               "side can only be 'left' or 'right' but got up");
  expect_error([&] { bucketize(x, x); }, "boundaries tensor must be 1 dimension, but got dim(2)");
  expect_error([&] { unique_dim(zeros({3, 0}), 0); }, "there are 0 sized dimensions");
}

// PyTorch 2.15's values: 0.1 and 0.3 in float32 lie above a tenth and three tenths.
TEST(Quantile, RanksAreThoseOfTheShareAsItsDtypeHasIt) {
  const Tensor x = arange(81, kFloat32);
  EXPECT_EQ(x.quantile(0.1, {}, false, "higher").item<double>(), 9);
  EXPECT_EQ(x.quantile(0.1, {}, false, "midpoint").item<double>(), 8.5);
  EXPECT_EQ(x.quantile(0.1, {}, false, "lower").item<double>(), 8);
  EXPECT_EQ(x.nanquantile(0.3, {}, false, "higher").item<double>(), 25);
  EXPECT_EQ(x.nanquantile(0.7, {}, false, "higher").item<double>(), 56);
  EXPECT_EQ(x.to(kFloat64).quantile(0.1, {}, false, "higher").item<double>(), 8);
}

}  // namespace
}  // namespace tenon
