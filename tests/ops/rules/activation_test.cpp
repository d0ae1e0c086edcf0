// Activations with arguments of their own, and values in 8 bits by blocks.
#include "../../support/message_of.h"

#include <tenon/autograd/autograd.h>
#include <tenon/dispatch/dispatch.h>
#include <tenon/kernel/dynamic_map.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensor/generator.h>
#include <tenon/tensor/literal.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

Tensor slope_at(const Tensor& at, const std::function<Tensor(const Tensor&)>& made) {
  const Tensor x = at.detach().clone().requires_grad_();
  made(x).sum().backward();
  return x.grad();
}

TEST(ActivationRules, AThresholdReplacesWhatDoesNotPassIt) {
  const Tensor x = tensor({-1.f, 0.5f, 1.f, 2.f});
  EXPECT_TRUE(threshold(x, 1, 9).equal(tensor({9.f, 9.f, 9.f, 2.f})));
  Tensor y = x.clone();
  EXPECT_TRUE(threshold_(y, 0, -5).equal(tensor({-5.f, 0.5f, 1.f, 2.f})));
  EXPECT_TRUE(slope_at(x, [](const Tensor& t) { return threshold(t, 0.5, 9); }).equal(tensor({0.f, 0.f, 1.f, 1.f})));
  EXPECT_TRUE(threshold(tensor({1, 5}), 2, 7).equal(tensor({7, 5})));
  EXPECT_THROW(threshold(tensor({1}).to(kInt8), 2, 300), Error);
}

TEST(ActivationRules, APreluHasASlopeForEachChannelOrOneForAll) {
  const Tensor x = tensor({{-1.f, -2.f, 3.f}, {4.f, -5.f, -6.f}}), slopes = tensor({0.5f, 2.f, 3.f});
  EXPECT_TRUE(prelu(x, slopes).equal(tensor({{-0.5f, -4.f, 3.f}, {4.f, -10.f, -18.f}})));
  EXPECT_TRUE(prelu(x, tensor({0.5f})).equal(tensor({{-0.5f, -1.f, 3.f}, {4.f, -2.5f, -3.f}})));
  EXPECT_TRUE(prelu(x.view({2, 3, 1}), slopes).equal(prelu(x, slopes).view({2, 3, 1})));
  EXPECT_TRUE(prelu(x[0], tensor({0.5f})).equal(tensor({-0.5f, -1.f, 3.f})));
  EXPECT_EQ(prelu(tensor(-2.f), tensor({0.5f})).dim(), 0);
  EXPECT_EQ(prelu(tensor(-2.f), tensor({0.5f})).item<float>(), -1);
  EXPECT_EQ(message_of([&] {
              prelu(x, tensor({1.f, 2.f}));
            }),
            "Mismatch of parameter numbers and input channel size. Found parameter numbers = 2 and channel size = 3.");
  EXPECT_EQ(message_of([&] { prelu(x[0], slopes); }),
            "Mismatch of parameter numbers and input channel size. Found parameter numbers = 3 and channel size = 1.");
  const Tensor a = tensor({{-1.f, 2.f}, {std::numeric_limits<float>::infinity(), -4.f}}).requires_grad_();
  const Tensor w = tensor({0.5f, 3.f}).requires_grad_();
  prelu(a, w).sum().backward();
  EXPECT_TRUE(a.grad().equal(tensor({{0.5f, 1.f}, {1.f, 3.f}})));
  EXPECT_TRUE(w.grad().equal(tensor({-1.f, -4.f}))) << "an infinity that is positive takes no part";
}

TEST(ActivationRules, ARandomSlopeLiesBetweenItsBoundsAndIsTheirMeanInTheEnd) {
  manual_seed(31);
  const Tensor x = cat({full({500}, -1.), full({10}, 2.), zeros({1})});
  for (const bool in_place : {false, true}) {
    Tensor y = x.clone();
    const Tensor out = in_place ? rrelu_(y, 0.25, 0.75, true) : rrelu(y, 0.25, 0.75, true);
    EXPECT_EQ(out.is_same(y), in_place);
    const Tensor slopes = out.narrow(0, 0, 500).neg();
    EXPECT_GE(slopes.min().item<double>(), 0.25);
    EXPECT_LE(slopes.max().item<double>(), 0.75);
    EXPECT_GT(slopes.std().item<double>(), 0.1);
    EXPECT_TRUE(out.narrow(0, 500, 11).equal(x.narrow(0, 500, 11)));
    y = x.clone();
    const Tensor calm = in_place ? rrelu_(y, 0.25, 0.75, false) : rrelu(y, 0.25, 0.75, false);
    EXPECT_TRUE(calm.equal(where(x.gt(0), x, x * 0.5)));
  }
  const Tensor leaf = x.clone().requires_grad_();
  const Tensor y = rrelu(leaf, 0.25, 0.75, true);
  y.sum().backward();
  EXPECT_TRUE(leaf.grad().narrow(0, 0, 500).equal(y.detach().narrow(0, 0, 500).neg()));
}

TEST(ActivationRules, AGateHalvesItsDimension) {
  const Tensor x = arange(1, 13, TensorOptions(kFloat64)).view({2, 6});
  EXPECT_TRUE(glu(x, 1).equal(x.narrow(1, 0, 3) * x.narrow(1, 3, 3).sigmoid()));
  EXPECT_TRUE(glu(x, -2).equal(x.narrow(0, 0, 1) * x.narrow(0, 1, 1).sigmoid()));
  EXPECT_EQ(message_of([] { glu(tensor(1.f), 0); }), "glu does not support scalars because halving size must be even");
  EXPECT_EQ(message_of([] { glu(ones({2, 3}), -1); }), "Halving dimension must be even, but dimension 1 is size 3");
  EXPECT_THROW(glu(tensor({1, 2}), 0), Error);
  EXPECT_THROW(glu(x, 2), Error);
}

TEST(FloatPowerRules, InPlaceTheBaseIsOfFloat64) {
  const std::string text =
      "the base given to float_power_ has dtype Float but the operation's result requires dtype Double";
  EXPECT_EQ(message_of([] { ones({2}).float_power_(2); }), text);
  EXPECT_EQ(message_of([] { ones({2}).float_power_(tensor({1, 2})); }), text);
  EXPECT_EQ(tensor({3}).to(kFloat64).float_power_(2).item<double>(), 9);
  EXPECT_EQ(tensor({3}).to(kFloat64).float_power_(tensor({2})).item<double>(), 9);
  EXPECT_EQ(tensor({3}).float_power(2).scalar_type(), kFloat64);
  EXPECT_EQ(message_of([] { mvlgamma(tensor({true}), 1); }), "The input tensor may not be a boolean tensor.");
  EXPECT_EQ(message_of([] { mvlgamma(ones({1}), 0); }), "p has to be greater than or equal to 1, got 0");
  EXPECT_NO_THROW(mvlgamma(ones({1}), 1));
}

TEST(ComparisonRules, EqualSizesAndCloseEnoughNumbers) {
  const Tensor x = tensor({1., 2.}), y = tensor({1., 2.1});
  EXPECT_FALSE(x.equal(ones({2, 1})));
  EXPECT_FALSE(x.equal(y));
  EXPECT_TRUE(x.equal(x.clone()));
  EXPECT_TRUE(empty({0}).equal(empty({0})));
  EXPECT_TRUE(x.allclose(y, 0.05, 0));
  EXPECT_FALSE(x.allclose(y, 0.04, 0));
  EXPECT_TRUE(x.allclose(y, 0, 0.11));
  EXPECT_TRUE(tensor({10.}).allclose(tensor({11.}), 0.095, 0)) << "relative to the second";
  EXPECT_FALSE(tensor({11.}).allclose(tensor({10.}), 0.095, 0));
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  const Tensor odd = tensor({nan, infinity, -infinity});
  EXPECT_TRUE(isclose(odd, odd).equal(tensor({false, true, true})));
  EXPECT_TRUE(isclose(odd, odd, 1e-5, 1e-8, true).all().item<bool>());
  EXPECT_TRUE(isclose(odd, odd, 0, 0, true).all().item<bool>());
  EXPECT_FALSE(isclose(tensor({infinity}), tensor({1.}), 1, infinity).item<bool>());
  EXPECT_TRUE(isclose(tensor({100}), tensor({101}), 0.01, 0).item<bool>());
  EXPECT_FALSE(tensor({100}).isclose(tensor({102}), 0.01, 0, false).item<bool>());
  EXPECT_EQ(message_of([&] { isclose(x, y, -1, 0); }), "rtol must be greater than or equal to zero, but got -1.000000");
  EXPECT_EQ(message_of([&] { isclose(x, y, 0, -1); }), "atol must be greater than or equal to zero, but got -1.000000");
  EXPECT_EQ(message_of([&] { isclose(x, tensor({1, 2})); }), "Float did not match Long");
  EXPECT_EQ(message_of([&] { x.bitwise_and(x); }), "\"bitwise_and\" not implemented for 'Float'");
  EXPECT_EQ(message_of([] { tensor({1}).bitwise_or(1.5); }), "\"bitwise_or\" not implemented for 'Float'");
  EXPECT_TRUE(tensor({6, 5}).bitwise_xor_(tensor({3, 3})).equal(tensor({5, 6})));
  EXPECT_TRUE(tensor({6, 5}).bitwise_and_(3).equal(tensor({2, 1})));
  EXPECT_TRUE(x.clone().gt_(1).equal(tensor({0., 1.})));
  EXPECT_TRUE(x.clone().le_(tensor({0., 5.})).equal(tensor({0., 1.})));
}

/// What a block's values become: its largest magnitude times the nearest number of the map below or at each share.
std::vector<float> as_blocks(const std::vector<float>& values, bool is_signed) {
  const auto map = dynamic_map(is_signed);
  const auto thresholds = dynamic_thresholds(is_signed);
  std::vector<float> result(values.size());
  for (std::size_t first = 0; first < values.size(); first += kBlockValues) {
    const std::size_t last = std::min(values.size(), first + kBlockValues);
    float scale = 0;
    for (std::size_t i = first; i < last; ++i) scale = std::max(scale, std::abs(values[i]));
    for (std::size_t i = first; i < last; ++i) {
      const float share = scale == 0 ? 0 : values[i] / scale;
      std::size_t code = 0;
      while (code + 1 < map.size() && share >= thresholds[code + 1]) ++code;
      result[i] = map[code] * scale;
    }
  }
  return result;
}

Tensor uneven(std::int64_t count) {
  const Tensor i = arange(count, TensorOptions(kFloat64));
  return (i.sin() * (i.mul(0.37).cos() * 8).exp()).to(kFloat32);
}

TEST(BlockRules, EachBlockIsItsLargestMagnitudeTimesSteps) {
  namespace q = quantized;
  const auto check = [](std::int64_t count, bool is_signed) {
    Tensor x = is_signed ? uneven(count) : uneven(count).abs();
    if (count > 2 * kBlockValues) x.narrow(0, kBlockValues, kBlockValues).zero_();
    const std::vector<float> want = as_blocks({x.data_ptr<float>(), x.data_ptr<float>() + count}, is_signed);
    const Tensor packed = q::pack_blocks(x, is_signed);
    ASSERT_EQ(packed.numel(), q::packed_bytes(count));
    const Tensor back = q::unpack_blocks(packed, x, is_signed);
    for (std::int64_t i = 0; i < count; ++i)
      ASSERT_EQ(back.data_ptr<float>()[i], want[static_cast<std::size_t>(i)]) << i;
  };
  const std::vector<const char*> ops{"pack_blocks", "unpack_blocks"};
  for (const bool with_kernels : {true, false}) {
    std::vector<Kernel> kernels;
    for (const char* op : ops) kernels.push_back(find_kernel(kCPU, intern_operator(op)));
    for (std::size_t i = 0; i < ops.size() && !with_kernels; ++i) register_kernel(kCPU, ops[i], nullptr);
    for (const bool is_signed : {true, false})
      for (const std::int64_t count :
           {std::int64_t{1}, kBlockValues, kBlockValues + 1, 3 * kBlockValues - 7, 300 * kBlockValues + 5})
        check(count, is_signed);
    for (std::size_t i = 0; i < ops.size(); ++i) register_kernel(kCPU, ops[i], kernels[i]);
  }
}

TEST(BlockRules, TheValuesKeepTheirOrderInMemoryAndTheirDtype) {
  namespace q = quantized;
  const Tensor x = uneven(600).view({20, 30}), turned = x.t();
  const std::vector<const char*> ops{"pack_blocks", "unpack_blocks"};
  for (const bool with_kernels : {true, false}) {
    std::vector<Kernel> kernels;
    for (const char* op : ops) kernels.push_back(find_kernel(kCPU, intern_operator(op)));
    for (std::size_t i = 0; i < ops.size() && !with_kernels; ++i) register_kernel(kCPU, ops[i], nullptr);
    const Tensor packed = q::pack_blocks(x, true), back = q::unpack_blocks(packed, x, true);
    EXPECT_TRUE(q::pack_blocks(turned, true).equal(packed));
    EXPECT_TRUE(q::unpack_blocks(packed, turned, true).equal(back.t()));
    EXPECT_EQ(q::unpack_blocks(packed, turned, true).strides().vec(), turned.strides().vec());
    EXPECT_TRUE(q::unpack_blocks(packed, x.expand({20, 30}), true).equal(back));
    for (const Dtype dtype : {kFloat16, kBFloat16, kFloat64}) {
      const Tensor like = x.to(dtype);
      EXPECT_EQ(q::unpack_blocks(packed, like, true).scalar_type(), dtype);
      EXPECT_TRUE(q::unpack_blocks(packed, like, true).equal(back.to(dtype)));
      EXPECT_TRUE(q::pack_blocks(like, true).equal(q::pack_blocks(like.to(kFloat32), true)));
    }
    const Tensor part = x.narrow(0, 3, 10);
    EXPECT_TRUE(q::pack_blocks(part, true).equal(q::pack_blocks(part.clone(), true))) << "from where it begins";
    Tensor room = zeros({q::packed_bytes(600) + 9}, kUInt8), shifted = room.narrow(0, 1, q::packed_bytes(600));
    shifted.copy_(packed);
    EXPECT_TRUE(q::unpack_blocks(shifted, x, true).equal(back)) << "wherever the bytes lie";
    const Tensor into = zeros({q::packed_bytes(600)}, kUInt8);
    EXPECT_TRUE(q::pack_blocks(x, true, into).is_same(into));
    EXPECT_TRUE(into.equal(packed));
    EXPECT_GE(into._version(), 1);
    for (const double odd : {std::nan(""), std::numeric_limits<double>::infinity()}) {
      Tensor y = x.clone();
      y[0][0] = Scalar(odd);
      const Tensor seen = q::unpack_blocks(q::pack_blocks(y, true), y, true).flatten();
      EXPECT_TRUE(seen.narrow(0, 0, kBlockValues).isnan().all().item<bool>());
      EXPECT_TRUE(seen.narrow(0, kBlockValues, 600 - kBlockValues)
                      .equal(back.flatten().narrow(0, kBlockValues, 600 - kBlockValues)));
    }
    for (std::size_t i = 0; i < ops.size(); ++i) register_kernel(kCPU, ops[i], kernels[i]);
  }
  EXPECT_EQ(q::pack_blocks(empty({0}), true).numel(), 0);
  EXPECT_EQ(q::unpack_blocks(empty({0}, kUInt8), empty({0, 3}), true).sizes().vec(), (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(message_of([&] { q::pack_blocks(x.slice(1, 0, 30, 2), true); }),
            "pack_blocks: the values have holes in their memory: contiguous() has none");
  EXPECT_THROW(q::pack_blocks(tensor({1}), true), Error);
  const std::int64_t bytes = q::packed_bytes(600);
  const std::string into = "pack_blocks: 600 values take a row of " + std::to_string(bytes) + " bytes of uint8, not ";
  EXPECT_EQ(message_of([&] { q::pack_blocks(x, true, zeros({5}, kUInt8)); }), into + "5 of uint8");
  EXPECT_EQ(message_of([&] { q::pack_blocks(x, true, zeros({bytes}, kInt8)); }),
            into + std::to_string(bytes) + " of int8");
  EXPECT_THROW(q::pack_blocks(x, true, zeros({2 * bytes}, kUInt8).slice(0, 0, 2 * bytes, 2)), Error);
  const std::string from = "unpack_blocks: 600 values are a row of " + std::to_string(bytes) + " bytes of uint8, not ";
  EXPECT_EQ(message_of([&] { q::unpack_blocks(zeros({5}, kUInt8), x, true); }), from + "5 of uint8");
  EXPECT_EQ(message_of([&] { q::unpack_blocks(zeros({bytes}, kInt8), x, true); }),
            from + std::to_string(bytes) + " of int8");
  EXPECT_THROW(q::unpack_blocks(zeros({2 * bytes}, kUInt8).slice(0, 0, 2 * bytes, 2), x, true), Error);
  EXPECT_THROW(q::unpack_blocks(zeros({bytes}, kUInt8), x.to(kInt64), true), Error);
}

}  // namespace
}  // namespace tenon::test
