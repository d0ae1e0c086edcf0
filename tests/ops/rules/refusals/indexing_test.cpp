// What look-ups and writes by index refuse, word for word, and that they take what lies just inside.
#include <tenon/ops/all_ops.h>

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "support/refusal.h"

namespace tenon {
namespace {

Tensor whole(std::initializer_list<std::int64_t> values) { return tensor(std::vector<std::int64_t>(values)); }

TEST(BagRefusals, AreOfRanksModesWeightsAndPadding) {
  const Tensor weight = ones({4, 3}), indices = whole({0, 1, 3}), offsets = whole({0, 2});
  const auto ranks = [](const char* list) {
    return "embedding_bag: expected a weight of rank 2 and indices and offsets of rank 1, got ranks " +
           std::string(list);
  };
  EXPECT_EQ(refusal_of([&] { embedding_bag(ones({4}), indices, offsets); }), ranks("1, 1, 1"));
  EXPECT_EQ(refusal_of([&] { embedding_bag(weight, indices.view({1, 3}), offsets); }), ranks("2, 2, 1"));
  EXPECT_EQ(refusal_of([&] { embedding_bag(weight, indices, offsets.view({2, 1})); }), ranks("2, 1, 2"));
  for (const int mode : {-1, 3}) {
    EXPECT_EQ(refusal_of([&] { embedding_bag(weight, indices, offsets, false, mode); }),
              "embedding_bag: mode must be 0 (sum), 1 (mean) or 2 (max), got " + std::to_string(mode));
  }
  const std::string sums = "embedding_bag: per_sample_weights go with sums only, and need the sizes of the indices";
  for (const int mode : {1, 2})
    EXPECT_EQ(refusal_of([&] { embedding_bag(weight, indices, offsets, false, mode, false, ones({3})); }), sums);
  EXPECT_EQ(refusal_of([&] { embedding_bag(weight, indices, offsets, false, 0, false, ones({2})); }), sums);
  EXPECT_EQ(refusal_of([&] { embedding_bag(weight, indices, offsets, false, 0, false, ones({3})); }), "");
  for (const std::int64_t padding : {-5, 4}) {
    EXPECT_EQ(refusal_of([&] { embedding_bag(weight, indices, offsets, false, 0, false, {}, false, padding); }),
              "embedding_bag: padding_idx " + std::to_string(padding) + " lies outside a table of 4 rows");
  }
  for (const std::int64_t padding : {-4, 3})
    EXPECT_EQ(refusal_of([&] { embedding_bag(weight, indices, offsets, false, 0, false, {}, false, padding); }), "");
}

TEST(BagRefusals, OffsetsBeginAtZeroDoNotFallAndStayWithinTheIndices) {
  const Tensor weight = ones({4, 3}), indices = whole({0, 1, 3});
  const auto refusal = [&](const Tensor& offsets, bool last = false) {
    return refusal_of([&] { embedding_bag(weight, indices, offsets, false, 0, false, {}, last); });
  };
  EXPECT_EQ(refusal(whole({1, 2})),
            "embedding_bag: offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
            "position 0. However, got 1");
  EXPECT_EQ(refusal(whole({0, 2, 1})),
            "embedding_bag: offsets must not decrease nor exceed the number of indices 3, but offsets[2] is 1");
  EXPECT_EQ(refusal(whole({0, 4})),
            "embedding_bag: offsets must not decrease nor exceed the number of indices 3, but offsets[1] is 4");
  EXPECT_EQ(refusal(whole({0, 2, 2, 3})), "");
  EXPECT_EQ(refusal(zeros({0}, kInt64), true), "embedding_bag: include_last_offset needs at least one offset");
  EXPECT_EQ(refusal(whole({0}), true), "");
}

TEST(BagRules, EveryModeWithPaddingEmptyBagsAndALastOffset) {
  const Tensor weight = arange(12, TensorOptions(kFloat64)).view({4, 3}).add(1);
  const Tensor indices = whole({3, 0, 1, 1, 2}), offsets = whole({0, 2, 2, 4});
  for (const bool last : {false, true}) {
    for (const std::optional<std::int64_t>& padding :
         {std::optional<std::int64_t>(), std::optional<std::int64_t>(1), std::optional<std::int64_t>(-4)}) {
      const std::int64_t count = last ? 3 : 4;
      for (const int mode : {0, 1, 2}) {
        const auto [result, of_element, sizes, places] =
            embedding_bag(weight, indices, offsets, false, mode, false, {}, last, padding);
        ASSERT_EQ(result.sizes(), IntArrayRef({count, 3}));
        for (std::int64_t bag = 0; bag < count; ++bag) {
          const std::int64_t begin = offsets[bag].item<std::int64_t>(),
                             end = bag < 3 ? offsets[bag + 1].item<std::int64_t>() : 5;
          std::vector<std::int64_t> rows;
          for (std::int64_t i = begin; i < end; ++i) {
            EXPECT_EQ(of_element[i].item<std::int64_t>(), bag);
            const std::int64_t row = indices[i].item<std::int64_t>();
            if (!padding || row != (*padding + 4) % 4) rows.push_back(row);
          }
          EXPECT_EQ(sizes[bag].item<std::int64_t>(), static_cast<std::int64_t>(rows.size()));
          for (std::int64_t c = 0; c < 3; ++c) {
            double expected = 0;
            std::int64_t from = -1;
            for (const std::int64_t row : rows) {
              const double value = weight[row][c].item<double>();
              if (mode == 2) {
                if (from < 0 || value > expected) expected = value, from = row;
              } else {
                expected += mode == 1 ? value / static_cast<double>(rows.size()) : value;
              }
            }
            EXPECT_NEAR(result[bag][c].item<double>(), expected, 1e-12) << "mode " << mode << ", bag " << bag;
            if (mode == 2) {
              EXPECT_EQ(places[bag][c].item<std::int64_t>(), from);
            }
          }
        }
        if (mode != 2) {
          EXPECT_EQ(places.numel(), 0);
        }
      }
    }
  }
}

TEST(IndexRefusals, PlacesInAShapeAreWholeAndTheShapeHasNoHoles) {
  EXPECT_EQ(refusal_of([] {
              unravel_index(ones({2}), {2, 3});
            }),
            "expected 'indices' to be integer dtype, but got Float");
  EXPECT_EQ(refusal_of([] {
              unravel_index(whole({0}), {2, -1});
            }),
            "'shape' cannot have negative values, but got [2, -1]");
  EXPECT_EQ(refusal_of([] {
              unravel_index(whole({0}), {2, 0});
            }),
            "'shape' cannot have zero dimensions when 'indices' is non-empty, but got [2, 0]");
  EXPECT_EQ(refusal_of([] { EXPECT_EQ(unravel_index(zeros({0}, kInt64), {2, 0}).size(), 2U); }), "");
  const auto places = unravel_index(whole({0, 5, 23}), {2, 3, 4});
  EXPECT_TRUE(places[0].equal(whole({0, 0, 1})));
  EXPECT_TRUE(places[1].equal(whole({0, 1, 2})));
  EXPECT_TRUE(places[2].equal(whole({0, 1, 3})));
}

TEST(IndexRefusals, MasksAreTruthAndTheirSourceIsLongEnough) {
  const Tensor x = zeros({3}), mask = tensor({1., 0., 1.}).to(kBool);
  EXPECT_EQ(refusal_of([&] { x.masked_scatter_(mask, ones({2}, kInt64)); }),
            "masked_scatter: expected self and source to have same dtypes but got Float and Long");
  EXPECT_EQ(refusal_of([&] { x.masked_scatter_(mask.to(kInt64), ones({2})); }),
            "masked_scatter_ only supports boolean masks, but got mask with dtype Long");
  EXPECT_EQ(refusal_of([&] { x.masked_scatter_(mask, ones({1})); }),
            "masked_scatter: expected self and source to have same number of elements where the mask is true: Number "
            "of elements of source (1) < number of ones in mask (2)");
  EXPECT_EQ(refusal_of([&] { x.masked_scatter_(mask, ones({2})); }), "");
  EXPECT_EQ(refusal_of([&] { x.masked_scatter_(mask.to(kUInt8), ones({3})); }), "");
  EXPECT_TRUE(x.equal(tensor({1., 0., 1.})));
  for (const Dtype dtype : {kInt64, kFloat32, kInt8}) {
    EXPECT_EQ(refusal_of([&] { x.masked_select(mask.to(dtype)); }),
              "masked_select: expected BoolTensor or ByteTensor for mask");
  }
}

TEST(IndexRefusals, PutTakesPlacesInLongAndAsManyValues) {
  const Tensor x = zeros({2, 3});
  EXPECT_EQ(refusal_of([&] { x.put(whole({0}).to(kInt32), ones({1})); }),
            "put_(): Expected a long tensor for index, but got Int");
  EXPECT_EQ(refusal_of([&] { x.put(whole({0}), ones({1}, kInt64)); }),
            "put_(): self and source expected to have the same dtype, but got self.dtype = Float and source.dtype = "
            "Long");
  EXPECT_EQ(refusal_of([&] {
              x.put(whole({0, 1}), ones({3}));
            }),
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = 3, "
            "index.numel() = 2");
  EXPECT_EQ(refusal_of([] { zeros({0}).put(whole({0}), ones({1})); }),
            "put_(): tried to put elements into an empty tensor");
  EXPECT_EQ(refusal_of([] { EXPECT_EQ(zeros({0}).put(zeros({0}, kInt64), zeros({0})).numel(), 0); }), "");
  EXPECT_TRUE(x.put(whole({-1, 0}), tensor({5., 7.})).equal(tensor({{7., 0., 0.}, {0., 0., 5.}})));
  EXPECT_TRUE(x.t().put(whole({1}), tensor({5.})).t().equal(tensor({{0., 0., 0.}, {5., 0., 0.}})));
}

TEST(IndexRefusals, AlongADimBothHaveOneRank) {
  const Tensor x = arange(6).view({2, 3});
  EXPECT_EQ(refusal_of([&] {
              x.take_along_dim(ones({2, 3}), 0);
            }),
            "torch.take_along_dim(): dtype of indices should be Long but got Float");
  EXPECT_EQ(refusal_of([&] { x.take_along_dim(whole({0}), 0); }),
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got 2 "
            "dimensions for input, and 1 dimensions for indices");
  EXPECT_TRUE(x.take_along_dim(whole({5, 0})).equal(whole({5, 0})));
  EXPECT_TRUE(x.take_along_dim(whole({2}).view({1, 1}).to(kInt32), -1).equal(whole({2, 5}).view({2, 1})));
}

TEST(IndexRefusals, RowsThatAreAddedOrCopiedFitTheirIndex) {
  const Tensor x = zeros({4, 3});
  EXPECT_EQ(refusal_of([] {
              zeros({4}).index_add_(0, whole({0}), ones({1, 1}));
            }),
            "source.dim() (2) must one or zero for given self.dim() (1)");
  EXPECT_EQ(refusal_of([&] {
              x.index_add_(0, whole({0}), ones({2, 3}));
            }),
            "index_add_(): Number of indices (1) should be equal to source.size(dim): (2), for dim: 0");
  EXPECT_EQ(refusal_of([&] {
              x.index_add_(0, whole({0}), ones({1, 3}, kFloat64));
            }),
            "index_add_(): self (Float) and source (Double) must have the same scalar type");
  EXPECT_EQ(refusal_of([&] {
              x.index_copy_(0, whole({0}), ones({1, 3}, kFloat64));
            }),
            "index_copy_(): self and source expected to have the same dtype, but got (self) Float and (source) "
            "Double");
  EXPECT_EQ(refusal_of([&] {
              x.index_copy_(0, whole({0}).to(kInt32), ones({1, 3}));
            }),
            "index_copy_(): Expected a long tensor for index, but got Int");
  EXPECT_EQ(refusal_of([&] {
              x.index_copy_(0, whole({0}), ones({1, 2}));
            }),
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: 3 at "
            "dimension 0 and source slice shape: 2 at dimension 0.");
  EXPECT_EQ(refusal_of([&] {
              x.index_copy_(0, whole({0, 1}), ones({1, 3}));
            }),
            "index_copy_(): Number of indices (2) should be equal to source.size(dim) (1)");
  for (const std::int64_t at : {-1, 4}) {
    EXPECT_EQ(refusal_of([&] {
                x.index_copy_(0, whole({0, at}), ones({2, 3}));
              }),
              "index_copy_(): index " + std::to_string(at) + " is out of bounds for dimension 0 with size 4");
  }
  EXPECT_EQ(refusal_of([&] { x.index_copy_(0, whole({0, 3}), ones({2, 3})); }), "");
  EXPECT_EQ(refusal_of([] { zeros({}).index_copy_(0, whole({1}), ones({})); }),
            "index_copy_(): index 1 is out of bounds for dimension 0 with size 1");
  EXPECT_EQ(refusal_of([&] {
              x.scatter_reduce(0, ones({1, 3}), ones({1, 3}), "sum");
            }),
            "scatter(): Expected dtype int32/int64 for index, got Float");
  EXPECT_EQ(refusal_of([&] {
              x.scatter(0, zeros({1, 3}, kInt64), ones({1, 3}), "divide");
            }),
            "reduce argument must be either add or multiply, got divide.");
}

TEST(SearchRefusals, SidesSortersAndShapesAreChecked) {
  const std::string name = "torch.searchsorted(): ";
  const Tensor line = tensor({1., 2., 3.}), rows = line.expand({2, 3}).contiguous();
  const auto refusal = [&](const Tensor& sequence, const Tensor& values, bool right = false,
                           std::optional<std::string_view> side = {}, const std::optional<Tensor>& sorter = {}) {
    const std::string text = refusal_of([&] { searchsorted(sequence, values, false, right, side, sorter); });
    return text.starts_with(name) ? text.substr(name.size()) : text;
  };
  EXPECT_EQ(refusal(line, line, false, "middle"), "side can only be 'left' or 'right' but got middle");
  EXPECT_EQ(refusal(line, line, true, "left"),
            "side and right can't be set to opposites, got side of left while right was True");
  EXPECT_EQ(refusal(line, line, true, "right"), "");
  EXPECT_EQ(refusal(line, line, false, "right"), "");
  EXPECT_EQ(refusal(line[0], line), "boundaries tensor should have positive dimension, but got 0 dimension");
  EXPECT_EQ(refusal(rows, line[0]),
            "input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries tensor "
            "dim(2) and input value's dim(0) numel(1)");
  EXPECT_EQ(refusal(rows, ones({3, 2})),
            "boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value "
            "tensor must match, but we got boundaries tensor [2, 3] and input value tensor [3, 2]");
  EXPECT_EQ(refusal(rows, ones({2, 7})), "");
  EXPECT_EQ(refusal(line, ones({5, 2, 7})), "");
  EXPECT_EQ(refusal(line, line, false, {}, whole({0, 1})),
            "boundary and sorter must have the same size, but got boundary tensor [3] and got sorter tensor [2]");
  EXPECT_EQ(refusal(line, line, false, {}, whole({0, 1, 2}).to(kInt32)),
            "sorter must be a tensor of long dtype but got dtype Int");
  EXPECT_EQ(refusal_of([&] { bucketize(line, rows); }), "boundaries tensor must be 1 dimension, but got dim(2)");
}

TEST(SearchRules, PlacesAreThoseOfALoopForAnyLengthAndSide) {
  for (std::int64_t length = 0; length <= 9; ++length) {
    const Tensor sequence = arange(length, TensorOptions(kFloat64)).div(2, "floor");  // 0 0 1 1 2 2 …
    const Tensor values = tensor({-1., 0., 0.5, 1., 2., 3., 4., 9.}, kFloat64);
    for (const bool right : {false, true}) {
      const Tensor found = searchsorted(sequence, values, false, right);
      const Tensor small = searchsorted(sequence, values, true, right);
      EXPECT_EQ(found.scalar_type(), kInt64);
      EXPECT_EQ(small.scalar_type(), kInt32);
      for (std::int64_t i = 0; i < values.numel(); ++i) {
        std::int64_t place = 0;
        while (place < length && (right ? sequence[place].item<double>() <= values[i].item<double>()
                                        : sequence[place].item<double>() < values[i].item<double>()))
          ++place;
        EXPECT_EQ(found[i].item<std::int64_t>(), place) << length << ", " << i << ", " << right;
        EXPECT_EQ(small[i].item<std::int64_t>(), place);
      }
    }
  }
}

TEST(RepeatRefusals, RepeatsAreCountsAndAddUp) {
  EXPECT_EQ(refusal_of([] {
              repeat_interleave(ones({1, 2}, kInt64));
            }),
            "repeat_interleave only accept 1D vector as repeat");
  EXPECT_EQ(refusal_of([] { repeat_interleave(ones({2})); }), "repeats has to be Long or Int tensor");
  EXPECT_EQ(refusal_of([] { repeat_interleave(whole({2, -1})); }), "repeats can not be negative");
  EXPECT_EQ(refusal_of([] {
              repeat_interleave(whole({2, 1}), std::optional<std::int64_t>(4));
            }),
            "allocated size does not match required size: output_size is 4, the repeats sum up to 3");
  EXPECT_TRUE(repeat_interleave(whole({2, 0, 1}), std::optional<std::int64_t>(3)).equal(whole({0, 0, 2})));
  EXPECT_EQ(repeat_interleave(whole({2, 0}).to(kInt32)).scalar_type(), kInt32);
  const Tensor x = arange(6).view({2, 3});
  EXPECT_EQ(refusal_of([&] { x.repeat_interleave(ones({1, 2}, kInt64), 0); }), "repeats must be 0-dim or 1-dim tensor");
  EXPECT_EQ(refusal_of([&] {
              x.repeat_interleave(whole({1, 2}), 1);
            }),
            "repeats must have the same size as input along dim, but got repeats.size(0) = 2 and input.size(1) = 3");
  EXPECT_TRUE(x.repeat_interleave(whole({1, 2}), 0).equal(tensor({{0, 1, 2}, {3, 4, 5}, {3, 4, 5}})));
  EXPECT_TRUE(x.repeat_interleave(whole({2}), 1).equal(tensor({{0, 0, 1, 1, 2, 2}, {3, 3, 4, 4, 5, 5}})));
}

}  // namespace
}  // namespace tenon
