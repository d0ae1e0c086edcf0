// The follower of `planned`: which block of a plan a request is, near its place and far from it.
#include <planned/follower.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace tenon::planned {
namespace {

packing::Plan plan_of_sizes(const std::vector<std::uint64_t>& sizes) {
  packing::Plan plan;
  for (const std::uint64_t bytes : sizes) plan.blocks.push_back({.bytes = bytes, .size = bytes});
  return plan;
}

std::optional<std::size_t> ask(Follower& follower, std::uint64_t bytes) { return follower.follow({.bytes = bytes}); }

/// Blocks of 100, 101, … bytes.
std::vector<std::uint64_t> rising(std::size_t count) {
  std::vector<std::uint64_t> sizes;
  for (std::size_t i = 0; i < count; ++i) sizes.push_back(100 + i);
  return sizes;
}

TEST(Follower, OfSeveralBlocksNearByTheNearestIsTheRequest) {
  Follower follower(plan_of_sizes({1, 2, 7, 3, 4, 7, 5}), 8);
  for (const std::uint64_t bytes : {1, 2, 3}) ASSERT_TRUE(ask(follower, bytes));  // now before the fourth
  EXPECT_EQ(ask(follower, 7), 5U) << "one ahead; the other is two behind";
  EXPECT_EQ(ask(follower, 7), 2U) << "the one that is left";
  EXPECT_EQ(ask(follower, 7), std::nullopt) << "all have been served";
}

TEST(Follower, OfTwoBlocksThatAreAsNearTheEarlierIsTheRequest) {
  Follower follower(plan_of_sizes({1, 2, 7, 3, 4, 9, 7}), 8);
  for (const std::uint64_t bytes : {1, 2, 3}) ASSERT_TRUE(ask(follower, bytes));
  EXPECT_EQ(ask(follower, 7), 2U);
}

TEST(Follower, NothingBeyondTheWindowIsNearBy) {
  Follower follower(plan_of_sizes(rising(10)), 3);
  EXPECT_EQ(ask(follower, 104), std::nullopt);
  EXPECT_EQ(ask(follower, 103), 3U);
  EXPECT_EQ(ask(follower, 100), std::nullopt) << "four behind";
  EXPECT_EQ(ask(follower, 101), 1U);
}

TEST(Follower, BehindSixRequestsInARowItKnowsItsPlaceAgain) {
  Follower follower(plan_of_sizes(rising(40)), 3);
  for (std::uint64_t bytes = 120; bytes < 125; ++bytes) EXPECT_EQ(ask(follower, bytes), std::nullopt) << bytes;
  EXPECT_EQ(ask(follower, 125), 25U);
  EXPECT_EQ(ask(follower, 126), 26U);
}

// ---- against plain loops over the whole plan

/// Looks at every block of the plan for every request.
class PlainFollower {
 public:
  PlainFollower(packing::Plan plan, std::size_t window) : plan_(std::move(plan)), window_(window) {
    names_purposes_ = std::ranges::all_of(plan_.blocks, [](const auto& block) { return block.purpose.has_value(); });
    divide();
  }

  std::optional<std::size_t> follow(const Request& request) {
    if (requests_++ == 0 && names_purposes_ && request.purpose == Purpose::kOther &&
        plan_.blocks.front().purpose != Purpose::kOther)
      names_purposes_ = false;
    const Key key{request.bytes, names_purposes_ ? request.purpose : Purpose::kOther};
    Stream* const stream = stream_of(request.stream.id, key);
    if (stream == nullptr) return std::nullopt;
    stream->asked.push_back(key);
    const std::optional<std::size_t> index = find(*stream, key);
    if (!index) return std::nullopt;
    if (*index + window_ < stream->next) stream->served.clear();
    stream->served.insert(*index);
    stream->next = *index + 1;
    ++found_;
    return stream->blocks[*index];
  }
  std::size_t place() const {
    std::size_t first = plan_.blocks.size();
    for (const Stream& stream : streams_)
      if (stream.next < stream.blocks.size()) first = std::min(first, stream.blocks[stream.next]);
    return first;
  }
  std::uint64_t found() const { return found_; }
  bool is_foreign() const { return requests_ >= 64 && found_ < requests_ / 2; }

 private:
  using Key = std::pair<std::uint64_t, Purpose>;
  struct Stream {
    std::vector<std::size_t> blocks;
    std::set<std::size_t> served;
    std::size_t next = 0;
    std::vector<Key> asked;
    bool is_taken = false;
  };

  void divide() {
    std::map<std::uint32_t, Stream> by_number;
    for (std::size_t i = 0; i < plan_.blocks.size(); ++i) by_number[plan_.blocks[i].stream].blocks.push_back(i);
    for (auto& [number, stream] : by_number) streams_.push_back(std::move(stream));
  }
  Key key_of(const Stream& stream, std::size_t index) const {
    const packing::PlannedBlock& block = plan_.blocks[stream.blocks[index]];
    return {block.bytes, names_purposes_ ? *block.purpose : Purpose::kOther};
  }
  Stream* stream_of(std::uint64_t id, const Key& key) {
    if (const auto known = by_id_.find(id); known != by_id_.end()) return known->second;
    Stream* best = nullptr;
    for (Stream& stream : streams_) {
      if (stream.is_taken) continue;
      if (best == nullptr || (key_of(stream, 0) == key && key_of(*best, 0) != key)) best = &stream;
    }
    if (best != nullptr) best->is_taken = true;
    return by_id_[id] = best;
  }
  std::optional<std::size_t> find(const Stream& stream, const Key& key) const {
    const std::size_t count = stream.blocks.size();
    std::optional<std::size_t> nearest;
    const auto distance = [&](std::size_t i) { return i > stream.next ? i - stream.next : stream.next - i; };
    for (std::size_t i = 0; i < count; ++i)
      if (key_of(stream, i) == key && !stream.served.contains(i) && distance(i) <= window_ &&
          (!nearest || distance(i) < distance(*nearest)))
        nearest = i;
    if (nearest) return nearest;
    // Where the last six requests stand in a row: the next such place, else the last one before.
    std::optional<std::size_t> found;
    for (std::size_t end = 6; end <= count && stream.asked.size() >= 6; ++end) {
      bool is_here = true;
      for (std::size_t i = 0; i < 6; ++i)
        is_here = is_here && key_of(stream, end - 6 + i) == stream.asked[stream.asked.size() - 6 + i];
      if (!is_here || (found && *found >= stream.next)) continue;
      found = end - 1;
    }
    return found;
  }

  const packing::Plan plan_;
  const std::size_t window_;
  bool names_purposes_ = false;
  std::vector<Stream> streams_;
  std::map<std::uint64_t, Stream*> by_id_;
  std::uint64_t requests_ = 0, found_ = 0;
};

/// A plan of few sizes, so that many places look alike; and a run of it with jumps, gaps and requests of its own.
void follow_a_drawn_run(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto drawn = [&](std::uint64_t below) { return random() % below; };
  constexpr std::size_t kWindows[] = {0, 1, 3, 32};
  const std::size_t window = kWindows[seed % 4];
  const std::uint64_t streams = 1 + seed % 3, sizes = 2 + drawn(12);
  const bool has_purposes = seed % 5 < 3, forgets_one = seed % 10 == 3;
  packing::Plan plan;
  const std::size_t count = 1 + drawn(120);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bytes = 64 * (1 + drawn(sizes));
    plan.blocks.push_back({.bytes = bytes, .stream = static_cast<std::uint32_t>(drawn(streams)), .size = bytes});
    if (has_purposes && !(forgets_one && i == count / 2)) plan.blocks.back().purpose = static_cast<Purpose>(drawn(3));
  }
  Follower follower(plan, window);
  PlainFollower plain(plan, window);
  std::size_t at = 0;
  for (int step = 0; step < 250; ++step) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", step " << step);
    if (drawn(40) == 0) at = drawn(count);
    const packing::PlannedBlock& block = plan.blocks[at++ % count];
    if (drawn(12) == 0) continue;
    const bool is_own = drawn(15) == 0;
    const Request request{.bytes = is_own ? 64 * (1 + drawn(sizes + 1)) : block.bytes,
                          .stream = {10 * block.stream + drawn(40) / 39},
                          .purpose = seed % 7 == 0 ? Purpose::kOther : block.purpose.value_or(Purpose::kData)};
    ASSERT_EQ(follower.follow(request), plain.follow(request));
    ASSERT_EQ(follower.place(), plain.place());
    ASSERT_EQ(follower.found(), plain.found());
    ASSERT_EQ(follower.is_foreign(), plain.is_foreign());
    ASSERT_EQ(&follower.block(at % count), &follower.plan().blocks[at % count]);
  }
}

TEST(FollowerModel, FindsWhatALookAtTheWholePlanFinds) {
  for (std::uint64_t seed = 1; seed <= 120 && !testing::Test::HasFailure(); ++seed) follow_a_drawn_run(seed);
}

TEST(Follower, APlanIsForeignFromTheSixtyFourthRequestOnWhereFewerThanHalfAreInIt) {
  for (const std::uint64_t known : {0, 31, 32, 33}) {
    Follower follower(plan_of_sizes(rising(64)), 100);
    for (std::uint64_t i = 0; i < 64; ++i) {
      EXPECT_FALSE(follower.is_foreign()) << known << ", " << i;
      ask(follower, i < known ? 100 + i : 7);
    }
    EXPECT_EQ(follower.is_foreign(), known < 32) << known;
    EXPECT_EQ(follower.found(), known);
    EXPECT_EQ(follower.requests(), 64u);
  }
}

}  // namespace
}  // namespace tenon::planned
