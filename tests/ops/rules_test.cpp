// Rules of single operators that no table of operators holds: ranges at the ends of integers, dtypes of numbers beside
// tensors, what broadcasts, what exactly a refusal says.
#include "../support/message_of.h"

#include <tenon/ops/nn/attention.h>
#include <tenon/ops/nn/ctc.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/literal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace tenon::test {
namespace {

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kHighest = std::numeric_limits<std::int64_t>::max();

TEST(Arange, ReachesTheEndsOfIntegersAndRefusesDistancesThatNoneHolds) {
  EXPECT_TRUE(arange(kHighest - 3, kHighest).equal(tensor({kHighest - 3, kHighest - 2, kHighest - 1})));
  EXPECT_TRUE(arange(kLowest + 2, kLowest, -1).equal(tensor({kLowest + 2, kLowest + 1})));
  EXPECT_THROW(arange(kLowest, kHighest), Error);
  EXPECT_THROW(arange(kLowest, kHighest, std::int64_t{1} << 62), Error) << "the distance alone is too large";
  EXPECT_THROW(arange(std::int64_t{-2}, kHighest, std::int64_t{1} << 62), Error);
  EXPECT_THROW(arange(std::int64_t{0}, kHighest, std::int64_t{1} << 62), Error) << "rounded up it is";
  EXPECT_THROW(arange(0, 5, 0), Error);
  EXPECT_THROW(arange(0, 5, -1), Error);
  EXPECT_THROW(arange(5, 0), Error);
  EXPECT_EQ(arange(5, 5).numel(), 0);
  for (const std::int64_t step : {1, 2, 3, 7}) {
    for (std::int64_t end = 0; end < 9; ++end) {
      EXPECT_EQ(arange(0, end, step).numel(), (end + step - 1) / step) << end << " by " << step;
      EXPECT_EQ(arange(end, 0, -step).numel(), (end + step - 1) / step) << end << " by " << -step;
    }
  }
}

TEST(Logspace, MayWantAGradientWithWhateverDtype) {
  EXPECT_TRUE(logspace(0, 3, 4, 10, TensorOptions(kFloat64).requires_grad(true)).requires_grad());
  EXPECT_TRUE(logspace(0, 3, 4, 10, TensorOptions().requires_grad(true)).requires_grad());
  EXPECT_TRUE(
      logspace(0, 3, 4, 2, TensorOptions(kFloat64)).allclose(tensor({1., 2., 4., 8.}, TensorOptions(kFloat64))));
  EXPECT_TRUE(logspace(0, 3, 4, 2, TensorOptions(kInt32)).equal(tensor({1, 2, 4, 8}).to(kInt32)));
}

TEST(Indexing, OneIndexTooManyIsNamed) {
  using namespace indexing;
  const Tensor x = zeros({2, 3});
  const std::string text = "too many indices for tensor of dimension 2";
  EXPECT_EQ(message_of<IndexError>([&] { x.index({0, 0, 0}); }), text);
  EXPECT_EQ(message_of<IndexError>([&] { x.index({Slice(), 0, Slice(0, 1)}); }), text);
  EXPECT_EQ(x.index({Ellipsis, 0, 0}).dim(), 0);
  EXPECT_EQ(x.index({0, 0, Ellipsis}).dim(), 0);
  EXPECT_EQ(x.index({None, 0, 0, None}).sizes().vec(), (std::vector<std::int64_t>{1, 1}));
}

TEST(MaskedSelect, TakesTruthOrBytesAsItsMask) {
  const Tensor x = tensor({1., 2., 3.});
  for (const Dtype dtype : {kBool, kUInt8})
    EXPECT_TRUE(x.masked_select(tensor({1, 0, 1}).to(dtype)).equal(tensor({1., 3.}))) << toString(dtype);
  for (const Dtype dtype : {kInt8, kInt64, kFloat32}) EXPECT_THROW(x.masked_select(ones({3}).to(dtype)), Error);
}

TEST(BinaryOperators, ANumberMayStandOnEitherSide) {
  const Tensor x = tensor({1, 2, 3});
  const auto is = [](const Tensor& result, const Tensor& expected) { return result.equal(expected); };
  EXPECT_TRUE(is(2 == x, tensor({false, true, false})));
  EXPECT_TRUE(is(2 != x, tensor({true, false, true})));
  EXPECT_TRUE(is(2 < x, tensor({false, false, true})));
  EXPECT_TRUE(is(2 <= x, tensor({false, true, true})));
  EXPECT_TRUE(is(2 > x, tensor({true, false, false})));
  EXPECT_TRUE(is(2 >= x, tensor({true, true, false})));
  EXPECT_TRUE(is(6 & x, tensor({0, 2, 2})));
  EXPECT_TRUE(is(4 | x, tensor({5, 6, 7})));
  EXPECT_TRUE(is(1 ^ x, tensor({0, 3, 2})));
  EXPECT_TRUE(is(x & x.flip(0), tensor({1, 2, 1})));
  EXPECT_TRUE(is(x | x.flip(0), tensor({3, 2, 3})));
  EXPECT_TRUE(is(x ^ x.flip(0), tensor({2, 0, 2})));
  EXPECT_TRUE(is(x != x.flip(0), tensor({true, false, true})));
}

TEST(BinaryOperators, WithAnEqualSignTheyWriteTheLeftSide) {
  Tensor x = tensor({1.f, 2.f});
  const Tensor same = x, other = tensor({4.f, 2.f});
  x += other;
  EXPECT_TRUE(same.equal(tensor({5.f, 4.f})));
  x -= other;
  x -= 3;
  EXPECT_TRUE(same.equal(tensor({-2.f, -1.f})));
  x *= 6;
  x /= other;
  EXPECT_TRUE(same.equal(tensor({-3.f, -3.f})));
  x /= -2;
  EXPECT_TRUE(same.equal(tensor({1.5f, 1.5f})));
  Tensor bits = tensor({6, 3});
  const Tensor same_bits = bits;
  bits &= tensor({3, 1});
  EXPECT_TRUE(same_bits.equal(tensor({2, 1})));
  bits |= tensor({4, 4});
  EXPECT_TRUE(same_bits.equal(tensor({6, 5})));
}

TEST(Div, RoundsInOneOfTwoNamedWays) {
  const Tensor x = tensor({-7, 7});
  EXPECT_TRUE(div(x, tensor(2), "floor").equal(tensor({-4, 3})));
  EXPECT_TRUE(div(x, tensor(2), "trunc").equal(tensor({-3, 3})));
  EXPECT_TRUE(x.div(2, "floor").equal(tensor({-4, 3})));
  EXPECT_TRUE(x.div(2, "trunc").equal(tensor({-3, 3})));
  EXPECT_EQ(message_of([&] { div(x, tensor(2), "round"); }),
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'round'");
}

// PyTorch 2.15's figure; as many inputs as labels have one alignment, which skips the blank between two that differ.
TEST(CtcLoss, ATargetMayBeTheBlankItself) {
  const Tensor x = arange(6, kFloat32).view({2, 1, 3}).mul(0.3).sin().log_softmax(2);
  const Tensor loss = ctc_loss(x, tensor({{1, 0}}), IntArrayRef({2}), IntArrayRef({2}), 0, 0);
  EXPECT_FLOAT_EQ(loss.item<float>(), 2.3396427631378174F);
  EXPECT_FLOAT_EQ(loss.item<float>(), -(x[0][0][1] + x[1][0][0]).item<float>());
}

TEST(CtcLoss, LengthsLabelsAndBlankStayWithinTheirSizes) {
  const Tensor x = zeros({3, 2, 4}).log_softmax(2), targets = tensor({{1, 2}, {3, 1}});
  using Lengths = std::vector<std::int64_t>;
  const auto of = [&](const Tensor& labels, const Lengths& inputs, const Lengths& lengths, std::int64_t blank = 0) {
    return ctc_loss(x, labels, IntArrayRef(inputs), IntArrayRef(lengths), blank, 0);
  };
  const auto said = [&](auto... given) { return message_of([&] { of(given...); }); };
  EXPECT_EQ(of(targets, {3, 3}, {2, 2}).numel(), 2) << "all at their largest";
  EXPECT_TRUE(of(targets, {3, 3}, {2, 1}).equal(of(tensor({1, 2, 3}), {3, 3}, {2, 1}))) << "one after the other";
  EXPECT_TRUE(ctc_loss(x, targets, tensor({3, 3}), tensor({2, 2}).to(kInt32), 0, 0).equal(of(targets, {3, 3}, {2, 2})));
  for (const std::int64_t blank : {-1, 4})
    EXPECT_EQ(said(targets, Lengths{3, 3}, Lengths{2, 2}, blank),
              "ctc_loss: blank must be in label range, got " + std::to_string(blank) + " of 4 classes");
  EXPECT_EQ(said(targets, Lengths{3}, Lengths{2, 2}), "ctc_loss: input_lengths must be of size batch_size 2, got 1");
  EXPECT_EQ(said(targets, Lengths{3, 3}, Lengths{2}), "ctc_loss: target_lengths must be of size batch_size 2, got 1");
  EXPECT_EQ(said(targets, Lengths{3, 3}, Lengths{2, -1}), "ctc_loss: target_lengths[1] is -1, below 0");
  for (const std::int64_t length : {4, -1})
    EXPECT_EQ(said(targets, Lengths{3, length}, Lengths{2, 2}),
              "Expected input_lengths to have value at most 3, but got value " + std::to_string(length) +
                  " (while checking arguments for ctc_loss)");
  EXPECT_EQ(said(targets, Lengths{3, 3}, Lengths{2, 3}),
            "Expected tensor to have size at least 3 at dimension 1, but got size 2 for the targets (while checking "
            "arguments for ctc_loss)");
  EXPECT_EQ(said(tensor({1, 2, 3}), Lengths{3, 3}, Lengths{2, 2}),
            "Expected tensor to have size 4 at dimension 0, but got size 3 for the targets (while checking arguments "
            "for ctc_loss)");
  EXPECT_EQ(said(tensor({{1, 2}, {3, 4}}), Lengths{3, 3}, Lengths{2, 2}),
            "ctc_loss: target 4 of batch element 1 is out of range for 4 classes");
  EXPECT_EQ(message_of([&] {
              ctc_loss(x, targets, tensor({3.f, 3.f}), tensor({2, 2}));
            }),
            "input_lengths must be integral");
  EXPECT_EQ(message_of([&] {
              ctc_loss(x, targets, tensor({3, 3}), tensor({true, true}));
            }),
            "target_lengths must be integral");
}

TEST(Where, ANumberTakesTheTensorsDtypeAsAnOperandDoes) {
  const Tensor is_first = tensor({true, false});
  const Tensor bytes = tensor({1, 2}).to(kInt8), halves = tensor({1., 2.}).to(kFloat16);
  EXPECT_EQ(where(is_first, bytes, 3).scalar_type(), kInt8);
  EXPECT_EQ(where(is_first, 3, bytes).scalar_type(), kInt8);
  EXPECT_EQ(where(is_first, halves, 3.5).scalar_type(), kFloat16);
  EXPECT_EQ(where(is_first, 3.5, halves).scalar_type(), kFloat16);
  EXPECT_EQ(where(is_first, bytes, 3.5).scalar_type(), kFloat32);
  EXPECT_TRUE(where(is_first, bytes, 3.5).equal(tensor({1.f, 3.5f})));
  EXPECT_EQ(where(is_first, 1, 2).scalar_type(), kInt64);
  EXPECT_EQ(where(is_first, 1., 2.).scalar_type(), kFloat32);
}

TEST(Numeric, ANumberBesideATensorKeepsTheTensorsDtype) {
  const Tensor halves = tensor({1., 2.}).to(kFloat16), bytes = tensor({8, 2}).to(kInt8);
  EXPECT_EQ(halves.xlogy(2.5).scalar_type(), kFloat16);
  EXPECT_EQ(halves.div(2.5, "floor").scalar_type(), kFloat16);
  EXPECT_EQ(bytes.div(3, "trunc").scalar_type(), kInt8);
  EXPECT_EQ(bytes.bitwise_left_shift(1).scalar_type(), kInt8);
}

TEST(Numeric, CommonDivisorsHaveTheCommonDtypeWhicheverComesFirst) {
  const Tensor small = tensor({12, 18}).to(kInt8), large = tensor({8, 27}).to(kInt32);
  for (const Tensor& divisor : {small.gcd(large), large.gcd(small)}) {
    EXPECT_EQ(divisor.scalar_type(), kInt32);
    EXPECT_TRUE(divisor.equal(tensor({4, 9}).to(kInt32)));
  }
}

TEST(Lerp, BroadcastsEachOfItsThreeTensors) {
  const Tensor start = tensor({{1.}, {2.}}), end = tensor({{5., 6.}}), weight = tensor({0., 0.5}).view({2, 1, 1});
  const Tensor got = lerp(start, end, weight);
  ASSERT_EQ(got.sizes().vec(), (std::vector<std::int64_t>{2, 2, 2}));
  for (int w = 0; w < 2; ++w)
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j)
        EXPECT_NEAR(got[w][i][j].item<double>(), (1 + i) + (w == 0 ? 0 : 0.5) * ((5 + j) - (1 + i)), 1e-6);
  Tensor target = start.clone();
  EXPECT_THROW(target.lerp_(end, 0.5), Error) << "its sizes would change";
  EXPECT_THROW(target.lerp_(start, weight), Error);
}

TEST(InPlace, AnIntegerTensorRefusesAFractionalResultAndStaysAsItWas) {
  const Tensor x = tensor({1, 2});
  EXPECT_EQ(message_of([&] { x.sqrt_(); }),
            "result type Float can't be cast to the desired output type Long (in-place operator sqrt_)");
  EXPECT_EQ(message_of([&] { x.sin_(); }),
            "result type Float can't be cast to the desired output type Long (in-place operator sin_)");
  EXPECT_TRUE(x.equal(tensor({1, 2})));
  EXPECT_NO_THROW(x.neg_());
}

TEST(Attention, OperandsThatDoNotFitAreNamed) {
  const auto call = [](std::vector<std::int64_t> q, std::vector<std::int64_t> k, std::vector<std::int64_t> v) {
    return message_of([&] { scaled_dot_product_attention(ones(q), ones(k), ones(v)); });
  };
  EXPECT_EQ(call({3}, {2, 3}, {2, 4}),
            "scaled_dot_product_attention: Expected query, key, and value to all be at least 2 dimensional, but got "
            "Query dim: 1, Key dim: 2 and Value dim: 2 instead.");
  EXPECT_NE(call({2, 3}, {3}, {2, 4}), "");
  EXPECT_NE(call({2, 3}, {2, 3}, {4}), "");
  EXPECT_EQ(call({2, 3}, {5, 4}, {5, 4}),
            "scaled_dot_product_attention: query [2, 3] and key [5, 4] must agree in the last dimension, key and value "
            "[5, 4] in the one before it");
  EXPECT_THAT(call({2, 3}, {5, 3}, {6, 4}), testing::HasSubstr("in the one before it"));
  const Tensor q = ones({2, 3}), mask = ones({2, 2}, TensorOptions(kBool));
  EXPECT_THROW(scaled_dot_product_attention(q, q, q, mask, 0, /*is_causal=*/true), Error);
  for (const double p : {-0.01, 1.01}) EXPECT_THROW(scaled_dot_product_attention(q, q, q, std::nullopt, p), Error) << p;
  EXPECT_TRUE(scaled_dot_product_attention(q, q, q, std::nullopt, 1.).equal(zeros({2, 3}))) << "all weights dropped";
}

TEST(IndexCopy, SaysWhichSlicesDoNotFit) {
  const Tensor target = zeros({2, 3, 4}), index = tensor({0, 1});
  EXPECT_EQ(message_of([&] {
              target.index_copy_(1, index, ones({2, 2, 5}));
            }),
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: 2, 4 at "
            "dimension 1 and source slice shape: 2, 5 at dimension 0.");
  EXPECT_EQ(message_of<IndexError>([&] {
              target.index_copy_(1, index, ones({2, 3, 4}));
            }),
            "index_copy_(): Number of indices (2) should be equal to source.size(dim) (3)");
  EXPECT_EQ(message_of<IndexError>([&] {
              target.index_copy_(1, tensor({0, 3}), ones({2, 2, 4}));
            }),
            "index_copy_(): index 3 is out of bounds for dimension 1 with size 3");
  EXPECT_EQ(message_of<IndexError>([&] {
              target.index_copy_(1, tensor({-1, 0}), ones({2, 2, 4}));
            }),
            "index_copy_(): index -1 is out of bounds for dimension 1 with size 3");
  EXPECT_EQ(message_of<IndexError>([&] {
              target.index_copy_(1, index, ones({2, 2}));
            }),
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            "dimensionality (2), destination dimensionality (3)");
  EXPECT_TRUE(target.eq(0).all().item<bool>());
}

TEST(ChannelsLast, IsOfImagesOnlyWhateverTheStridesOfOtherRanks) {
  // Strides that would be channels last, had they a batch; the result of a convolution of one dimension is contiguous.
  const Tensor line = ones({2, 5, 3}).transpose(1, 2);
  EXPECT_TRUE(conv1d(line, ones({4, 3, 2})).is_contiguous());
  const Tensor image = ones({2, 3, 5, 6}).contiguous(MemoryFormat::ChannelsLast);
  EXPECT_TRUE(conv2d(image, ones({4, 3, 2, 2})).is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_TRUE(conv2d(image.contiguous(), ones({4, 3, 2, 2})).is_contiguous());
}

}  // namespace
}  // namespace tenon::test
