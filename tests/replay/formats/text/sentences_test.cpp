// Every sentence of the document of the text form does what it says: each has its own try, and a sentence without one
// fails.
#include "support/scratch_folder.h"

#include "replay/formats/text/document.h"
#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/memory/history/text_lines.h>
#include <tenon/replay/formats/writers.h>
#include <tenon/replay/results/slice_diff.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gmock/gmock.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace tenon::replay {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct Try {
  std::string sentence;
  void (*run)();
};
void PrintTo(const Try& one, std::ostream* out) { *out << one.sentence; }

std::string in_folder(const std::string& name) { return test::scratch_folder() + name; }

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

std::string told_of(const std::string& history) { return told(read_one(history)); }
std::string told_with_columns(const std::string& history) { return told(read_one(history, {.with_columns = true})); }

/// Without the lines that begin so.
std::string without(const std::string& history, std::string_view begin) {
  std::istringstream lines(history);
  std::string rest;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with(begin)) rest += line + "\n";
  return rest;
}

ReplayRow replayed(const std::string& history, std::optional<std::uint64_t> capacity_bytes = {},
                   const StackConfig& policy = plain_policy()) {
  const JobOptions options{.capacity_bytes = capacity_bytes, .timed_passes = 0, .time_each_call = false};
  return run_job(read_one(history), policy, options);
}

/// Alike in what a replay does, wherever its lines stood.
void expect_same_replay(const std::string& one, const std::string& other) {
  const ReplayRow first = replayed(one), second = replayed(other);
  EXPECT_EQ(first.placement_hash, second.placement_hash);
  EXPECT_EQ(first.reserved_series_fnv1a64, second.reserved_series_fnv1a64);
}

int run_program(const std::string& words) {
  return std::system(("cd " + test::scratch_folder() + " && " TENON_PROGRAM " " + words + " > said 2>&1").c_str());
}

const std::vector<Try>& tries_of_the_page() {
  static const std::vector<Try> kTries = {
      {"What a program asked of its memory, one record a line: easy to write from any program, to read and to cut with "
       "`grep`, `awk` and an editor.",
       [] {
         write(in_folder("all.trace"), "m step\na 0 8 0\na 1 16 0\nf 0\n");
         ASSERT_EQ(std::system(("grep -v '^f 0' " + in_folder("all.trace") + " | awk '$1 != \"m\"' > " +
                                in_folder("part.trace"))
                                   .c_str()),
                   0);
         EXPECT_EQ(told(read_traces(in_folder("part.trace")).front()),
                   "allocate block 0: 8 bytes on stream 0\nallocate block 1: 16 bytes on stream 0\n");
       }},
      {"`tenon replay`, `tune`, `doctor`, `view` and `trace` take it (`.trace`, `.txt`, compressed or not, `-` for "
       "standard input); `tenon trace convert IN OUT.trace` writes it from every other form.",
       [] {
         for (const char* name : {"in.trace", "in.txt"}) write(in_folder(name), "a 0 1048576 0\nf 0\na 1 4096 0\n");
         ASSERT_EQ(std::system(("gzip -kf " + in_folder("in.trace")).c_str()), 0);
         for (const char* words :
              {"replay in.txt", "replay - < in.trace", "trace info in.trace.gz", "trace info in.txt", "view in.trace",
               "doctor in.trace --capacity 1GiB -a caching", "tune in.trace --budget 100ms"})
           EXPECT_EQ(run_program(words), 0) << words << content(in_folder("said"));
         for (const Format* form : formats()) {
           if (form->read == nullptr || form->write == nullptr || form->name == "text") continue;
           const std::string name(form->name);
           std::string file = "other." + name;
           if (name == "chrome") {  // written are counters, read is what a profiler writes
             file = TENON_SOURCE_DIR "/fuzz/corpus/" + name + "/small";
           } else {
             const std::string capacity = form->shows_segments ? " -a caching --capacity 1GiB" : "";
             ASSERT_EQ(run_program("trace convert in.trace " + file + " --to " + name + capacity), 0)
                 << content(in_folder("said"));
           }
           EXPECT_EQ(run_program("trace convert " + file + " back.trace"), 0) << name << content(in_folder("said"));
           EXPECT_GE(read_traces(in_folder("back.trace")).front().facts.allocations, 1U) << name;
         }
       }},
      {"Every example on this page is run by a test: a history, and under it the events that it gives, or the message "
       "with which it is refused.",
       [] {  // by TextDocument.EveryExampleDoesWhatStandsUnderIt
         for (const Example& example : examples()) {
           EXPECT_TRUE(example.kind == "events" || example.kind == "refused") << example.line;
           EXPECT_NE(example.outcome, "") << example.line;
         }
       }},
  };
  return kTries;
}

const std::vector<Try>& tries_of_blocks() {
  static const std::vector<Try> kTries = {
      {"SIZE is what was asked for, before any rounding.",
       [] {
         EXPECT_EQ(read_one("a 0 1 0\na 1 513 0\n").facts.peak_requested_bytes, 514U);
         EXPECT_EQ(replayed("a 0 1 0\na 1 513 0\n").peak_requested_bytes, 514U);
       }},
      {"A block without `f` lives at the end.",
       [] { EXPECT_EQ(read_one("a 0 8 0\na 1 16 0\nf 0\n").facts.end_live_bytes, 16U); }},
      {"An ID is any number below 2^63 that no earlier `a` had; counting up from 0 will do.",
       [] {
         EXPECT_EQ(told_of("a 70 8 0\na 6 16 0\nf 70\n"), told_of("a 0 8 0\na 1 16 0\nf 0\n"));
         EXPECT_EQ(read_one("a 9223372036854775807 8 0\na 5 8 0\na 0 8 0\n").facts.allocations, 3U);
         EXPECT_THAT(refusal_of("a 9223372036854775808 8 0\n"), HasSubstr("does not fit in 63 bits"));
         EXPECT_THAT(refusal_of("a 5 8 0\nf 5\na 5 8 0\n"), HasSubstr("id 5 was allocated before"));
       }},
      {"A STREAM is any such number: a handle, an index; where one is 65,536 or more, Tenon writes indices and puts "
       "the "
       "handles into `stream_ids`.",
       [] {
         for (const auto& [stream, is_index] :
              {std::pair<std::uint64_t, bool>(65'535, false), {65'536, true}, {9223372036854775807, true}}) {
           write_trace(read_one(fmt::format("a 0 8 {}\n", stream)), in_folder("streams.trace"));
           const Trace again = read_traces(in_folder("streams.trace")).front();
           EXPECT_EQ(again.streams.front(), is_index ? 0 : stream);
           const auto handles = again.header.find("stream_ids");
           EXPECT_EQ(handles == again.header.end() ? "" : handles->second, is_index ? fmt::format("{}", stream) : "");
         }
       }},
      {"A history has at most 65,535 streams, and 2^62 bytes.",
       [] {
         std::string history;
         for (int i = 0; i < 65'535; ++i) history += fmt::format("a {} 8 {}\n", i, 7 * i);
         EXPECT_EQ(read_one(history).streams.size(), 65'535U);
         EXPECT_THAT(refusal_of(history + "a 65535 8 1\n"), HasSubstr("more than 65535 streams"));
         EXPECT_EQ(read_one("a 0 4611686018427387903 0\na 1 1 0\n").facts.allocations, 2U);
         EXPECT_THAT(refusal_of("a 0 4611686018427387903 0\na 1 2 0\n"), HasSubstr("the live bytes exceed 2^62"));
       }},
  };
  return kTries;
}

const std::vector<Try>& tries_of_lines() {
  static const std::vector<Try> kTries = {
      {"Fields are numbers in decimal, apart by spaces or tabs.",
       [] {
         EXPECT_EQ(told_of("a\t0 \t 010\t0\n"), "allocate block 0: 10 bytes on stream 0\n");
         for (const char* other : {"a 0 0x10 0\n", "a 0 1e3 0\n", "a,0,8,0\n"})
           EXPECT_NE(refusal_of(std::string("a 7 8 0\n") + other), "");
       }},
      {"Blank lines, spaces before a record or behind its last field, `\\r` before the end of a line, a missing end of "
       "the last line and a byte order mark are all taken.",
       [] {
         const std::string plain = told_of("a 0 8 0\nf 0\n");
         for (const char* odd :
              {"\n\na 0 8 0\n \t\nf 0\n\n", "  a 0 8 0 \t\n\tf 0 \n", "a 0 8 0\r\nf 0\r\n", "a 0 8 0\nf 0",
               "\xef\xbb\xbf"
               "a 0 8 0\nf 0\n"})
           EXPECT_EQ(told_of(odd), plain) << odd;
       }},
      {"(In these examples `\\t` is a tab, `\\r` a carriage return, and `\\xef` a byte.)",
       [] { EXPECT_EQ(unescaped("a\\t0\\r\\xefz"), "a\t0\r\xefz"); }},
  };
  return kTries;
}

const std::vector<Try>& tries_of_marks_and_headers() {
  static const std::vector<Try> kTries = {
      {"A name goes to the end of its line.",
       [] { EXPECT_EQ(told_of("m two  words # and more: 1\n"), "mark 'two  words # and more: 1'\n"); }},
      {"Pictures show it, and `tenon trace slice` cuts there; a replay does nothing.",
       [] {
         const std::string history = "a 0 1000 0\nm the turn\na 1 2000 0\nf 0\n";
         write(in_folder("marked.trace"), history);
         ASSERT_EQ(run_program("replay marked.trace -a direct --svg marked.svg"), 0) << content(in_folder("said"));
         EXPECT_THAT(content(in_folder("marked.svg")), HasSubstr("the turn"));
         ASSERT_EQ(run_program("trace slice marked.trace cut.trace --from 'the turn'"), 0)
             << content(in_folder("said"));
         EXPECT_EQ(read_traces(in_folder("cut.trace")).front().facts.seeded_blocks, 1U);
         expect_same_replay(history, without(history, "m "));
       }},
      {"A comment with a colon is a header line, `# KEY: VALUE`; the last of one key counts.",
       [] {
         const Trace trace = read_one("# no header\n# key: one\n# key: two: three\na 0 8 0\n");
         EXPECT_THAT(trace.header, SizeIs(1));
         EXPECT_EQ(trace.header.at("key"), "two: three");
       }},
      {"Headers may stand anywhere.",
       [] { EXPECT_EQ(told_of("a 0 8 0\n# key: value\nf 0\n"), told_of("a 0 8 0\nf 0\n# key: value\n")); }},
      {"Of those that Tenon does not know the first thousand are kept, and a remark counts the rest.",
       [] {
         std::string history;
         for (int i = 0; i < 1003; ++i) history += fmt::format("# note of mine {}: {}\n", i, i);
         const Trace trace = read_one(history + "# name: kept\na 0 8 0\n");
         EXPECT_EQ(trace.header.size(), 1001U) << "with the name, whose meaning is known";
         EXPECT_TRUE(trace.header.contains("note of mine 999") && !trace.header.contains("note of mine 1000"));
         EXPECT_EQ(trace.notes, std::vector<std::string>{"3 comments beyond the first 1000 are not kept"});
       }},
      {"Of a history with more than 32 remarks, 31 are written, and a last one that counts the others.",
       [] {
         for (const int count : {32, 33, 40}) {
           Trace trace = read_one("a 0 8 0\n");
           for (int i = 0; i < count; ++i) trace.notes.push_back(fmt::format("remark of mine {}", i));
           write_trace(trace, in_folder("remarks.trace"));
           const std::vector<std::string> notes = read_traces(in_folder("remarks.trace")).front().notes;
           ASSERT_EQ(notes.size(), 32U) << count;
           EXPECT_EQ(notes[30], "remark of mine 30");
           EXPECT_EQ(notes[31],
                     count == 32 ? "remark of mine 31" : fmt::format("{} more remarks are not kept", count - 31));
         }
       }},
      {"A settings line, a remark and a reason for distrust are read up to 4,096 bytes.",
       [] {
         for (const std::size_t length : {4096U, 5000U}) {
           const std::string text(length, 'x');
           const Trace trace = read_one("# recorded_conf: " + text + "\n# recorded_distrust: " + text +
                                        "\n# remark 1: " + text + "\na 0 8 0\n");
           EXPECT_EQ(trace.recorded->pytorch_conf.size(), 4096U);
           EXPECT_EQ(trace.distrust.size(), 4096U);
           EXPECT_EQ(trace.notes.at(0).size(), 4096U);
         }
       }},
      {"A figure of the recording that is no number says nothing, and its line is kept as it is.",
       [] {
         const Trace trace = read_one("# recorded_peak_reserved_bytes: many\na 0 8 0\n");
         EXPECT_EQ(trace.header.at("recorded_peak_reserved_bytes"), "many");
         EXPECT_FALSE(trace.recorded && trace.recorded->peak_reserved_bytes != 0);
       }},
  };
  return kTries;
}

const std::vector<Try>& tries_of_recordings() {
  static const std::vector<Try> kTries = {
      {"Blocks that lived already come first, in the order in which they were made; then one mark.",
       [] {
         const Trace trace = read_one("a 3 8 0\na 1 16 0\nm recording starts\na 2 8 0\n");
         EXPECT_EQ(trace.facts.seeded_blocks, 2U);
         EXPECT_EQ(trace.facts.seeded_bytes, 24U);
       }},
      {"Where blocks were freed before it, or where it stands a second time, it is a mark as any other.",
       [] {
         EXPECT_EQ(read_one("a 0 8 0\na 1 8 0\nf 0\nm recording starts\n").facts.seeded_blocks, 0U);
         EXPECT_EQ(read_one("a 0 8 0\nm recording starts\na 1 8 0\nm recording starts\n").facts.seeded_blocks, 1U);
       }},
      {"RESERVED is what the allocator had reserved at that moment, LEFT what the device still had; together they are "
       "its capacity.",
       [] {
         const Trace trace = read_one("m tenon:failed 0 3000 1000\na 0 2000 0\nf 0\n");
         ASSERT_THAT(trace.ooms, SizeIs(1));
         EXPECT_EQ(trace.ooms[0].reserved_bytes, 3000U);
         EXPECT_EQ(trace.ooms[0].device_free_bytes, 1000U);
         write(in_folder("died.trace"), "a 0 3000 0\nm tenon:failed 1 3000 1000\na 1 2000 0\nf 1\n");
         ASSERT_EQ(run_program("doctor died.trace -a direct --format json"), 0) << content(in_folder("said"));
         EXPECT_THAT(content(in_folder("said")), HasSubstr("\"capacity_bytes\": 4000"));
       }},
      {"Programs that do not know the mark see a block that is freed at once.",
       [] {
         const std::string history = "a 0 8 0\nm tenon:failed 1 100 50\na 1 60 0\nf 1\na 2 7 0\n";
         const Trace known = read_one(history), plain = read_one(without(history, "m "));
         EXPECT_TRUE(difference(known, plain).are_equal);
         EXPECT_THAT(plain.ooms, IsEmpty());
         EXPECT_EQ(plain.facts.end_live_bytes, 15U);
       }},
      {"A replay attempts the request.",
       [] {
         const std::string history = "a 0 1000 0\nm tenon:failed 1 1000 24\na 1 2000 0\nf 1\n";
         const ReplayRow narrow = replayed(history, 2000), wide = replayed(history, 4000);
         EXPECT_EQ(narrow.ooms, 1U);
         EXPECT_EQ(narrow.first_oom_event, 1U);
         EXPECT_EQ(wide.ooms, 0U);
         EXPECT_EQ(wide.peak_reserved_bytes, 3000U);
       }},
      {"The program gave the block back while another stream still used it.",
       [] {
         const Trace trace = read_one("a 0 8 0\nu 0 1\nm tenon:deferred 0\nf 0\n");
         EXPECT_EQ(trace.facts.deferred_frees, 1U);
         EXPECT_EQ(trace.facts.end_live_bytes, 0U) << "to the program it is free";
       }},
      {"The allocator cannot have the memory again before `completed`; a wait without it lasts to the end.",
       [] {
         load_all_plugins();
         StackConfig caching{.policy = find_allocator("caching"), .options = {}, .layers = {}};
         caching.options = Options(caching.policy.options);
         const std::string freed = "a 0 20971520 0\nu 0 1\nm tenon:deferred 0\nf 0\n", next = "a 1 20971520 0\n";
         EXPECT_EQ(replayed(freed + "m tenon:completed 0\n" + next, {}, caching).device_allocations, 1U);
         EXPECT_EQ(replayed(freed + next + "m tenon:completed 0\n", {}, caching).device_allocations, 2U);
         EXPECT_EQ(replayed(freed + next + next.substr(0, 2) + "2 20971520 0\n", {}, caching).device_allocations, 3U);
       }},
  };
  return kTries;
}

const std::vector<Try>& tries_of_times() {
  static const std::vector<Try> kTries = {
      {"Times are microseconds since the epoch, or by whatever clock the recording had; `+` counts on from the last "
       "time.",
       [] {
         const Trace trace = read_one("#t 1764633600000000\na 0 8 0\n#t +250\nf 0\n#t +1\na 1 8 0\n#t 3\nf 1\n",
                                      {.with_columns = true});
         EXPECT_THAT(trace.columns.times_us,
                     testing::ElementsAre(1764633600000000, 1764633600000250, 1764633600000251, 3));
       }},
      {"A purpose is one of `other`, `parameter`, `gradient`, `activation`, `optimizer_state`, `workspace`, `data`, "
       "`cast` and `kv_cache`.",
       [] {
         for (int i = 0; i < kPurposeCount; ++i) {
           const auto purpose = static_cast<Purpose>(i);
           EXPECT_THAT(told_with_columns(fmt::format("#p {}\na 0 8 0\n", name_of(purpose))),
                       HasSubstr(fmt::format("; for {}", name_of(purpose))));
         }
         EXPECT_THAT(told_with_columns("#p something\na 0 8 0\n"), testing::Not(HasSubstr("; for")));
       }},
      {"Lines before the first time get that time, allocations before the first purpose are for `other`.",
       [] {
         EXPECT_EQ(told_with_columns("a 0 8 0\nf 0\n#t 5\n#p data\na 1 8 0\n"),
                   "allocate block 0: 8 bytes on stream 0; for other; at 5\nfree block 0; at 5\n"
                   "allocate block 1: 8 bytes on stream 0; for data; at 5\n");
       }},
      {"Both are comments to programs that do not know them, and where no time or purpose follows they are comments "
       "here too; a replay does nothing with them.",
       [] {
         const std::string history = "#t 5\n#p data\na 0 1000 0\n#t +3\na 1 500 0\nf 0\n";
         EXPECT_EQ(told_of(history), told_of(without(history, "#")));
         EXPECT_EQ(told_with_columns("#t of day\n#p later\n#t\n#p\na 0 8 0\n"), told_of("a 0 8 0\n"));
         expect_same_replay(history, without(history, "#"));
       }},
      {"A mark of the program's own whose name begins with `tenon:`, or is `recording starts`, is written behind "
       "`tenon:mark`.",
       [] {
         TextLines lines;
         for (const std::string name : {"tenon:failed 0 0 0", "tenon:mine", "recording starts"}) {
           const std::string line(lines.mark(name));
           EXPECT_EQ(line, "m tenon:mark " + name + "\n");
           EXPECT_EQ(told_of("a 0 8 0\n" + line), "allocate block 0: 8 bytes on stream 0\nmark '" + name + "'\n");
         }
         EXPECT_EQ(std::string(lines.mark("step 1")), "m step 1\n");
       }},
      {"Other `tenon:` names are marks: a later version may give them a meaning.",
       [] { EXPECT_EQ(told_of("m tenon:what comes\n"), "mark 'tenon:what comes'\n"); }},
  };
  return kTries;
}

std::vector<Try> all_tries() {
  std::vector<Try> all;
  for (const auto* part : {&tries_of_the_page(), &tries_of_blocks(), &tries_of_lines(), &tries_of_marks_and_headers(),
                           &tries_of_recordings(), &tries_of_times()})
    all.insert(all.end(), part->begin(), part->end());
  return all;
}

class TextSentence : public testing::TestWithParam<Try> {};

TEST_P(TextSentence, DoesWhatItSays) {
  SCOPED_TRACE(GetParam().sentence);
  GetParam().run();
}

/// "01_What_a_program_asked_of_its"
std::string name_of_try(const testing::TestParamInfo<Try>& info) {
  std::string name = fmt::format("{:02}_", info.index + 1);
  for (const char c : info.param.sentence.substr(0, 40)) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Of, TextSentence, testing::ValuesIn(all_tries()), name_of_try);

TEST(TextSentences, EachHasItsOwnTry) {
  std::vector<std::string> tried;
  for (const Try& one : all_tries()) tried.push_back(one.sentence);
  EXPECT_EQ(tried, sentences());
}

}  // namespace
}  // namespace tenon::replay
