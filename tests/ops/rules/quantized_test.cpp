// Tensors and layers on integers of 8 bits: held against loops in double, with a device's kernels and without them, and
// what is said of operands that do not fit.
#include "../../support/message_of.h"

#include <tenon/autograd/autograd.h>
#include <tenon/dispatch/dispatch.h>
#include <tenon/ops/all_ops.h>
#include <tenon/ops/quantized/products.h>
#include <tenon/ops/quantized/quantize.h>
#include <tenon/tensor/literal.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

namespace q = quantized;

/// While it lives, the host has no kernels of these operators.
class WithoutKernels {
 public:
  explicit WithoutKernels(std::vector<const char*> ops) : ops_(std::move(ops)) {
    for (const char* op : ops_) {
      kernels_.push_back(find_kernel(kCPU, intern_operator(op)));
      register_kernel(kCPU, op, nullptr);
    }
  }
  ~WithoutKernels() {
    for (std::size_t i = 0; i < ops_.size(); ++i) register_kernel(kCPU, ops_[i], kernels_[i]);
  }
  WithoutKernels(const WithoutKernels&) = delete;
  WithoutKernels& operator=(const WithoutKernels&) = delete;

 private:
  std::vector<const char*> ops_;
  std::vector<Kernel> kernels_;
};

/// Runs `check` with the kernels of the host, then without them.
void with_and_without(const std::vector<const char*>& ops, const std::function<void()>& check) {
  check();
  const WithoutKernels without(ops);
  check();
}

/// Multiples of an eighth between -20 and 20 in no order.
Tensor eighths(const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return arange(count).mul(37).remainder(321).sub(160).to(kFloat32).div(8).view(sizes);
}

std::int64_t step(double value, double scale, std::int64_t zero, Dtype dtype) {
  const double low = dtype == kUInt8 ? 0 : -128;
  return static_cast<std::int64_t>(
      std::clamp(std::nearbyint(value / scale) + static_cast<double>(zero), low, low + 255));
}

TEST(QuantizeRules, EachNumberBecomesTheNearestStepAndBack) {
  const Tensor x = eighths({3, 4, 5});
  with_and_without({"quantize", "dequantize"}, [&] {
    for (const Dtype dtype : {kUInt8, kInt8}) {
      const std::int64_t zero = dtype == kUInt8 ? 100 : -3;
      for (const Tensor& given : {x, x.permute({2, 0, 1}), x.slice(2, 0, 5, 2), x.to(kFloat64)}) {
        const Tensor got = q::quantize_per_tensor(given, 0.125, zero, dtype);
        ASSERT_EQ(got.scalar_type(), dtype);
        ASSERT_EQ(got.sizes(), given.sizes());
        const Tensor values = given.contiguous().view({-1}), steps = got.contiguous().view({-1});
        for (std::int64_t i = 0; i < values.numel(); ++i)
          ASSERT_EQ(steps[i].item<std::int64_t>(), step(values[i].item<double>(), 0.125, zero, dtype));
        const Tensor back = q::dequantize_per_tensor(got, 0.125, zero);
        EXPECT_TRUE(back.equal(got.to(kFloat32).sub(static_cast<double>(zero)).mul(0.125)));
        EXPECT_TRUE(q::dequantize(q::QuantizedTensor{got, 0.125, zero}).equal(back));
      }
    }
  });
}

TEST(QuantizeRules, EachIndexOfADimensionMayHaveItsScale) {
  const Tensor x = eighths({3, 2, 4});
  with_and_without({"quantize", "dequantize"}, [&] {
    for (const std::int64_t axis : {0, 1, 2, -1, -3}) {
      const std::int64_t at = axis < 0 ? axis + 3 : axis;
      const Tensor scales = tensor({0.125f, 0.25f, 0.5f, 1.f}).slice(0, 0, x.size(at)),
                   zeros = tensor({1, -2, 30, 4}).to(kInt32).slice(0, 0, x.size(at));
      const Tensor got = q::quantize_per_channel(x, scales, zeros, axis, kInt8);
      const Tensor back = q::dequantize_per_channel(got, scales, zeros, axis);
      for (std::int64_t i = 0; i < x.size(at); ++i) {
        const double scale = scales[i].item<double>();
        const auto zero = zeros[i].item<std::int64_t>();
        EXPECT_TRUE(got.select(at, i).equal(q::quantize_per_tensor(x.select(at, i), scale, zero, kInt8))) << axis;
        EXPECT_TRUE(back.select(at, i).equal(q::dequantize_per_tensor(got.select(at, i), scale, zero))) << axis;
      }
    }
  });
}

TEST(QuantizeRules, APictureMayBeTurnedToChannelsLastOnTheWay) {
  const Tensor x = eighths({2, 3, 4, 5});
  with_and_without({"quantize"}, [&] {
    const Tensor plain = q::quantize_per_tensor(x, 0.25, 128, kUInt8);
    EXPECT_TRUE(plain.is_contiguous());
    for (const Tensor& given :
         {x, x.contiguous(MemoryFormat::ChannelsLast), x.transpose(2, 3).contiguous().transpose(2, 3)}) {
      const Tensor turned = q::quantize_per_tensor(given, 0.25, 128, kUInt8, MemoryFormat::ChannelsLast);
      EXPECT_TRUE(turned.is_contiguous(MemoryFormat::ChannelsLast));
      EXPECT_TRUE(turned.equal(plain));
    }
  });
}

TEST(QuantizeRules, AWeightHasAScaleForEachOutputChannel) {
  const Tensor w = eighths({3, 2, 4});
  const q::QuantizedWeight got = q::quantize_weight(w);
  for (std::int64_t i = 0; i < 3; ++i)
    EXPECT_NEAR(got.scales[i].item<double>(), w[i].abs().max().item<double>() / 127.5, 1e-6);
  EXPECT_TRUE(q::dequantize(got).allclose(w, 0, 0.08));
  EXPECT_GT(q::quantize_weight(zeros({2, 3})).scales.min().item<double>(), 0);
  EXPECT_EQ(message_of([] { q::quantize_weight(tensor(1.f)); }),
            "quantize_weight: a weight without dimensions has no output channels");
  EXPECT_THROW(q::quantize_weight(tensor({1})), Error);
}

TEST(QuantizeRules, WhatDoesNotFitIsSaid) {
  const Tensor x = ones({2, 3}), two = ones({2}), zero = zeros({2}, kInt32), bytes = zeros({2, 3}, kInt8);
  EXPECT_EQ(message_of([&] { q::quantize_per_tensor(x, 1, 0, kInt16); }),
            "quantize_per_tensor: values are uint8 or int8, not int16");
  EXPECT_EQ(message_of([&] { q::quantize_per_channel(x, two, zero, 0, kInt32); }),
            "quantize_per_channel: values are uint8 or int8, not int32");
  EXPECT_EQ(message_of([&] { q::dequantize_per_tensor(x, 1, 0); }),
            "dequantize_per_tensor: values are uint8 or int8, not float32");
  EXPECT_EQ(message_of([&] { q::dequantize_per_channel(x, two, zero, 0); }),
            "dequantize_per_channel: values are uint8 or int8, not float32");
  EXPECT_EQ(message_of([] { q::lowest_of(kInt16); }), "lowest_of: values are uint8 or int8, not int16");
  EXPECT_EQ(message_of([] { q::highest_of(kBool); }), "highest_of: values are uint8 or int8, not bool");
  EXPECT_THROW(q::quantize_per_tensor(tensor({1}), 1, 0, kInt8), Error);
  EXPECT_EQ(message_of([&] { q::quantize_per_tensor(x, 0, 0, kInt8); }),
            "quantize_per_tensor: the scale is 0, not above 0");
  EXPECT_EQ(message_of([&] { q::dequantize_per_tensor(bytes, -1, 0); }),
            "dequantize_per_tensor: the scale is -1, not above 0");
  for (const double scale : {std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_THROW(q::quantize_per_tensor(x, scale, 0, kInt8), Error);
  EXPECT_EQ(message_of([&] { q::quantize_per_tensor(x, 1, -1, kUInt8); }),
            "quantize_per_tensor: the zero point -1 is no uint8");
  EXPECT_EQ(message_of([&] { q::dequantize_per_tensor(bytes, 1, 128); }),
            "dequantize_per_tensor: the zero point 128 is no int8");
  for (const auto& [dtype, zero_point] :
       {std::pair(kUInt8, 0), std::pair(kUInt8, 255), std::pair(kInt8, -128), std::pair(kInt8, 127)})
    EXPECT_NO_THROW(q::quantize_per_tensor(x, 1, zero_point, dtype));
  EXPECT_THROW(q::quantize_per_tensor(x, 1, 256, kUInt8), Error);
  EXPECT_THROW(q::quantize_per_tensor(x, 1, -129, kInt8), Error);
  const auto channels = [&](const Tensor& scales, const Tensor& points) {
    return message_of([&] { q::quantize_per_channel(x, scales, points, 0, kInt8); });
  };
  const std::string sizes = "quantize_per_channel: scales of size ";
  EXPECT_EQ(channels(ones({3}), zero), sizes + "[3] and zero points of size [2] for dimension 0 of size 2");
  EXPECT_EQ(channels(two, zeros({3}, kInt32)), sizes + "[2] and zero points of size [3] for dimension 0 of size 2");
  EXPECT_EQ(channels(ones({2, 1}), zero), sizes + "[2, 1] and zero points of size [2] for dimension 0 of size 2");
  EXPECT_EQ(channels(two, zeros({2, 1}, kInt32)),
            sizes + "[2] and zero points of size [2, 1] for dimension 0 of size 2");
  const std::string dtypes = "quantize_per_channel: scales are float32 and zero points int32, not ";
  EXPECT_EQ(channels(two.to(kFloat64), zero), dtypes + "float64 and int32");
  EXPECT_EQ(channels(two, zero.to(kInt64)), dtypes + "float32 and int64");
}

/// Convolution in float64 of what the integers stand for.
Tensor by_floats(const q::QuantizedTensor& x, const q::QuantizedWeight& w, const Tensor& bias, const q::Window& window,
                 bool relu) {
  const Tensor reals = q::dequantize(x).to(kFloat64), weights = q::dequantize(w).to(kFloat64);
  const auto list = [](const Dims& dims) { return std::vector<std::int64_t>{dims[0], dims[1]}; };
  const Tensor y = conv2d(reals, weights, bias.defined() ? bias.to(kFloat64) : bias, list(window.stride),
                          list(window.padding), list(window.dilation), window.groups);
  return relu ? y.relu() : y;
}

TEST(QuantizedLayerRules, ConvolutionsAreThoseOfWhatTheIntegersStandFor) {
  const Tensor bias = eighths({6});
  with_and_without({"quantized_conv", "quantized_conv_planar"}, [&] {
    for (const q::Window& window :
         {q::Window{}, q::Window{{2, 1}, {1, 0}, {1, 2}, 1}, q::Window{{1, 1}, {0, 1}, {1, 1}, 2}}) {
      const q::QuantizedWeight w = q::quantize_weight(eighths({6, 4 / window.groups, 2, 3}));
      for (const Dtype dtype : {kUInt8, kInt8}) {
        const q::QuantizedTensor x{q::quantize_per_tensor(eighths({2, 4, 7, 8}), 0.25, 20, dtype), 0.25, 20};
        for (const bool relu : {false, true}) {
          for (const Tensor& one : {Tensor(), bias}) {
            const Tensor want = by_floats(x, w, one, window, relu), got = q::conv2d(x, w, one, window, relu);
            ASSERT_EQ(got.sizes(), want.sizes());
            EXPECT_TRUE(got.to(kFloat64).allclose(want, 1e-5, 1e-3));
            const q::QuantizedTensor again =
                q::conv2d(x, w, one, window, relu, {.scale = 32, .zero_point = 7, .dtype = dtype});
            EXPECT_EQ(again.values.scalar_type(), dtype);
            EXPECT_EQ(again.scale, 32);
            EXPECT_EQ(again.zero_point, 7);
            const Tensor steps = q::quantize_per_tensor(want, 32, 7, dtype);
            EXPECT_LE(again.values.to(kInt64).sub(steps.to(kInt64)).abs().max().item<std::int64_t>(), 1);
          }
        }
      }
    }
  });
}

TEST(QuantizedLayerRules, ALinearOneTakesRowsOfAnyLeadingDimensions) {
  const q::QuantizedWeight w = q::quantize_weight(eighths({5, 6}));
  const Tensor bias = eighths({5});
  with_and_without({"quantized_conv"}, [&] {
    for (const std::vector<std::int64_t>& sizes :
         std::vector<std::vector<std::int64_t>>{{6}, {3, 6}, {2, 3, 6}, {0, 6}}) {
      const q::QuantizedTensor x{q::quantize_per_tensor(eighths(sizes), 0.25, 20, kUInt8), 0.25, 20};
      const Tensor want = linear(q::dequantize(x), q::dequantize(w), bias);
      EXPECT_EQ(q::linear(x, w, bias).sizes(), want.sizes());
      EXPECT_TRUE(q::linear(x, w, bias).allclose(want, 1e-4, 1e-3));
      EXPECT_TRUE(q::linear(x, w, bias, true).allclose(want.relu(), 1e-4, 1e-3));
      EXPECT_TRUE(q::linear(x, w).allclose(want - bias, 1e-4, 1e-2));
      const Tensor steps = q::linear(x, w, bias, false, {.scale = 8, .zero_point = 100, .dtype = kUInt8}).values;
      EXPECT_TRUE(q::dequantize_per_tensor(steps, 8, 100).allclose(want.clamp(-800, 8 * 155), 0, 8));
    }
  });
}

TEST(QuantizedLayerRules, WhatDoesNotFitIsSaid) {
  const q::QuantizedTensor row{zeros({3, 6}, kUInt8), 1, 0}, picture{zeros({1, 4, 5, 5}, kUInt8), 1, 0};
  const q::QuantizedWeight w = q::quantize_weight(ones({5, 6})), window = q::quantize_weight(ones({6, 4, 2, 2}));
  const auto linear_said = [&](const q::QuantizedTensor& x, const q::QuantizedWeight& weight, const Tensor& bias = {}) {
    return message_of([&] { q::linear(x, weight, bias); });
  };
  const auto conv_said = [&](const q::QuantizedTensor& x, const q::QuantizedWeight& weight, const q::Window& how = {}) {
    return message_of([&] { q::conv2d(x, weight, {}, how); });
  };
  EXPECT_EQ(linear_said({zeros({3, 6}), 1, 0}, w), "quantized::linear: the input is uint8 or int8, not float32");
  EXPECT_EQ(linear_said(row, {w.values.to(kUInt8), w.scales}),
            "quantized::linear: weights are int8 with scales of float32, not uint8 with float32");
  EXPECT_EQ(linear_said(row, {w.values, w.scales.to(kFloat64)}),
            "quantized::linear: weights are int8 with scales of float32, not int8 with float64");
  EXPECT_EQ(linear_said(row, window), "quantized::linear: the weight has 4 dimensions, not 2");
  EXPECT_EQ(linear_said(row, {w.values, ones({4})}), "quantized::linear: scales of size [4] for 5 output channels");
  EXPECT_EQ(linear_said(row, {w.values, ones({5, 1})}),
            "quantized::linear: scales of size [5, 1] for 5 output channels");
  EXPECT_EQ(linear_said(row, w, ones({4})), "quantized::linear: the bias is float32 (5), not float32 [4]");
  EXPECT_EQ(linear_said(row, w, ones({5, 1})), "quantized::linear: the bias is float32 (5), not float32 [5, 1]");
  EXPECT_EQ(linear_said(row, w, ones({5}, kFloat64)), "quantized::linear: the bias is float32 (5), not float64 [5]");
  EXPECT_EQ(linear_said({zeros({3, 5}, kUInt8), 1, 0}, w),
            "quantized::linear: an input of size [3, 5] and a weight of size [5, 6]");
  EXPECT_EQ(linear_said({zeros({}, kUInt8), 1, 0}, w),
            "quantized::linear: an input of size [] and a weight of size [5, 6]");
  const auto result_said = [&](const q::Requantized& result) {
    return message_of([&] { q::linear(row, w, {}, false, result); });
  };
  EXPECT_EQ(result_said({.scale = 1, .zero_point = 0, .dtype = kInt32}),
            "quantized::linear: the result is uint8 or int8, not int32");
  EXPECT_EQ(result_said({.scale = 0, .zero_point = 0, .dtype = kInt8}),
            "quantized::linear: the result's scale is 0, not above 0");
  EXPECT_EQ(result_said({.scale = 1, .zero_point = 128, .dtype = kInt8}),
            "quantized::linear: the zero point 128 is no int8");
  EXPECT_EQ(result_said({.scale = 1, .zero_point = -1, .dtype = kUInt8}),
            "quantized::linear: the zero point -1 is no uint8");
  const std::string sizes = "quantized::conv2d: an input of size [1, 4, 5, 5] and a weight of size [6, 4, 2, 2] in ";
  EXPECT_EQ(conv_said(picture, window, {.groups = 2}), sizes + "2 groups");
  EXPECT_EQ(conv_said(picture, window, {.groups = 0}), sizes + "0 groups");
  EXPECT_THROW(q::conv2d({zeros({4, 5, 5}, kUInt8), 1, 0}, window), Error);
  EXPECT_THROW(q::conv2d({zeros({1, 16, 5, 5}, kUInt8), 1, 0}, window, {}, {.groups = 4}), Error)
      << "6 channels in 4 groups";
  EXPECT_EQ(conv_said(picture, window, {.stride = {1, 0}}), "quantized::conv2d: stride 0, padding 0, dilation 1");
  EXPECT_EQ(conv_said(picture, window, {.padding = {-1, 0}}), "quantized::conv2d: stride 1, padding -1, dilation 1");
  EXPECT_EQ(conv_said(picture, window, {.dilation = {1, 0}}), "quantized::conv2d: stride 1, padding 0, dilation 0");
  EXPECT_EQ(conv_said(picture, window, {.dilation = {5, 1}}),
            "quantized::conv2d: a window of 6 in a padded input of 5");
  EXPECT_NO_THROW(q::conv2d(picture, window, {}, {.dilation = {4, 1}}));
}

TEST(PackedWeightRules, FourOrEightBitsInGroupsAndBack) {
  const Tensor w = eighths({3, 12}), x = eighths({2, 12}), bias = eighths({3});
  for (const int bits : {4, 8}) {
    for (const std::int64_t group : {0, 4, 12}) {
      const q::PackedWeight packed = q::pack_weight(w, bits, group);
      const std::int64_t each = group == 0 ? 12 : group;
      EXPECT_EQ(packed.scales.sizes().vec(), (std::vector<std::int64_t>{3, 12 / each}));
      const Tensor scales = w.view({3, -1, each}).abs().amax(2) / (bits == 8 ? 127.5 : 7.5);
      EXPECT_TRUE(packed.scales.allclose(scales));
      const Tensor back = q::unpack_weight(packed);
      EXPECT_TRUE(back.sub(w).abs().view({3, -1, each}).le(scales.unsqueeze(2) * 0.51).all().item<bool>());
      with_and_without({"weight_only_linear"}, [&] {
        EXPECT_TRUE(q::weight_only_linear(x, packed, bias).allclose(linear(x, back, bias), 1e-4, 1e-3));
        EXPECT_TRUE(q::weight_only_linear(x[0], packed).allclose(linear(x[0], back), 1e-4, 1e-3));
        EXPECT_EQ(q::weight_only_linear(x.to(kFloat16), packed).scalar_type(), kFloat16);
      });
      const Tensor a = x.clone().requires_grad_(), b = bias.clone().requires_grad_();
      q::weight_only_linear(a, packed, b).mul(tensor({1.f, 2.f, 3.f})).sum().backward();
      EXPECT_TRUE(a.grad().allclose(tensor({1.f, 2.f, 3.f}).matmul(back).expand({2, 12}), 1e-4, 1e-3));
      EXPECT_TRUE(b.grad().equal(tensor({2.f, 4.f, 6.f})));
    }
  }
  const auto pack = [](const Tensor& weight, int bits, std::int64_t group) {
    return message_of([&] { q::pack_weight(weight, bits, group); });
  };
  EXPECT_EQ(pack(w[0], 8, 0), "quantized::pack_weight: a weight of size [12] is no matrix");
  EXPECT_EQ(pack(w, 2, 0), "quantized::pack_weight: weights have 8 or 4 bits, not 2");
  EXPECT_EQ(pack(w, 8, 5), "quantized::pack_weight: groups of 5 in rows of 12");
  EXPECT_EQ(pack(w, 8, -1), "quantized::pack_weight: groups of -1 in rows of 12");
  EXPECT_EQ(pack(w, 4, 3), "quantized::pack_weight: groups of 3 weights fill no bytes");
  EXPECT_NO_THROW(q::pack_weight(w, 8, 3));
  const q::PackedWeight four = q::pack_weight(w, 4), eight = q::pack_weight(w, 8);
  const std::string size = "quantized::weight_only_linear: an input of size ";
  for (const q::PackedWeight& packed : {four, eight}) {
    EXPECT_EQ(message_of([&] {
                q::weight_only_linear(ones({2, 11}), packed);
              }),
              size + "[2, 11] and a weight of size (3, 12)");
    EXPECT_EQ(message_of([&] { q::weight_only_linear(ones({}), packed); }), size + "[] and a weight of size (3, 12)");
    EXPECT_EQ(message_of([&] { q::weight_only_linear(x, packed, ones({2})); }),
              "quantized::weight_only_linear: the bias is floating point (3), not float32 [2]");
    EXPECT_THROW(q::weight_only_linear(x, packed, zeros({3}, kInt64)), Error);
    EXPECT_EQ(message_of([&] {
                q::weight_only_linear(x, {packed.values, ones({3, 5}), packed.bits, 12});
              }),
              "quantized::weight_only_linear: scales of size [3, 5] for a weight of size (3, 12)");
    EXPECT_EQ(message_of([&] {
                q::weight_only_linear(x, {packed.values, ones({3, 0}), packed.bits, 12});
              }),
              "quantized::weight_only_linear: scales of size [3, 0] for a weight of size (3, 12)");
  }
  EXPECT_THROW(q::weight_only_linear(x, {eight.values, eight.scales, 8, 11}), Error);
  EXPECT_THROW(q::weight_only_linear(zeros({2, 12}, kInt64), eight), Error);
}

TEST(WeightOnlyRules, OfNoColumnsTheBiasIsLeft) {
  const Tensor bias = eighths({3});
  with_and_without({"weight_only_linear"}, [&] {
    const q::PackedWeight nothing{zeros({3, 0}, kInt8), ones({3, 1}), 8, 0};
    EXPECT_TRUE(q::weight_only_linear(ones({2, 0}), nothing, bias).equal(bias.expand({2, 3})));
    EXPECT_TRUE(q::weight_only_linear(ones({2, 0}), nothing).equal(zeros({2, 3})));
  });
}

}  // namespace
}  // namespace tenon::test
