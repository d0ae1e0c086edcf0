// The device of a replay beside plain models: which marks are reached, from which capacity on it would have answered
// the same, and where recorded segments lie.
#include <tenon/replay/engine/recorded_addresses.h>
#include <tenon/replay/engine/replay_source.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace tenon::replay {
namespace {

TEST(ReplaySources, AnswerTheSameFromTheSmallestCapacityWhoseAddressRangesSuffice) {
  for (const std::size_t page : {1U, 2U, 7U, 16U, 100U}) {
    std::uint64_t largest = 0;
    ReplaySource all(1 << 20);
    for (std::size_t range = 1; range < 300; range += 1 + page / 3) {
      ReplaySource one(1 << 20);
      one.relied_on(page, range);
      std::uint64_t capacity = 0;
      while ((capacity + capacity / 8 + page - 1) / page * page < range) ++capacity;
      EXPECT_EQ(one.same_from_bytes(), capacity) << page << ", " << range;
      all.relied_on(page, range);
      largest = std::max(largest, capacity);
      all.relied_on(page, 1);
      EXPECT_EQ(all.same_from_bytes(), largest);
    }
  }
}

TEST(ReplaySources, AnswerTheSameFromTheMostThatWasInUse) {
  ReplaySource source(1 << 30);
  EXPECT_EQ(source.same_from_bytes(), 0U);
  void* const first = source.acquire(1024);
  void* const second = source.acquire(2048);
  EXPECT_EQ(source.same_from_bytes(), 3072U);
  EXPECT_EQ(source.used_bytes(), 3072U);
  source.release(first, 1024);
  EXPECT_EQ(source.same_from_bytes(), 3072U);
  source.release(second, 2048);
  EXPECT_EQ(source.used_bytes(), 0U);
  const std::size_t page = source.traits().page_bytes;
  void* const range = source.reserve(4 * page);
  const Physical pages = source.create(page);
  EXPECT_EQ(source.same_from_bytes(), 3072U) << "pages of an attempt that may run out half-way";
  source.map(range, page, pages, 0);
  EXPECT_EQ(source.same_from_bytes(), std::max<std::uint64_t>(3072, page));
  source.unmap(range, page);
  source.destroy(pages, page);
  source.unreserve(range, 4 * page);
  EXPECT_EQ(source.used_bytes(), 0U);
  EXPECT_EQ(ReplaySource(2048).acquire(4096), nullptr);
}

TEST(ReplaySources, TakeAStreamForOneOfTheRecordingWhateverItsNumber) {
  for (const std::uint64_t id : {std::uint64_t{7}, std::uint64_t{0x7fff12345678}, ~std::uint64_t{0}}) {
    ReplaySource source(0);
    const Ticket ticket = source.mark({id});
    EXPECT_TRUE(source.reached(ticket)) << id << ": it has done all its work";
    EXPECT_TRUE(source.is_known_reached({id}, ticket.value)) << id;
  }
}

TEST(ReplaySources, ReachMarksOfAWaitingBlockOnceItIsCompleteOrAllIsWaitedFor) {
  struct Marked {
    Ticket ticket;
    std::uint32_t slot;
    bool is_reached;
  };
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    ReplaySource source(0);
    int told = 0, expected = 0;
    source.when_waited([&] { ++told; });
    std::vector<Marked> marks;
    std::vector<std::pair<std::uint64_t, Ticket>> moments;  ///< of streams: a ticket of theirs
    std::map<std::uint64_t, std::uint64_t> known;           ///< by stream
    std::uint64_t known_everywhere = 0, last = 0;
    const auto complete = [&](std::uint32_t slot, bool all) {
      for (Marked& mark : marks) mark.is_reached |= all || mark.slot == slot;
    };
    for (int step = 0; step < 120; ++step) {
      const auto slot = static_cast<std::uint32_t>(random() % 5);
      switch (random() % 7) {
        case 0:
        case 1:
          marks.push_back({source.mark(ReplaySource::waiting_stream(slot)), slot, false});
          EXPECT_GT(marks.back().ticket.value, std::exchange(last, marks.back().ticket.value));
          break;
        case 2:
          source.complete(slot);
          complete(slot, false);
          break;
        case 3:
          if (random() % 5 != 0) break;
          source.synchronize();
          complete(0, true);
          known_everywhere = last;
          ++expected;
          break;
        case 4: {
          if (marks.empty()) break;
          const Marked mark = marks[random() % marks.size()];
          source.wait(mark.ticket);
          if (!mark.is_reached) complete(mark.slot, false), ++expected;
          break;
        }
        case 5:
          moments.emplace_back(slot, source.mark({slot}));
          EXPECT_GT(moments.back().second.value, std::exchange(last, moments.back().second.value));
          break;
        default:
          const std::uint64_t moment = source.next_moment();
          EXPECT_GT(moment, std::exchange(last, moment));
      }
      for (const Marked& mark : marks) ASSERT_EQ(source.reached(mark.ticket), mark.is_reached) << seed << ", " << step;
      for (std::uint32_t of = 0; of < 6; ++of) {
        const bool waits =
            std::ranges::any_of(marks, [&](const Marked& mark) { return mark.slot == of && !mark.is_reached; });
        ASSERT_EQ(source.is_complete(of), !waits);
      }
      if (!moments.empty() && random() % 3 == 0) {
        const auto& [stream, ticket] = moments[random() % moments.size()];
        EXPECT_TRUE(source.reached(ticket)) << "streams are never behind";
        known[stream] = std::max(known[stream], ticket.value);
      }
      for (std::uint64_t stream = 0; stream < 6; ++stream)
        for (const std::uint64_t moment : {std::uint64_t{1}, last / 2, last, last + 1}) {
          if (moment == 0) continue;
          const bool expected_known = known_everywhere >= moment || (known.contains(stream) && known[stream] >= moment);
          ASSERT_EQ(source.is_known_reached({stream}, moment), expected_known);
        }
    }
    EXPECT_EQ(told, expected);
  }
}

void* at_address(std::uint64_t address) { return reinterpret_cast<void*>(address); }

TEST(RecordedSegments, AreGivenInTheirOrderBySizeAndKnowWhatTheyStandFor) {
  const std::vector<RecordedSegment> segments = {
      {.bytes = 1024, .address = 0x1000}, {.bytes = 512, .address = 0x9000}, {.bytes = 1024, .address = 0x5000}};
  RecordedAddresses addresses(segments);
  EXPECT_EQ(addresses.place(at_address(7), 2048), at_address(7)) << "none of that size";
  EXPECT_EQ(addresses.place(at_address(1), 1024), at_address(0x1000));
  EXPECT_EQ(addresses.place(at_address(2), 1024), at_address(0x5000));
  EXPECT_EQ(addresses.place(at_address(3), 1024), at_address(3)) << "no more of them";
  EXPECT_EQ(addresses.place(at_address(4), 512), at_address(0x9000));
  EXPECT_EQ(addresses.give_back(at_address(0x5000)), at_address(2));
  EXPECT_EQ(addresses.give_back(at_address(0x5000)), at_address(0x5000)) << "once";
  EXPECT_EQ(addresses.give_back(at_address(3)), at_address(3));
  EXPECT_EQ(addresses.give_back(at_address(0x1000)), at_address(1));
}

TEST(RecordedSegments, ThatShareAByteWithWhatIsInUseOrCannotBeAreLeftOut) {
  const std::uint64_t end = std::uint64_t{1} << 52;
  const auto is_used = [](std::uint64_t address, std::uint64_t bytes) {
    const std::vector<RecordedSegment> one = {{.bytes = bytes, .address = address}};
    return RecordedAddresses(one).place(at_address(8), bytes) != at_address(8);
  };
  EXPECT_TRUE(is_used(512, 512));
  EXPECT_FALSE(is_used(0, 512));
  for (const std::uint64_t off : {1U, 8U, 256U, 511U}) EXPECT_FALSE(is_used(1024 + off, 512)) << off;
  EXPECT_FALSE(is_used(512, 0));
  EXPECT_TRUE(is_used(end - 512, 512));
  EXPECT_FALSE(is_used(end - 512, 513)) << "beyond the end";
  EXPECT_FALSE(is_used(end, 512));
  const std::vector<RecordedSegment> segments = {
      {.bytes = 1024, .address = 0x1000}, {.bytes = 2048, .address = 0x1200}, {.bytes = 512, .address = 0x1400}};
  RecordedAddresses addresses(segments);
  EXPECT_EQ(addresses.place(at_address(1), 1024), at_address(0x1000));
  EXPECT_EQ(addresses.place(at_address(2), 2048), at_address(2)) << "half of the first lies in it";
  EXPECT_EQ(addresses.place(at_address(3), 512), at_address(0x1400)) << "just behind the first";
}

}  // namespace
}  // namespace tenon::replay
