// Kernels on integers of 8 bits and attention to pages, of drawn operands beside loops. Scales are powers of two and
// integers small, so that nothing is rounded but the result.
#include <tenon/kernel/attributes/paged_attention.h>
#include <tenon/kernel/attributes/quantization.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "drawn.h"

namespace tenon::conformance {
namespace {

using DrawnQuantized = CpuCase;
using DrawnPages = CpuCase;

double power_of_two(Draw& draw, i64 low, i64 high) { return std::ldexp(1, static_cast<int>(draw.number(low, high))); }
Tensor powers_of_two(Draw& draw, const Sizes& sizes) {
  return Tensor(Dtype::kFloat32, sizes).fill([&](i64) { return power_of_two(draw, -3, 0); });
}
double held_by(Dtype dtype, double value) {
  if (dtype == Dtype::kFloat32) return value;
  return std::clamp(value, dtype == Dtype::kInt8 ? -128.0 : 0.0, dtype == Dtype::kInt8 ? 127.0 : 255.0);
}

struct Integers {
  Sizes x, w, y;
  QuantizedConvAttributes a;
};

Integers any_integers(Draw& draw, bool is_planar) {
  constexpr i64 kChannels[] = {1, 1, 2, 3, 4, 5, 8, 12, 13, 16, 17, 24, 25, 33};
  for (;;) {
    Integers c;
    auto& window = c.a.window;
    const bool is_linear = !is_planar && draw.one_in(4);
    window.groups = is_planar || is_linear || !draw.one_in(3) ? 1 : draw.number(2, 5);
    i64 in = draw.any_of(kChannels), out = draw.any_of(kChannels);
    if (is_linear) in = draw.number(1, 140);
    if (window.groups > 1 && draw.one_in(2)) in = out = 1;
    c.x = {draw.number(1, 5), in * window.groups};
    c.w = {out * window.groups, in};
    c.y = {c.x[0], c.w[0]};
    bool fits = true;
    for (int d = 0; d < 2; ++d) {
      const bool is_fixed = is_planar && d == 1;
      i64 size = draw.number(1, is_fixed ? 40 : 11);
      if (is_linear) size = d == 0 ? 1 : draw.number(1, 20);
      const i64 kernel = is_linear ? 1 : draw.number(1, is_planar ? 7 : 4);
      window.stride[d] = is_linear || is_fixed ? 1 : draw.number(1, 2);
      window.padding[d] = is_linear ? 0 : draw.number(0, 3);
      window.dilation[d] = is_linear || is_planar ? 1 : draw.number(1, 2);
      const i64 left = size + 2 * window.padding[d] - window.dilation[d] * (kernel - 1) - 1;
      fits = fits && left >= 0;
      c.x.push_back(size);
      c.w.push_back(kernel);
      c.y.push_back(left / window.stride[d] + 1);
    }
    if (fits && product_of_sizes(c.y) * product_of_sizes(c.w) / c.w[0] <= 120000) return c;
  }
}

void check_integers(Bench& bench, Draw& draw, bool is_planar) {
  Integers c = any_integers(draw, is_planar);
  const Dtype from = is_planar || draw.one_in(2) ? Dtype::kUInt8 : Dtype::kInt8;
  constexpr Dtype kResults[] = {Dtype::kFloat32, Dtype::kFloat32, Dtype::kUInt8, Dtype::kInt8};
  const Dtype to = is_planar ? Dtype::kFloat32 : draw.any_of(kResults);
  c.a.x_scale = power_of_two(draw, -4, 0);
  c.a.x_zero_point = draw.one_in(2) ? 0 : draw.number(0, 9);
  c.a.y_scale = power_of_two(draw, -2, 1);
  c.a.y_zero_point = to == Dtype::kFloat32 || draw.one_in(2) ? 0 : draw.number(1, 20);
  c.a.relu = draw.one_in(2);
  const Layout layout = is_planar ? Layout::kContiguous : Layout::kChannelsLast;
  const Tensor x = draw.fill(Tensor(from, c.x, layout), -9, 9), w = draw.fill(Tensor(Dtype::kInt8, c.w), -9, 9),
               scales = powers_of_two(draw, {c.w[0]}), y(to, c.y, layout);
  const Tensor bias = draw.one_in(2) ? draw.plain(Dtype::kFloat32, {c.w[0]}, -8, 8) : Tensor();
  bench.run(is_planar ? "quantized_conv_planar" : "quantized_conv", {y}, {x, w, scales, bias}, &c.a);
  const i64 out_group = c.w[0] / c.a.window.groups, in = c.w[1];
  for (i64 i = 0; i < y.count(); ++i) {
    const i64 column = i % c.y[3], row = i / c.y[3] % c.y[2], o = i / (c.y[2] * c.y[3]) % c.y[1];
    const i64 first = i / (c.y[1] * c.y[2] * c.y[3]) * c.x[1] + o / out_group * in;
    double sum = 0;
    for (i64 k = 0; k < c.w[2] * c.w[3]; ++k) {
      const i64 h = row * c.a.window.stride[0] - c.a.window.padding[0] + k / c.w[3] * c.a.window.dilation[0];
      const i64 v = column * c.a.window.stride[1] - c.a.window.padding[1] + k % c.w[3] * c.a.window.dilation[1];
      if (h < 0 || h >= c.x[2] || v < 0 || v >= c.x[3]) continue;
      for (i64 channel = 0; channel < in; ++channel)
        sum += (x.real(((first + channel) * c.x[2] + h) * c.x[3] + v) - static_cast<double>(c.a.x_zero_point)) *
               w.real((o * in + channel) * c.w[2] * c.w[3] + k);
    }
    double wanted = sum * c.a.x_scale * scales.real(o) + (bias.defined() ? bias.real(o) : 0);
    if (c.a.relu) wanted = std::max(wanted, 0.0);
    // Of integers a half may be rounded either way.
    const bool is_rounded = to != Dtype::kFloat32;
    if (is_rounded) wanted = held_by(to, wanted / c.a.y_scale + static_cast<double>(c.a.y_zero_point));
    ASSERT_LE(std::fabs(y.real(i) - wanted), is_rounded ? 0.5 : 0.0)
        << to_string(c.x) << " by " << to_string(c.w) << " groups " << c.a.window.groups << " " << name_of(from)
        << " to " << name_of(to) << " at " << i << ": got " << y.real(i) << ", expected " << wanted;
  }
}

TEST_F(DrawnQuantized, ConvolutionsOfEveryShapeAreThoseOfLoops) {
  for_draws(120, [](Bench& bench, Draw& draw) { check_integers(bench, draw, false); });
}

TEST_F(DrawnQuantized, ConvolutionsOfPlanesAreThoseOfLoops) {
  for_draws(90, [](Bench& bench, Draw& draw) {
    if (bench.has("quantized_conv_planar")) check_integers(bench, draw, true);
  });
}

TEST_F(DrawnQuantized, NumbersBecomeTheNearestIntegersOfEveryLayoutAndBack) {
  for_draws(90, [](Bench& bench, Draw& draw) {
    Sizes sizes;
    do {
      sizes = draw.sizes(static_cast<int>(draw.number(1, 4)), draw.one_in(12) ? 40000 : 2000);
    } while (product_of_sizes(sizes) == 0);
    const Dtype dtype = draw.one_in(2) ? Dtype::kUInt8 : Dtype::kInt8;
    const Layout layout = sizes.size() == 4 && draw.one_in(2) ? Layout::kChannelsLast : Layout::kContiguous;
    QuantizeAttributes a{.scale = power_of_two(draw, -3, 1), .zero_point = draw.number(-5, 20)};
    Tensor scales, zeros;
    if (layout == Layout::kContiguous && draw.one_in(2)) {
      a.axis = static_cast<std::int32_t>(draw.number(0, static_cast<i64>(sizes.size()) - 1));
      const i64 count = sizes[static_cast<std::size_t>(a.axis)];
      scales = powers_of_two(draw, {count});
      zeros = draw.plain(Dtype::kInt32, {count}, -5, 20);
    }
    const Tensor x =
        Tensor(Dtype::kFloat32, sizes).fill([&](i64) { return static_cast<double>(draw.number(-600, 600)) / 8; });
    const Tensor y(dtype, sizes, layout);
    bench.run("quantize", {y}, {x, scales, zeros}, &a);
    const auto channel = [&](i64 i) { return coordinates(i, sizes)[static_cast<std::size_t>(a.axis)]; };
    const auto scale = [&](i64 i) { return scales.defined() ? scales.real(channel(i)) : a.scale; };
    const auto zero = [&](i64 i) {
      return scales.defined() ? zeros.real(channel(i)) : static_cast<double>(a.zero_point);
    };
    Wanted wanted(dtype, sizes);
    for (i64 i = 0; i < y.count(); ++i) wanted.set(i, held_by(dtype, std::nearbyint(x.real(i) / scale(i)) + zero(i)));
    wanted.expect(y, "quantize");
    if (layout != Layout::kContiguous) return;
    const Tensor back(Dtype::kFloat32, sizes);
    bench.run("dequantize", {back}, {y, scales, zeros}, &a);
    Wanted numbers(Dtype::kFloat32, sizes);
    for (i64 i = 0; i < y.count(); ++i) numbers.set(i, scale(i) * (y.real(i) - zero(i)));
    numbers.expect(back, "dequantize");
  });
}

TEST_F(DrawnQuantized, WeightsAloneOfEveryGroupAreMultiplied) {
  for_draws(60, [](Bench& bench, Draw& draw) {
    const int bits = draw.one_in(2) ? 8 : 4;
    const i64 rows = draw.number(0, 5), out = draw.number(1, 40), groups = draw.number(1, 4);
    const i64 group = draw.number(1, 20) * (bits == 4 && groups > 1 ? 2 : 1), in = groups * group;
    const Tensor x = draw.plain(Dtype::kFloat32, {rows, in}), y(Dtype::kFloat32, {rows, out}),
                 scales = powers_of_two(draw, {out, groups});
    const i64 bytes = bits == 8 ? in : (in + 1) / 2;
    Tensor w(bits == 8 ? Dtype::kInt8 : Dtype::kUInt8, {out, bytes});
    draw.fill(w, bits == 8 ? -127 : 0, bits == 8 ? 127 : 255);
    const Tensor bias = draw.one_in(2) ? draw.plain(Dtype::kFloat32, {out}) : Tensor();
    const WeightOnlyAttributes a{.bits = bits, .group = groups == 1 && draw.one_in(2) ? 0 : group};
    bench.run("weight_only_linear", {y}, {x, w, scales, bias}, &a);
    Wanted wanted(Dtype::kFloat32, {rows, out});
    for (i64 i = 0; i < y.count(); ++i) {
      double sum = bias.defined() ? bias.real(i % out) : 0;
      for (i64 k = 0; k < in; ++k) {
        const i64 byte = w.integer(i % out * bytes + (bits == 8 ? k : k / 2));
        const i64 weight = bits == 8 ? byte : (k % 2 == 0 ? byte & 15 : byte >> 4) - 8;
        sum += x.real(i / out * in + k) * static_cast<double>(weight) * scales.real(i % out * groups + k / group);
      }
      wanted.set(i, sum);
    }
    wanted.expect(y, "weight_only_linear");
  });
}

// Heads that share keys, widths around those of vectors, keys that fill no four of them, pages that are not full.
TEST_F(DrawnPages, AreReadInTheirOrderUpToEachQuery) {
  for_draws(60, [](Bench& bench, Draw& draw) {
    const i64 count = draw.one_in(2) ? 1 : draw.number(2, draw.one_in(6) ? 70 : 9), length = count + draw.number(0, 40);
    const i64 shared = draw.number(1, 3), group = draw.number(1, 10), heads = shared * group;
    constexpr i64 kDepths[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17};
    const i64 depth = draw.any_of(kDepths), page = draw.number(1, 20);
    const Dtype dtype = draw.any_of(kFloats);
    const auto operand = [&](const Sizes& sizes) {
      return Tensor(dtype, sizes).fill([&](i64) { return static_cast<double>(draw.number(-4, 4)) / 4; });
    };
    std::vector<Tensor> inputs{operand({count, heads, depth})};
    for (i64 begin = 0; begin < length; begin += page) inputs.push_back(operand({2, page, shared, depth}));
    const Tensor y(dtype, {count, heads, depth});
    const PagedAttentionAttributes a{.scale = 0.5, .length = length};
    bench.run("paged_attention", {y}, inputs, &a);
    const double e = (dtype == Dtype::kFloat64 ? 1e4 : 64) * epsilon_of(dtype);
    for (i64 query = 0; query < count; ++query) {
      for (i64 head = 0; head < heads; ++head) {
        const auto element = [&](i64 which, i64 position, i64 at) {
          const Tensor& of = inputs[static_cast<std::size_t>(1 + position / page)];
          return of.real(((which * page + position % page) * shared + head / group) * depth + at);
        };
        Doubles values(static_cast<std::size_t>(depth));
        double sum = 0;
        for (i64 j = 0; j <= length - count + query; ++j) {
          double score = 0;
          for (i64 d = 0; d < depth; ++d)
            score += inputs[0].real((query * heads + head) * depth + d) * element(0, j, d);
          const double weight = std::exp(0.5 * score);
          sum += weight;
          for (i64 d = 0; d < depth; ++d) values[static_cast<std::size_t>(d)] += weight * element(1, j, d);
        }
        for (i64 d = 0; d < depth; ++d) {
          const double wanted = values[static_cast<std::size_t>(d)] / sum;
          ASSERT_NEAR(y.real((query * heads + head) * depth + d), wanted, e * (1 + std::fabs(wanted)))
              << name_of(dtype) << ", " << count << " of " << length << ", " << heads << " heads on " << shared
              << ", depth " << depth << ", pages of " << page << ": query " << query << " head " << head;
        }
      }
    }
  });
}

}  // namespace
}  // namespace tenon::conformance
