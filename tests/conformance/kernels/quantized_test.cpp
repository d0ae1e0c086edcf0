// Kernels on integers of 8 bits against loops in double.
#include <tenon/kernel/attributes/quantization.h>
#include <tenon/kernel/dynamic_map.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness.h"

namespace tenon::conformance {
namespace {

double low_of(Dtype dtype) { return dtype == Dtype::kInt8 ? -128 : 0; }
double high_of(Dtype dtype) { return dtype == Dtype::kInt8 ? 127 : 255; }

double rounded(double steps, double zero_point, Dtype dtype) {
  return std::clamp(std::nearbyint(steps) + zero_point, low_of(dtype), high_of(dtype));
}

constexpr double kScale = 0.125;  // a power of two: no product is rounded on the way to a half

TEST(Quantize, RoundsHalvesToEvenAndHoldsWhatIsBeyond) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : {Dtype::kUInt8, Dtype::kInt8}) {
      for (const i64 count : {0, 1, 15, 16, 67, 40000}) {
        Random random(61);
        Tensor x(Dtype::kFloat32, {count});
        x.fill([&](i64 i) { return i == 3 ? 1e30 : i == 5 ? -1e30 : random.integer(-700, 700) * kScale / 2; });
        Tensor y(dtype, {count});
        const QuantizeAttributes a{.scale = kScale, .zero_point = dtype == Dtype::kInt8 ? -7 : 131};
        bench.run("quantize", {y}, {x, Tensor(), Tensor()}, &a);
        expect_equal(
            y,
            [&](i64 i) {
              return static_cast<i64>(rounded(x.real(i) / kScale, static_cast<double>(a.zero_point), dtype));
            },
            "quantize");
        Tensor back(Dtype::kFloat32, {count});
        bench.run("dequantize", {back}, {y, Tensor(), Tensor()}, &a);
        expect_near(
            back, [&](i64 i) { return kScale * static_cast<double>(y.integer(i) - a.zero_point); }, 0, "dequantize");
      }
    }
  });
}

TEST(Quantize, TurnsPicturesToChannelsLast) {
  for_each_bench([](Bench& bench) {
    Random random(67);
    for (const Sizes& sizes : {Sizes{2, 3, 5, 7}, Sizes{1, 40, 9, 11}, Sizes{3, 1, 4, 4}}) {
      const Tensor x = random_tensor(Dtype::kFloat32, sizes, Layout::kContiguous, random);
      Tensor y(Dtype::kUInt8, sizes, Layout::kChannelsLast);
      const QuantizeAttributes a{.scale = kScale, .zero_point = 40};
      bench.run("quantize", {y}, {x, Tensor(), Tensor()}, &a);
      expect_equal(
          y, [&](i64 i) { return static_cast<i64>(rounded(x.real(i) / kScale, 40, Dtype::kUInt8)); }, "quantize");
    }
  });
}

TEST(Quantize, HasAScaleForEachIndexOfADimension) {
  for_each_bench([](Bench& bench) {
    Random random(71);
    const Sizes sizes{4, 5, 6};
    for (const int axis : {0, 1, 2}) {
      const i64 channels = sizes[static_cast<std::size_t>(axis)];
      const Tensor x = random_tensor(Dtype::kFloat32, sizes, Layout::kContiguous, random);
      Tensor scales(Dtype::kFloat32, {channels}), zeros(Dtype::kInt32, {channels}), y(Dtype::kInt8, sizes);
      scales.fill([](i64 i) { return std::ldexp(1, static_cast<int>(i) - 7); });
      zeros.fill([](i64 i) { return static_cast<double>(2 * i - 3); });
      const QuantizeAttributes a{.axis = axis};
      bench.run("quantize", {y}, {x, scales, zeros}, &a);
      const auto channel = [&](i64 i) { return coordinates(i, sizes)[static_cast<std::size_t>(axis)]; };
      expect_equal(
          y,
          [&](i64 i) {
            const i64 c = channel(i);
            return static_cast<i64>(rounded(x.real(i) / scales.real(c), zeros.real(c), Dtype::kInt8));
          },
          "quantize");
      Tensor back(Dtype::kFloat32, sizes);
      bench.run("dequantize", {back}, {y, scales, zeros}, &a);
      expect_near(
          back, [&](i64 i) { return scales.real(channel(i)) * (y.real(i) - zeros.real(channel(i))); }, 0, "dequantize");
    }
  });
}

struct QuantizedCase {
  const char* name;
  i64 batch, in, out, height, width, kernel, stride, padding, dilation, groups;
};

/// What the kernel is to give before it is rounded.
std::vector<double> conv_by_loops(const Tensor& x, const Tensor& w, const Tensor& scales, const Tensor& bias,
                                  const Tensor& y, const QuantizedConvAttributes& a) {
  const i64 in = w.size(1), height = x.size(2), width = x.size(3), window = w.size(2) * w.size(3);
  const i64 out_group = y.size(1) / a.window.groups;
  std::vector<double> pixels, weights, all;
  for (i64 i = 0; i < x.count(); ++i) pixels.push_back(x.real(i) - static_cast<double>(a.x_zero_point));
  for (i64 i = 0; i < w.count(); ++i) weights.push_back(w.real(i));
  for (i64 i = 0; i < y.count(); ++i) {
    const i64 column = i % y.size(3), row = i / y.size(3) % y.size(2), o = i / (y.size(3) * y.size(2)) % y.size(1);
    const i64 first = (i / (y.size(3) * y.size(2) * y.size(1))) * x.size(1) + o / out_group * in;
    double sum = 0;
    for (i64 k = 0; k < window; ++k) {
      const i64 h = row * a.window.stride[0] - a.window.padding[0] + k / w.size(3) * a.window.dilation[0];
      const i64 v = column * a.window.stride[1] - a.window.padding[1] + k % w.size(3) * a.window.dilation[1];
      if (h < 0 || h >= height || v < 0 || v >= width) continue;
      for (i64 c = 0; c < in; ++c)
        sum += pixels[static_cast<std::size_t>(((first + c) * height + h) * width + v)] *
               weights[static_cast<std::size_t>((o * in + c) * window + k)];
    }
    const double value = sum * a.x_scale * scales.real(o) + (bias.defined() ? bias.real(o) : 0);
    all.push_back(a.relu ? std::max(value, 0.0) : value);
  }
  return all;
}

/// `planar`: all contiguous, by the kernel for that, in windows that step by one column.
void check_conv(Bench& bench, const QuantizedCase& c, Dtype x_dtype, Dtype y_dtype, bool plain, bool planar = false) {
  SCOPED_TRACE(testing::Message() << c.name << " " << name_of(x_dtype) << " " << name_of(y_dtype));
  Random random(73);
  const auto size = [&](i64 whole, i64 stride) {
    return (whole + 2 * c.padding - c.dilation * (c.kernel - 1) - 1) / stride + 1;
  };
  const i64 columns = planar ? 1 : c.stride;
  const Layout layout = planar ? Layout::kContiguous : Layout::kChannelsLast;
  Tensor x(x_dtype, {c.batch, c.in, c.height, c.width}, layout);
  x.fill([&](i64) { return static_cast<double>(random.integer(static_cast<i64>(low_of(x_dtype)), 128)); });
  Tensor w(Dtype::kInt8, {c.out, c.in / c.groups, c.kernel, c.kernel});
  w.fill([&](i64) { return static_cast<double>(random.integer(-127, 128)); });
  Tensor scales(Dtype::kFloat32, {c.out}), bias;
  scales.fill([&](i64) { return random.between(0.001, 0.002); });
  if (!plain) bias = random_tensor(Dtype::kFloat32, {c.out}, Layout::kContiguous, random);
  Tensor y(y_dtype, {c.batch, c.out, size(c.height, c.stride), size(c.width, columns)}, layout);
  QuantizedConvAttributes a{.x_scale = 0.01, .x_zero_point = plain ? 0 : 37, .y_scale = 0.05, .relu = !plain};
  a.y_zero_point = plain || y_dtype == Dtype::kFloat32 ? 0 : 21;
  a.window.groups = c.groups;
  for (int d = 0; d < 2; ++d) {
    a.window.stride[d] = d == 1 ? columns : c.stride;
    a.window.padding[d] = c.padding;
    a.window.dilation[d] = c.dilation;
  }
  bench.run(planar ? "quantized_conv_planar" : "quantized_conv", {y}, {x, w, scales, bias}, &a);
  const std::vector<double> wanted = conv_by_loops(x, w, scales, bias, y, a);
  for (i64 i = 0; i < y.count(); ++i) {
    const double want = wanted[static_cast<std::size_t>(i)];
    if (y_dtype == Dtype::kFloat32) {
      ASSERT_NEAR(y.real(i), want, 1e-5 * (1 + std::fabs(want))) << "at " << i;
      continue;
    }
    // Half a step may be rounded either way.
    const double steps = want / a.y_scale,
                 held = std::clamp(steps + static_cast<double>(a.y_zero_point), low_of(y_dtype), high_of(y_dtype));
    ASSERT_LE(std::fabs(y.real(i) - held), 0.5 + 1e-3) << "at " << i;
  }
}

TEST(QuantizedConv, MatchesLoops) {
  for_each_bench([](Bench& bench) {
    for (const QuantizedCase& c : {QuantizedCase{"rows", 1, 33, 17, 1, 70, 1, 1, 0, 1, 1},
                                   QuantizedCase{"few rows", 1, 130, 7, 1, 6, 1, 1, 0, 1, 1},
                                   QuantizedCase{"few rows of whole chunks", 1, 560, 9, 1, 5, 1, 1, 0, 1, 1},
                                   QuantizedCase{"one row", 1, 20, 10, 1, 1, 1, 1, 0, 1, 1},
                                   QuantizedCase{"many rows", 1, 20, 24, 1, 900, 1, 1, 0, 1, 1},
                                   QuantizedCase{"one channel", 2, 1, 6, 9, 8, 5, 1, 2, 1, 1},
                                   QuantizedCase{"three channels", 3, 3, 12, 11, 10, 3, 2, 1, 1, 1},
                                   QuantizedCase{"many pictures", 7, 32, 24, 9, 9, 3, 1, 1, 1, 1},
                                   QuantizedCase{"stride of one element", 2, 16, 8, 9, 9, 1, 2, 0, 1, 1},
                                   QuantizedCase{"groups", 2, 12, 8, 7, 7, 3, 1, 1, 1, 4},
                                   QuantizedCase{"by channel", 2, 16, 16, 8, 8, 3, 1, 1, 1, 16},
                                   QuantizedCase{"dilated", 1, 8, 8, 12, 12, 3, 1, 2, 2, 1},
                                   QuantizedCase{"padding alone", 1, 5, 4, 1, 1, 3, 1, 1, 1, 1}}) {
      for (const Dtype x_dtype : {Dtype::kUInt8, Dtype::kInt8}) {
        for (const Dtype y_dtype : {Dtype::kFloat32, Dtype::kUInt8, Dtype::kInt8}) {
          check_conv(bench, c, x_dtype, y_dtype, false);
          check_conv(bench, c, x_dtype, y_dtype, true);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
}

// No channels, and no columns: the zero point of x is in no sum, as padding is in none.
TEST(QuantizedConv, OfPicturesWithoutAnElementIsTheBias) {
  for_each_bench([](Bench& bench) {
    struct Case {
      Sizes x, w, y;
      i64 padding;
    };
    for (const Case& c :
         {Case{{2, 0, 3, 5}, {4, 0, 1, 1}, {2, 4, 3, 5}, 0}, Case{{2, 0, 3, 5}, {4, 0, 3, 3}, {2, 4, 3, 5}, 1},
          Case{{2, 3, 3, 0}, {4, 3, 3, 3}, {2, 4, 5, 2}, 2}, Case{{2, 8, 0, 3}, {4, 8, 3, 3}, {2, 4, 2, 5}, 2}}) {
      for (const Dtype dtype : {Dtype::kFloat32, Dtype::kUInt8, Dtype::kInt8}) {
        for (const bool relu : {false, true}) {
          SCOPED_TRACE(testing::Message() << to_string(c.x) << " to " << name_of(dtype) << (relu ? ", relu" : ""));
          const Tensor x(Dtype::kUInt8, c.x, Layout::kChannelsLast), y(dtype, c.y, Layout::kChannelsLast);
          Tensor w(Dtype::kInt8, c.w), scales(Dtype::kFloat32, {4}), bias(Dtype::kFloat32, {4});
          w.fill([](i64 i) { return static_cast<double>(i % 3 + 1); });
          scales.fill([](i64) { return 1; });
          bias.fill([](i64 i) { return i == 3 ? 400 : i == 2 ? -400 : 3.25 * static_cast<double>(1 - 2 * (i % 2)); });
          QuantizedConvAttributes a{.x_scale = 0.5, .x_zero_point = 7, .y_scale = 0.5, .relu = relu};
          a.y_zero_point = dtype == Dtype::kFloat32 ? 0 : 5;
          a.window.padding[0] = a.window.padding[1] = c.padding;
          bench.run("quantized_conv", {y}, {x, w, scales, bias}, &a);
          const i64 plane = c.y[2] * c.y[3];
          expect_near(
              y,
              [&](i64 i) {
                const double added = bias.real(i / plane % 4), sum = relu ? std::max(added, 0.0) : added;
                return dtype == Dtype::kFloat32 ? sum : rounded(sum / a.y_scale, 5, dtype);
              },
              0, "y");
        }
      }
    }
  });
}

TEST(QuantizedConvPlanar, MatchesLoops) {
  for_each_bench([](Bench& bench) {
    if (!bench.has("quantized_conv_planar")) return;  // the cpu has it only where its processor is faster so
    for (const QuantizedCase& c : {QuantizedCase{"lenet's first", 3, 1, 12, 28, 28, 5, 1, 2, 1, 1},
                                   QuantizedCase{"lenet's second", 2, 12, 24, 14, 14, 5, 1, 0, 1, 1},
                                   QuantizedCase{"colours", 3, 3, 13, 11, 37, 3, 2, 1, 1, 1},
                                   QuantizedCase{"two channels, one output", 1, 2, 1, 6, 5, 3, 1, 2, 1, 1},
                                   QuantizedCase{"sixteen channels", 40, 16, 33, 9, 9, 3, 1, 1, 1, 1},
                                   QuantizedCase{"a window of one", 2, 7, 5, 4, 40, 1, 1, 0, 1, 1},
                                   QuantizedCase{"one channel, seven columns", 1, 1, 9, 9, 70, 7, 3, 3, 1, 1},
                                   QuantizedCase{"padding alone", 1, 5, 4, 1, 1, 3, 1, 1, 1, 1}}) {
      check_conv(bench, c, Dtype::kUInt8, Dtype::kFloat32, false, /*planar=*/true);
      check_conv(bench, c, Dtype::kUInt8, Dtype::kFloat32, true, /*planar=*/true);
      if (testing::Test::HasFatalFailure()) return;
    }
  });
}

// Values of many magnitudes: whole blocks and a shorter one, zeros alone, and what is not finite.
TEST(Blocks, HoldTheNearestNumberOfTheMapTimesTheirLargest) {
  for_each_bench([](Bench& bench) {
    constexpr i64 kCount = 1500, kBlocks = 6;
    for (const bool is_signed : {true, false}) {
      Random random(83);
      Tensor x(Dtype::kFloat32, {kCount}), codes(Dtype::kUInt8, {kCount}), scales(Dtype::kFloat32, {kBlocks}),
          back(Dtype::kFloat32, {kCount});
      x.fill([&](i64 i) {
        if (i / kBlockValues == 1) return 0.0;
        if (i == 4 * kBlockValues + 7) return static_cast<double>(std::numeric_limits<float>::infinity());
        const double value = std::exp(random.between(-12, 3));
        return is_signed && random.integer(0, 2) == 0 ? -value : value;
      });
      const BlocksAttributes a{.is_signed = is_signed};
      bench.run("pack_blocks", {codes, scales}, {x}, &a);
      bench.run("unpack_blocks", {back}, {codes, scales}, &a);
      const auto map = dynamic_map(is_signed), thresholds = dynamic_thresholds(is_signed);
      for (i64 block = 0; block < kBlocks; ++block) {
        const i64 first = block * kBlockValues, last = std::min(kCount, first + kBlockValues);
        if (block == 4) {
          EXPECT_TRUE(std::isnan(scales.real(block)));
          for (i64 i = first; i < last; ++i) {
            ASSERT_EQ(codes.integer(i), 0) << i;
            ASSERT_TRUE(std::isnan(back.real(i))) << i;
          }
          continue;
        }
        double largest = 0;
        for (i64 i = first; i < last; ++i) largest = std::max(largest, std::fabs(x.real(i)));
        ASSERT_EQ(scales.real(block), largest);
        for (i64 i = first; i < last; ++i) {
          const float y = static_cast<float>(x.real(i)) / (largest == 0 ? 1.0F : static_cast<float>(largest));
          const auto next = std::upper_bound(thresholds.begin(), thresholds.end(), y);
          const auto code = static_cast<std::size_t>(next - thresholds.begin() - 1);
          ASSERT_EQ(codes.integer(i), static_cast<i64>(code)) << i;
          ASSERT_EQ(static_cast<float>(back.real(i)), map[code] * static_cast<float>(largest)) << i;
        }
      }
    }
  });
}

TEST(WeightOnlyLinear, MatchesLoopsForEightAndFourBits) {
  for_each_bench([](Bench& bench) {
    struct Case {
      i64 rows, in, out, group;
    };
    for (const Case c :
         {Case{1, 64, 10, 64}, Case{5, 96, 33, 32}, Case{2, 4096, 70, 128}, Case{1, 2, 1, 2}, Case{3, 1, 2, 1},
          Case{4, 33, 5, 33}, Case{66, 96, 70, 32}}) {  // an odd row's last byte has one weight of 4 bits
      for (const int bits : {8, 4}) {
        for (const bool with_bias : {false, true}) {
          Random random(79);
          const Tensor x = random_tensor(Dtype::kFloat32, {c.rows, c.in}, Layout::kContiguous, random);
          Tensor w(bits == 8 ? Dtype::kInt8 : Dtype::kUInt8, {c.out, bits == 8 ? c.in : (c.in + 1) / 2});
          w.fill(
              [&](i64) { return static_cast<double>(bits == 8 ? random.integer(-127, 128) : random.integer(0, 256)); });
          Tensor scales(Dtype::kFloat32, {c.out, c.in / c.group}), y(Dtype::kFloat32, {c.rows, c.out}), bias;
          scales.fill([&](i64) { return random.between(0.01, 0.02); });
          if (with_bias) bias = random_tensor(Dtype::kFloat32, {c.out}, Layout::kContiguous, random);
          const WeightOnlyAttributes a{.bits = bits, .group = c.group};
          bench.run("weight_only_linear", {y}, {x, w, scales, bias}, &a);
          const auto weight = [&](i64 row, i64 k) {
            const double scale = scales.real(row * (c.in / c.group) + k / c.group);
            if (bits == 8) return w.real(row * c.in + k) * scale;
            const i64 byte = w.integer(row * ((c.in + 1) / 2) + k / 2);
            return static_cast<double>((k % 2 == 0 ? byte & 15 : byte >> 4) - 8) * scale;
          };
          for (i64 i = 0; i < y.count(); ++i) {
            double want = with_bias ? bias.real(i % c.out) : 0, terms = 1;
            for (i64 k = 0; k < c.in; ++k) {
              const double term = x.real(i / c.out * c.in + k) * weight(i % c.out, k);
              want += term;
              terms += std::fabs(term);
            }
            ASSERT_NEAR(y.real(i), want, 1e-6 * terms) << bits << " bits, at " << i;
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace tenon::conformance
