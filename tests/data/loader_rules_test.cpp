// A DataLoader's options, one pass at a time, what a worker that is late or data sets in one another do.
#include "../support/message_of.h"

#include <tenon/data/data_loader.h>
#include <tenon/data/transforms.h>
#include <tenon/nn/serialize/archive.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/literal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

namespace tenon::test {
namespace {

using namespace data;  // NOLINT
using samplers::SequentialSampler;
using testing::ElementsAre;
using testing::HasSubstr;

struct Squares : datasets::Dataset<Squares, int> {
  explicit Squares(std::size_t count) : count(count) {}
  int get(std::size_t index) override { return static_cast<int>(index * index); }
  std::optional<std::size_t> size() const override { return count; }
  std::size_t count;
};

TEST(DataLoaderOptions, FillInWhatIsNotGiven) {
  const FullDataLoaderOptions usual{DataLoaderOptions()};
  EXPECT_EQ(usual.batch_size, 1u);
  EXPECT_EQ(usual.workers, 0u);
  EXPECT_EQ(usual.max_jobs, 0u);
  EXPECT_TRUE(usual.enforce_ordering);
  EXPECT_FALSE(usual.drop_last);
  EXPECT_FALSE(usual.timeout);
  EXPECT_FALSE(usual.pin_memory);
  EXPECT_EQ(FullDataLoaderOptions(DataLoaderOptions(3).workers(4)).max_jobs, 8u);
  EXPECT_EQ(FullDataLoaderOptions(DataLoaderOptions(3).workers(4).max_jobs(5)).max_jobs, 5u);
  EXPECT_EQ(FullDataLoaderOptions(DataLoaderOptions(3)).batch_size, 3u);
}

TEST(DataLoader, HasBatchesOfTheSizeAskedForAndALastOneThatIsSmaller) {
  for (const std::size_t workers : {0u, 1u, 3u}) {
    auto loader = make_data_loader<SequentialSampler>(Squares(7), DataLoaderOptions(3).workers(workers));
    for (int epoch = 0; epoch < 2; ++epoch) {
      std::vector<std::vector<int>> seen;
      for (const auto& batch : *loader) seen.push_back(batch);
      EXPECT_THAT(seen, ElementsAre(ElementsAre(0, 1, 4), ElementsAre(9, 16, 25), ElementsAre(36)))
          << workers << " workers";
    }
    auto dropped =
        make_data_loader<SequentialSampler>(Squares(7), DataLoaderOptions(3).workers(workers).drop_last(true));
    EXPECT_EQ(std::distance(dropped->begin(), dropped->end()), 2);
    auto whole = make_data_loader<SequentialSampler>(Squares(6), DataLoaderOptions(3).workers(workers).drop_last(true));
    EXPECT_EQ(std::distance(whole->begin(), whole->end()), 2) << "a last batch that is full stays";
  }
}

TEST(DataLoader, OfNothingEndsAtOnce) {
  for (const std::size_t workers : {0u, 2u}) {
    auto loader = make_data_loader<SequentialSampler>(Squares(0), DataLoaderOptions(3).workers(workers));
    EXPECT_TRUE(loader->begin() == loader->end());
  }
}

TEST(DataLoader, BeginsAnewOnlyOnceThePassBeforeIsOver) {
  auto loader = make_data_loader<SequentialSampler>(Squares(7), DataLoaderOptions(3).workers(2));
  auto pass = loader->begin();
  EXPECT_THAT(*pass, ElementsAre(0, 1, 4));
  EXPECT_THAT(message_of([&] { loader->begin(); }), HasSubstr("another iterator is not yet exhausted"));
  while (pass != loader->end()) ++pass;
  EXPECT_NO_THROW(loader->begin());
}

TEST(DataLoader, WithoutAnOrderStillHasEveryBatchOnce) {
  auto loader =
      make_data_loader<SequentialSampler>(Squares(40), DataLoaderOptions(3).workers(4).enforce_ordering(false));
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::multiset<int> seen;
    for (const auto& batch : *loader) seen.insert(batch.begin(), batch.end());
    EXPECT_EQ(seen.size(), 40u);
    for (int i = 0; i < 40; ++i) EXPECT_EQ(seen.count(i * i), 1u) << i;
  }
}

struct Slow : datasets::Dataset<Slow, int> {
  explicit Slow(std::shared_ptr<std::mutex> gate) : gate(std::move(gate)) {}
  int get(std::size_t index) override {
    const std::lock_guard wait(*gate);
    return static_cast<int>(index);
  }
  std::optional<std::size_t> size() const override { return 4; }
  std::shared_ptr<std::mutex> gate;
};

TEST(DataLoader, ABatchThatDoesNotComeInTimeIsAnError) {
  const auto gate = std::make_shared<std::mutex>();
  auto loader = make_data_loader<SequentialSampler>(
      Slow(gate), DataLoaderOptions(1).workers(1).timeout(std::chrono::milliseconds(1)));
  std::unique_lock closed(*gate);
  auto pass = loader->begin();
  EXPECT_THROW(*pass, Error);
  closed.unlock();
}

struct Counting : datasets::Dataset<Counting, int> {
  explicit Counting(std::shared_ptr<std::atomic<int>> begun) : begun(std::move(begun)) {}
  int get(std::size_t index) override {
    ++*begun;
    return static_cast<int>(index);
  }
  std::optional<std::size_t> size() const override { return 1000; }
  std::shared_ptr<std::atomic<int>> begun;
};

TEST(DataLoader, MakesNoMoreBatchesAheadThanItMay) {
  const auto begun = std::make_shared<std::atomic<int>>(0);
  {
    auto loader = make_data_loader<SequentialSampler>(Counting(begun), DataLoaderOptions(1).workers(2).max_jobs(3));
    auto pass = loader->begin();
    for (int taken = 1; taken <= 5; ++taken) {
      EXPECT_EQ((*pass)[0], taken - 1);
      EXPECT_LE(*begun, taken + 3);
      ++pass;
    }
  }
  EXPECT_LE(*begun, 6 + 3) << "what had not begun is dropped with the loader";
}

// --- data sets ------------------------------------------------------------------------------------------------------

TEST(TensorDataset, IsTheRowsOfATensorOrATensorForEach) {
  const Tensor rows = tenon::arange(6, TensorOptions(kFloat32)).view({3, 2});
  datasets::TensorDataset whole(rows), stacked(std::vector<Tensor>{rows[0], rows[1], rows[2]});
  for (datasets::TensorDataset* set : {&whole, &stacked}) {
    EXPECT_EQ(set->size(), 3u);
    EXPECT_TRUE(set->get(2).data.equal(tenon::tensor({4.f, 5.f})));
    const std::vector<std::size_t> asked{1, 0};
    const auto batch = set->get_batch(asked);
    ASSERT_EQ(batch.size(), 2u);
    EXPECT_TRUE(batch[0].data.equal(rows[1]));
    EXPECT_TRUE(batch[1].data.equal(rows[0]));
  }
}

TEST(Stack, JoinsDataAndTargetsInTheirOrder) {
  transforms::Stack<> pairs;
  const Example<> batch =
      pairs.apply_batch({{tenon::tensor({1., 2.}), tenon::tensor({7})}, {tenon::tensor({3., 4.}), tenon::tensor({8})}});
  EXPECT_TRUE(batch.data.equal(tenon::tensor({{1., 2.}, {3., 4.}})));
  EXPECT_TRUE(batch.target.equal(tenon::tensor({7, 8}).view({2, 1})));
  transforms::Stack<TensorExample> single;
  EXPECT_TRUE(single.apply_batch({TensorExample(tenon::tensor({1.})), TensorExample(tenon::tensor({2.}))})
                  .data.equal(tenon::tensor({1., 2.}).view({2, 1})));
}

TEST(MapDataset, PassesSizeAndRequestsOn) {
  auto doubled = Squares(5).map(transforms::Lambda<int>([](int value) { return 2 * value; }));
  EXPECT_EQ(doubled.size(), 5u);
  const std::vector<std::size_t> asked{4, 2};
  EXPECT_THAT(doubled.get_batch(asked), ElementsAre(32, 8));
  auto summed = doubled.map(transforms::BatchLambda<std::vector<int>, int>([](std::vector<int> batch) {
    int sum = 0;
    for (const int value : batch) sum += value;
    return sum;
  }));
  EXPECT_EQ(summed.get_batch(asked), 40);
}

TEST(SharedDataset, IsOneForAllItsUsers) {
  auto shared = datasets::make_shared_dataset<Squares>(3);
  auto other = shared;
  other->count = 9;
  EXPECT_EQ(shared.size(), 9u);
  EXPECT_EQ((*shared).count, 9u);
}

struct Unsized : datasets::Dataset<Unsized, int> {
  int get(std::size_t) override { return 0; }
  std::optional<std::size_t> size() const override { return std::nullopt; }
};

TEST(DataLoader, NeedsASizeForASamplerOfItsOwn) {
  EXPECT_THAT(message_of([] { make_data_loader(Unsized{}); }), HasSubstr("Expected the dataset to be sized"));
}

/// Batches of rising numbers until `last`.
struct Rising : datasets::StatefulDataset<Rising, std::vector<int>> {
  explicit Rising(int last) : last(last) {}
  std::optional<std::vector<int>> get_batch(std::size_t size) override {
    std::vector<int> batch;
    while (next < last && batch.size() < size) batch.push_back(next++);
    if (batch.empty()) return std::nullopt;
    return batch;
  }
  void reset() override { next = 0; }
  std::optional<std::size_t> size() const override { return std::nullopt; }
  int last, next = 99;
};

TEST(StatefulDataLoader, ResetsItsDataSetAtEachPassAndEndsWithIt) {
  auto loader = make_data_loader(Rising(5), DataLoaderOptions(2));
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<std::vector<int>> seen;
    for (const auto& batch : *loader) seen.push_back(batch);
    EXPECT_THAT(seen, ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4)));
  }
  Rising set(5);
  OutputArchive out;
  InputArchive in;
  EXPECT_THAT(message_of([&] { set.save(out); }), HasSubstr("no position that can be saved"));
  EXPECT_THAT(message_of([&] { set.load(in); }), HasSubstr("no position that can be loaded"));
}

}  // namespace
}  // namespace tenon::test
