// The offline pages: complete, readable without a script, and free of addresses on a network.
// Long: each thing that a page shows has a test, and they share the pages that are made once.
#include "support/scratch_folder.h"

#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/memory/purpose.h>
#include <tenon/replay/results/holders.h>
#include <tenon/replay/results/own_frames.h>
#include <tenon/report/replay/doctor_report.h>
#include <tenon/report/replay/replay_html.h>
#include <tenon/report/replay/replay_table.h>
#include <tenon/report/replay/trace_html.h>
#include <tenon/report/replay/tune_report.h>
#include <tenon/report/svg.h>
#include <tenon/runtime/environment.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <regex>
#include <sstream>

namespace tenon {
namespace {

using replay::ReplayRow;
using replay::Trace;

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<ReplayRow> rows_of(const Trace& trace) {
  replay::JobOptions options;
  options.timed_passes = 0;
  options.time_each_call = false;
  options.keep_curve = options.keep_layout = true;
  std::vector<ReplayRow> rows = {replay::run_job(trace, replay::plain_policy(), options),
                                 replay::ideal_row(trace, std::nullopt)};
  rows.front().label = "plain <policy>";
  return rows;
}

void expect_offline(const std::string& page) {
  for (const char* trace_of_a_network : {"http:", "https:", "<script", "<link", "url(", "@import", "src="}) {
    EXPECT_EQ(page.find(trace_of_a_network), std::string::npos) << trace_of_a_network;
  }
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
}

TEST(ReplayReport, IsOneOfflinePage) {
  const Trace trace = replay::read_traces(replay::example_trace("gpt2_adam.trace.gz")).front();
  const std::string path = test::scratch_folder() + "report.html";
  write_replay_html(path, {trace}, rows_of(trace), "{\"host\":\"x\"}");
  const std::string page = content(path);
  expect_offline(page);
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_NE(page.find("plain &lt;policy&gt;"), std::string::npos) << "names are escaped";
  EXPECT_NE(page.find("ideal"), std::string::npos);
  EXPECT_LT(page.size(), 2u << 20);
}

TEST(ReplayReport, OfSeveralHistoriesBeginsWithContentsThatLinkToThem) {
  Trace first = replay::read_one("a 0 8 0\nf 0\n"), second = replay::read_one("a 0 16 0\nf 0\n");
  first.name = "first";
  second.name = "second";
  std::vector<ReplayRow> rows = rows_of(first);
  for (ReplayRow& row : rows_of(second)) rows.push_back(std::move(row));
  rows.back().ooms = 1;  // of the ideal row, which is not counted
  const std::string path = test::scratch_folder() + "two.html";
  write_replay_html(path, {first, second}, rows, "{\"host\":\"x\"}");
  const std::string page = content(path);
  expect_offline(page);
  EXPECT_NE(page.find("<a href=\"#history-1\">second</a>"), std::string::npos);
  EXPECT_NE(page.find("<h2 id=\"history-1\">second</h2>"), std::string::npos);
  EXPECT_EQ(page.find("ran out or failed"), std::string::npos);
}

TEST(ReplayReport, TimesStandInATableOfTheirOwn) {
  const Trace trace = replay::read_one("a 0 8 0\nf 0\n");
  std::vector<ReplayRow> rows = rows_of(trace);
  rows.front().seconds = 1;
  rows.front().allocate_ns.p50 = rows.front().allocate_ns.p99 = 7;
  const std::string path = test::scratch_folder() + "times.html";
  write_replay_html(path, {trace}, rows, "{\"host\":\"x\"}");
  const std::string page = content(path);
  const std::size_t speed = page.find("Speed of the allocator alone");
  ASSERT_NE(speed, std::string::npos);
  EXPECT_LT(page.find("peak reserved"), speed);
  EXPECT_GT(page.find("alloc p50"), speed);
}

TEST(ReplayReport, ShowsMarksWhereTheyWere) {
  const Trace trace = replay::read_one("a 0 8 0\nm step 1\na 1 8 0\nm a<b\nf 0\nf 1\n");
  const std::string path = test::scratch_folder() + "marks.html";
  write_replay_html(path, {trace}, rows_of(trace), "{\"host\":\"x\"}");
  const std::string page = content(path);
  EXPECT_NE(page.find("<title>step 1</title>"), std::string::npos);
  EXPECT_NE(page.find("<title>a&lt;b</title>"), std::string::npos);
}

TEST(TracePage, IsOneOfflinePage) {
  const Trace trace = replay::read_traces(replay::example_trace("gpt2_adam.trace.gz")).front();
  const std::string path = test::scratch_folder() + "page.html";
  write_trace_html(path, trace, rows_of(trace));
  expect_offline(content(path));
}

TEST(TracePage, ShowsTheRecordedSegmentsAndWhatNobodyIsKnownToHold) {
  Trace trace = replay::read_one("a 0 8388608 0\na 1 4194304 0\nf 1\n");
  trace.recorded.emplace();
  Segment segment;
  segment.address = 4096;
  segment.bytes = 20 * MiB;
  segment.blocks = {{4096, 8 * MiB, 8 * MiB, BlockState::kActive, 1}, {4096 + 8 * MiB, 12 * MiB}};
  trace.recorded->final_segments = {segment};
  const std::string path = testing::TempDir() + "recorded.html";
  write_trace_html(path, trace, {});
  EXPECT_NE(content(path).find("20.0 MiB reserved; 8.00 MiB in use, 12.0 MiB idle, of which 12.0 MiB in one piece"),
            std::string::npos);
  EXPECT_NE(content(path).find("The file holds no call stacks"), std::string::npos);
  EXPECT_EQ(content(path).find("in a replay under"), std::string::npos);
  trace.stacks = {.frames = {{"forward", "model.py", 31}}, .stacks = {{}, {0}}};
  trace.stack_of_allocation = {1, 0};
  write_trace_html(path, trace, {});
  EXPECT_NE(content(path).find("no stack is known: 4.00 MiB"), std::string::npos) << "a third of the width";
  EXPECT_NE(content(path).find("forward (model.py:31) 8.00 MiB"), std::string::npos);
}

TEST(TracePage, SaysWhatAReplayRefused) {
  const Trace trace = replay::read_one("a 0 600 0\nm late\na 1 600 0\nf 0\nf 1\n");
  replay::JobOptions options;
  options.timed_passes = 0;
  options.time_each_call = false;
  options.keep_curve = options.keep_layout = true;
  options.capacity_bytes = 1000;
  const std::string path = testing::TempDir() + "refused.html";
  write_trace_html(path, trace, {replay::run_job(trace, replay::plain_policy(), options)});
  for (const char* text :
       {"ran out of memory", "requests that were refused included", "capacity 1000 B", "late", "<title>OOM: "})
    EXPECT_NE(content(path).find(text), std::string::npos) << text;
}

TEST(TracePage, LeavesCallsOfPythonAndPyTorchOutOfTheFlameGraph) {
  Trace trace = replay::read_one("a 0 8388608 0\nf 0\n");
  trace.stacks = {.frames = {{"forward", "/srv/model.py", 31},
                             {"c10::cuda::malloc(unsigned long)", "CUDACachingAllocator.cpp", 0},
                             {"_PyEval_EvalFrameDefault", "ceval.c", 1},
                             {"__call__", "/usr/lib/python3/dist-packages/torch/nn/module.py", 2}},
                  .stacks = {{}, {1, 0, 3, 2}}};
  trace.stack_of_allocation = {1};
  const std::string path = testing::TempDir() + "folded.html";
  write_trace_html(path, trace, {});
  const std::string page = content(path);
  EXPECT_NE(page.find("<title>forward (/srv/model.py:31) 8.00 MiB"), std::string::npos);
  for (const char* call : {"c10::cuda", "_PyEval", "__call__"}) EXPECT_EQ(page.find(call), std::string::npos) << call;
}

/// WCAG's ratio of two colours "#rrggbb" or "#rgb".
double contrast(const std::string& a, const std::string& b) {
  const auto luminance = [](std::string text) {
    if (text.size() == 4) text = {'#', text[1], text[1], text[2], text[2], text[3], text[3]};
    double sum = 0;
    const double weights[] = {0.2126, 0.7152, 0.0722};
    for (std::size_t i = 0; i < 3; ++i) {
      const double part = std::stoi(text.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
      sum += weights[i] * (part <= 0.03928 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4));
    }
    return sum;
  };
  const double first = luminance(a), second = luminance(b);
  return (std::max(first, second) + 0.05) / (std::min(first, second) + 0.05);
}

TEST(Page, InTheDarkHasTextAndLinesThatStandOut) {
  const std::string page = html_page("x", "");
  const std::size_t begin = page.find("prefers-color-scheme:dark");
  ASSERT_NE(begin, std::string::npos);
  const std::string dark = page.substr(begin, page.find("</style>") - begin);
  const std::regex rule(R"(([^{}\n]+)\{(fill|stroke|color):(#[0-9a-f]{3,6})\})");
  int seen = 0;
  for (std::sregex_iterator it(dark.begin(), dark.end(), rule); it != std::sregex_iterator(); ++it) {
    const std::string what = (*it)[1];
    if (what.starts_with("path") || what.ends_with(".grid")) continue;  // areas and the grid recede
    EXPECT_GE(contrast((*it)[3], "#16181c"), 4.5) << what;
    ++seen;
  }
  EXPECT_GE(seen, 7);
  EXPECT_GT(contrast("#4aa3df", "#16181c"), contrast("#3c4046", "#16181c")) << "in use stands out more than free";
  EXPECT_NE(dark.find("path[fill=\"#0072b2\"]{fill:#4aa3df}path[fill=\"#dddddd\"]{fill:#3c4046}"), std::string::npos);
}

TEST(Page, PicturesScrollWhereItIsNarrowAndTheirTextIsRead) {
  SvgChart chart{.title = "one"};
  chart.lines.push_back({"x", {{0, 1}, {5, 9}}});
  const std::string picture = svg_chart(chart);
  EXPECT_TRUE(picture.starts_with("<div class=\"wide\"><svg ")) << picture;
  EXPECT_EQ(picture.find("role=\"img\""), std::string::npos) << "which hides what is in it from screen readers";
  EXPECT_NE(html_page("x", "").find(".wide svg{min-width:"), std::string::npos);
  const std::string file = svg_file(picture);
  EXPECT_TRUE(file.starts_with("<svg ") && file.ends_with("</svg>\n")) << file;
  EXPECT_EQ(file.find("div"), std::string::npos);
}

TEST(SvgChart, NamesALimitThatIsFarAboveIt) {
  SvgChart chart{.title = "one", .y_limit = 1e6, .y_limit_name = "capacity 1 MB"};
  chart.lines.push_back({"x", {{0, 1}, {5, 9}}});
  EXPECT_NE(svg_chart(chart).find("capacity 1 MB, above this picture"), std::string::npos);
}

TEST(ReplayReport, NamesAFileThatCannotBeWritten) {
  const Trace trace = replay::read_one("a 0 8 0\n");
  EXPECT_THROW(write_replay_html("/nowhere/at/all.html", {trace}, rows_of(trace), ""), Error);
}

TEST(ReplayTable, SaysWhereMemoryRanOut) {
  ReplayRow row;
  row.trace = "t";
  row.allocator = "plain";
  row.ooms = 2;
  row.first_oom_event = 17;
  row.first_oom_bytes = 1024;
  EXPECT_NE(replay_remarks({row}).front().find("2 times, first at event 17 (a request of 1"), std::string::npos)
      << replay_remarks({row}).front();
}

TEST(ReplayTable, AnOutOfMemoryIsNoSmallShareToPeople) {
  ReplayRow row;
  row.trace = "t";
  row.allocator = "caching";
  row.excess = -0.815;
  row.internal_fragmentation = 0.25;
  row.ooms = 2;
  row.first_oom_event = 17;
  ReplayRow ideal;
  ideal.trace = "t";
  ideal.allocator = "ideal";
  ideal.capacity_bytes = 7 * GiB;
  ideal.peak_requested_bytes = ideal.peak_reserved_bytes = 30 * GiB;
  const std::string shown = replay_table({row, ideal}).text();
  EXPECT_NE(shown.find("OOM at event 17"), std::string::npos) << shown;
  EXPECT_NE(shown.find("does not fit"), std::string::npos) << shown;
  EXPECT_EQ(shown.find("81.5"), std::string::npos) << shown;
  EXPECT_EQ(shown.find("25.0"), std::string::npos) << shown;
  const std::string machine = replay_table({row, ideal}, TableFormat::kCsv).csv();
  EXPECT_NE(machine.find("-0.815"), std::string::npos) << machine;
  EXPECT_NE(machine.find("0.25"), std::string::npos) << machine;
}

TEST(Holders, AreNamedByTheInnermostFunctionThatIsTheProgramsOwn) {
  Trace trace = replay::read_one("a 0 100 0\na 1 50 0\na 2 30 0\nf 1\nf 2\n");
  trace.stacks = {
      .frames = {{"empty", "/lib/python3.11/site-packages/torch/x.py", 7},
                 {"forward", "/srv/model.py", 31},
                 {"_object* torch::autograd::TypeError_to_NotImplemented_<&f>(_object*)", "methods.cpp", 0}},
      .stacks = {{}, {0, 2, 1}}};
  trace.stack_of_allocation = {1, 1, 0};
  const std::vector<replay::Holder> holders = replay::holders_at_peak(trace);
  ASSERT_EQ(holders.size(), 2u);
  EXPECT_EQ(holders[0].bytes, 150u);
  EXPECT_EQ(holders[0].blocks, 2u);
  EXPECT_EQ(replay::call_site(trace, holders[0].stack), "forward (model.py:31)");
  EXPECT_EQ(replay::call_site(trace, holders[1].stack), "[no stack]");
}

TEST(Holders, OfTheBackwardPassAreNamedByTheirOperator) {
  Trace trace = replay::read_one("a 0 100 0\nf 0\n");
  trace.stacks = {.frames = {{"c10::cuda::malloc(unsigned long)", "CUDACachingAllocator.cpp", 0},
                             {"at::_ops::bmm::call(at::Tensor const&)", "??", 0},
                             {"torch::autograd::generated::BmmBackward0::apply()", "??", 0},
                             {"execute_native_thread_routine", "thread48.o", 0}},
                  .stacks = {{}, {0, 1, 2, 3}}};
  trace.stack_of_allocation = {1};
  EXPECT_EQ(replay::call_site(trace, 1), "torch::autograd::generated::BmmBackward0::apply (?\?)");
}

// Tenon's own functions stand below a program's as PyTorch's do; in `tenon run` there are no others.
TEST(Holders, AreNotNamedByTenonsFunctionsUnlessThereAreNoOthers) {
  Trace trace = replay::read_one("a 0 100 0\nf 0\n");
  trace.stacks = {
      .frames = {{"tenon::AllocatorStack::allocate(tenon::Request const&)", "/opt/lib/libtenon.so.0.1", 0},
                 {"tenon::(anonymous namespace)::make(tenon::ArrayRef<long>)", "/opt/lib/libtenon.so.0.1", 0},
                 {"tenon::empty(tenon::ArrayRef<long>)", "/opt/lib/libtenon.so.0.1", 0},
                 {"tenon::Tensor tenon::detail::call<int>(int)", "/srv/include/tenon/x.h", 9},
                 {"register_hook<main()::<lambda()> >", "../include/tenon/tensor/tensor.h", 241},
                 {"(anonymous namespace)::Net::forward(tenon::Tensor)", "/srv/net.cpp", 12},
                 {"main", "/srv/net.cpp", 40},
                 {"tenon::cli::run_one(int)", "tenon", 0},
                 {"__libc_start_main", "../csu/libc-start.c", 360}},
      .stacks = {{}, {0, 1, 2, 3, 4, 5, 6, 8}, {0, 1, 2, 7, 8}}};
  EXPECT_EQ(replay::call_site(trace, 1), "Net::forward (net.cpp:12) < main (net.cpp:40)");
  EXPECT_EQ(replay::call_site(trace, 2), "tenon::empty (libtenon.so.0.1)");
  EXPECT_TRUE(replay::call_site(trace, 2, /*names_all=*/true)
                  .starts_with("tenon::AllocatorStack::allocate(tenon::Request const&) (libtenon.so.0.1) < "));
}

TEST(DoctorReport, HeadsItsTableWithTheProgramAndTheMachine) {
  const Environment& env = environment();
  EXPECT_EQ(machine_heading(), "tenon " + env.version + " (" + env.compiler + ", " + env.build_type + ") on " +
                                   env.system + "\n" + env.cpu + ", " + std::to_string(env.cores) + " cores, " +
                                   format_bytes(env.memory_bytes) + "\n\n");
}

TEST(DoctorReport, HasAnEmptyListOfTracesWhereNoneWasReplayed) {
  EXPECT_THAT(diagnosis_report({}, false, "one.trace", TableFormat::kJson, "{}"), testing::HasSubstr("\"traces\": []"));
}

TEST(DoctorReport, NamesWhatThePeakIsForTheLargestFirst) {
  replay::Diagnosis diagnosis;
  diagnosis.trace = "one";
  diagnosis.purposes.assign(kPurposeCount, 0);
  diagnosis.purposes[1] = 10 * MiB;
  diagnosis.purposes[2] = 30 * MiB;
  const std::string text = diagnosis_report({diagnosis}, false, "one.trace", TableFormat::kTable, "{}");
  EXPECT_THAT(text, testing::HasSubstr("What the 40.0 MiB that lived or were asked for at the peak are for:\n"
                                       "    30.0 MiB   75.0 %  " +
                                       std::string(name_of(static_cast<Purpose>(2))) + "\n    10.0 MiB   25.0 %  " +
                                       std::string(name_of(static_cast<Purpose>(1))) + "\n"));
  diagnosis.purposes.clear();
  EXPECT_THAT(diagnosis_report({diagnosis}, false, "one.trace", TableFormat::kTable, "{}"),
              testing::Not(testing::HasSubstr("are for:")));
}

// The file knows what failed on its device; of a capacity that the user asks about, it does not.
TEST(DoctorReport, NamesTheRequestThatFailedUnlessTheUserAsksAboutAnotherDevice) {
  replay::Diagnosis diagnosis;
  diagnosis.trace = "one";
  diagnosis.failed_request.emplace().bytes = 300 * MiB;
  diagnosis.failed_request->device_free_bytes = 20 * MiB;
  diagnosis.report.capacity_bytes = 1 * GiB;
  diagnosis.report.current.ooms = 1;
  const auto text = [&](bool is_capacity_given) {
    return diagnosis_report({diagnosis}, is_capacity_given, "one.trace", TableFormat::kTable, "{}");
  };
  const auto names_it = testing::HasSubstr(
      "Ran out of memory: a request of 300.0 MiB failed; 20.0 MiB of the 1.00 GiB that the process may use were free.");
  EXPECT_THAT(text(false), names_it);
  EXPECT_THAT(text(true), testing::Not(names_it));
}

replay::Candidate candidate_of(const std::string& label, bool is_pytorch, std::uint64_t safe_from_bytes,
                               std::uint64_t device_calls) {
  replay::Candidate candidate;
  candidate.label = label;
  candidate.is_pytorch = is_pytorch;
  candidate.safe_from_bytes = safe_from_bytes;
  candidate.device_calls = device_calls;
  return candidate;
}

TEST(TuneReport, WhereNoSettingOfPyTorchsRunsTheSafeOneOfTenonsThatAsksTheDeviceLeastIsNamed) {
  replay::TuneResult result;
  result.finalists = {candidate_of("busy", false, 100 * MiB, 90), candidate_of("calm", false, 120 * MiB, 7),
                      candidate_of("large", false, 300 * MiB, 1), candidate_of("planned", false, 90 * MiB, 1)};
  result.finalists.back().is_planned = true;
  result.peak_requested_bytes = 80 * MiB;
  const std::vector<replay::Trace> traces;
  const std::vector<std::string> files = {"a.trace"};
  const auto text = [&](const std::string& capacity) {
    return tune_report(result, {.traces = traces, .files = files, .capacity = capacity}, TableFormat::kTable, "{}");
  };
  EXPECT_THAT(text("200MiB"),
              testing::HasSubstr("No setting of PyTorch that was tried runs safely in 200MiB. Of Tenon's "
                                 "own allocators, calm does, from 120.0 MiB (--capacity "));
  EXPECT_THAT(text("110MiB"), testing::HasSubstr("Of Tenon's own allocators, busy does, from 100.0 MiB"));
  EXPECT_THAT(text(""), testing::HasSubstr("Of Tenon's own allocators, large does, from 300.0 MiB"));
  EXPECT_THAT(text("85MiB"), testing::HasSubstr("Nothing that was tried runs safely in 85MiB: the peak of live memory "
                                                "alone is 80.0 MiB."));
}

TEST(TuneReport, SaysOfASafeCapacityWhatWasExamined) {
  replay::TuneResult result;
  result.finalists = {candidate_of("max_split_size_mb:64", true, 100 * MiB, 5)};
  replay::Candidate& best = result.finalists.front();
  best.is_recommended = true;
  std::vector<replay::Trace> traces = {replay::read_one("a 0 512 0\n"), replay::read_one("a 0 512 0\n")};
  result.trust.resize(traces.size());
  const std::vector<std::string> files = {"a.trace", "b.trace"};
  const auto text = [&] {
    return tune_report(result, {.traces = traces, .files = files, .capacity = ""}, TableFormat::kTable, "{}");
  };
  EXPECT_THAT(text(), testing::HasSubstr("; every larger one runs too, with every history; smaller ones were not "
                                         "examined in that time.\n"));
  best.is_smallest = true;
  EXPECT_THAT(text(), testing::HasSubstr("; every larger one runs too, with every history.\n"));
  best.is_sampled = true;
  EXPECT_THAT(text(), testing::HasSubstr("; every larger one that was tried runs too, with every history.\n"));
  traces.pop_back();
  EXPECT_THAT(text(), testing::HasSubstr("; every larger one that was tried runs too.\n"));
}

TEST(SvgChart, ARequestThatRanOutIsMarkedInRedAndNamedAboveOtherMarks) {
  SvgChart chart{.title = "memory", .marks = {{4, "step 1"}, {5, "OOM: caching", true}}};
  chart.lines.push_back({"live", {{0, 10}, {9, 30}}});
  const std::string svg = svg_chart(chart);
  EXPECT_NE(svg.find("class=\"oom\">OOM: caching</text>"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">step 1</text>"), std::string::npos) << "though both are close";
}

TEST(SvgChart, ALineBelowTheAxisIsNotDrawnAlongItsFloor) {
  SvgChart chart{.title = "upper part", .y_low = 50};
  chart.lines.push_back({"low", {{0, 10}, {5, 20}, {9, 30}}});
  chart.lines.push_back({"high", {{0, 10}, {5, 90}, {9, 100}}});
  const std::string svg = svg_chart(chart);
  std::size_t paths = 0;
  for (std::size_t at = svg.find("<path"); at != std::string::npos; at = svg.find("<path", at + 1)) ++paths;
  EXPECT_EQ(paths, 1u) << svg;
}

TEST(SvgChart, AHeightThatLastsIsOneStroke) {
  SvgChart chart{.title = "flat"};
  chart.lines.push_back({"x", {{0, 5}, {1, 5}, {2, 5}, {3, 9}, {4, 9}, {5, 9}}});
  const std::string svg = svg_chart(chart);
  const std::string path = svg.substr(svg.find("<path d=\"") + 9);
  EXPECT_EQ(std::ranges::count(path.substr(0, path.find('"')), 'H'), 2) << path;
}

TEST(SvgSegments, AThousandBlocksCostNoMoreThanTheirCorners) {
  SvgBar bar{.title = "segment <1>", .blocks = {}};
  for (int i = 0; i < 1000; ++i) bar.blocks.push_back({1 + i % 7 * 10.0, i % 2 * 2, i % 3 == 0 ? i % 7 * 5.0 : 0});
  const std::string svg = svg_segments({bar}, 5000);
  EXPECT_LT(svg.size(), 45'000U) << "a rectangle each would take 120 bytes";
  EXPECT_NE(svg.find("<title>segment &lt;1&gt;</title>"), std::string::npos);
  for (const char* look : {"fill=\"#0072b2\" stroke=\"#fff\"", "fill=\"#0072b2\"/>", "fill=\"#dddddd\"", "\"#d55e00\""})
    EXPECT_NE(svg.find(look), std::string::npos) << look;
  EXPECT_GE(std::ranges::count(svg, 'M'), 1000) << "every block is there";
}

TEST(SvgChart, SurvivesNothingAndOnePoint) {
  EXPECT_NE(svg_chart({.title = "none"}).find("</svg>"), std::string::npos);
  SvgChart chart{.title = "one"};
  chart.lines.push_back({"x", {{5, 0}}});
  EXPECT_EQ(svg_chart(chart).find("nan"), std::string::npos);
}

}  // namespace
}  // namespace tenon
