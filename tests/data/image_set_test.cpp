// MNIST-like folders.
#include "data/idx_fixture.h"

#include <tenon/core/error.h>
#include <tenon/data/image_set.h>
#include <tenon/data/mnist.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>

namespace tenon::test {
namespace {

using data::read_mnist;
using data::Split;
using ::testing::HasSubstr;

std::string error_of_set(const std::filesystem::path& folder) {
  try {
    read_mnist(folder, Split::kTrain);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

using ImageSet = TemporaryFolder;

TEST_F(ImageSet, PicturesAndLabelsComeTogether) {
  write("t10k-images-idx3-ubyte.gz", gzipped(idx_bytes({2, 3, 4}, 24)));
  write("t10k-labels-idx1-ubyte", idx_bytes({2}, 2));
  const data::ImageSet set = read_mnist(folder, Split::kTest);
  EXPECT_EQ(set.count, 2);
  EXPECT_EQ(set.height, 3);
  EXPECT_EQ(set.width, 4);
  EXPECT_EQ(set.pixels.size(), 24u);
  EXPECT_EQ(set.labels, (std::vector<std::uint8_t>{0, 1}));
}

TEST_F(ImageSet, AsADataSetHasItsModesPicturesFromZeroToOne) {
  using data::datasets::MNIST;
  for (const std::string part : {"train", "t10k"}) {
    write(part + "-images-idx3-ubyte", idx_bytes({part == "train" ? 3u : 2u, 3, 4}, part == "train" ? 36 : 24));
    write(part + "-labels-idx1-ubyte", idx_bytes({part == "train" ? 3u : 2u}, part == "train" ? 3 : 2));
  }
  MNIST train(folder.string(), MNIST::Mode::kTrain), test(folder.string(), MNIST::Mode::kTest);
  EXPECT_EQ(train.size(), 3u);
  EXPECT_EQ(test.size(), 2u);
  const auto [picture, label] = test.get(1);
  EXPECT_EQ(picture.sizes(), IntArrayRef({1, 3, 4}));
  EXPECT_FLOAT_EQ(picture[0][0][1].item<float>(), 3.f / 255) << "the 13th pixel, which count up to ten";
  EXPECT_EQ(label.item<std::int64_t>(), 1);
}

TEST_F(ImageSet, AMissingFolderNamesThePackage) {
  EXPECT_THAT(error_of_set(folder / "nowhere"), HasSubstr("dataset-fashion-mnist"));
}

TEST_F(ImageSet, AMissingFileIsNamed) { EXPECT_THAT(error_of_set(folder), HasSubstr("train-images-idx3-ubyte.gz")); }

TEST_F(ImageSet, CountsMustAgree) {
  write("train-images-idx3-ubyte", idx_bytes({2, 1, 1}, 2));
  write("train-labels-idx1-ubyte", idx_bytes({3}, 3));
  EXPECT_THAT(error_of_set(folder), HasSubstr("holds 2 pictures"));
}

TEST_F(ImageSet, ALabelBeyondTheClassesIsNamed) {
  write("train-images-idx3-ubyte", idx_bytes({1, 1, 1}, 1));
  std::string labels = idx_bytes({1}, 0);
  labels.push_back(12);
  write("train-labels-idx1-ubyte", labels);
  EXPECT_THAT(error_of_set(folder), HasSubstr("label 12 of picture 0"));
}

TEST_F(ImageSet, TheFirstLabelBeyondTheClassesIsRefusedAndTheLastClassTaken) {
  write("train-images-idx3-ubyte", idx_bytes({1, 1, 1}, 1));
  for (const char label : {9, 10}) {
    std::string labels = idx_bytes({1}, 0);
    labels.push_back(label);
    write("train-labels-idx1-ubyte", labels);
    if (label == 9) {
      EXPECT_EQ(error_of_set(folder), "no error");
    } else {
      EXPECT_THAT(error_of_set(folder), HasSubstr("label 10 of picture 0 is not below 10"));
    }
  }
}

TEST(FashionMnist, HoldsSixtyThousandPictures) {
  if (!std::filesystem::is_directory(data::kFashionMnistFolder))
    GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  const data::ImageSet train = read_mnist(data::kFashionMnistFolder, Split::kTrain);
  EXPECT_EQ(train.count, 60000);
  EXPECT_EQ(train.height, 28);
  EXPECT_EQ(train.labels[0], 9);
  EXPECT_EQ(read_mnist(data::kFashionMnistFolder, Split::kTest).count, 10000);
}

}  // namespace
}  // namespace tenon::test
