// A loss under each reduction, for the tests by generation.
#pragma once

#include <tenon/core/error.h>
#include <tenon/ops/nn/margin_loss.h>

#include "differences.h"

namespace tenon::test {

using Loss = std::function<Tensor(std::int64_t reduction)>;

inline constexpr std::int64_t kNoReduction = 0, kMeanOf = 1, kSumOf = 2;

inline Array number(double value) { return Array(Sizes{}, value); }

/// The loss under each reduction: the terms, their sum, and their sum divided by `counted`.
inline void expect_reduced(const Loss& loss, const Array& terms, double counted, double tolerance = 1e-9) {
  double sum = 0;
  for (const double term : terms.values) sum += term;
  expect_near(loss(kNoReduction), terms, tolerance);
  expect_near(loss(kSumOf), number(sum), tolerance);
  expect_near(loss(kMeanOf), number(sum / counted), tolerance);
}

inline void expect_reduced(const Loss& loss, const Array& terms) {
  expect_reduced(loss, terms, static_cast<double>(terms.values.size()));
}

/// (N, C) or (C), no two elements a multiple of 1/64 apart.
inline Array draw_margin_rows(Draws& draws) {
  Array x(draws.tensor(draws.sizes(draws.integer(1, 2), 1, 5)));
  for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] += 0.00037 * static_cast<double>(i + 1);
  return x;
}

}  // namespace tenon::test
