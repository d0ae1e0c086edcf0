// Factories: sizes, dtypes, layouts and what they refuse; blobs, windows, literals and sequences' losses at their
// edges.
#include "../../support/message_of.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensor/literal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

using Counts = std::vector<std::int64_t>;

TEST(FactoryRules, WhatIsMadeHasTheSizesAndDtypeThatOptionsSay) {
  EXPECT_EQ(full({2}, 1).scalar_type(), kInt64);
  EXPECT_EQ(full({2}, true).scalar_type(), kBool);
  EXPECT_EQ(full({2}, 1.5).scalar_type(), kFloat32);
  EXPECT_EQ(full({2}, 1.5, kFloat64).scalar_type(), kFloat64);
  EXPECT_EQ(full({2}, 1, kFloat16).scalar_type(), kFloat16);
  EXPECT_EQ(arange(3).scalar_type(), kInt64);
  EXPECT_EQ(arange(3.).scalar_type(), kFloat32);
  EXPECT_EQ(arange(0, 3, 1.).scalar_type(), kFloat32);
  EXPECT_EQ(arange(0, 3., 1).scalar_type(), kFloat32);
  EXPECT_EQ(arange(3, kInt8).scalar_type(), kInt8);
  EXPECT_EQ(range(0, 3, 1).scalar_type(), kFloat32);
  EXPECT_EQ(scalar_tensor(3).dim(), 0);
  EXPECT_TRUE(eye(2, 3).equal(tensor({{1.f, 0.f, 0.f}, {0.f, 1.f, 0.f}})));
  EXPECT_EQ(eye(0, 3).sizes().vec(), (Counts{0, 3}));
  const TensorOptions wants = TensorOptions(kFloat64).requires_grad(true);
  for (const Tensor& one : {empty({2}, wants),
                            zeros({2}, wants),
                            ones({2}, wants),
                            full({2}, 3, wants),
                            eye(2, wants),
                            arange(2, wants),
                            range(0, 1, 1, wants),
                            linspace(0, 1, 2, wants),
                            linspace(0, 1, 1, wants),
                            linspace(0, 1, 0, wants),
                            scalar_tensor(1, wants),
                            zeros_like(ones({2}), wants),
                            ones_like(ones({2}), wants),
                            full_like(ones({2}), 2, wants),
                            empty_like(ones({2}), wants),
                            ones({2}).new_zeros({3}, wants),
                            ones({2}).new_ones({3}, wants),
                            hann_window(3, wants),
                            ones({2}).new_full({3}, 1, wants),
                            ones({2}).new_empty({3}, wants),
                            rand({2}, wants),
                            empty_strided({2}, {1}, wants),
                            ones({2}).new_empty_strided({2}, {1}, wants),
                            randn({2}, wants),
                            rand_like(ones({2}), wants),
                            randn_like(ones({2}).expand({2, 2}), wants),
                            hann_window(1, wants)}) {
    EXPECT_TRUE(one.requires_grad());
    EXPECT_TRUE(one.is_leaf());
    EXPECT_EQ(one.scalar_type(), kFloat64);
  }
  EXPECT_THROW(zeros({2}, TensorOptions(kInt64).requires_grad(true)), Error);
}

TEST(FactoryRules, NoSizeIsNegativeAndNoCountWithoutEnd) {
  for (const auto& make : std::vector<std::function<void()>>{[] {
                                                               zeros({2, -1});
                                                             },
                                                             [] { empty({-1}); }, [] { full({-2}, 1); },
                                                             [] { empty_strided({-1}, {1}); }, [] { rand({-1}); }})
    EXPECT_THROW(make(), Error);
  const std::string negative = "Trying to create tensor with negative dimension -1: [2, -1]";
  EXPECT_EQ(message_of([] { zeros({2, -1}); }), negative);
  EXPECT_EQ(message_of([] { ones({2, -1}, TensorOptions().memory_format(MemoryFormat::Contiguous)); }), negative);
  EXPECT_EQ(message_of([] { empty_strided({2, -1}, {1, 1}); }), negative);
  EXPECT_EQ(message_of([] { from_blob(nullptr, {2, -1}); }), negative);
  EXPECT_EQ(message_of([] { eye(-1, 2); }), "n must be greater or equal to 0, got -1");
  EXPECT_EQ(message_of([] { eye(2, -1); }), "m must be greater or equal to 0, got -1");
  EXPECT_EQ(message_of([] { linspace(0, 1, -1); }), "number of steps must be non-negative");
  EXPECT_EQ(linspace(0, 1, 0).numel(), 0);
  EXPECT_TRUE(linspace(3, 9, 1).equal(tensor({3.f})));
  EXPECT_TRUE(linspace(0, 1, 3).equal(tensor({0.f, 0.5f, 1.f})));
  EXPECT_TRUE(linspace(1.9, 4.9, 4, kInt64).equal(tensor({1, 2, 3, 4}))) << "the ends are cut off first";
  EXPECT_TRUE(linspace(0, 2, 3, kBool).equal(tensor({false, false, true})));
  EXPECT_EQ(arange(5., 5.).numel(), 0);
  EXPECT_EQ(arange(0., 1e-9).numel(), 1);
  EXPECT_EQ(message_of([] { arange(0, 1, 0); }), "step must be nonzero");
  EXPECT_EQ(message_of([] { arange(0, 1., std::numeric_limits<double>::infinity()); }),
            "step must be finite but got inf");
  EXPECT_EQ(message_of([] { arange(0., std::numeric_limits<double>::infinity()); }), "unsupported range: 0 -> inf");
  EXPECT_EQ(message_of([] { arange(1, 0); }), "upper bound and lower bound inconsistent with step sign");
  EXPECT_EQ(message_of([] { arange(0., 1e30, 1.); }).substr(0, 37), "invalid size, possible overflow? (100");
  EXPECT_EQ(
      message_of([] { arange(std::int64_t{0}, std::numeric_limits<std::int64_t>::max(), std::int64_t{1} << 62); }),
      "invalid size, possible overflow? (2.000000 elements)");
  EXPECT_EQ(message_of([] { arange(0., 1.2e19, 1.); }),
            "invalid size, possible overflow? (12000000000000000000.000000 elements)");
  EXPECT_EQ(message_of([] { range(0, 1, 0); }), "step must be nonzero");
  EXPECT_EQ(message_of([] { range(0, 1, std::nan("")); }), "step must be finite but got nan");
  EXPECT_EQ(message_of([] { range(1, 0, 1); }), "upper bound and lower bound inconsistent with step sign");
  EXPECT_EQ(range(1, 1, 1).numel(), 1);
  EXPECT_TRUE(range(0, 1, 0.4).allclose(tensor({0.f, 0.4f, 0.8f})));
}

TEST(FactoryRules, LikeAnotherTensorMeansLaidOutLikeIt) {
  const Tensor image = ones({2, 3, 4, 5}), last = image.contiguous(MemoryFormat::ChannelsLast);
  EXPECT_EQ(empty_like(last).strides().vec(), last.strides().vec());
  EXPECT_EQ(zeros_like(image.permute({3, 1, 0, 2})).strides().vec(), image.permute({3, 1, 0, 2}).strides().vec());
  EXPECT_TRUE(ones_like(image.slice(3, 0, 5, 2)).is_contiguous()) << "with holes it is made anew";
  EXPECT_TRUE(ones_like(ones({3}).expand({2, 3})).is_contiguous());
  EXPECT_TRUE(empty_like(last, {}, MemoryFormat::Contiguous).is_contiguous());
  EXPECT_TRUE(empty_like(image, TensorOptions().memory_format(MemoryFormat::ChannelsLast))
                  .is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_EQ(empty_like(empty({0, 3, 2}).transpose(1, 2)).strides().vec(),
            empty({0, 3, 2}).transpose(1, 2).strides().vec());
  EXPECT_TRUE(empty({2, 3, 4, 5}, {}, MemoryFormat::ChannelsLast).is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_EQ(message_of([] {
              empty({2, 3}, {}, MemoryFormat::ChannelsLast);
            }),
            "required rank 4 tensor to use channels_last format, got rank 2");
  EXPECT_EQ(message_of([] {
              empty({2, 3, 4, 5}, {}, MemoryFormat::ChannelsLast3d);
            }),
            "required rank 5 tensor to use channels_last_3d format, got rank 4");
  EXPECT_EQ(last.new_zeros({2, 3, 4, 5}).strides().vec(), image.strides().vec());
  EXPECT_EQ(ones({1}, kInt8).new_full({2}, 3).scalar_type(), kInt8);
  EXPECT_EQ(full_like(tensor({1}), 3).scalar_type(), kInt64);
  EXPECT_EQ(empty_strided({2, 2}, {1, 4}).strides().vec(), (Counts{1, 4}));
  EXPECT_EQ(ones({1}, kInt8).new_empty_strided({2, 2}, {1, 4}).scalar_type(), kInt8);
}

TEST(FactoryRules, ABlobIsSeenWhereItLiesAndHandedBack) {
  std::vector<double> numbers(6);
  std::iota(numbers.begin(), numbers.end(), 0.);
  void* returned = nullptr;
  {
    const Tensor x = from_blob(
        numbers.data(), {2, 3}, [&](void* data) { returned = data; }, kFloat64);
    EXPECT_EQ(x.data_ptr(), numbers.data());
    EXPECT_EQ(x.strides().vec(), (Counts{3, 1}));
    EXPECT_EQ(returned, nullptr);
  }
  EXPECT_EQ(returned, numbers.data());
  EXPECT_TRUE(from_blob(numbers.data(), {2, 2}, {1, 3}, kFloat64).equal(tensor({{0., 3.}, {1., 4.}}, kFloat64)));
  EXPECT_TRUE(from_blob(numbers.data(), {6}, kFloat64).equal(arange(6, kFloat64)));
  EXPECT_THROW(from_blob(numbers.data(), {-1}, kFloat64), Error);
}

TEST(FactoryRules, WindowsAndPowersOfTheirSteps) {
  const auto hamming = [](double a, double b, int i, int n) {
    return a - b * std::cos(2 * 3.14159265358979324 * i / n);
  };
  const Tensor whole = hamming_window(4, false, kFloat64), periodic = hamming_window(4, kFloat64),
               hann = hann_window(4, kFloat64);
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(whole[i].item<double>(), hamming(0.54, 0.46, i, 3), 1e-12);
    EXPECT_NEAR(periodic[i].item<double>(), hamming(0.54, 0.46, i, 4), 1e-12);
    EXPECT_NEAR(hann[i].item<double>(), hamming(0.5, 0.5, i, 4), 1e-12);
    EXPECT_NEAR(hamming_window(4, true, 0.3, kFloat64)[i].item<double>(), hamming(0.3, 0.46, i, 4), 1e-12);
    EXPECT_NEAR(hamming_window(4, false, 0.3, 0.2, kFloat64)[i].item<double>(), hamming(0.3, 0.2, i, 3), 1e-12);
    EXPECT_NEAR(hann_window(4, false, kFloat64)[i].item<double>(), hamming(0.5, 0.5, i, 3), 1e-12);
  }
  EXPECT_TRUE(hann_window(1).equal(ones({1})));
  EXPECT_TRUE(hann_window(2, false, kFloat64).allclose(zeros({2}, kFloat64)));
  EXPECT_EQ(hann_window(0).numel(), 0);
  EXPECT_EQ(message_of([] { hann_window(-1); }),
            "hamming_window requires non-negative window_length, got window_length=-1");
  EXPECT_EQ(message_of([] { hann_window(3, kInt64); }), "hamming_window expects floating point dtypes, got: Long");
  EXPECT_TRUE(vander(tensor({2, 3}), 3).equal(tensor({{4, 2, 1}, {9, 3, 1}})));
  EXPECT_TRUE(vander(tensor({2, 3}), 3, true).equal(tensor({{1, 2, 4}, {1, 3, 9}})));
  EXPECT_TRUE(vander(tensor({2, 3})).equal(tensor({{2, 1}, {3, 1}})));
  EXPECT_TRUE(vander(tensor({2, 3}), 1).equal(tensor({{1}, {1}})));
  EXPECT_EQ(vander(tensor({2, 3}), 0).sizes().vec(), (Counts{2, 0}));
  EXPECT_EQ(message_of([] { vander(ones({1, 1})); }), "x must be a one-dimensional tensor.");
  EXPECT_EQ(message_of([] { vander(ones({1}), -1); }), "N must be non-negative.");
}

TEST(PromotionRules, TensorsWeighMoreThanNumbers) {
  const Tensor bytes = ones({2}, kInt8), halves = ones({2}, kFloat16), one = ones({}, kFloat64),
               truth = ones({2}, kBool);
  EXPECT_EQ(result_type(bytes, one), kFloat64) << "of a higher kind";
  EXPECT_EQ(result_type(halves, one), kFloat16);
  EXPECT_EQ(result_type(one, halves), kFloat16);
  EXPECT_EQ(result_type(bytes, ones({}, kInt64)), kInt8);
  EXPECT_EQ(result_type(truth, ones({}, kInt16)), kInt16);
  EXPECT_EQ(result_type(bytes, 3), kInt8);
  EXPECT_EQ(result_type(bytes, 3.), kFloat32);
  EXPECT_EQ(result_type(truth, 3), kInt64);
  EXPECT_EQ(result_type(truth, true), kBool);
  EXPECT_EQ(result_type(one, 3.), kFloat64);
  EXPECT_EQ(result_type(ones({}, kInt8), 3.), kFloat32);
  const Tensor number = full({}, 2.5, kFloat64), whole = full({}, 2, kInt64);
  for (const Tensor* one_of : {&number, &whole}) one_of->impl().set_wrapped_number(true);
  EXPECT_EQ(result_type(number, 3), kFloat32) << "numbers have the default dtype";
  EXPECT_EQ(result_type(number, number), kFloat32);
  EXPECT_EQ(result_type(whole, whole), kInt64);
  EXPECT_EQ(result_type(bytes, whole), kInt8);
  EXPECT_EQ(result_type(bytes, number), kFloat32);
  EXPECT_EQ(result_type(ones({}, kInt8), whole), kInt8);
  EXPECT_TRUE(can_cast(kInt64, kInt8));
  EXPECT_TRUE(can_cast(kFloat64, kFloat16));
  EXPECT_TRUE(can_cast(kBool, kInt8));
  EXPECT_FALSE(can_cast(kFloat16, kInt64));
  EXPECT_FALSE(can_cast(kInt8, kBool));
  EXPECT_FALSE(can_cast(kFloat32, kBool));
  EXPECT_TRUE(can_cast(kBool, kBool));
}

TEST(CtcRules, SequencesOfNothingAndTargetsOfNothing) {
  const Tensor logp = arange(24, kFloat64).sin().view({4, 2, 3}).log_softmax(2), targets = tensor({{1, 2}, {2, 2}});
  const auto loss = [&](const Counts& inputs, const Counts& lengths) {
    return ctc_loss(logp, targets, IntArrayRef(inputs), IntArrayRef(lengths), 0, 0);
  };
  EXPECT_NEAR(loss({4, 4}, {0, 2})[0].item<double>(), -logp.select(1, 0).select(1, 0).sum().item<double>(), 1e-12)
      << "blanks all the way";
  EXPECT_EQ(loss({0, 4}, {0, 2})[0].item<double>(), 0) << "nothing in no steps is certain";
  EXPECT_EQ(loss({0, 4}, {1, 2})[0].item<double>(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(loss({4, 2}, {2, 2})[1].item<double>(), std::numeric_limits<double>::infinity())
      << "two equal need a blank";
  EXPECT_NEAR(loss({2, 4}, {2, 2})[0].item<double>(), -(logp[0][0][1] + logp[1][0][2]).item<double>(), 1e-12);
  EXPECT_NEAR(loss({1, 4}, {1, 2})[0].item<double>(), -logp[0][0][1].item<double>(), 1e-12);
  EXPECT_NEAR(loss({4, 3}, {2, 2})[1].item<double>(), -(logp[0][1][2] + logp[1][1][0] + logp[2][1][2]).item<double>(),
              1e-12);
}

}  // namespace
}  // namespace tenon::test
