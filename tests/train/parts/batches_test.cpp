// Batches of pictures, of texts and of texts with masks, each made of a few numbers that are known.
#include "../../support/message_of.h"

#include <tenon/device/device_state.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/ops.h>
#include <tenon/train/input/batches.h>

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

using Integers = std::vector<std::int64_t>;

Integers integers_of(const Tensor& tensor) {
  const Tensor values = tensor.to(kInt64).contiguous();
  return {values.data_ptr<std::int64_t>(), values.data_ptr<std::int64_t>() + values.numel()};
}

/// Five pictures of 2 by 3 pixels, each of which is another one; black where the pixel's number divides by 4.
data::ImageSet five_pictures() {
  data::ImageSet set{.count = 5, .height = 2, .width = 3, .pixels = {}, .labels = {3, 1, 4, 1, 5}, .classes = 6};
  for (int i = 0; i < 30; ++i) set.pixels.push_back(static_cast<std::uint8_t>(i % 4 == 0 ? 0 : 8 * i));
  return set;
}

/// Which byte each value of a picture was, by the mean and the deviation of Fashion-MNIST.
Integers bytes_of(const Tensor& pictures) {
  const Tensor values = pictures.to(kFloat64).flatten().contiguous();
  Integers bytes;
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    const double byte = 255 * (values.data_ptr<double>()[i] * 0.3530 + 0.2860);
    bytes.push_back(static_cast<std::int64_t>(std::lround(byte)));
    EXPECT_NEAR(byte, static_cast<double>(bytes.back()), 1e-3);
  }
  return bytes;
}

TEST(PictureBatches, AreTheFilesPicturesInTheOrderOfTheEpoch) {
  const data::ImageSet set = five_pictures();
  const auto batches = train::make_image_batches(set, {});
  EXPECT_EQ(batches->size(), 5);
  for (const bool shuffle : {false, true}) {
    batches->begin(9, shuffle);
    const Integers order = train::epoch_order(5, 9, shuffle);
    const train::Batch batch = batches->get(1, 3);
    EXPECT_EQ(batch.input.sizes().vec(), (Integers{3, 1, 2, 3}));
    EXPECT_EQ(batch.input.scalar_type(), kFloat32);
    EXPECT_EQ(batch.target.scalar_type(), kInt64);
    EXPECT_EQ(batch.answers, 3);
    Integers pixels, labels;
    for (std::size_t i = 1; i < 4; ++i) {
      const auto which = static_cast<std::size_t>(order[i]);
      pixels.insert(pixels.end(), set.pixels.begin() + static_cast<std::ptrdiff_t>(6 * which),
                    set.pixels.begin() + static_cast<std::ptrdiff_t>(6 * which + 6));
      labels.push_back(set.labels[which]);
    }
    EXPECT_EQ(bytes_of(batch.input), pixels);
    EXPECT_EQ(integers_of(batch.target), labels);
  }
}

TEST(PictureBatches, MayBeFewerWiderAndOfOtherNumbers) {
  const auto batches = train::make_image_batches(five_pictures(), {.limit = 3, .channels = 2, .dtype = kFloat64});
  EXPECT_EQ(batches->size(), 3);
  batches->begin(0, false);
  const Tensor input = batches->get(0, 2).input;
  EXPECT_EQ(input.sizes().vec(), (Integers{2, 2, 2, 3}));
  EXPECT_EQ(input.scalar_type(), kFloat64);
  EXPECT_TRUE(input.is_contiguous());
  EXPECT_TRUE(input.select(1, 0).equal(input.select(1, 1))) << "grey";
  EXPECT_EQ(train::make_image_batches(five_pictures(), {.limit = 9})->size(), 5) << "no more than there are";
  EXPECT_EQ(train::make_image_batches(five_pictures(), {.limit = 5})->size(), 5);
}

TEST(PictureBatches, AreEnlargedByRepeatingPixels) {
  const data::ImageSet set = five_pictures();
  for (const std::int64_t side : {3, 4, 6, 7}) {
    const auto batches = train::make_image_batches(set, {.image_size = side});
    batches->begin(0, false);
    const Tensor input = batches->get(1, 1).input;
    ASSERT_EQ(input.sizes().vec(), (Integers{1, 1, side, side}));
    Integers wanted;
    for (std::int64_t row = 0; row < side; ++row)
      for (std::int64_t column = 0; column < side; ++column)
        wanted.push_back(set.pixels[static_cast<std::size_t>(6 + 3 * (row * 2 / side) + column * 3 / side)]);
    EXPECT_EQ(bytes_of(input), wanted) << side;
  }
  EXPECT_EQ(message_of([&] { train::make_image_batches(set, {.image_size = 2}); }),
            "model.image_size is smaller than the pictures: 2");
  data::ImageSet high = set;
  std::swap(high.height, high.width);
  EXPECT_EQ(message_of([&] { train::make_image_batches(high, {.image_size = 2}); }),
            "model.image_size is smaller than the pictures: 2");
}

TEST(PictureBatches, OfPixelsHaveAClassForTheBackground) {
  for (const std::int64_t channels : {1, 2}) {
    const auto batches = train::make_image_batches(five_pictures(), {.channels = channels, .label_pixels = true});
    batches->begin(0, false);
    const train::Batch batch = batches->get(0, 2);
    EXPECT_EQ(batch.target.sizes().vec(), (Integers{2, 2, 3}));
    EXPECT_EQ(integers_of(batch.target), (Integers{6, 3, 3, 3, 6, 3, 1, 1, 6, 1, 1, 1})) << "six classes and black";
    EXPECT_EQ(batch.answers, 12);
  }
}

TEST(PictureBatches, HaveTheChecksumOfWhatIsUsed) {
  const data::ImageSet set = five_pictures();
  const auto of = [&](std::size_t count) {
    unsigned long sum = crc32_z(0, set.pixels.data(), 6 * count);
    return static_cast<std::uint32_t>(crc32_z(sum, set.labels.data(), count));
  };
  EXPECT_EQ(train::make_image_batches(set, {})->checksum(), of(5));
  EXPECT_EQ(train::make_image_batches(set, {.limit = 2})->checksum(), of(2));
  data::ImageSet other = set;
  other.labels[4] = 2;
  EXPECT_NE(train::make_image_batches(other, {})->checksum(), of(5));
  EXPECT_EQ(train::make_image_batches(other, {.limit = 4})->checksum(), of(4));
}

/// What lives of data on the host.
std::int64_t data_bytes() {
  const MemoryStats stats = device_state(kCPU).allocator().stats();
  return stats.requested_by_purpose[static_cast<std::size_t>(Purpose::kData)].current;
}

TEST(PictureBatches, LieOnTheDeviceAsBytes) {
  const std::int64_t before = data_bytes();
  const auto batches = train::make_image_batches(five_pictures(), {});
  EXPECT_EQ(data_bytes() - before, 30 + 5 * 8);
  batches->begin(1, true);
  EXPECT_EQ(data_bytes() - before, 30 + 5 * 8 + 5 * 8) << "and the order of an epoch";
  const train::Batch batch = batches->get(0, 2);
  EXPECT_EQ(data_bytes() - before, 30 + 80 + 2 * 6 * 4 + 2 * 8) << "and a batch";
  EXPECT_FALSE(batch.input.requires_grad());
}

std::vector<std::int32_t> counted_symbols(std::int32_t count) {
  std::vector<std::int32_t> symbols(static_cast<std::size_t>(count));
  std::iota(symbols.begin(), symbols.end(), 100);
  return symbols;
}

TEST(TextBatches, AreWindowsThatDoNotOverlapWithTheNextSymbolsAsTargets) {
  const auto batches = train::make_text_batches(counted_symbols(14), 4, 0, kCPU);
  EXPECT_EQ(batches->size(), 3) << "12 symbols, and what follows each";
  for (const bool shuffle : {false, true}) {
    batches->begin(5, shuffle);
    const Integers order = train::epoch_order(3, 5, shuffle);
    const train::Batch batch = batches->get(1, 2);
    EXPECT_EQ(batch.input.sizes().vec(), (Integers{2, 4}));
    EXPECT_EQ(batch.input.scalar_type(), kInt64);
    EXPECT_EQ(batch.answers, 8);
    Integers inputs, targets;
    for (const std::size_t window : {1, 2}) {
      for (std::int64_t i = 0; i < 4; ++i) {
        inputs.push_back(100 + 4 * order[window] + i);
        targets.push_back(inputs.back() + 1);
      }
    }
    EXPECT_EQ(integers_of(batch.input), inputs);
    EXPECT_EQ(integers_of(batch.target), targets);
  }
}

TEST(TextBatches, AreAsManyAsFitOrAsAreAskedFor) {
  const auto windows = [](std::int32_t symbols, std::int64_t limit) {
    return train::make_text_batches(counted_symbols(symbols), 4, limit, kCPU)->size();
  };
  EXPECT_EQ(windows(5, 0), 1);
  EXPECT_EQ(windows(8, 0), 1);
  EXPECT_EQ(windows(9, 0), 2);
  EXPECT_EQ(windows(41, 3), 3);
  EXPECT_EQ(windows(41, 10), 10);
  EXPECT_EQ(windows(41, 99), 10);
  EXPECT_EQ(message_of([&] { windows(4, 0); }),
            "4 symbols of text are less than one window of 4 and a target; make model.context smaller");
}

TEST(TextBatches, HaveTheChecksumOfTheWholeText) {
  const std::vector<std::int32_t> symbols = counted_symbols(20);
  const auto sum = static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const unsigned char*>(symbols.data()), 80));
  for (const std::int64_t limit : {0, 2}) {
    const auto text = [&] { return train::make_text_batches(symbols, 4, limit, kCPU); };
    EXPECT_EQ(text()->checksum(), sum);
    EXPECT_EQ(train::make_masked_batches(text(), 4, 200, kCPU)->checksum(), sum);
  }
}

/// Of a text of the symbols 0 to 9, the mask being 10, in windows of 20.
class MaskedWindows : public ::testing::Test {
 protected:
  static constexpr std::int64_t kWindows = 1000, kLength = 20, kMaskSymbol = 10;
  MaskedWindows() {
    std::vector<std::int32_t> symbols;
    for (std::int64_t i = 0; i <= kWindows * kLength; ++i) symbols.push_back(static_cast<std::int32_t>(i * i / 3 % 10));
    plain_ = train::make_text_batches(symbols, kLength, 0, kCPU);
    masked_ =
        train::make_masked_batches(train::make_text_batches(symbols, kLength, 0, kCPU), kLength, kMaskSymbol, kCPU);
  }
  train::Batch all(std::uint64_t seed, bool shuffle = true) {
    plain_->begin(seed, shuffle);
    masked_->begin(seed, shuffle);
    return masked_->get(0, kWindows);
  }
  std::unique_ptr<train::Batches> plain_, masked_;
};

TEST_F(MaskedWindows, AskForFifteenInAHundredSymbolsAndNoOthers) {
  const train::Batch batch = all(3);
  EXPECT_EQ(masked_->size(), kWindows);
  EXPECT_EQ(batch.answers, 3 * kWindows);
  const Integers input = integers_of(batch.input), target = integers_of(batch.target),
                 text = integers_of(plain_->get(0, kWindows).input);
  std::vector<int> by_place(kLength);
  std::map<std::string, int> kinds;
  for (std::size_t window = 0; window < kWindows; ++window) {
    int asked = 0;
    for (std::size_t i = 0; i < kLength; ++i) {
      const std::size_t at = window * kLength + i;
      if (target[at] == -100) {
        ASSERT_EQ(input[at], text[at]);
        continue;
      }
      ASSERT_EQ(target[at], text[at]);
      ++asked, ++by_place[i];
      const bool is_other = input[at] == (text[at] + 5) % 10;
      ASSERT_TRUE(input[at] == kMaskSymbol || input[at] == text[at] || is_other) << input[at] << " for " << text[at];
      ++kinds[input[at] == kMaskSymbol ? "mask" : is_other ? "other" : "itself"];
    }
    ASSERT_EQ(asked, 3) << "window " << window;
  }
  EXPECT_NEAR(kinds["mask"], 2400, 90);
  EXPECT_NEAR(kinds["other"], 300, 60);
  EXPECT_NEAR(kinds["itself"], 300, 60);
  for (const int times : by_place) EXPECT_NEAR(times, 150, 50) << "everywhere in the window alike";
}

TEST_F(MaskedWindows, AreOthersInEachEpochByItsSeedAlone) {
  const Integers first = integers_of(all(3).input), again = integers_of(all(3).input);
  EXPECT_EQ(first, again);
  EXPECT_NE(first, integers_of(all(4).input));
  const train::Batch whole = all(3, false);
  EXPECT_EQ(integers_of(masked_->get(5, 2).input), integers_of(whole.input.narrow(0, 5, 2)));
  EXPECT_EQ(masked_->get(5, 2).answers, 6);
  std::set<Integers> places;
  for (std::int64_t window = 0; window < 50; ++window)
    places.insert(integers_of(whole.target[window].eq(std::int64_t{-100})));
  EXPECT_GT(places.size(), 40U) << "each window has places of its own";
}

TEST(MaskedBatches, AskForOneSymbolAtLeastAndReplaceNoneByItself) {
  const auto targets = [](std::int64_t context) {
    const auto batches = train::make_masked_batches(
        train::make_text_batches(std::vector<std::int32_t>(100, 0), context, 1, kCPU), context, 1, kCPU);
    batches->begin(1, false);
    const train::Batch batch = batches->get(0, 1);
    EXPECT_EQ(batch.target.ne(std::int64_t{-100}).sum().item<std::int64_t>(), batch.answers) << context;
    return batch.answers;
  };
  EXPECT_EQ(targets(1), 1);
  EXPECT_EQ(targets(3), 1);
  EXPECT_EQ(targets(9), 1);
  EXPECT_EQ(targets(10), 2) << "rounded up from one and a half";
  EXPECT_EQ(targets(16), 2);
  EXPECT_EQ(targets(17), 3);
  EXPECT_EQ(targets(20), 3);
  EXPECT_EQ(targets(90), 14);
  for (const std::int64_t symbols : {2, 3}) {
    std::vector<std::int32_t> text(3001);
    for (std::size_t i = 0; i < text.size(); ++i)
      text[i] = static_cast<std::int32_t>(i % 7 % static_cast<std::size_t>(symbols));
    const auto batches = train::make_masked_batches(train::make_text_batches(text, 10, 0, kCPU), 10, symbols, kCPU);
    batches->begin(2, false);
    const train::Batch batch = batches->get(0, 300);
    const Integers input = integers_of(batch.input), target = integers_of(batch.target);
    int others = 0;
    for (std::size_t i = 0; i < input.size(); ++i) {
      ASSERT_LE(input[i], symbols);
      if (target[i] != -100 && input[i] != symbols && input[i] != target[i]) ++others;
    }
    EXPECT_NEAR(others, 60, 30) << "a tenth of 600 targets, of " << symbols << " symbols";
  }
}

}  // namespace
}  // namespace tenon::test
