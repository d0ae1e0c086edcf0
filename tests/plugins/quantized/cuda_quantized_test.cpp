// Integers of 8 and 4 bits and keys in pages on cuda:0: the values of the cpu, by kernels of the device's own.
#include <tenon/device/memory_api.h>
#include <tenon/dispatch/call.h>
#include <tenon/kernel/attributes/linear.h>
#include <tenon/ops/nn/paged_attention.h>
#include <tenon/tenon.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tenon::test {
namespace {

const Device kGpu("cuda:0");

/// By how many steps integers of both devices differ at most.
std::int64_t steps_between(const Tensor& there, const Tensor& here) {
  return (there.to(kCPU).to(kInt32) - here.to(kInt32)).abs().max().item<std::int64_t>();
}

TEST(CudaQuantized, IntegersAndWhatTheyStandForAreTheHosts) {
  manual_seed(31);
  const Tensor x = randn({3, 5, 7, 6}), there = x.to(kGpu);
  for (const Dtype dtype : {kUInt8, kInt8}) {
    const std::int64_t zero = dtype == kUInt8 ? 120 : -9;
    for (const MemoryFormat format : {MemoryFormat::Preserve, MemoryFormat::ChannelsLast}) {
      const Tensor ours = quantized::quantize_per_tensor(x, 0.03, zero, dtype, format);
      const Tensor theirs = quantized::quantize_per_tensor(there, 0.03, zero, dtype, format);
      EXPECT_EQ(theirs.strides(), ours.strides());
      EXPECT_TRUE(equal(theirs.to(kCPU), ours));
      EXPECT_TRUE(equal(quantized::dequantize_per_tensor(theirs, 0.03, zero).to(kCPU),
                        quantized::dequantize_per_tensor(ours, 0.03, zero)));
    }
    for (const std::int64_t axis : {0, 1, 3}) {
      const std::int64_t channels = x.size(axis);
      const Tensor scales = rand({channels}) * 0.05 + 0.01, zeros = arange(channels, kInt32);
      const Tensor ours = quantized::quantize_per_channel(x, scales, zeros, axis, dtype);
      const Tensor theirs = quantized::quantize_per_channel(there, scales.to(kGpu), zeros.to(kGpu), axis, dtype);
      EXPECT_TRUE(equal(theirs.to(kCPU), ours)) << axis;
      EXPECT_TRUE(equal(quantized::dequantize_per_channel(theirs, scales.to(kGpu), zeros.to(kGpu), axis).to(kCPU),
                        quantized::dequantize_per_channel(ours, scales, zeros, axis)))
          << axis;
    }
  }
}

TEST(CudaQuantized, LinearLayersAndConvolutionsEqualTheHosts) {
  manual_seed(32);
  struct Case {
    const char* name;
    Tensor x, weight;
    quantized::Window window;
  };
  const Case cases[] = {
      {"few channels", randn({2, 3, 9, 8}), randn({10, 3, 3, 3}), {{1, 1}, {1, 1}, {1, 1}, 1}},
      {"many channels", randn({2, 32, 7, 7}), randn({20, 32, 3, 3}), {{2, 2}, {1, 1}, {1, 1}, 1}},
      {"in groups", randn({1, 12, 6, 6}), randn({8, 3, 3, 3}), {{1, 1}, {1, 1}, {1, 1}, 4}},
      {"by channel", randn({2, 16, 8, 8}), randn({16, 1, 3, 3}), {{1, 1}, {1, 1}, {1, 1}, 16}},
      {"a linear layer", randn({5, 48}), randn({10, 48}), {}},
  };
  const quantized::Requantized result{0.05, 30, kUInt8};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const quantized::QuantizedTensor x{quantized::quantize_per_tensor(c.x, 0.03, 110, kUInt8), 0.03, 110};
    const quantized::QuantizedTensor x_there{x.values.to(kGpu), x.scale, x.zero_point};
    const quantized::QuantizedWeight w = quantized::quantize_weight(c.weight),
                                     w_there{w.values.to(kGpu), w.scales.to(kGpu)};
    const Tensor bias = randn({c.weight.size(0)}), bias_there = bias.to(kGpu);
    const bool is_linear = c.weight.dim() == 2;
    const Tensor ours = is_linear ? quantized::linear(x, w, bias) : quantized::conv2d(x, w, bias, c.window);
    const Tensor theirs = is_linear ? quantized::linear(x_there, w_there, bias_there)
                                    : quantized::conv2d(x_there, w_there, bias_there, c.window);
    EXPECT_TRUE(theirs.to(kCPU).allclose(ours, 1e-5, 1e-5));
    const quantized::QuantizedTensor bytes =
        is_linear ? quantized::linear(x, w, bias, true, result) : quantized::conv2d(x, w, bias, c.window, true, result);
    const quantized::QuantizedTensor bytes_there =
        is_linear ? quantized::linear(x_there, w_there, bias_there, true, result)
                  : quantized::conv2d(x_there, w_there, bias_there, c.window, true, result);
    EXPECT_LE(steps_between(bytes_there.values, bytes.values), 1);
  }
}

TEST(CudaQuantized, WeightsOfIntegersEqualTheHostsAndHaveGradients) {
  manual_seed(33);
  for (const std::int64_t rows : {1, 3, 70}) {
    for (const auto& [bits, group] : {std::pair{8, 0}, {8, 32}, {4, 32}, {4, 16}}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << bits << " bits in groups of " << group);
      const Tensor x = randn({rows, 96}), bias = randn({13});
      const quantized::PackedWeight here = quantized::pack_weight(randn({13, 96}), bits, group);
      const quantized::PackedWeight there{here.values.to(kGpu), here.scales.to(kGpu), bits, here.columns};
      Tensor ours = x.clone().set_requires_grad(true), theirs = x.to(kGpu).set_requires_grad(true);
      const Tensor y = quantized::weight_only_linear(ours, here, bias);
      const Tensor y_there = quantized::weight_only_linear(theirs, there, bias.to(kGpu));
      EXPECT_TRUE(y_there.detach().to(kCPU).allclose(y.detach(), 1e-4, 1e-4));
      y.square().sum().backward();
      y_there.square().sum().backward();
      EXPECT_TRUE(theirs.grad().to(kCPU).allclose(ours.grad(), 1e-3, 1e-3));
    }
  }
}

TEST(CudaQuantized, AConvertedModelGivesWhatItGivesOnTheHost) {
  namespace q = nn::quantization;
  manual_seed(34);
  NoGradGuard no_grad;
  nn::Sequential model(nn::Conv2d(nn::Conv2dOptions(1, 16, 3).padding(1)), nn::ReLU(), nn::MaxPool2d(2),
                       nn::Conv2d(nn::Conv2dOptions(16, 32, 3)), nn::ReLU(), nn::Flatten(), nn::Linear(32 * 4 * 4, 10));
  model->eval();
  const Tensor x = randn({4, 1, 12, 12});
  q::prepare(*model, q::get_default_qconfig("onednn"));
  model->forward(x);
  q::convert(*model);
  ASSERT_EQ(q::quantized_layers(*model), 3);
  const Tensor ours = model->forward(x);
  model->to(kGpu);
  const Tensor theirs = model->forward(x.to(kGpu)).to(kCPU);
  // A value that lies between two integers may be rounded to either before the layer that follows.
  EXPECT_LT((theirs - ours).abs().max().item<double>(), 0.02 * ours.abs().max().item<double>());
}

TEST(CudaQuantized, AttentionToPagesEqualsTheHosts) {
  manual_seed(35);
  NoGradGuard no_grad;
  for (const auto& [count, length, depth] : {std::tuple<std::int64_t, std::int64_t, std::int64_t>{1, 1, 8},
                                             {1, 37, 8},
                                             {1, 700, 16},
                                             {5, 300, 8},
                                             {20, 20, 8},
                                             {70, 90, 7}}) {
    SCOPED_TRACE(testing::Message() << count << " of " << length << " positions, depth " << depth);
    constexpr std::int64_t kPage = 5;
    const Tensor query = randn({count, 6, depth});
    std::vector<Tensor> here, there;
    for (std::int64_t begin = 0; begin < length; begin += kPage) {
      here.push_back(randn({2, kPage, 2, depth}));
      there.push_back(here.back().to(kGpu));
    }
    const Tensor ours = paged_attention(query, here, length);
    const Tensor theirs = paged_attention(query.to(kGpu), there, length);
    EXPECT_TRUE(theirs.to(kCPU).allclose(ours, 1e-5, 1e-5));
    EXPECT_TRUE(equal(paged_attention(query.to(kGpu), there, length), theirs)) << "the same bits twice";
  }
}

// What cuDNN asks for, taken and given back: y stays as it was.
TEST(CudaQuantized, ARehearsedConvolutionTakesTheWorkspaceAndComputesNothing) {
  manual_seed(36);
  NoGradGuard no_grad;
  const Tensor x = randn({2, 3, 9, 9}).to(kGpu), w = randn({4, 3, 3, 3}).to(kGpu);
  const auto taken_by = [&](const std::string& kernel, const Tensor& y) {
    const std::vector<TensorView> inputs{x.impl().view(), w.impl().view(), undefined_view()};
    const TensorView output = y.impl().view();
    const ConvAttributes attributes;
    reset_peak_memory_stats(kGpu);
    const std::size_t before = memory_allocated(kGpu);
    call_kernel(intern_operator(kernel), device_state(kGpu), {&output, 1}, inputs, &attributes);
    return max_memory_allocated(kGpu) - before;
  };
  const Tensor y = zeros({2, 4, 7, 7}).to(kGpu), untouched = zeros({2, 4, 7, 7}).to(kGpu);
  const std::size_t workspace = taken_by("conv", y);
  EXPECT_EQ(taken_by("conv.workspace", untouched), workspace);
  EXPECT_FALSE((y == 0).all().item<bool>());
  EXPECT_TRUE((untouched == 0).all().item<bool>());
}

}  // namespace
}  // namespace tenon::test
