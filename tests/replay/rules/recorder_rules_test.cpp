// A recorder beside a plain list of all that it was told, over programs that are drawn: its tail, its files and its
// figures.
#include "replay/drawn_history.h"
#include "replay/support.h"

#include <tenon/memory/layers/layer.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/replay/recording/recorder.h>
#include <tenon/replay/results/slice_diff.h>
#include <tenon/replay/trace/trace_builder.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <memory/test_policy.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {
namespace {

const void* place(std::uintptr_t number) { return reinterpret_cast<const void*>(number * 16); }

/// All that a recorder was told, which forgets as its header says: of twice `most` events the older half.
class List {
 public:
  explicit List(std::size_t most) : most_(most) {}

  void allocated(std::uintptr_t number, std::uint64_t bytes, std::uint64_t stream) {
    keep({EventKind::kAllocate, number, bytes, stream, {}});
  }
  void used(std::uintptr_t number, std::uint64_t stream) { keep({EventKind::kUse, number, 0, stream, {}}); }
  void freed(std::uintptr_t number) { keep({EventKind::kFree, number, 0, 0, {}}); }
  void trimmed() { keep({EventKind::kEmptyCache, 0, 0, 0, {}}); }
  void mark(const std::string& name) { keep({EventKind::kMark, 0, 0, 0, name}); }

  std::uint64_t lost() const { return lost_; }
  Trace tail() const {
    TraceBuilder builder("list");
    std::map<std::uintptr_t, std::uint32_t> slots;
    for (const Entry& seed : seeds_) slots[seed.number] = builder.allocate(seed.bytes, seed.stream);
    builder.recording_starts();
    for (const Entry& entry : entries_) {
      if (entry.kind == EventKind::kAllocate) slots[entry.number] = builder.allocate(entry.bytes, entry.stream);
      if (entry.kind == EventKind::kUse) builder.use(slots.at(entry.number), entry.stream);
      if (entry.kind == EventKind::kFree) builder.free(slots.at(entry.number));
      if (entry.kind == EventKind::kEmptyCache) builder.empty_cache();
      if (entry.kind == EventKind::kMark) builder.mark(entry.name);
    }
    return std::move(builder).finish();
  }

 private:
  struct Entry {
    EventKind kind;
    std::uintptr_t number;
    std::uint64_t bytes, stream;
    std::string name;
  };
  void keep(const Entry& entry) {
    if (entries_.size() == 2 * most_) {
      for (std::size_t i = 0; i < most_; ++i) {
        const Entry old = entries_.front();
        entries_.erase(entries_.begin());
        if (old.kind == EventKind::kAllocate) seeds_.push_back(old);
        if (old.kind == EventKind::kFree)
          std::erase_if(seeds_, [&](const Entry& seed) { return seed.number == old.number; });
      }
      lost_ += most_;
    }
    entries_.push_back(entry);
  }

  std::size_t most_;
  std::vector<Entry> entries_, seeds_;
  std::uint64_t lost_ = 0;
};

/// Tells both the same, drawn by a seed: blocks come and go, addresses come back, marks have names over two lines.
struct Program {
  Program(unsigned seed, int events, Recorder& recorder, List& list) {
    std::mt19937 random(seed);
    std::vector<std::uintptr_t> live;
    std::map<std::uintptr_t, std::uintptr_t> number_at;  ///< by address: blocks are told apart by their numbers
    std::uintptr_t next = 0;
    for (int i = 0; i < events; ++i) {
      const unsigned choice = random() % 10;
      if (choice < 4 || live.empty()) {
        std::uintptr_t address = 1 + random() % 40;
        while (std::ranges::find(live, address) != live.end()) ++address;
        live.push_back(address);
        const std::uint64_t bytes = 1 + random() % 5000, stream = random() % 3;
        const auto purpose = static_cast<Purpose>(random() % 3);
        purposes.push_back(purpose);
        recorder.allocated(place(address), bytes, stream, purpose);
        list.allocated(number_at[address] = next++, bytes, stream);
      } else if (choice < 7) {
        const std::size_t at = random() % live.size();
        recorder.freed(place(live[at]));
        list.freed(number_at[live[at]]);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
      } else if (choice == 7) {
        const std::uintptr_t address = live[random() % live.size()];
        const std::uint64_t stream = random() % 3;
        recorder.used(place(address), stream);
        list.used(number_at[address], stream);
      } else if (choice == 8) {
        recorder.trimmed();
        list.trimmed();
      } else {
        marks.push_back(fmt::format("step {} of this", i));
        recorder.mark(fmt::format("step {}{}of\rthis", i, '\n'));
        list.mark(marks.back());
      }
    }
  }
  std::vector<Purpose> purposes;
  std::vector<std::string> marks;
};

TEST(RecorderRules, TheTailIsThatOfAListThatForgetsItsOlderHalf) {
  for (const std::size_t most : {1U, 2U, 3U, 7U, 20U, 1000U}) {
    for (const int events : {1, 2, 3, 13, 14, 15, 39, 40, 41, 100, 200}) {
      SCOPED_TRACE(fmt::format("{} of {}", most, events));
      Recorder recorder(most);
      List list(most);
      const Program program(static_cast<unsigned>(events) + 1, events, recorder, list);
      EXPECT_EQ(recorder.lost_events(), list.lost());
      const Trace tail = recorder.tail("list");
      EXPECT_TRUE(difference(list.tail(), tail).are_equal) << difference(list.tail(), tail).what;
      EXPECT_EQ(tail.format, "recorded");
      std::vector<std::string> names;
      std::int64_t before = 0;
      for (const auto& [time, name] : recorder.marks()) {
        names.push_back(name);
        EXPECT_GE(time, before);
        before = time;
      }
      EXPECT_EQ(names, program.marks) << "all of them, also those that the tail has lost";
    }
  }
  EXPECT_EQ(Recorder(0).tail("nothing").facts.events, 0U);
}

TEST(RecorderRules, FilesHoldEverythingWithPurposesAndTimesHoweverShortTheTailIs) {
  for (const char* ending : {"trace", "trace.gz", "tenon", "tenon.gz"}) {
    SCOPED_TRACE(ending);
    const std::string path = scratch(std::string("whole.") + ending);
    Recorder recorder(2);
    List list(1000);
    recorder.write_to(path, {{"name", "whole"}, {"other", "words"}});
    const Program program(5, 300, recorder, list);
    recorder.close();
    EXPECT_EQ(recorder.failure(), "");
    const Trace read = read_traces(path, {.with_columns = true}).front();
    EXPECT_TRUE(difference(list.tail(), read).are_equal) << difference(list.tail(), read).what;
    EXPECT_EQ(read.columns.purposes, program.purposes);
    EXPECT_EQ(read.columns.times_us.size(), read.facts.events);
    EXPECT_TRUE(std::ranges::is_sorted(read.columns.times_us));
    EXPECT_EQ(read.header.at("name"), "whole");
    EXPECT_EQ(read.header.at("other"), "words");
    std::filesystem::remove(path);
  }
}

TEST(RecorderRules, APurposeIsWrittenWhereAnAllocationHasAnotherOneThanTheOneBefore) {
  const std::string path = scratch("purposes.trace");
  Recorder recorder;
  recorder.write_to(path, {});
  std::uintptr_t number = 0;
  for (const Purpose purpose : {Purpose::kGradient, Purpose::kGradient, Purpose::kData, Purpose::kGradient}) {
    recorder.allocated(place(++number), 100, 0, purpose);
    recorder.used(place(number), 1);
    recorder.trimmed();
    recorder.freed(place(number));
  }
  recorder.close();
  const std::string text = content(path);
  std::size_t lines = 0;
  for (std::size_t at = text.find("#p "); at != std::string::npos; at = text.find("#p ", at + 1)) ++lines;
  EXPECT_EQ(lines, 3U) << text;
  std::filesystem::remove(path);
}

TEST(RecorderRules, WhatAFileDoesNotKnowIsNotWrittenThere) {
  const std::string path = scratch("late.tenon");
  Recorder recorder;
  recorder.allocated(place(1), 100, 0);
  recorder.write_to(path, {});
  recorder.used(place(1), 2);
  recorder.freed(place(1));
  recorder.allocated(place(2), 300, 1);
  recorder.close();
  recorder.freed(place(2));
  const Trace read = read_traces(path).front();
  EXPECT_EQ(read.facts.events, 1U);
  EXPECT_EQ(read.facts.end_live_bytes, 300U);
  EXPECT_EQ(recorder.tail("all").facts.events, 5U);
  std::filesystem::remove(path);
}

TEST(RecorderRules, AFailureWaitsForWhatComesOfItAndIsSeenMeanwhile) {
  for (const int trims : {0, 1, 3}) {
    for (const bool is_mended : {true, false}) {
      Recorder recorder;
      recorder.failed(500, 1, Purpose::kData);
      recorder.explain_failure(70, 8);
      for (int i = 0; i < trims; ++i) recorder.trimmed();
      const Trace open = recorder.tail("open");
      ASSERT_EQ(open.ooms.size(), 1U);
      EXPECT_EQ(open.ooms[0].bytes, 500U);
      EXPECT_EQ(open.ooms[0].stream, 1U);
      EXPECT_EQ(open.ooms[0].capacity_bytes(), 78U);
      EXPECT_EQ(open.facts.empty_caches, static_cast<std::uint64_t>(trims));
      EXPECT_EQ(open.facts.events, 2U + static_cast<std::uint64_t>(trims));
      if (is_mended) {
        recorder.allocated(place(1), 500, 1);
      } else {
        recorder.mark("on");
      }
      const Trace after = recorder.tail("after");
      EXPECT_EQ(after.facts.empty_caches, static_cast<std::uint64_t>(trims));
      EXPECT_EQ(after.ooms.size(), is_mended && trims > 0 ? 0U : 1U) << "a cache was given back for it";
    }
  }
}

TEST(RecorderRules, AFileThatBreaksEndsThereAndTheReasonIsKept) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no device that is always full";
  const std::string path = scratch("full.trace");
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/dev/full", path);
  Recorder recorder;
  recorder.write_to(path, {});
  for (int i = 0; i < 100; ++i) recorder.mark(std::string(100'000, 'x'));
  EXPECT_THAT(recorder.failure(), ::testing::StartsWith("cannot write " + path));
  EXPECT_EQ(recorder.tail("on").facts.marks, 100U) << "the program goes on";
  EXPECT_EQ(recorder.marks().size(), 100U);
  std::filesystem::remove(path);
}

TEST(RecorderRules, TheLayerTellsOfUsesElsewhereAndOfEmptiedCachesAlone) {
  const auto recorder = std::make_shared<Recorder>();
  const LayerInfo layer = recording_layer("test layer of rules", recorder);
  EXPECT_EQ(layer.name, "test layer of rules");
  add_private_layer(layer);
  AddressOnlySource source({.capacity_bytes = 8192});
  const auto stack = tenon::test::make_stack(source, {{"test layer of rules", {}}});
  const auto facts = [&] { return recorder->tail("x").facts; };
  const Block block = stack->allocate({.bytes = 512, .stream = {3}, .purpose = Purpose::kData});
  stack->record_use(block, {4});
  stack->deallocate(block, {3});
  EXPECT_EQ(facts().uses, 1U) << "it was freed on its own stream";
  stack->deallocate(stack->allocate({.bytes = 512, .stream = {3}}), {5});
  EXPECT_EQ(facts().uses, 2U) << "and this one on another";
  stack->trim(100);
  EXPECT_EQ(facts().empty_caches, 0U) << "something is to be kept";
  stack->trim(0);
  EXPECT_EQ(facts().empty_caches, 1U);
  EXPECT_EQ(facts().end_live_bytes, 0U);
}

}  // namespace
}  // namespace tenon::replay
