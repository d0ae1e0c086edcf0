// The options of the CUDA plugin that choose between speed and exactness: what they change in results.
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

}  // namespace
}  // namespace tenon::test
