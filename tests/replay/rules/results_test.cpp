// What is made of histories and rows: steps and growth, who holds the peak, parts, verdicts, gates and curves. Each is
// held against results.txt, on histories of drawn shapes; who changes an answer on purpose writes the table anew
// (support/recorded_table.h), with the filter ResultsTable*. Beside it what holds of all of them.
// Long: one table for all that is said of results.
#include "replay/drawn_history.h"
#include "replay/support.h"
#include "support/recorded_table.h"

#include <tenon/core/error.h>
#include <tenon/replay/advise/capacity_curve.h>
#include <tenon/replay/advise/capacity_walk.h>
#include <tenon/replay/advise/own_allocators.h>
#include <tenon/replay/advise/pytorch_settings.h>
#include <tenon/replay/results/compare.h>
#include <tenon/replay/results/fidelity.h>
#include <tenon/replay/results/figure_kind.h>
#include <tenon/replay/results/gate.h>
#include <tenon/replay/results/growth.h>
#include <tenon/replay/results/holders.h>
#include <tenon/replay/results/median.h>
#include <tenon/replay/results/row_fields.h>
#include <tenon/replay/results/row_json.h>
#include <tenon/replay/results/slice_diff.h>
#include <tenon/replay/results/trust.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenon::replay {
namespace {

void expect_recorded(const std::string& what, const std::string& outcome) {
  static test::RecordedTable table("tests/replay/rules/results.txt");
  table.expect(what, outcome);
}

/// A history of steps that leave something behind.
struct Shape {
  const char* name;
  int steps;
  bool has_marks, has_stacks;
  int leak_every;            ///< step; 0: never
  std::uint64_t leak_bytes;  ///< a random size up to it where `is_ragged`
  bool is_ragged, is_freed_late;
  int layers;
};

constexpr Shape kShapes[] = {{"marked leak", 12, true, true, 1, 1 << 20, false, false, 4},
                             {"marked, no stacks", 12, true, false, 1, 1 << 20, false, false, 4},
                             {"rare leak", 40, true, true, 5, 300'000, false, false, 3},
                             {"ragged leak", 40, true, true, 1, 5'000, true, false, 3},
                             {"ragged, no stacks", 40, true, false, 1, 5'000, true, false, 3},
                             {"no marks", 14, false, true, 1, 700'000, false, false, 5},
                             {"no marks, no stacks", 14, false, false, 2, 700'000, false, false, 5},
                             {"queue", 30, true, true, 1, 1 << 20, false, true, 3},
                             {"no growth", 20, true, true, 0, 0, false, false, 4},
                             {"three steps", 3, true, true, 1, 1 << 20, false, false, 4},
                             {"long", 150, true, true, 3, 4096, false, false, 2}};

Trace stepped_history(const Shape& shape) {
  std::mt19937_64 random(77);
  TraceBuilder builder("stepped");
  std::vector<std::uint32_t> queue;
  std::vector<StackId> stacks;
  const auto get = [&](std::uint64_t bytes, StackId stack, std::uint64_t stream = 0) {
    stacks.push_back(stack);
    return builder.allocate(bytes, stream);
  };
  for (int i = 0; i < 3; ++i) get(200'000 + static_cast<std::uint64_t>(i), 1);
  builder.recording_starts();
  for (int step = 0; step < shape.steps; ++step) {
    if (shape.has_marks) builder.mark("step " + std::to_string(step));
    std::vector<std::uint32_t> kept;
    for (int layer = 0; layer < shape.layers; ++layer) {
      kept.push_back(get(1'000'000 + static_cast<std::uint64_t>(layer) * 4096, 2));
      builder.free(get(50'000, 3));
    }
    if (shape.leak_every != 0 && step % shape.leak_every == 0)
      queue.push_back(get(shape.is_ragged ? 600 + random() % shape.leak_bytes : shape.leak_bytes, 4, random() % 2));
    if (shape.is_freed_late && queue.size() > 6) {
      builder.free(queue.front());
      queue.erase(queue.begin());
    }
    while (!kept.empty()) {
      builder.free(get(400'000, 5));
      builder.free(kept.back());
      kept.pop_back();
    }
    builder.free(get(77, 6));
  }
  Trace trace = std::move(builder).finish();
  if (!shape.has_stacks) return trace;
  trace.stacks.frames = {{"train", "train.py", 10},     {"forward", "net.py", 20},  {"torch::empty", "torch.cpp", 1},
                         {"remember", "log.py", 30},    {"backward", "net.py", 40}, {"at::_ops::mm::call", "??", 0},
                         {"zero_grad", "train.py", 12}, {"build", "net.py", 5}};
  trace.stacks.stacks = {{}, {2, 7}, {2, 1, 0}, {5, 1, 0}, {2, 3, 0}, {5, 4, 0}, {6, 0}};
  trace.stack_of_allocation = stacks;
  return trace;
}

std::string text_of(const HistoryGrowth& growth) {
  std::string text = fmt::format("{} steps by {} from {} on{}", growth.steps, growth.told_by, growth.begins,
                                 growth.unknown_because.empty() ? "" : ", " + growth.unknown_because);
  for (const GrowingSite& site : growth.sites)
    text += fmt::format("; {} {:.3f} a step, {} in {}, {} to {} on {}", site.site, site.bytes_per_step, site.bytes,
                        site.blocks, site.least_block_bytes, site.most_block_bytes, site.stream);
  return text;
}

TEST(ResultsTable, OfGrowthAndHoldersIsAsItWas) {
  for (const Shape& shape : kShapes) {
    const Trace trace = stepped_history(shape);
    const Steps steps = steps_of(trace);
    std::string ends;
    for (const std::uint64_t end : steps.ends) ends += std::to_string(end) + " ";
    expect_recorded(std::string(shape.name) + " steps",
                    fmt::format("{} by {}, {}", steps.ends.size(), steps.told_by, hash_of(ends)));
    for (const bool names_all : {false, true}) {
      const HistoryGrowth growth = growth_of(trace, names_all);
      const std::string name = std::string(shape.name) + (names_all ? " with all frames" : "");
      expect_recorded(name + " growth", text_of(growth));
      const Trace without = without_growth(trace, growth, names_all);
      expect_recorded(name + " without", fmt::format("{}, {} events, {} live", hash_of(all_of(without)),
                                                     without.facts.events, without.facts.end_live_bytes));
    }
    std::string holders;
    for (const Holder& holder : holders_at_peak(trace))
      holders += fmt::format("{} of {} in {}; ", holder.stack, holder.bytes, holder.blocks);
    expect_recorded(std::string(shape.name) + " holders", holders);
  }
}

TEST(ResultsTable, OfPartsIsAsItWas) {
  for (const std::uint64_t seed : {31, 32}) {
    const Trace trace = drawn_history(seed, 200, seed == 31);
    const std::uint64_t all = trace.facts.events;
    for (const auto& [from, to] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
             {0, all}, {0, 1}, {1, all}, {all / 3, all / 2}, {all - 1, all}, {all / 2, all / 2}}) {
      const std::uint64_t begin = outside_requests(trace, from), end = outside_requests(trace, to);
      std::string outcome;
      try {
        const Trace part = slice(trace, begin, end);
        outcome = hash_of(all_of(part));
        const TraceDifference difference = replay::difference(trace, part);
        outcome += fmt::format(", {} at {}, {}", difference.are_equal ? "equal" : "differs",
                               difference.first_event.value_or(kNoEvent), difference.what);
        EXPECT_TRUE(replay::difference(part, part).are_equal);
      } catch (const Error& error) {
        outcome = one_line(error.what());
      }
      expect_recorded(fmt::format("part {} to {} of {}", from, to, seed),
                      fmt::format("{} to {}, {}", begin, end, outcome));
    }
    for (std::uint64_t event = 0; event <= all; event += 7) EXPECT_LE(outside_requests(trace, event), event);
    std::string purposes;
    for (const std::uint64_t bytes : purposes_at_peak(trace)) purposes += std::to_string(bytes) + " ";
    expect_recorded(fmt::format("purposes at the peak of {}", seed), purposes);
  }
  const Trace marked = stepped_history(kShapes[0]);
  std::uint64_t before = 0;
  for (int step = 0; step < 12; ++step) {
    const std::uint64_t event = event_of_mark(marked, "step " + std::to_string(step));
    EXPECT_GT(event + (step == 0), before);
    before = event;
  }
  EXPECT_THROW(event_of_mark(marked, "step 12"), ConfigError);
}

/// A row in which each figure is another number.
ReplayRow odd_row(double scale) {
  ReplayRow row;
  row.trace = "t";
  row.allocator = "caching";
  double next = 1;
  for_each_number(row, [&](std::string_view, auto& value) {
    value = static_cast<std::remove_reference_t<decltype(value)>>(scale * 1000 * ++next);
  });
  for (Latency* latency : {&row.allocate_ns, &row.free_ns})
    for_each_percentile(*latency, [&](std::string_view, double& value) { value = scale * 10 * ++next; });
  return row;
}

std::vector<std::string> all_metrics() {
  std::vector<std::string> names;
  const ReplayRow row;
  for_each_number(row, [&](std::string_view key, const auto&) { names.emplace_back(key); });
  for (const char* kind : {"allocate_ns.", "free_ns."})
    for_each_percentile(row.allocate_ns,
                        [&](std::string_view key, double) { names.push_back(kind + std::string(key)); });
  names.emplace_back("first_oom_event");
  return names;
}

TEST(ResultsTable, OfMetricsAndGatesIsAsItWas) {
  for (const bool has_ended : {false, true}) {
    ReplayRow now = odd_row(1.02), before = odd_row(1);
    if (has_ended) now.ooms = before.ooms = 0;
    for (const std::string& metric : all_metrics()) {
      std::string outcome = fmt::format("{}{}", is_measured(metric) ? "measured, " : "",
                                        needs_completion(metric) ? "needs the end, " : "");
      outcome += fmt::format("{:.6g}", metric_of(now, metric).value_or(-1));
      for (const char* value : {"> 5", ">= 5%", "< +2%", "> +2%", "<= -1%", "> +100MiB", "== 3GiB", "!= 20ms", "> 1"}) {
        try {
          const Gate gate = parse_gate(metric + " " + value);
          outcome += fmt::format("; {} {:.6g}{}{}", static_cast<int>(gate.op), gate.value, gate.is_relative ? "r" : "",
                                 gate.is_percentage ? "%" : "");
          for (const std::string& sentence : tripped(gate, {now}, {before})) outcome += " " + sentence;
        } catch (const ConfigError& error) {
          outcome += "; refused " + hash_of(error.what());
        }
      }
      expect_recorded("gates on " + metric + (has_ended ? " at the end" : ""), outcome);
    }
  }
  for (const char* text : {"",
                           "peak_reserved_bytes",
                           "peak_reserved_bytes >",
                           "> 3",
                           "peak_reserved_byts > 3",
                           "ooms > x",
                           "ooms > +-3",
                           "ooms > 0x10",
                           "ooms > inf",
                           "ooms > 3%",
                           "excess > 3%",
                           "excess > 3.5 %",
                           "ooms>=3",
                           "ooms = 3",
                           "ooms==3",
                           "ooms != 3",
                           "seconds < 3 min",
                           "seconds < 20us",
                           "clock_ns < 3us",
                           "harness_seconds > 5ns",
                           "peak_reserved_bytes > 1.5 GiB",
                           "peak_reserved_bytes > +1.5GiB",
                           "peak_reserved_bytes > -0",
                           "excess > 5GiB",
                           "ooms > 3 s",
                           "peak_reserved_bytes > 3%MiB",
                           "first_oom_event < 100"}) {
    std::string outcome;
    try {
      const Gate gate = parse_gate(text);
      outcome = fmt::format("{} {} {:.9g} {}{}", gate.metric, static_cast<int>(gate.op), gate.value, gate.is_relative,
                            gate.is_percentage);
    } catch (const ConfigError& error) {
      outcome = error.what();
      std::ranges::replace(outcome, '\n', '|');
    }
    expect_recorded(fmt::format("gate '{}'", text), outcome);
  }
}

TEST(GateRules, EachOperatorHoldsAsItIsWritten) {
  for (const double left : {1.0, 2.0, 3.0}) {
    EXPECT_EQ(holds(Gate::Op::kGreater, left, 2), left > 2);
    EXPECT_EQ(holds(Gate::Op::kGreaterEqual, left, 2), left >= 2);
    EXPECT_EQ(holds(Gate::Op::kLess, left, 2), left < 2);
    EXPECT_EQ(holds(Gate::Op::kLessEqual, left, 2), left <= 2);
    EXPECT_EQ(holds(Gate::Op::kEqual, left, 2), left == 2);
    EXPECT_EQ(holds(Gate::Op::kNotEqual, left, 2), left != 2);
  }
}

TEST(ResultsTable, OfVerdictsIsAsItWas) {
  int number = 0;
  for (const double scale : {0.5, 1.0, 1.001})
    for (const int outcome : {0, 1, 2, 3}) {
      ReplayRow before = odd_row(1), row = odd_row(scale);
      before.pass_seconds = {3, 1, 2};
      row.pass_seconds = {3 * scale, 2 * scale, 2.5 * scale, 2.25 * scale};
      if ((outcome & 1) != 0) row.first_oom_event = 12;
      if ((outcome & 2) != 0) before.first_oom_event = 13;
      std::string text;
      for (const std::string& sentence : verdicts({row}, {before})) text += sentence + " ";
      for (const std::string& sentence : timing_remarks({row, before, odd_row(1)})) text += sentence + " ";
      text += ran_out(row);
      ReplayRow more = row;
      add_passes(more, before);
      text += fmt::format(" {} passes, {:.4g} s, {:.4g}, {:.4g}", more.pass_seconds.size(), more.seconds,
                          more.events_per_second, more.harness_seconds);
      expect_recorded(fmt::format("verdict {}", ++number), text);
    }
  ReplayRow failed = odd_row(1), ideal = odd_row(1), other = odd_row(1), sized = odd_row(1);
  failed.failure = "it broke";
  ideal.allocator = kIdealAllocator;
  other.trace = "another";
  sized.capacity_bytes = 1 << 30;
  EXPECT_TRUE(verdicts({failed, ideal, other, sized}, {odd_row(1)}).empty());
  EXPECT_EQ(matching_row({other, sized, odd_row(2)}, odd_row(1))->events, odd_row(2).events);
  EXPECT_EQ(matching_row({other, sized}, odd_row(1)), nullptr);
}

TEST(Rounds, AreAddedToTheRowWithTheFirstFailureAndTheBestTime) {
  for (const char* own : {"", "own"})
    for (const char* other : {"", "other"})
      for (const double own_harness : {0.0, 2.0})
        for (const double other_harness : {0.0, 1.0, 3.0}) {
          ReplayRow row = odd_row(1), round = odd_row(1);
          row.failure = own, round.failure = other;
          row.harness_seconds = own_harness, round.harness_seconds = other_harness;
          row.events = 100;
          round.pass_seconds = {0.5, 0.25};
          add_passes(row, round);
          EXPECT_EQ(row.failure, *own != 0 ? own : other);
          EXPECT_EQ(row.seconds, 0.25);
          EXPECT_EQ(row.events_per_second, 400);
          EXPECT_EQ(row.harness_seconds, own_harness == 0     ? other_harness
                                         : other_harness == 0 ? own_harness
                                                              : std::min(own_harness, other_harness));
          add_passes(row, ReplayRow());
          EXPECT_EQ(row.pass_seconds.size(), 2u);
        }
  ReplayRow at_once = odd_row(1), untimed = odd_row(1);
  at_once.pass_seconds = {0};
  add_passes(at_once, ReplayRow());
  EXPECT_EQ(at_once.events_per_second, 0);
  for (const bool is_measured_now : {false, true}) {
    ReplayRow now = untimed, before = untimed;
    (is_measured_now ? now : before).pass_seconds = {1};
    EXPECT_NE(verdicts({now}, {before}).at(0).find("seconds not measured"), std::string::npos);
  }
  EXPECT_EQ(verdicts({at_once}, {at_once}).at(0).find("%"), std::string::npos) << "of nothing there are no percents";
}

TEST(Medians, AreTheMiddleOfTheSamplesAndWithinTheirInterval) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({3, 1}), 2);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  std::mt19937_64 random(4);
  for (std::size_t count = 1; count < 9; ++count) {
    std::vector<double> samples;
    for (std::size_t i = 0; i < count; ++i) samples.push_back(static_cast<double>(random() % 1000));
    const Interval interval = bootstrap_median(samples);
    EXPECT_EQ(interval.middle, median(samples));
    EXPECT_LE(interval.low, interval.middle);
    EXPECT_GE(interval.high, interval.middle);
    EXPECT_GE(interval.low, std::ranges::min(samples));
    expect_recorded(fmt::format("interval of {} samples", count),
                    fmt::format("{} {} {}", interval.low, interval.middle, interval.high));
  }
}

TEST(ResultsTable, OfRowsAsJsonIsAsItWas) {
  ReplayRow row = odd_row(1);
  row.options = {{"max_split_size", "64MiB"}};
  row.label = "caching:max_split_size=64MiB";
  row.capacity_bytes = 123;
  row.first_oom_event = 9;
  row.pass_seconds = {0.5, 0.25};
  row.curve = {{1, 2, 3}, {4, 5, 6}};
  row.actions = {{HistoryAction::kSegmentAlloc, 5, 1}, {HistoryAction::kOom, 6, 2}};
  row.layout = {
      Segment{{.address = 4096, .bytes = 512, .stream = {3}, .is_large = false, .is_expandable = true, .pool = 2},
              {{4096, 512, 100, BlockState::kActive, 1}}}};
  ReplayRow broken = odd_row(2);
  broken.failure = "it broke\n\"here\"";
  broken.failed_event = 4;
  broken.crash_stack = {"f", "g"};
  const std::vector<ReplayRow> rows{row, broken};
  for (const bool with_timelines : {false, true}) {
    const std::string text = rows_json(rows, "{\"is\":1}", with_timelines, {parse_gate("ooms > 3")}, {{"one", "two"}});
    expect_recorded(with_timelines ? "json with timelines" : "json",
                    hash_of(text) + fmt::format(", {} bytes", text.size()));
    const std::string path = scratch("rows.json");
    std::ofstream(path) << text;
    const std::vector<ReplayRow> read = read_rows(path);
    ASSERT_EQ(read.size(), 2u);
    for (const std::string& metric : all_metrics())
      EXPECT_EQ(metric_of(read[0], metric), metric_of(row, metric)) << metric;
    EXPECT_EQ(read[0].spec(), row.spec());
    EXPECT_EQ(read[0].options, row.options);
    EXPECT_EQ(read[0].capacity_bytes, row.capacity_bytes);
    EXPECT_EQ(read[0].pass_seconds, row.pass_seconds);
    EXPECT_EQ(read[1].failure, broken.failure);
  }
}

TEST(ResultsTable, OfCapacityCurvesIsAsItWas) {
  load_all_plugins();
  std::vector<Trace> traces{drawn_history(41, 120, true)};
  for (const char* spec : {"direct", "caching", "caching:garbage_collection_threshold=0.5"}) {
    const StackConfig policy = allocator_from_spec(spec);
    const ReplayRow unlimited = run_job(traces[0], policy, {.timed_passes = 0, .time_each_call = false});
    for (const bool is_coarse : {false, true}) {
      const CapacityCurve curve = capacity_curve(
          traces, policy, {.peak_reserved_bytes = unlimited.peak_reserved_bytes, .is_coarse = is_coarse, .jobs = 1});
      std::string points;
      for (const CapacityPoint& point : curve.points) points += fmt::format("{}:{} ", point.capacity_bytes, point.ooms);
      expect_recorded(fmt::format("curve of {}{}", spec, is_coarse ? ", coarse" : ""),
                      fmt::format("{} from {}, {}{}", hash_of(points), curve.safe_from_bytes.value_or(0),
                                  curve.points.size(), curve.failure));
    }
    expect_recorded(fmt::format("{} on capacity", spec), depends_on_capacity(policy) ? "depends" : "does not depend");
  }
}

TEST(TypableCapacities, AreTheNextLargerThatIsWrittenShortly) {
  std::mt19937_64 random(9);
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t bytes = (std::uint64_t{1} << (random() % 45)) + random() % 5000;
    const std::uint64_t typable = typable_capacity(bytes);
    EXPECT_GE(typable, bytes);
    EXPECT_EQ(typable_capacity(typable), typable);
    expect_recorded(fmt::format("typable {}", bytes), format_size_exact(typable));
  }
}

TEST(ResultsTable, OfSettingsToTryIsAsItWas) {
  for (const std::uint64_t largest :
       {std::uint64_t{1}, 20 * MiB, 21 * MiB, 64 * MiB, 128 * MiB, 129 * MiB, 600 * MiB, 5 * GiB}) {
    std::string settings;
    for (const std::string& setting : settings_to_try(largest)) settings += setting + " ";
    expect_recorded(fmt::format("to try where {} is the largest", largest), settings);
  }
  for (const PytorchSetting& setting : pytorch_settings()) {
    EXPECT_EQ(find_pytorch_setting(setting.key), &setting);
    EXPECT_EQ(key_of(std::string(setting.key) + ":5"), setting.key);
  }
  EXPECT_EQ(find_pytorch_setting("nothing"), nullptr);
  for (const char* name : {"gpt2.trace.gz", "a/b.pickle", "x", "x.txt", ".trace", "a.b.c"})
    expect_recorded(fmt::format("plan of {}", name), plan_name_for(name));
}

TEST(ResultsTable, OfFidelityIsAsItWas) {
  for (const std::uint64_t recorded : {0, 1, 9, 10, 11, 99, 100, 109, 110})
    for (const std::uint64_t common : {0, 1, 9, 10, 11}) {
      Fidelity fidelity{.is_known = true, .recorded_actions = recorded, .common_actions = common};
      EXPECT_EQ(fidelity.reproduces_nothing(), recorded >= 10 && common < recorded / 10) << recorded << ", " << common;
      fidelity.is_exact = true;
      EXPECT_FALSE(fidelity.reproduces_nothing());
      fidelity.is_exact = fidelity.is_known = false;
      EXPECT_FALSE(fidelity.reproduces_nothing());
    }
  int number = 0;
  for (const bool is_exact : {false, true})
    for (const std::uint64_t actions : {0, 1, 2})
      for (const int words : {0, 1, 2, 3}) {
        Fidelity fidelity{.is_known = true,
                          .settings = (words & 1) != 0 ? "max_split_size_mb:64" : "",
                          .is_stated = (words & 2) != 0,
                          .recorded_reserved_bytes = 5 * MiB,
                          .replayed_reserved_bytes = 4 * MiB,
                          .recorded_peak_bytes = 8 * MiB,
                          .replayed_peak_bytes = 9 * MiB,
                          .recorded_actions = actions,
                          .matching_actions = actions / 2,
                          .is_exact = is_exact,
                          .ties_by_address = (words & 1) != 0};
        if ((words & 2) != 0) fidelity.capacity_bytes = 7 * MiB;
        expect_recorded(fmt::format("fidelity {}", ++number), fidelity.sentence());
      }
  expect_recorded("fidelity unknown", Fidelity{.why_unknown = "nobody said"}.sentence());
}

}  // namespace
}  // namespace tenon::replay
