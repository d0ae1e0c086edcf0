// Tensors: factories, promotion, views, memory formats, random numbers, errors.
#include "support/expect_error.h"

#include <tenon/autograd/autograd.h>
#include <tenon/core/half_limits.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/ops.h>
#include <tenon/ops/special.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <support/message_of.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>

namespace tenon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Dims, ViewStridesFollowDenseRuns) {
  EXPECT_EQ(*view_strides({2, 3, 4}, {12, 4, 1}, {6, 4}), (Dims{4, 1}));
  EXPECT_EQ(*view_strides({2, 3, 4}, {12, 4, 1}, {2, 12}), (Dims{12, 1}));
  EXPECT_FALSE(view_strides({3, 2}, {1, 3}, {6}).has_value());
  EXPECT_EQ(*view_strides({4, 1}, {1, 1}, {2, 2, 1}), (Dims{2, 1, 1}));
}

TEST(Tensor, LiteralsHaveTheDtypeOfTheirElements) {
  EXPECT_EQ(tensor({1, 2, 3}).scalar_type(), kInt64);
  EXPECT_EQ(tensor({1.5, 2.0}).scalar_type(), kFloat32);
  EXPECT_EQ(tensor({true, false}).scalar_type(), kBool);
  const Tensor nested = tensor({{{1, 2}}, {{3, 4}}});
  EXPECT_EQ(nested.sizes().vec(), (std::vector<std::int64_t>{2, 1, 2}));
  EXPECT_EQ(nested[1][0][1].item<int>(), 4);
  test::expect_error([] { tensor({{1, 2}, {3}}); }, "Expected all sub-lists to have sizes: 2");
  test::expect_error([] { tensor({{1, 2}, {3.0, 4.0}}); }, "same scalar type: Int");
}

TEST(Tensor, PromotionIsPyTorchs) {
  const Tensor bytes = ones({2}, kUInt8);
  const Tensor longs = ones({2}, kInt64);
  const Tensor floats = ones({2}, kFloat32);
  const Tensor halves = ones({2}, kFloat16);
  const Tensor doubles = ones({2}, kFloat64);
  EXPECT_EQ((bytes + longs).scalar_type(), kInt64);
  EXPECT_EQ((bytes + ones({2}, kInt8)).scalar_type(), kInt16);
  EXPECT_EQ((longs + floats).scalar_type(), kFloat32);
  EXPECT_EQ((halves + ones({2}, kBFloat16)).scalar_type(), kFloat32);
  EXPECT_EQ((floats + doubles).scalar_type(), kFloat64);
  EXPECT_EQ((longs / longs).scalar_type(), kFloat32);
  EXPECT_EQ((longs + 1.5).scalar_type(), kFloat32);
  EXPECT_EQ((halves + 1.5).scalar_type(), kFloat16);
  EXPECT_EQ((bytes + 1).scalar_type(), kUInt8);
  // A tensor without dimensions weighs less than one with.
  EXPECT_EQ((floats + ones({}, kFloat64)).scalar_type(), kFloat32);
  EXPECT_EQ((longs + ones({}, kFloat64)).scalar_type(), kFloat64);
  EXPECT_EQ((longs > 1).scalar_type(), kBool);
  EXPECT_EQ(ones({2}, kBool).sum().scalar_type(), kInt64);
}

TEST(Tensor, InPlaceRefusesWhatItCannotHold) {
  const Tensor longs = ones({2}, kInt64);
  test::expect_error([&] { longs.add_(1.5); }, "result type Float can't be cast to the desired output type Long");
  test::expect_error(
      [&] {
        ones({2}).add_(ones({3, 2}));
      },
      "output with shape [2] doesn't match the broadcast shape [3, 2]");
  test::expect_error([&] { ones({1}).expand({3}).add_(1); }, "single memory location");
}

TEST(Tensor, ErrorsNameShapesAndDtypes) {
  test::expect_error(
      [] {
        ones({2, 3}) + ones({2, 4});
      },
      "The size of tensor a (3) must match the size of tensor b (4)");
  test::expect_error([] { ones({2, 3}).mm(ones({2, 3})); }, "(2x3 and 2x3)");
  test::expect_error([] { ones({2, 3}).mm(ones({3, 2}, kFloat64)); }, "expected scalar type Float but found Double");
  test::expect_error([] { ones({2, 3}).view({4}); }, "shape '[4]' is invalid for input of size 6");
  test::expect_error([] { ones({2, 3}).transpose(0, 1).view({6}); }, "Use .reshape");
  test::expect_error<IndexError>([] { ones({2, 3}).sum(2); }, "expected to be in range of [-2, 1], but got 2");
  test::expect_error([] { ones({2}).item(); }, "2 elements cannot be converted to Scalar");
  test::expect_error([] { Tensor().strides(); }, "undefined");
}

TEST(Tensor, UndefinedHasSizesAsInLibtorchAndNothingElse) {
  const Tensor none;
  EXPECT_EQ(none.sizes(), IntArrayRef({0}));
  EXPECT_EQ(none.dim(), 1);
  EXPECT_EQ(none.numel(), 0);
  EXPECT_FALSE(none.requires_grad());
  for (const auto& use :
       std::vector<std::function<void()>>{[&] { none.device(); }, [&] { none.scalar_type(); }, [&] { none.add(1); },
                                          [&] { ones({1}).add(none); }, [&] { none.sum(); }, [&] { none.reshape({0}); },
                                          [&] {
                                            cat({none, none});
                                          },
                                          [&] { none.clone(); }, [&] { mm(none, none); }, [&] { none.item(); },
                                          [&] { none.backward(); }, [&] { none.to(kFloat64); }}) {
    EXPECT_THROW(use(), Error);
  }
}

TEST(Tensor, UndefinedSaysThatItIsSo) {
  const Tensor none;
  for (const auto& use :
       std::vector<std::function<void()>>{[&] { none.device(); }, [&] { none.scalar_type(); }, [&] { none.strides(); },
                                          [&] { none.storage_offset(); }, [&] { none.current_version(); }})
    EXPECT_EQ(test::message_of(use), "tensor does not have a device, sizes or data: it is undefined");
}

TEST(Tensor, TypeIsNamedInLibtorchsWords) {
  EXPECT_EQ(Tensor().toString(), "UndefinedType");
  EXPECT_EQ(ones({1}).toString(), "CPUFloatType");
  EXPECT_EQ(ones({1}, kInt64).toString(), "CPULongType");
  EXPECT_EQ(ones({1}, TensorOptions(Device("simulated:0")).dtype(kFloat64)).toString(), "SIMULATEDDoubleType");
  testing::internal::CaptureStderr();
  ones({2, 3}, kBool).print();
  Tensor().print();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "[CPUBoolType [2, 3]]\n[UndefinedTensor]\n");
}

TEST(Tensor, VersionCountsWritesAndIsNoneOfAnInferenceTensor) {
  const Tensor x = ones({2});
  const std::int64_t before = x.current_version();
  x.add_(1);
  x.detach().add_(1);
  EXPECT_EQ(x.current_version(), before + 2);
  EXPECT_EQ(x._version(), before + 2);
  const InferenceMode mode;
  EXPECT_EQ(test::message_of([] { ones({2}).current_version(); }), "Inference tensors do not track version counter.");
}

TEST(Tensor, AccessorsOf32BitsTakeAsManyElementsAsTheseCanNumber) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const Tensor one = ones({1}, kInt8);
  EXPECT_EQ((one.expand({kMost}).packed_accessor32<std::int8_t, 1>()[kMost - 1]), 1);
  EXPECT_EQ(
      test::message_of([&] { one.expand({kMost + 1}).packed_accessor32<std::int8_t, 1>(); }),
      "numel needs to be smaller than int32_t max; otherwise, please use packed_accessor64 (numel is 2147483648)");
  EXPECT_EQ((one.expand({kMost + 1}).packed_accessor64<std::int8_t, 1>()[kMost]), 1);
}

TEST(Tensor, LiteralsMeanSizesAndAmounts) {
  const Tensor x = ones({1});
  EXPECT_EQ(x.view({}).dim(), 0) << "an empty list is sizes, not a dtype";
  EXPECT_EQ(x.view(kInt32).scalar_type(), kInt32);
  EXPECT_EQ(x.view(x.dtype()).scalar_type(), kFloat32);
  const Tensor square = arange(9, kFloat32).view({3, 3});
  EXPECT_TRUE(_reshape_alias(square, {2, 2}, {1, 2}).equal(square.as_strided({2, 2}, {1, 2})));
  const Tensor image = ones({1, 1, 3, 3});
  EXPECT_EQ(conv2d(image, ones({1, 1, 1, 1}), {}, 1, 0).numel(), 9) << "a literal 0 is an amount of padding";
  EXPECT_EQ(conv2d(image, ones({1, 1, 3, 3}), {}, 1, "same").numel(), 9);
}

TEST(Tensor, CopiesWithinOneStorageReadBeforeTheyWrite) {
  Tensor x = arange(6, kFloat32);
  x.slice(0, 0, 4).copy_(x.slice(0, 2, 6));
  EXPECT_TRUE(x.equal(tensor({2.0, 3.0, 4.0, 5.0, 4.0, 5.0})));
  x.slice(0, 0, 2).copy_(x.slice(0, 4, 6));
  EXPECT_TRUE(x.equal(tensor({4.0, 5.0, 4.0, 5.0, 4.0, 5.0})));
}

TEST(Special, DigammaAndPolygammaHaveTheirKnownValues) {
  const Tensor x = tensor({1.0, 0.5, -0.5, 20.0}, kFloat64);
  const auto close = [](const Tensor& got, const Tensor& want) { return got.allclose(want, 1e-12, 1e-12); };
  EXPECT_TRUE(
      close(digamma(x),
            tensor({-0.5772156649015329, -1.9635100260214235, 0.03648997397857652, 2.9705239922421495}, kFloat64)));
  EXPECT_TRUE(close(polygamma(1, x),
                    tensor({1.6449340668482264, 4.934802200544679, 8.934802200544679, 0.05127082293520312}, kFloat64)));
  EXPECT_TRUE(
      close(polygamma(2, x),
            tensor({-2.4041138063191885, -16.82879664423432, -0.8287966442343199, -0.0026281224023146543}, kFloat64)));
  EXPECT_THROW(polygamma(-1, x), Error);
}

TEST(Special, NamesAreThoseOfTorchSpecial) {
  const Tensor x = tensor({0.25, 0.5, 0.75}, kFloat64);
  EXPECT_TRUE(special::gammaln(x).equal(lgamma(x)));
  EXPECT_TRUE(special::psi(x).equal(special::digamma(x)));
  EXPECT_TRUE(special::expit(x).equal(sigmoid(x)));
  EXPECT_TRUE(special::erfinv(special::erf(x)).allclose(x, 1e-12, 1e-12));
  EXPECT_TRUE(special::log_softmax(x, 0).exp().allclose(special::softmax(x, 0)));
}

TEST(DefaultDtype, MayBeAnIntegerForFactoriesButNotToComputeIn) {
  const TypeMeta before = get_default_dtype();
  set_default_dtype(kInt32);
  const TensorOptions options;
  const Tensor made = ones({2});
  EXPECT_EQ(options.dtype(), kInt32);
  EXPECT_EQ(made.dtype(), kInt32);
  EXPECT_THAT([&] { made.exp(); }, ThrowsMessage<Error>(AllOf(HasSubstr("\"exp\" not implemented for 'Int'"),
                                                              HasSubstr("set_default_dtype()"))));
  test::expect_error([&] { made.div(made); }, "\"div\" not implemented for 'Int'");
  set_default_dtype(kFloat64);
  EXPECT_EQ(made.exp().dtype(), kFloat64);
  set_default_dtype(before);
  EXPECT_EQ(ones({2}).dtype(), before);
}

TEST(Device, IsParsedAsInPyTorch) {
  EXPECT_EQ(Device("cpu:0"), Device(DeviceType::CPU, 0));
  EXPECT_EQ(Device("cuda:123"), Device(DeviceType::CUDA, 123));
  EXPECT_EQ(Device("hip"), Device(DeviceType::HIP));
  EXPECT_EQ(Device("simulated:1"), Device(kSimulated, 1));
  for (const char* wrong : {"", "cud:1", "cuda:", "cpu::1", ":1", "3", "tpu:4", "??", "cuda:01", "cuda:128"}) {
    EXPECT_THAT([&] { Device device(wrong); }, ThrowsMessage<Error>(HasSubstr("Invalid device string"))) << wrong;
  }
}

TEST(Tensor, ViewsShareMemory) {
  Tensor x = arange(12, kFloat32).view({3, 4});
  x.select(0, 1).fill_(-1);
  x.t().select(0, 0).add_(100);
  EXPECT_TRUE(x.equal(tensor({{100.0, 1.0, 2.0, 3.0}, {99.0, -1.0, -1.0, -1.0}, {108.0, 9.0, 10.0, 11.0}})));
  EXPECT_EQ(x.diagonal().sizes().vec(), (std::vector<std::int64_t>{3}));
  EXPECT_TRUE(x.unsqueeze(1).is_alias_of(x));
  EXPECT_FALSE(x.t().reshape({12}).is_alias_of(x));
  EXPECT_EQ(x.unfold(1, 2, 1).sizes().vec(), (std::vector<std::int64_t>{3, 3, 2}));
}

TEST(Tensor, ChannelsLastIsKeptByPointwiseOperators) {
  const Tensor x = ones({2, 3, 4, 5}).contiguous(MemoryFormat::ChannelsLast);
  EXPECT_TRUE(x.is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_FALSE(x.is_contiguous());
  EXPECT_TRUE((x + 1).is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_TRUE(x.relu().is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_TRUE(x.contiguous().equal(ones({2, 3, 4, 5})));
}

TEST(Tensor, ConversionsRoundAndTruncate) {
  EXPECT_TRUE(tensor({1.9, -1.9}).to(kInt32).equal(tensor({1, -1}, kInt32)));
  EXPECT_TRUE(tensor({0.0, -2.0}).to(kBool).equal(tensor({false, true})));
  EXPECT_EQ(tensor({1.0 / 3}).to(kFloat16).to(kFloat32).item<float>(), static_cast<float>(Half(1.0f / 3)));
  const Tensor x = ones({2});
  EXPECT_TRUE(x.to(kFloat32).is_same(x));
  EXPECT_FALSE(x.to(kFloat32, false, true).is_same(x));
}

TEST(Tensor, ConcatenationChecksSizes) {
  EXPECT_TRUE(cat({ones({1, 2}), zeros({2, 2})}).equal(tensor({{1.0, 1.0}, {0.0, 0.0}, {0.0, 0.0}})));
  EXPECT_EQ(stack({ones({2}), ones({2})}, 1).sizes().vec(), (std::vector<std::int64_t>{2, 2}));
  test::expect_error([] { cat({ones({1, 2}), ones({1, 3})}); }, "Expected size 2 but got size 3 for tensor number 1");
}

TEST(Random, IsSetBySeedAndMovesOn) {
  manual_seed(7);
  const Tensor a = randn({100});
  const Tensor b = randn({100});
  manual_seed(7);
  EXPECT_TRUE(a.equal(randn({100})));
  EXPECT_TRUE(b.equal(randn({100})));
  EXPECT_FALSE(a.equal(b));
  Generator own(7);
  EXPECT_TRUE(a.equal(randn({100}, own)));
}

TEST(Random, HasTheMomentsItClaims) {
  manual_seed(1);
  const Tensor u = rand({20000}, kFloat64);
  EXPECT_NEAR(u.mean().item<double>(), 0.5, 0.01);
  EXPECT_GE(u.min().item<double>(), 0);
  EXPECT_LT(u.max().item<double>(), 1);
  const Tensor n = randn({20000}, kFloat64);
  EXPECT_NEAR(n.mean().item<double>(), 0, 0.03);
  EXPECT_NEAR(n.var().item<double>(), 1, 0.05);
  const Tensor k = randint(3, 9, {20000});
  EXPECT_EQ(k.min().item<int>(), 3);
  EXPECT_EQ(k.max().item<int>(), 8);
  const Tensor order = randperm(50);
  EXPECT_TRUE(std::get<0>(order.sort()).equal(arange(50)));
  EXPECT_FALSE(order.equal(arange(50)));
  EXPECT_NEAR(empty({20000}).bernoulli_(0.3).mean().item<double>(), 0.3, 0.02);
}

TEST(Purpose, EveryAllocationIsAttributed) {
  EXPECT_EQ(ones({4}).impl().storage().block().request.purpose, Purpose::kActivation);
  PurposeGuard guard(Purpose::kParameter);
  EXPECT_EQ(ones({4}).impl().storage().block().request.purpose, Purpose::kParameter);
  const Tensor x = ones({4}, requires_grad());
  x.exp().sum().backward();
  EXPECT_EQ(x.grad().impl().storage().block().request.purpose, Purpose::kGradient);
}

TEST(Purpose, EveryAllocationSaysWhatItsElementsAre) {
  const auto kind_of = [](const Tensor& t) { return t.impl().storage().block().request.elements; };
  EXPECT_EQ(kind_of(ones({4})), ElementKind::kFloat32);
  EXPECT_EQ(kind_of(ones({4}).to(kBFloat16)), ElementKind::kBFloat16);
  EXPECT_EQ(kind_of(empty({4}, TensorOptions(kUInt8))), ElementKind::kInt8);
  EXPECT_EQ(kind_of(ones({2, 3}).t().to(kInt64)), ElementKind::kInteger) << "of given strides";
}

TEST(Storage, ReturnsToTheAllocatorItCameFrom) {
  int freed = 0;
  std::vector<float> data{1, 2, 3, 4};
  {
    const Tensor x = from_blob(data.data(), {2, 2}, [&](void* pointer) {
      EXPECT_EQ(pointer, data.data());
      ++freed;
    });
    const Tensor row = x[1];
    EXPECT_EQ(row.sum().item<float>(), 7);
  }
  EXPECT_EQ(freed, 1);
}

TEST(Promotion, BoolWithTrueStaysBool) {
  Tensor x = tensor({true, false});
  EXPECT_TRUE((x + true).equal(tensor({true, true})));
  EXPECT_TRUE(x.add_(true).equal(tensor({true, true})));
  EXPECT_EQ((x + 1).scalar_type(), kInt64);
}

TEST(Tensor, LiteralsOfSmallTypesKeepThem) {
  EXPECT_EQ(tensor(static_cast<std::uint8_t>(3)).scalar_type(), kUInt8);
  EXPECT_EQ(tensor(static_cast<std::int8_t>(3)).scalar_type(), kInt8);
  EXPECT_EQ(tensor(static_cast<std::int16_t>(3)).scalar_type(), kInt16);
  EXPECT_EQ(tensor(Half(3)).scalar_type(), kHalf);
  EXPECT_EQ(tensor(std::vector<std::uint8_t>{1, 2}).scalar_type(), kUInt8);
  EXPECT_EQ(tensor(std::vector<int>{1, 2}).scalar_type(), kInt64);
  EXPECT_EQ(tensor({1.5}).scalar_type(), kFloat32);
}

TEST(HalfLimits, AreThoseOfTheFormats) {
  EXPECT_EQ(static_cast<float>(std::numeric_limits<Half>::max()), 65504);
  EXPECT_EQ(static_cast<float>(std::numeric_limits<Half>::lowest()), -65504);
  const Half infinity = std::numeric_limits<Half>::infinity();
  EXPECT_EQ(tensor({-infinity, infinity}).dtype(), kFloat16) << "a list of one type";
  EXPECT_EQ(static_cast<float>(-BFloat16(1.5f)), -1.5f);
  EXPECT_EQ(static_cast<float>(std::numeric_limits<Half>::epsilon()), 0x1p-10f);
  EXPECT_EQ(static_cast<float>(std::numeric_limits<Half>::min()), 0x1p-14f);
  EXPECT_EQ(static_cast<float>(std::numeric_limits<BFloat16>::max()), 0x1.fep127f);
  EXPECT_EQ(static_cast<float>(std::numeric_limits<BFloat16>::epsilon()), 0x1p-7f);
  EXPECT_TRUE(std::isinf(static_cast<float>(std::numeric_limits<BFloat16>::infinity())));
  EXPECT_TRUE(std::isnan(static_cast<float>(std::numeric_limits<Half>::quiet_NaN())));
}

TEST(Product, OfManyTermsKeepsItsDigits) {
  constexpr std::int64_t kTerms = 1 << 22;
  const Tensor tenths = full({kTerms}, 0.1f), units = ones({kTerms});
  const double exact = static_cast<double>(0.1f) * kTerms;
  EXPECT_NEAR(tenths.dot(units).item<double>(), exact, 1e-4 * exact);
  const Tensor wide = mm(tenths.view({1, kTerms}), ones({kTerms, 2}));
  EXPECT_NEAR(wide[0][1].item<double>(), exact, 1e-4 * exact);
  // An addend counts once, however many runs the sum is cut into.
  const Tensor added = addmm(full({1, 1}, 1000.0), tenths.view({1, kTerms}), units.view({kTerms, 1}), 2, 0.5);
  EXPECT_NEAR(added.item<double>(), 2000 + 0.5 * exact, 1e-4 * exact);
}

}  // namespace
}  // namespace tenon
