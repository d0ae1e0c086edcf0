// DataLoader: the same batches in the same order whatever the number of workers.
#include <tenon/data/data_loader.h>
#include <tenon/data/transforms.h>
#include <tenon/nn/serialize/serialize.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/generator.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace tenon::test {
namespace {

using namespace data;  // NOLINT
using ::testing::HasSubstr;

struct Numbers : datasets::Dataset<Numbers> {
  explicit Numbers(std::size_t count) : count(count) {}
  Example<> get(std::size_t index) override {
    const auto i = static_cast<std::int64_t>(index);
    return {tenon::full({2}, i), tenon::full({}, i * i)};
  }
  std::optional<std::size_t> size() const override { return count; }
  std::size_t count;
};

std::vector<std::int64_t> targets(std::size_t workers, bool drop_last = false) {
  manual_seed(11);
  auto loader = make_data_loader(Numbers(25).map(transforms::Stack<>()),
                                 DataLoaderOptions(4).workers(workers).drop_last(drop_last));
  std::vector<std::int64_t> seen;
  for (auto& batch : *loader) {
    for (std::int64_t i = 0; i < batch.target.size(0); ++i) seen.push_back(batch.target[i].item<std::int64_t>());
  }
  return seen;
}

TEST(DataLoader, FourWorkersGiveWhatOneGives) {
  const auto alone = targets(0);
  EXPECT_EQ(alone.size(), 25u);
  EXPECT_EQ(targets(1), alone);
  EXPECT_EQ(targets(4), alone);
}

TEST(DataLoader, LeavesOutASmallerLastBatchWhenAsked) {
  EXPECT_EQ(targets(0, true).size(), 24u);
  EXPECT_EQ(targets(3, true).size(), 24u);
}

TEST(DataLoader, CanBeIteratedAgain) {
  auto loader = make_data_loader<samplers::SequentialSampler>(Numbers(5).map(transforms::Stack<>()),
                                                              DataLoaderOptions(2).workers(2));
  for (int epoch = 0; epoch < 3; ++epoch) {
    EXPECT_EQ(std::distance(loader->begin(), loader->end()), 3);
  }
}

struct Failing : datasets::Dataset<Failing, int> {
  int get(std::size_t) override { throw std::invalid_argument("badness"); }
  std::optional<std::size_t> size() const override { return 100; }
};

TEST(DataLoader, AWorkersExceptionReachesTheCaller) {
  auto loader = make_data_loader(Failing{}, DataLoaderOptions(1).workers(2));
  auto iterator = loader->begin();
  try {
    (void)*iterator;
    FAIL() << "nothing thrown";
  } catch (const WorkerException& error) {
    EXPECT_THAT(error.what(), HasSubstr("Original message: badness"));
    EXPECT_THROW(std::rethrow_exception(error.original_exception), std::invalid_argument);
  }
}

TEST(Iterator, RefusesToGoBeyondTheEnd) {
  auto loader = make_data_loader<samplers::SequentialSampler>(Numbers(1), DataLoaderOptions(1));
  auto iterator = loader->begin();
  ++iterator;
  EXPECT_THROW(++iterator, Error);
  EXPECT_THROW(*loader->end(), Error);
  EXPECT_TRUE(iterator == loader->end());
}

TEST(RandomSampler, ASavedOneContinuesTheSameOrder) {
  samplers::RandomSampler a(10), b(10);
  a.next(3);
  std::stringstream stream;
  save(a, stream);
  load(b, stream);
  EXPECT_EQ(a.index(), 3u);
  EXPECT_EQ(b.index(), 3u);
  EXPECT_EQ(a.next(7), b.next(7));
  EXPECT_FALSE(a.next(1));
}

TEST(Normalize, TakesOneNumberForAllChannelsOrOneForEach) {
  const Tensor picture = full({3, 2, 2}, 4.0);
  const auto apply = [&](transforms::Normalize<> normalize) { return normalize(picture); };
  EXPECT_TRUE(apply({2.0, 0.5}).equal(full({3, 2, 2}, 4.0)));
  EXPECT_TRUE(apply({{1.0, 2.0, 3.0}, {1.0, 1.0, 0.5}}).select(0, 2).equal(full({2, 2}, 2.0)));
}

TEST(Normalize, WithOneNumberKeepsTheSizesOfAPictureWithoutChannels) {
  const Tensor normalized = transforms::Normalize<>(2.0, 0.5)(full({2, 3}, 4.0));
  EXPECT_EQ(normalized.dim(), 2);
  EXPECT_TRUE(normalized.equal(full({2, 3}, 4.0)));
}

TEST(Normalize, WithTwoNumbersTakesOneForEachChannelAndNotForEachColumn) {
  const Tensor normalized = transforms::Normalize<>({1.0, 2.0}, {1.0, 0.5})(full({2, 2, 2}, 4.0));
  EXPECT_TRUE(normalized.select(0, 0).equal(full({2, 2}, 3.0)));
  EXPECT_TRUE(normalized.select(0, 1).equal(full({2, 2}, 4.0)));
}

}  // namespace
}  // namespace tenon::test
