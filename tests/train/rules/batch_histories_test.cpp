// Which batches are recorded so that all of a range are known.
#include <tenon/train/estimate/batch_histories.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tenon::train {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Batches = std::vector<std::int64_t>;

Asked request_for(std::uint32_t block, std::int64_t bytes) {
  Asked call{.kind = Asked::Kind::kAllocate, .block = block, .request = {}, .stream = {}};
  call.request.bytes = static_cast<std::size_t>(bytes);
  return call;
}

/// Of a batch in three parts, as even as can be.
Calls in_three_parts(std::int64_t batch) {
  return {request_for(0, 16 * ((batch + 2) / 3)), request_for(1, 16 * ((batch + 1) / 3)),
          request_for(2, 16 * (batch / 3)), request_for(3, 5)};
}

TEST(BatchHistories, RecordTwoThatAreFourPeriodsApartWhereThereAreSoMany) {
  const auto recorded = [](std::int64_t first, std::int64_t last, std::int64_t period) {
    Batches batches;
    const BatchHistories histories(first, last, period, [&](std::int64_t batch) {
      batches.push_back(batch);
      return in_three_parts(batch);
    });
    EXPECT_EQ(histories.are_known(), !batches.empty());
    std::ranges::sort(batches);
    return batches;
  };
  EXPECT_THAT(recorded(4, 40, 3), ElementsAre(4, 16));
  EXPECT_THAT(recorded(4, 16, 3), ElementsAre(4, 16));
  EXPECT_THAT(recorded(4, 15, 3), ElementsAre(4, 13));
  EXPECT_THAT(recorded(4, 7, 3), ElementsAre(4, 7));
  EXPECT_THAT(recorded(4, 6, 3), IsEmpty()) << "there is no second one";
}

TEST(BatchHistories, KnowEveryBatchOfTheirRangeByARecordingForEachRemainder) {
  Batches batches;
  BatchHistories histories(4, 40, 3, [&](std::int64_t batch) {
    batches.push_back(batch);
    return in_three_parts(batch);
  });
  for (std::int64_t batch = 40; batch >= 4; --batch) {
    const BatchHistory* const history = histories.of(batch);
    ASSERT_NE(history, nullptr) << batch;
    EXPECT_TRUE(history->agrees_with(batch, in_three_parts(batch))) << batch;
    EXPECT_EQ(history->told_below(batch), batch);
  }
  std::ranges::sort(batches);
  EXPECT_THAT(batches, ElementsAre(4, 5, 6, 16));
  EXPECT_TRUE(histories.any().agrees_with(7, in_three_parts(7)));
}

TEST(BatchHistories, OfARemainderWithCallsOfItsOwnRecordTwo) {
  // One more call where a batch leaves 2.
  const auto calls = [](std::int64_t batch) {
    Calls all = in_three_parts(batch);
    if (batch % 3 == 2) all.push_back(request_for(4, batch));
    return all;
  };
  Batches batches;
  BatchHistories histories(4, 40, 3, [&](std::int64_t batch) {
    batches.push_back(batch);
    return calls(batch);
  });
  for (std::int64_t batch = 4; batch <= 40; ++batch) {
    const BatchHistory* const history = histories.of(batch);
    ASSERT_NE(history, nullptr) << batch;
    EXPECT_TRUE(history->agrees_with(batch, calls(batch))) << batch;
  }
  std::ranges::sort(batches);
  EXPECT_THAT(batches, ElementsAre(4, 5, 6, 8, 16));
}

TEST(BatchHistories, SayNothingOfARemainderThatIsRecordedOnceAlone) {
  const auto calls = [](std::int64_t batch) {
    Calls all = in_three_parts(batch);
    if (batch % 3 == 2) all.push_back(request_for(4, batch));
    return all;
  };
  BatchHistories enough(4, 8, 3, calls), too_few(4, 7, 3, calls);
  EXPECT_NE(enough.of(5), nullptr) << "5 and 8";
  EXPECT_EQ(too_few.of(5), nullptr);
  EXPECT_EQ(too_few.of(5), nullptr) << "asked again";
  EXPECT_NE(too_few.of(6), nullptr);
}

TEST(BatchHistories, AreNotKnownWhereTheTwoAreNotSizesOfOneThing) {
  const BatchHistories others(4, 40, 3, [](std::int64_t batch) {
    Calls all = in_three_parts(batch);
    if (batch > 10) all.pop_back();
    return all;
  });
  EXPECT_FALSE(others.are_known());
}

}  // namespace
}  // namespace tenon::train
