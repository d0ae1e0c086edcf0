// `tenon trace info|convert|slice|diff`: what each prints and writes, and how each says no.
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

#include <set>

namespace tenon::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

class TraceVerb : public Program {
 protected:
  void SetUp() override {
    // Two streams, a block used on both, a mark, a cache that is emptied, one block alive at the end.
    folder_.write(
        "two.trace",
        "# name: two\na 0 3000000 0\na 1 500 4\nm step 1\nu 0 4\nf 1\na 2 5000000 0\nf 0\ne\nm step 2\na 3 700 4\n"
        "f 2\n");
  }
  json row(const std::string& file) {
    const Said said = tenon({"trace", "info", file, "--format", "json"});
    EXPECT_EQ(said.code, 0) << said.error;
    return parse_json(said.out).at("rows").at(0);
  }
  json replayed(const std::string& file) {
    const Said said = tenon({"replay", file, "-a", "caching", "--format", "json", "--quiet"});
    EXPECT_EQ(said.code, 0) << said.error;
    return parse_json(said.out).at("rows").at(0);
  }
  void convert(const std::string& from, const std::string& to) {
    const Said said = tenon({"trace", "convert", from, to});
    ASSERT_EQ(said.code, 0) << said.error;
    EXPECT_EQ(said.error, "written: " + to + "\n");
  }
};

TEST_F(TraceVerb, InfoCountsWhatThereIs) {
  const json row = this->row("two.trace");
  EXPECT_EQ(row.at("format"), "text");
  EXPECT_EQ(row.at("events"), 9);
  EXPECT_EQ(row.at("allocations"), 4);
  EXPECT_EQ(row.at("frees"), 3);
  EXPECT_EQ(row.at("streams"), 2);
  EXPECT_EQ(row.at("peak_requested_bytes"), 8000000);
  EXPECT_EQ(row.at("end_live_bytes"), 700);
  EXPECT_EQ(row.at("unrecorded_bytes"), 0);
}

TEST_F(TraceVerb, TextAndBinaryKeepEveryEvent) {
  convert("two.trace", "two.tenon");
  convert("two.tenon", "back.trace.gz");
  convert("back.trace.gz", "again.tenon.gz");
  for (const char* file : {"two.tenon", "back.trace.gz", "again.tenon.gz"}) {
    const Said said = tenon({"trace", "diff", "two.trace", file});
    EXPECT_EQ(said.code, 0) << file << said.out;
    EXPECT_EQ(said.out, "equal: 9 events\n");
    EXPECT_EQ(replayed(file).at("placement_hash"), replayed("two.trace").at("placement_hash")) << file;
    EXPECT_EQ(replayed(file).at("reserved_series_fnv1a64"), replayed("two.trace").at("reserved_series_fnv1a64"));
  }
}

TEST_F(TraceVerb, ASnapshotKeepsAllocationsAndFrees) {
  // A snapshot has no record_stream and no empty_cache: the history here does without.
  folder_.write("plain.trace", "a 0 3000000 0\na 1 500 4\nf 1\na 2 5000000 0\nf 0\na 3 700 4\nf 2\n");
  convert("plain.trace", "plain.pickle");
  EXPECT_EQ(row("plain.pickle").at("format"), "snapshot");
  const json before = replayed("plain.trace");
  for (const char* file : {"plain.pickle", "plain.pickle.gz"}) {
    convert("plain.trace", file);
    const json after = replayed(file);
    for (const char* key : {"events", "allocations", "frees", "streams", "peak_requested_bytes", "peak_allocated_bytes",
                            "peak_reserved_bytes", "placement_hash", "reserved_series_fnv1a64"}) {
      EXPECT_EQ(after.at(key), before.at(key)) << key;
    }
  }
  convert("plain.pickle", "plain.tenon");
  EXPECT_EQ(tenon({"trace", "diff", "plain.trace", "plain.tenon"}).code, 0);
}

TEST_F(TraceVerb, AnRmmLogKeepsAllocationsAndFrees) {
  folder_.write("plain.trace", "a 0 3000000 0\na 1 500 4\nf 1\na 2 5000000 0\nf 0\na 3 700 4\nf 2\n");
  convert("plain.trace", "plain.csv");
  EXPECT_EQ(row("plain.csv").at("format"), "rmm");
  convert("plain.csv", "back.trace");
  EXPECT_EQ(tenon({"trace", "diff", "plain.trace", "back.trace"}).code, 0);
  EXPECT_EQ(replayed("plain.csv").at("placement_hash"), replayed("plain.trace").at("placement_hash"));
}

TEST_F(TraceVerb, AStaticProblemKeepsLivesAndThePeak) {
  const Said said = tenon({"trace", "convert", "two.trace", "two.csv", "--to", "minimalloc"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_EQ(row("two.csv").at("format"), "minimalloc");
  EXPECT_EQ(row("two.csv").at("peak_requested_bytes"), 8000000);
  EXPECT_EQ(row("two.csv").at("frees"), 4) << "what was never freed ends with the trace";
}

TEST_F(TraceVerb, SliceCutsAtEventsAndMarks) {
  const Said said = tenon({"trace", "slice", "two.trace", "part.trace", "--from", "step 1", "--until", "step 2"});
  EXPECT_EQ(said.code, 0) << said.error;
  const json row = this->row("part.trace");
  EXPECT_EQ(row.at("unrecorded_bytes"), 3000500) << "what lived at the cut stands at the start";
  EXPECT_EQ(row.at("peak_requested_bytes"), 8000000);
  EXPECT_THAT(tenon({"trace", "slice", "two.trace", "x.trace", "--from", "step 3"}).error,
              HasSubstr("has no mark \"step 3\""));
  EXPECT_THAT(tenon({"trace", "slice", "two.trace", "x.trace", "--from", "5", "--until", "4"}).error,
              HasSubstr("no event between 5 and 4: the history has 9 events, numbered from 0"));
}

TEST_F(TraceVerb, DiffNamesTheFirstEventAndEndsWithCodeOne) {
  folder_.write("other.trace", "a 0 3000000 0\na 1 501 4\n");
  const Said said = tenon({"trace", "diff", "two.trace", "other.trace"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.out,
              AllOf(HasSubstr("first difference at event 1"), HasSubstr("500 bytes"), HasSubstr("501 bytes")));
}

TEST_F(TraceVerb, ADifferenceAsJsonHasARowForEachFile) {
  folder_.write("other.trace", "a 0 3000000 0\na 1 501 4\n");
  const Said said = tenon({"trace", "diff", "two.trace", "other.trace", "--format", "json"});
  EXPECT_EQ(said.code, 1);
  const json rows = parse_json(said.out).at("rows");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows.at(0).at("equal"), false);
  EXPECT_EQ(rows.at(0).at("first_difference"), 1);
  EXPECT_EQ(rows.at(0).at("events"), 9);
  EXPECT_EQ(rows.at(1).at("events"), 2);
}

TEST_F(TraceVerb, ADashIsStandardInputAndOutput) {
  const std::string history = (folder_.path() / "two.trace").string();
  const Said said = tenon_in(folder_, {"trace", "convert", "-", "-", "--to", "text"}, {}, history);
  ASSERT_EQ(said.code, 0) << said.error;
  folder_.write("back.trace", said.out);
  EXPECT_EQ(tenon({"trace", "diff", "two.trace", "back.trace"}).out, "equal: 9 events\n");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "-"));
  const Said replayed =
      tenon_in(folder_, {"replay", "-", "-a", "caching", "--snapshot", "x.pickle", "--format", "json"}, {}, history);
  ASSERT_EQ(replayed.code, 0) << replayed.error;
  EXPECT_EQ(parse_json(replayed.out).at("rows").at(0).at("trace"), "standard input");
  EXPECT_EQ(row("x.pickle").at("allocations"), 4);
  const Said empty = tenon({"trace", "info", "-"});
  EXPECT_EQ(empty.code, 2);
  EXPECT_THAT(empty.error, HasSubstr("standard input: byte 0: the file is empty"));
}

TEST_F(TraceVerb, FilesOfOneNameAreToldApartByTheirPaths) {
  folder_.write("one/x.trace", "a 0 8 0\n");
  folder_.write("two/x.trace", "a 0 16 0\n");
  for (const std::vector<std::string>& verb : {std::vector<std::string>{"trace", "info"}, {"replay", "-a", "direct"}}) {
    std::vector<std::string> words = verb;
    words.insert(words.end(), {"one/x.trace", "two/x.trace", "two.trace", "--format", "json"});
    std::set<std::string> names;
    const json document = parse_json(tenon(words).out);
    for (const json& row : document.at("rows")) names.insert(row.at("trace"));
    EXPECT_EQ(names, (std::set<std::string>{"one/x.trace", "two/x.trace", "two.trace"}));
  }
}

TEST_F(TraceVerb, WhatAFormatHasNoPlaceForIsSaid) {
  folder_.write("rich.trace", "m step\na 0 3000000 0\nu 0 4\na 1 500 4\ne\nf 1\nf 0\n");
  const Said rmm = tenon({"trace", "convert", "rich.trace", "rich.csv", "--to", "rmm"});
  EXPECT_EQ(rmm.code, 0);
  EXPECT_THAT(rmm.error, AllOf(HasSubstr("left out"), HasSubstr("1 use on other streams"),
                               testing::ContainsRegex("1 mark([^s]|$)")));
  const Said problem = tenon({"trace", "convert", "rich.trace", "rich.csv", "--to", "minimalloc"});
  EXPECT_THAT(problem.error, HasSubstr("2 streams"));
  folder_.write("late.trace", "# recorded_peak_reserved_bytes: 4194304\na 0 3000000 0\nm recording starts\nf 0\n");
  EXPECT_THAT(
      tenon({"trace", "convert", "late.trace", "late.csv", "--to", "rmm"}).error,
      AllOf(HasSubstr("which blocks are older than the recording (1)"), HasSubstr("what is known of the recording")));
  EXPECT_THAT(tenon({"trace", "convert", "rich.trace", "rich.pickle"}).error,
              HasSubstr("1 use on other streams (the frees of these blocks wait there"));
}

TEST_F(TraceVerb, MarksThatAreNotUtf8AreReplacedWhereTheFormatIs) {
  folder_.write("latin.trace", "m caf\xe9 \"1\"\na 0 512 0\nf 0\n");
  convert("latin.trace", "latin.json");
  const json chrome = parse_json(read_bytes(folder_.path() / "latin.json"));
  EXPECT_EQ(chrome.at("traceEvents").at(0).at("name"), "caf\xef\xbf\xbd \"1\"");
  convert("latin.trace", "latin.pickle");
  EXPECT_EQ(row("latin.pickle").at("events"), 2);
}

TEST_F(TraceVerb, ADeviceGoesByTheNumberOfTheRecording) {
  const auto event = [](int device, long long bytes) {
    return R"({"name":"[memory]","ph":"i","ts":1,"args":{"Device Type":1,"Device Id":)" + std::to_string(device) +
           R"(,"Addr":4096,"Bytes":)" + std::to_string(bytes) + R"(,"Total Allocated":)" + std::to_string(bytes) + "}}";
  };
  folder_.write("two_devices.json", R"({"traceEvents":[)" + event(1, 1024) + "," + event(3, 3072) + "]}");
  for (const auto& [device, bytes] : {std::pair("1", 1024), std::pair("3", 3072)}) {
    const Said said = tenon({"trace", "convert", "two_devices.json", "one.trace", "--device", device});
    ASSERT_EQ(said.code, 0) << said.error;
    EXPECT_EQ(row("one.trace").at("peak_requested_bytes"), bytes) << device;
    const Said equal = tenon({"trace", "diff", "two_devices.json", "one.trace", "--device", device});
    EXPECT_EQ(equal.code, 0) << "a file of one device has no other: " << equal.error;
  }
  for (const char* verb : {"convert", "view"}) {
    const std::vector<std::string> words =
        verb == std::string("view") ? std::vector<std::string>{"view", "two_devices.json", "-o", "x.html"}
                                    : std::vector<std::string>{"trace", "convert", "two_devices.json", "x.trace"};
    const Said said = tenon(words);
    EXPECT_EQ(said.code, 2);
    EXPECT_THAT(said.error, HasSubstr("holds the histories of devices 1, 3; choose one with --device"));
  }
}

TEST_F(TraceVerb, WhatAFileSaysCannotControlTheTerminal) {
  folder_.write("evil.trace", "# remark 1: \x1b]0;owned\x07 \x1b[2J\na 0 8 0\nf 0\n");
  const Said said = tenon({"trace", "info", "evil.trace"});
  EXPECT_THAT(said.error, HasSubstr("\\x1b]0;owned\\x07 \\x1b[2J"));
  EXPECT_EQ((said.out + said.error).find('\x1b'), std::string::npos);
  const std::string name = "\x1b[31mred.trace";
  folder_.write(name, "a 0 8 0\nf 0\n");
  for (const auto& words : {std::vector<std::string>{"trace", "info", name}, {"plan", name}, {"replay", name}}) {
    const Said of_name = tenon(words);
    EXPECT_EQ(of_name.code, 0) << of_name.error;
    EXPECT_EQ((of_name.out + of_name.error).find('\x1b'), std::string::npos) << words.front();
  }
}

TEST_F(TraceVerb, ANameThatIsNotUtf8IsMadeValidInEveryForm) {
  folder_.write("bad\xff.trace", "a 0 8 0\nf 0\n");
  for (const char* format : {"csv", "markdown"}) {
    const Said said = tenon({"replay", "bad\xff.trace", "-a", "direct", "--format", format});
    EXPECT_EQ(said.code, 0) << said.error;
    EXPECT_EQ(said.out.find('\xff'), std::string::npos) << said.out;
    if (format == std::string("markdown")) {
      EXPECT_EQ(said.out.find("| trace "), std::string::npos) << "there is one history";
    }
  }
}

TEST_F(TraceVerb, AFailedWriteTouchesNothingThatStoodThere) {
  // A link to the device that is always full: a mistake here removes the link, not the device.
  const auto link = folder_.path() / "full.trace";
  std::filesystem::create_symlink("/dev/full", link);
  const Said said = tenon({"trace", "convert", "two.trace", "full.trace"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.error, AllOf(HasSubstr("cannot write "), HasSubstr("full.trace: No space left on device")));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(std::filesystem::is_character_file(link));

  ASSERT_EQ(tenon({"trace", "convert", "two.trace", "kept.pickle"}).code, 0);
  const auto before = std::filesystem::file_size(folder_.path() / "kept.pickle");
  const Said faulty = tenon({"trace", "convert", "two.trace", "kept.pickle", "-a",
                             std::string(TENON_FIXTURE_DIR "/crasher.so:after=2,how=segv")});
  EXPECT_EQ(faulty.code, 1) << "a plugin that crashes fails the conversion, not the program";
  EXPECT_THAT(faulty.error, AllOf(HasSubstr("crasher"), HasSubstr("at event")));
  EXPECT_EQ(std::filesystem::file_size(folder_.path() / "kept.pickle"), before);
  EXPECT_EQ(tenon({"trace", "convert", "two.trace", "kept.pickle", "-a",
                   std::string(TENON_FIXTURE_DIR "/faulty.so:after=2,how=overlap")})
                .code,
            1);
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    EXPECT_EQ(entry.path().string().find(".partial-"), std::string::npos) << entry.path();
}

TEST_F(TraceVerb, AnOutputNeverReplacesTheHistoryThatIsRead) {
  const std::string before = read_bytes(folder_.path() / "two.trace");
  std::filesystem::create_symlink("two.trace", folder_.path() / "link.trace");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"trace", "convert", "two.trace", "./two.trace"},
        {"trace", "slice", "two.trace", "link.trace", "--from", "2"},
        {"view", "two.trace", "-o", "two.trace"},
        {"replay", "two.trace", "-a", "direct", "--html", "two.trace"},
        {"replay", "two.trace", "-a", "direct", "--snapshot", "two.trace"}}) {
    const Said said = tenon(words);
    EXPECT_EQ(said.code, 2) << words.back();
    EXPECT_THAT(said.error, HasSubstr("is what this command reads (two.trace)"));
  }
  EXPECT_EQ(read_bytes(folder_.path() / "two.trace"), before);
  const Said twice = tenon({"replay", "two.trace", "-a", "direct", "--html", "x", "--svg", "x"});
  EXPECT_EQ(twice.code, 2);
  EXPECT_THAT(twice.error, HasSubstr("x: is the name of two outputs"));
}

TEST_F(TraceVerb, AnOutputNeverReplacesWhatStandardInputComesFrom) {
  const std::string history = (folder_.path() / "two.trace").string();
  const std::string before = read_bytes(history);
  const Said said = tenon_in(folder_, {"trace", "slice", "-", "two.trace", "--from", "2"}, {}, history);
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.error, HasSubstr("two.trace: is what standard input comes from"));
  EXPECT_EQ(read_bytes(history), before);
}

TEST_F(TraceVerb, StandardInputIsReadOnce) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"trace", "diff", "-", "-"}, {"trace", "info", "-", "-"}, {"replay", "-", "-"}}) {
    const Said said = tenon(words);
    EXPECT_EQ(said.code, 2) << words.back();
    EXPECT_THAT(said.error, HasSubstr("standard input is named twice"));
  }
}

TEST_F(TraceVerb, EveryFormGoesToStandardOutput) {
  for (const char* form : {"text", "binary", "snapshot", "chrome", "rmm", "minimalloc"}) {
    const Said said = tenon({"trace", "convert", "two.trace", "-", "--to", form});
    ASSERT_EQ(said.code, 0) << form << said.error;
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "-")) << form;
    if (form == std::string("chrome")) continue;
    const std::string file = std::string("piped.") + form;
    folder_.write(file, said.out);
    EXPECT_EQ(row(file).at("peak_requested_bytes"), 8000000) << form;
  }
}

TEST_F(TraceVerb, ABinaryConversionIsWholeOrNotThereAndCompressedWhereTheNameSaysSo) {
  convert("two.trace", "two.tenon.gz");
  EXPECT_TRUE(read_bytes(folder_.path() / "two.tenon.gz").starts_with("\x1f\x8b"));
  EXPECT_EQ(tenon({"trace", "diff", "two.trace", "two.tenon.gz"}).code, 0);
  // A limit on the size of files stands for a full disk: what was there before stays.
  std::string long_history;
  for (int i = 0; i < 9000; ++i) long_history += "a " + std::to_string(i) + " " + std::to_string(512 + i * 7) + " 0\n";
  folder_.write("long.trace", long_history);
  folder_.write("kept.tenon", "what was there before");
  const std::string line = "cd '" + folder_.path().string() +
                           "' && trap '' XFSZ && ulimit -f 16 && '" TENON_PROGRAM
                           "' trace convert long.trace kept.tenon 2> said";
  EXPECT_NE(std::system(line.c_str()), 0);
  EXPECT_THAT(read_bytes(folder_.path() / "said"), ContainsRegex("cannot write .*kept.tenon: "));
  EXPECT_EQ(read_bytes(folder_.path() / "kept.tenon"), "what was there before");
}

TEST_F(TraceVerb, ACutInsideAFailedRequestIsMadeBeforeIt) {
  folder_.write("died.trace", "a 0 100 0\nm tenon:failed 1 100 50\na 1 60 0\nf 1\na 2 7 0\n");
  ASSERT_EQ(tenon({"trace", "slice", "died.trace", "rest.trace", "--from", "2"}).code, 0);
  EXPECT_EQ(row("rest.trace").at("unrecorded_bytes"), 100);
  EXPECT_THAT(tenon({"trace", "slice", "died.trace", "x.trace", "--from", "1", "--until", "2"}).error,
              HasSubstr("no event between 1 and 1"));
  EXPECT_THAT(tenon({"trace", "convert", "died.trace", "died.csv", "--to", "minimalloc"}).error,
              HasSubstr("which requests ran out of memory (1; they are buffers there)"));
}

TEST_F(TraceVerb, ALinkAsOutputStaysOne) {
  std::filesystem::create_symlink("later.trace", folder_.path() / "dangling.trace");
  convert("two.trace", "dangling.trace");
  EXPECT_TRUE(std::filesystem::is_symlink(folder_.path() / "dangling.trace"));
  EXPECT_TRUE(std::filesystem::is_regular_file(folder_.path() / "later.trace"));
}

TEST_F(TraceVerb, AnAllocatorWhereNonePlacesBlocksIsSaidToChangeNothingAndAMistypedOneIsRefused) {
  const std::vector<std::vector<std::string>> commands = {{"trace", "convert", "two.trace", "out.tenon"},
                                                          {"trace", "slice", "two.trace", "out.tenon"}};
  for (std::vector<std::string> words : commands) {
    words.insert(words.end(), {"-a", "direct", "--capacity", "1GiB"});
    const Said said = tenon(words);
    EXPECT_EQ(said.code, 0) << said.error;
    EXPECT_THAT(said.error, HasSubstr("tenon: --allocator and --capacity change nothing here: "));
    words.back() = "much";
    EXPECT_EQ(tenon(words).code, 2);
    words.resize(words.size() - 2);
    words.back() = "nonsense";
    const Said refused = tenon(words);
    EXPECT_EQ(refused.code, 2) << refused.error;
    EXPECT_THAT(refused.error, HasSubstr("nonsense"));
  }
  EXPECT_THAT(tenon({"trace", "convert", "two.trace", "out.pickle", "-a", "direct"}).error,
              testing::Not(HasSubstr("nothing here")));
}

TEST_F(TraceVerb, SaysNoWithAReason) {
  const std::pair<std::vector<std::string>, const char*> mistakes[] = {
      {{"trace", "convert", "two.trace", "two.xyz"}, "two.xyz: the ending says no format"},
      {{"trace", "convert", "two.trace", "two.folded"}, "has no call stacks"},
      {{"trace", "convert", "two.trace", "absent/two.tenon"}, "absent/two.tenon"},
      {{"trace", "convert", "two.trace", "two.tenon", "--device", "2"}, "no history of device 2; it has: 0"},
      {{"trace", "convert", "two.trace"}, "output is required"},
      {{"trace", "convrt", "two.trace", "x.tenon"}, "did you mean \"tenon trace convert\"?"},
      {{"trace", "diff", "two.trace", "absent.trace"}, "absent.trace: cannot be opened"}};
  for (const auto& [words, message] : mistakes) {
    const Said said = tenon(words);
    EXPECT_TRUE(said.code == 1 || said.code == 2) << message << ": " << said.code;
    EXPECT_THAT(said.error + said.out, HasSubstr(message));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "two.folded")) << "nothing is left of what was refused";
}

}  // namespace
}  // namespace tenon::test
