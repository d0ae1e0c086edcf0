// What a model is given of the data that a file names: how large its pictures or its vocabulary are, how many examples
// there are, and why some do not fit.
#include "../../support/message_of.h"
#include "train/experiment_fixture.h"

#include <tenon/train/input/data_set.h>

#include <gtest/gtest.h>

namespace tenon::test {
namespace {

using Words = std::vector<std::string>;

class OpenedData : public Experiment {
 protected:
  train::TrainingData opened(const Words& words, Dtype dtype = kFloat32) {
    ConfigRequest request;
    request.overrides = words;
    request.use_environment = false;
    request.sections = training_sections();
    config_ = Config::load(request).experiment();
    for (const train::DataSet& set : train::data_sets())
      if (set.name == config_.section("data").text("name"))
        return set.open(config_, config_.section("data").text("path"), dtype);
    throw Error("no such data");
  }
  train::TrainingData pictures(Words more, Dtype dtype = kFloat32) {
    more.push_back("data.path=\"" + folder.string() + "\"");
    return opened(more, dtype);
  }
  /// Of a hundred characters, seven of them different; ten at the end are for the test.
  train::TrainingData text(Words more) {
    std::ofstream file(folder / "letters");
    for (int i = 0; i < 100; ++i) file << static_cast<char>('a' + i % 7);
    file.close();
    more.insert(more.end(), {"data.name=\"text\"", "data.path=\"" + (folder / "letters").string() + "\""});
    return opened(more);
  }
  ExperimentConfig config_;
};

TEST_F(OpenedData, OfPicturesHaveTheirSidesUnlessOthersAreAskedFor) {
  const train::TrainingData plain = pictures({"model.name=mlp"});
  EXPECT_EQ(plain.train->size(), 640);
  EXPECT_EQ(plain.test->size(), 100);
  EXPECT_EQ(plain.shape.channels, 1);
  EXPECT_EQ(plain.shape.height, 28);
  EXPECT_EQ(plain.shape.width, 28);
  EXPECT_EQ(plain.shape.classes, 10);
  EXPECT_EQ(plain.shape.vocabulary, 0);
  const train::TrainingData other = pictures({"model.name=mlp", "model.image_size=32", "model.channels=3",
                                              "model.classes=12", "data.limit=30", "data.test_limit=20"});
  EXPECT_EQ(other.train->size(), 30);
  EXPECT_EQ(other.test->size(), 20);
  EXPECT_EQ(other.shape.channels, 3);
  EXPECT_EQ(other.shape.height, 32);
  EXPECT_EQ(other.shape.width, 32);
  EXPECT_EQ(other.shape.classes, 12);
  other.test->begin(0, false);
  EXPECT_EQ(other.test->get(0, 2).input.sizes().vec(), (std::vector<std::int64_t>{2, 3, 32, 32}));
  const train::TrainingData doubles = pictures({"model.name=mlp"}, kFloat64);
  doubles.train->begin(0, false);
  EXPECT_EQ(doubles.train->get(0, 1).input.scalar_type(), kFloat64);
}

TEST_F(OpenedData, OfPixelsHaveAClassMoreForTheBackground) {
  const train::TrainingData data = pictures({"model.name=unet", "data.limit=4", "data.test_limit=4"});
  EXPECT_EQ(data.shape.classes, 11);
  data.train->begin(0, false);
  EXPECT_EQ(data.train->get(0, 2).target.sizes().vec(), (std::vector<std::int64_t>{2, 28, 28}));
  EXPECT_NE(message_of([&] {
              pictures({"model.name=unet", "model.classes=10"});
            }).find("model.classes: 10 is less than the 11 classes that the pictures have"),
            std::string::npos);
  EXPECT_EQ(pictures({"model.name=unet", "model.classes=11", "data.limit=4"}).shape.classes, 11);
}

TEST_F(OpenedData, OfTooFewClassesAreRefused) {
  EXPECT_NE(message_of<ConfigError>([&] {
              pictures({"model.name=mlp", "model.classes=9"});
            }).find("model.classes: 9 is less than the 10 classes that the pictures have"),
            std::string::npos);
  EXPECT_EQ(pictures({"model.name=mlp", "model.classes=10"}).shape.classes, 10);
}

TEST_F(OpenedData, OfATextHaveItsSymbolsAndWindows) {
  const train::TrainingData data = text({"model.name=gpt", "model.context=8"});
  EXPECT_EQ(data.shape.context, 8);
  EXPECT_EQ(data.shape.vocabulary, 7);
  EXPECT_EQ(data.train->size(), (90 - 1) / 8);
  EXPECT_EQ(data.test->size(), 1);
  const train::TrainingData more =
      text({"model.name=gpt", "model.context=2", "model.vocabulary=50", "data.limit=6", "data.test_limit=3"});
  EXPECT_EQ(more.shape.vocabulary, 50);
  EXPECT_EQ(more.train->size(), 6);
  EXPECT_EQ(more.test->size(), 3);
  EXPECT_EQ(text({"model.name=gpt", "model.context=8", "data.unit=byte"}).shape.vocabulary, 256);
}

TEST_F(OpenedData, OfAMaskedTextHaveASymbolMore) {
  const train::TrainingData data = text({"model.name=bert", "model.context=8"});
  EXPECT_EQ(data.shape.vocabulary, 8);
  for (train::Batches* part : {data.train.get(), data.test.get()}) {
    part->begin(3, false);
    const train::Batch batch = part->get(0, part->size());
    EXPECT_EQ(batch.answers, part->size()) << "15 in a hundred of eight";
    EXPECT_LE(batch.input.max().item<std::int64_t>(), 7) << "the mask is the last symbol";
  }
  EXPECT_NE(message_of<ConfigError>([&] {
              text({"model.name=bert", "model.context=8", "model.vocabulary=7"});
            }).find("model.vocabulary: 7 is less than the 7 symbols that the text has and one for the mask"),
            std::string::npos);
  EXPECT_EQ(text({"model.name=bert", "model.context=8", "model.vocabulary=8"}).shape.vocabulary, 8);
  EXPECT_NE(message_of<ConfigError>([&] {
              text({"model.name=gpt", "model.context=8", "model.vocabulary=6"});
            }).find("model.vocabulary: 6 is less than the 7 symbols that the text has"),
            std::string::npos);
}

TEST_F(OpenedData, OfAPresetHaveItsSizes) {
  const train::TrainingData data =
      pictures({"model.name=ddpm", "model.preset=cifar10", "data.limit=2", "data.test_limit=2"});
  EXPECT_EQ(data.shape.channels, 3);
  EXPECT_EQ(data.shape.height, 32);
}

}  // namespace
}  // namespace tenon::test
