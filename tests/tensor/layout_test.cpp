// Layouts: that of a result from its operands', strides of broadcast dimensions, which format a tensor suggests, and
// that a list of dimensions has its limit.
#include <tenon/ops/ops.h>
#include <tenon/tensor/shape/dims.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <support/message_of.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace tenon {
namespace {

using test::message_of;

/// Sizes of 1 to 4, and the strides of a dense tensor whose dimensions lie in memory in a random order.
struct Dense {
  explicit Dense(std::mt19937& engine) {
    const int rank = static_cast<int>(engine() % 6);
    std::vector<int> order;
    for (int i = 0; i < rank; ++i) {
      sizes.push_back(1 + static_cast<std::int64_t>(engine() % 4));
      order.push_back(i);
    }
    std::shuffle(order.begin(), order.end(), engine);
    strides = Dims::filled(rank, 0);
    std::int64_t step = 1;
    for (const int dim : order) {
      strides[dim] = step;
      step *= sizes[dim];
    }
  }
  /// Strides of the dimensions that have more than one element: the others are never walked.
  Dims walked(const Dims& of) const {
    Dims result;
    for (int i = 0; i < sizes.rank(); ++i)
      if (sizes[i] != 1) result.push_back(of[i]);
    return result;
  }
  Dims sizes, strides;
};

TEST(ResultStrides, AreThoseOfADenseOperandOrOfOneWithGaps) {
  std::mt19937 engine(31);
  for (int i = 0; i < 500; ++i) {
    const Dense x(engine);
    const Dims result = result_strides(x.sizes, {{x.sizes, x.strides}});
    ASSERT_EQ(x.walked(result), x.walked(x.strides)) << x.sizes << " by " << x.strides << ": " << result;
    Dims apart = x.strides;
    for (std::int64_t& stride : apart) stride *= 3;
    ASSERT_EQ(result_strides(x.sizes, {{x.sizes, apart}}), result) << "dense, whatever lies between";
  }
}

TEST(ResultStrides, AreTheFirstOperandsWhereItDecides) {
  const Dims sizes{2, 3}, rows{3, 1}, columns{1, 2};
  EXPECT_EQ(result_strides(sizes, {{sizes, rows}, {sizes, columns}}), rows);
  EXPECT_EQ(result_strides(sizes, {{sizes, columns}, {sizes, rows}}), columns);
  // A dimension that is repeated or not there says nothing; the next operand does.
  const Dims repeated{0, 1}, one_row{1, 3}, row{3}, line{1};
  EXPECT_EQ(result_strides(sizes, {{sizes, repeated}, {sizes, columns}}), columns);
  EXPECT_EQ(result_strides(sizes, {{one_row, rows}, {sizes, columns}}), columns);
  EXPECT_EQ(result_strides(sizes, {{row, line}, {sizes, columns}}), columns);
  EXPECT_EQ(result_strides(sizes, {{sizes, columns}, {row, line}}), columns);
  // One row of a result of one row is no repetition.
  EXPECT_EQ(result_strides(one_row, {{one_row, {7, 1}}}), (Dims{3, 1}));
}

TEST(ResultStrides, AreRowMajorWhereNobodyDecides) {
  const Dims sizes{2, 3, 4}, all_repeated{0, 0, 0};
  EXPECT_EQ(result_strides(sizes, {}), contiguous_strides(sizes));
  EXPECT_EQ(result_strides(sizes, {{sizes, all_repeated}}), contiguous_strides(sizes));
  EXPECT_EQ(result_strides(sizes, {{{}, {}}}), contiguous_strides(sizes));
  EXPECT_EQ(result_strides({}, {}), Dims());
  const Dims most = Dims::filled(kMaxRank, 1);
  EXPECT_EQ(result_strides(most, {{most, most}}), most);
}

TEST(ResultStrides, OfADimensionOfWhichNothingIsSaidLieWhereItStands) {
  const Dims sizes{2, 3, 4}, middle_repeated{1, 0, 2};
  EXPECT_EQ(result_strides(sizes, {{sizes, middle_repeated}}), (Dims{1, 2, 6}));
}

TEST(ResultStrides, OfEqualStridesHaveTheLongerOneOutsideAsInPyTorch) {
  const Dims wide{2, 3}, high{3, 2}, equal{1, 1}, columns{1, 3};
  EXPECT_EQ(result_strides(wide, {{wide, equal}}), (Dims{1, 2}));
  EXPECT_EQ(result_strides(high, {{high, equal}}), (Dims{2, 1}));
  EXPECT_EQ(result_strides(high, {{high, equal}, {high, columns}}), columns) << "where they say nothing the next does";
}

TEST(ResultStrides, OfNoElementsAreThoseOfOneInThatDimension) {
  const Dims sizes{2, 0, 3};
  EXPECT_EQ(result_strides(sizes, {}), (Dims{3, 3, 1}));
  EXPECT_EQ(result_strides(sizes, {{sizes, {1, 6, 2}}}), (Dims{1, 6, 2}));
  EXPECT_EQ(result_strides({0, 0}, {}), (Dims{1, 1}));
}

TEST(ResultStrides, ThatNoIntegerHoldsAreRefused) {
  const Dims sizes{std::int64_t{1} << 32, std::int64_t{1} << 32, 2};
  EXPECT_EQ(message_of([&] { result_strides(sizes, {}); }),
            "Stride calculation overflowed with sizes=[4294967296, 4294967296, 2]");
}

TEST(ExpandedStrides, AreZeroWhereADimensionIsRepeatedAndElseAsTheyWere) {
  EXPECT_EQ(expanded_strides({3, 1}, {5, 7}, {2, 3, 4}), (Dims{0, 5, 0}));
  EXPECT_EQ(expanded_strides({3, 1}, {5, 7}, {3, 1}), (Dims{5, 7}));
  EXPECT_EQ(expanded_strides({1}, {9}, {1, 1}), (Dims{0, 9}));
  EXPECT_EQ(expanded_strides({}, {}, {2}), (Dims{0}));
  EXPECT_EQ(expanded_strides({1, 3}, {3, 1}, {0, 3}), (Dims{0, 1})) << "repeated no time";
}

TEST(ViewStrides, OfASingleElementAreOnesOfAnyRank) {
  EXPECT_EQ(view_strides({}, {}, {1, 1, 1}), (Dims{1, 1, 1}));
  EXPECT_EQ(view_strides({}, {}, {}), Dims());
  EXPECT_EQ(view_strides({1, 1}, {5, 7}, {}), Dims());
}

TEST(DimsOf, ATensorAreSixteenAtMost) {
  Dims most = Dims::filled(kMaxRank, 2);
  EXPECT_EQ(most.rank(), 16);
  EXPECT_EQ(most.product(), 1 << 16);
  const char* const too_many = "a tensor may have at most 16 dimensions, got 17";
  EXPECT_EQ(message_of([&] { most.push_back(1); }), too_many);
  EXPECT_EQ(message_of([&] { most.insert(0, 1); }), too_many);
  EXPECT_EQ(message_of([&] { most.resize(17); }), too_many);
  EXPECT_EQ(message_of([] { Dims(std::vector<std::int64_t>(17, 1)); }), too_many);
  EXPECT_EQ(most, Dims::filled(kMaxRank, 2));
}

TEST(DimsOf, ATensorAreReadAsAListAndPutInAndTakenOutAnywhere) {
  Dims dims{2, 4};
  dims.insert(0, 1);
  dims.insert(2, 3);
  dims.insert(4, 5);
  EXPECT_EQ(dims.vec(), (std::vector<std::int64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(to_string(dims), "[1, 2, 3, 4, 5]");
  EXPECT_EQ(dims.back(), 5);
  dims.erase(4);
  dims.erase(0);
  dims.erase(1);
  EXPECT_EQ(dims, (Dims{2, 4}));
  EXPECT_FALSE(dims == (Dims{2, 4, 1}));
  EXPECT_FALSE(dims == (Dims{2, 3}));
  dims.erase(0);
  dims.erase(0);
  EXPECT_TRUE(dims.empty());
  EXPECT_EQ(to_string(dims), "[]");
  EXPECT_EQ(dims.product(), 1);
}

TEST(SuggestedFormat, IsThatInWhichTheChannelsLieInnermost) {
  const auto of = [](IntArrayRef sizes, IntArrayRef strides) {
    return empty_strided(sizes, strides).suggest_memory_format();
  };
  EXPECT_EQ(of({2, 3, 4, 5}, channels_last_strides({2, 3, 4, 5})), MemoryFormat::ChannelsLast);
  EXPECT_EQ(of({2, 3, 4, 5, 6}, channels_last_strides({2, 3, 4, 5, 6})), MemoryFormat::ChannelsLast3d);
  EXPECT_EQ(of({2, 3, 4, 5}, contiguous_strides({2, 3, 4, 5})), MemoryFormat::Contiguous);
  EXPECT_EQ(of({2, 3, 4, 5, 6}, contiguous_strides({2, 3, 4, 5, 6})), MemoryFormat::Contiguous);
  EXPECT_EQ(of({2, 3, 4}, {12, 1, 3}), MemoryFormat::Contiguous) << "of other ranks it is not known";
  EXPECT_EQ(of({2, 3, 4, 5}, {120, 1, 30, 6}), MemoryFormat::ChannelsLast) << "with gaps";
  EXPECT_EQ(of({2, 3, 4, 5}, {60, 1, 3, 12}), MemoryFormat::Contiguous) << "height inside of width";
  EXPECT_EQ(of({2, 3, 4, 5}, {1, 2, 30, 6}), MemoryFormat::Contiguous) << "samples innermost";
  EXPECT_EQ(of({2, 3, 4, 5}, {60, 0, 15, 3}), MemoryFormat::Contiguous) << "channels that are repeated";
  EXPECT_EQ(of({0, 3, 4, 5}, channels_last_strides({0, 3, 4, 5})), MemoryFormat::Contiguous) << "no sample";
  // Strides of dimensions of one element count.
  EXPECT_EQ(of({1, 1, 1, 1}, {1, 1, 1, 1}), MemoryFormat::Contiguous);
  EXPECT_EQ(of({2, 1, 4, 5}, {20, 1, 5, 1}), MemoryFormat::ChannelsLast);
  EXPECT_EQ(of({2, 1, 4, 5}, {20, 20, 5, 1}), MemoryFormat::Contiguous);
}

TEST(IsContiguous, InAFormatOnlyForItsRankAndWhateverTheStridesOfSinglesAre) {
  const Tensor picture = empty_strided({2, 3, 4, 5}, {60, 1, 15, 3});
  EXPECT_TRUE(picture.is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_FALSE(picture.is_contiguous(MemoryFormat::ChannelsLast3d));
  EXPECT_FALSE(picture.is_contiguous());
  EXPECT_FALSE(empty({2, 3, 4, 5}).is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_TRUE(empty_strided({2, 3, 2, 4, 5}, channels_last_strides({2, 3, 2, 4, 5}))
                  .is_contiguous(MemoryFormat::ChannelsLast3d));
  EXPECT_FALSE(empty({2, 3, 4}).is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_TRUE(empty_strided({1, 3, 4, 5}, {7, 1, 15, 3}).is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_FALSE(empty_strided({2, 3, 4, 5}, {61, 1, 15, 3}).is_contiguous(MemoryFormat::ChannelsLast));
}

}  // namespace
}  // namespace tenon
