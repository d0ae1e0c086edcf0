// Products of integers under autocast: what is asked for in 16 bits is rounded once, at its end.
#include <tenon/autograd/autocast.h>
#include <tenon/dispatch/dispatch.h>
#include <tenon/ops/ops.h>
#include <tenon/ops/quantized/products.h>
#include <tenon/tensor/generator.h>

#include <gtest/gtest.h>

#include <vector>

namespace tenon::test {
namespace {

// As with the kernel: what a device without one computes out of other operators is of 32 bits as well.
TEST(QuantizedAutocast, WithoutAKernelProductsUnderAutocastAreOfFloat32) {
  NoGradGuard no_grad;
  manual_seed(12);
  const Tensor x = tenon::randn({6, 64}), bias = tenon::randn({5}), weight = tenon::randn({5, 64});
  const quantized::QuantizedTensor integers{quantized::quantize_per_tensor(x, 0.02, 128, kUInt8), 0.02, 128};
  const quantized::QuantizedWeight of_bytes = quantized::quantize_weight(weight);
  const auto products = [&] {
    std::vector<Tensor> all{quantized::linear(integers, of_bytes, bias)};
    for (const int bits : {8, 4}) {
      const AutocastGuard autocast(kCPU, kBFloat16);
      all.push_back(quantized::weight_only_linear(x, quantized::pack_weight(weight, bits), bias));
      all.push_back(quantized::linear(integers, of_bytes, bias));
    }
    return all;
  };
  const std::vector<Tensor> with_kernels = products();
  for (const char* op : {"weight_only_linear", "quantized_conv"}) {
    const Kernel kernel = find_kernel(kCPU, intern_operator(op));
    register_kernel(kCPU, op, nullptr);
    const std::vector<Tensor> without = products();
    register_kernel(kCPU, op, kernel);
    for (std::size_t i = 0; i < without.size(); ++i) {
      EXPECT_EQ(without[i].scalar_type(), with_kernels[i].scalar_type()) << op << ' ' << i;
      // One unit of 16 bits where those are asked for: sums that were rounded on their way differ by more.
      const double unit = with_kernels[i].scalar_type() == kBFloat16 ? 1.0 / 128 : 1e-5;
      EXPECT_TRUE(without[i].to(kFloat32).allclose(with_kernels[i].to(kFloat32), unit, 1e-4)) << op << ' ' << i;
    }
  }
}

}  // namespace
}  // namespace tenon::test
