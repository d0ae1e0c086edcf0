// Convolutions of float32 with windows of one element, which the cpu backend computes as products of pictures, held to
// loops bit by bit.
#include <tenon/kernel/attributes/linear.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "whole_numbers.h"

namespace tenon::conformance {
namespace {

using ConvolutionProducts = CpuCase;

/// Windows of one element over up to three spatial dimensions.
struct Pointwise {
  i64 batch, in, out;
  Sizes input, stride;

  Sizes output() const {
    Sizes all;
    for (std::size_t d = 0; d < input.size(); ++d) all.push_back((input[d] - 1) / stride[d] + 1);
    return all;
  }
  Sizes sizes(i64 channels, const Sizes& plane) const {
    Sizes all{batch, channels};
    all.insert(all.end(), plane.begin(), plane.end());
    return all;
  }
  Sizes weight() const {
    Sizes all{out, in};
    all.resize(2 + input.size(), 1);
    return all;
  }
  ConvAttributes attributes() const {
    ConvAttributes a{.spatial = static_cast<std::int32_t>(input.size())};
    for (std::size_t d = 0; d < input.size(); ++d) a.stride[d] = stride[d];
    return a;
  }
  /// The positions of the input's plane that are read, one after the other.
  Sizes places() const {
    Sizes all;
    for (i64 i = 0; i < product_of(output()); ++i) {
      const Sizes at = coordinates(i, output());
      i64 place = 0;
      for (std::size_t d = 0; d < input.size(); ++d) place = place * input[d] + at[d] * stride[d];
      all.push_back(place);
    }
    return all;
  }
};

std::vector<Pointwise> pointwise_cases() {
  return {{1, 1, 1, {1}, {1}},
          {2, 3, 5, {7}, {3}},
          {1, 9, 31, {191}, {1}},
          {5, 9, 33, {192}, {1}},
          {4, 33, 64, {16, 12}, {1, 1}},
          {7, 20, 65, {15, 13}, {1, 1}},
          {5, 40, 70, {9, 7}, {1, 1}},
          {9, 16, 96, {5, 6}, {1, 1}},
          {3, 17, 32, {29, 27}, {2, 2}},
          {10, 8, 97, {9, 8}, {2, 3}},
          {1, 64, 100, {14, 14}, {1, 1}},
          {3, 6, 40, {5, 4, 7}, {2, 1, 3}},
          {2, 5, 34, {3, 9, 10}, {1, 2, 1}},
          {6, 24, 48, {1, 1}, {1, 1}},
          {70, 10, 64, {2, 3}, {1, 1}}};
}

TEST_F(ConvolutionProducts, OfWindowsOfOneElementAreThoseOfLoops) {
  Bench& bench = *benches().front();
  bench.enter();
  for (const Pointwise& p : pointwise_cases()) {
    const Sizes x_sizes = p.sizes(p.in, p.input), y_sizes = p.sizes(p.out, p.output()), places = p.places();
    const i64 plane = product_of(p.output()), in_plane = product_of(p.input);
    const Numbers x = whole_numbers(x_sizes, 3, 3), w = whole_numbers({p.out, p.in}, 5, 3),
                  dy = whole_numbers(y_sizes, 7, 3), bias = whole_numbers({p.out}, 11, 3);
    Numbers y(dy.size()), dx(x.size()), dw(w.size());
    for (i64 n = 0; n < p.batch; ++n) {
      for (i64 o = 0; o < p.out; ++o) {
        for (i64 c = 0; c < p.in; ++c) {
          const float weight = w[static_cast<std::size_t>(o * p.in + c)];
          for (i64 k = 0; k < plane; ++k) {
            const auto to = static_cast<std::size_t>((n * p.out + o) * plane + k),
                       from = static_cast<std::size_t>((n * p.in + c) * in_plane + places[static_cast<std::size_t>(k)]);
            y[to] += weight * x[from];
            dx[from] += weight * dy[to];
            dw[static_cast<std::size_t>(o * p.in + c)] += dy[to] * x[from];
          }
        }
      }
    }
    const ConvAttributes a = p.attributes();
    for (const int threads : {1, 2, 3}) {
      SCOPED_TRACE(::testing::Message() << to_string(x_sizes) << " to " << p.out << ", " << threads << " threads");
      bench.driver().set_threads(threads);
      const Tensor tx = tensor_of(x_sizes, x), tw = tensor_of(p.weight(), w), tdy = tensor_of(y_sizes, dy);
      Tensor ty(Dtype::kFloat32, y_sizes), with(Dtype::kFloat32, y_sizes), tdx(Dtype::kFloat32, x_sizes),
          tdw(Dtype::kFloat32, p.weight());
      const i64 room = bench.workspace_of("conv", {ty}, {tx, tw, Tensor()}, &a);
      bench.run("conv", {with}, {tx, tw, tensor_of({p.out}, bias)}, &a);
      const i64 room_back = bench.workspace_of("conv_backward_input", {tdx}, {tdy, tw}, &a);
      const i64 room_of_weight = bench.workspace_of("conv_backward_weight", {tdw}, {tdy, tx}, &a);
      const auto same_as = [](const Numbers& wanted) {
        return [&wanted](i64 i) { return wanted[static_cast<std::size_t>(i)]; };
      };
      EXPECT_EQ(first_difference(ty, same_as(y)), -1);
      EXPECT_EQ(first_difference(with,
                                 [&](i64 i) {
                                   return y[static_cast<std::size_t>(i)] +
                                          bias[static_cast<std::size_t>(i / plane % p.out)];
                                 }),
                -1);
      EXPECT_EQ(first_difference(tdx, same_as(dx)), -1);
      EXPECT_EQ(first_difference(tdw, same_as(dw)), -1);

      // Planes below three quarters of 256 columns lie side by side, in room for each thread; so do those of which a
      // stride reads some. Less than 200,000 products are one thread's.
      const i64 used = p.batch * plane * p.out * p.in < 200'000 ? 1 : threads;
      const i64 each = (p.batch + used - 1) / used;
      const i64 beside = plane >= 192 ? 1 : std::min(each, (256 + plane - 1) / plane);
      const i64 parts = std::min((p.batch + beside - 1) / beside, used);
      const i64 gathered = (beside > 1 || plane != in_plane ? p.in : 0) + (beside > 1 ? p.out : 0);
      const i64 of_part = (gathered * beside * plane + 15) / 16 * 16 * 4;
      EXPECT_EQ(room, parts * of_part);
      EXPECT_EQ(room_back, parts * of_part);
      // The gradient of the weights is divided by its rows, 32 at least.
      EXPECT_EQ(room_of_weight, std::clamp<i64>(p.out / 32, 1, parts == 1 ? 1 : threads) * of_part);
    }
  }
}

}  // namespace
}  // namespace tenon::conformance
