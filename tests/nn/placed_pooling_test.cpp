// Pools at places that the caller gives, operator and functional form, against loops over their windows; and what all
// losses do with the terms.
#include "../support/expect_error.h"

#include <tenon/nn/functional.h>
#include <tenon/ops/all_ops.h>

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

namespace F = nn::functional;

/// Where kernels begin: Graham's pseudo-random sequence.
std::vector<std::int64_t> starts(double sample, std::int64_t in, std::int64_t out, std::int64_t kernel) {
  std::vector<std::int64_t> found;
  const double alpha = static_cast<double>(in - kernel) / static_cast<double>(out - 1);
  for (std::int64_t i = 0; i + 1 < out; ++i) {
    found.push_back(static_cast<std::int64_t>((static_cast<double>(i) + sample) * alpha) -
                    static_cast<std::int64_t>(sample * alpha));
  }
  found.push_back(in - kernel);
  return found;
}

TEST(FractionalMaxPool, TakesTheMaximaOfKernelsAtTheSampledPlaces) {
  manual_seed(5);
  const Tensor x = randn({2, 3, 9, 8}, TensorOptions(kFloat64)), samples = rand({2, 3, 2}, TensorOptions(kFloat64));
  const auto [y, places] = fractional_max_pool2d(x, {2, 3}, {4, 3}, samples);
  ASSERT_EQ(y.sizes().vec(), (std::vector<std::int64_t>{2, 3, 4, 3}));
  for (std::int64_t n = 0; n < 2; ++n) {
    for (std::int64_t c = 0; c < 3; ++c) {
      const auto rows = starts(samples[n][c][1].item<double>(), 9, 4, 2);
      const auto columns = starts(samples[n][c][0].item<double>(), 8, 3, 3);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        for (std::size_t j = 0; j < columns.size(); ++j) {
          const Tensor window = x[n][c].narrow(0, rows[i], 2).narrow(1, columns[j], 3);
          EXPECT_TRUE(y[n][c][i][j].equal(window.max()));
          const std::int64_t place = window.reshape({-1}).argmax().item<std::int64_t>();
          EXPECT_EQ(places[n][c][i][j].item<std::int64_t>(), (rows[i] + place / 3) * 8 + columns[j] + place % 3);
        }
      }
    }
  }
}

TEST(FractionalMaxPool, HasOneImplementationForAllForms) {
  manual_seed(6);
  const Tensor x = randn({2, 6, 6, 6}), samples = rand({1, 2, 3});
  const auto [y, places] = fractional_max_pool3d(x, {2, 2, 2}, {3, 3, 3}, samples);
  const auto options = F::FractionalMaxPool3dFuncOptions(2).output_size(3)._random_samples(samples);
  const auto [same, same_places] = F::fractional_max_pool3d_with_indices(x, options);
  EXPECT_TRUE(same.equal(y));
  EXPECT_TRUE(same_places.equal(places));
  EXPECT_TRUE(x.flatten(1).gather(1, places.flatten(1)).equal(y.flatten(1)));
  EXPECT_EQ(F::fractional_max_pool2d(x, F::FractionalMaxPool2dFuncOptions(2).output_ratio(0.5)).sizes().vec(),
            (std::vector<std::int64_t>{2, 6, 3, 3}));
}

TEST(FractionalMaxPool, RefusesWhatDoesNotFit) {
  const Tensor x = ones({1, 2, 6, 6});
  expect_error([&] { fractional_max_pool2d(x, {2, 2}, {6, 3}, rand({1, 2, 2})); }, "is too large for an input of 6");
  expect_error(
      [&] {
        fractional_max_pool2d(x, {2, 2}, {3, 3}, rand({1, 1, 2}));
      },
      "Expect _random_samples of size [1, 2, 2], got [1, 1, 2]");
  expect_error([&] { fractional_max_pool2d(x[0][0], {2, 2}, {3, 3}, rand({1, 2, 2})); }, "Expected 3D or 4D input");
}

TEST(MaxUnpool, PutsValuesWhereTheyCameFrom) {
  const Tensor x = arange(2 * 4 * 4 * 4, kFloat).view({2, 4, 4, 4});
  const auto [y, places] = max_pool3d_with_indices(x, 2);
  const Tensor back = max_unpool3d(y, places, {4, 4, 4});
  EXPECT_TRUE(back.equal(where(back.eq(0), 0, x)));
  EXPECT_EQ(back.count_nonzero().item<std::int64_t>(), y.numel());
  EXPECT_TRUE(F::max_unpool3d(y, places, F::MaxUnpool3dFuncOptions(2)).equal(back));
  expect_error(
      [&, y = y, places = places] {
        max_unpool3d(y, places, {4, 4, 4}, {2, 0, 2});
      },
      "strides should be greater than zero");
  expect_error(
      [&, y = y, places = places] {
        max_unpool2d(y, places[0], {4, 4});
      },
      "the shape of indices must be the same as input size");
  expect_error(
      [&, y = y, places = places] {
        max_unpool1d(y[0], places[0], {4, 4});
      },
      "exactly 1 elements in output_size");
}

TEST(Losses, AllRefuseAnUnknownReduction) {
  const Tensor x = rand({2, 3}).log_softmax(1), y = rand({2, 3}), row = ones({2}), classes = tensor({0, 2});
  const std::vector<std::pair<std::string, std::function<Tensor(std::int64_t)>>> losses = {
      {"mse_loss", [&](std::int64_t r) { return mse_loss(x, y, r); }},
      {"l1_loss", [&](std::int64_t r) { return l1_loss(x, y, r); }},
      {"kl_div", [&](std::int64_t r) { return kl_div(x, y, r); }},
      {"nll_loss", [&](std::int64_t r) { return nll_loss(x, classes, {}, r); }},
      {"margin_ranking_loss", [&](std::int64_t r) { return margin_ranking_loss(x, y, y, 0, r); }},
      {"hinge_embedding_loss", [&](std::int64_t r) { return hinge_embedding_loss(x, y, 1, r); }},
      {"cosine_embedding_loss", [&](std::int64_t r) { return cosine_embedding_loss(x, y, row, 0, r); }},
      {"soft_margin_loss", [&](std::int64_t r) { return soft_margin_loss(x, y, r); }},
      {"multi_margin_loss", [&](std::int64_t r) { return multi_margin_loss(x, classes, 1, 1, std::nullopt, r); }},
      {"triplet_margin_loss", [&](std::int64_t r) { return triplet_margin_loss(x, y, x, 1, 2, 1e-6, false, r); }},
      {"poisson_nll_loss", [&](std::int64_t r) { return poisson_nll_loss(x, y, true, false, 1e-8, r); }},
      {"ctc_loss", [&](std::int64_t r) { return ctc_loss(x, tensor({1}), IntArrayRef(2), IntArrayRef(1), 0, r); }}};
  for (const auto& [name, loss] : losses) {
    SCOPED_TRACE(name);
    expect_error([&, &loss = loss] { loss(7); }, name + ": unknown reduction 7");
    expect_error([&, &loss = loss] { loss(-1); }, "unknown reduction -1");
    EXPECT_TRUE(loss(0).sum().allclose(loss(2)));
  }
}

TEST(TripletLoss, OfItsOwnDistanceIsThatOfAnyDistance) {
  manual_seed(7);
  const Tensor a = randn({4, 3}), p = randn({4, 3}), n = randn({4, 3});
  for (const bool swap : {false, true}) {
    const Tensor wanted = triplet_margin_loss(a, p, n, 0.5, 2, 1e-6, swap, Reduction::None);
    const auto options = F::TripletMarginWithDistanceLossFuncOptions().margin(0.5).swap(swap).reduction(kNone);
    EXPECT_TRUE(F::triplet_margin_with_distance_loss(a, p, n, options).equal(wanted));
    EXPECT_TRUE(triplet_margin_with_distance_loss(
                    a, p, n, [](const Tensor& x, const Tensor& y) { return pairwise_distance(x, y); }, 0.5, swap, 0)
                    .equal(wanted));
  }
}

}  // namespace
}  // namespace tenon::test
