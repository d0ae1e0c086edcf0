// `tenon replay`: gates, baselines, repeated passes, and what it writes.
#include "cli/pinned_segments.h"
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ReplayGate : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    folder_.write("pinned.trace", pinned_segments());
  }
  Said replay(std::vector<std::string> more) {
    std::vector<std::string> words = {"replay", "pinned.trace", "-a", "caching"};
    words.insert(words.end(), more.begin(), more.end());
    return tenon(words);
  }
  /// The rows of a replay as a baseline file.
  void baseline(const std::string& file) { folder_.write(file, replay({"--format", "json", "--quiet"}).out); }
};

TEST_F(ReplayGate, RunningOutIsAResultUntilAGateSaysOtherwise) {
  EXPECT_EQ(replay({"--capacity", "420MiB"}).code, 0);
  const Said said = replay({"--capacity", "420MiB", "--fail-if", "ooms > 0"});
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.error, AllOf(HasSubstr("ooms is 1"), HasSubstr("tripped 'ooms > 0'")));
  EXPECT_EQ(replay({"--capacity", "1GiB", "--fail-if", "ooms > 0"}).code, 0);
}

TEST_F(ReplayGate, AShareIsToldAsThePercentageOfTheTable) {
  const Said said = replay({"--capacity", "1GiB", "--fail-if", "excess < 2000%"});
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.error, testing::ContainsRegex("excess is [0-9.]+ %: tripped 'excess < 2000%'"));
}

TEST_F(ReplayGate, ARowThatRanOutFlattersNoGateAndNoVerdict) {
  const Said said = replay({"--capacity", "420MiB", "--fail-if", "excess > 2000%"});
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.error, HasSubstr("excess cannot be judged, OOM at event"));
  baseline("base.json");
  auto document = parse_json(read_bytes(folder_.path() / "base.json"));
  for (auto& row : document["rows"]) row["capacity_bytes"] = 420 * kMiB;  // the row that it is held against
  folder_.write("base.json", document.dump());
  const Said against =
      replay({"--capacity", "420MiB", "--baseline", "base.json", "--fail-if", "peak_reserved_bytes > +2%"});
  EXPECT_EQ(against.code, 3);
  EXPECT_THAT(against.error, AllOf(HasSubstr("peak_reserved_bytes not comparable: OOM at event"),
                                   HasSubstr("ooms worse: 0 to 1"), Not(HasSubstr("better"))));
}

TEST_F(ReplayGate, ASnapshotOfADisqualifiedRowIsSaidToBeMissing) {
  folder_.write("live.trace", "a 1 4096 0\na 2 4096 0\na 3 4096 0\na 4 4096 0\n");
  const Said said = tenon(
      {"replay", "live.trace", "-a", fixture("faulty").string() + ":after=2", "--snapshot", "s.pickle", "--quiet"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.error, HasSubstr("no snapshot was written to s.pickle: the replay under "));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "s.pickle"));
}

TEST_F(ReplayGate, APeakThatGrewTripsARelativeGate) {
  baseline("base.json");
  EXPECT_EQ(replay({"--baseline", "base.json", "--fail-if", "peak_reserved_bytes > +2%"}).code, 0);
  const std::string grown = "a 100 " + std::to_string(50 * kMiB) + " 0\n" + pinned_segments();
  folder_.write("pinned.trace", grown);
  const Said said = replay({"--baseline", "base.json", "--fail-if", "peak_reserved_bytes > +2%"});
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.error, AllOf(HasSubstr("against the baseline: peak_reserved_bytes worse"), HasSubstr("tripped")));
  EXPECT_EQ(replay({"--baseline", "base.json", "--fail-if", "peak_reserved_bytes > +20%"}).code, 0);
}

TEST_F(ReplayGate, OneOfSeveralGatesIsEnough) {
  EXPECT_EQ(replay({"--fail-if", "ooms > 0", "--fail-if", "device_allocations > 1"}).code, 3);
}

TEST_F(ReplayGate, ARelativeGateNeedsABaselineThatIsOne) {
  EXPECT_EQ(replay({"--fail-if", "peak_reserved_bytes > +2%"}).code, 2);
  EXPECT_EQ(replay({"--fail-if", "peak_reserved_bytes > +2%", "--baseline", "missing.json"}).code, 2);
  folder_.write("odd.json", "[1, 2");
  EXPECT_EQ(replay({"--fail-if", "peak_reserved_bytes > +2%", "--baseline", "odd.json"}).code, 2);
  folder_.write("newer.json", R"({"schema_version": 2, "rows": []})");
  const Said newer = replay({"--fail-if", "peak_reserved_bytes > +2%", "--baseline", "newer.json"});
  EXPECT_EQ(newer.code, 2);
  EXPECT_THAT(newer.error, HasSubstr("schema_version 2; 1 is read"));
  folder_.write("text.json", R"({"schema_version": 1, "rows": [{"trace": "t", "allocator": "caching", "events": 1,
                                "peak_requested_bytes": 1, "peak_reserved_bytes": "x", "ooms": 0}]})");
  EXPECT_EQ(replay({"--fail-if", "peak_reserved_bytes > +2%", "--baseline", "text.json"}).code, 2);
  const Said said = replay({"--fail-if", "peak_reservd_bytes > 1"});
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.error, HasSubstr("did you mean peak_reserved_bytes?"));
}

TEST_F(ReplayGate, AWrongBaselineIsToldInWordsOfItsOwn) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {"", "it is empty"},
      {"{\"rows\": [", "no JSON from byte"},
      {"[]", "expected an object, found array"},
      {"{}", "it has no \"schema_version\""},
      {R"({"schema_version": 1})", "it has no \"rows\""},
      {R"({"schema_version": 1, "rows": 3})", "its \"rows\" are of type number"},
      {R"({"schema_version": 1, "rows": [7]})", "row 1 is of type number"},
      {R"({"schema_version": 1, "rows": [{"setting": "", "kind": "pytorch"}]})", "row 1 has no \"trace\""},
      {R"({"schema_version": 1, "rows": [{"trace": "t", "allocator": "a", "events": 1, "peak_requested_bytes": 1,
          "peak_reserved_bytes": "x", "ooms": 0}]})",
       "\"peak_reserved_bytes\" of row 1 is \"x\", not a count"},
      {R"({"schema_version": 1, "rows": [{"trace": "t", "allocator": "a", "events": 1, "peak_requested_bytes": 1,
          "peak_reserved_bytes": 1, "ooms": 0, "pass_seconds": "x"}]})",
       "row 1 holds a value of the wrong type"}};
  for (const auto& [text, words] : files) {
    folder_.write("wrong.json", text);
    const Said said = replay({"--fail-if", "ooms > +0", "--baseline", "wrong.json", "-q"});
    EXPECT_EQ(said.code, 2) << text;
    EXPECT_THAT(said.error, AllOf(HasSubstr("wrong.json: "), HasSubstr(words), Not(HasSubstr("exception")))) << text;
  }
}

TEST_F(ReplayGate, ABaselineMayBeCompressed) {
  baseline("base.json");
  ASSERT_EQ(std::system(("gzip -k " + (folder_.path() / "base.json").string()).c_str()), 0);
  EXPECT_EQ(replay({"--baseline", "base.json.gz", "--fail-if", "peak_reserved_bytes > +2%"}).code, 0);
}

TEST_F(ReplayGate, RepeatedPassesGiveIntervalsAndOfOneFileASideNoVerdict) {
  folder_.write("base.json", replay({"--repeat", "5", "--format", "json", "--quiet"}).out);
  const Said said = replay({"--repeat", "5", "--baseline", "base.json", "--format", "json"});
  ASSERT_EQ(said.code, 0) << said.error;
  const auto row = parse_json(said.out)["rows"][0];
  EXPECT_EQ(row["pass_seconds"].size(), 5U);
  EXPECT_LE(row["seconds_interval"][0], row["seconds_median"]);
  EXPECT_GE(row["seconds_interval"][1], row["seconds_median"]);
  EXPECT_THAT(said.error,
              AllOf(HasSubstr("median of 5 passes with its 95 % interval"), HasSubstr("peak_reserved_bytes the same"),
                    testing::ContainsRegex("no verdict: one file each .*tenon bench OLD NEW --history TRACE")));
}

TEST_F(ReplayGate, TheAllocatorOfAnExperimentIsReplayed) {
  folder_.write("expandable.toml", experiment("[allocator]\nname = \"expandable\"\n"));
  const Said said = tenon({"replay", "pinned.trace", "--config", "expandable.toml", "--format", "json", "--quiet"});
  ASSERT_EQ(said.code, 0) << said.error;
  const auto json = parse_json(said.out);
  ASSERT_EQ(json["rows"].size(), 2U);
  EXPECT_EQ(json["rows"][0]["allocator"], "expandable");
  EXPECT_EQ(json["rows"][1]["allocator"], "ideal");
  folder_.write("wrong.toml", "[allocator]\nnmae = \"caching\"\n");
  EXPECT_EQ(tenon({"replay", "pinned.trace", "--config", "wrong.toml"}).code, 2);
}

TEST_F(ReplayGate, AnOutputNeverReplacesAnythingThatIsRead) {
  baseline("base.json");
  folder_.write("al.toml", experiment("[allocator]\nname = \"caching\"\n"));
  std::filesystem::copy_file(std::string(TENON_FIXTURE_DIR "/faulty.so"), folder_.path() / "f.so");
  std::filesystem::create_hard_link(folder_.path() / "f.so", folder_.path() / "same.so");
  const std::tuple<std::vector<std::string>, const char*, const char*> commands[] = {
      {{"--baseline", "base.json", "--html", "base.json"}, "base.json", "is what this command reads (base.json)"},
      {{"--config", "al.toml", "--svg", "./al.toml"}, "al.toml", "is what this command reads (al.toml)"},
      {{"-a", "./f.so", "--svg", "f.so"}, "f.so", "is the plugin 'faulty', which is in use"},
      {{"-a", "./f.so", "--html", "same.so"}, "f.so", "is the plugin 'faulty', which is in use"}};
  for (const auto& [words, file, reason] : commands) {
    const std::string before = read_bytes(folder_.path() / file);
    const Said said = replay(words);
    EXPECT_EQ(said.code, 2) << words.back();
    EXPECT_THAT(said.error, HasSubstr(reason));
    EXPECT_EQ(read_bytes(folder_.path() / file), before);
  }
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"view", "pinned.trace", "-a", "./f.so", "-o", "f.so"},
        {"trace", "convert", "pinned.trace", "f.so", "--to", "snapshot", "-a", "./f.so"}})
    EXPECT_THAT(tenon(words).error, HasSubstr("is the plugin 'faulty'"));
}

TEST_F(ReplayGate, StandardOutputTakesOneThing) {
  const Said piped = replay({"--snapshot", "-"});
  EXPECT_EQ(piped.code, 0) << piped.error;
  folder_.write("piped.pickle", piped.out);
  EXPECT_EQ(tenon({"trace", "info", "piped.pickle"}).code, 0) << "nothing but the snapshot is there";
  EXPECT_THAT(piped.error, HasSubstr("peak reserved")) << "the table is for people: it goes to standard error";
  EXPECT_TRUE(replay({"--svg", "-"}).out.starts_with("<svg"));
  const std::string pipe = "cd '" + folder_.path().string() +
                           "' && '" TENON_PROGRAM
                           "' replay pinned.trace -a caching --svg /dev/stdout 2> said | head -c 4 > four";
  EXPECT_EQ(std::system(pipe.c_str()), 0);
  EXPECT_EQ(read_bytes(folder_.path() / "four"), "<svg") << read_bytes(folder_.path() / "said");
  const Said named = replay({"--svg", ".stdout"});  // what these tests make standard output
  EXPECT_TRUE(named.out.starts_with("<svg"));
  EXPECT_THAT(named.error, HasSubstr("peak reserved"));
  EXPECT_THAT(replay({"--html", "-", "--svg", ".stdout"}).error, HasSubstr("takes one of the outputs"));
  for (const char* format : {"json", "csv", "markdown"}) {
    const Said both = replay({"--html", "-", "--format", format});
    EXPECT_EQ(both.code, 2);
    EXPECT_EQ(both.out, "");
    EXPECT_THAT(both.error, HasSubstr("standard output takes one thing")) << format;
  }
  EXPECT_THAT(replay({"--html", "-", "--svg", "-"}).error, HasSubstr("standard output takes one of the outputs"));
  const Said page = tenon({"view", "pinned.trace", "-o", "-"});
  EXPECT_EQ(page.code, 0);
  EXPECT_TRUE(page.out.starts_with("<!doctype html>") || page.out.starts_with("<!DOCTYPE html>"));
}

TEST_F(ReplayGate, ADeviceOfNoBytesIsRefusedEverywhere) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"replay", "pinned.trace", "--fail-if", "ooms > 0"},
        {"tune", "pinned.trace"},
        {"doctor", "pinned.trace"},
        {"view", "pinned.trace", "-o", "x.html"},
        {"trace", "convert", "pinned.trace", "x.pickle"}}) {
    for (const char* size : {"0", "0GiB"}) {
      std::vector<std::string> line = words;
      line.insert(line.end(), {"--capacity", size});
      const Said said = tenon(line);
      EXPECT_EQ(said.code, 2) << words.front();
      EXPECT_THAT(said.error, HasSubstr(std::string(size) + ": a device of 0 bytes serves nothing"));
    }
  }
}

TEST_F(ReplayGate, TheReportAndThePictureNeedNothingElse) {
  ASSERT_EQ(tenon({"replay", "pinned.trace", "--html", "r.html", "--svg", "r.svg"}).code, 0);
  const std::string page = read_bytes(folder_.path() / "r.html");
  EXPECT_THAT(page, AllOf(HasSubstr("<svg"), HasSubstr("Segments at the peak"), HasSubstr("expandable")));
  for (const char* word : {"http:", "https:", "src=", "@import", "url(", "<script"})
    EXPECT_THAT(page, Not(HasSubstr(word)));
  const std::string picture = read_bytes(folder_.path() / "r.svg");
  EXPECT_TRUE(picture.starts_with("<svg xmlns="));
  EXPECT_THAT(picture, Not(HasSubstr("class=\"undefined")));
  EXPECT_EQ(tenon({"replay", "pinned.trace", "pinned.trace", "--svg", "r.svg"}).code, 2);
  EXPECT_EQ(tenon({"replay", "pinned.trace", "--snapshot", "r.pickle"}).code, 2) << "of which allocator?";
}

}  // namespace
}  // namespace tenon::test
