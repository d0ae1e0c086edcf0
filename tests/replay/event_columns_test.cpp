// When events were and what blocks are for: kept by every form that has a place for it, shown on the page, and no
// business of a replay.
#include "replay/support.h"

#include <tenon/replay/formats/pytorch/snapshot_writer.h>
#include <tenon/replay/formats/tenon/binary_format.h>
#include <tenon/replay/formats/writers.h>
#include <tenon/replay/recording/recorder.h>
#include <tenon/replay/results/holders.h>
#include <tenon/replay/results/slice_diff.h>
#include <tenon/report/replay/trace_html.h>

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

namespace tenon::replay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kHistory[] =
    "#t 1000000\n#p parameter\na 0 100 0\n#t +500000\n#p activation\na 1 200 0\nu 1 3\nm step 1\n#t +1000000\nf 1\n"
    "#p gradient\na 2 50 0\ne\n";
constexpr ReadOptions kWithColumns{.with_columns = true};

void expect_columns(const Trace& trace) {
  EXPECT_THAT(trace.columns.times_us, ElementsAre(1000000, 1500000, 1500000, 2500000, 2500000, 2500000));
  EXPECT_THAT(trace.columns.purposes, ElementsAre(Purpose::kParameter, Purpose::kActivation, Purpose::kGradient));
}

TEST(EventColumns, AreReadWhereTheyAreAskedForAndChangeNoEvent) {
  const Trace trace = read_one(kHistory, kWithColumns);
  expect_columns(trace);
  const Trace bare = read_one(kHistory);
  EXPECT_TRUE(bare.columns.times_us.empty() && bare.columns.purposes.empty());
  EXPECT_TRUE(difference(trace, bare).are_equal);
  std::string plain;  // what a program sees that takes them for comments
  std::istringstream lines(kHistory);
  for (std::string line; std::getline(lines, line);) plain += line.starts_with("#") ? "" : line + "\n";
  EXPECT_TRUE(difference(trace, read_one(plain)).are_equal);
  EXPECT_TRUE(trace.header.empty());
}

TEST(EventColumns, ComeBackFromBothFormsOfTenon) {
  const Trace trace = read_one(kHistory, kWithColumns);
  for (const char* name : {"again.trace.gz", "again.tenon"}) {
    SCOPED_TRACE(name);
    write_trace(trace, scratch(name));
    const Trace back = read_traces(scratch(name), kWithColumns).front();
    expect_columns(back);
    EXPECT_TRUE(difference(trace, back).are_equal);
  }
}

TEST(EventColumns, ABinaryFileWithoutThemIsOneThatEarlierProgramsRead) {
  write_trace(read_one(kHistory), scratch("bare.tenon"));
  EXPECT_EQ(content(scratch("bare.tenon"))[8], 2);
  write_trace(read_one(kHistory, kWithColumns), scratch("full.tenon"));
  EXPECT_EQ(content(scratch("full.tenon"))[8], 3);
}

TEST(EventColumns, AClockThatGoesBackIsWrittenAsItIs) {
  const Trace trace = read_one("#t 500\na 0 8 0\n#t 20\nf 0\n", kWithColumns);
  for (const char* name : {"back.trace", "back.tenon"}) {
    write_trace(trace, scratch(name));
    EXPECT_THAT(read_traces(scratch(name), kWithColumns).front().columns.times_us, ElementsAre(500, 20)) << name;
  }
}

TEST(EventColumns, AClockMayBeginAtZero) {
  for (const char* history : {"#t 0\na 0 8 0\n#t 20\nf 0\n", "#t 0\na 0 8 0\nf 0\n"}) {
    const Trace trace = read_one(history, kWithColumns);
    for (const char* name : {"zero.trace", "zero.tenon"}) {
      write_trace(trace, scratch(name));
      EXPECT_EQ(read_traces(scratch(name), kWithColumns).front().columns.times_us, trace.columns.times_us) << name;
    }
  }
}

TEST(EventColumns, WhatIsNoTimeAndNoPurposeIsAComment) {
  for (const char* line : {"#t", "#t ", "#t now", "#t -5", "#t +", "#t 9223372036854775807", "#t +-5", "#t 5 6", "#p",
                           "#p food", "#p data and more", "#time 5", "# t 5"}) {
    const Trace trace = read_one(std::string(line) + "\na 0 8 0\n", kWithColumns);
    EXPECT_TRUE(trace.columns.times_us.empty() && trace.columns.purposes.empty()) << line;
  }
  EXPECT_EQ(read_one("#t 12:30\na 0 8 0\n").header.at("t 12"), "30") << "a header line, as before";
}

TEST(EventColumns, OfABinaryFileAreCheckedAsTheyAreRead) {
  const auto refused = [](const std::function<void(BinaryTraceWriter&)>& write) {
    BinaryTraceWriter out(scratch("odd.tenon"), /*has_columns=*/true);
    write(out);
    out.allocate(8, 0);
    out.close();
    return refusal_of(content(scratch("odd.tenon")));
  };
  EXPECT_THAT(refused([](auto& out) { out.meant_for(static_cast<Purpose>(99)); }), HasSubstr("an unknown purpose"));
  EXPECT_THAT(refused([](auto& out) { out.at(-5); }), HasSubstr("a time out of range"));
  EXPECT_THAT(refused([](auto& out) { out.at(std::int64_t{1} << 62); }), HasSubstr("a time out of range"));
}

TEST(EventColumns, APartOfAHistoryKeepsItsOwn) {
  const Trace part = slice(read_one(kHistory, kWithColumns), 2, 5);
  EXPECT_THAT(part.columns.purposes, ElementsAre(Purpose::kParameter, Purpose::kActivation, Purpose::kGradient));
  EXPECT_THAT(part.columns.times_us, ElementsAre(1500000, 1500000, 1500000, 2500000, 2500000));
}

TEST(EventColumns, OfASnapshotAreTheTimesOfItsEntries) {
  SnapshotImage image;
  image.events = {{{.action = HistoryAction::kAlloc, .address = 512, .bytes = 100}, 1700},
                  {{.action = HistoryAction::kFreeRequested, .address = 512, .bytes = 100}, 1900},
                  {{.action = HistoryAction::kFreeCompleted, .address = 512, .bytes = 100}, 1900}};
  write_snapshot(image, scratch("times.pickle"));
  EXPECT_THAT(read_traces(scratch("times.pickle"), kWithColumns).front().columns.times_us, ElementsAre(1700, 1900));
  EXPECT_TRUE(read_traces(scratch("times.pickle")).front().columns.times_us.empty());
  write_snapshot(image_of_replay(read_one(kHistory), plain_policy(), {}), scratch("times.pickle"));
  EXPECT_TRUE(read_traces(scratch("times.pickle"), kWithColumns).front().columns.times_us.empty())
      << "a replay numbers its events";
}

std::string profile_at(const char* first, const char* second) {
  const auto event = [](const char* time, const char* bytes) {
    return std::string(R"({"ph":"i","name":"[memory]","ts":)") + time +
           R"(,"args":{"Device Type":1,"Device Id":0,"Addr":512,"Bytes":)" + bytes + "}}";
  };
  return R"({"traceEvents":[)" + event(first, "512") + "," + event(second, "-512") + "]}";
}

TEST(EventColumns, OfAProfilerAreTheTimesOfItsEvents) {
  EXPECT_THAT(read_one(profile_at("10.5", "20"), kWithColumns).columns.times_us, ElementsAre(10, 20));
}

TEST(EventColumns, OfAnyFileCanBeWrittenAndReadAgain) {
  SnapshotImage far;
  far.events = {{{.action = HistoryAction::kAlloc, .address = 512, .bytes = 100}, 5},
                {{.action = HistoryAction::kAlloc, .address = 1024, .bytes = 100}, std::int64_t{3} << 60}};
  write_snapshot(far, scratch("far.pickle"));
  for (const std::string& file : {profile_at("-7.25", "-1"), profile_at("-3", "12"), content(scratch("far.pickle"))}) {
    const Trace trace = read_one(file, kWithColumns);
    for (const char* name : {"again.trace", "again.tenon"}) {
      write_trace(trace, scratch(name));
      EXPECT_EQ(read_traces(scratch(name), kWithColumns).front().columns.times_us, trace.columns.times_us) << name;
    }
  }
}

TEST(EventColumns, ARecorderWritesWhatItIsToldAndWhen) {
  for (const char* name : {"recorded.trace", "recorded.tenon"}) {
    SCOPED_TRACE(name);
    Recorder recorder;
    recorder.write_to(scratch(name), {{"name", "x"}});
    int block = 0;
    recorder.allocated(&block, 64, 0, Purpose::kOptimizerState);
    recorder.failed(1000, 0, Purpose::kWorkspace);
    recorder.freed(&block);
    recorder.close();
    const Trace trace = read_traces(scratch(name), kWithColumns).front();
    EXPECT_THAT(trace.columns.purposes, ElementsAre(Purpose::kOptimizerState, Purpose::kWorkspace));
    ASSERT_EQ(trace.columns.times_us.size(), 4U);
    EXPECT_LE(trace.columns.times_us.front(), trace.columns.times_us.back());
    EXPECT_GT(trace.columns.times_us.front(), 1'700'000'000'000'000) << "since the epoch";
  }
}

TEST(EventColumns, StandOnThePage) {
  const std::string path = scratch("page.html");
  write_trace_html(path, read_one(kHistory, kWithColumns), {});
  EXPECT_THAT(content(path), HasSubstr("<h2>Live memory over time</h2>"));
  EXPECT_THAT(content(path), HasSubstr("<h2>What it is for, at the peak</h2>"));
  EXPECT_THAT(content(path), HasSubstr("activation"));
  EXPECT_THAT(content(path), Not(HasSubstr("gradient"))) << "it came after the peak";
  write_trace_html(path, read_one(kHistory), {});
  EXPECT_THAT(content(path), Not(HasSubstr("over time")));
  EXPECT_THAT(content(path), Not(HasSubstr("What it is for")));
}

TEST(EventColumns, PurposesAtThePeakAddUpToIt) {
  const Trace trace = read_one(kHistory, kWithColumns);
  const std::vector<std::uint64_t> live = purposes_at_peak(trace);
  EXPECT_EQ(live[static_cast<std::size_t>(Purpose::kParameter)], 100U);
  EXPECT_EQ(live[static_cast<std::size_t>(Purpose::kActivation)], 200U);
  EXPECT_TRUE(purposes_at_peak(read_one(kHistory)).empty());
}

}  // namespace
}  // namespace tenon::replay
