// ChunkDataset: chunks read by threads of its own, batches as if they had been read one after another.
#include "support/expect_error.h"

#include <tenon/data/chunk_dataset.h>
#include <tenon/data/data_loader.h>
#include <tenon/nn/serialize/serialize.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace tenon::test {
namespace {

using namespace data;  // NOLINT
using ::testing::ElementsAre;

/// Chunks of 10, 5 and 20 successive numbers; a chunk that is to fail does.
struct Chunks : datasets::ChunkDataReader<int> {
  std::vector<int> read_chunk(std::size_t index) override {
    if (static_cast<int>(index) == failing) throw std::runtime_error("chunk " + std::to_string(index) + " is torn");
    std::vector<int> chunk(sizes[index]);
    std::iota(
        chunk.begin(), chunk.end(),
        static_cast<int>(std::accumulate(sizes.begin(), sizes.begin() + static_cast<long>(index), std::size_t{0})));
    return chunk;
  }
  std::size_t chunk_count() override { return sizes.size(); }
  void reset() override {}
  std::vector<std::size_t> sizes{10, 5, 20};
  int failing = -1;
};
using InOrder = datasets::ChunkDataset<Chunks, samplers::SequentialSampler, samplers::SequentialSampler>;

std::unique_ptr<InOrder> in_order(datasets::ChunkDatasetOptions options, Chunks chunks = {}) {
  const samplers::SequentialSampler sampler(0);
  return std::make_unique<InOrder>(std::move(chunks), sampler, sampler, options);
}
std::vector<int> rest_of(InOrder& dataset) {
  std::vector<int> all;
  while (auto batch = dataset.get_batch()) all.insert(all.end(), batch->begin(), batch->end());
  return all;
}

TEST(ChunkDataset, OneReaderGivesTheExamplesInOrderAndFullBatches) {
  const auto dataset = in_order({1, 8});
  for (int epoch = 0; epoch < 2; ++epoch) {
    dataset->reset();
    std::vector<int> all;
    std::vector<std::size_t> sizes;
    while (auto batch = dataset->get_batch()) {
      sizes.push_back(batch->size());
      all.insert(all.end(), batch->begin(), batch->end());
    }
    EXPECT_THAT(sizes, ElementsAre(8, 8, 8, 8, 3));
    std::vector<int> expected(35);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(all, expected);
  }
}

TEST(ChunkDataset, ManyReadersGiveEveryExampleOnce) {
  const auto dataset = in_order({4, 5, 10});
  dataset->reset();
  std::vector<int> all = rest_of(*dataset);
  std::sort(all.begin(), all.end());
  std::vector<int> expected(35);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
}

TEST(ChunkDataset, AReadersExceptionReachesTheCallerAndTheOtherChunksFollow) {
  Chunks chunks;
  chunks.failing = 0;
  const auto dataset = in_order({1, 5}, chunks);
  dataset->reset();
  expect_error<WorkerException>([&] { rest_of(*dataset); }, "chunk 0 is torn");
  EXPECT_EQ(rest_of(*dataset).size(), 25);
}

TEST(ChunkDataset, ALoadedPositionIsWhereTheNextEpochBegins) {
  samplers::SequentialSampler position(3);
  position.next(2);
  std::stringstream stream;
  save(position, stream);
  const auto dataset = in_order({1, 10});
  load(*dataset, stream);
  dataset->reset();
  EXPECT_EQ(rest_of(*dataset).front(), 15);
  dataset->reset();
  EXPECT_EQ(rest_of(*dataset).front(), 0);
}

TEST(ChunkDataset, ThePolicySeesWhatIsLoadedTogether) {
  const samplers::SequentialSampler sampler(0);
  std::vector<std::size_t> seen;
  InOrder dataset({}, sampler, sampler, datasets::ChunkDatasetOptions(1, 5, 2048, 2), [&](std::vector<int>& loaded) {
    seen.push_back(loaded.size());
    std::reverse(loaded.begin(), loaded.end());
  });
  dataset.reset();
  EXPECT_EQ(rest_of(dataset).front(), 14);
  EXPECT_THAT(seen, ElementsAre(15, 20));
}

TEST(ChunkDataset, EndsWhileItsReadersWait) {
  const auto dataset = in_order({2, 5, 5});
  dataset->reset();
  EXPECT_EQ(dataset->get_batch()->size(), 5);
}

TEST(ChunkDataset, NamesWhatDoesNotFit) {
  expect_error([] { datasets::ChunkDatasetOptions(0, 1); }, "Preloader count is 0");
  expect_error([] { datasets::ChunkDatasetOptions(1, 8, 4); }, "Cache size is less than batch size");
  const auto dataset = in_order({1, 5});
  expect_error([&] { dataset->get_batch(); }, "needs to call reset()");
  dataset->reset();
  expect_error([&] { dataset->get_batch(6); }, "The requested batch size is 6");
}

}  // namespace
}  // namespace tenon::test
