// The options of the CUDA plugin that choose between speed and exactness, and what is exact without: products of
// integers.
#include "plugins/reopened_cuda.h"

#include <tenon/tenon.h>

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

class CudaPrecision : public testing::Test {
 protected:
  void TearDown() override { reopen({}); }

  static void reopen(const std::vector<std::pair<std::string, std::string>>& settings) {
    reopen_cuda(settings, [] {});
  }
  static Device device() { return Device("cuda:0"); }
  /// An element of a product of 64 terms, each of which TF32 rounds to 1.
  static double product() {
    const Tensor a = full({64, 64}, 1 + 0x1p-12).to(device()), b = ones({64, 64}).to(device());
    return matmul(a, b).to(kCPU).select(0, 3).select(0, 5).item<double>();
  }
};

TEST_F(CudaPrecision, ProductsAreExactUnlessTf32IsAllowed) {
  reopen({});
  EXPECT_EQ(product(), 64 + 0x1p-6);
  reopen({{"matmul_allow_tf32", "true"}});
  EXPECT_EQ(product(), 64);
}

TEST_F(CudaPrecision, GradientsOfConvolutionsGiveTheSameBits) {
  reopen({});
  manual_seed(4);
  const Tensor x = rand({6, 3, 9, 9}).to(device());
  const Tensor w = rand({4, 3, 3, 3}).to(device()).set_requires_grad(true);
  std::vector<Tensor> gradients;
  for (int i = 0; i < 3; ++i) {
    w.mutable_grad() = Tensor();
    conv2d(x, w).square().sum().backward();
    gradients.push_back(w.grad().to(kCPU));
  }
  EXPECT_TRUE(equal(gradients[0], gradients[1]));
  EXPECT_TRUE(equal(gradients[0], gradients[2]));
}

TEST_F(CudaPrecision, AlgorithmsThatWereMeasuredGiveTheSameToRounding) {
  for (const char* const measures : {"false", "true"}) {
    reopen({{"cudnn_benchmark", measures}, {"cudnn_allow_tf32", "false"}});
    manual_seed(5);
    const Tensor x = rand({2, 3, 9, 9}), w = rand({4, 3, 3, 3}), want = conv2d(x, w);
    for (int i = 0; i < 2; ++i) {
      const Tensor got = conv2d(x.to(device()), w.to(device())).to(kCPU);
      EXPECT_LT((got - want).abs().max().item<double>(), 1e-4) << measures;
    }
  }
}

// The kernels for integers compute in float32, under autocast as well.
TEST_F(CudaPrecision, WeightsOfIntegersUnderAutocastEqualTheHosts) {
  reopen({});
  NoGradGuard no_grad;
  const Tensor x = randn({6, 64}), bias = randn({5}), weight = randn({5, 64});
  for (const int bits : {8, 4}) {
    const quantized::PackedWeight here = quantized::pack_weight(weight, bits);
    const quantized::PackedWeight there{here.values.to(device()), here.scales.to(device()), bits, here.columns};
    const auto under_autocast = [&](DeviceType kind, const Tensor& in, const quantized::PackedWeight& packed,
                                    const Tensor& added) {
      const AutocastGuard autocast(kind, kBFloat16);
      return quantized::weight_only_linear(in, packed, added);
    };
    const Tensor ours = under_autocast(kCPU, x, here, bias);
    const Tensor theirs = under_autocast(kCUDA, x.to(device()), there, bias.to(device()));
    EXPECT_EQ(theirs.scalar_type(), kBFloat16);
    EXPECT_TRUE(theirs.to(kCPU).to(kFloat32).allclose(ours.to(kFloat32), 1.0 / 128, 1e-4)) << bits;
  }
  const quantized::QuantizedTensor integers{quantized::quantize_per_tensor(x, 0.02, 128, kUInt8), 0.02, 128};
  const quantized::QuantizedWeight of_bytes = quantized::quantize_weight(weight);
  const AutocastGuard autocast(kCUDA, kBFloat16);
  const Tensor theirs =
      quantized::linear({integers.values.to(device()), 0.02, 128},
                        {of_bytes.values.to(device()), of_bytes.scales.to(device())}, bias.to(device()));
  EXPECT_TRUE(theirs.to(kCPU).allclose(quantized::linear(integers, of_bytes, bias), 1e-5, 1e-5));
}

}  // namespace
}  // namespace tenon::test
