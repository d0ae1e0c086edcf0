// What a policy is disqualified for, word for word: where blocks lie, what lies behind mapped addresses, what goes back
// to the device, and which stream memory is handed to. Beside models of plain bytes.
#include "replay/support.h"

#include <tenon/replay/engine/placement_oracle.h>
#include <tenon/replay/engine/stream_oracle.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace tenon::replay {
namespace {

const void* place_at(std::uint64_t address) { return reinterpret_cast<const void*>(address); }

/// What the oracle says of it; empty: nothing.
std::string said(const std::function<void()>& does) {
  try {
    does();
  } catch (const PlacementError& error) {
    return error.what();
  }
  return {};
}
std::string said_of_place(PlacementOracle& oracle, std::uint32_t slot, std::uint64_t address, std::uint64_t bytes,
                          std::uint64_t alignment = 16) {
  return said([&] { oracle.place(slot, address, bytes, alignment); });
}
/// Of calls that cannot throw.
std::string problem_of(PlacementOracle& oracle) {
  return said([&] { oracle.rethrow_problem(); });
}

TEST(PlacementRules, ABlockLiesInOneSegmentThatTheDeviceGave) {
  PlacementOracle oracle;
  oracle.acquired(place_at(0x1000), 0x1000);
  oracle.acquired(place_at(0x2000), 0x1000);
  const std::string outside = ", which is not inside one segment that the device gave";
  EXPECT_EQ(said_of_place(oracle, 0, 0xff0, 0x20), "handed out [0xff0, 0x1010)" + outside);
  EXPECT_EQ(said_of_place(oracle, 0, 0x500, 0x20), "handed out [0x500, 0x520)" + outside);
  EXPECT_EQ(said_of_place(oracle, 0, 0x1ff0, 0x20), "handed out [0x1ff0, 0x2010)" + outside) << "of two";
  EXPECT_EQ(said_of_place(oracle, 0, 0x2ff0, 0x11), "handed out [0x2ff0, 0x3001)" + outside);
  EXPECT_EQ(said_of_place(oracle, 0, 0x3000, 0x10), "handed out [0x3000, 0x3010)" + outside);
  EXPECT_EQ(said_of_place(oracle, 0, 0, 0x10), "handed out a null pointer without an OutOfMemory error");
  EXPECT_EQ(said_of_place(oracle, 0, 0x1018, 0x10), "handed out [0x1018, 0x1028), which is not aligned to 16");
  EXPECT_EQ(said_of_place(oracle, 0, 0x1000, 0x1000), "");
  EXPECT_EQ(said_of_place(oracle, 1, 0x2ff0, 0x10), "");
}

TEST(PlacementRules, PlacesAreCountedBySegmentsAndByOffsets) {
  PlacementOracle oracle;
  oracle.acquired(place_at(0x9000), 0x1000);
  oracle.acquired(place_at(0x1000), 0x1000);
  oracle.address_reserved(place_at(0x20000), 0x1000);
  oracle.created({7}, 0x1000);
  oracle.mapped(place_at(0x20000), 0x1000, {7}, 0);
  const auto shown = [&](std::uint32_t slot, std::uint64_t address) {
    const Place place = oracle.place(slot, address, 16, 16);
    return fmt::format("{} at {}", place.segment, place.offset);
  };
  EXPECT_EQ(shown(0, 0x9010), "0 at 16");
  EXPECT_EQ(shown(1, 0x1000), "1 at 0");
  EXPECT_EQ(shown(2, 0x20020), "2 at 32");
  oracle.lift(1, false);
  oracle.releasing(place_at(0x1000), 0x1000);
  oracle.acquired(place_at(0x1000), 0x1000);
  EXPECT_EQ(shown(1, 0x1000), "3 at 0") << "what comes again is another segment";
}

TEST(PlacementRules, NoTwoLiveBlocksShareAByteAndOneThatWaitsStillLives) {
  PlacementOracle oracle;
  oracle.acquired(place_at(0x1000), 0x1000);
  ASSERT_EQ(said_of_place(oracle, 0, 0x1100, 0x100), "");
  const std::string overlaps = ", which overlaps the live block [0x1100, 0x1200)";
  for (const auto& [address, bytes] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {0x1100, 0x100}, {0x10f0, 0x20}, {0x10f0, 0x200}, {0x1110, 0x10}, {0x11f0, 0x100}})
    EXPECT_EQ(said_of_place(oracle, 1, address, bytes),
              fmt::format("handed out [{:#x}, {:#x}){}", address, address + bytes, overlaps));
  EXPECT_EQ(said_of_place(oracle, 1, 0x10f0, 0x10), "");
  EXPECT_EQ(said_of_place(oracle, 2, 0x1200, 0x10), "");
  oracle.lift(0, true);
  EXPECT_EQ(said_of_place(oracle, 3, 0x1110, 0x10),
            "handed out [0x1110, 0x1120)" + overlaps + " (freed, but another stream may still use it)");
  oracle.completed(1);
  EXPECT_NE(said_of_place(oracle, 3, 0x1110, 0x10), "") << "another one's";
  EXPECT_NE(said_of_place(oracle, 4, 0x10f0, 0x10), "") << "which does not wait";
  oracle.completed(99);
  oracle.completed(0);
  EXPECT_EQ(said_of_place(oracle, 3, 0x1110, 0x10), "");
}

TEST(PlacementRules, OnceAllIsWaitedForNothingWaits) {
  PlacementOracle oracle;
  oracle.acquired(place_at(0x1000), 0x1000);
  for (std::uint32_t slot : {0, 1, 2}) ASSERT_EQ(said_of_place(oracle, slot, 0x1000 + 0x100 * slot, 0x100), "");
  oracle.lift(0, true);
  oracle.lift(1, true);
  oracle.completed(1);
  ASSERT_EQ(said_of_place(oracle, 1, 0x1100, 0x100), "") << "and lives again";
  oracle.synchronized();
  EXPECT_EQ(said_of_place(oracle, 0, 0x1000, 0x100), "");
  EXPECT_NE(said_of_place(oracle, 3, 0x1100, 0x10), "");
  EXPECT_NE(said_of_place(oracle, 3, 0x1200, 0x10), "");
  oracle.synchronized();
  EXPECT_NE(said_of_place(oracle, 3, 0x1000, 0x10), "") << "it has come back since";
}

TEST(PlacementRules, BehindVirtualAddressesThereIsMemoryOfTheirOwn) {
  PlacementOracle oracle;
  oracle.address_reserved(place_at(0x10000), 0x4000);
  oracle.created({1}, 0x2000);
  oracle.created({2}, 0x1000);
  EXPECT_EQ(said_of_place(oracle, 0, 0x10000, 0x20),
            "handed out [0x10000, 0x10020), of which [0x10000, 0x10020) has no memory mapped behind it");
  oracle.mapped(place_at(0x10000), 0x1000, {1}, 0x1000);
  oracle.mapped(place_at(0x11000), 0x1000, {1}, 0);
  oracle.mapped(place_at(0x13000), 0x1000, {2}, 0);
  EXPECT_EQ(problem_of(oracle), "");
  EXPECT_EQ(said_of_place(oracle, 0, 0x11ff0, 0x20),
            "handed out [0x11ff0, 0x12010), of which [0x12000, 0x12010) has no memory mapped behind it");
  EXPECT_EQ(said_of_place(oracle, 1, 0x10ff0, 0x20), "") << "over two mappings";
  oracle.address_reserved(place_at(0x30000), 0x4000);
  oracle.mapped(place_at(0x30000), 0x2000, {1}, 0);  // the same memory, at another place
  const std::string shared = ", whose physical memory is also that of the live block [0x10ff0, 0x11010)";
  EXPECT_EQ(said_of_place(oracle, 2, 0x30000, 0x10), "handed out [0x30000, 0x30010)" + shared);
  EXPECT_EQ(said_of_place(oracle, 3, 0x31ff0, 0x10), "handed out [0x31ff0, 0x32000)" + shared);
  EXPECT_EQ(said_of_place(oracle, 4, 0x30010, 0x1fe0), "") << "all between the two parts of the block";
  oracle.lift(1, false);
  EXPECT_EQ(said_of_place(oracle, 5, 0x10ff0, 0x10), "");
  EXPECT_EQ(said_of_place(oracle, 6, 0x13000, 0x1000), "");
}

TEST(PlacementRules, WhatGoesBackIsAWholeSegmentWithoutALiveBlock) {
  PlacementOracle oracle;
  oracle.acquired(place_at(0x1000), 0x1000);
  oracle.address_reserved(place_at(0x8000), 0x1000);
  const std::string never = " back to the device, which never gave that segment";
  oracle.releasing(place_at(0x3000), 0x1000);
  EXPECT_EQ(problem_of(oracle), "gave [0x3000, 0x4000)" + never);
  EXPECT_EQ(problem_of(oracle), "") << "once";
  oracle.releasing(place_at(0x1000), 0x800);
  EXPECT_EQ(problem_of(oracle), "gave [0x1000, 0x1800)" + never);
  oracle.releasing(place_at(0x8000), 0x1000);
  EXPECT_EQ(problem_of(oracle), "gave [0x8000, 0x9000)" + never) << "addresses are no memory";
  ASSERT_EQ(said_of_place(oracle, 0, 0x1ff0, 0x10), "");
  oracle.releasing(place_at(0x1000), 0x1000);
  oracle.releasing(place_at(0x5000), 0x1000);
  EXPECT_EQ(said_of_place(oracle, 1, 0x1000, 0x10),
            "gave the segment [0x1000, 0x2000) back while [0x1ff0, 0x2000) in it is in use")
      << "the first of two, before anything else";
  EXPECT_NE(said_of_place(oracle, 1, 0x1000, 0x10), "") << "it is gone all the same";
  oracle.acquired(place_at(0x4000), 0x1000);
  oracle.releasing(place_at(0x4000), 0x1000);
  EXPECT_EQ(problem_of(oracle), "");
}

TEST(PlacementRules, AddressesAreUnreservedAsTheyWereReservedAndWithNothingMapped) {
  PlacementOracle oracle;
  oracle.acquired(place_at(0x1000), 0x1000);
  oracle.address_reserved(place_at(0x10000), 0x2000);
  oracle.address_reserved(place_at(0x12000), 0x2000);
  const std::string unlike = ", which was not reserved like that";
  for (const auto& [address, bytes] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {0x5000, 0x1000}, {0x1000, 0x1000}, {0x10000, 0x1000}, {0x10000, 0x4000}}) {
    oracle.address_unreserving(place_at(address), bytes);
    EXPECT_EQ(problem_of(oracle), fmt::format("unreserved [{:#x}, {:#x}){}", address, address + bytes, unlike));
  }
  oracle.created({1}, 0x1000);
  oracle.mapped(place_at(0x12000), 0x1000, {1}, 0);
  oracle.address_unreserving(place_at(0x10000), 0x2000);
  EXPECT_EQ(problem_of(oracle), "") << "what is mapped is right behind";
  oracle.address_unreserving(place_at(0x12000), 0x2000);
  EXPECT_EQ(problem_of(oracle), "unreserved [0x12000, 0x14000) with memory still mapped in it");
  oracle.address_unreserving(place_at(0x12000), 0x2000);
  EXPECT_EQ(problem_of(oracle), "unreserved [0x12000, 0x14000)" + unlike) << "it is gone";
}

TEST(PlacementRules, MemoryIsDestroyedAsItWasCreatedAndWithNoBlockInIt) {
  PlacementOracle oracle;
  oracle.created({1}, 0x1000);
  oracle.created({2}, 0x1000);
  const std::string never = "destroyed physical memory that was never created, or with another size";
  oracle.destroying({3}, 0x1000);
  EXPECT_EQ(problem_of(oracle), never);
  oracle.destroying({1}, 0x800);
  EXPECT_EQ(problem_of(oracle), never);
  oracle.address_reserved(place_at(0x10000), 0x2000);
  oracle.mapped(place_at(0x10000), 0x1000, {2}, 0);
  ASSERT_EQ(said_of_place(oracle, 0, 0x10ff0, 0x10), "");
  oracle.destroying({1}, 0x1000);
  EXPECT_EQ(problem_of(oracle), "");
  oracle.destroying({1}, 0x1000);
  EXPECT_EQ(problem_of(oracle), never) << "twice";
  oracle.destroying({2}, 0x1000);
  EXPECT_EQ(problem_of(oracle), "destroyed the memory behind [0x10ff0, 0x11000), which is in use");
}

TEST(PlacementRules, MemoryIsMappedWhereNoneIsAndNoMoreThanThereIs) {
  PlacementOracle oracle;
  oracle.address_reserved(place_at(0x10000), 0x10000);
  oracle.created({1}, 0x1000);
  oracle.created({2}, 0x4000);
  const auto mapping = [&](std::uint64_t address, std::uint64_t bytes, std::uint64_t physical, std::uint64_t offset) {
    oracle.mapped(place_at(address), bytes, {physical}, offset);
    return problem_of(oracle);
  };
  EXPECT_EQ(mapping(0x10000, 0x1000, 9, 0), "mapped physical memory that does not exist at [0x10000, 0x11000)");
  EXPECT_EQ(mapping(0x10000, 0x1000, 1, 1), "mapped physical memory that does not exist at [0x10000, 0x11000)");
  EXPECT_EQ(mapping(0x12000, 0x1000, 1, 0), "");
  for (const auto& [address, bytes] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {0x12000, 0x1000}, {0x11000, 0x1001}, {0x12fff, 0x1000}, {0x12010, 0x10}, {0x11000, 0x3000}})
    EXPECT_EQ(mapping(address, bytes, 2, 0),
              fmt::format("mapped memory at [{:#x}, {:#x}), where some is mapped already", address, address + bytes));
  EXPECT_EQ(mapping(0x11000, 0x1000, 2, 0), "");
  EXPECT_EQ(mapping(0x13000, 0x1000, 2, 0x1000), "");
}

TEST(PlacementRules, ALiveBlockIsNotUnmapped) {
  PlacementOracle oracle;
  oracle.address_reserved(place_at(0x10000), 0x4000);
  oracle.created({1}, 0x4000);
  oracle.mapped(place_at(0x10000), 0x4000, {1}, 0);
  ASSERT_EQ(said_of_place(oracle, 0, 0x11000, 0x1000), "");
  oracle.unmapped(place_at(0x10000), 0x1000);
  oracle.unmapped(place_at(0x12000), 0x1000);
  EXPECT_EQ(problem_of(oracle), "");
  oracle.unmapped(place_at(0x11ff0), 0x10);
  EXPECT_EQ(problem_of(oracle), "unmapped [0x11ff0, 0x12000) while [0x11000, 0x12000) in it is in use");
}

// Pages of which any are mapped, unmapped and looked behind, beside an array of what is behind each.
TEST(PlacementRules, MappingsAreThoseOfEachPageHoweverTheyAreCut) {
  constexpr std::uint64_t kPages = 24, kPage = 0x1000, kBase = 0x100000;
  for (unsigned seed = 1; seed <= 30; ++seed) {
    std::mt19937 random(seed);
    PlacementOracle oracle;
    oracle.address_reserved(place_at(kBase), kPages * kPage);
    for (std::uint64_t i = 1; i <= 3; ++i) oracle.created({i}, kPages * kPage);
    std::array<std::optional<std::uint64_t>, kPages> behind{};  // a page of the flat space
    std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> live;
    const auto is_taken = [&](std::uint64_t page) {
      for (const auto& [slot, range] : live)
        if (page >= range.first && page < range.first + range.second) return true;
      return false;
    };
    for (int step = 0; step < 150; ++step) {
      const std::uint64_t first = random() % kPages, count = 1 + random() % std::min<std::uint64_t>(6, kPages - first);
      bool is_free = true, is_mapped = true, is_empty = true;
      for (std::uint64_t page = first; page < first + count; ++page) {
        is_free &= !is_taken(page);
        is_mapped &= behind[page].has_value();
        is_empty &= !behind[page];
      }
      const void* const address = place_at(kBase + first * kPage);
      const auto slot = static_cast<std::uint32_t>(random() % 8);
      switch (random() % 4) {
        case 0: {
          const std::uint64_t physical = 1 + random() % 3, offset = random() % (kPages - count + 1);
          if (!is_empty) break;
          oracle.mapped(address, count * kPage, {physical}, offset * kPage);
          for (std::uint64_t i = 0; i < count; ++i) behind[first + i] = (physical - 1) * kPages + offset + i;
          break;
        }
        case 1:
          if (!is_free) break;
          oracle.unmapped(address, count * kPage);
          for (std::uint64_t i = 0; i < count; ++i) behind[first + i].reset();
          break;
        case 2:
          if (live.contains(slot)) {
            oracle.lift(slot, false);
            live.erase(slot);
          }
          break;
        default: {
          if (live.contains(slot) || !is_free) break;
          std::set<std::uint64_t> used, own;
          for (const auto& [other, range] : live)
            for (std::uint64_t i = 0; i < range.second; ++i) used.insert(*behind[range.first + i]);
          bool shares = false;
          for (std::uint64_t i = 0; is_mapped && i < count; ++i)
            shares |= used.contains(*behind[first + i]) || !own.insert(*behind[first + i]).second;
          if (is_mapped && shares) break;  // it would stay half placed
          const std::string found = said_of_place(oracle, slot, kBase + first * kPage, count * kPage);
          ASSERT_EQ(found.empty(), is_mapped) << "seed " << seed << ", step " << step << ": " << found;
          if (!is_mapped) return;  // nor is it of use after an error
          live[slot] = {first, count};
        }
      }
      ASSERT_EQ(problem_of(oracle), "") << "seed " << seed << ", step " << step;
    }
  }
}

// Bytes of small memory, each with who used it last before its free, and when.
TEST(StreamRules, MemoryIsHandedToAStreamOnceThoseThatUsedItAreKnownToBeThere) {
  constexpr std::uint64_t kBytes = 64;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    ReplaySource source(0);
    StreamOracle oracle(source);
    struct Use {
      std::uint64_t moment = 0;
      std::vector<std::uint64_t> users;
    };
    std::array<Use, kBytes> uses{};
    std::uint64_t now = 0, known_everywhere = 0;
    std::map<std::uint64_t, std::uint64_t> known;
    for (int step = 0; step < 200; ++step) {
      const std::uint64_t begin = random() % kBytes, bytes = random() % (kBytes - begin + 1);
      const std::uint64_t stream = random() % 3;
      switch (random() % 8) {
        case 0:
          known[stream] = now = source.mark({stream}).value;
          source.reached({stream, now});
          break;
        case 1:
          if (random() % 4 != 0) break;
          source.synchronize();
          known_everywhere = now;
          break;
        case 2:
        case 3:
        case 4: {
          Use use;
          std::vector<StreamRef> users;
          for (std::uint64_t i = 0; i <= random() % 3; ++i) use.users.push_back(random() % 3);
          for (const std::uint64_t user : use.users) users.push_back({user});
          oracle.freed(1000 + begin, bytes, users);
          if (bytes == 0) break;
          use.moment = ++now;
          for (std::uint64_t i = begin; i < begin + bytes; ++i) uses[i] = use;
          break;
        }
        default: {
          if (bytes == 0) break;  // nobody is handed nothing
          std::optional<std::uint64_t> wrong;
          for (std::uint64_t i = begin; i < begin + bytes && !wrong; ++i)
            for (const std::uint64_t user : uses[i].users)
              if (!wrong && user != stream && known_everywhere < uses[i].moment && known[user] < uses[i].moment)
                wrong = user;
          const std::string expected =
              wrong ? fmt::format(
                          "handed out [{:#x}, {:#x}) for stream {}, which stream {} may still use: since its "
                          "free the policy neither found a mark of that stream reached nor waited for it",
                          1000 + begin, 1000 + begin + bytes, stream, *wrong)
                    : "";
          ASSERT_EQ(oracle.handed_out(1000 + begin, bytes, {stream}), expected) << "seed " << seed << ", step " << step;
          if (!wrong)
            for (std::uint64_t i = begin; i < begin + bytes; ++i) uses[i] = {};
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon::replay
