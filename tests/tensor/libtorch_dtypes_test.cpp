// Questions about a dtype, and loops in parts: libtorch's support for operators of the user's own.
#include "../support/expect_error.h"

#include <tenon/ops/ops.h>
#include <tenon/tensor/libtorch/libtorch_dtypes.h>
#include <tenon/tensor/libtorch/parallel_for.h>
#include <tenon/tensor/libtorch/threads_and_devices.h>

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

namespace tenon {
namespace {

using test::expect_error;

TEST(LibtorchDtypes, AnswersWhatADtypeIs) {
  EXPECT_EQ(elementSize(kHalf), 2u);
  EXPECT_TRUE(isIntegralType(kLong));
  EXPECT_FALSE(isIntegralType(kBool));
  EXPECT_TRUE(isIntegralType(kBool, true));
  EXPECT_TRUE(isFloatingType(kBFloat16));
  EXPECT_TRUE(isReducedFloatingType(kHalf));
  EXPECT_EQ(promoteTypes(kInt, kHalf), kHalf);
  EXPECT_EQ(promoteTypes(kByte, kChar), kShort);
  EXPECT_FALSE(canCast(kFloat, kLong));
  EXPECT_EQ(CppTypeToScalarType<double>::value, kDouble);
  static_assert(std::is_same_v<impl::ScalarTypeToCPPTypeT<kInt>, std::int32_t>);
}

TEST(ParallelFor, CoversTheRangeOnceWhateverTheGrain) {
  for (const std::int64_t grain : {0, 1, 7, 1000}) {
    std::vector<std::atomic<int>> seen(100);
    parallel_for(3, 100, grain, [&](std::int64_t from, std::int64_t to) {
      EXPECT_LT(from, to);
      EXPECT_TRUE(to - from >= grain || to == 100 || from == 3);
      for (std::int64_t i = from; i < to; ++i) ++seen[static_cast<std::size_t>(i)];
    });
    for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], i >= 3 ? 1 : 0) << "element " << i;
  }
  parallel_for(5, 5, 1, [](std::int64_t, std::int64_t) { FAIL() << "there is nothing to do"; });
  EXPECT_FALSE(in_parallel_region());
  const auto sum = parallel_reduce(
      0, 1000, 10, std::int64_t{0},
      [](std::int64_t from, std::int64_t to, std::int64_t start) {
        for (std::int64_t i = from; i < to; ++i) start += i;
        return start;
      },
      std::plus<>());
  EXPECT_EQ(sum, 499500);
}

TEST(ParallelFor, RethrowsWhatAPartThrew) {
  expect_error<std::runtime_error>(
      [] {
        parallel_for(0, 100, 1, [](std::int64_t, std::int64_t to) {
          if (to == 100) throw std::runtime_error("the last part");
        });
      },
      "the last part");
  expect_error([] { parallel_for(0, 1, -1, [](std::int64_t, std::int64_t) {}); },
               "the grain must not be negative, got -1");
}

}  // namespace
}  // namespace tenon
