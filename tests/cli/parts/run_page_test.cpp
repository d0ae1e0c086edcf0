// The peaks that a run keeps where a crash leaves them.
#include <tenon/cli/watch/run_page.h>

#include <gtest/gtest.h>

#include <memory>

namespace tenon::cli {
namespace {

TEST(RunPage, KeepsTheHighestPeakOfEachPurposeAndElementAndGivesThemBack) {
  using Peaks = KeptFigures;
  auto kept = std::make_unique<Peaks>();
  MemoryStats first, second, found;
  for (std::size_t i = 0; i < kPurposeCount; ++i) {
    const auto at = static_cast<std::int64_t>(100 * i);
    first.requested_by_purpose[i].peak = at + 2;
    second.requested_by_purpose[i].peak = at + (i % 2 == 0 ? 1 : 3);
    for (std::size_t kind = 0; kind < kElementKindCount; ++kind) {
      first.requested_by_element[i][kind].peak = at + static_cast<std::int64_t>(10 * kind) + 2;
      second.requested_by_element[i][kind].peak = at + static_cast<std::int64_t>(10 * kind) + (kind % 2 == 0 ? 1 : 3);
    }
  }
  kept->raise_purposes(first);
  kept->raise_purposes(second);
  kept->put_purposes(found);
  for (std::size_t i = 0; i < kPurposeCount; ++i) {
    const auto at = static_cast<std::int64_t>(100 * i);
    EXPECT_EQ(found.requested_by_purpose[i].peak, at + (i % 2 == 0 ? 2 : 3)) << i;
    for (std::size_t kind = 0; kind < kElementKindCount; ++kind)
      EXPECT_EQ(found.requested_by_element[i][kind].peak,
                at + static_cast<std::int64_t>(10 * kind) + (kind % 2 == 0 ? 2 : 3))
          << i << " " << kind;
  }
}

}  // namespace
}  // namespace tenon::cli
