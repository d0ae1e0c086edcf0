// Histories against a plain list of all that was told: which events a ring keeps, which live blocks, which lines.
#include <tenon/memory/history/history.h>
#include <tenon/memory/history/request_log.h>
#include <tenon/memory/history/text_lines.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace tenon {
namespace {

using ::testing::ElementsAre;

bool is_map(const MemoryEvent& event) {
  return event.action == HistoryAction::kSegmentMap || event.action == HistoryAction::kSegmentUnmap;
}

/// Keeps everything.
struct PlainHistory {
  bool is_recording = false;
  std::optional<HistorySettings> asked;
  std::size_t keepers = 0;
  HistorySettings settings;
  std::vector<HistoryEvent> kept;
  std::uint64_t recorded = 0, allocations = 0;
  std::map<std::uint64_t, LiveBlock> live;

  void start(const HistorySettings& its_settings, bool clear) {
    asked = its_settings;
    if (clear) {
      kept.clear();
      recorded = 0;
    }
    apply();
  }
  void stop() {
    kept.clear();
    recorded = 0;
    asked.reset();
    apply();
  }
  void keep(bool more) {
    if (!more && keepers == 0) return;
    more ? ++keepers : --keepers;
    apply();
  }
  void apply() {
    const bool has_kept = is_recording && settings.keeps_live;
    is_recording = asked || keepers > 0;
    if (!is_recording) return live.clear();
    settings = asked.value_or(HistorySettings{.max_entries = 0});
    settings.keeps_live |= keepers > 0;
    if (!has_kept) live.clear();
    cut();
  }
  void record(const HistoryEvent& event) {
    if (!is_recording) return;
    if (is_map(event) && !kept.empty()) {
      HistoryEvent& last = kept.back();
      if (last.action == event.action && last.stream == event.stream && last.address + last.bytes == event.address) {
        last.bytes += event.bytes;
        return;
      }
    }
    if (event.action == HistoryAction::kAlloc) {
      ++allocations;
      if (settings.keeps_live)
        live[event.address] = {event.address, event.bytes, allocations, 0, event.label, event.purpose};
    }
    if (event.action == HistoryAction::kFreeRequested) live.erase(event.address);
    if (settings.max_entries == 0) return;
    ++recorded;
    kept.push_back(event);
    cut();
  }
  void record_page_locked(const HistoryEvent& event) {
    if (!is_recording || !settings.keeps_live) return;
    if (event.action == HistoryAction::kAlloc)
      live[event.address] = {event.address, event.bytes, ++allocations, 0, event.label, event.purpose, true};
    if (event.action == HistoryAction::kFreeRequested) live.erase(event.address);
  }
  void cut() {
    if (kept.size() > settings.max_entries)
      kept.erase(kept.begin(), kept.end() - static_cast<std::ptrdiff_t>(settings.max_entries));
  }
};

TEST(HistoryModel, KeepsWhatAListOfTheNewestWould) {
  for (std::uint64_t seed = 1; seed <= 40 && !HasFailure(); ++seed) {
    std::mt19937_64 random(seed);
    tenon::History history;
    PlainHistory plain;
    for (int step = 0; step < 250 && !HasFailure(); ++step) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", step " << step);
      const std::uint64_t choice = random() % 60;
      if (choice == 0 || step == 3) {
        const HistorySettings settings{.max_entries = random() % 9, .keeps_live = random() % 2 == 0};
        const bool clear = random() % 3 == 0;
        history.start(settings, clear);
        plain.start(settings, clear);
        EXPECT_EQ(history.settings().max_entries, settings.max_entries);
        EXPECT_EQ(history.settings().stack_every, 1u);
      } else if (choice == 1) {
        history.stop();
        plain.stop();
      } else if (choice < 4) {
        choice == 2 ? history.keep_live() : history.drop_live();
        plain.keep(choice == 2);
      } else {
        HistoryEvent event{{.action = static_cast<HistoryAction>(random() % kHistoryActions),
                            .purpose = static_cast<Purpose>(random() % kPurposeCount),
                            .label = static_cast<std::uint16_t>(random() % 3),
                            .address = 100 * (random() % 6),
                            .bytes = 100 * (1 + random() % 2),
                            .stream = {random() % 2}}};
        event.pool = random() % 3;
        if (random() % 4 == 0) {
          // As the stack of such memory, which tells while somebody wants to know.
          if (history.page_locked().recording()) history.page_locked().record(event);
          EXPECT_EQ(history.page_locked().recording(), plain.is_recording && plain.settings.keeps_live);
          plain.record_page_locked(event);
        } else {
          history.record(event, event.pool);
          plain.record(event);
        }
      }
      EXPECT_EQ(history.recording(), plain.is_recording);
      EXPECT_EQ(history.recorded(), plain.recorded);
      const std::vector<HistoryEvent> events = history.events();
      ASSERT_EQ(events.size(), plain.kept.size());
      for (std::size_t i = 0; i < events.size(); ++i) {
        EXPECT_EQ(events[i].action, plain.kept[i].action);
        EXPECT_EQ(events[i].address, plain.kept[i].address);
        EXPECT_EQ(events[i].bytes, plain.kept[i].bytes);
        EXPECT_EQ(events[i].stream, plain.kept[i].stream);
        EXPECT_EQ(events[i].purpose, plain.kept[i].purpose);
        EXPECT_EQ(events[i].label, plain.kept[i].label);
        EXPECT_EQ(events[i].pool, plain.kept[i].pool);
        EXPECT_EQ(events[i].stack, 0u);
      }
      if (!plain.settings.keeps_live) {
        EXPECT_TRUE(history.live_blocks().empty());
        continue;
      }
      std::vector<LiveBlock> live;
      for (const auto& [address, block] : plain.live) live.push_back(block);
      std::ranges::sort(live, {}, &LiveBlock::number);
      const std::vector<LiveBlock> said = history.live_blocks();
      ASSERT_EQ(said.size(), live.size());
      for (std::size_t i = 0; i < live.size(); ++i) {
        EXPECT_EQ(said[i].address, live[i].address);
        EXPECT_EQ(said[i].bytes, live[i].bytes);
        EXPECT_EQ(said[i].number, live[i].number);
        EXPECT_EQ(said[i].label, live[i].label);
        EXPECT_EQ(said[i].purpose, live[i].purpose);
        EXPECT_EQ(said[i].page_locked, live[i].page_locked);
      }
    }
  }
}

TEST(HistoryStacks, AreTakenOfEachKindOfEventThatTheSettingsNameAndOfEveryNth) {
  for (const StackContext stacks :
       {StackContext::kNone, StackContext::kState, StackContext::kAlloc, StackContext::kAll})
    for (const std::uint32_t every : {0U, 1U, 2U, 3U}) {
      tenon::History history;
      history.start({.stacks = stacks, .stack_every = every});
      for (std::uint64_t i = 0; i < 6; ++i)
        for (const HistoryAction action : {HistoryAction::kAlloc, HistoryAction::kFreeRequested,
                                           HistoryAction::kFreeCompleted, HistoryAction::kOom}) {
          history.record({.action = action, .address = i, .bytes = 8});
          if (action != HistoryAction::kAlloc) continue;
          const bool is_nth = i % std::max(every, 1U) == 0;
          EXPECT_EQ(history.live_stack(i) != 0, stacks != StackContext::kNone && is_nth);
        }
      std::map<HistoryAction, std::uint64_t> nth;
      for (const HistoryEvent& event : history.events()) {
        const bool is_nth = nth[event.action]++ % std::max(every, 1U) == 0;
        const bool is_wanted = event.action == HistoryAction::kFreeCompleted   ? false
                               : event.action == HistoryAction::kFreeRequested ? stacks == StackContext::kAll
                                                                               : stacks >= StackContext::kAlloc;
        EXPECT_EQ(event.stack != 0, is_wanted && is_nth) << name_of(event.action) << ", every " << every;
        EXPECT_EQ(history.frames(event.stack).empty(), event.stack == 0);
      }
      EXPECT_EQ(history.live_stack(99), 0u);
      EXPECT_EQ(history.live_stack(5), 0u) << "it was freed";
    }
}

TEST(HistoryStacks, AreTakenOfEveryLiveBlockThatIsAskedForWhateverTheEventsWant) {
  tenon::History history;
  history.start({.stacks = StackContext::kAlloc, .stack_every = 5});
  history.keep_live();
  EXPECT_EQ(history.settings().stack_every, 1u);
  for (std::uint64_t address = 1; address < 8; ++address) history.record({.address = address, .bytes = 8});
  for (const LiveBlock& block : history.live_blocks()) EXPECT_NE(block.stack, 0u) << block.address;
  history.drop_live();
  EXPECT_EQ(history.settings().stack_every, 5u);
}

TEST(HistoryStacks, OfOnePlaceAreOneAndOfTwoPlacesTwo) {
  tenon::History history;
  history.start({.stacks = StackContext::kAlloc});
  for (int i = 0; i < 3; ++i) history.record({.address = 1, .bytes = 8});
  history.record({.address = 2, .bytes = 8});
  const auto events = history.events();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].stack, events[1].stack);
  EXPECT_EQ(events[1].stack, events[2].stack);
  EXPECT_NE(events[2].stack, events[3].stack);
  EXPECT_TRUE(history.frames(events[3].stack + 1).empty());
  history.stop();
  EXPECT_TRUE(history.frames(events[0].stack).empty());
}

// ---- lines

TEST(Lines, AreOneForEachRecordWithItsNumbers) {
  TextLines lines;
  EXPECT_EQ(lines.comment("a\nb\rc"), "# a b c\n");
  EXPECT_EQ(lines.header("k\ney", "v\ralue"), "# k ey: v alue\n");
  EXPECT_EQ(lines.allocate(7, 1000, 3), "a 7 1000 3\n");
  EXPECT_EQ(lines.allocate(0, 18446744073709551615U, 0), "a 0 18446744073709551615 0\n");
  EXPECT_EQ(lines.failed(7, 1000, 3, 40, 50), "m tenon:failed 7 40 50\na 7 1000 3\n");
  EXPECT_EQ(lines.free(7), "f 7\n");
  EXPECT_EQ(lines.deferred_free(7), "m tenon:deferred 7\nf 7\n");
  EXPECT_EQ(lines.completed(7), "m tenon:completed 7\n");
  EXPECT_EQ(lines.use(7, 4), "u 7 4\n");
  EXPECT_EQ(lines.empty_cache(), "e\n");
  EXPECT_EQ(lines.recording_starts(), "m recording starts\n");
  EXPECT_EQ(lines.mark("recording starts"), "m tenon:mark recording starts\n");
  EXPECT_EQ(lines.mark("recording starts now"), "m recording starts now\n");
  EXPECT_EQ(lines.mark("tenon:x"), "m tenon:mark tenon:x\n");
  EXPECT_EQ(lines.mark("tenon"), "m tenon\n");
}

TEST(Lines, SayATimeOrAPurposeOnlyWhereItIsAnother) {
  TextLines lines;
  EXPECT_EQ(lines.at(5), "#t 5\n");
  EXPECT_EQ(lines.at(5), "");
  EXPECT_EQ(lines.at(6), "#t +1\n");
  EXPECT_EQ(lines.at(106), "#t +100\n");
  EXPECT_EQ(lines.at(105), "#t 105\n") << "a clock that goes back";
  EXPECT_EQ(lines.at(0), "#t 0\n");
  EXPECT_EQ(lines.at(-3), "#t -3\n");
  EXPECT_EQ(lines.meant_for(Purpose::kData), "#p data\n");
  EXPECT_EQ(lines.meant_for(Purpose::kData), "");
  EXPECT_EQ(lines.meant_for(Purpose::kOther), "#p other\n");
}

// ---- what a log of requests holds back

/// Writes down what a log hands on.
struct Sink {
  std::vector<std::string> records;
  void allocated(std::uint64_t id, std::uint64_t bytes, std::uint64_t stream) {
    records.push_back("a " + std::to_string(id) + " " + std::to_string(bytes) + " " + std::to_string(stream));
  }
  void failed(std::uint64_t id, const FailedRequest& request) {
    records.push_back("x " + std::to_string(id) + " " + std::to_string(request.bytes) + " " +
                      std::to_string(request.stream) + " " + std::to_string(request.capacity_bytes()));
  }
  void used(std::uint64_t id, std::uint64_t stream) {
    records.push_back("u " + std::to_string(id) + " " + std::to_string(stream));
  }
  void freed(std::uint64_t id) { records.push_back("f " + std::to_string(id)); }
  void emptied_cache() { records.emplace_back("e"); }
};

TEST(RequestLogs, HoldAFailureBackUntilSomethingElseHappens) {
  const int a = 0, b = 0;
  const auto after_failure = [&](const auto& next) {
    RequestLog log;
    Sink sink;
    log.allocated(&a, 10, 1, sink);
    log.failed({.bytes = 50, .stream = 2, .reserved_bytes = 3, .device_free_bytes = 4}, sink);
    EXPECT_EQ(sink.records.size(), 1u) << "held back";
    next(log, sink);
    return std::vector(sink.records.begin() + 1, sink.records.end());
  };
  EXPECT_THAT(after_failure([&](RequestLog& log, Sink& sink) { log.allocated(&b, 50, 2, sink); }),
              ElementsAre("x 1 50 2 7", "a 2 50 2"))
      << "without a trim it is asked again by the program";
  EXPECT_THAT(after_failure([&](RequestLog& log, Sink& sink) {
                log.emptied_cache(sink);
                log.allocated(&b, 50, 2, sink);
              }),
              ElementsAre("e", "a 2 50 2"))
      << "the host mended it";
  EXPECT_THAT(after_failure([&](RequestLog& log, Sink& sink) {
                log.emptied_cache(sink);
                log.emptied_cache(sink);
                log.allocated(&b, 51, 2, sink);
              }),
              ElementsAre("x 1 50 2 7", "e", "e", "a 2 51 2"));
  EXPECT_THAT(after_failure([&](RequestLog& log, Sink& sink) {
                log.emptied_cache(sink);
                log.allocated(&b, 50, 3, sink);
              }),
              ElementsAre("x 1 50 2 7", "e", "a 2 50 3"));
  EXPECT_THAT(after_failure([&](RequestLog& log, Sink& sink) {
                log.emptied_cache(sink);
                log.failed({.bytes = 50, .stream = 2}, sink);
                log.settle(sink);
                log.settle(sink);
              }),
              ElementsAre("e", "x 2 50 2 0"))
      << "asked for once more in vain it has failed once";
  EXPECT_THAT(after_failure([&](RequestLog& log, Sink& sink) { log.freed(&a, sink); }),
              ElementsAre("x 1 50 2 7", "f 0"));
  EXPECT_THAT(after_failure([&](RequestLog& log, Sink& sink) { log.used(&a, 9, sink); }),
              ElementsAre("x 1 50 2 7", "u 0 9"));
  EXPECT_THAT(after_failure([&](RequestLog& log, Sink& sink) {
                log.freed(&b, sink);
                log.used(&b, 9, sink);
              }),
              ElementsAre())
      << "a block from before the log is passed over";
  EXPECT_THAT(after_failure([&](RequestLog& log, Sink& sink) {
                log.freed(&a, sink);
                log.freed(&a, sink);
                log.emptied_cache(sink);
              }),
              ElementsAre("x 1 50 2 7", "f 0", "e"));
}

TEST(OpenFailures, AreExplainedWhileTheyAreOpen) {
  OpenFailure open;
  EXPECT_FALSE(open.trimmed());
  open.explain(1, 2);
  EXPECT_FALSE(open.is_open());
  open.open(4, {.bytes = 50});
  open.explain(1, 2);
  EXPECT_TRUE(open.trimmed());
  EXPECT_TRUE(open.trimmed());
  EXPECT_EQ(open.trims(), 2u);
  EXPECT_EQ(open.id(), 4u);
  EXPECT_EQ(open.request()->reserved_bytes, 1u);
  EXPECT_EQ(open.request()->device_free_bytes, 2u);
}

}  // namespace
}  // namespace tenon
