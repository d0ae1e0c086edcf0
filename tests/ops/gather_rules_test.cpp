// gather, scatter, index_add, index_copy, one_hot, searchsorted and the like: which shapes and dtypes go together, what
// an empty index or a tensor without dimensions gives, and what is said of those that do not fit.
#include "../support/message_of.h"

#include <tenon/ops/indexing/repeat_interleave.h>
#include <tenon/ops/indexing/search.h>
#include <tenon/ops/indexing/sets.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/literal.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tenon::test {
namespace {

using Sizes = std::vector<std::int64_t>;

Tensor two_rows() { return arange(6).view({2, 3}); }
Tensor no_positions(IntArrayRef sizes) { return zeros(sizes, kInt64); }

TEST(Gather, AnIndexHasTheTensorsRankAndFitsBesideTheDimension) {
  const Tensor x = two_rows();
  EXPECT_EQ(message_of([&] { x.gather(0, tensor({0})); }),
            "Index tensor must have the same number of dimensions as input tensor");
  EXPECT_EQ(message_of([&] {
              x.gather(0, zeros({1, 4}, kInt64));
            }),
            "Size does not match at dimension 1 expected index [1, 4] to be no larger than self [2, 3] apart from "
            "dimension 0");
  EXPECT_EQ(message_of([&] {
              x.gather(-1, zeros({3, 1}, kInt64));
            }),
            "Size does not match at dimension 0 expected index [3, 1] to be no larger than self [2, 3] apart from "
            "dimension 1");
  EXPECT_TRUE(x.gather(0, tensor({{1, 0, 1}, {0, 0, 0}, {1, 1, 1}})).equal(tensor({{3, 1, 5}, {0, 1, 2}, {3, 4, 5}})));
  EXPECT_TRUE(x.gather(-1, tensor({{2}})).equal(tensor({{2}}))) << "fewer rows than there are";
}

TEST(Gather, AnEmptyIndexOfWhateverRankGivesItsOwnShape) {
  const Tensor x = two_rows().to(kFloat32).set_requires_grad(true);
  for (const Sizes& sizes : {Sizes{0}, Sizes{5, 0}, Sizes{0, 3}, Sizes{2, 0, 4}}) {
    const Tensor taken = x.gather(0, no_positions(sizes));
    EXPECT_EQ(taken.sizes().vec(), sizes);
    taken.sum().backward();
  }
  EXPECT_TRUE(x.grad().equal(zeros({2, 3})));
}

TEST(Gather, ATensorWithoutDimensionsCountsAsOneElement) {
  const Tensor number = tensor(5.f).set_requires_grad(true);
  const Tensor taken = number.gather(0, tensor({0, 0}));
  EXPECT_TRUE(taken.equal(tensor({5.f, 5.f})));
  taken.sum().backward();
  EXPECT_TRUE(number.grad().equal(tensor(2.f)));
  EXPECT_TRUE(tensor({1, 2, 3}).gather(0, tensor(1)).equal(tensor(2)));
  EXPECT_TRUE(tensor(5).gather(-1, tensor(0)).equal(tensor(5)));
}

TEST(Scatter, AnIndexHasTheTensorsRankAndFitsInTensorAndSource) {
  Tensor x = two_rows();
  const Tensor source = x.clone();
  EXPECT_EQ(message_of([&] { x.scatter_(0, tensor({0}), source); }),
            "Index tensor must have the same number of dimensions as self tensor");
  EXPECT_EQ(message_of([&] {
              x.scatter_(0, zeros({1, 4}, kInt64), source);
            }),
            "Expected index [1, 4] to be no larger than self [2, 3] apart from dimension 0 and to be no larger size "
            "than src [2, 3]");
  EXPECT_EQ(message_of([&] {
              x.scatter_add_(0, zeros({3, 2}, kInt64), source);
            }),
            "Expected index [3, 2] to be no larger than self [2, 3] apart from dimension 0 and to be no larger size "
            "than src [2, 3]");
  EXPECT_TRUE(x.equal(source)) << "nothing has been written";
  EXPECT_TRUE(x.scatter(1, tensor({{2, 0}}), tensor({{8, 9, 7}})).equal(tensor({{9, 1, 8}, {3, 4, 5}})));
  EXPECT_TRUE(x.scatter_add(0, tensor({{1, 1, 0}, {1, 0, 0}}), source).equal(tensor({{0, 5, 9}, {6, 5, 5}})));
}

TEST(Scatter, AnEmptyIndexWritesNothing) {
  const Tensor x = two_rows();
  for (const Sizes& sizes : {Sizes{0}, Sizes{5, 0}, Sizes{0, 3}, Sizes{2, 0, 4}}) {
    EXPECT_TRUE(x.scatter(0, no_positions(sizes), x + 1).equal(x));
    EXPECT_TRUE(x.scatter_add(1, no_positions(sizes), x + 1).equal(x));
    const Tensor source = ones({2, 3}).set_requires_grad(true);
    zeros({2, 3}).scatter(0, no_positions(sizes), source).sum().backward();
    EXPECT_TRUE(source.grad().equal(zeros({2, 3})));
  }
}

TEST(Scatter, ATensorWithoutDimensionsCountsAsOneElement) {
  Tensor x = tensor(5);
  EXPECT_TRUE(x.scatter_(0, tensor({0}), tensor({7})).is_same(x));
  EXPECT_TRUE(x.equal(tensor(7)));
  EXPECT_TRUE(tensor(5).scatter_add(0, tensor({0, 0}), tensor({1, 2})).equal(tensor(8)));
  EXPECT_TRUE(tensor({1, 2, 3}).scatter(0, tensor(1), tensor(9)).equal(tensor({1, 9, 3})));
}

TEST(Scatter, OfALargerSourceOnlyThePartThatTheIndexCoversGetsAGradient) {
  const Tensor source = ones({2, 4}).set_requires_grad(true);
  (zeros({2, 3}).scatter(1, tensor({{0, 2}}), source) * tensor({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}})).sum().backward();
  EXPECT_TRUE(source.grad().equal(tensor({{1.f, 3.f, 0.f, 0.f}, {0.f, 0.f, 0.f, 0.f}})));
}

TEST(IndexAdd, SaysWhatOfIndexAndSourceDoesNotFit) {
  Tensor x = two_rows(), row = arange(3);
  EXPECT_EQ(message_of<IndexError>([&] { x.index_add_(0, tensor({{0}}), x); }),
            "index_add_(): Index is supposed to be a vector, but got dim: 2 with type: Long and size: [1, 1]");
  EXPECT_EQ(message_of([&] { x.index_add_(0, tensor({0.f}), x.narrow(0, 0, 1)); }),
            "index_add_(): Expected dtype int32/int64 for index but got: Float");
  EXPECT_EQ(message_of([&] {
              x.index_add_(0, tensor({0}), ones({1, 3}));
            }),
            "index_add_(): self (Long) and source (Float) must have the same scalar type");
  EXPECT_EQ(message_of([&] { x.index_add_(1, tensor({0}), tensor({1})); }),
            "index_add_(): Indexing dim 1 is out of bounds of the source tensor with dim 1");
  EXPECT_EQ(message_of([&] { x.index_add_(0, tensor({0}), x); }),
            "index_add_(): Number of indices (1) should be equal to source.size(dim): (2), for dim: 0");
  EXPECT_THROW(row.index_add_(0, tensor({0}), tensor({{1}})), Error);
  EXPECT_TRUE(x.equal(two_rows())) << "nothing has been written";
  EXPECT_TRUE(row.index_add(0, tensor(1), tensor(5)).equal(tensor({0, 6, 2}))) << "one place, one number";
  EXPECT_TRUE(x.index_add(-1, tensor({2, 2}).to(kInt32), ones({2, 2}, kInt64)).equal(tensor({{0, 1, 4}, {3, 4, 7}})));
}

TEST(IndexAdd, KeepsEveryDigitOfAFactorOfIntegers) {
  for (const std::int64_t factor : {9007199254740993, -9007199254740993, 9223372036854775807, 9007199254740992}) {
    const Tensor sum = zeros({2}, kInt64).index_add(0, tensor({1, 1}), tensor({1, 2}), factor);
    const auto wrapped = static_cast<std::int64_t>(3 * static_cast<std::uint64_t>(factor));
    EXPECT_EQ(sum[1].item<std::int64_t>(), wrapped) << factor;
  }
}

TEST(IndexCopy, SaysWhatOfIndexAndSourceDoesNotFit) {
  Tensor x = two_rows(), row = arange(3);
  EXPECT_EQ(message_of<IndexError>([&] { x.index_copy_(0, tensor({{0}}), x); }),
            "index_copy_(): Index should have dimension 1 or 0 (got 2)");
  EXPECT_EQ(message_of<IndexError>([&] {
              row.index_copy_(0, tensor({0, 1}), tensor(1));
            }),
            "index_copy_(): When source is scalar, index should have one element (got 2)");
  EXPECT_EQ(message_of<IndexError>([&] { x.index_copy_(0, tensor({0}), tensor({1})); }),
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            "dimensionality (1), destination dimensionality (2)");
  EXPECT_EQ(message_of([&] { x.index_copy_(0, tensor({0}).to(kInt32), x.narrow(0, 0, 1)); }),
            "index_copy_(): Expected a long tensor for index, but got Int");
  EXPECT_TRUE(x.equal(two_rows())) << "nothing has been written";
  EXPECT_TRUE(row.index_copy(0, tensor(2), tensor(9)).equal(tensor({0, 1, 9})));
}

TEST(OneHot, CountsItsClassesUnlessTheyAreGiven) {
  EXPECT_TRUE(one_hot(tensor({0, 2}), -1).equal(tensor({{1, 0, 0}, {0, 0, 1}})));
  EXPECT_TRUE(one_hot(tensor({0, 1}), 2).equal(tensor({{1, 0}, {0, 1}}))) << "exactly as many as there are";
  EXPECT_TRUE(one_hot(tensor(1), 3).equal(tensor({0, 1, 0})));
  EXPECT_EQ(one_hot(no_positions({0}), 3).sizes().vec(), (Sizes{0, 3}));
  EXPECT_EQ(one_hot(no_positions({2, 0}), 1).sizes().vec(), (Sizes{2, 0, 1}));
  EXPECT_EQ(message_of([] { one_hot(tensor({0, 2}), 2); }), "Class values must be smaller than num_classes.");
  EXPECT_EQ(message_of([] { one_hot(tensor(0), 0); }), "Class values must be smaller than num_classes.");
  EXPECT_EQ(message_of([] { one_hot(tensor(1), -2); }), "Class values must be smaller than num_classes.");
  EXPECT_EQ(message_of([] { one_hot(tensor({0, -1}), 3); }), "Class values must be non-negative.");
  EXPECT_EQ(message_of([] { one_hot(tensor({0.f}), 3); }),
            "one_hot is only applicable to index tensor of type LongTensor.");
  for (const int classes : {-1, 0})
    EXPECT_EQ(message_of([&] { one_hot(no_positions({0}), classes); }),
              "Can not infer total number of classes from empty tensor.");
}

TEST(Searchsorted, SaysWhatOfItsArgumentsDoesNotFit) {
  const Tensor edges = tensor({1.f, 2.f});
  EXPECT_EQ(message_of([&] { searchsorted(edges, tensor(1.f), false, true, "left"); }),
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True");
  EXPECT_THROW(searchsorted(tensor(1.f), tensor(1.f)), Error);
  EXPECT_THROW(searchsorted(edges, tensor(1.f), false, false, std::nullopt, tensor({0})), Error);
  EXPECT_THROW(searchsorted(edges.unsqueeze(0), tensor(1.f)), Error);
  EXPECT_TRUE(searchsorted(edges, tensor(2.f), false, true).equal(tensor(2)));
  EXPECT_TRUE(searchsorted(edges, tensor(2.f), false, true, "right").equal(tensor(2)));
  EXPECT_TRUE(searchsorted(edges, tensor(2.f), false, false, "left").equal(tensor(1)));
  EXPECT_TRUE(
      searchsorted(tensor({2.f, 1.f}), tensor({2.f}), false, false, std::nullopt, tensor({1, 0})).equal(tensor({1})));
}

TEST(Isin, TakesANumberAsItsElement) {
  EXPECT_TRUE(isin(2, tensor({1, 2})).equal(tensor(true)));
  EXPECT_TRUE(isin(3, tensor({1, 2})).equal(tensor(false)));
  EXPECT_TRUE(isin(2, tensor({1, 2}), false, true).equal(tensor(false)));
}

TEST(RepeatInterleave, TakesOneNumberOfTimesForAllOrOneForEach) {
  const Tensor x = two_rows();
  EXPECT_TRUE(x.repeat_interleave(tensor({2}), 1).equal(tensor({{0, 0, 1, 1, 2, 2}, {3, 3, 4, 4, 5, 5}})));
  EXPECT_TRUE(x.repeat_interleave(tensor(2), -1).equal(tensor({{0, 0, 1, 1, 2, 2}, {3, 3, 4, 4, 5, 5}})));
  EXPECT_TRUE(x.repeat_interleave(tensor({0, 2}), 0).equal(tensor({{3, 4, 5}, {3, 4, 5}})));
  EXPECT_TRUE(x.repeat_interleave(tensor({2})).equal(tensor({0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5})));
  EXPECT_EQ(x.repeat_interleave(tensor(0), 0).sizes().vec(), (Sizes{0, 3}));
  EXPECT_TRUE(tenon::repeat_interleave(tensor({0, 2, 1})).equal(tensor({1, 1, 2})));
  EXPECT_EQ(tenon::repeat_interleave(no_positions({0})).sizes().vec(), (Sizes{0}));
  EXPECT_EQ(message_of([&] {
              x.repeat_interleave(tensor({1, 2, 3}), 0);
            }),
            "repeats must have the same size as input along dim, but got repeats.size(0) = 3 and input.size(0) = 2");
  EXPECT_EQ(message_of([&] { x.repeat_interleave(tensor({{1}}), 0); }), "repeats must be 0-dim or 1-dim tensor");
  EXPECT_EQ(message_of([&] { x.repeat_interleave(tensor({1, -1}), 0); }), "repeats can not be negative");
  EXPECT_EQ(message_of([&] { x.repeat_interleave(tensor({1.f, 2.f}), 0); }), "repeats has to be Long or Int tensor");
  EXPECT_EQ(message_of([] { tenon::repeat_interleave(tensor(1)); }),
            "repeat_interleave only accept 1D vector as repeat");
  EXPECT_EQ(tenon::repeat_interleave(tensor({1, 2}), std::optional<std::int64_t>(3)).numel(), 3);
  EXPECT_THROW(tenon::repeat_interleave(tensor({1, 2}), std::optional<std::int64_t>(4)), Error)
      << "more than the repeats sum up to";
}

TEST(MaskedScatter, TakesAsManyElementsAsItsMaskHasOnes) {
  Tensor x = two_rows();
  EXPECT_TRUE(
      x.masked_scatter(tensor({true, false, true}), tensor({7, 8, 9, 10})).equal(tensor({{7, 1, 8}, {9, 4, 10}})));
  EXPECT_TRUE(
      x.masked_scatter(tensor({true, false, true}), tensor({7, 8, 9, 10, 11})).equal(tensor({{7, 1, 8}, {9, 4, 10}})))
      << "what is left over stays unread";
  EXPECT_TRUE(x.masked_scatter(tensor(false), no_positions({0})).equal(x));
  EXPECT_EQ(message_of([&] { x.masked_scatter_(tensor({1}), x); }),
            "masked_scatter_ only supports boolean masks, but got mask with dtype Long");
  EXPECT_THROW(x.masked_scatter_(tensor({true, false, true}), tensor({7, 8, 9})), Error);
  EXPECT_THROW(x.masked_scatter_(tensor({true}), tensor({7.f})), Error);
  EXPECT_TRUE(x.equal(two_rows())) << "nothing has been written";
}

TEST(Put, CountsPlacesThroughTheWholeTensor) {
  const Tensor x = two_rows();
  EXPECT_TRUE(x.put(tensor({-1, 0}), tensor({9, 8})).equal(tensor({{8, 1, 2}, {3, 4, 9}})));
  EXPECT_TRUE(x.put(tensor({0, 0}), tensor({9, 8}), true).equal(tensor({{17, 1, 2}, {3, 4, 5}})));
  EXPECT_TRUE(x.take(tensor({{5, -6}})).equal(tensor({{5, 0}})));
  EXPECT_THROW(x.put(tensor({6}), tensor({1})), Error);
  EXPECT_THROW(x.take(tensor({-7})), Error);
  EXPECT_EQ(message_of([&] { x.put(tensor({0}), tensor({1.f})); }),
            "put_(): self and source expected to have the same dtype, but got self.dtype = Long and source.dtype = "
            "Float");
  EXPECT_EQ(message_of<IndexError>([&] {
              x.put(tensor({0, 1}), tensor({1}));
            }),
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = 1, "
            "index.numel() = 2");
}

TEST(Embedding, TakesAMatrixAndIntegers) {
  EXPECT_EQ(message_of([] {
              embedding(tensor({1.f, 2.f}), tensor({0}));
            }),
            "embedding: 'weight' must be 2-D, got size [2]");
  EXPECT_EQ(message_of([] {
              embedding(ones({2, 2}), tensor({0.f}));
            }),
            "embedding: expected indices of type Long or Int, but got Float");
  EXPECT_EQ(embedding(ones({2, 3}), tensor(1)).sizes().vec(), (Sizes{3}));
  EXPECT_EQ(embedding(ones({2, 3}), no_positions({4, 0})).sizes().vec(), (Sizes{4, 0, 3}));
  EXPECT_THROW(embedding(ones({2, 3}), tensor({2})), Error);
}

TEST(Literal, ListsOfDifferentSizesOrKindsAreShownAsTheyAreWritten) {
  EXPECT_EQ(message_of([] {
              tensor({{1, 2}, {3}});
            }),
            "Expected all sub-lists to have sizes: 2 (e.g. {1, 2}), but got sub-list {3} with sizes: 1");
  EXPECT_EQ(message_of([] {
              tensor({{1, 2}, {3., 4.}});
            }),
            "Expected all elements of the tensor to have the same scalar type: Int, but got element of scalar type: "
            "Double");
}

TEST(Range, CountsItsEndAndGoesTheWayOfItsStep) {
  EXPECT_TRUE(range(0, 5, 2).equal(tensor({0.f, 2.f, 4.f})));
  EXPECT_TRUE(range(0, 4, 2).equal(tensor({0.f, 2.f, 4.f})));
  EXPECT_TRUE(range(1, 0, -0.25).equal(tensor({1.f, 0.75f, 0.5f, 0.25f, 0.f})));
  EXPECT_TRUE(range(3, 3, -1).equal(tensor({3.f})));
  EXPECT_EQ(message_of([] { range(0, 5, -1); }), "upper bound and lower bound inconsistent with step sign");
  EXPECT_EQ(message_of([] { range(5, 0, 1); }), "upper bound and lower bound inconsistent with step sign");
  EXPECT_EQ(message_of([] { range(0, 5, 0); }), "step must be nonzero");
  EXPECT_THROW(range(0, std::numeric_limits<double>::infinity(), 1), Error);
}

TEST(Empty, TheMemoryFormatOfItsOptionsCountsUnlessOneIsGiven) {
  const TensorOptions last = TensorOptions().memory_format(MemoryFormat::ChannelsLast);
  const Sizes sizes{2, 3, 4, 5};
  EXPECT_EQ(empty(sizes, last).strides().vec(), (Sizes{60, 1, 15, 3}));
  EXPECT_EQ(empty(sizes, last, MemoryFormat::Contiguous).strides().vec(), (Sizes{60, 20, 5, 1}));
  EXPECT_EQ(empty(sizes, TensorOptions(), MemoryFormat::ChannelsLast).strides().vec(), (Sizes{60, 1, 15, 3}));
  EXPECT_EQ(tenon::empty(sizes).strides().vec(), (Sizes{60, 20, 5, 1}));
  EXPECT_EQ(message_of([&] { empty({2, 3}, last); }), "required rank 4 tensor to use channels_last format, got rank 2");
}

TEST(InPlace, ABoolTensorHoldsNoNumbersThatItsElementsBecome) {
  EXPECT_EQ(message_of([] { tensor({true}).square_(); }).substr(0, 66),
            "result type Long can't be cast to the desired output type Bool (in");
  EXPECT_THROW(tensor({true}).neg_(), Error);
  EXPECT_THROW(tensor({true}).sin_(), Error);
  EXPECT_TRUE(tensor({true, false}).sign_().equal(tensor({true, false})));
  EXPECT_TRUE(tensor({3, -2}).square_().equal(tensor({9, 4})));
}

TEST(NanToNum, InfinitiesBecomeTheLargestNumbersOfTheDtype) {
  const Tensor ends = tensor({HUGE_VAL, -HUGE_VAL, std::nan("")}, TensorOptions(kFloat64));
  const auto becomes = [&](Dtype dtype, double largest) {
    const Tensor result = ends.to(dtype).nan_to_num();
    EXPECT_EQ(result.scalar_type(), dtype);
    EXPECT_TRUE(result.to(kFloat64).equal(tensor({largest, -largest, 0.}, TensorOptions(kFloat64)))) << toString(dtype);
  };
  becomes(kFloat16, 65504);
  becomes(kBFloat16, 0x1.FEp127);
  becomes(kFloat32, std::numeric_limits<float>::max());
  becomes(kFloat64, std::numeric_limits<double>::max());
}

}  // namespace
}  // namespace tenon::test
