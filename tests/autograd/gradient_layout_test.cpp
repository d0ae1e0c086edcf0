// The strides of a leaf's gradient: the leaf's own where it is dense, else contiguous; and what taking them on may
// cost.
#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>

#include <gtest/gtest.h>

#include <vector>

namespace tenon {
namespace {

std::vector<std::int64_t> strides_of(const Tensor& tensor) { return tensor.strides().vec(); }

TEST(GradientLayout, FollowsADenseLeafWhoseDimensionsArePermuted) {
  const Tensor leaf = ones({3, 2}).t().detach().set_requires_grad(true);
  ASSERT_EQ(strides_of(leaf), (std::vector<std::int64_t>{1, 2}));
  leaf.sum().backward();
  EXPECT_EQ(strides_of(leaf.grad()), strides_of(leaf));
  (leaf * arange(6.0).view({2, 3})).sum().backward();
  EXPECT_EQ(strides_of(leaf.grad()), strides_of(leaf));
  EXPECT_TRUE(leaf.grad().equal(arange(6.0).view({2, 3}) + 1));
}

TEST(GradientLayout, FollowsChannelsLast) {
  manual_seed(4);
  const Tensor images = rand({2, 3, 4, 5}).contiguous(MemoryFormat::ChannelsLast).set_requires_grad(true);
  const Tensor kernels = rand({2, 3, 2, 2}).contiguous(MemoryFormat::ChannelsLast).set_requires_grad(true);
  conv2d(images, kernels).square().sum().backward();
  EXPECT_EQ(strides_of(images.grad()), (std::vector<std::int64_t>{60, 1, 15, 3}));
  EXPECT_EQ(strides_of(kernels.grad()), (std::vector<std::int64_t>{12, 1, 6, 3}));

  const Tensor plain = images.detach().contiguous().set_requires_grad(true);
  conv2d(plain, kernels.detach().contiguous()).square().sum().backward();
  EXPECT_TRUE(plain.grad().allclose(images.grad()));
}

TEST(GradientLayout, AContiguousLeafTakesATransposedGradientAsAContiguousCopy) {
  const Tensor leaf = ones({2, 3}, requires_grad());
  leaf.t().mul(arange(6.0).view({3, 2})).sum().backward();
  EXPECT_EQ(strides_of(leaf.grad()), (std::vector<std::int64_t>{3, 1}));
  EXPECT_TRUE(leaf.grad().equal(arange(6.0).view({3, 2}).t()));
}

TEST(GradientLayout, OfALeafWithGapsIsContiguous) {
  const Tensor leaf = ones({2, 6}).slice(1, 0, 6, 2).detach().set_requires_grad(true);
  ASSERT_EQ(strides_of(leaf), (std::vector<std::int64_t>{6, 2}));
  leaf.square().sum().backward();
  EXPECT_EQ(strides_of(leaf.grad()), (std::vector<std::int64_t>{3, 1}));
}

TEST(GradientLayout, WithCreateGraphFollowsTooAndKeepsItsHistory) {
  const Tensor leaf = ones({3, 2}).t().detach().set_requires_grad(true);
  const Tensor weight = arange(6.0).view({2, 3});
  (leaf.pow(3) * weight).contiguous().sum().backward({}, true, true);
  EXPECT_EQ(strides_of(leaf.grad()), strides_of(leaf));
  const Tensor second = autograd::grad({leaf.grad().sum()}, {leaf})[0];
  EXPECT_TRUE(second.equal(weight * 6));
  leaf.mutable_grad().reset();  // its history leads to the leaf: a cycle
}

TEST(GradientLayout, AGradientThatObeysIsTakenOverAndNotCopied) {
  const Tensor leaf = ones({3, 2}).t().detach().set_requires_grad(true);
  const void* seen = nullptr;
  const Tensor scaled = leaf * 2;
  scaled.register_hook([&](const Tensor& gradient) {
    Tensor replaced = empty_strided({2, 3}, {1, 2});
    replaced.fill_(3);
    EXPECT_EQ(gradient.numel(), 6);
    return replaced;
  });
  leaf.register_hook([&](const Tensor& gradient) { seen = gradient.data_ptr(); });
  scaled.sum().backward();
  EXPECT_EQ(leaf.grad().data_ptr(), seen);
  EXPECT_EQ(strides_of(leaf.grad()), strides_of(leaf));
}

TEST(GradientLayout, TheWeightOfALinearLayerNeedsNoCopy) {
  const Tensor weight = ones({4, 3}, requires_grad());
  const void* seen = nullptr;
  weight.register_hook([&](const Tensor& gradient) { seen = gradient.data_ptr(); });
  linear(ones({5, 3}), weight).sum().backward();
  EXPECT_EQ(weight.grad().data_ptr(), seen);
  EXPECT_TRUE(weight.grad().is_contiguous());
}

}  // namespace
}  // namespace tenon
