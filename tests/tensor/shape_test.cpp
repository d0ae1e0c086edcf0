// Arithmetic of sizes and strides against the offsets of all elements, generators and their positions, storages that
// grow.
#include "../support/message_of.h"

#include <tenon/ops/ops.h>
#include <tenon/tensor/generator.h>
#include <tenon/tensor/literal.h>
#include <tenon/tensor/shape/dims.h>
#include <tenon/tensor/shape/extent.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>

namespace tenon::test {
namespace {

using testing::HasSubstr;

/// The offset of each element, the last dimension fastest.
std::vector<std::int64_t> offsets_of(const Dims& sizes, const Dims& strides) {
  std::vector<std::int64_t> offsets{0};
  for (int d = 0; d < sizes.rank(); ++d) {
    std::vector<std::int64_t> next;
    for (const std::int64_t offset : offsets)
      for (std::int64_t i = 0; i < sizes[d]; ++i) next.push_back(offset + i * strides[d]);
    offsets = next;
  }
  return offsets;
}

struct Random {
  std::mt19937 engine{401};
  std::int64_t number(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine() % static_cast<unsigned>(high - low + 1));
  }
  Dims sizes(int most_rank, std::int64_t low, std::int64_t high) {
    Dims sizes;
    for (std::int64_t rank = number(0, most_rank); rank > 0; --rank) sizes.push_back(number(low, high));
    return sizes;
  }
};

TEST(Dims, ChannelsLastStridesOfNoChannelsAreThoseOfOne) {
  EXPECT_EQ(channels_last_strides(Dims({2, 0, 3, 4})), channels_last_strides(Dims({2, 1, 3, 4})));
  EXPECT_EQ(channels_last_strides(Dims({2, 1, 3, 4})), Dims({12, 1, 4, 1}));
}

TEST(Dims, ContiguousStridesGoThroughMemoryInOrder) {
  Random random;
  for (int i = 0; i < 300; ++i) {
    const Dims sizes = random.sizes(4, 1, 4);
    const std::vector<std::int64_t> offsets = offsets_of(sizes, contiguous_strides(sizes));
    for (std::size_t k = 0; k < offsets.size(); ++k) ASSERT_EQ(offsets[k], static_cast<std::int64_t>(k));
  }
  EXPECT_EQ(contiguous_strides({2, 0, 3}), (Dims{3, 3, 1}));
  EXPECT_EQ(channels_last_strides({2, 3, 4, 5}), (Dims{60, 1, 15, 3}));
  EXPECT_EQ(channels_last_strides({2, 3, 4, 5, 6}), (Dims{360, 1, 90, 18, 3}));
  EXPECT_EQ(channels_last_strides({2, 3, 4}), (Dims{12, 4, 1}));
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_THAT(message_of([&] {
                contiguous_strides({large, large, large});
              }),
              HasSubstr("Stride calculation overflowed with sizes="));
}

TEST(Dims, BroadcastFromTheEnd) {
  Random random;
  for (int i = 0; i < 500; ++i) {
    const Dims a = random.sizes(3, 0, 3), b = random.sizes(3, 0, 3);
    const int rank = std::max(a.rank(), b.rank());
    bool fits = true, is_expandable = a.rank() <= b.rank();
    Dims want;
    for (int d = 0; d < rank; ++d) {
      const int in_a = d - (rank - a.rank()), in_b = d - (rank - b.rank());
      const std::int64_t left = in_a < 0 ? 1 : a[in_a], right = in_b < 0 ? 1 : b[in_b];
      fits = fits && (left == right || left == 1 || right == 1);
      is_expandable = is_expandable && (left == right || left == 1);
      want.push_back(left == 1 ? right : left);
    }
    EXPECT_EQ(is_expandable_to(a, b), is_expandable) << to_string(a) << " to " << to_string(b);
    if (!fits) {
      EXPECT_THROW(broadcast_sizes(a, b), Error) << to_string(a) << " and " << to_string(b);
      continue;
    }
    EXPECT_EQ(broadcast_sizes(a, b), want) << to_string(a) << " and " << to_string(b);
  }
  EXPECT_EQ(
      message_of([] {
        broadcast_sizes({2, 3}, {4, 1, 4});
      }),
      "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 2 (shapes [2, 3] and "
      "[4, 1, 4])");
}

TEST(Dims, AViewHasTheSameElementsInTheSameOrderOrThereIsNone) {
  Random random;
  int views = 0, none = 0;
  for (int i = 0; i < 3000; ++i) {
    const Dims sizes = random.sizes(3, 1, 4);
    Dims strides = contiguous_strides(sizes);
    for (std::int64_t& stride : strides) {  // gaps, and dims in another order
      if (random.number(0, 4) == 0) stride *= random.number(1, 3);
    }
    if (sizes.rank() > 1 && random.number(0, 2) == 0) std::swap(strides[0], strides[1]);
    // Other sizes of as many elements.
    Dims to;
    std::int64_t rest = sizes.product();
    while (rest > 1 || (to.rank() < 4 && random.number(0, 3) == 0)) {
      std::int64_t size = to.rank() < 4 ? random.number(1, rest) : rest;
      while (rest % size != 0) --size;
      to.push_back(size);
      rest /= size;
    }
    const std::vector<std::int64_t> offsets = offsets_of(sizes, strides);
    const std::optional<Dims> found = view_strides(sizes, strides, to);
    // By trial: the stride of each new dim is the distance of its first two elements, if there is one for all.
    Dims tried;
    std::int64_t step = 1;
    for (int d = to.rank() - 1; d >= 0; --d) {
      const std::int64_t distance = to[d] == 1 ? 0 : offsets[static_cast<std::size_t>(step)] - offsets[0];
      tried.insert(0, distance);
      step *= to[d];
    }
    const bool is_view = offsets_of(to, tried) == offsets;
    ASSERT_EQ(found.has_value(), is_view)
        << to_string(sizes) << " by " << to_string(strides) << " as " << to_string(to);
    ++(is_view ? views : none);
    if (found) {
      ASSERT_EQ(offsets_of(to, *found), offsets) << to_string(sizes) << " as " << to_string(to);
    }
  }
  EXPECT_GT(views, 300);
  EXPECT_GT(none, 300);
  EXPECT_EQ(view_strides({0, 3}, {3, 1}, {0, 3}), (Dims{3, 1}));
  EXPECT_EQ(view_strides({0, 3}, {7, 1}, {2, 0}), contiguous_strides({2, 0}));
}

TEST(Dims, OneSizeIsInferredAndOnlyOne) {
  EXPECT_EQ(infer_sizes({2, -1}, 6), (Dims{2, 3}));
  EXPECT_EQ(infer_sizes({-1}, 0), (Dims{0}));
  EXPECT_EQ(infer_sizes({2, -1}, 0), (Dims{2, 0}));
  EXPECT_EQ(infer_sizes({2, 3}, 6), (Dims{2, 3}));
  EXPECT_EQ(infer_sizes(IntArrayRef{}, 1), (Dims{}));
  EXPECT_EQ(message_of([] { infer_sizes({-1, -1}, 6); }), "only one dimension can be inferred");
  EXPECT_EQ(message_of([] { infer_sizes({-2, 3}, 6); }), "invalid shape dimension -2");
  EXPECT_EQ(message_of([] { infer_sizes({4, -1}, 6); }), "shape '[4, -1]' is invalid for input of size 6");
  EXPECT_EQ(message_of([] { infer_sizes({4}, 6); }), "shape '[4]' is invalid for input of size 6");
  EXPECT_THAT(message_of([] { infer_sizes({0, -1}, 0); }), HasSubstr("is ambiguous"));
  EXPECT_EQ(message_of([] { infer_sizes({0, -1}, 6); }), "shape '[0, -1]' is invalid for input of size 6");
  EXPECT_THAT(message_of([] {
                infer_sizes({std::int64_t{1} << 40, std::int64_t{1} << 40}, 6);
              }),
              HasSubstr("is invalid for input of size 6"));
}

TEST(Dims, AreWrappedWithinTheirRank) {
  for (int rank = 1; rank <= 3; ++rank) {
    for (std::int64_t dim = -rank; dim < rank; ++dim)
      EXPECT_EQ(wrap_dim(dim, rank), static_cast<int>(dim < 0 ? dim + rank : dim));
    EXPECT_THROW(wrap_dim(rank, rank), IndexError);
    EXPECT_THROW(wrap_dim(-rank - 1, rank), IndexError);
  }
  EXPECT_EQ(wrap_dim(0, 0), 0);
  EXPECT_EQ(wrap_dim(-1, 0), 0);
  EXPECT_THROW(wrap_dim(1, 0), IndexError);
  EXPECT_THROW(wrap_dim(0, 0, false), IndexError);
  EXPECT_EQ(message_of<IndexError>([] { wrap_dim(3, 2); }),
            "Dimension out of range (expected to be in range of [-2, 1], but got 3)");
}

TEST(Extents, ReachToTheFarthestElement) {
  Random random;
  for (int i = 0; i < 300; ++i) {
    const Dims sizes = random.sizes(3, 0, 4);
    Dims strides;
    for (int d = 0; d < sizes.rank(); ++d) strides.push_back(random.number(0, 9));
    const std::int64_t offset = random.number(0, 5);
    const std::vector<std::int64_t> offsets = offsets_of(sizes, strides);
    const std::size_t want =
        offsets.empty() ? 0 : static_cast<std::size_t>(4 * (offset + *std::ranges::max_element(offsets) + 1));
    EXPECT_EQ(strided_bytes(sizes, strides, kFloat32, offset), want)
        << to_string(sizes) << " by " << to_string(strides);
    EXPECT_EQ(element_count(sizes), static_cast<std::int64_t>(offsets.size()));
  }
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(strided_bytes({most}, {1}, kUInt8, 0), static_cast<std::size_t>(most));
  EXPECT_THROW(strided_bytes({most}, {1}, kUInt8, 1), Error);
  EXPECT_THROW(strided_bytes({most}, {1}, kInt16, 0), Error);
  EXPECT_THROW(strided_bytes({3, 3}, {most, 1}, kUInt8, 0), Error);
  EXPECT_THROW(strided_bytes({2}, {-1}, kUInt8, 0), Error);
  EXPECT_THROW(strided_bytes({2}, {1, 1}, kUInt8, 0), Error);
  EXPECT_THROW(element_count({most, 2}), Error);
  EXPECT_THROW(element_count({-1}), Error);
  EXPECT_EQ(element_count({most}), most);
  EXPECT_EQ(size_product(3, 4, {}), 12);
  EXPECT_THROW(size_product(most, 2, {}), Error);
  EXPECT_NO_THROW(check_sizes({0, 1}));
  EXPECT_THROW(check_sizes({1, -1}), Error);
}

TEST(Layouts, AreToldApartByTheOffsetsOfTheirElements) {
  Random random;
  const Tensor base = zeros({400});
  int dense = 0, overlapping = 0;
  for (int i = 0; i < 1000; ++i) {
    const Dims sizes = random.sizes(3, 0, 4);
    Dims strides = contiguous_strides(sizes);
    for (std::int64_t& stride : strides)
      if (random.number(0, 3) == 0) stride = random.number(0, 12);
    if (sizes.rank() > 1 && random.number(0, 2) == 0) std::swap(strides[0], strides[1]);
    const Tensor x = base.as_strided(sizes, strides);
    std::vector<std::int64_t> offsets = offsets_of(sizes, strides);
    const std::string what = to_string(sizes) + " by " + to_string(strides);
    bool in_order = true;
    for (std::size_t k = 0; k < offsets.size(); ++k) in_order = in_order && offsets[k] == static_cast<std::int64_t>(k);
    EXPECT_EQ(x.is_contiguous(), in_order) << what;
    const std::set<std::int64_t> places(offsets.begin(), offsets.end());
    const bool shares = places.size() < offsets.size();
    const bool is_dense =
        !shares && (places.empty() || *places.rbegin() + 1 == static_cast<std::int64_t>(places.size()));
    EXPECT_EQ(x.impl().is_non_overlapping_and_dense(), is_dense) << what;
    EXPECT_TRUE(!shares || x.impl().may_overlap_itself()) << what;
    EXPECT_TRUE(!is_dense || !x.impl().may_overlap_itself()) << what;
    dense += is_dense;
    overlapping += shares;
  }
  EXPECT_GT(dense, 100);
  EXPECT_GT(overlapping, 20);
  EXPECT_FALSE(base.as_strided({3, 4}, {10, 2}).impl().may_overlap_itself()) << "gaps alone do not overlap";
}

// --- generators -----------------------------------------------------------------------------------------------------

TEST(Generators, ReserveWhatIsDrawnAndShareTheirStateWithCopies) {
  Generator one(7);
  EXPECT_EQ(one.current_seed(), 7u);
  EXPECT_EQ(one.reserve(12).offset, 0u);
  EXPECT_EQ(one.reserve(4).offset, 12u);
  const Generator copy = one;
  EXPECT_EQ(copy.state().offset, 16u);
  one.set_current_seed(9);
  EXPECT_EQ(copy.state().seed, 9u);
  EXPECT_EQ(copy.state().offset, 0u);
  EXPECT_EQ(Generator().current_seed(), 67280421310721u);
  const std::uint64_t fresh = one.seed();
  EXPECT_EQ(one.current_seed(), fresh);
  EXPECT_NE(one.seed(), fresh);
}

TEST(Generators, GoOnFromTheStatesThatWereKept) {
  manual_seed(11);
  rand({3});
  const RandomStates states = random_states();
  const Tensor next = rand({5});
  rand({7});
  set_random_states(states);
  EXPECT_TRUE(rand({5}).equal(next));
}

// --- storages -------------------------------------------------------------------------------------------------------

TEST(Storages, KeepTheirBytesWhenTheyGrowAndTheFirstOnesWhenTheyShrink) {
  Tensor x = tensor({1., 2., 3.});
  x.resize_({5});
  EXPECT_TRUE(x.narrow(0, 0, 3).equal(tensor({1., 2., 3.})));
  StorageImpl& storage = x.impl().storage();
  storage.resize(2 * x.itemsize());
  EXPECT_EQ(storage.nbytes(), 2 * x.itemsize());
  EXPECT_TRUE(x.as_strided({2}, {1}).equal(tensor({1., 2.})));
  storage.resize(0);
  EXPECT_EQ(storage.nbytes(), 0u);
  std::vector<float> own{1, 2};
  const Tensor foreign = from_blob(own.data(), {2}, TensorOptions(kFloat32));
  EXPECT_THAT(message_of([&] { foreign.impl().storage().resize(64); }), HasSubstr("not resizable"));
}

}  // namespace
}  // namespace tenon::test
