// Sizes, strides and offsets that no memory can hold are refused before anything is read or written.
#include "../support/expect_error.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace tenon {
namespace {

using test::expect_error;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t k32 = std::int64_t{1} << 32;

TEST(Extent, FactoriesRefuseSizesThatOverflowTheStorage) {
  expect_error([] { zeros({k32, k32}); }, "Storage size calculation overflowed with sizes=[4294967296, 4294967296]");
  expect_error([] { zeros({k32 / 2, k32 / 2, 4}); }, "Storage size calculation overflowed");
  expect_error([] { ones({kMost}); }, "Storage size calculation overflowed with sizes=[9223372036854775807]");
  expect_error([] { empty({kMost, kMost}); }, "Storage size calculation overflowed");
  expect_error([] { full({k32, 0, k32}, 1); }, "Storage size calculation overflowed");
  expect_error([] { empty({k32, k32, 2, 2}, {}, MemoryFormat::ChannelsLast); }, "Storage size calculation overflowed");
  expect_error([] { eye(kMost); }, "overflow");
  expect_error([] { linspace(0, 1, kMost); }, "Storage size calculation overflowed");
  expect_error([] { randperm(kMost); }, "Storage size calculation overflowed");
}

TEST(Extent, SequencesRefuseCountsThatNoIntegerHolds) {
  expect_error([] { arange(0, 1e30); }, "invalid size, possible overflow?");
  expect_error([] { arange(-kMost, kMost, 1); }, "invalid size, possible overflow?");
  expect_error([] { range(0, 1e30, 1); }, "invalid size, possible overflow?");
  expect_error([] { range(0, 1, 0); }, "step must be nonzero");
  expect_error([] { range(0, 1, -1); }, "upper bound and lower bound inconsistent with step sign");
}

TEST(Extent, EmptyStridedChecksItsStrides) {
  expect_error([] { empty_strided({2}, {-1}); }, "Storage size calculation overflowed with sizes=[2] and strides=[-1]");
  expect_error(
      [] {
        empty_strided({2, 3}, {1});
      },
      "dimensionality of sizes (2) must match dimensionality of strides (1)");
  expect_error([] { empty_strided({-2}, {1}); }, "Trying to create tensor with negative dimension -2: [-2]");
  expect_error([] { empty_strided({2}, {kMost}); }, "Storage size calculation overflowed");
  EXPECT_EQ(empty_strided({2, 0}, {kMost, 1}).numel(), 0);
  std::vector<float> numbers(4);
  expect_error([&] { from_blob(numbers.data(), {2}, {-1}); }, "Storage size calculation overflowed");
  expect_error([&] { from_blob(numbers.data(), {2, 2}, {1}); }, "must match dimensionality of strides (1)");
}

TEST(Extent, AsStridedStaysInsideItsStorage) {
  const Tensor x = ones({2, 3, 4});
  expect_error(
      [&] {
        x.as_strided({2, 2}, {-1, 2});
      },
      "as_strided: Negative strides are not supported at the moment, got strides: [-1, 2]");
  expect_error([&] { x.as_strided({2}, {1}, -1); }, "Tensor: invalid storage offset -1");
  expect_error([&] { x.as_strided({4}, {1}, -1000000); }, "Tensor: invalid storage offset -1000000");
  expect_error([&] { x.as_strided({-2}, {1}); }, "Storage size calculation overflowed with sizes=[-2] and strides=[1]");
  expect_error([&] { x.as_strided({2}, {std::int64_t{1} << 62}); }, "Storage size calculation overflowed");
  expect_error([&] { x.as_strided({2}, {kMost}); }, "Storage size calculation overflowed");
  expect_error(
      [&] {
        x.as_strided({2, 2}, {20, 30});
      },
      "setStorage: sizes [2, 2], strides [20, 30], storage offset 0, and itemsize 4 requiring a storage size "
      "of 204 are out of bounds for storage of size 96");
  EXPECT_EQ(x.as_strided({2, 2}, {12, 1}).numel(), 4);
}

TEST(Extent, ViewsRefuseSizesThatNoIntegerHolds) {
  const Tensor x = ones({1, 3, 4});
  expect_error([&] { x.expand({-2, 3, 4}); }, "numel: integer multiplication overflow");
  expect_error([&] { x.expand({kMost, 3, 4}); }, "numel: integer multiplication overflow");
  expect_error([&] { ones({4}).expand({std::int64_t{1} << 62, 4}); }, "numel: integer multiplication overflow");
  expect_error([&] { arange(10).unfold(0, -5, 1); }, "overflow");
  expect_error([&] { x.view({k32, k32, 12}); }, "is invalid for input of size 12");
  expect_error([&] { zeros({0}).view({k32, k32}); }, "is invalid for input of size 0");
  // The number of elements is one that an integer holds, the bytes of a copy are not.
  expect_error([&] { ones({1}).expand({std::int64_t{1} << 62}).contiguous(); }, "Storage size calculation overflowed");
  EXPECT_EQ(arange(10).slice(0, 2, 9, kMost).numel(), 1);
}

TEST(Extent, RepeatingRefusesResultsThatOverflow) {
  const Tensor x = ones({3, 4});
  expect_error([&] { x.repeat({kMost, 1}); }, "Storage size calculation overflowed");
  expect_error([&] { x.repeat({k32, k32}); }, "Storage size calculation overflowed");
  expect_error([&] { x.repeat({-1, 1}); }, "Trying to create tensor with negative dimension -3: [-3, 4]");
  expect_error([&] { x.repeat_interleave(kMost, 0); }, "Storage size calculation overflowed");
  expect_error([&] { x.repeat_interleave(-1, 0); }, "repeats can not be negative");
}

TEST(Extent, ResizeRefusesSizesThatOverflowAndChangesNothing) {
  const Tensor x = ones({3});
  expect_error([&] { x.resize_({k32, k32}); }, "Storage size calculation overflowed");
  expect_error([&] { x.resize_({-1}); }, "Trying to create tensor with negative dimension -1");
  EXPECT_EQ(x.numel(), 3);
}

}  // namespace
}  // namespace tenon
