// What convolutions and pools make of sizes, kernels, strides, paddings and dilations, and what they say of those that
// do not fit. Their values stand against loops in generated/.
#include "../../support/message_of.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensor/literal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tenon::test {
namespace {

using Lengths = std::vector<std::int64_t>;

Tensor image_of(const Lengths& sizes) { return ones(sizes); }
Lengths sizes_of(const Tensor& tensor) { return tensor.sizes().vec(); }

TEST(ConvolutionRules, StridesPaddingsAndDilationsAreOneOrAsManyAsThereAreDimensions) {
  const Tensor x = image_of({1, 2, 6, 7}), w = ones({4, 2, 2, 3});
  EXPECT_EQ(sizes_of(conv2d(x, w)), (Lengths{1, 4, 5, 5}));
  EXPECT_EQ(sizes_of(conv2d(x, w, {}, {2, 1}, {1, 0}, {1, 2})), (Lengths{1, 4, 4, 3}));
  EXPECT_EQ(sizes_of(conv2d(x[0], w, {}, 2)), (Lengths{4, 3, 3})) << "without a batch";
  EXPECT_EQ(sizes_of(conv2d(image_of({0, 2, 6, 7}), w)), (Lengths{0, 4, 5, 5}));
  EXPECT_EQ(sizes_of(conv2d(x, ones({4, 2, 6, 7}))), (Lengths{1, 4, 1, 1})) << "as large as the input";
  EXPECT_EQ(message_of([&] {
              conv2d(x, w, {}, {1, 1, 1});
            }),
            "conv2d: expected stride to be a single integer value or a list of 2 values to match the convolution "
            "dimensions, but got stride=[1, 1, 1]");
  EXPECT_THAT(message_of([&] { conv2d(x, w, {}, 1, {1, 1, 1}); }), testing::HasSubstr("expected padding to be"));
  EXPECT_THAT(message_of([&] { conv2d(x, w, {}, 1, 0, {1, 1, 1}); }), testing::HasSubstr("expected dilation to be"));
  EXPECT_EQ(message_of([&] {
              conv2d(x, w, {}, {1, 0});
            }),
            "conv2d: non-positive stride is not supported, got stride=[1, 0]");
  EXPECT_EQ(message_of([&] {
              conv2d(x, w, {}, 1, {-1, 0});
            }),
            "conv2d: negative padding is not supported, got padding=[-1, 0]");
  EXPECT_EQ(message_of([&] { conv2d(x, w, {}, 1, 0, 0); }),
            "conv2d: non-positive dilation is not supported, got dilation=[0]");
  EXPECT_EQ(message_of([&] { conv2d(x, w, {}, 1, 0, 1, 0); }),
            "conv2d: non-positive groups is not supported, got groups=0");
}

TEST(ConvolutionRules, WhatDoesNotFitIsSaidWithItsSizes) {
  const Tensor x = image_of({1, 2, 6, 7}), w = ones({4, 2, 2, 3});
  EXPECT_EQ(message_of([&] { conv2d(x[0][0], w); }),
            "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [6, 7]");
  EXPECT_THROW(conv2d(x.unsqueeze(0), w), Error);
  EXPECT_EQ(message_of([&] { conv1d(x[0], w); }),
            "conv1d: expected a weight of 3 dimensions, but got weight of size: [4, 2, 2, 3]");
  EXPECT_EQ(message_of([&] { conv2d(x, w, {}, 1, 0, 1, 3); }),
            "Given groups=3, expected weight to be at least 3 at dimension 0 and divisible by it, but got weight of "
            "size [4, 2, 2, 3] instead");
  EXPECT_THROW(conv2d(image_of({1, 10, 6, 7}), w, {}, 1, 0, 1, 5), Error);
  EXPECT_THROW(conv2d(image_of({1, 4, 6, 7}), ones({0, 2, 2, 3}), {}, 1, 0, 1, 2), Error) << "less than the groups";
  EXPECT_EQ(message_of([&] {
              conv2d(image_of({1, 3, 6, 7}), w);
            }),
            "Given groups=1, weight of size [4, 2, 2, 3], expected input[1, 3, 6, 7] to have 2 channels, but got 3 "
            "channels instead");
  EXPECT_NO_THROW(conv2d(image_of({1, 4, 6, 7}), w, {}, 1, 0, 1, 2));
  EXPECT_EQ(
      message_of([&] { conv2d(x, w, ones({3})); }),
      "Given weight of size [4, 2, 2, 3], expected bias to be 1-dimensional with 4 elements, but got bias of size "
      "[3] instead (in conv2d)");
  EXPECT_THROW(conv2d(x, w, ones({4, 1})), Error);
  EXPECT_EQ(message_of([&] {
              conv2d(x, ones({4, 2, 0, 3}));
            }),
            "conv2d: kernel size should be greater than zero, but got weight of size [4, 2, 0, 3]");
  EXPECT_EQ(message_of([&] {
              conv2d(image_of({1, 2, 6, 0}), ones({4, 2, 2, 1}));
            }),
            "Only zero batch or zero channel inputs are supported, but got input shape: [1, 2, 6, 0] (conv2d)");
  EXPECT_EQ(message_of([&] {
              conv2d(x, ones({4, 2, 2, 5}), {}, 1, {1, 0}, {1, 2});
            }),
            "Calculated padded input size per channel: (8 x 7). Kernel size: (2 x 9). Kernel size can't be greater "
            "than actual input size (in conv2d, input of size [1, 2, 6, 7])");
  EXPECT_THROW(conv2d(x, w.to(kFloat64)), Error);
  EXPECT_THROW(conv2d(x, w, ones({4}, kFloat64)), Error);
}

TEST(ConvolutionRules, PaddingByItsNameKeepsTheSizesAndTheOddOneStandsOnTheRight) {
  const Tensor x = tensor({{{1.f, 2.f, 3.f, 4.f}}}), w = tensor({{{1.f, 10.f}}});
  EXPECT_TRUE(conv1d(x, w, {}, 1, "same").equal(tensor({{{21.f, 32.f, 43.f, 4.f}}})));
  EXPECT_TRUE(conv1d(x[0], w, {}, 1, "same").equal(tensor({{21.f, 32.f, 43.f, 4.f}})));
  EXPECT_TRUE(conv1d(x, w, {}, 1, "valid").equal(tensor({{{21.f, 32.f, 43.f}}})));
  EXPECT_TRUE(conv1d(x, ones({1, 1, 3}), {}, 1, "same").equal(tensor({{{3.f, 6.f, 9.f, 7.f}}})));
  EXPECT_TRUE(conv1d(x, w, {}, 1, "same", 2).equal(tensor({{{20.f, 31.f, 42.f, 3.f}}})));
  EXPECT_TRUE(conv1d(x, ones({1, 1, 2}), {}, 1, "same", 3).equal(tensor({{{3.f, 5.f, 2.f, 3.f}}})));
  EXPECT_EQ(sizes_of(conv2d(image_of({1, 1, 5, 6}), ones({1, 1, 2, 3}), {}, 1, "same")), (Lengths{1, 1, 5, 6}));
  EXPECT_EQ(message_of([&] { conv1d(x, w, {}, 1, "full"); }),
            "Invalid padding string: 'full'; expected 'valid' or 'same'");
  EXPECT_EQ(message_of([&] { conv1d(x, w, {}, 2, "same"); }),
            "padding='same' is not supported for strided convolutions");
  EXPECT_THROW(conv1d(x[0][0], w, {}, 1, "same"), Error);
}

TEST(ConvolutionRules, ATransposedOneUndoesTheSizes) {
  const Tensor x = image_of({1, 4, 3, 2}), w = ones({4, 5, 2, 3});
  EXPECT_EQ(sizes_of(conv_transpose2d(x, w)), (Lengths{1, 5, 4, 4}));
  EXPECT_EQ(sizes_of(conv_transpose2d(x, w, {}, {2, 3}, {0, 1}, {1, 2})), (Lengths{1, 5, 7, 6}));
  EXPECT_EQ(sizes_of(conv_transpose2d(x[0], w, {}, 2)), (Lengths{5, 6, 5}));
  EXPECT_EQ(sizes_of(conv_transpose2d(x, w, {}, 1, 0, {2, 1}, 1, {3, 2})), (Lengths{1, 5, 8, 7}));
  EXPECT_EQ(sizes_of(conv_transpose2d(x, w, ones({10}), 1, 0, 0, 2)), (Lengths{1, 10, 4, 4}));
  EXPECT_EQ(
      message_of([&] {
        conv_transpose2d(image_of({1, 3, 3, 2}), w);
      }),
      "Given transposed=1, weight of size [4, 5, 2, 3], expected input[1, 3, 3, 2] to have 4 channels (a multiple "
      "of groups=1), but got 3 channels instead");
  EXPECT_THROW(conv_transpose2d(x, w, {}, 1, 0, 0, 3), Error) << "4 is no multiple of 3";
  EXPECT_EQ(message_of([&] {
              conv_transpose2d(x, w, {}, {2, 2}, 0, {1, 2});
            }),
            "conv_transpose2d: output padding must be smaller than either stride or dilation, but got "
            "output_padding=2, stride=2, dilation=1 in dimension 1");
  EXPECT_THROW(conv_transpose2d(x, w, {}, 1, 0, 3, 1, 3), Error);
  EXPECT_THAT(message_of([&] { conv_transpose2d(x, w, {}, 1, 0, -1); }),
              testing::HasSubstr("negative output_padding is not supported"));
  EXPECT_EQ(message_of([&] {
              conv_transpose2d(x, w, {}, 1, {0, 2});
            }),
            "conv_transpose2d: the output would have size 0 in spatial dimension 1; input of size [1, 4, 3, 2], weight "
            "of size [4, 5, 2, 3]");
  EXPECT_NO_THROW(conv_transpose2d(x, w, {}, 1, {1, 1}));
  EXPECT_THROW(conv_transpose2d(x, w, ones({4})), Error) << "the bias is of the outputs";
  const Tensor bias = tensor({1.f, 2.f, 3.f, 4.f, 5.f});
  EXPECT_TRUE(
      conv_transpose2d(x, w, bias).sub(conv_transpose2d(x, w)).equal(bias.view({5, 1, 1}).expand({1, 5, 4, 4})));
}

TEST(ConvolutionRules, OfIntegersTheValuesAreThoseOfFloats) {
  const auto numbers = [](const Lengths& sizes) {
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) count *= size;
    return arange(count).mul(7).remainder(11).sub(5).view(sizes);
  };
  struct Config {
    std::int64_t stride, padding, dilation, groups, extra;
  };
  const Tensor bias = tensor({1, -2, 3, 4});
  for (const Config& c : {Config{1, 0, 1, 1, 0}, Config{2, 1, 1, 1, 1}, Config{3, 0, 2, 2, 2}, Config{1, 2, 2, 2, 1}}) {
    const Tensor x = numbers({2, 4, 9}), w = numbers({4, 4 / c.groups, 3}), y = numbers({2, 4, 5}),
                 v = numbers({4, 4 / c.groups, 3});
    const auto real = [](const Tensor& t) { return t.to(kFloat64); };
    for (const Tensor& b : {Tensor(), bias}) {
      const Tensor rb = b.defined() ? real(b) : b;
      EXPECT_TRUE(conv1d(x, w, b, c.stride, c.padding, c.dilation, c.groups)
                      .equal(conv1d(real(x), real(w), rb, c.stride, c.padding, c.dilation, c.groups).to(kInt64)));
      EXPECT_TRUE(conv_transpose1d(y, v, b, c.stride, c.padding, c.extra, c.groups, c.dilation)
                      .equal(conv_transpose1d(real(y), real(v), rb, c.stride, c.padding, c.extra, c.groups, c.dilation)
                                 .to(kInt64)));
    }
    const Tensor plane = numbers({1, 4, 6, 7}), u = numbers({4, 4 / c.groups, 2, 3});
    EXPECT_TRUE(
        conv2d(plane, u, {}, {c.stride, 1}, {c.padding, 1}, {1, c.dilation}, c.groups)
            .equal(
                conv2d(real(plane), real(u), {}, {c.stride, 1}, {c.padding, 1}, {1, c.dilation}, c.groups).to(kInt64)));
    EXPECT_TRUE(conv_transpose2d(plane, u, {}, {c.stride, 1}, {c.padding, 1}, 0, c.groups, {1, c.dilation})
                    .equal(conv_transpose2d(real(plane), real(u), {}, {c.stride, 1}, {c.padding, 1}, 0, c.groups,
                                            {1, c.dilation})
                               .to(kInt64)));
  }
  const Tensor last = numbers({1, 2, 3, 3}).contiguous(MemoryFormat::ChannelsLast);
  EXPECT_TRUE(conv2d(last, numbers({4, 2, 2, 2})).is_contiguous(MemoryFormat::ChannelsLast));
}

TEST(PoolRules, SizesAreThoseOfTheWindowsThatFit) {
  const Tensor x = image_of({2, 3, 7, 8});
  EXPECT_EQ(sizes_of(max_pool2d(x, 2)), (Lengths{2, 3, 3, 4})) << "the stride is the kernel's";
  EXPECT_EQ(sizes_of(max_pool2d(x, 2, {}, 0, 1, true)), (Lengths{2, 3, 4, 4}));
  EXPECT_EQ(sizes_of(max_pool2d(x, {3, 2}, {2, 1}, {1, 1}, {1, 3})), (Lengths{2, 3, 4, 7}));
  EXPECT_EQ(sizes_of(max_pool2d(x[0], 7, 1)), (Lengths{3, 1, 2}));
  EXPECT_EQ(sizes_of(max_pool2d(image_of({0, 3, 7, 8}), 2)), (Lengths{0, 3, 3, 4}));
  EXPECT_EQ(sizes_of(avg_pool1d(image_of({1, 1, 3}), 2, 4, 1, true)), (Lengths{1, 1, 1}))
      << "a window that begins in the right padding does not count";
  EXPECT_EQ(sizes_of(avg_pool1d(image_of({1, 1, 4}), 2, 4, 1, true)), (Lengths{1, 1, 2}));
  EXPECT_EQ(sizes_of(max_pool1d(image_of({1, 1, 5}), 3, 3, 1, 1, true)), (Lengths{1, 1, 2}));
}

TEST(PoolRules, WhatDoesNotFitIsSaid) {
  const Tensor x = image_of({2, 3, 7, 8});
  EXPECT_EQ(message_of([&] {
              max_pool2d(x, {2, 2, 2});
            }),
            "max_pool2d: kernel_size must either be a single int or a tuple of 2 ints, got [2, 2, 2]");
  EXPECT_THAT(message_of([&] { max_pool2d(x, 2, {1, 1, 1}); }), testing::HasSubstr("stride must either be"));
  EXPECT_THAT(message_of([&] { max_pool2d(x, 2, 1, {0, 0, 0}); }), testing::HasSubstr("padding must either be"));
  EXPECT_THAT(message_of([&] { max_pool2d(x, 2, 1, 0, {1, 1, 1}); }), testing::HasSubstr("dilation must either be"));
  const std::string sizes =
      "max_pool2d: Expected 3D or 4D input with non-zero channels and sizes (the batch may be empty), but got input of "
      "size ";
  EXPECT_EQ(message_of([&] { max_pool2d(x[0][0], 2); }), sizes + "[7, 8]");
  EXPECT_EQ(message_of([&] { max_pool2d(image_of({1, 0, 7, 8}), 2); }), sizes + "[1, 0, 7, 8]");
  EXPECT_EQ(message_of([&] { max_pool2d(image_of({1, 3, 7, 0}), 2); }), sizes + "[1, 3, 7, 0]");
  EXPECT_EQ(message_of([&] { max_pool2d(image_of({0, 7, 8}), 2); }), sizes + "[0, 7, 8]");
  EXPECT_THROW(max_pool2d(x.unsqueeze(0), 2), Error);
  EXPECT_EQ(message_of([&] {
              max_pool2d(x, {2, 0}, 1);
            }),
            "max_pool2d: kernel size should be greater than zero, but got [2, 0]");
  EXPECT_EQ(message_of([&] {
              max_pool2d(x, 2, {1, 0});
            }),
            "max_pool2d: stride should not be zero or negative, but got [1, 0]");
  EXPECT_EQ(message_of([&] {
              max_pool2d(x, 2, 1, 0, {0, 1});
            }),
            "max_pool2d: dilation should be greater than zero, but got [0, 1]");
  EXPECT_EQ(message_of([&] {
              max_pool2d(x, {2, 3}, 1, 2);
            }),
            "max_pool2d: pad should be at most half of effective kernel size, but got pad=2 and kernel_size=2");
  EXPECT_THROW(max_pool2d(x, 2, 1, -1), Error);
  EXPECT_NO_THROW(max_pool2d(x, 2, 1, 1));
  EXPECT_EQ(message_of([&] {
              max_pool2d(x, {3, 9});
            }),
            "max_pool2d: Given input size: (3x7x8). Calculated output size: (3x2x0). Output size is too small");
  EXPECT_THROW(max_pool1d(image_of({1, 1, 2}), 9, 2), Error) << "room below 0 rounds down";
  EXPECT_EQ(message_of([&] { avg_pool2d(x, 2, 1, 0, false, true, 0); }), "avg_pool2d: divisor must be not zero");
  EXPECT_THROW(avg_pool2d(x.to(kInt32), 2), Error);
  EXPECT_EQ(message_of([&] {
              avg_pool3d(image_of({1, 1, 4, 4, 2}), 3, 1, 1);
            }),
            "avg_pool3d: input of size 2 is smaller than the kernel of size 3 in dimension 2, whatever the padding");
  EXPECT_NO_THROW(avg_pool3d(image_of({1, 1, 3, 4, 3}), 3, 1, 1));
  EXPECT_EQ(message_of([&] {
              adaptive_avg_pool2d(x, {2, -1});
            }),
            "adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0, got [2, -1]");
  EXPECT_THAT(message_of([&] {
                adaptive_max_pool2d(x, {2, 2, 2});
              }),
              testing::HasSubstr("output_size must either be a single int"));
  EXPECT_EQ(sizes_of(adaptive_avg_pool2d(x, {0, 2})), (Lengths{2, 3, 0, 2}));
  EXPECT_EQ(sizes_of(adaptive_avg_pool2d(x[0], 2)), (Lengths{3, 2, 2}));
}

TEST(PoolRules, MeansCountThePaddingOrNotAndDivideByWhatIsGiven) {
  const Tensor x = tensor({{{1.f, 2.f, 3.f, 4.f}}}), plane = x.unsqueeze(2);
  EXPECT_TRUE(avg_pool1d(x, 2, 2, 1).equal(tensor({{{0.5f, 2.5f, 2.f}}})));
  EXPECT_TRUE(avg_pool1d(x, 2, 2, 1, false, false).equal(tensor({{{1.f, 2.5f, 4.f}}})));
  EXPECT_TRUE(avg_pool2d(plane, {1, 2}, {1, 2}, 0, false, true, 4).equal(tensor({{{{0.75f, 1.75f}}}})));
  EXPECT_TRUE(avg_pool2d(plane, {1, 2}, {1, 2}, 0, false, true, -1).equal(tensor({{{{-3.f, -7.f}}}})));
  EXPECT_TRUE(avg_pool1d(tensor({{{1, 2, 4, 5}}}), 2).equal(tensor({{{1, 4}}}))) << "of integers without fractions";
  EXPECT_TRUE(avg_pool1d(tensor({{{3, 3, 3}}}), 3).equal(tensor({{{3}}})));
  const Tensor leaf = x.clone().requires_grad_();
  avg_pool1d(leaf, 2, 2, 1, false, false).sum().backward();
  EXPECT_TRUE(leaf.grad().equal(tensor({{{1.f, 0.5f, 0.5f, 1.f}}})));
}

TEST(ColumnRules, WindowsBecomeColumnsAndBack) {
  const Tensor x = arange(1., 13.).view({1, 1, 3, 4});
  EXPECT_TRUE(im2col(x, {2, 3}, 1, 0, 1)
                  .equal(tensor({{{1.f, 2.f, 5.f, 6.f},
                                  {2.f, 3.f, 6.f, 7.f},
                                  {3.f, 4.f, 7.f, 8.f},
                                  {5.f, 6.f, 9.f, 10.f},
                                  {6.f, 7.f, 10.f, 11.f},
                                  {7.f, 8.f, 11.f, 12.f}}})));
  EXPECT_EQ(sizes_of(im2col(x[0], {2, 2}, {2, 1}, {1, 0}, {1, 2})), (Lengths{4, 6}));
  EXPECT_TRUE(col2im(im2col(x, {1, 2}, 1, 0, {1, 2}), {3, 4}, {1, 2}, 1, 0, {1, 2}).equal(x)) << "nothing overlaps";
  EXPECT_TRUE(col2im(im2col(x[0], {1, 2}, 1, 0, {1, 2}), {3, 4}, {1, 2}, 1, 0, {1, 2}).equal(x[0]));
  EXPECT_TRUE(im2col(x, {3, 4}, 1, 0, 1).equal(x.view({1, 12, 1}))) << "one window, as large as the image";
  EXPECT_EQ(message_of([&] {
              im2col(x, {4, 5}, 1, 0, 1);
            }),
            "im2col: Given input with spatial size (3, 4), kernel_size=(4, 5), dilation=(1, 1), padding=(0, 0), "
            "calculated shape of the array of sliding blocks as (0, 0), but its components must be at least one.");
  EXPECT_THROW(im2col(x, {4, 1}, 1, 0, 1), Error);
  EXPECT_THROW(im2col(x, {1, 5}, 1, 0, 1), Error);
  const std::string text = "im2col: kernel_size, dilation and stride must be positive and padding not negative, got ";
  EXPECT_EQ(message_of([&] { im2col(x, {0, 1}, 1, 0, 1); }), text + "[0, 1], [1], [1], [0]");
  EXPECT_EQ(message_of([&] { im2col(x, 1, {1, 0}, 0, 1); }), text + "[1], [1, 0], [1], [0]");
  EXPECT_EQ(message_of([&] { im2col(x, 1, 1, {0, -1}, 1); }), text + "[1], [1], [1], [0, -1]");
  EXPECT_EQ(message_of([&] { im2col(x, 1, 1, 0, {0, 1}); }), text + "[1], [1], [0, 1], [0]");
  EXPECT_THROW(im2col(x[0][0], 1, 1, 0, 1), Error);
  const std::string fits =
      "col2im: expected input of (N, C * 2, 6) for output_size [3, 4] and kernel_size [1, 2], but "
      "got input of size ";
  const auto back = [](const Tensor& columns) { return col2im(columns, {3, 4}, {1, 2}, 1, 0, {1, 2}); };
  EXPECT_EQ(message_of([&] { back(ones({1, 3, 6})); }), fits + "[1, 3, 6]");
  EXPECT_EQ(message_of([&] { back(ones({1, 2, 5})); }), fits + "[1, 2, 5]");
  EXPECT_EQ(message_of([&] { back(ones({6})); }), fits + "[6]");
  EXPECT_EQ(message_of([&] { back(ones({1, 1, 2, 6})); }), fits + "[1, 1, 2, 6]");
}

}  // namespace
}  // namespace tenon::test
