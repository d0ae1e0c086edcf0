// Edges of operators: NaN, nothing, scalars, integers where floating numbers are usual. As in PyTorch.
#include "../support/expect_error.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/nn/vision.h>
#include <tenon/ops/ops.h>

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace tenon {
namespace {

using test::expect_error;

TEST(Edge, MedianOfANaNIsNaN) {
  EXPECT_TRUE(std::isnan(tensor({1.0, static_cast<double>(NAN), 0.0}).median().item<float>()));
  EXPECT_EQ(tensor({1.0, 3.0, 2.0, 0.0}).median().item<float>(), 1);
  EXPECT_EQ(zeros({0}, kUInt8).median().scalar_type(), kUInt8) << "of nothing: a NaN as the integer has it";
}

TEST(Edge, DigammaHasItsPolesWherePyTorchHasThem) {
  const Tensor y = digamma(tensor({0.0, -0.0, -1.0}));
  EXPECT_EQ(y[0].item<float>(), -INFINITY);
  EXPECT_EQ(y[1].item<float>(), INFINITY);
  EXPECT_TRUE(std::isnan(y[2].item<float>()));
}

TEST(Edge, AMaximumOverAWindowIsNaNWhereverTheNaNLies) {
  for (const std::int64_t size : {2, 3}) {  // the window of two by two has a loop of its own
    for (std::int64_t at = 0; at < size * size; ++at) {
      Tensor x = arange(1, 1 + size * size, kFloat32).reshape({1, 1, size, size});
      x.view({-1})[at].fill_(NAN);
      const auto [y, index] = max_pool2d_with_indices(x, {size, size}, {size, size});
      EXPECT_TRUE(std::isnan(y.item<float>())) << size << ", " << at;
      EXPECT_EQ(index.item<std::int64_t>(), at);
    }
  }
}

// Rows shorter than a vector, longer than what is taken at once, and with an element left over; ties and NaN.
TEST(Edge, AMaximumOfTwoByTwoIsTheFirstOfTheLargestInRowsOfAnyLength) {
  std::mt19937 random(53);
  for (const Dtype dtype : {kFloat32, kFloat64, kInt64}) {
    for (const std::int64_t width : {2, 3, 10, 28, 29, 32, 33, 34, 1024, 1025, 1026, 2060}) {
      for (const std::int64_t height : {2, 5, 28}) {
        const Tensor x = empty({2, height, width}, kFloat64);
        for (std::int64_t i = 0; i < x.numel(); ++i)
          x.data_ptr<double>()[i] = random() % 20 == 0 && dtype != kInt64 ? NAN : static_cast<double>(random() % 5);
        const auto [y, index] = max_pool2d_with_indices(x.to(dtype), {2, 2});
        const Tensor got = y.to(kFloat64);
        const auto *values = got.data_ptr<double>(), *from = x.data_ptr<double>();
        const auto* places = index.data_ptr<std::int64_t>();
        for (std::int64_t c = 0; c < 2; ++c) {
          for (std::int64_t h = 0; h < height / 2; ++h) {
            for (std::int64_t w = 0; w < width / 2; ++w) {
              std::int64_t best = 2 * h * width + 2 * w;
              for (const std::int64_t other : {best + 1, best + width, best + width + 1}) {
                const double a = from[c * height * width + other], b = from[c * height * width + best];
                if (a > b || std::isnan(a)) best = other;
              }
              ASSERT_EQ(*places++, best) << width << " x " << height << ", " << h << ", " << w;
              const double want = from[c * height * width + best], value = *values++;
              ASSERT_TRUE(value == want || (std::isnan(value) && std::isnan(want)));
            }
          }
        }
      }
    }
  }
}

TEST(Edge, AnInfinityStaysInTheWindowsOfAConvolution) {
  // Large enough that the cpu computes it by tiles, which know no windows; in double it sums windows.
  const auto infinite_somewhere = [](const Tensor& x) {
    const Tensor y = x.clone();
    y.view({-1})[y.numel() / 3].fill_(INFINITY);
    return y;
  };
  const Tensor x = arange(2. * 64 * 48 * 47, kFloat32).remainder(7).sub(3).reshape({2, 64, 48, 47});
  const Tensor w = arange(64. * 64 * 9, kFloat32).remainder(5).sub(2.5).reshape({64, 64, 3, 3});
  const Tensor dy = arange(2. * 64 * 46 * 45, kFloat32).remainder(11).sub(5.5).reshape({2, 64, 46, 45});
  const auto results_of = [](Tensor x, Tensor w, const Tensor& dy, Dtype dtype) {
    x = x.to(dtype).requires_grad_(true), w = w.to(dtype).requires_grad_(true);
    const Tensor y = conv2d(x, w);  // no border: sums of windows differ in whether they multiply what is not there
    const auto slopes = autograd::grad({y}, {x, w}, {dy.to(dtype)});
    return std::vector<Tensor>{y.detach(), slopes[0], slopes[1]};
  };
  for (const int where : {0, 1, 2}) {
    const Tensor a = where == 0 ? infinite_somewhere(x) : x, b = where == 1 ? infinite_somewhere(w) : w,
                 c = where == 2 ? infinite_somewhere(dy) : dy;
    const auto got = results_of(a, b, c, kFloat32), want = results_of(a, b, c, kFloat64);
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(got[i].isfinite().equal(want[i].isfinite())) << "infinity in " << where << ", result " << i;
      EXPECT_TRUE(got[i].isnan().equal(want[i].isnan())) << "infinity in " << where << ", result " << i;
    }
  }
}

TEST(Edge, ANaNInAGridShowsExceptAtABorder) {
  const Tensor x = arange(1, 17, kFloat32).reshape({1, 1, 4, 4});
  const Tensor grid = full({1, 1, 1, 2}, NAN);
  EXPECT_TRUE(std::isnan(grid_sampler(x, grid, 0, 0, false).item<float>()));
  EXPECT_EQ(grid_sampler(x, grid, 0, 1, false).item<float>(), 1) << "the border takes it to the first place";
  EXPECT_EQ(grid_sampler(x, grid, 0, 2, false).item<float>(), 1);
}

TEST(Edge, NormsOfNothingGiveTheirParametersNoGradient) {
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{0, 3}, std::vector<std::int64_t>{0, 3, 2}, std::vector<std::int64_t>{2, 3, 0}}) {
    const std::vector<std::string> norms = {"training", "evaluation", "group", "instance"};
    for (const std::string& norm : norms) {
      if (norm == "instance" && sizes.size() == 2) continue;
      for (std::int64_t n = 1; n < 9; ++n) full({n}, NAN);  // what new memory may hold
      const Tensor x = zeros(sizes, requires_grad());
      const Tensor weight = ones({3}, requires_grad()), bias = ones({3}, requires_grad());
      const Tensor y = norm == "group" ? group_norm(x, 3, weight, bias)
                       : norm == "instance"
                           ? instance_norm(x, weight, bias, {}, {}, true, 0.1, 1e-5, false)
                           : batch_norm(x, weight, bias, zeros({3}), ones({3}), norm == "training", 0.1, 1e-5, false);
      EXPECT_EQ(y.sizes(), x.sizes());
      y.sum().backward();
      EXPECT_TRUE(weight.grad().equal(zeros({3}))) << norm << " of " << sizes.size() << " dimensions";
      EXPECT_TRUE(bias.grad().equal(zeros({3}))) << norm << " of " << sizes.size() << " dimensions";
    }
  }
}

TEST(Edge, LogSumExpOfNothingIsMinusInfinity) {
  EXPECT_TRUE(zeros({0, 3}).logsumexp(0).equal(full({3}, -INFINITY)));
  EXPECT_TRUE(zeros({0}).logsumexp(0).equal(full({}, -INFINITY)));
}

TEST(Edge, MeshgridFollowsItsIndexing) {
  const Tensor x = tensor({1.0, 2.0, 3.0});
  const Tensor y = tensor({4.0, 5.0});
  const std::vector<Tensor> ij = meshgrid({x, y}, "ij");
  const std::vector<Tensor> xy = meshgrid({x, y}, "xy");
  EXPECT_TRUE(xy[0].equal(ij[0].t())) << "the first input runs along the columns";
  EXPECT_TRUE(xy[1].equal(ij[1].t()));
  expect_error([&] { meshgrid({x, y}, "yx"); }, "indexing must be one of");
  expect_error([&] { meshgrid({x, ones({2}, kInt64)}, "ij"); }, "expects all tensors to have the same dtype");
  expect_error([&] { meshgrid({x, ones({2, 2})}, "ij"); }, "Expected 0D or 1D tensor");
}

TEST(Edge, FlipRollAndTakeHandleScalarsAndEmptiness) {
  EXPECT_TRUE(tensor(3.0f).flip({0}).equal(tensor(3.0f)));
  expect_error([] { ones({2, 2}).flip({0, 0}); }, "dim 0 appears multiple times in the list of dims");
  const Tensor nothing = zeros({0, 3});
  EXPECT_FALSE(nothing.roll(1, 0).is_same(nothing));
  EXPECT_TRUE(arange(6).reshape({2, 3}).take(tensor({{-1, 0}})).equal(tensor({{5, 0}})));
}

TEST(Edge, IntegersStayIntegers) {
  const Tensor x = tensor({-7, 3, 9});
  EXPECT_TRUE(hardtanh(x, -2, 5).equal(tensor({-2, 3, 5})));
  EXPECT_TRUE(relu6(x).equal(tensor({0, 3, 6})));
  EXPECT_EQ(relu6(x).scalar_type(), kInt64);
  EXPECT_TRUE(threshold(x, 3, 20).equal(tensor({20, 20, 9})));
  EXPECT_EQ(threshold(x, 3, 20).scalar_type(), kInt64);
  EXPECT_EQ(tensor({true, false}).sign().scalar_type(), kBool);
  EXPECT_TRUE(logspace(0, 3, 4, 10, kInt64).equal(tensor({1, 10, 100, 1000})));
  EXPECT_EQ(logspace(0, 3, 4, 10, kInt64).scalar_type(), kInt64);
}

TEST(Edge, WhatHasNoMeaningIsRefused) {
  expect_error(
      [] {
        ones({2, 3, 4}).contiguous(MemoryFormat::ChannelsLast);
      },
      "required rank 4 tensor to use channels_last format");
  expect_error([] { ones({2, 3, 4}).clone(MemoryFormat::ChannelsLast); }, "required rank 4 tensor");
  expect_error([] { randint(0, 300, {3}, kUInt8); }, "to - 1 is out of bounds for unsigned char");
  EXPECT_EQ(randint(0, 256, {3}, kUInt8).numel(), 3);
  expect_error([] { isclose(ones({1}), ones({1}), -1); }, "rtol must be greater than or equal to zero, but got -1");
  const Tensor one = ones({2}, kInt64);
  expect_error([&] { addcdiv(one, one, one); }, "Integer division with addcdiv is no longer supported");
  expect_error([&] { elu(one); }, "\"elu_cpu\" not implemented for 'Long'");
  expect_error([&] { silu(one); }, "\"silu_cpu\" not implemented for 'Long'");
  expect_error([&] { leaky_relu(one); }, "\"leaky_relu_cpu\" not implemented for 'Long'");
  expect_error(
      [] {
        addmm(ones({3}), ones({2, 2}), ones({2, 2}));
      },
      "The expanded size of the tensor (2) must match the existing size (3) at non-singleton dimension 1");
  expect_error<IndexError>([] { ones({}).slice(0, 0, 1); }, "slice() cannot be applied to a 0-dim tensor.");
  expect_error<IndexError>([] { ones({2})[tensor({1})]; }, "Can only index with tensors that are scalars (zero-dim)");
  expect_error<IndexError>(
      [] {
        ones({2, 3, 4})[2];
      },
      "select(): index 2 out of range for tensor of size [2, 3, 4] at dimension 0");
}

TEST(Edge, ErrorsAreOfTheKindThatLibtorchThrows) {
  const Tensor x = ones({3, 4});
  expect_error<IndexError>([&] { nll_loss(x, tensor({0, 1, 7})); }, "Target 7 is out of bounds.");
  expect_error<IndexError>([] { zeros({0}).argmax(); }, "argmax(): Expected reduction dim to be specified");
  expect_error<IndexError>([] { zeros({0, 3}).max(0); }, "max(): Expected reduction dim 0 to have non-zero size.");
  expect_error<IndexError>([] { zeros({0, 3}).amax(0); }, "amax(): Expected reduction dim 0 to have non-zero size.");
  expect_error<IndexError>([&] { ones({})[0]; }, "select() cannot be applied to a 0-dim tensor.");
  expect_error<IndexError>([&] { ones({}).index({indexing::Slice()}); },
                           "slice() cannot be applied to a 0-dim tensor.");
  expect_error<ValueError>([&] { x.index({indexing::Slice(indexing::None, indexing::None, -1)}); },
                           "step must be greater than zero");
  const auto refused = [](const auto& call) {
    try {
      call();
    } catch (const IndexError& error) {
      ADD_FAILURE() << "an IndexError: " << error.what();
    } catch (const Error&) {
      return;
    }
    ADD_FAILURE() << "nothing was thrown";
  };
  refused([&] { x.gather(1, tensor({{4}})); });
  refused([&] { x.scatter(1, tensor({{4}}), tensor({{1.0}})); });
}

TEST(Edge, ChancesLieBetweenNoneAndCertain) {
  const Tensor p = tensor({0.5, 2.0});
  expect_error([&] { bernoulli(p); }, "Expected p_in >= 0 && p_in <= 1 to be true");
  expect_error([] { bernoulli(full({3}, NAN)); }, "outside [0, 1]");
  expect_error([&] { binary_cross_entropy(p, ones({2}), {}, 1); }, "all elements of input should be between 0 and 1");
  expect_error(
      [] {
        binary_cross_entropy_with_logits(ones({3, 4}), ones({4}), {}, {}, 1);
      },
      "output with shape [4] doesn't match the broadcast shape [3, 4]");
}

TEST(Edge, TargetsAreOfOneTypeAndOnePerRow) {
  const Tensor x = ones({3, 4});
  expect_error(
      [&] {
        nll_loss(x, tensor({0, 1, 2}, kInt32));
      },
      "expected target dtype to be Long or Byte, but got Int");
  expect_error<ValueError>(
      [&] {
        nll_loss(x, tensor({0, 1}));
      },
      "Expected input batch_size (3) to match target batch_size (2).");
}

TEST(Edge, TargetsOfClassesMayBeBytes) {
  const Tensor x = tensor({{0.5f, 1.f, 2.f}, {3.f, 4.f, 5.f}});
  EXPECT_TRUE(nll_loss(x, tensor({0, 2}, kUInt8)).equal(nll_loss(x, tensor({0, 2}))));
  EXPECT_EQ(nll_loss(x[0], tensor({1}), {}, Reduction::None).dim(), 0);
  expect_error([&] { nll_loss(ones({2, 3, 1}), zeros({2, 1}, kUInt8)); }, "expected scalar type Long but found Byte");
}

TEST(Edge, IntegersAreConvolvedAndWrap) {
  const Tensor x = arange(1, 19).reshape({1, 2, 3, 3});
  const Tensor w = arange(1, 17).reshape({2, 2, 2, 2});
  const auto exact = [](const Tensor& whole, const Tensor& real) {
    EXPECT_EQ(whole.scalar_type(), kInt64);
    EXPECT_TRUE(whole.equal(real.round().to(kInt64)));
  };
  const Tensor X = x.to(kDouble), W = w.to(kDouble), bias = tensor({3, -4});
  exact(conv2d(x, w), conv2d(X, W));
  exact(conv2d(x, w, bias, 2, 1, 2), conv2d(X, W, bias.to(kDouble), 2, 1, 2));
  exact(conv2d(x, w.slice(1, 0, 1), {}, 1, 1, 1, 2), conv2d(X, W.slice(1, 0, 1), {}, 1, 1, 1, 2));
  exact(conv2d(x[0], w), conv2d(X[0], W));
  exact(conv1d(x[0].slice(1, 0, 2), w[0]), conv1d(X[0].slice(1, 0, 2), W[0]));
  exact(conv3d(x.unsqueeze(0), w.unsqueeze(1).slice(2, 0, 1)), conv3d(X.unsqueeze(0), W.unsqueeze(1).slice(2, 0, 1)));
  exact(conv_transpose2d(x, w), conv_transpose2d(X, W));
  exact(conv_transpose2d(x, w, bias, 2, 1, 1, 1, 3), conv_transpose2d(X, W, bias.to(kDouble), 2, 1, 1, 1, 3));
  exact(conv_transpose2d(x, w, {}, 3, 2, 0, 2), conv_transpose2d(X, W, {}, 3, 2, 0, 2));
  const Tensor small = full({1, 1, 2, 2}, 100, kInt8);
  EXPECT_EQ(conv2d(small, ones({1, 1, 2, 2}, kInt8)).item<int>(), -112);
  expect_error<NotImplementedError>([&] { conv2d(small.to(kBool), small.to(kBool)); }, "not implemented for 'Bool'");
}

TEST(Edge, ReductionsSayWhatTheyWereCalled) {
  const Tensor whole = ones({2}, kInt64);
  expect_error([] { zeros({0}).max(); },
               "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
               "reduction dim with the 'dim' argument.");
  expect_error([&] { whole.norm(); },
               "norm(): input dtype should be either floating point or complex. Got Long instead.");
  expect_error([&] { whole.std(); }, "std and var only support floating point and complex dtypes");
  expect_error([] { arange(INFINITY); }, "unsupported range: 0 -> inf");
}

// Long: a list, one message an entry.
TEST(Edge, ShapesThatFitNothingAreNamed) {
  const Tensor x = ones({2, 3});
  const Tensor none = ones({});
  expect_error([&] { x.narrow(0, 0, -1); }, "start (0) + length (-1) exceeds dimension size (2).");
  expect_error([&] { none.narrow(0, 0, 1); }, "narrow() cannot be applied to a 0-dim tensor.");
  expect_error<IndexError>([&] { x.narrow(1, 4, 0); },
                           "Dimension out of range (expected to be in range of [-3, 2], but got 4)");
  expect_error([&] { x.split(0); }, "split_size can only be 0 if dimension size is 0, but got dimension size of 2");
  expect_error([&] { none.split(1); }, "split expects at least a 1-dimensional tensor");
  expect_error([&] { x.permute({0, 0}); }, "permute(): duplicate dims are not allowed.");
  expect_error([&] { x.repeat({-1, 1}); }, "Trying to create tensor with negative dimension -2: [-2, 3]");
  expect_error([&] { x.roll({1, 2}, {0}); }, "shifts and dimensions must align. shifts: 2, dims:1");
  expect_error(
      [&] {
        x.unflatten(1, {2, 2});
      },
      "unflatten: Provided sizes [2, 2] don't multiply up to the size of dim 1 (3)");
  expect_error([] { ones({2, 2, 2}).diag(); }, "matrix or a vector expected");
  expect_error([&] { outer(x, ones({3})); }, "outer: Expected 1-D argument self, but got 2-D");
  expect_error([] { dot(ones({2}), ones({2}, kFloat64)); },
               "dot : expected both vectors to have same dtype, but found Float and Double");
  expect_error([&] { mm(x, ones({3, 2}, kFloat64)); }, "(in operator mm)");
  expect_error([] { cross(ones({2, 3}), ones({3})); }, "inputs must have the same number of dimensions");
  expect_error(
      [] {
        cross(ones({3, 2}), ones({3, 2}), 1);
      },
      "linalg.cross: inputs dimension 1 must have length 3. Got 2 and 2");
  expect_error(
      [] {
        bmm(ones({2, 2, 3}), ones({2, 2, 3}));
      },
      "Expected size for first two dimensions of batch2 tensor to be: [2, 3] but got: [2, 2].");
  expect_error([&] { addmm(ones({2, 2}, kFloat64), x, ones({3, 2})); }, "self and mat2 must have the same dtype");
  expect_error([&] { lerp(x, x, ones({2, 3}, kFloat64)); }, "expected dtype float for `weight` but got dtype double");
  expect_error([&] { constant_pad_nd(x, {1}); }, "Length of pad must be even but instead it equals 1");
  expect_error([&] { layer_norm(x, {2}); },
               "Given normalized_shape=[2], expected input with shape [*, 2], but got input of size[2, 3]");
  expect_error([&] { batch_norm(x, ones({2}), {}, {}, {}, true, 0.1, 1e-5, false); },
               "weight should contain 3 elements not 2");
  expect_error<NotImplementedError>([&] { pad(x, {1, 1}, "foo"); }, "Unrecognised padding mode foo");
  Tensor y = ones({2, 3});
  expect_error(
      [&] {
        y.index_put_({0}, ones({2, 2, 3}));
      },
      "expand(CPUFloatType{[2, 2, 3]}, size=[3]): the number of sizes provided (1) must be greater or equal to the "
      "number of dimensions in the tensor (3)");
  const Tensor map = ones({1, 1, 4, 4});
  expect_error([&] { conv2d(map, ones({1, 1, 0, 2})); }, "kernel size should be greater than zero");
  expect_error(
      [&] {
        conv2d(map, ones({1, 1, 5, 2}));
      },
      "Calculated padded input size per channel: (4 x 4). Kernel size: (5 x 2). Kernel size can't be greater than "
      "actual "
      "input size");
  expect_error(
      [&] {
        conv2d(map, ones({1, 1, 2, 2}), ones({2}));
      },
      "Given weight of size [1, 1, 2, 2], expected bias to be 1-dimensional with 1 elements, but got bias of size [2] "
      "instead");
  expect_error(
      [] {
        max_pool2d(ones({1, 1, 2, 2}), 3);
      },
      "Given input size: (1x2x2). Calculated output size: (1x0x0). Output size is too small");
  expect_error(
      [] {
        conv2d(ones({1, 1, 0, 4}), ones({1, 1, 2, 2}), {}, 1, 1);
      },
      "Only zero batch or zero channel inputs are supported, but got input shape: [1, 1, 0, 4]");
  for (const auto* mode : {"constant", "reflect", "replicate", "circular"}) {
    expect_error(
        [&] {
          pad(map, {-2, -3}, mode);
        },
        "The input size 4, plus negative padding -2 and -3, resulted in a negative");
  }
}

}  // namespace
}  // namespace tenon
