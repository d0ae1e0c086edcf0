// What reports say of fixed results: every page, table, picture and sentence is that of said.txt, to the letter. Who
// changes one on purpose writes the table anew (support/recorded_table.h), with the filter Said*; the outcome of each
// line is a number for the whole text and the beginning of it.
#include "report/said.h"
#include "replay/support.h"
#include "support/scratch_folder.h"

#include <tenon/core/units.h>
#include <tenon/measure/compare/comparison.h>
#include <tenon/measure/compare/joined_results.h>
#include <tenon/measure/compare/result_set.h>
#include <tenon/memory/packing/pack.h>
#include <tenon/replay/advise/diagnosis.h>
#include <tenon/replay/advise/tune.h>
#include <tenon/replay/formats/pytorch/snapshot_writer.h>
#include <tenon/replay/results/row_json.h>
#include <tenon/replay/results/slice_diff.h>
#include <tenon/replay/trace/trace_builder.h>
#include <tenon/report/measure/bench_report.h>
#include <tenon/report/measure/compare_report.h>
#include <tenon/report/replay/doctor_report.h>
#include <tenon/report/replay/plan_report.h>
#include <tenon/report/replay/replay_html.h>
#include <tenon/report/replay/replay_table.h>
#include <tenon/report/replay/trace_html.h>
#include <tenon/report/replay/trace_report.h>
#include <tenon/report/replay/tune_report.h>
#include <tenon/report/svg.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/conf_policy.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
namespace {

using replay::ReplayRow;
using replay::Trace;

using test::in_all_formats;
using test::kEnvironment;
using test::kFormats;

void said(const std::string& what, const std::string& text) {
  static test::RecordedTable table("tests/report/said.txt");
  table.expect(what, test::outcome_of(text));
}

/// That a drawn history has.
constexpr int kPurposes = 7;

/// Blocks of two streams with marks, stacks, times and purposes.
Trace history(std::uint64_t seed, bool is_rich) {
  std::mt19937_64 random(seed);
  replay::TraceBuilder builder("history " + std::to_string(seed));
  std::vector<std::uint32_t> live;
  std::vector<StackId> stacks;
  for (int step = 0; step < 200; ++step) {
    if (is_rich) builder.at(1000 + 37 * step);
    if (step % 40 == 0) builder.mark("step " + std::to_string(step / 40));
    if (random() % 8 < 5 || live.empty()) {
      if (is_rich) builder.meant_for(static_cast<Purpose>(random() % kPurposes));
      live.push_back(
          builder.allocate((std::uint64_t{1} << (random() % 25)) + random() % 999, is_rich ? random() % 2 : 0));
      stacks.push_back(static_cast<StackId>(random() % 4));
    } else {
      std::swap(live[random() % live.size()], live.back());
      builder.free(live.back());
      live.pop_back();
    }
  }
  Trace trace = std::move(builder).finish();
  if (!is_rich) return trace;
  trace.stacks.frames = {{"forward<T>", "/m/model.py", 3}, {"malloc", "??", 0}, {"main", "main.cc", 70}};
  trace.stacks.stacks = {{}, {1, 0, 2}, {2}, {0}};
  trace.stack_of_allocation = stacks;
  return trace;
}

std::vector<ReplayRow> rows_of(const Trace& trace, std::optional<std::uint64_t> capacity) {
  load_all_plugins();
  replay::JobOptions options{.capacity_bytes = capacity, .timed_passes = 0, .time_each_call = false};
  options.keep_curve = options.keep_layout = true;
  std::vector<ReplayRow> rows;
  for (const char* spec : {"caching", "expandable", "direct"}) {
    rows.push_back(replay::run_job(trace, allocator_from_spec(spec), options));
    rows.back().label = spec;
  }
  rows[1].seconds = 0.25, rows[1].events_per_second = 1e6, rows[1].pass_seconds = {0.25, 0.3, 0.27};
  rows[1].allocate_ns = {10, 20, 30, 40, 50, 12}, rows[1].free_ns = {1, 2, 3, 4, 5, 1.5};
  rows.push_back(replay::ideal_row(trace, capacity));
  return rows;
}

/// Two histories, without a limit and on a device that is too small; of the last a row that broke.
std::vector<ReplayRow> some_rows() {
  std::vector<ReplayRow> rows = rows_of(history(1, false), std::nullopt);
  const Trace second = history(2, true);
  for (ReplayRow& row : rows_of(second, second.facts.peak_requested_bytes * 7 / 8)) rows.push_back(std::move(row));
  ReplayRow& broken = rows[rows.size() - 2];
  broken.failure = "it handed out the same memory twice";
  broken.failed_event = 12;
  broken.crash_stack = {"f()", "g()"};
  return rows;
}

/// What is written to a file of that ending.
template <class Write>
std::string written(const std::string& ending, const Write& write) {
  const std::string path = test::scratch_folder() + "said" + ending;
  write(path);
  std::string text = replay::content(path);
  std::filesystem::remove(path);
  return text;
}

TEST(SaidOfReplays, TablesAndPages) {
  const std::vector<ReplayRow> rows = some_rows();
  for (const TableFormat format : kFormats)
    said("replay table " + std::to_string(static_cast<int>(format)),
         render(replay_table(rows, format), format, kEnvironment));
  said("replay legend", replay_legend());
  std::string remarks;
  for (const std::string& remark : replay_remarks(rows)) remarks += remark + "\n";
  said("replay remarks", remarks);
  said("replay advice", replay_advice(rows));
  said("replay json", replay::rows_json(rows, kEnvironment, true));
  said("replay page", written(".html", [&](const std::string& path) {
         write_replay_html(path, {history(1, false), history(2, true)}, rows, kEnvironment);
       }));
  said("replay picture", written(".svg", [&](const std::string& path) {
         write_replay_svg(path, history(2, true), {rows.begin() + 4, rows.end()});
       }));
}

TEST(SaidOfTraces, TablesAndPages) {
  const Trace plain = history(3, false), rich = history(4, true);
  Table facts = trace_facts_table();
  add_trace_facts(facts, plain);
  add_trace_facts(facts, rich);
  said("trace facts", in_all_formats(facts));
  const replay::TraceDifference difference = replay::difference(plain, rich);
  said("trace difference", in_all_formats(trace_difference_table(plain, rich, difference)) +
                               trace_difference_text(plain, rich, difference) +
                               trace_difference_text(plain, plain, replay::difference(plain, plain)));
  for (const bool is_rich : {false, true})
    said(is_rich ? "trace page with stacks" : "trace page", written(".html", [&](const std::string& path) {
           const Trace& trace = is_rich ? rich : plain;
           write_trace_html(path, trace, rows_of(trace, std::nullopt));
         }));
}

/// A recording whose beginning was lost, of a device of that size.
Trace late_recording(std::optional<std::uint64_t> capacity) {
  load_all_plugins();
  replay::SnapshotImage image =
      replay::image_of_replay(history(5, true), policy_of_conf("max_split_size_mb:20"), capacity);
  image.is_replay = false;
  image.events.erase(image.events.begin(), image.events.begin() + 20);
  const std::string path = test::scratch_folder() + "late.pickle";
  replay::write_snapshot(image, path);
  Trace trace = replay::read_traces(path, {.with_stacks = true, .with_columns = true}).front();
  trace.name = "late", trace.path = "late.pickle";
  std::filesystem::remove(path);
  return trace;
}

TEST(SaidOfDiagnoses, WhatDoctorSaysOfAFile) {
  const Trace whole = late_recording(std::nullopt);
  for (const std::uint64_t capacity :
       {whole.facts.peak_requested_bytes / 2, whole.facts.peak_requested_bytes * 9 / 8, 1 * GiB}) {
    const replay::Diagnosis diagnosis = replay::diagnose(whole, {.capacity_bytes = capacity});
    std::string all;
    for (const TableFormat format : kFormats)
      all += diagnosis_report({diagnosis}, true, "late.pickle", format, kEnvironment);
    said("diagnosis at " + std::to_string(capacity), all);
  }
}

TEST(SaidOfTuning, WhatTuneSaysOfAHistory) {
  load_all_plugins();
  const std::vector<Trace> traces = {history(6, false)};
  for (const std::string capacity : {"", "96MiB"}) {
    replay::TuneOptions options;
    options.elapsed_seconds = [] { return 0.0; };
    options.jobs = 2;
    if (!capacity.empty()) options.capacity_bytes = parse_size(capacity);
    options.allocators = {{"direct", allocator_from_spec("direct")}};
    replay::TuneResult result = replay::tune(traces, options);
    result.seconds = 0;
    std::string all;
    const std::vector<std::string> files = {"a.trace"};
    for (const TableFormat format : kFormats)
      all += tune_report(result, {.traces = traces, .files = files, .capacity = capacity}, format, kEnvironment);
    said("tune " + capacity, all);
  }
  const Trace poor = replay::read_one("a 0 512 0\n");
  said("tune refusal", tune_refusal_json("poor", replay::judge(poor), {"poor.trace"}, kEnvironment));
}

TEST(SaidOfPlans, ThatTheyFitOrNot) {
  std::vector<packing::Buffer> buffers;
  for (std::int64_t i = 0; i < 12; ++i)
    buffers.push_back({.lower = i, .upper = i + 3, .size = static_cast<std::uint64_t>(1 + i % 4) * MiB});
  packing::PackResult packed = packing::pack(buffers);
  packed.seconds = 0.5;
  for (const std::optional<std::uint64_t> capacity :
       {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(4 * MiB),
        std::optional<std::uint64_t>(64 * MiB)}) {
    const PlanSummary summary{
        .name = "problem", .time_unit = "requests", .buffers = buffers, .result = packed, .capacity = capacity};
    said("plan " + std::to_string(capacity.value_or(0)),
         in_all_formats(plan_table(summary)) + plan_sentence(summary) +
             written(".html", [&](const std::string& path) { write_plan_html(path, summary); }));
  }
}

measure::BenchResult bench_result() {
  measure::BenchResult result;
  result.subjects = {{"a", "a", "{}"}, {"b:x=1", "b:x=1", "{}"}, {"c", "c", "{}"}, {"harness", "", "{}"}};
  result.workloads = {"hot/4KiB", "step"};
  result.confidence = 0.998;
  result.rounds = 20;
  for (int workload = 0; workload < 2; ++workload) {
    std::vector<measure::BenchCell> cells(4);
    for (int round = 0; round < 20; ++round) {
      const double noise = 1 + 0.001 * ((round * 7) % 11);
      const double base = (workload + 1) * 30 * noise;
      for (std::size_t subject = 0; subject < 4; ++subject) {
        const double factor[] = {1, workload == 0 ? 1.2 : 0.9, 1.001, 0.1};
        cells[subject].round_ns.push_back(base * factor[subject] * (1 + 0.0005 * (round % 3)));
        if (subject != 0) cells[subject].round_ratios.push_back(factor[subject] * (1 + 0.0005 * (round % 5)));
      }
    }
    if (workload == 1) cells[2] = {.failure = "it crashed: SIGSEGV"};
    result.cells.push_back(cells);
  }
  return result;
}

TEST(SaidOfBenches, TablesAndSentences) {
  const measure::BenchResult result = bench_result();
  std::string failures;
  for (const std::string& failure : bench_failures(result)) failures += failure + "\n";
  said("bench table", in_all_formats(bench_table(result)));
  said("bench method", bench_method(result, {}) + failures);
  said("bench json", bench_json(result, {}, {.cores = 2, .load = 0.5}, {}, {}, kEnvironment));
}

TEST(SaidOfComparisons, OfReplaysAndBenches) {
  const std::vector<ReplayRow> before = some_rows();
  std::vector<ReplayRow> after = before;
  after[0].peak_reserved_bytes += 20 * MiB, after[0].excess += 0.1, after[2].ooms += 1;
  after[1].seconds *= 2;
  after.pop_back();
  const auto set = [](const std::string& text, const std::string& path) { return measure::parse_result(text, path); };
  const auto compared = [&](std::vector<measure::ResultSet> sets, const std::string& name, const std::string& metric) {
    const measure::Comparison comparison = measure::compare(std::move(sets), {});
    std::string all;
    for (const bool every : {false, true})
      for (const TableFormat format : kFormats) all += compare_text(comparison, every, metric, format);
    for (const std::string& remark : compare_remarks(comparison)) all += remark + "\n";
    all +=
        in_all_formats(compare_figures(comparison, true, true)) + in_all_formats(compare_matrix(comparison, 0, metric));
    said(name, all + compare_json(comparison, true, {}, {}, kEnvironment));
    said(name + " page", compare_html(comparison, metric));
  };
  compared({set(replay::rows_json(before, kEnvironment, true), "a.json"),
            set(replay::rows_json(after, kEnvironment, true), "b.json")},
           "compare replays", "peak_reserved_bytes");
  compared({set(replay::rows_json(before, kEnvironment), "a.json")}, "compare one replay", "");
  measure::BenchResult other = bench_result();
  for (auto& cells : other.cells)
    for (double& ns : cells[0].round_ns) ns *= 1.5;
  compared({set(bench_json(bench_result(), {}, {.cores = 2}, {}, {}, kEnvironment), "a.json"),
            set(bench_json(other, {}, {.cores = 2, .load = 9}, {}, {}, kEnvironment), "b.json")},
           "compare benches", "");
}

TEST(SaidInPictures, ChartsAndSegments) {
  SvgChart chart{.title = "a <chart>", .x_label = "events"};
  chart.lines = {{"one", {{0, 1e6}, {3, 5e6}, {7, 2e6}, {90, 2e6}}, true, false},
                 {"a longer name of a line", {{0, 3e6}, {90, 9e6}}, false, true},
                 {"nothing", {}, false, false}};
  chart.marks = {{2, "m1", false}, {40, "failed", true}, {41, "m2", false}};
  said("chart", svg_chart(chart));
  chart.y_limit = 8e6, chart.y_limit_name = "capacity";
  said("chart with a limit", svg_chart(chart));
  chart.y_limit = 9e9;
  chart.y_is_bytes = false;
  chart.y_low = 1e6;
  said("chart of numbers", svg_chart(chart));
  said("chart of nothing", svg_chart(SvgChart{.title = "none"}));
  std::vector<SvgBar> bars;
  for (int i = 1; i < 9; ++i)
    bars.push_back(
        {"segment " + std::to_string(i), {{i * 1e6, 0, 1e5}, {2e6, 1, 0}, {1e6 / i, 2, 0}, {5e5, 3, 0}, {100, 2, 0}}});
  said("segments", svg_segments(bars, 2e7));
  said("segments in short rows", svg_segments(bars, 3e6));
  said("escaped", html_escape("<a href=\"x\">&'b'</a>\x01\n"));
  said("layout", html_layout(some_rows()[0].layout) + html_layout(some_rows()[1].layout, 1e7) + html_layout_key());
}

}  // namespace
}  // namespace tenon
