// Parts of drawn histories against a model that keeps every block by its number: what lives at the cut stands first,
// and then comes what came.
#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/replay/results/slice_diff.h>
#include <tenon/replay/trace/trace_builder.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// One counted event as it was drawn.
struct Drawn {
  char kind = 'a';  ///< a allocate, f free, d deferred free, u use, e empty cache
  std::size_t block = 0;
  std::uint64_t bytes = 0, stream = 0;
  Purpose purpose = Purpose::kOther;
  std::int64_t time = 0;
  bool has_failed = false;
};

/// A history with everything in it that a part has to carry, and the events that it was made of.
struct DrawnHistory {
  Trace trace;
  std::vector<Drawn> events;
  std::vector<std::pair<std::size_t, std::size_t>> completions;  ///< of which block, before which event
};

DrawnHistory drawn_history(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  TraceBuilder builder("drawn");
  DrawnHistory drawn;
  std::vector<std::uint32_t> slots;
  std::vector<std::size_t> live, pending;
  const auto take = [&](std::vector<std::size_t>& from) {
    const std::size_t at = random() % from.size();
    const std::size_t block = from[at];
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(at));
    return block;
  };
  const auto note = [&](Drawn event) {
    event.time = static_cast<std::int64_t>(10 * drawn.events.size());
    drawn.events.push_back(event);
  };
  for (int step = 0; step < 60; ++step) {
    builder.at(static_cast<std::int64_t>(10 * drawn.events.size()));
    const std::uint64_t choice = random() % 12;
    if (choice < 5 || (choice < 9 && live.empty())) {
      const bool fails = random() % 8 == 0;
      const Drawn event{.kind = 'a',
                        .block = slots.size(),
                        .bytes = 1 + random() % 1000,
                        .stream = random() % 3,
                        .purpose = static_cast<Purpose>(random() % kPurposeCount),
                        .has_failed = fails};
      builder.meant_for(event.purpose);
      if (fails) builder.next_fails({.bytes = event.bytes, .stream = event.stream, .reserved_bytes = 7});
      slots.push_back(builder.allocate(event.bytes, event.stream));
      note(event);
      if (!fails) {
        live.push_back(event.block);
        continue;
      }
      builder.at(static_cast<std::int64_t>(10 * drawn.events.size()));
      builder.free(slots.back());
      note({.kind = 'f', .block = event.block, .bytes = event.bytes});
    } else if (choice < 8) {
      const bool waits = random() % 3 == 0;
      const std::size_t block = take(live);
      builder.free(slots[block], waits);
      note({.kind = waits ? 'd' : 'f', .block = block});
      if (waits) pending.push_back(block);
    } else if (choice == 8) {
      const std::size_t block = live[random() % live.size()];
      const std::uint64_t stream = random() % 4;
      builder.use(slots[block], stream);
      note({.kind = 'u', .block = block, .stream = stream});
    } else if (choice == 9) {
      builder.empty_cache();
      note({.kind = 'e'});
    } else if (choice == 10 && !pending.empty()) {
      const std::size_t block = take(pending);
      builder.free_completed(slots[block]);
      drawn.completions.emplace_back(block, drawn.events.size());
    } else {
      builder.mark("mark " + std::to_string(step));
    }
  }
  drawn.trace = std::move(builder).finish();
  drawn.trace.distrust = "it was drawn";  // nobody has to replay it for that
  return drawn;
}

/// In words that do not depend on slots: blocks are numbered in the order in which the part allocates them.
class Words {
 public:
  void allocate(std::size_t block, std::uint64_t bytes, std::uint64_t stream, Purpose purpose) {
    numbers_[block] = next_++;
    said.push_back("a " + std::to_string(numbers_[block]) + ' ' + std::to_string(bytes) + " on " +
                   std::to_string(stream) + " for " + std::to_string(static_cast<int>(purpose)));
  }
  void about(char kind, std::size_t block) { said.push_back(std::string(1, kind) + ' ' + name(block)); }
  void use(std::size_t block, std::uint64_t stream) {
    said.push_back("u " + name(block) + " on " + std::to_string(stream));
  }
  void plain(const std::string& word) { said.push_back(word); }
  std::vector<std::string> said;

 private:
  std::string name(std::size_t block) const { return std::to_string(numbers_.at(block)); }
  std::map<std::size_t, std::size_t> numbers_;
  std::size_t next_ = 0;
};

std::vector<std::string> expected(const DrawnHistory& drawn, std::size_t from, std::size_t to, std::size_t& seeds) {
  Words words;
  struct State {
    Drawn made;
    std::size_t allocated = 0, freed = 0;
    bool is_pending = false;
  };
  std::map<std::size_t, State> held;
  std::vector<std::pair<std::size_t, Drawn>> uses;
  const auto completes = [&](std::size_t event, bool is_in_part) {
    for (const auto& [block, before] : drawn.completions) {
      if (before != event) continue;
      if (is_in_part) {
        words.about('c', block);
      } else {
        held.erase(block);
      }
    }
  };
  for (std::size_t i = 0; i < from; ++i) {
    completes(i, false);
    const Drawn& event = drawn.events[i];
    if (event.kind == 'a') held[event.block] = {event, i};
    if (event.kind == 'f') held.erase(event.block);
    if (event.kind == 'd') held[event.block].freed = i, held[event.block].is_pending = true;
    if (event.kind == 'u') uses.emplace_back(i, event);
  }
  std::vector<std::pair<std::size_t, std::size_t>> order, pending;
  for (const auto& [block, state] : held) {
    order.emplace_back(state.allocated, block);
    if (state.is_pending) pending.emplace_back(state.freed, block);
  }
  std::ranges::sort(order);
  std::ranges::sort(pending);
  seeds = order.size();
  for (const auto& [when, block] : order) {
    const Drawn& made = held[block].made;
    words.allocate(block, made.bytes, made.stream, made.purpose);
  }
  for (const auto& [when, event] : uses)
    if (held.contains(event.block)) words.use(event.block, event.stream);
  for (const auto& [when, block] : pending) words.about('d', block);
  for (std::size_t i = from; i < to; ++i) {
    completes(i, true);
    const Drawn& event = drawn.events[i];
    if (event.kind == 'a') words.allocate(event.block, event.bytes, event.stream, event.purpose);
    if (event.kind == 'a' && event.has_failed) words.plain("which failed");
    if (event.kind == 'f' || event.kind == 'd') words.about(event.kind, event.block);
    if (event.kind == 'u') words.use(event.block, event.stream);
    if (event.kind == 'e') words.plain("e");
  }
  return words.said;
}

std::vector<std::string> found(const Trace& part) {
  Words words;
  std::map<std::uint32_t, std::size_t> block_of;
  std::size_t allocations = 0, next_failure = 0;
  std::uint64_t event = 0;
  for (const TraceEvent& entry : part.events) {
    switch (entry.kind) {
      case EventKind::kAllocate:
        block_of[entry.slot] = allocations;
        words.allocate(allocations, entry.bytes, part.streams[entry.stream], part.columns.purposes.at(allocations));
        ++allocations;
        if (part.failure_at(event, next_failure) != nullptr) words.plain("which failed");
        break;
      case EventKind::kFree:
        words.about(entry.deferred ? 'd' : 'f', block_of.at(entry.slot));
        break;
      case EventKind::kFreeCompleted:
        words.about('c', block_of.at(entry.slot));
        break;
      case EventKind::kUse:
        words.use(block_of.at(entry.slot), part.streams[entry.stream]);
        break;
      case EventKind::kEmptyCache:
        words.plain("e");
        break;
      case EventKind::kMark:
        break;
    }
    if (is_counted(entry.kind)) ++event;
  }
  return words.said;
}

TEST(SliceModel, APartBeginsWithWhatLivesAtItsCutAndGoesOnAsTheWholeDid) {
  int with_seeds = 0, with_failures = 0;
  for (std::uint64_t seed = 1; seed <= 60 && !testing::Test::HasFailure(); ++seed) {
    const DrawnHistory drawn = drawn_history(seed);
    const std::size_t events = drawn.events.size();
    ASSERT_EQ(drawn.trace.facts.events, events);
    for (std::size_t from = 0; from <= events; from += 3) {
      for (const std::size_t to : {from, from + (events - from) / 2, events}) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << ", events " << from << " to " << to);
        // A request that failed and its end stay together.
        const auto outside = [&](std::size_t event) {
          return event > 0 && drawn.events[event - 1].kind == 'a' && drawn.events[event - 1].has_failed ? event - 1
                                                                                                        : event;
        };
        ASSERT_EQ(outside_requests(drawn.trace, from), outside(from));
        std::size_t seeds = 0;
        const Trace part = slice(drawn.trace, from, to);
        ASSERT_EQ(found(part), expected(drawn, outside(from), outside(to), seeds));
        ASSERT_EQ(part.facts.seeded_blocks, seeds);
        ASSERT_EQ(part.distrust, "it was drawn");
        with_seeds += seeds > 0 ? 1 : 0;
        with_failures += part.ooms.empty() ? 0 : 1;
        if (outside(to) > outside(from)) {
          ASSERT_EQ(part.columns.times_us.back(), drawn.events[outside(to) - 1].time);
        }
      }
    }
  }
  EXPECT_GT(with_seeds, 100);
  EXPECT_GT(with_failures, 100);
}

/// Three segments: 20 MiB, 30 MiB while both lie there, and the first goes before the last event.
Trace recorded_calls() {
  Trace trace = read_one("a 0 20971520 0\na 1 1000 0\na 2 31457280 0\nf 0\ne\nf 2\n");
  trace.format = "snapshot";
  trace.recorded.emplace();
  trace.recorded->is_whole = true;
  trace.recorded->peak_reserved_bytes = 52 * MiB, trace.recorded->reserved_bytes = 32 * MiB;
  trace.recorded->actions = {{HistoryAction::kSegmentAlloc, 20 * MiB, 0},
                             {HistoryAction::kSegmentAlloc, 2 * MiB, 1},
                             {HistoryAction::kSegmentAlloc, 30 * MiB, 2},
                             {HistoryAction::kSegmentFree, 20 * MiB, 4}};
  trace.distrust = "made up";
  return trace;
}

TEST(SliceOfARecording, ItsBeginningKeepsTheDeviceCallsUpToTheCut) {
  const Trace part = slice(recorded_calls(), 0, 2);
  ASSERT_TRUE(part.recorded.has_value());
  EXPECT_TRUE(part.recorded->has_device_calls);
  EXPECT_TRUE(part.recorded->is_whole);
  EXPECT_EQ(part.recorded->actions.size(), 2u);
  EXPECT_EQ(part.recorded->reserved_bytes, 22 * MiB);
  EXPECT_EQ(part.recorded->peak_reserved_bytes, 22 * MiB);
}

TEST(SliceOfARecording, AllOfItIsAsItWas) {
  const Trace part = slice(recorded_calls(), 0, 6);
  EXPECT_EQ(part.recorded->actions.size(), 4u);
  EXPECT_EQ(part.recorded->reserved_bytes, 32 * MiB);
  EXPECT_EQ(part.recorded->peak_reserved_bytes, 52 * MiB);
}

TEST(SliceOfARecording, ALaterPartBeginsWithWhatWasReservedThere) {
  const Trace part = slice(recorded_calls(), 2, 6);
  EXPECT_EQ(part.recorded->reserved_at_start_bytes, 22 * MiB);
  EXPECT_EQ(part.recorded->peak_reserved_bytes, 52 * MiB);
  EXPECT_EQ(part.recorded->reserved_bytes, 32 * MiB);
  EXPECT_FALSE(part.recorded->is_whole);
  EXPECT_FALSE(part.recorded->has_device_calls) << "where its blocks lay is not known";
  EXPECT_THAT(part.recorded->actions, IsEmpty());
  const Trace end = slice(recorded_calls(), 5, 6);
  EXPECT_EQ(end.recorded->reserved_at_start_bytes, 32 * MiB);
  EXPECT_EQ(end.recorded->peak_reserved_bytes, 32 * MiB) << "the peak was before";
  const Trace fall = slice(recorded_calls(), 4, 6);
  EXPECT_EQ(fall.recorded->reserved_at_start_bytes, 52 * MiB);
  EXPECT_EQ(fall.recorded->peak_reserved_bytes, 52 * MiB) << "it begins at the peak";
}

TEST(SliceOfARecording, WithoutDeviceCallsNothingIsKnownOfAPart) {
  Trace trace = recorded_calls();
  trace.recorded->has_device_calls = false;
  trace.recorded->actions.clear();
  trace.recorded->reserved_at_start_bytes = 5 * MiB;
  const Trace start = slice(trace, 0, 3);
  EXPECT_EQ(start.recorded->peak_reserved_bytes, 0u);
  EXPECT_EQ(start.recorded->reserved_at_start_bytes, 5 * MiB);
  EXPECT_TRUE(start.recorded->is_whole);
  const Trace later = slice(trace, 3, 6);
  EXPECT_EQ(later.recorded->reserved_bytes, 0u);
  EXPECT_EQ(later.recorded->reserved_at_start_bytes, 0u);
  EXPECT_FALSE(later.recorded->is_whole);
  EXPECT_EQ(slice(trace, 0, 6).recorded->peak_reserved_bytes, 52 * MiB) << "all of it";
}

TEST(SliceOfARecording, CarriesWhoRecordedItAndWhyItIsDistrusted) {
  load_all_plugins();
  Trace trace = read_one("# allocator: mine\n# allocator_options: x=1\n# other: y\na 0 512 0\na 1 512 0\nf 0\nf 1\n");
  trace.replayed_under = "caching";
  trace.sizes_are_rounded = 512;
  const Trace part = slice(trace, 1, 3);
  EXPECT_EQ(part.header.at("allocator"), "mine");
  EXPECT_EQ(part.header.at("allocator_options"), "x=1");
  EXPECT_FALSE(part.header.contains("other"));
  EXPECT_EQ(part.replayed_under, "caching");
  EXPECT_EQ(part.sizes_are_rounded, 512u);
  EXPECT_EQ(part.distrust, "");
  const Trace poor = slice(read_one("a 0 512 0\na 1 512 0\n"), 0, 1);
  EXPECT_THAT(poor.distrust, testing::HasSubstr("2 allocations and no free"));
}

}  // namespace
}  // namespace tenon::replay
