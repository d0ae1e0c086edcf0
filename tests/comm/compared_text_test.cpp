// What ranks say of a text that should be the same on all of them.
#include <tenon/comm/compared_text.h>
#include "recording_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace tenon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Where the ranks of this process leave what they bring along.
struct Table {
  explicit Table(int ranks) : bytes(static_cast<std::size_t>(ranks)), all(ranks) {}
  std::vector<std::string> bytes;
  std::barrier<> all;
  std::atomic<int> gathers = 0, broadcasts = 0;
};

/// A rank that is a thread.
class ThreadRank final : public Communicator {
 public:
  ThreadRank(int rank, Table& table) : rank_(rank), table_(table) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(table_.bytes.size()); }
  void monitored_barrier(std::chrono::milliseconds) override {}
  void abort(std::string_view, ExitCode) noexcept override {}

 protected:
  std::shared_ptr<Work> start(const CommRequest& request) override {
    const std::size_t bytes = request.count * size_of(request.dtype);
    table_.bytes[static_cast<std::size_t>(rank_)].assign(static_cast<const char*>(request.input), bytes);
    table_.all.arrive_and_wait();
    if (request.kind == CommKind::kAllGather) {
      if (rank_ == 0) ++table_.gathers;
      auto* to = static_cast<char*>(request.output);
      for (const std::string& share : table_.bytes)
        to = static_cast<char*>(std::memcpy(to, share.data(), bytes)) + bytes;
    } else {
      EXPECT_EQ(request.kind, CommKind::kBroadcast);
      if (rank_ == 0) ++table_.broadcasts;
      const std::string& root = table_.bytes[static_cast<std::size_t>(request.peer)];
      EXPECT_EQ(root.size(), bytes) << "every rank knows how long the text is";
      std::memcpy(request.output, root.data(), std::min(root.size(), bytes));
    }
    table_.all.arrive_and_wait();
    return std::make_shared<test::DoneWork>();
  }

 private:
  const int rank_;
  Table& table_;
};

struct Compared {
  std::vector<std::vector<std::string>> found;  ///< by rank
  int gathers = 0, broadcasts = 0;
};

Compared compared(const std::vector<std::string>& texts) {
  Table table(static_cast<int>(texts.size()));
  Compared result{.found = std::vector<std::vector<std::string>>(texts.size())};
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < texts.size(); ++rank)
      threads.emplace_back([&, rank] {
        ThreadRank own(static_cast<int>(rank), table);
        result.found[rank] = differing_texts(own, texts[rank]);
      });
  }
  result.gathers = table.gathers;
  result.broadcasts = table.broadcasts;
  return result;
}

TEST(ComparedText, EveryRankKnowsWhatTheOthersHaveWhereOneDiffers) {
  for (const std::vector<std::string>& texts :
       {std::vector<std::string>{"one", "two"}, {"a", "a", "b"}, {"b", "a", "a"}, {"a", "b", "a", "c", "b"}})
    for (const auto& found : compared(texts).found) EXPECT_EQ(found, texts);
}

TEST(ComparedText, WhereAllHaveTheSameNothingIsSaidAndNoTextIsSent) {
  const Compared same = compared({"same", "same", "same"});
  for (const auto& found : same.found) EXPECT_THAT(found, IsEmpty());
  EXPECT_EQ(same.gathers, 1);
  EXPECT_EQ(same.broadcasts, 0);
  for (const auto& found : compared({"", ""}).found) EXPECT_THAT(found, IsEmpty());
}

TEST(ComparedText, EachTextIsSentOnceHoweverManyRanksHaveIt) {
  EXPECT_EQ(compared({"a", "b", "a", "b", "b"}).broadcasts, 2);
  EXPECT_EQ(compared({"a", "b", "c"}).broadcasts, 3);
}

TEST(ComparedText, ANothingIsATextThatNeedsNoSending) {
  const Compared some = compared({"", "words", ""});
  for (const auto& found : some.found) EXPECT_THAT(found, ElementsAre("", "words", ""));
  EXPECT_EQ(some.broadcasts, 1);
  for (const auto& found : compared({"words", ""}).found) EXPECT_THAT(found, ElementsAre("words", ""));
}

TEST(ComparedText, OfTheSameLengthOrWithTheSameBeginningAreTwoTexts) {
  for (const std::vector<std::string>& texts :
       {std::vector<std::string>{"ab", "ba"}, {"ab", "abc"}, {std::string("a\0", 2), "a"}, {"\xff", "\x7f"}})
    for (const auto& found : compared(texts).found) EXPECT_EQ(found, texts);
}

TEST(ComparedText, LongTextsArriveWhole) {
  const std::string is(100'000, 'x'), was = is + "y";
  for (const auto& found : compared({is, was}).found) EXPECT_THAT(found, ElementsAre(is, was));
}

TEST(ComparedText, ARankAloneAsksNobody) {
  test::RecordingCommunicator alone(1);
  EXPECT_THAT(differing_texts(alone, "words"), IsEmpty());
  EXPECT_TRUE(alone.requests.empty());
}

TEST(ComparedText, RanksThatAreOnlyPlannedAgree) {
  test::RecordingCommunicator planned(4);
  EXPECT_THAT(differing_texts(planned, "words"), IsEmpty());
  EXPECT_EQ(planned.requests.size(), 1U);
}

}  // namespace
}  // namespace tenon
