// What networks are made of on an emulated CUDA device, forward and backward, against the cpu: layouts, sizes and
// dtypes that the conformance suite of kernels does not have.
#include <tenon/tenon.h>

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

using Made = std::function<std::vector<Tensor>(const Device&)>;

/// `make` gives the same on the device as on the host, up to `tolerance` of the largest element.
void expect_like_the_cpu(const std::string& what, double tolerance, const Made& make) {
  manual_seed(7);
  const std::vector<Tensor> here = make(kCPU);
  manual_seed(7);
  const std::vector<Tensor> there = make(Device("cuda:0"));
  ASSERT_EQ(here.size(), there.size());
  for (std::size_t i = 0; i < here.size(); ++i) {
    ASSERT_EQ(here[i].sizes(), there[i].sizes()) << what;
    ASSERT_EQ(here[i].scalar_type(), there[i].scalar_type()) << what;
    if (here[i].numel() == 0) continue;
    const Tensor want = here[i].detach().to(kFloat64), got = there[i].detach().to(kCPU).to(kFloat64);
    const double most = std::max(1.0, want.abs().max().item<double>());
    EXPECT_LE((want - got).abs().max().item<double>(), tolerance * most) << what << ", result " << i;
  }
}

double tolerance_of(Dtype dtype) { return dtype == kFloat64 ? 1e-12 : dtype == kFloat32 ? 2e-5 : 2e-2; }

Tensor numbers(IntArrayRef sizes, Dtype dtype = kFloat32) { return randn(sizes, kFloat64).to(dtype); }
Tensor leaf(const Tensor& values, const Device& device) { return values.to(device).set_requires_grad(true); }
/// Gradients of a sum that weighs every element of y otherwise.
std::vector<Tensor> with_gradients(const Tensor& y, const std::vector<Tensor>& leaves) {
  const Tensor weights = linspace(-1, 1, y.numel(), kFloat64).reshape(y.sizes()).to(y.scalar_type()).to(y.device());
  (y * weights).sum().backward();
  std::vector<Tensor> all{y};
  for (const Tensor& one : leaves) all.push_back(one.grad());
  return all;
}

TEST(CudaNetworks, ProductsTakeAddendsOfEveryShape) {
  for (const Dtype dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
    expect_like_the_cpu("products", tolerance_of(dtype), [&](const Device& device) {
      const auto on = [&](IntArrayRef sizes) { return numbers(sizes, dtype).to(device); };
      const Tensor a = on({5, 7}), b = on({7, 6}), c = on({3, 5, 7}), d = on({3, 7, 6});
      return std::vector<Tensor>{addmm(on({6}), a, b),
                                 addmm(on({5, 1}), a, b),
                                 addmm(on({5, 6}), a, b, 2, 3),
                                 addmm(on({6, 5}).t(), a, b, 0.5, 1),
                                 addmm(on({}), a, b),
                                 baddbmm(on({3, 5, 6}), c, d, 1, 2),
                                 baddbmm(on({5, 6}), c, d),
                                 baddbmm(on({3, 1, 6}), c, d),
                                 matmul(c, b),
                                 matmul(a, d),
                                 matmul(a.t(), c.select(0, 1)),
                                 matmul(on({40}).narrow(0, 3, 35).reshape({5, 7}), b),
                                 matmul(on({1}).expand({5, 7}), b),
                                 linear(c, on({4, 7}), on({4}))};
    });
  }
}

TEST(CudaNetworks, ProductsOfManyTermsKeepTheirDigits) {
  const Tensor tenths = full({1, 20000}, 0.1).to(Device("cuda:0"));
  EXPECT_NEAR(matmul(tenths, tenths.t()).to(kCPU).item<double>(), 200, 200 * 1e-5);
}

TEST(CudaNetworks, IntegersAreMultipliedModuloTheirRange) {
  for (const Dtype dtype : {kUInt8, kInt8, kInt16, kInt32, kInt64}) {
    expect_like_the_cpu("integers", 0, [&](const Device& device) {
      const auto on = [&](IntArrayRef sizes) { return randint(0, 90, sizes, dtype).to(device); };
      return std::vector<Tensor>{matmul(on({33, 17}), on({17, 35})), addmm(on({35}), on({33, 0}), on({0, 35})),
                                 baddbmm(on({2, 3, 4}), on({2, 3, 5}), on({2, 5, 4}), 3, 2)};
    });
  }
}

TEST(CudaNetworks, ConvolutionsOfOneDimensionAndOfMixedLayouts) {
  for (const Dtype dtype : {kFloat32, kFloat64, kFloat16}) {
    expect_like_the_cpu("conv1d", tolerance_of(dtype), [&](const Device& device) {
      const Tensor x = leaf(numbers({2, 4, 13}, dtype), device), w = leaf(numbers({6, 2, 3}, dtype), device),
                   bias = leaf(numbers({6}, dtype), device);
      return with_gradients(conv1d(x, w, bias, 2, 1, 2, 2), {x, w, bias});
    });
    expect_like_the_cpu("conv2d, x channels-last", tolerance_of(dtype), [&](const Device& device) {
      const Tensor x = leaf(numbers({2, 6, 5, 4}, dtype).permute({0, 3, 1, 2}), device),
                   w = leaf(numbers({3, 4, 3, 2}, dtype), device);
      return with_gradients(conv2d(x, w, {}, {1, 2}, {0, 1}), {x, w});
    });
    expect_like_the_cpu("conv_transpose2d", tolerance_of(dtype), [&](const Device& device) {
      const Tensor x = leaf(numbers({2, 4, 3, 5}, dtype), device), w = leaf(numbers({4, 3, 2, 3}, dtype), device);
      return with_gradients(conv_transpose2d(x, w, {}, 2, 1), {x, w});
    });
  }
  expect_like_the_cpu("no pictures", 0, [&](const Device& device) {
    const Tensor x = leaf(numbers({0, 4, 5, 5}), device), w = leaf(numbers({2, 4, 3, 3}), device);
    return with_gradients(conv2d(x, w), {x, w});
  });
}

TEST(CudaNetworks, PoolingOfEveryKindAndRank) {
  for (const Dtype dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
    const auto pooled = [&](const char* what, IntArrayRef sizes, const std::function<Tensor(const Tensor&)>& pool) {
      expect_like_the_cpu(what, tolerance_of(dtype), [&](const Device& device) {
        const Tensor x = leaf(numbers(sizes, dtype), device);
        return with_gradients(pool(x), {x});
      });
    };
    pooled("max, overlapping", {2, 3, 11, 9}, [](const Tensor& x) { return max_pool2d(x, 3, 1, 1); });
    pooled("max, dilated", {2, 3, 11, 9}, [](const Tensor& x) { return max_pool2d(x, 2, 2, 1, 3, true); });
    pooled("max of one dimension", {3, 40}, [](const Tensor& x) { return max_pool1d(x, 5, 2); });
    pooled("max of three", {2, 2, 5, 6, 7}, [](const Tensor& x) { return max_pool3d(x, 2, 1); });
    pooled("mean, ceil", {2, 3, 8, 9}, [](const Tensor& x) { return avg_pool2d(x, 3, 2, 1, true, true); });
    pooled("mean without padding", {2, 3, 8, 9}, [](const Tensor& x) { return avg_pool2d(x, 3, 2, 1, true, false); });
    pooled("mean, own divisor", {2, 3, 8, 9}, [](const Tensor& x) {
      return avg_pool2d(x, {2, 3}, 1, 0, false, true, 5);
    });
    pooled("mean of three", {2, 2, 5, 6, 7}, [](const Tensor& x) { return avg_pool3d(x, 2, 2, 1); });
    pooled("adaptive mean", {2, 3, 7, 10}, [](const Tensor& x) { return adaptive_avg_pool2d(x, {3, 4}); });
    pooled("adaptive mean, larger", {2, 3, 3, 4}, [](const Tensor& x) { return adaptive_avg_pool2d(x, {5, 9}); });
    pooled("adaptive max", {2, 3, 7, 10}, [](const Tensor& x) { return std::get<0>(adaptive_max_pool2d(x, {3, 4})); });
    pooled("columns", {2, 3, 7, 8}, [](const Tensor& x) { return im2col(x, {3, 2}, {1, 2}, {1, 0}, {2, 1}); });
  }
  for (const Dtype dtype : {kUInt8, kInt8, kInt16, kInt32, kInt64}) {
    expect_like_the_cpu("max of integers", 0, [&](const Device& device) {
      const auto [y, index] = max_pool2d_with_indices(randint(0, 100, {2, 9, 9}, dtype).to(device), 3, 2, 1);
      return std::vector<Tensor>{y, index};
    });
  }
}

TEST(CudaNetworks, AttentionOfWideHeadsAndOfViews) {
  for (const Dtype dtype : {kFloat32, kFloat64}) {
    const auto attended = [&](const char* what, std::int64_t width, std::int64_t value_width, bool causal,
                              double dropout) {
      expect_like_the_cpu(what, tolerance_of(dtype), [&](const Device& device) {
        const auto heads = [&](std::int64_t rows, std::int64_t columns) {
          return leaf(numbers({2, rows, 3, columns}, dtype), device);
        };
        const Tensor q = heads(9, width), k = heads(35, width), v = heads(35, value_width);
        manual_seed(9);  // on each device the numbers begin where its own generator stands
        const Tensor y = scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2),
                                                      std::nullopt, dropout, causal);
        return with_gradients(y, {q, k, v});
      });
    };
    const std::int64_t chunk = dtype == kFloat32 ? 64 : 32;
    attended("wide values", 6, chunk + 5, true, 0);
    attended("wide with dropout", chunk + 3, 9, false, 0.3);
    expect_like_the_cpu("a mask for some, blind rows", tolerance_of(dtype), [&](const Device& device) {
      const Tensor q = leaf(numbers({2, 2, 5, 6}, dtype), device);
      Tensor mask = ones({2, 1, 5, 5}, kBool);
      mask.select(2, 3).fill_(false);
      return with_gradients(scaled_dot_product_attention(q, q, q, mask.to(device)), {q});
    });
  }
}

TEST(CudaNetworks, OptimisersTakeManyTensorsOfSeveralTypes) {
  for (const bool adam : {false, true}) {
    expect_like_the_cpu(adam ? "adam" : "sgd", 2e-2, [&](const Device& device) {
      std::vector<Tensor> parameters;
      for (int i = 0; i < 150; ++i) {
        const Dtype dtype = i % 50 == 3 ? kFloat64 : i % 50 == 7 ? kBFloat16 : kFloat32;
        const Tensor p = leaf(numbers({i % 9, 1 + i * 7 % 300}, dtype), device);
        if (i % 20 != 5) p.mutable_grad() = numbers({i % 9, 1 + i * 7 % 300}, dtype).to(device);
        parameters.push_back(p);
      }
      const auto run = [&](optim::Optimizer& optimizer) {
        for (int step = 0; step < 3; ++step) optimizer.step();
      };
      if (adam) {
        optim::Adam optimizer(parameters, optim::AdamOptions(1e-2).amsgrad(true).weight_decay(0.1));
        run(optimizer);
      } else {
        optim::SGD optimizer(parameters, optim::SGDOptions(1e-2).momentum(0.9).nesterov(true).weight_decay(0.1));
        run(optimizer);
      }
      return parameters;
    });
  }
}

TEST(CudaNetworks, SequencesAndRandomNumbersOfEveryType) {
  for (const Dtype dtype : {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64}) {
    expect_like_the_cpu(std::string(name_of(dtype)), dtype == kFloat16 || dtype == kBFloat16 ? 1e-2 : 2e-6,
                        [&](const Device& device) {
                          const TensorOptions options = TensorOptions().dtype(dtype).device(device);
                          std::vector<Tensor> all{eye(5, 7, options), randint(0, 2, {1001}, options),
                                                  empty({1003}, options).bernoulli_(0.3),
                                                  bernoulli(linspace(0, 1, 1001, kFloat64).to(device)).to(dtype)};
                          if (dtype != kBool) {
                            all.push_back(arange(2, 101, 3, options));
                            all.push_back(randperm(77, options));
                          }
                          if (is_floating_point(dtype)) {
                            all.push_back(linspace(-1, 1, 37, options));
                            all.push_back(rand({1001}, options));
                            all.push_back(randn({1001}, options));
                            all.push_back(empty({1001}, options).exponential_(2));
                          }
                          return all;
                        });
  }
}

TEST(CudaNetworks, AProbabilityOutsideOfItsRangeIsAnErrorAtTheNextSynchronisation) {
  const Tensor p = full({4}, 1.5).to(Device("cuda:0"));
  EXPECT_THROW(bernoulli(p).to(kCPU), Error);
}

TEST(CudaNetworks, RecurrentLayersOfBothPrecisions) {
  for (const Dtype dtype : {kFloat32, kFloat64}) {
    expect_like_the_cpu("lstm", tolerance_of(dtype), [&](const Device& device) {
      nn::LSTM lstm(nn::LSTMOptions(5, 7).num_layers(2).bidirectional(true));
      lstm->to(dtype);
      lstm->to(device);
      const Tensor x = leaf(numbers({4, 3, 5}, dtype), device);
      return with_gradients(std::get<0>(lstm->forward(x)), {x});
    });
    expect_like_the_cpu("gru", tolerance_of(dtype), [&](const Device& device) {
      nn::GRU gru(nn::GRUOptions(5, 7));
      gru->to(dtype);
      gru->to(device);
      const Tensor x = leaf(numbers({4, 3, 5}, dtype), device);
      return with_gradients(std::get<0>(gru->forward(x)), {x});
    });
  }
}

}  // namespace
}  // namespace tenon::test
