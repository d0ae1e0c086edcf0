// Dtypes and their promotion, 16-bit floats, devices and their spelling, hints for names of files.
#include "../support/message_of.h"
#include "../support/scratch_folder.h"

#include <tenon/core/device.h>
#include <tenon/core/dtype.h>
#include <tenon/core/error.h>
#include <tenon/core/files/nearest_file.h>
#include <tenon/core/half.h>
#include <tenon/core/text/trimmed.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace tenon::test {
namespace {

using testing::HasSubstr;

TEST(Dtypes, ArePromotedAsInPyTorchsTable) {
  for (int a = 0; a < kDtypeCount; ++a) {
    for (int b = 0; b < kDtypeCount; ++b) {
      const auto left = static_cast<Dtype>(a), right = static_cast<Dtype>(b);
      Dtype want = std::max(left, right);
      const auto are = [&](Dtype x, Dtype y) { return (left == x && right == y) || (left == y && right == x); };
      if (are(Dtype::kFloat16, Dtype::kBFloat16)) want = Dtype::kFloat32;
      if (are(Dtype::kUInt8, Dtype::kInt8)) want = Dtype::kInt16;
      EXPECT_EQ(promote_types(left, right), want) << name_of(left) << ", " << name_of(right);
    }
  }
}

TEST(Dtypes, KnowTheirSizesAndKinds) {
  EXPECT_EQ(size_of(Dtype::kBool), 1u);
  EXPECT_EQ(size_of(Dtype::kInt16), 2u);
  EXPECT_EQ(size_of(Dtype::kBFloat16), 2u);
  EXPECT_EQ(size_of(Dtype::kFloat64), 8u);
  EXPECT_TRUE(is_floating_point(Dtype::kFloat16));
  EXPECT_FALSE(is_floating_point(Dtype::kInt64));
  EXPECT_FALSE(is_integral(Dtype::kBool));
  EXPECT_TRUE(is_integral(Dtype::kBool, true));
  EXPECT_TRUE(is_integral(Dtype::kUInt8));
  EXPECT_FALSE(is_integral(Dtype::kFloat16, true));
  EXPECT_FALSE(is_signed(Dtype::kUInt8));
  EXPECT_FALSE(is_signed(Dtype::kBool));
  EXPECT_TRUE(is_signed(Dtype::kInt8));
  EXPECT_EQ(name_of(Dtype::kBFloat16), "bfloat16");
}

/// The nearest of all numbers of a format, ties to the even one, by trying them all.
template <class T>
T nearest_by_trial(float value, std::uint16_t infinity) {
  T best = T::from_bits(0);
  double distance = INFINITY;
  for (std::uint32_t bits = 0; bits < infinity; ++bits) {
    const T candidate = T::from_bits(static_cast<std::uint16_t>(bits));
    const double own = std::abs(static_cast<double>(candidate) - std::abs(static_cast<double>(value)));
    if (own < distance || (own == distance && bits % 2 == 0)) {
      distance = own;
      best = candidate;
    }
  }
  if (std::signbit(value)) best.bits = static_cast<std::uint16_t>(best.bits | 0x8000u);
  return best;
}

TEST(HalfFloats, AreRoundedToTheNearestAndOfTwoToTheEvenOne) {
  for (const float value :
       {0.0f, -0.0f, 1.0f, -1.0f, 1.00048828125f, 1.00146484375f, 0.1f, -3.14159f, 65504.0f, 65519.0f, 6.1035e-5f,
        6.0976e-5f, 5.9605e-8f, 2.9802322e-8f, 2.9802326e-8f, 8.9e-8f, 1e-9f}) {
    EXPECT_EQ(Half(value).bits, nearest_by_trial<Half>(value, 0x7c00).bits) << value;
  }
  for (const float value : {0.0f, 1.0f, -1.0f, 1.00390625f, 1.01171875f, 0.1f, -3.14159f, 1e-38f, 1e30f}) {
    EXPECT_EQ(BFloat16(value).bits, nearest_by_trial<BFloat16>(value, 0x7f80).bits) << value;
  }
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(-INFINITY).bits, 0xfc00);
  EXPECT_TRUE(std::isnan(static_cast<float>(Half(NAN))));
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(NAN))));
  EXPECT_EQ(static_cast<float>(BFloat16(3.4e38f)), INFINITY);
}

TEST(HalfFloats, EveryOneComesBackFromAFloat) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto raw = static_cast<std::uint16_t>(bits);
    const float half = Half::from_bits(raw), brain = BFloat16::from_bits(raw);
    if (!std::isnan(half)) {
      ASSERT_EQ(Half(half).bits, raw);
    }
    if (!std::isnan(brain)) {
      ASSERT_EQ(BFloat16(brain).bits, raw);
    }
  }
}

TEST(Devices, AreSpeltByKindAndIndexAndNothingElse) {
  EXPECT_EQ(Device("cpu"), Device(kCPU));
  EXPECT_EQ(Device("cuda:0"), Device(kCUDA, 0));
  EXPECT_EQ(Device("cuda:127").index(), 127);
  EXPECT_FALSE(Device("cuda").has_index());
  EXPECT_TRUE(Device("cuda:0").has_index());
  EXPECT_EQ(Device("cuda:12").str(), "cuda:12");
  EXPECT_EQ(Device("cuda:0").str(), "cuda:0");
  EXPECT_EQ(Device("cuda").str(), "cuda");
  EXPECT_TRUE(Device("cuda").is_cuda());
  EXPECT_FALSE(Device("cuda").is_cpu());
  for (const char* wrong : {"", ":", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda:128", "cuda:01", "cuda:00", "CPU",
                            "cuda 1", "1cuda", "_cuda", "cuda:1:2", " cpu"}) {
    EXPECT_THAT(message_of([&] { Device device(wrong); }), HasSubstr("Invalid device string")) << wrong;
  }
  EXPECT_THAT(message_of([] { Device("cuda:128"); }), HasSubstr("with INDEX from 0 to 127"));
  EXPECT_THAT(message_of([] { Device("nowhere"); }), HasSubstr("there is no device kind 'nowhere'"));
}

TEST(DeviceKinds, AreNumberedOnceByName) {
  const DeviceType first = DeviceType::named("test_kind_1");
  EXPECT_EQ(DeviceType::named("test_kind_1"), first);
  EXPECT_NE(DeviceType::named("test_kind_2"), first);
  EXPECT_EQ(first.name(), "test_kind_1");
  EXPECT_EQ(DeviceType::find("test_kind_1"), first);
  EXPECT_FALSE(DeviceType::find("test_kind_3"));
  EXPECT_EQ(Device("test_kind_1:3").str(), "test_kind_1:3");
  for (const char* wrong : {"", "Upper", "with space", "9lives", "_begin", "dash-ed"})
    EXPECT_THAT(message_of([&] { DeviceType::named(wrong); }), HasSubstr("invalid device kind")) << wrong;
}

TEST(NearestFile, IsNamedForOneThatIsMissing) {
  const std::filesystem::path folder = scratch_folder() + "nearest";
  std::filesystem::create_directories(folder);
  for (const char* name : {"steps.trace.gz", "other"}) std::ofstream(folder / name) << "x";
  EXPECT_EQ(nearest_file_hint(folder / "steps.trace"), "; did you mean " + (folder / "steps.trace.gz").string() + "?");
  EXPECT_EQ(nearest_file_hint(folder / "ohter"), "; did you mean " + (folder / "other").string() + "?");
  EXPECT_EQ(nearest_file_hint(folder / "other"), "") << "it is there";
  EXPECT_EQ(nearest_file_hint(folder / "zzzzzzz"), "");
  std::filesystem::create_directories(folder / "home");
  EXPECT_EQ(nearest_file_hint(folder / "hone"), "") << "no folder is meant where a file is";
  EXPECT_EQ(nearest_file_hint(""), "");
  EXPECT_EQ(nearest_file_hint(folder / "absent" / "x"), "; there is no folder " + (folder / "absent").string());
}

TEST(NearestFile, IsTheFirstByNameOfSeveralThatGoOnAsTheOneThatIsMissing) {
  const std::filesystem::path folder = scratch_folder() + "several";
  std::filesystem::create_directories(folder);
  for (int i = 99; i >= 10; --i) std::ofstream(folder / ("run." + std::to_string(i))) << "x";
  EXPECT_EQ(nearest_file_hint(folder / "run"), "; did you mean " + (folder / "run.10").string() + "?");
  EXPECT_EQ(nearest_file_hint(folder / "run.9"), "; did you mean " + (folder / "run.19").string() + "?")
      << "of those that are equally near, too";
}

TEST(Trimmed, TakesBlanksFromBothEndsOnly) {
  EXPECT_EQ(trimmed("  a b\t"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \t "), "");
  EXPECT_EQ(trimmed(""), "");
  EXPECT_EQ(trimmed("xxaxx", "x"), "a");
}

}  // namespace
}  // namespace tenon::test
