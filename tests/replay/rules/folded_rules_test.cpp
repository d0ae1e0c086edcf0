// Folded stacks beside a plain list of what lives, for histories and images that are drawn: the lines are those of the
// first moment at which most lived, also where that was before the history began.
#include "replay/support.h"

#include <tenon/replay/formats/folded_format.h>
#include <tenon/replay/formats/writers.h>
#include <tenon/replay/trace/trace_builder.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {
namespace {

/// What lives: its bytes and stack, by address.
using LiveBlocks = std::map<std::uint64_t, std::pair<std::uint64_t, StackId>>;

std::uint64_t sum_of(const LiveBlocks& live) {
  std::uint64_t sum = 0;
  for (const auto& [address, block] : live) sum += block.first;
  return sum;
}

std::string lines_of(const LiveBlocks& live) {
  const std::vector<std::string> names = {"[no stack]", "f (a.cpp:1)", "g (b.cpp:2);f (a.cpp:1)"};
  std::map<std::string, std::uint64_t> by_stack;
  for (const auto& [address, block] : live) by_stack[names[block.second]] += block.first;
  std::string lines;
  for (const auto& [name, bytes] : by_stack) lines += fmt::format("{} {}\n", name, bytes);
  return lines;
}

TEST(FoldedImages, ShowWhatLivedAtTheFirstPeakWhetherInTheHistoryOrBeforeIt) {
  int before_history = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    SnapshotImage image;
    image.stacks.frames = {{"f", "/x/a.cpp", 1}, {"g", "/x/b.cpp", 2}};
    image.stacks.stacks = {{}, {0}, {0, 1}};
    LiveBlocks live;
    const auto address_of = [](std::uint64_t i) { return 0x1000 + 512 * i; };
    // What lived before and is freed in the history has no stack any more.
    const unsigned old = random() % 6;
    std::vector<std::uint64_t> freed;
    LiveBlocks at_start;
    for (unsigned i = 0; i < old; ++i) {
      const bool goes = random() % 2 == 0;
      at_start[address_of(i)] = {100 + random() % 400, goes ? 0 : 1 + random() % 2};
      if (goes) freed.push_back(address_of(i));
    }
    live = at_start;
    LiveBlocks most = live;
    bool is_in_history = false;
    std::vector<std::uint64_t> own;
    std::uint64_t next = 100;
    for (int step = 0; step < 12; ++step) {
      HistoryEvent event;
      const bool frees_old = !freed.empty() && random() % 3 == 0, frees_own = !own.empty() && random() % 3 == 0;
      if (frees_old || frees_own) {
        std::vector<std::uint64_t>& from = frees_old ? freed : own;
        event.action = HistoryAction::kFreeRequested;
        event.address = from.back();
        event.bytes = live.at(from.back()).first;
        live.erase(from.back());
        from.pop_back();
      } else {
        event.action = HistoryAction::kAlloc;
        event.address = address_of(next++);
        event.bytes = 50 + random() % 200;
        event.stack = static_cast<StackId>(random() % 3);
        live[event.address] = {event.bytes, event.stack};
        own.push_back(event.address);
      }
      image.events.push_back(event);
      if (sum_of(live) > sum_of(most)) most = live, is_in_history = true;
    }
    // Those that were to go and have not.
    for (const std::uint64_t address : freed) at_start[address].second = live[address].second = 1;
    for (auto& [address, block] : most)
      if (live.contains(address) && at_start.contains(address)) block.second = at_start[address].second;
    Segment segment;
    segment.address = 0x1000;
    segment.bytes = 1 << 20;
    for (const auto& [address, block] : live)
      segment.blocks.push_back({address, 512, block.first, BlockState::kActive, block.second});
    image.segments.push_back(segment);
    const std::string path = scratch("drawn.folded");
    write_folded(image, path);
    EXPECT_EQ(content(path), lines_of(most)) << seed;
    before_history += is_in_history ? 0 : 1;
    std::filesystem::remove(path);
  }
  EXPECT_GT(before_history, 0);
}

TEST(FoldedTraces, ShowWhatLivedAtTheFirstPeak) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    TraceBuilder builder("drawn");
    LiveBlocks live, most;
    std::vector<StackId> stacks;
    std::vector<std::uint32_t> slots;
    for (int step = 0; step < 30; ++step) {
      if (slots.empty() || random() % 5 < 3) {
        const std::uint64_t bytes = 50 + random() % 200;
        stacks.push_back(static_cast<StackId>(step == 0 ? 1 : random() % 3));
        slots.push_back(builder.allocate(bytes, 0));
        live[slots.back()] = {bytes, stacks.back()};
      } else if (random() % 4 == 0) {
        builder.mark("step");
        builder.use(slots.back(), 3);
      } else {
        const std::size_t at = random() % slots.size();
        builder.free(slots[at]);
        live.erase(slots[at]);
        slots.erase(slots.begin() + static_cast<std::ptrdiff_t>(at));
      }
      if (sum_of(live) > sum_of(most)) most = live;
    }
    Trace trace = std::move(builder).finish();
    trace.stacks.frames = {{"f", "/x/a.cpp", 1}, {"g", "/x/b.cpp", 2}};
    trace.stacks.stacks = {{}, {0}, {0, 1}};
    trace.stack_of_allocation = stacks;
    const std::string path = scratch("drawn_trace.folded");
    write_trace(trace, path);
    std::multimap<std::string, int> lines, expected;  // their order is that of the stacks
    const auto add = [](std::multimap<std::string, int>& to, const std::string& text) {
      for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
        to.emplace(text.substr(at, text.find('\n', at) - at), 0);
    };
    add(lines, content(path));
    add(expected, lines_of(most));
    EXPECT_EQ(lines, expected) << seed;
    std::filesystem::remove(path);
  }
}

TEST(FoldedTraces, HaveNoSignInAFramesNameThatTheFormItselfUses) {
  Trace trace = read_one("a 0 100 0\n");
  trace.stacks.frames = {{"inner;most\nof\rall", "/a/b.py", 3}, {"outer", "c.py", 70}};
  trace.stacks.stacks = {{}, {0, 1}};
  trace.stack_of_allocation = {1};
  const std::string path = scratch("signs.folded");
  find_format("folded")->write(trace, path, {});
  EXPECT_EQ(content(path), "outer (c.py:70);inner,most of all (b.py:3) 100\n");
}

}  // namespace
}  // namespace tenon::replay
