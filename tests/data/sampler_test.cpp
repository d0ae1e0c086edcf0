// Samplers: every index once and in which order, sizes of batches, positions that are saved.
#include "../support/message_of.h"

#include <tenon/data/distributed_samplers.h>
#include <tenon/data/samplers.h>
#include <tenon/nn/serialize/serialize.h>
#include <tenon/tensor/generator.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <sstream>

namespace tenon::test {
namespace {

using namespace data::samplers;  // NOLINT
using testing::ElementsAre;
using testing::HasSubstr;
using IndexList = std::vector<std::size_t>;

IndexList first_numbers(std::size_t count) {
  IndexList all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// The sizes of all batches; their indices go into `indices`.
template <class Sampler>
IndexList batches(Sampler& sampler, std::size_t batch_size, IndexList& indices) {
  IndexList sizes;
  while (const auto batch = sampler.next(batch_size)) {
    sizes.push_back(batch->size());
    indices.insert(indices.end(), batch->begin(), batch->end());
  }
  return sizes;
}

TEST(Samplers, HandOutEveryIndexOnceAndOnlyTheLastBatchIsSmaller) {
  manual_seed(3);
  for (std::size_t size = 0; size <= 7; ++size) {
    for (std::size_t batch_size = 1; batch_size <= 8; ++batch_size) {
      IndexList expected(size / batch_size, batch_size);
      if (size % batch_size != 0) expected.push_back(size % batch_size);
      SequentialSampler in_order(size);
      RandomSampler at_random(static_cast<std::int64_t>(size));
      for (int epoch = 0; epoch < 2; ++epoch) {
        IndexList ordered, drawn;
        EXPECT_EQ(batches(in_order, batch_size, ordered), expected) << size << " by " << batch_size;
        EXPECT_EQ(batches(at_random, batch_size, drawn), expected) << size << " by " << batch_size;
        EXPECT_EQ(ordered, first_numbers(size));
        EXPECT_EQ(in_order.index(), size);
        EXPECT_EQ(at_random.index(), size);
        EXPECT_FALSE(in_order.next(batch_size));
        EXPECT_FALSE(at_random.next(batch_size));
        std::sort(drawn.begin(), drawn.end());
        EXPECT_EQ(drawn, first_numbers(size));
        in_order.reset();
        at_random.reset();
        EXPECT_EQ(in_order.index(), 0u);
        EXPECT_EQ(at_random.index(), 0u);
      }
    }
  }
}

TEST(Samplers, MayBeGivenAnotherSizeAtAReset) {
  manual_seed(3);
  SequentialSampler in_order(3);
  RandomSampler at_random(3, kInt32);
  StreamSampler stream(3);
  in_order.reset(5);
  at_random.reset(5);
  stream.reset(5);
  IndexList ordered, drawn;
  EXPECT_THAT(batches(in_order, 4, ordered), ElementsAre(4, 1));
  EXPECT_THAT(batches(at_random, 4, drawn), ElementsAre(4, 1));
  std::sort(drawn.begin(), drawn.end());
  EXPECT_EQ(drawn, first_numbers(5));
  EXPECT_EQ(stream.next(4)->size(), 4u);
  EXPECT_EQ(stream.next(4)->size(), 1u);
  EXPECT_FALSE(stream.next(4));
}

TEST(StreamSampler, HasAWholeEpochAgainAfterAReset) {
  StreamSampler sampler(5);
  EXPECT_EQ(sampler.next(4)->size(), 4u);
  sampler.reset();
  EXPECT_EQ(sampler.next(4)->size(), 4u);
  EXPECT_EQ(sampler.next(4)->size(), 1u);
  EXPECT_FALSE(sampler.next(4));
}

TEST(RandomSampler, HasAnotherOrderAfterEachReset) {
  manual_seed(3);
  RandomSampler sampler(50);
  IndexList first, second;
  batches(sampler, 7, first);
  sampler.reset();
  batches(sampler, 7, second);
  EXPECT_NE(first, second);
  EXPECT_NE(first, first_numbers(50));
}

template <class Sampler>
void save_into(const Sampler& from, Sampler& to) {
  std::stringstream stream;
  OutputArchive out;
  from.save(out);
  out.save_to(stream);
  InputArchive in;
  in.load_from(stream);
  to.load(in);
}

TEST(Samplers, GoOnWhereTheyWereSaved) {
  SequentialSampler first(6), second(6);
  first.next(4);
  save_into(first, second);
  EXPECT_EQ(second.index(), 4u);
  EXPECT_THAT(*second.next(4), ElementsAre(4, 5));

  StreamSampler given(6), loaded(6);
  given.next(4);
  save_into(given, loaded);
  EXPECT_EQ(loaded.next(4)->size(), 2u);
  EXPECT_FALSE(loaded.next(1));

  SequentialSampler ended(6), again(6);
  ended.next(6);
  save_into(ended, again);
  EXPECT_FALSE(again.next(1));
}

TEST(SequentialSampler, BeyondAnEndThatCameNearerHasNothingLeft) {
  SequentialSampler first(6), shorter(3);
  first.next(5);
  save_into(first, shorter);
  EXPECT_FALSE(shorter.next(1));
}

template <class Sampler>
void load_position(Sampler& sampler, std::int64_t index, const Tensor& indices = {}) {
  OutputArchive out;
  out.write("index", index);
  out.write("examples_retrieved_so_far", index);
  if (indices.defined()) out.write("indices", indices, /*is_buffer=*/true);
  std::stringstream stream;
  out.save_to(stream);
  InputArchive in;
  in.load_from(stream);
  sampler.load(in);
}

TEST(Samplers, RefuseAPositionOutsideOfTheirIndices) {
  const Tensor indices = tenon::tensor({2, 0, 1});
  RandomSampler sampler(3);
  for (const std::int64_t wrong : {std::int64_t{-1}, std::int64_t{4}}) {
    EXPECT_THAT(message_of([&] { load_position(sampler, wrong, indices); }),
                HasSubstr("a sampler's position lies outside its indices"));
  }
  load_position(sampler, 3, indices);
  EXPECT_FALSE(sampler.next(1));
  load_position(sampler, 0, indices);
  EXPECT_THAT(*sampler.next(9), ElementsAre(2, 0, 1));
  SequentialSampler in_order(3);
  EXPECT_THAT(message_of([&] { load_position(in_order, -1); }), HasSubstr("-1, below 0"));
  StreamSampler stream(3);
  EXPECT_THAT(message_of([&] { load_position(stream, -1); }), HasSubstr("-1, below 0"));
  load_position(stream, 0);
  EXPECT_EQ(stream.next(5)->size(), 3u);
}

TEST(DistributedSampler, TakesTheEndsOfItsShareAsPositions) {
  DistributedSequentialSampler sampler(10, 2, 1);  // its share is [5, 10)
  EXPECT_EQ(sampler.index(), 5u);
  const auto load_at = [&](std::int64_t position) {
    OutputArchive out;
    out.write("index", position);
    out.write("epoch", std::int64_t{0});
    std::stringstream stream;
    out.save_to(stream);
    InputArchive in;
    in.load_from(stream);
    sampler.load(in);
  };
  for (const std::int64_t wrong : {4, 11}) {
    EXPECT_THAT(message_of([&] { load_at(wrong); }), HasSubstr("outside this replica's share [5, 10]"));
  }
  load_at(10);
  EXPECT_FALSE(sampler.next(1));
  load_at(5);
  EXPECT_THAT(*sampler.next(9), ElementsAre(5, 6, 7, 8, 9));
  EXPECT_THROW(DistributedSequentialSampler(10, 0, 0), Error);
}

TEST(DistributedSampler, MayBeGivenAnotherSizeAtAReset) {
  DistributedSequentialSampler sampler(10, 2, 1);
  sampler.reset(4);
  EXPECT_THAT(*sampler.next(9), ElementsAre(2, 3));
  EXPECT_FALSE(sampler.next(9));
  sampler.reset();
  EXPECT_THAT(*sampler.next(1), ElementsAre(2));
}

}  // namespace
}  // namespace tenon::test
