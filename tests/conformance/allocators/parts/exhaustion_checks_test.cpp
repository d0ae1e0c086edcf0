// The checks of a device that has no more: what may be thrown, what is looked at, and that the cache goes back first.
#include "conformance/allocators/parts/keeper.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <gmock/gmock.h>

#include <optional>
#include <string>

namespace tenon::conformance {
namespace {

using test::failed;
using test::Habits;
using testing::ContainsRegex;
using testing::StartsWith;

TEST(ExhaustionChecks, AHugeRequestIsNeitherGrantedNorAnsweredWithANullAddress) {
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 511, SIZE_MAX / 2, std::size_t{1} << 60}) {
    const auto answers = [bytes](bool is_null) {
      return Habits{.answers = [=](MemorySource& source, const Request& request) -> std::optional<Block> {
        if (request.bytes != bytes) return std::nullopt;
        return Block{.data = is_null ? nullptr : source.acquire(512), .bytes = bytes, .request = request};
      }};
    };
    EXPECT_EQ(failed("refuses_huge_sizes", answers(false)),
              std::to_string(bytes) + " bytes were granted on a device of 1 GiB");
    EXPECT_EQ(
        failed("refuses_huge_sizes", answers(true)),
        "allocate(" + std::to_string(bytes) + ") gave a null address: where there is no memory it throws OutOfMemory");
  }
}

TEST(ExhaustionChecks, InvariantsAreAskedForAfterARefusal) {
  for (const char* check : {"refuses_huge_sizes", "survives_out_of_memory"}) {
    bool is_refused = false;
    const Habits habits{.asked = [&](const Request& request) { is_refused = is_refused || request.bytes > 1 * GiB; },
                        .refused = [&](const Request&) { is_refused = true; },
                        .invariants =
                            [&] {
                              if (is_refused) throw Error("a list is broken");
                            }};
    EXPECT_EQ(failed(check, habits), "an error where none may be: a list is broken") << check;
  }
}

TEST(ExhaustionChecks, WhatIsLeftOverAtTheirEndIsALeak) {
  for (const char* check : {"refuses_huge_sizes", "survives_out_of_memory", "counts", "reports_truly", "reuses_memory",
                            "serves_every_size", "aligns"})
    EXPECT_THAT(failed(check, {.leaks = true}, {.histories = 0}), StartsWith("after the allocator was destroyed: "))
        << check;
}

TEST(ExhaustionChecks, HalfOfAnEmptyDeviceIsThereForOneRequest) {
  EXPECT_THAT(failed("survives_out_of_memory", {.to_give = [](std::size_t, std::size_t) { return std::size_t{0}; }}),
              StartsWith("an error where none may be: "));
  const auto refuses_from = [](std::size_t bytes) {
    return Habits{.asked = [=](const Request& request) {
      if (request.bytes >= bytes) throw OutOfMemory({.requested_bytes = request.bytes});
    }};
  };
  EXPECT_THAT(failed("survives_out_of_memory", refuses_from(64 * MiB)), StartsWith("an error where none may be: "));
  EXPECT_EQ(failed("survives_out_of_memory", refuses_from(64 * MiB + 1)), "") << "nor for more";
}

/// Does not give back what it keeps before it refuses such a request.
Habits hasty_with(std::size_t bytes) {
  return {.refused = [=](const Request& request) {
    if (request.bytes == bytes) throw OutOfMemory({.requested_bytes = bytes});
  }};
}

// In service the host gives the cache back, and serves the request.
TEST(ExhaustionChecks, BlocksOfEverySizeGoBackBeforeARequestFails) {
  EXPECT_THAT(failed("retries_before_out_of_memory", hasty_with(70 * MiB)),
              ContainsRegex("^on a device of 1 GiB: 34 x 30.0 MiB on stream 1, all freed, then 0 x 70.0 MiB on "
                            "stream 2 and OutOfMemory, with 1020.0 MiB reserved; a fresh allocator serves 14 of them: "
                            "release what is cached and try once more before you throw$"));
  EXPECT_THAT(failed("retries_before_out_of_memory", hasty_with(3 * MiB)),
              ContainsRegex("1747 x 600.0 KiB on stream 1, all freed, then 0 x 3.00 MiB on stream 2 and OutOfMemory, "
                            "with .* reserved; a fresh allocator serves 341 of them"));
}

TEST(ExhaustionChecks, AMiddlingCacheOfSmallBlocksGoesBackForALargeOne) {
  bool was_small = false;
  const Habits keeps_small{.asked =
                               [&](const Request& request) {
                                 if (request.stream == StreamRef{1}) was_small = request.bytes == 1 * MiB;
                               },
                           .refused =
                               [&](const Request& request) {
                                 if (was_small && request.stream == StreamRef{2})
                                   throw OutOfMemory({.requested_bytes = request.bytes});
                               }};
  EXPECT_THAT(failed("retries_before_out_of_memory", keeps_small),
              ContainsRegex("1024 x 1.00 MiB on stream 1, all freed, then 0 x 200.0 MiB on stream 2"));
}

}  // namespace
}  // namespace tenon::conformance
