// `tenon replay` and `tenon view`: exit codes, and messages with file, position and reason.
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

#include <unistd.h>

namespace tenon::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ReplayVerb : public Program {
 protected:
  void SetUp() override {
    std::string text = "# name: steps\n";
    for (int i = 0; i < 40; ++i) {
      text += "a " + std::to_string(i) + " " + std::to_string(1000000 * (i % 7 + 1)) + " 0\n";
      if (i >= 4) text += "f " + std::to_string(i - 4) + "\n";
    }
    folder_.write("steps.trace", text);
  }
  Said replay(std::vector<std::string> words) {
    words.insert(words.begin(), "replay");
    return tenon(words);
  }
  json rows(std::vector<std::string> words) {
    words.insert(words.end(), {"--format", "json"});
    const Said said = replay(words);
    EXPECT_EQ(said.code, 0) << said.error;
    return parse_json(said.out).at("rows");
  }
  static std::string faulty(const std::string& how) {
    return std::string(TENON_FIXTURE_DIR "/faulty.so:after=20,how=") + how;
  }
};

TEST_F(ReplayVerb, PrintsEveryKeyOfTheContract) {
  const Said said = replay({"steps.trace", "--format", "json"});
  ASSERT_EQ(said.code, 0) << said.error;
  const json document = parse_json(said.out);
  EXPECT_EQ(document.at("schema_version"), 1);
  for (const char* key : {"host", "cpu", "cores", "compiler", "build_type", "tenon_version", "plugins"})
    EXPECT_TRUE(document.at("environment").contains(key)) << key;
  const json& rows = document.at("rows");
  ASSERT_GE(rows.size(), 4u) << "direct, caching, expandable, ideal";
  for (const json& row : rows) {
    for (const char* key : {"trace",
                            "allocator",
                            "options",
                            "capacity_bytes",
                            "events",
                            "allocations",
                            "frees",
                            "streams",
                            "peak_requested_bytes",
                            "peak_allocated_bytes",
                            "peak_active_bytes",
                            "peak_reserved_bytes",
                            "excess",
                            "internal_fragmentation",
                            "external_fragmentation",
                            "device_allocations",
                            "device_frees",
                            "device_maps",
                            "device_unmaps",
                            "device_synchronizations",
                            "retries",
                            "ooms",
                            "first_oom_event",
                            "reserved_series_fnv1a64",
                            "placement_hash",
                            "seconds",
                            "events_per_second",
                            "allocate_ns",
                            "free_ns"}) {
      EXPECT_TRUE(row.contains(key)) << row.at("allocator") << " lacks " << key;
    }
    EXPECT_EQ(row.at("events"), 76);
    EXPECT_TRUE(row.at("capacity_bytes").is_null());
  }
  EXPECT_EQ(rows.back().at("allocator"), "ideal");
  EXPECT_EQ(rows.back().at("peak_reserved_bytes"), rows.back().at("peak_requested_bytes"));
}

TEST_F(ReplayVerb, RunningOutOfMemoryIsAResult) {
  const json row = rows({"steps.trace", "-a", "direct", "--capacity", "12MiB"}).at(0);
  EXPECT_GT(row.at("ooms"), 0);
  EXPECT_TRUE(row.at("first_oom_event").is_number());
  EXPECT_EQ(row.at("capacity_bytes"), 12 << 20);
  const Said gated = replay({"steps.trace", "-a", "direct", "--capacity", "12MiB", "--fail-if", "ooms > 0"});
  EXPECT_EQ(gated.code, 3) << gated.error;
}

TEST_F(ReplayVerb, ACapacityMayHaveADecimalFraction) {
  EXPECT_EQ(rows({"steps.trace", "-a", "direct", "--capacity", "14.7GiB"}).at(0).at("capacity_bytes"), 15784004812);
  const Said fraction_of_a_byte = replay({"steps.trace", "-a", "direct", "--capacity", "1.5"});
  EXPECT_EQ(fraction_of_a_byte.code, 2);
  EXPECT_THAT(fraction_of_a_byte.error, AllOf(HasSubstr("\"1.5\" is not a size"), HasSubstr("needs a larger unit")));
}

TEST_F(ReplayVerb, AnEmptyHistoryIsReplayed) {
  folder_.write("empty.trace", "# nothing happened\n");
  const json rows = this->rows({"empty.trace", "-a", "caching"});
  EXPECT_EQ(rows.at(0).at("events"), 0);
  EXPECT_EQ(rows.at(0).at("peak_reserved_bytes"), 0);
}

TEST_F(ReplayVerb, AnEmptyHistoryPassesNoGate) {
  folder_.write("empty.trace", "# nothing happened\n");
  EXPECT_THAT(replay({"empty.trace", "-a", "caching"}).error,
              HasSubstr("empty.trace: the history holds no allocation"));
  const Said said = replay({"empty.trace", "-a", "caching", "-q", "--fail-if", "ooms > 0"});
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.error, HasSubstr("ooms > 0 cannot be judged, the history holds no allocation"));
}

TEST_F(ReplayVerb, AReportIsUtf8WhateverTheFileIsCalled) {
  folder_.write("caf\xe9.trace", "a 0 512 0\nf 0\n");
  ASSERT_EQ(replay({"caf\xe9.trace", "-a", "direct", "--html", "x.html"}).code, 0);
  const std::string page = read_bytes(folder_.path() / "x.html");
  EXPECT_THAT(page, HasSubstr("caf\xef\xbf\xbd.trace"));
  EXPECT_THAT(page, Not(HasSubstr("caf\xe9")));
}

TEST_F(ReplayVerb, AReportThatCannotBeWrittenLeavesWhatStoodThere) {
  folder_.write("kept.html", "an earlier report");
  std::filesystem::permissions(folder_.path() / "kept.html", std::filesystem::perms::owner_read);
  if (::geteuid() != 0) {  // root may write everything
    EXPECT_EQ(replay({"steps.trace", "-a", "direct", "--html", "kept.html"}).code, 2);
    EXPECT_EQ(read_bytes(folder_.path() / "kept.html"), "an earlier report");
  }
  const Said said = replay({"steps.trace", "-a", "direct", "--html", "nowhere/x.html"});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.error, HasSubstr("cannot write nowhere/x.html: there is no folder nowhere"));
}

TEST_F(ReplayVerb, AnIllFormedHistoryNamesFilePositionAndReason) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"a 0 8 0\nf 0\nf 0\n", "tenon: bad.trace:3: frees id 0, which was freed before"},
      {"a 0 8 0\nf 7\n", "tenon: bad.trace:2: frees id 7, which was never allocated"},
      {"a 0 8\n", "tenon: bad.trace:1: expected a space and a stream"},
      {"\x80\x04"
       "cos\nsystem\n.",
       "tenon: bad.trace: byte 2: operator 0x63: GLOBAL could run code: refused, nothing was executed"},
      {"", "tenon: bad.trace: byte 0: the file is empty"},
      {"Thread,Time,Action,Pointer,Size,Stream\n1,0,free,0x10,8,0\n", "tenon: bad.trace:2: frees 0x10"},
      {"[{\"name\":", "tenon: bad.trace: byte 9: invalid JSON"},
  };
  for (const auto& [text, message] : mistakes) {
    folder_.write("bad.trace", text);
    for (const std::vector<std::string>& verb : {std::vector<std::string>{"replay", "bad.trace"},
                                                 {"trace", "info", "bad.trace"},
                                                 {"tune", "bad.trace", "--capacity", "1GiB"},
                                                 {"view", "bad.trace", "-o", "x.html"}}) {
      const Said said = tenon(verb);
      EXPECT_EQ(said.code, 2) << verb.front() << ": " << text;
      EXPECT_THAT(said.error, HasSubstr(message)) << verb.front();
      EXPECT_EQ(said.out, "");
    }
  }
}

TEST_F(ReplayVerb, AFileThatCannotBeReadIsNamed) {
  EXPECT_THAT(replay({"absent.trace"}).error, HasSubstr("absent.trace: cannot be opened: No such file"));
  EXPECT_EQ(replay({"absent.trace"}).code, 2);
  folder_.write("folder/x", "");
  EXPECT_THAT(replay({"folder"}).error, HasSubstr("folder: is a directory, not a history"));
  EXPECT_EQ(replay({}).code, 2);
}

TEST_F(ReplayVerb, AnAllocatorThatGoesWrongFailsItsRowAlone) {
  const std::pair<const char*, const char*> faults[] = {
      {"overlap", "overlap"}, {"small", "handed out"}, {"outside", "outside"}, {"throws", "a bug of its own"}};
  for (const auto& [how, word] : faults) {
    const Said said = replay({"steps.trace", "-a", faulty(how), "-a", "caching", "--format", "json"});
    EXPECT_EQ(said.code, 1) << how;
    // Request 20 is event 36: sixteen frees came before it.
    EXPECT_THAT(said.error, AllOf(HasSubstr("disqualified"), HasSubstr("event 36"), HasSubstr(word))) << how;
    const json rows = parse_json(said.out).at("rows");
    EXPECT_EQ(rows.at(0).at("failed_event"), 36) << how;
    EXPECT_TRUE(rows.at(1).at("failure").is_null()) << "the others are not touched";
    EXPECT_EQ(rows.at(1).at("events"), 76);
  }
}

TEST_F(ReplayVerb, TheCommandThatFindsABrokenPromiseIsNamedForEachRowThatFailed) {
  const Said said = replay({"steps.trace", "-a", faulty("overlap"), "-a", faulty("throws"), "-a", "caching", "-q"});
  EXPECT_THAT(said.error,
              AllOf(HasSubstr("\n  tenon plugins test " + faulty("overlap") + "\n"),
                    HasSubstr("\n  tenon plugins test " + faulty("throws") + "\n"), Not(HasSubstr("test caching"))));
  EXPECT_THAT(replay({"steps.trace", "-a", "caching"}).error, Not(HasSubstr("plugins test")));
}

TEST_F(ReplayVerb, PicturesAndPagesShowWhatEachAllocatorReservedOverTime) {
  const auto lines_in = [&](const std::string& option, const std::string& file, std::vector<std::string> words) {
    words.insert(words.end(), {option, file, "-q"});
    EXPECT_EQ(replay(words).code, 0);
    const std::string text = read_bytes(folder_.path() / file);
    int lines = 0;
    for (std::size_t at = 0; (at = text.find("<path", at)) != std::string::npos; ++at) ++lines;
    return lines;
  };
  for (const auto& [option, file] : {std::pair("--svg", "one.svg"), std::pair("--html", "one.html")}) {
    const int one = lines_in(option, file, {"steps.trace", "-a", "caching"});
    const int two = lines_in(option, std::string("two") + file, {"steps.trace", "-a", "caching", "-a", "direct"});
    EXPECT_GT(two, one) << option;
  }
}

TEST_F(ReplayVerb, AnAllocatorThatCrashesFailsItsRowAlone) {
  for (const char* how : {"segv", "abort", "exit"}) {
    const Said said = replay({"steps.trace", "-a", std::string(TENON_FIXTURE_DIR "/crasher.so:after=20,how=") + how,
                              "-a", "caching", "--format", "json"});
    EXPECT_EQ(said.code, 1) << how;
    EXPECT_THAT(said.error, AllOf(HasSubstr("disqualified"), HasSubstr("event 36"))) << how;
    EXPECT_TRUE(parse_json(said.out).at("rows").at(1).at("failure").is_null());
  }
}

TEST_F(ReplayVerb, AConstructorOrADestructorThatGoesWrongFailsItsRowAlone) {
  const std::pair<const char*, const char*> faults[] = {
      {"construct", "crashed: Segmentation fault while it was being made"},
      {"construct_hang", "did not end within 1 s while it was being made"},
      {"destroy", "crashed: Segmentation fault when it was destroyed"},
      {"destroy_hang", "did not end within 1 s when it was destroyed"}};
  for (const auto& [how, words] : faults) {
    const Said said = replay({"steps.trace", "-a", std::string(TENON_FIXTURE_DIR "/crasher.so:how=") + how, "-a",
                              "caching", "--format", "json", "--deadline", "1"});
    ASSERT_EQ(said.code, 1) << how << ": " << said.error;
    EXPECT_THAT(said.error, AllOf(HasSubstr("disqualified"), HasSubstr(words))) << how;
    EXPECT_TRUE(parse_json(said.out).at("rows").at(1).at("failure").is_null()) << how;
  }
}

TEST_F(ReplayVerb, AnErrorInAConstructorNamesTheAllocatorAndItsFile) {
  const std::string file = std::string(TENON_FIXTURE_DIR "/crasher.so");
  const std::string who = "allocator 'crasher' (" + file + ") was not made: ";
  const Said error = replay({"steps.trace", "-a", file + ":how=construct_error", "-a", "caching"});
  EXPECT_EQ(error.code, 1);
  EXPECT_THAT(error.error, HasSubstr(who + "the table of sizes cannot be read"));
  const Said refusal = replay({"steps.trace", "-a", file + ":how=construct_refusal", "-a", "caching"});
  EXPECT_EQ(refusal.code, 2);
  EXPECT_THAT(refusal.error, HasSubstr("\"crasher:how=construct_refusal\": " + who + "after and how do not go"));
}

TEST_F(ReplayVerb, MistakesOnTheCommandLineEndWithCodeTwo) {
  folder_.write("result.json", replay({"steps.trace", "-a", "caching", "--format", "json"}).out);
  const std::pair<std::vector<std::string>, const char*> mistakes[] = {
      {{"steps.trace", "-a", "cachng"}, "did you mean"},
      {{"steps.trace", "--capacity", ""}, "an empty value"},
      {{"steps.trace", "--html", ""}, "an empty value, as of a shell variable that is not set"},
      {{"steps.trace", "-a", "caching:max_split=1"}, "max_split"},
      {{"steps.trace", "-a", "caching:max_split_size=1GiB,max_split_size=2GiB"}, "'max_split_size' is set twice"},
      {{"steps.trace", "-a", "caching,expandable"}, "give each by itself"},
      {{"steps.trace", "--capacity", "12 parsecs"}, "12 parsecs"},
      {{"steps.trace", "--capacity", "8"}, "8 is 8 bytes, less than a page of the device; did you mean 8GiB?"},
      {{"steps.trace", "--fail-if", "ooms >"}, "ooms"},
      {{"steps.trace", "--fail-if", "peak_reserved_bytes > +2%"}, "--baseline"},
      {{"steps.trace", "--pytorch-conf", "expandable_segment:True"}, "expandable_segment"},
      {{"steps.trace", "--pytorch-conf", "expandable_segments=True"}, "a ':' stands between a key and its value"},
      {{"result.json"}, "read by `tenon compare`"},
      {{"steps.trace", "--alocator", "caching"}, "--allocator"},
      {{"steps.trace", "--format", "yaml"}, "yaml"}};
  for (const auto& [words, message] : mistakes) {
    const Said said = replay(words);
    EXPECT_TRUE(said.code == 2 || (said.code == 5 && words.back() == "cachng")) << message << ": " << said.code;
    EXPECT_THAT(said.error, HasSubstr(message));
  }
}

TEST_F(ReplayVerb, AReportThatCannotBeWrittenIsAnError) {
  const Said said = replay({"steps.trace", "-a", "direct", "--html", "absent/report.html"});
  EXPECT_NE(said.code, 0);
  EXPECT_THAT(said.error, HasSubstr("absent/report.html"));
}

TEST_F(ReplayVerb, ViewWritesAPage) {
  const Said said = tenon({"view", "steps.trace", "-o", "memory.html"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(read_bytes(folder_.path() / "memory.html"), HasSubstr("<html"));
  EXPECT_EQ(said.error, "report: memory.html\n");
  EXPECT_EQ(tenon({"view", "steps.trace", "-o", "memory.html", "-q"}).error, "");
  folder_.write("runs/named.trace", read_bytes(folder_.path() / "steps.trace"));
  EXPECT_EQ(tenon({"view", "runs/named.trace"}).error, "report: named.html\n");
  EXPECT_THAT(read_bytes(folder_.path() / "named.html"), HasSubstr("<html"));
  EXPECT_EQ(tenon({"view", "-"}).code, 2) << "standard input has no name";
  EXPECT_THAT(tenon({"view", "steps.trace", "-o", "x.html", "--device", "3"}).error,
              HasSubstr("no history of device 3; it has: 0"));
}

TEST_F(ReplayVerb, AHistoryWithoutARequestHasNoPageAndNoPlan) {
  folder_.write("none.trace", "m start\n");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"view", "none.trace", "-o", "none.html"}, {"plan", "none.trace", "-o", "none.plan"}}) {
    const Said said = tenon(words);
    EXPECT_EQ(said.code, 2) << words[0];
    EXPECT_THAT(said.error, HasSubstr("none.trace: the history holds no allocation")) << words[0];
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "none.html"));
}

TEST_F(ReplayVerb, TheViewOfWhatAReplayWroteShowsThatReplayAndSimulatesNone) {
  folder_.write("steps.trace", "a 1 3000000 0\na 2 3000000 0\nf 1\n");
  ASSERT_EQ(tenon({"replay", "steps.trace", "-a", "direct", "--snapshot", "r.pickle"}).code, 0);
  ASSERT_EQ(tenon({"view", "r.pickle", "-o", "r.html"}).code, 0);
  const std::string page = read_bytes(folder_.path() / "r.html");
  EXPECT_THAT(page, AllOf(HasSubstr("Segments in the replay under direct, at the end"), HasSubstr("1 segment,")));
  EXPECT_THAT(page, Not(HasSubstr("Segments in a replay under caching")));
}

TEST_F(ReplayVerb, AUseOfARequestThatWasRefusedIsNotHeldAgainstTheNextBlock) {
  folder_.write("refused.trace", "a 0 104857600 0\nu 0 3\nf 0\na 1 1000 1\nf 1\na 2 1000 1\nf 2\n");
  const Said said = tenon({"replay", "refused.trace", "-a", "caching", "--capacity", "30MiB"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.error, AllOf(HasSubstr("ran out of memory"), Not(HasSubstr("disqualified"))));
}

TEST_F(ReplayVerb, ATrippedGateIsInTheJson) {
  const Said gated = replay({"steps.trace", "-a", "caching", "--capacity", "1MiB", "--fail-if", "ooms > 0", "--fail-if",
                             "events < 0", "--format", "json", "-q"});
  EXPECT_EQ(gated.code, 3);
  const json gates = parse_json(gated.out).at("gates");
  ASSERT_EQ(gates.size(), 2u);
  EXPECT_EQ(gates[0]["expression"], "ooms > 0");
  EXPECT_EQ(gates[0]["tripped"], true);
  EXPECT_EQ(gates[0]["because"].size(), 1u);
  EXPECT_EQ(gates[1]["tripped"], false);
}

}  // namespace
}  // namespace tenon::test
