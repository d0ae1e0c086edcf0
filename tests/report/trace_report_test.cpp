// What is said of one history: on the page of `tenon view`, and in its row of `tenon trace`.
#include "replay/support.h"
#include "support/scratch_folder.h"

#include <tenon/core/units.h>
#include <tenon/report/replay/trace_html.h>
#include <tenon/report/replay/trace_report.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tenon {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string page_of_history(const replay::Trace& trace) {
  const std::string path = test::scratch_folder() + "history.html";
  write_trace_html(path, trace, {});
  return replay::content(path);
}

int times_in(const std::string& text, std::string_view word) {
  int times = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++times;
  return times;
}

// Of 3200 bytes over 960 points one byte is 0.3 points wide.
TEST(FlameGraph, LeavesOutCallsOfLessThanSixTenthsOfAPoint) {
  replay::Trace trace = replay::read_one("a 0 3196 0\na 1 3 0\na 2 1 0\nf 0\nf 1\nf 2\n");
  trace.stacks = {
      .frames = {{"wide", "/srv/model.py", 1}, {"narrow", "/srv/model.py", 2}, {"hair", "/srv/model.py", 3}},
      .stacks = {{}, {0}, {1}, {2}}};
  trace.stack_of_allocation = {1, 2, 3};
  EXPECT_THAT(page_of_history(trace), AllOf(HasSubstr("<title>wide (/srv/model.py:1) "),
                                            HasSubstr("<title>narrow (/srv/model.py:2) 3 B"), Not(HasSubstr("hair"))));
}

TEST(FlameGraph, OfARecursionShowsTheOuter201Calls) {
  replay::Trace trace = replay::read_one("a 0 512 0\nf 0\n");
  trace.stacks.stacks = {{}, {}};
  for (std::uint32_t i = 0; i < 300; ++i) {
    trace.stacks.frames.push_back({"again", "/srv/deep.py", i + 1});
    trace.stacks.stacks[1].push_back(299 - i);  // the innermost first
  }
  trace.stack_of_allocation = {1};
  const std::string page = page_of_history(trace);
  EXPECT_EQ(times_in(page, "<title>again (/srv/deep.py:"), 201);
  EXPECT_THAT(page, AllOf(HasSubstr("(/srv/deep.py:201)"), Not(HasSubstr("(/srv/deep.py:202)"))));
}

TEST(FlameGraph, HasAtMost4000Rectangles) {
  replay::Trace trace;
  std::string events;
  for (int block = 0; block < 40; ++block) events += "a " + std::to_string(block) + " 512 0\n";
  trace = replay::read_one(events);
  trace.stacks.stacks = {{}};
  for (std::uint32_t block = 0; block < 40; ++block) {
    trace.stacks.stacks.emplace_back();
    for (std::uint32_t i = 0; i < 150; ++i) {
      trace.stacks.stacks.back().push_back(static_cast<std::uint32_t>(trace.stacks.frames.size()));
      trace.stacks.frames.push_back({"call", "/srv/many.py", block * 150 + i + 1});
    }
    trace.stack_of_allocation.push_back(block + 1);
  }
  EXPECT_EQ(times_in(page_of_history(trace), "<title>call (/srv/many.py:"), 4000) << "of 6000 calls";
}

// "[no stack]" takes 70 points, with the 3 before it: of 9600 bytes over 960 points those are 700.
TEST(FlameGraph, NamesBytesWithoutAStackWhereTheWordsHaveRoom) {
  const auto page = [](const std::string& known, const std::string& unknown) {
    replay::Trace trace = replay::read_one("a 0 " + known + " 0\na 1 " + unknown + " 0\n");
    trace.stacks = {.frames = {{"forward", "/srv/model.py", 31}}, .stacks = {{}, {0}}};
    trace.stack_of_allocation = {1, 0};
    return page_of_history(trace);
  };
  EXPECT_THAT(page("8895", "705"), AllOf(HasSubstr("no stack is known: 705 B"), HasSubstr(">[no stack]</text>")));
  EXPECT_THAT(page("8905", "695"), AllOf(HasSubstr("no stack is known: 695 B"), Not(HasSubstr("[no stack]"))));
}

Segment segment_of(std::vector<BlockInfo> blocks) {
  Segment segment;
  segment.address = 4096;
  segment.blocks = std::move(blocks);
  for (const BlockInfo& block : segment.blocks) segment.bytes += block.bytes;
  return segment;
}

TEST(TracePage, OfAStateWithoutAHistorySaysSo) {
  constexpr const char* kSaid =
      "<p class=\"note\">The file holds a state and no history: what lived at that moment is below.</p>";
  const auto page = [](std::string_view events, bool has_calls) {
    replay::Trace trace = replay::read_one(events);
    trace.recorded.emplace().final_segments = {segment_of({{4096, 600, 600, BlockState::kActive, 1}})};
    if (has_calls) trace.recorded->actions = {{HistoryAction::kSegmentAlloc, 600, 0}};
    return page_of_history(trace);
  };
  EXPECT_THAT(page("a 0 600 0\n", false), HasSubstr(kSaid));
  EXPECT_THAT(page("a 0 600 0\nf 0\n", false), Not(HasSubstr(kSaid))) << "something was freed";
  EXPECT_THAT(page("a 0 600 0\n", true), Not(HasSubstr(kSaid))) << "something was asked of the device";
}

TEST(TracePage, ShowsWhatWasReservedWhereTheFileHasCallsOfTheDevice) {
  replay::Trace trace = replay::read_one("a 0 600 0\nf 0\n");
  trace.recorded.emplace().reserved_bytes = 2 * MiB;
  EXPECT_THAT(page_of_history(trace), Not(HasSubstr("<title>reserved, ")));
  trace.recorded->actions = {{HistoryAction::kSegmentAlloc, 2 * MiB, 0}};
  EXPECT_THAT(page_of_history(trace), HasSubstr("<title>reserved, as recorded</title>"));
  trace.replayed_under = "caching";
  EXPECT_THAT(page_of_history(trace), HasSubstr("<title>reserved, in the replay under caching</title>"));
}

TEST(TracePage, CountsTheRequestsThatRanOutInTheRecording) {
  replay::Trace trace = replay::read_one("a 0 600 0\na 1 700 0\nf 1\na 2 800 0\nf 2\nf 0\n");
  const auto remark = [](const std::string& words) {
    return HasSubstr("<p class=\"bad\">" + words + " ran out of memory in the recording, the first at event 1.</p>");
  };
  EXPECT_THAT(page_of_history(trace), Not(HasSubstr("ran out of memory")));
  trace.ooms.emplace_back().event = 1;
  EXPECT_THAT(page_of_history(trace), remark("1 request"));
  trace.ooms.emplace_back().event = 3;
  EXPECT_THAT(page_of_history(trace), remark("2 requests"));
}

TEST(TracePage, SaysHowMuchOfTheSegmentsIsIdleAndInOnePiece) {
  replay::Trace trace = replay::read_one("a 0 600 0\nf 0\n");
  const auto page = [&](std::vector<BlockInfo> blocks) {
    trace.recorded.emplace().final_segments = {segment_of(std::move(blocks))};
    return page_of_history(trace);
  };
  EXPECT_THAT(page({{4096, 600, 600, BlockState::kActive, 1}}),
              HasSubstr(" 600 B reserved; 600 B in use, 0 B idle, of which 0 B in one piece."));
  EXPECT_THAT(page({{4096, 200}, {4296, 100, 90, BlockState::kActive, 1}, {4396, 300}}),
              HasSubstr(" 600 B reserved; 100 B in use, 500 B idle, of which 300 B in one piece."));
}

// The first that goes is how often it asked, then how it was written; what histories are compared by stays longer.
TEST(TraceFactsTable, OnNarrowScreensLosesCountsAndTheFormatBeforeTheRest) {
  Table table = trace_facts_table();
  for (const char* name : {"one", "two"}) {
    replay::Trace trace = replay::read_one("a 0 600 0\nf 0\n");
    trace.name = name;
    add_trace_facts(table, trace);
  }
  std::vector<std::string> gone;
  for (std::size_t columns = 300; columns > 20; --columns) {
    std::string text = table.text({.columns = columns});
    std::ranges::replace(text, '\n', ' ');
    const std::size_t note = std::min(text.find("Not shown in"), text.size());
    for (const char* title : {"format", "frees", "allocs", "streams"}) {
      if (text.find(title, note) != std::string::npos && std::ranges::find(gone, title) == gone.end())
        gone.emplace_back(title);
    }
  }
  EXPECT_THAT(gone, ElementsAre("frees", "allocs", "format", "streams"));
}

}  // namespace
}  // namespace tenon
