// `tenon replay`: which rows there are and in which order, what each option changes of them, and what is said beside
// them.
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace tenon::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// Two histories of three blocks each, of which 4 and 6 MB live at most.
class ReplayRows : public Program {
 protected:
  void SetUp() override {
    folder_.write("one.trace", "a 0 3000000 0\na 1 1000000 0\nf 0\na 2 2000000 0\nf 1\nf 2\n");
    folder_.write("two.trace", "a 0 5000000 0\na 1 1000000 0\nf 0\na 2 2000000 0\nf 1\nf 2\n");
  }
  Said replay(std::vector<std::string> words) {
    words.insert(words.begin(), "replay");
    return tenon(words);
  }
  json rows(std::vector<std::string> words) {
    words.insert(words.end(), {"--format", "json", "--quiet"});
    const Said said = replay(words);
    EXPECT_EQ(said.code, 0) << said.error;
    EXPECT_EQ(said.error, "") << "quiet";
    return parse_json(said.out).at("rows");
  }
  std::string refusal(const std::vector<std::string>& words) {
    const Said said = replay(words);
    EXPECT_EQ(said.code, 2) << said.error;
    EXPECT_EQ(said.out, "");
    return said.error;
  }
};

TEST_F(ReplayRows, AreThoseOfEachHistoryWithItsIdealLast) {
  const json rows = this->rows({"one.trace", "two.trace", "-a", "direct", "-a", "caching", "--capacity", "64MiB"});
  std::vector<std::string> names;
  for (const json& row : rows) {
    names.push_back(row["trace"].get<std::string>() + " " + row["allocator"].get<std::string>());
    EXPECT_EQ(row["capacity_bytes"], 64 << 20);
    EXPECT_EQ(row["peak_requested_bytes"], row["trace"] == "one.trace" ? 4000000 : 6000000);
    EXPECT_EQ(row["allocations"], 3);
    EXPECT_EQ(row["events"], 6);
  }
  EXPECT_THAT(names, testing::ElementsAre("one.trace direct", "one.trace caching", "one.trace ideal",
                                          "two.trace direct", "two.trace caching", "two.trace ideal"));
  EXPECT_EQ(rows[2]["peak_reserved_bytes"], 4000000) << "what lives and no more";
  EXPECT_EQ(rows[5]["peak_reserved_bytes"], 6000000);
  EXPECT_TRUE(this->rows({"one.trace", "-a", "direct"})[1]["capacity_bytes"].is_null()) << "unlimited";
}

TEST_F(ReplayRows, HaveAsManyTimedPassesAsAskedFor) {
  for (const int passes : {1, 2, 3}) {
    const json rows =
        this->rows({"one.trace", "two.trace", "-a", "direct", "-a", "caching", "--repeat", std::to_string(passes)});
    for (const json& row : rows)
      EXPECT_EQ(row["pass_seconds"].size(), row["allocator"] == "ideal" ? 0 : passes)
          << row["trace"] << row["allocator"];
  }
  EXPECT_EQ(rows({"one.trace", "-a", "direct"})[0]["pass_seconds"].size(), 3U) << "by default";
}

TEST_F(ReplayRows, TimesOfSeveralPassesAreToldWithTheirIntervalAndOneIsNot) {
  EXPECT_THAT(replay({"one.trace", "-a", "direct", "--repeat", "2"}).error,
              AllOf(StartsWith("one.trace, direct: "), HasSubstr("median of 2 passes with its 95 % interval")));
  EXPECT_THAT(replay({"one.trace", "-a", "direct", "--repeat", "1"}).error, Not(HasSubstr("passes")));
}

TEST_F(ReplayRows, ATimelineIsTheMemoryAfterEachEventAndStandsInJsonAlone) {
  const json row = rows({"one.trace", "-a", "direct", "--timeline", "--repeat", "2"})[0];
  std::vector<std::int64_t> requested;
  for (const json& point : row["timeline"]) requested.push_back(point["requested_bytes"]);
  EXPECT_THAT(requested, testing::ElementsAre(3000000, 4000000, 1000000, 3000000, 2000000, 0));
  EXPECT_FALSE(rows({"one.trace", "-a", "direct"})[0].contains("timeline"));
  for (const char* format : {"table", "csv", "markdown"})
    EXPECT_EQ(refusal({"one.trace", "-a", "direct", "--timeline", "--format", format}),
              "tenon: --timeline adds curves to the JSON: use it with --format json\n");
}

TEST_F(ReplayRows, TheTableHasALegendAndOtherFormatsHaveNone) {
  EXPECT_THAT(replay({"one.trace", "-a", "direct"}).out,
              HasSubstr("\nexcess: peak reserved over the peak of live memory"));
  for (const char* format : {"csv", "markdown"})
    EXPECT_THAT(replay({"one.trace", "-a", "direct", "--format", format}).out, Not(HasSubstr("excess: peak")))
        << format;
}

TEST_F(ReplayRows, WhatIsWrittenIsNamedInOrder) {
  const Said said =
      replay({"one.trace", "-a", "direct", "--svg", "x.svg", "--snapshot", "x.pickle", "--html", "x.html", "-q"});
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.error, "report: x.html\npicture: x.svg\nsnapshot: x.pickle\n");
  for (const char* name : {"x.html", "x.svg", "x.pickle"})
    EXPECT_TRUE(std::filesystem::exists(folder_.path() / name)) << name;
  EXPECT_EQ(tenon({"trace", "info", "x.pickle", "-q"}).code, 0);
}

TEST_F(ReplayRows, AnOutputThatShowsOneHistoryOrAllocatorTakesNoMore) {
  EXPECT_THAT(refusal({"one.trace", "two.trace", "-a", "direct", "--svg", "x.svg"}),
              HasSubstr("--snapshot and --svg show one history, and 2 were read"));
  EXPECT_THAT(refusal({"one.trace", "two.trace", "-a", "direct", "--snapshot", "x.pickle"}),
              HasSubstr("and 2 were read"));
  EXPECT_THAT(refusal({"one.trace", "-a", "direct", "-a", "caching", "--snapshot", "x.pickle"}),
              HasSubstr("--snapshot writes one allocator's memory, and 2 are replayed"));
  EXPECT_EQ(replay({"one.trace", "two.trace", "-a", "direct", "--html", "x.html"}).code, 0) << "a report shows all";
  EXPECT_EQ(replay({"one.trace", "-a", "direct", "-a", "caching", "--svg", "x.svg"}).code, 0);
}

TEST_F(ReplayRows, ARowThatFailedCountsForMoreThanAGate) {
  const std::string faulty = TENON_FIXTURE_DIR "/faulty.so:after=1,how=overlap";
  const Said said = replay({"one.trace", "-a", faulty, "-a", "direct", "--fail-if", "device_allocations > 0", "-q"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.error, AllOf(HasSubstr("tripped 'device_allocations > 0'"), HasSubstr("disqualified")))
      << "quiet or not";
  EXPECT_EQ(replay({"one.trace", "-a", "direct", "--fail-if", "device_allocations > 0"}).code, 3);
}

TEST_F(ReplayRows, AHistoryWithoutAnAllocationIsToldWhereverItStands) {
  folder_.write("none.trace", "m start\n");
  const Said said = replay({"one.trace", "none.trace", "-a", "direct"});
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.error, "none.trace: the history holds no allocation\n");
  const Said gated =
      replay({"one.trace", "none.trace", "-a", "direct", "--fail-if", "ooms > 0", "--fail-if", "events < 0", "-q"});
  EXPECT_EQ(gated.code, 3);
  EXPECT_EQ(gated.error,
            "none.trace: ooms > 0 cannot be judged, the history holds no allocation\n"
            "none.trace: events < 0 cannot be judged, the history holds no allocation\n");
}

TEST_F(ReplayRows, HistoriesOfOneNameAreToldApartByTheirFolders) {
  folder_.write("a/one.trace", read_bytes(folder_.path() / "two.trace"));
  const json rows = this->rows({"one.trace", "a/one.trace", "-a", "direct"});
  EXPECT_EQ(rows[0]["trace"], "one.trace");
  EXPECT_EQ(rows[2]["trace"], "a/one.trace");
}

TEST_F(ReplayRows, NumbersOfOptionsHaveTheirRanges) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--jobs", "0"},
                                                {"--jobs", "1025"},
                                                {"--repeat", "0"},
                                                {"--repeat", "1001"},
                                                {"--deadline", "0.09"},
                                                {"--deadline", "1000001"}})
    EXPECT_THAT(refusal({"one.trace", "-a", "direct", words[0], words[1]}), HasSubstr("not in range"))
        << words[0] << words[1];
  EXPECT_EQ(replay({"one.trace", "-a", "direct", "--jobs", "1024", "--deadline", "1000000"}).code, 0);
  EXPECT_EQ(replay({"one.trace", "-a", "direct", "--jobs", "1", "--deadline", "0.1"}).code, 0);
}

TEST_F(ReplayRows, SettingsOfPyTorchThatChangeNothingHereAreNamed) {
  EXPECT_THAT(replay({"one.trace", "--pytorch-conf", "backend:native,pinned_num_register_threads:4"}).error,
              HasSubstr("tenon: of \"backend:native,pinned_num_register_threads:4\", pinned_num_register_threads "
                        "changes nothing in a replay\n"));
  EXPECT_THAT(
      replay({"one.trace", "--pytorch-conf", "pinned_use_background_threads:True,pinned_num_register_threads:4"}).error,
      HasSubstr(" change nothing in a replay\n"));
  EXPECT_EQ(replay({"one.trace", "--pytorch-conf", "pinned_num_register_threads:4", "-q"}).error, "");
}

}  // namespace
}  // namespace tenon::test
