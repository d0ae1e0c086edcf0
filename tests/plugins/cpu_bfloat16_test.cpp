// Products of bfloat16 by both ways of the option `bfloat16`, held against float64: layouts, slices, addends, and
// convolutions with their backwards.
#include <tenon/autograd/engine.h>
#include <tenon/ops/nn/convolution.h>
#include <tenon/ops/ops.h>
#include <tenon/runtime/plugins/plugins.h>
#include <tenon/tensor/generator.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tenon {
namespace {

class CpuBfloat16 : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { choose(GetParam()); }
  void TearDown() override { choose("auto"); }
  static void choose(const std::string& way) {
    Options options(find_backend("cpu").options());
    options.set_text("bfloat16", way);
    options.set_text("threads", "3");
    find_backend("cpu").configure(options);
  }
  /// Values that bfloat16 holds.
  static Tensor drawn(IntArrayRef sizes) { return randn(sizes).to(kBFloat16); }
  /// Within a rounding of the result, and of the sums before it.
  static void expect_near(const Tensor& found, const Tensor& expected, const std::string& what) {
    ASSERT_EQ(found.scalar_type(), kBFloat16) << what;
    ASSERT_EQ(found.sizes(), expected.sizes()) << what;
    const Tensor wide = found.detach().to(kFloat64);
    const double largest = expected.abs().max().item<double>();
    const double error = (wide - expected).abs().max().item<double>();
    EXPECT_LE(error, largest / 128) << what;
    EXPECT_GT(largest, 0) << what;
  }
};

TEST_P(CpuBfloat16, MultipliesMatricesHoweverTheyLie) {
  manual_seed(3);
  for (const auto& [rows, terms, columns] : {std::tuple(200, 64, 96), std::tuple(33, 130, 17), std::tuple(1, 512, 300),
                                             std::tuple(300, 512, 1), std::tuple(129, 31, 129), std::tuple(3, 2, 5)}) {
    const std::string what = std::to_string(rows) + " x " + std::to_string(terms) + " x " + std::to_string(columns);
    const Tensor a = drawn({rows, terms}), b = drawn({terms, columns}), bias = drawn({columns});
    const Tensor a_turned = a.t().contiguous().t(), b_turned = b.t().contiguous().t();
    const Tensor b_wide = cat({b, b}, 1).narrow(1, 0, columns);
    const Tensor product = a.to(kFloat64).mm(b.to(kFloat64));
    expect_near(a.mm(b), product, what);
    expect_near(a_turned.mm(b), product, what + ", a transposed");
    expect_near(a.mm(b_turned), product, what + ", b transposed");
    expect_near(a_turned.mm(b_turned), product, what + ", both");
    expect_near(a.mm(b_wide), product, what + ", rows apart");
    expect_near(addmm(bias, a, b), product + bias.to(kFloat64), what + " + bias");
    expect_near(addmm(bias, a, b, 1, 2), product * 2 + bias.to(kFloat64), what + " twice + bias");
  }
}

TEST_P(CpuBfloat16, MultipliesBatches) {
  manual_seed(4);
  for (const std::int64_t count : {2, 7}) {
    const Tensor a = drawn({count, 50, 64}), b = drawn({count, 64, 40});
    expect_near(a.bmm(b), a.to(kFloat64).bmm(b.to(kFloat64)), std::to_string(count));
    const Tensor turned = b.transpose(1, 2).contiguous().transpose(1, 2);
    expect_near(a.bmm(turned), a.to(kFloat64).bmm(b.to(kFloat64)), std::to_string(count) + ", transposed");
    expect_near(matmul(a, b.select(0, 0)), a.to(kFloat64).matmul(b.select(0, 0).to(kFloat64)), "one right operand");
  }
}

TEST_P(CpuBfloat16, ConvolvesAndComesBack) {
  manual_seed(5);
  struct Case {
    std::int64_t batch, in, out, side, kernel, stride, padding, groups;
    bool channels_last;
  };
  for (const Case& c : {Case{4, 16, 32, 14, 3, 1, 1, 1, false}, Case{5, 3, 8, 20, 5, 2, 2, 1, false},
                        Case{4, 16, 32, 14, 3, 1, 1, 1, true}, Case{2, 8, 8, 9, 3, 1, 0, 8, false},
                        Case{3, 64, 64, 8, 1, 1, 0, 1, false}, Case{1, 256, 512, 4, 3, 1, 1, 1, false},
                        Case{2, 64, 64, 32, 3, 1, 1, 1, false}}) {
    const std::string what =
        std::to_string(c.in) + " -> " + std::to_string(c.out) + ", kernel " + std::to_string(c.kernel);
    Tensor x = drawn({c.batch, c.in, c.side, c.side});
    if (c.channels_last) x = x.contiguous(MemoryFormat::ChannelsLast);
    x.set_requires_grad(true);
    const Tensor w = drawn({c.out, c.in / c.groups, c.kernel, c.kernel}).set_requires_grad(true);
    const Tensor bias = drawn({c.out}).set_requires_grad(true);
    const auto wide = [](const Tensor& tensor) { return tensor.detach().to(kFloat64).set_requires_grad(true); };
    const Tensor x64 = wide(x), w64 = wide(w), bias64 = wide(bias);
    const Tensor y = conv2d(x, w, bias, c.stride, c.padding, 1, c.groups);
    const Tensor y64 = conv2d(x64, w64, bias64, c.stride, c.padding, 1, c.groups);
    expect_near(y, y64.detach(), what);
    const Tensor dy = drawn(y.sizes());
    y.backward(dy);
    y64.backward(dy.to(kFloat64));
    expect_near(x.grad(), x64.grad(), what + ", gradient of the input");
    expect_near(w.grad(), w64.grad(), what + ", gradient of the weight");
    expect_near(bias.grad(), bias64.grad(), what + ", gradient of the bias");
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, CpuBfloat16, testing::Values("onednn", "float32"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon
