// What tells the steps of a history without marks, against a plain model of the rule: a request that comes as often as
// many others, with its stack where it has one, first of those whose blocks are mostly given back.
#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/memory/history/growth.h>
#include <tenon/replay/results/growth.h>
#include <tenon/replay/results/own_frames.h>
#include <tenon/replay/trace/trace_builder.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace tenon::replay {
namespace {

/// An allocation of a drawn history.
struct Made {
  StackId stack = 0;
  std::uint64_t bytes = 0, stream = 0, event = 0;
  bool is_given_back = false, is_seed = false;
};

struct DrawnHistory {
  Trace trace;
  std::vector<Made> made;
};

/// Kinds of requests, each as often as it was drawn, in a drawn order.
DrawnHistory drawn(std::mt19937_64& random, bool has_stacks) {
  std::vector<Made> wanted;
  const std::uint64_t kinds = 1 + random() % 25, usual = 3 + random() % 4;
  for (std::uint64_t kind = 0; kind < kinds; ++kind) {
    const std::uint64_t count = random() % 3 == 0 ? 1 + random() % 9 : usual, kept_of_8 = random() % 9;
    const auto stack = static_cast<StackId>(has_stacks ? random() % 4 : 0);
    for (std::uint64_t i = 0; i < count; ++i)
      wanted.push_back({.stack = stack,
                        .bytes = 1000 * (1 + kind % 13),
                        .stream = kind % 2,
                        .is_given_back = random() % 8 >= kept_of_8});
  }
  std::ranges::shuffle(wanted, random);
  const std::size_t seeds = random() % 3;
  TraceBuilder builder("drawn");
  std::vector<StackId> stacks;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    wanted[i].event = builder.counted();
    wanted[i].is_seed = i < seeds;
    const std::uint32_t slot = builder.allocate(wanted[i].bytes, wanted[i].stream);
    stacks.push_back(wanted[i].stack);
    if (wanted[i].is_seed) wanted[i].is_given_back = false;
    if (i + 1 == seeds) builder.recording_starts();
    if (wanted[i].is_given_back) builder.free(slot);
  }
  DrawnHistory history{std::move(builder).finish(), std::move(wanted)};
  if (!has_stacks) return history;
  history.trace.stack_of_allocation = stacks;
  for (const char* name : {"first", "second", "third"})
    history.trace.stacks.frames.push_back({.name = name, .file = "train.py", .line = 10});
  history.trace.stacks.stacks = {{}, {0}, {1}, {2}};
  return history;
}

/// The rule, one sentence after the other.
std::optional<Steps> steps_by(const DrawnHistory& history, bool of_returned, bool of_any_size) {
  using Kind = std::tuple<StackId, std::uint64_t, std::uint64_t>;
  struct Counted {
    std::size_t first = 0;
    std::uint64_t count = 0, returned = 0;
    std::vector<std::uint64_t> events;
  };
  std::map<Kind, Counted> kinds;
  for (std::size_t i = 0; i < history.made.size(); ++i) {
    const Made& one = history.made[i];
    if (one.is_seed || (of_any_size && one.stack == 0)) continue;
    Counted& counted = kinds[{one.stack, of_any_size ? 0 : one.bytes, one.stream}];
    if (counted.count++ == 0) counted.first = i;
    counted.returned += one.is_given_back;
    counted.events.push_back(one.event);
  }
  if (of_returned) std::erase_if(kinds, [](const auto& kind) { return kind.second.returned * 2 < kind.second.count; });
  // Of a stack whose sizes come unequally often none tells: nine tenths have to come a whole number of times as often.
  const auto is_irregular = [kinds](const auto& kind) {
    const StackId stack = std::get<0>(kind.first);
    std::uint64_t of_stack = 0, as_often = 0;
    for (const auto& [other, counted] : kinds) {
      if (std::get<0>(other) != stack) continue;
      of_stack += counted.count;
      if (counted.count % kind.second.count == 0) as_often += counted.count;
    }
    return stack != 0 && 10 * as_often < 9 * of_stack;
  };
  if (!of_any_size) std::erase_if(kinds, is_irregular);
  std::size_t all = 0;
  std::map<std::uint64_t, std::size_t> alike;
  for (const auto& [kind, counted] : kinds)
    if (counted.count >= kLeastStepsOfGrowth) ++all, ++alike[counted.count];
  for (const auto& [count, how_many] : alike) {
    const bool are_a_tenth = 10 * how_many >= all;
    if (!are_a_tenth || (how_many == 1 && all != 1)) continue;
    const std::pair<const Kind, Counted>* first = nullptr;
    for (const auto& kind : kinds)
      if (kind.second.count == count && (first == nullptr || kind.second.first < first->second.first)) first = &kind;
    const auto& [stack, bytes, stream] = first->first;
    const std::string site = stack == 0 ? "" : call_site(history.trace, stack);
    const std::string blocks = fmt::format("blocks of {} on stream {}", format_bytes(bytes), stream);
    return Steps{
        .ends = first->second.events,
        .told_by = of_any_size ? "what is allocated at " + site : blocks + (site.empty() ? "" : " at " + site)};
  }
  return std::nullopt;
}

TEST(StepsModel, AreToldByWhatTheRuleSaysOfDrawnHistories) {
  std::mt19937_64 random(23);
  int told = 0, untold = 0, by_any_size = 0;
  for (int round = 0; round < 600; ++round) {
    SCOPED_TRACE(round);
    const bool has_stacks = round % 2 == 0;
    const DrawnHistory history = drawn(random, has_stacks);
    std::optional<Steps> wanted;
    for (const bool of_returned : {true, false})
      for (const bool of_any_size : {false, true})
        if (!wanted && (!of_any_size || has_stacks)) {
          wanted = steps_by(history, of_returned, of_any_size);
          if (wanted && of_any_size) ++by_any_size;
        }
    const Steps steps = steps_of(history.trace);
    ASSERT_EQ(steps.ends, wanted ? wanted->ends : std::vector<std::uint64_t>());
    ASSERT_EQ(steps.told_by, wanted ? wanted->told_by : "");
    ++(wanted ? told : untold);
  }
  EXPECT_GT(told, 100);
  EXPECT_GT(untold, 20);
  EXPECT_GT(by_any_size, 5);
}

TEST(StepsModel, WithMarksThatNameStepsAreThese) {
  for (const char* name :
       {"step 1", "step", "steps", "iteration 3", "ProfilerStep#4", "my step", "Step 1", "epoch", ""}) {
    const std::string text = std::string("a 0 8 0\nf 0\nm ") + name + "\na 1 8 0\nf 1\n";
    const Steps steps = steps_of(read_one(text));
    const std::string_view mark = name;
    const bool is_step = mark.starts_with("step") || mark.starts_with("iteration") || mark.starts_with("ProfilerStep");
    EXPECT_EQ(steps.ends, is_step ? std::vector<std::uint64_t>{2} : std::vector<std::uint64_t>()) << name;
    EXPECT_EQ(steps.told_by, is_step ? "marks" : "") << name;
  }
}

}  // namespace
}  // namespace tenon::replay
