// What an out-of-memory error says and leaves out, and how a bug of our own ends the program.
#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <gmock/gmock.h>

namespace tenon::test {
namespace {

TEST(OutOfMemoryText, LeavesOutWhatIsNotKnown) {
  EXPECT_STREQ(OutOfMemory({.requested_bytes = 2048}).what(),
               "OutOfMemory: the allocator on the device needs 2.00 KiB (2048 bytes); 0 B allocated, 0 B reserved");
}

TEST(OutOfMemoryText, SaysEachFigureThatIsKnownInItsPlace) {
  const OutOfMemory error({.allocator = "caching",
                           .device = "cuda:0",
                           .requested_bytes = 3 * GiB,
                           .allocated_bytes = 4 * GiB,
                           .reserved_bytes = 5 * GiB,
                           .device_free_bytes = 1 * GiB,
                           .capacity_bytes = 6 * GiB,
                           .limit_bytes = 7 * GiB,
                           .largest_free_bytes = 2 * GiB,
                           .hint = "'expandable' would have served it"});
  EXPECT_STREQ(error.what(),
               "OutOfMemory: caching on cuda:0 needs 3.00 GiB (3221225472 bytes); 4.00 GiB allocated, 5.00 GiB "
               "reserved; the device has 1.00 GiB free of 6.00 GiB; limit 7.00 GiB; largest cached block 2.00 GiB; "
               "'expandable' would have served it");
}

using InternalErrorDeathTest = testing::Test;

TEST(InternalErrorDeathTest, EndsTheProgramWithWhatWasExpectedAndWhere) {
  EXPECT_EXIT(TENON_ASSERT(1 + 1 == 3, "sums are sums"), testing::KilledBySignal(SIGABRT),
              "tenon: internal error: sums are sums \\(1 \\+ 1 == 3\\) at .*error_test.cpp:");
}

}  // namespace
}  // namespace tenon::test
