// Products of bfloat16 by both ways of the option `bfloat16`, held against float64: layouts, slices, addends, and
// convolutions with their backwards.
#include <tenon/autograd/engine.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/nn/convolution.h>
#include <tenon/ops/ops.h>
#include <tenon/runtime/plugins/plugins.h>
#include <tenon/tensor/generator.h>

#include <gtest/gtest.h>

#include <optional>
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

/// The most workspace at once while `work` runs.
template <class Work>
std::int64_t workspace_of(const Work& work) {
  AllocatorStack& allocator = device_state(kCPU).allocator();
  const auto workspace = [&] {
    return allocator.stats().requested_by_purpose[static_cast<std::size_t>(Purpose::kWorkspace)];
  };
  allocator.reset_peak_stats();
  const std::int64_t before = workspace().current;
  work();
  return workspace().peak - before;
}

// Cut along rows, columns, terms and products: each is larger than what becomes float32 at a time.
TEST_P(CpuBfloat16, MultipliesLargeMatricesInPanels) {
  manual_seed(6);
  for (const auto& [rows, terms, columns] :
       {std::tuple(5001, 256, 90), std::tuple(90, 256, 5001), std::tuple(70, 9001, 130), std::tuple(1100, 1000, 900)}) {
    const std::string what = std::to_string(rows) + " x " + std::to_string(terms) + " x " + std::to_string(columns);
    const Tensor a = drawn({rows, terms}), b = drawn({terms, columns}), added = drawn({rows, columns});
    const Tensor product = a.to(kFloat64).mm(b.to(kFloat64)), sum = product + added.to(kFloat64);
    Tensor y;
    const std::int64_t workspace = workspace_of([&] { y = a.mm(b); });
    if (std::string(GetParam()) == "float32") {
      EXPECT_LT(workspace, 7 << 20) << what;
    }
    expect_near(y, product, what);
    expect_near(a.t().contiguous().t().mm(b.t().contiguous().t()), product, what + ", transposed");
    expect_near(addmm(added, a, b), sum, what + " + addend");
    expect_near(addmm(added, a, b, 0.5, 2), product * 2 + added.to(kFloat64) * 0.5, what + " twice + half");
    Tensor turned = added.t().contiguous().t();
    expect_near(turned.addmm_(a, b), sum, what + " into columns");
    expect_near(added.addmm_(a, b), sum, what + " in place");
  }
  const Tensor a = drawn({30, 200, 150}), b = drawn({30, 150, 170}), added = drawn({30, 200, 170});
  const Tensor product = a.to(kFloat64).bmm(b.to(kFloat64));
  expect_near(a.bmm(b), product, "products");
  expect_near(baddbmm(added, a, b), product + added.to(kFloat64), "products + addend");
}

TEST_P(CpuBfloat16, AttendsToAFewExamplesAtATime) {
  const auto attend = [](Dtype dtype, double dropout, bool masked) {
    manual_seed(7);
    std::vector<Tensor> all;
    for (int i = 0; i < 3; ++i) all.push_back(randn({37, 3, 70, 16}).to(kBFloat16).to(dtype).set_requires_grad(true));
    const Tensor bias = randn({37, 1, 70, 70}).to(kBFloat16).to(dtype);
    const Tensor slope = randn({37, 3, 70, 16}).to(kBFloat16).to(dtype);
    manual_seed(8);
    const std::optional<Tensor> mask = masked ? std::optional(bias) : std::nullopt;
    const Tensor y = scaled_dot_product_attention(all[0], all[1], all[2], mask, dropout, /*is_causal=*/!masked);
    y.backward(slope);
    return std::vector<Tensor>{y.detach(), all[0].grad(), all[1].grad(), all[2].grad()};
  };
  for (const double dropout : {0.0, 0.3}) {
    for (const bool masked : {false, true}) {
      std::vector<Tensor> found;
      const std::int64_t workspace = workspace_of([&] { found = attend(kBFloat16, dropout, masked); });
      EXPECT_LT(workspace, 8 * 37 * 3 * 70 * 16 * 4 / 2) << "half of all operands in float32";
      const std::vector<Tensor> expected = attend(kFloat32, dropout, masked);
      for (std::size_t i = 0; i < found.size(); ++i)
        expect_near(found[i], expected[i].to(kFloat64), std::to_string(i) + (masked ? ", masked" : ""));
    }
  }
}

// More heads than are multiplied at once, the last few of them fewer; keys and values that all heads share; a sequence
// that ends within a block of queries.
TEST_P(CpuBfloat16, AttendsWithManyHeads) {
  const auto attend = [](Dtype dtype, IntArrayRef queries, IntArrayRef keys, bool causal) {
    manual_seed(9);
    const Tensor q = randn(queries).to(kBFloat16).to(dtype).set_requires_grad(true);
    const Tensor k = randn(keys).to(kBFloat16).to(dtype).set_requires_grad(true);
    const Tensor v = randn(keys).to(kBFloat16).to(dtype).set_requires_grad(true);
    const Tensor slope = randn(queries).to(kBFloat16).to(dtype);
    std::vector<std::int64_t> shared(queries.begin(), queries.end());
    shared[2] = keys[2];
    const Tensor y = scaled_dot_product_attention(q, k.expand(shared), v.expand(shared), {}, 0.0, causal);
    y.backward(slope);
    return std::vector<Tensor>{y.detach(), q.grad(), k.grad(), v.grad()};
  };
  struct Case {
    std::vector<std::int64_t> queries, keys;
    bool causal;
  };
  for (const Case& c : {Case{{2, 7, 200, 64}, {2, 7, 200, 64}, true}, Case{{2, 7, 200, 64}, {2, 7, 130, 64}, false},
                        Case{{3, 6, 70, 16}, {3, 1, 70, 16}, true}, Case{{1, 12, 1, 64}, {1, 12, 90, 64}, false}}) {
    const std::vector<Tensor> found = attend(kBFloat16, c.queries, c.keys, c.causal);
    const std::vector<Tensor> expected = attend(kFloat32, c.queries, c.keys, c.causal);
    for (std::size_t i = 0; i < found.size(); ++i) {
      expect_near(found[i], expected[i].to(kFloat64), std::to_string(c.queries[2]) + ", tensor " + std::to_string(i));
    }
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
                        Case{2, 64, 64, 32, 3, 1, 1, 1, false}, Case{3, 48, 80, 5, 3, 2, 1, 1, false}}) {
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

TEST_P(CpuBfloat16, AttendsWithAMaskOfAnotherFloatingDtype) {
  manual_seed(12);
  const Tensor q = drawn({2, 3, 9, 16}), mask = randn({9, 9});
  const Tensor expected = scaled_dot_product_attention(q, q, q, mask.to(kBFloat16));
  EXPECT_TRUE(equal(scaled_dot_product_attention(q, q, q, mask), expected));
  EXPECT_EQ(scaled_dot_product_attention(q.to(kFloat16), q.to(kFloat16), q.to(kFloat16), mask).scalar_type(), kFloat16);
}

// oneDNN leaves such elements as it finds them.
TEST_P(CpuBfloat16, GradientsOfWindowElementsThatMeetPaddingAloneAreZero) {
  manual_seed(10);
  struct Case {
    std::int64_t batch, in, out, height, width, kernel, stride, padding;
  };
  for (const Case& c : {Case{1, 16, 16, 1, 1, 3, 2, 1}, Case{3, 64, 64, 1, 1, 3, 2, 1}, Case{4, 64, 64, 3, 1, 3, 2, 1},
                        Case{2, 16, 16, 2, 1, 5, 2, 2}, Case{4, 512, 512, 1, 1, 3, 2, 1}}) {
    const Tensor x = drawn({c.batch, c.in, c.height, c.width});
    const Tensor w = drawn({c.out, c.in, c.kernel, c.kernel}).set_requires_grad(true);
    const Tensor w64 = w.detach().to(kFloat64).set_requires_grad(true);
    const Tensor y = conv2d(x, w, {}, c.stride, c.padding);
    const Tensor y64 = conv2d(x.to(kFloat64), w64, {}, c.stride, c.padding);
    const Tensor dy = drawn(y.sizes());
    y64.backward(dy.to(kFloat64));
    for (const std::int64_t count : {1, 4, 16})
      full({count * w.numel()}, 1e30);  // what memory holds that is handed out next
    y.backward(dy);
    expect_near(w.grad(), w64.grad(), std::to_string(c.in) + " channels");
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, CpuBfloat16, testing::Values("onednn", "float32"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon
