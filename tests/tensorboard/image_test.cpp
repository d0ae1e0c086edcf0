// Images: decoded by libpng and held against the tensor, in every order of dimensions.
#include <tenon/tenon.h>
#include <tenon/tensorboard/image.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include <cstdint>
#include <vector>

namespace tenon::test {
namespace {

using tensorboard::encode_image;
using tensorboard::EncodedImage;

/// The pixels of a PNG as RGBA: [height, width, 4].
Tensor decoded(const EncodedImage& encoded) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  EXPECT_NE(png_image_begin_read_from_memory(&image, encoded.png.data(), encoded.png.size()), 0);
  image.format = PNG_FORMAT_RGBA;
  Tensor pixels = empty({image.height, image.width, 4}, Dtype::kUInt8);
  EXPECT_NE(png_image_finish_read(&image, nullptr, pixels.data_ptr<std::uint8_t>(), 0, nullptr), 0);
  EXPECT_EQ(pixels.size(0), encoded.height);
  EXPECT_EQ(pixels.size(1), encoded.width);
  return pixels;
}

Tensor bytes(std::vector<std::int64_t> sizes) { return randint(0, 256, sizes).to(Dtype::kUInt8); }

TEST(Image, BytesComeBackAsTheyWereInEveryOrder) {
  manual_seed(1);
  const Tensor picture = bytes({3, 5, 7});  // CHW
  const Tensor expected = picture.permute({1, 2, 0});
  for (const auto& [order, format] : std::vector<std::pair<std::vector<std::int64_t>, const char*>>{
           {{0, 1, 2}, "CHW"}, {{1, 2, 0}, "HWC"}, {{2, 1, 0}, "WHC"}, {{1, 0, 2}, "HCW"}}) {
    const EncodedImage encoded = encode_image(picture.permute(order), format);
    EXPECT_EQ(encoded.channels, 3);
    EXPECT_TRUE(decoded(encoded).narrow(2, 0, 3).equal(expected)) << format;
  }
}

TEST(Image, FloatsAreFromBlackToWhiteAndCutOffOutside) {
  const Tensor picture = tensor({-1.0F, 0.0F, 0.5F, 1.0F, 2.0F, NAN}).reshape({1, 6});
  const Tensor grey = decoded(encode_image(picture, "HW")).select(2, 0).flatten();
  EXPECT_TRUE(grey.equal(tensor({0, 0, 127, 255, 255, 0}).to(Dtype::kUInt8)));
}

TEST(Image, OneChannelIsGreyAndFourHaveAnAlpha) {
  manual_seed(2);
  const Tensor grey = bytes({1, 4, 4});
  const Tensor shown = decoded(encode_image(grey, "CHW"));
  for (int channel = 0; channel < 3; ++channel) EXPECT_TRUE(shown.select(2, channel).equal(grey[0]));
  const Tensor alpha = bytes({4, 4, 4});
  const EncodedImage encoded = encode_image(alpha, "HWC");
  EXPECT_EQ(encoded.channels, 4);
  EXPECT_TRUE(decoded(encoded).equal(alpha));
}

TEST(Image, ABatchIsAGridOfEightARow) {
  manual_seed(3);
  const Tensor pictures = bytes({10, 3, 2, 3});
  const Tensor grid = decoded(encode_image(pictures, "NCHW")).narrow(2, 0, 3);
  EXPECT_EQ(grid.size(0), 4);
  EXPECT_EQ(grid.size(1), 24);
  for (std::int64_t i = 0; i < 10; ++i) {
    const Tensor place = grid.narrow(0, i / 8 * 2, 2).narrow(1, i % 8 * 3, 3);
    EXPECT_TRUE(place.equal(pictures[i].permute({1, 2, 0}))) << i;
  }
  EXPECT_EQ(grid.narrow(0, 2, 2).narrow(1, 6, 18).sum().item<std::int64_t>(), 0) << "places without one are black";
}

TEST(Image, AFullRowIsFollowedByNoEmptyOne) {
  const Tensor grid = decoded(encode_image(bytes({8, 3, 2, 3}), "NCHW"));
  EXPECT_EQ(grid.size(0), 2);
  EXPECT_EQ(grid.size(1), 24);
}

TEST(Image, WhatDoesNotFitIsRefusedWithItsShape) {
  const auto refusal = [](const Tensor& picture, const char* format) -> std::string {
    try {
      encode_image(picture, format);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal(zeros({3, 4}), "CHW"), testing::HasSubstr("has 3 dimensions, got a tensor of shape [3, 4]"));
  EXPECT_THAT(refusal(zeros({2, 4, 4}), "CHW"), testing::HasSubstr("1, 3 or 4 channels, got 2"));
  EXPECT_THAT(refusal(zeros({3, 4, 4}), "CHX"), testing::HasSubstr("unknown order"));
  EXPECT_THAT(refusal(zeros({3, 4, 4}), "CHH"), testing::HasSubstr("unknown order"));
  EXPECT_THAT(refusal(zeros({3, 0, 4}), "CHW"), testing::HasSubstr("no pixels"));
}

}  // namespace
}  // namespace tenon::test
