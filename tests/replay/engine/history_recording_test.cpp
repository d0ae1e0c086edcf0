// What a history is planned by.
#include "replay/support.h"

#include <tenon/kernel/kernel.h>
#include <tenon/memory/allocator.h>
#include <tenon/replay/planning/history_recording.h>

#include <gtest/gtest.h>

namespace tenon::replay {
namespace {

TEST(HistoryRecording, WorkspaceIsAlignedAsKernelsAskForIt) {
  const std::vector<packing::RecordedRequest> recording =
      recording_of(read_one("#p workspace\na 0 128 0\n#p activation\na 1 128 0\nf 0\n#p workspace\na 2 1 0\nf 2\nf 1\n",
                            {.with_columns = true}));
  ASSERT_EQ(recording.size(), 3u);
  EXPECT_EQ(recording[0].alignment, kScratchAlignment);
  EXPECT_EQ(recording[1].alignment, kDefaultAlignment);
  EXPECT_EQ(recording[2].alignment, kScratchAlignment);
}

TEST(HistoryRecording, WithoutPurposesAllIsAlignedAlike) {
  for (const packing::RecordedRequest& request : recording_of(read_one("a 0 128 0\na 1 7 0\nf 0\nf 1\n")))
    EXPECT_EQ(request.alignment, kDefaultAlignment);
}

}  // namespace
}  // namespace tenon::replay
