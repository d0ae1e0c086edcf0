// The ways in which convolutions are computed in float32 and 16 bits (by transformed tiles, as products of pictures, in
// blocks of channels) beside the plain one in double, at the sizes where each begins.
#include <tenon/ops/all_ops.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace tenon {
namespace {

Tensor drawn_numbers(IntArrayRef sizes, std::int64_t step) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  const Tensor i = arange(count, TensorOptions(kInt64));
  return i.mul(step).add(i.div(97, "floor")).remainder(17).sub(8).to(kFloat64).div(8).view(sizes);
}

/// Value and gradients in that dtype are those in double, of which they may differ by so much for each unit of their
/// largest element.
void expect_like_double(const Tensor& x, const Tensor& w, const Tensor& b, std::int64_t stride, std::int64_t padding,
                        Dtype dtype, double tolerance) {
  const std::string which = std::to_string(x.size(0)) + " pictures of " + to_string(x.sizes()) + ", weight " +
                            to_string(w.sizes()) + ", padding " + std::to_string(padding) + ", " + toString(dtype);
  std::vector<Tensor> wide, narrow;
  for (const Tensor& one : {x, w, b}) {
    wide.push_back(one.clone().requires_grad_());
    narrow.push_back(one.to(dtype).requires_grad_());
  }
  const Tensor expected = conv2d(wide[0], wide[1], wide[2], stride, padding);
  const Tensor found = conv2d(narrow[0], narrow[1], narrow[2], stride, padding);
  const auto expect_near = [&](const Tensor& one, const Tensor& other, const char* what) {
    const double largest = other.abs().max().item<double>();
    EXPECT_LE((one.to(kFloat64) - other).abs().max().item<double>(), tolerance * (largest + 1))
        << which << ": " << what;
  };
  expect_near(found.detach(), expected.detach(), "value");
  const Tensor without = conv2d(narrow[0].detach(), narrow[1].detach(), {}, stride, padding);
  expect_near(without, (expected - wide[2].view({-1, 1, 1})).detach(), "value without a bias");
  const Tensor weights = drawn_numbers(expected.sizes(), 5);
  (expected * weights).sum().backward();
  (found * weights.to(dtype)).sum().backward();
  const char* const names[] = {"gradient of the input", "of the weight", "of the bias"};
  for (std::size_t k = 0; k < 3; ++k) expect_near(narrow[k].grad(), wide[k].grad(), names[k]);
}

TEST(ConvolutionWays, WindowsOfThreeByThreeInTiles) {
  // 512 tiles for each thread.
  const std::int64_t threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 8);
  struct Case {
    std::int64_t in, out, h, w, padding;
  };
  for (const Case& c : {Case{64, 64, 31, 33, 1}, Case{64, 65, 34, 30, 0}, Case{67, 64, 29, 31, 2}}) {
    const std::int64_t tiles = ((c.h + 2 * c.padding - 1) / 2) * ((c.w + 2 * c.padding - 1) / 2);
    const std::int64_t batch = (512 * threads + tiles - 1) / tiles;
    expect_like_double(drawn_numbers({batch, c.in, c.h, c.w}, 7), drawn_numbers({c.out, c.in, 3, 3}, 3),
                       drawn_numbers({c.out}, 5), 1, c.padding, kFloat32, 1e-5);
  }
}

TEST(ConvolutionWays, AnInfiniteInputReachesItsOwnWindowsAlone) {
  const std::int64_t threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 8);
  Tensor x = drawn_numbers({3 * threads, 64, 30, 30}, 7).to(kFloat32);
  x[0][0][10][10].fill_(std::numeric_limits<float>::infinity());
  const Tensor w = full({64, 64, 3, 3}, 0.5);
  const Tensor y = conv2d(x, w, {}, 1, 1);
  EXPECT_FALSE(y.isnan().any().item<bool>());
  EXPECT_EQ(y.isinf().sum().item<std::int64_t>(), 64 * 9);
}

TEST(ConvolutionWays, WindowsOfOneElementAsProducts) {
  for (const auto& [in, out] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 5}, {40, 70}, {130, 33}}) {
    for (const std::int64_t batch : {1, 2, 9}) {
      for (const auto& [h, w] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {2, 3}, {7, 5}, {20, 21}}) {
        for (const std::int64_t stride : {1, 2}) {
          expect_like_double(drawn_numbers({batch, in, h, w}, 7), drawn_numbers({out, in, 1, 1}, 3),
                             drawn_numbers({out}, 5), stride, 0, kFloat32, 1e-5);
        }
      }
    }
  }
  expect_like_double(drawn_numbers({4, 64, 40, 40}, 7), drawn_numbers({128, 64, 1, 1}, 3), drawn_numbers({128}, 5), 1,
                     0, kFloat32, 1e-5);
  expect_like_double(drawn_numbers({40, 128, 6, 6}, 7), drawn_numbers({192, 128, 1, 1}, 3), drawn_numbers({192}, 5), 1,
                     0, kFloat32, 1e-5);
}

TEST(ConvolutionWays, SixteenBitsInBlocksOfChannels) {
  for (const Dtype dtype : {kBFloat16, kFloat16}) {
    for (const auto& [in, out] : {std::pair<std::int64_t, std::int64_t>{16, 16}, {32, 48}, {17, 31}, {3, 32}}) {
      for (const auto& [h, w] : {std::pair<std::int64_t, std::int64_t>{4, 4}, {7, 9}, {16, 5}}) {
        for (const std::int64_t kernel : {1, 3}) {
          expect_like_double(drawn_numbers({2, in, h, w}, 7), drawn_numbers({out, in, kernel, kernel}, 3),
                             drawn_numbers({out}, 5), 1, kernel / 2, dtype, 0.02);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon
