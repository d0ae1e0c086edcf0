// Operators whose results hold elements of their input: values, shared memory and gradients, held against where each
// element comes from.
#pragma once

#include <tenon/core/error.h>
#include <tenon/ops/ops.h>

#include "draws.h"

namespace tenon::test {

/// The place in the input of an element of the result; nothing where the result has a 0 of its own.
using Source = std::function<std::optional<Sizes>(const Sizes&)>;
using Rearrangement = std::function<Tensor(const Tensor&)>;

enum class Kind { kView, kCopy, kEither };

/// The sizes, values, sharing and gradients of function(x), whose elements come from `source`.
inline void expect_selection(Draws& draws, const Array& x, const Sizes& out, const Rearrangement& function,
                             const Source& source, Kind kind = Kind::kEither) {
  const Tensor input = draws.laid_out(x).set_requires_grad(true);
  const Tensor weight = draws.tensor(out);
  const Array weights(weight);
  Array want(out), gradient(x.sizes);
  for_each_place(out, [&](const Sizes& at) {
    const std::optional<Sizes> from = source(at);
    if (!from) return;
    want[at] = x[*from];
    gradient[*from] += weights[at];
  });
  const Tensor got = function(input);
  expect_near(got, want);
  if (::testing::Test::HasFatalFailure() || ::testing::Test::HasFailure()) return;
  (got * weight).sum().backward();
  expect_near(input.grad(), gradient);
  if (kind == Kind::kEither || product(out) == 0) return;
  EXPECT_EQ(got.is_alias_of(input), kind == Kind::kView);
  EXPECT_EQ(got.is_view(), kind == Kind::kView);
}

inline std::int64_t rank_of(const Sizes& sizes) { return static_cast<std::int64_t>(sizes.size()); }
inline std::size_t index_of(std::int64_t number) { return static_cast<std::size_t>(number); }

/// Some dimension, named from either end.
struct Dim {
  std::size_t at;
  std::int64_t given;
};
inline Dim draw_dim(Draws& draws, std::int64_t rank) {
  const std::int64_t at = draws.integer(0, rank - 1);
  return {index_of(at), draws.one_in(2) ? at : at - rank};
}

inline Array draw_array(Draws& draws, std::int64_t least_rank = 1, std::int64_t least_size = 1) {
  return Array(draws.tensor(draws.sizes(draws.integer(least_rank, 4), least_size, 5)));
}

}  // namespace tenon::test
