// What ranks tell each other beside NCCL.
#include "meeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace tenon::nccl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Rank 0 names who has not come: of more ranks than it is told of, all others would be among them.
TEST(NcclMeeting, AMessageSaysWhichOfAThousandRanksAGroupHas) {
  Message few;
  few.set_group({1023, 0, 7, 8, 64}, 1024);
  EXPECT_THAT(few.group_ranks(), ElementsAre(0, 7, 8, 64, 1023));
  std::vector<int> half(512);
  std::iota(half.begin(), half.end(), 300);
  Message many;
  many.set_group(half, 1024);
  EXPECT_EQ(many.group_ranks(), half);
  EXPECT_THAT(Message().group_ranks(), IsEmpty());
}

TEST(NcclMeeting, OfARunWithMoreRanksThanAMessageHasPlaceForNoneAreSaid) {
  Message message;
  message.set_group({2, 1024}, 1025);
  EXPECT_THAT(message.group_ranks(), IsEmpty());
}

}  // namespace
}  // namespace tenon::nccl
