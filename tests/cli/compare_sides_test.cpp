// `tenon compare`: several results a side, and how cases find each other.
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

#include <functional>

namespace tenon::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class CompareSides : public Program {
 protected:
  void write(const std::string& file, const json& document) { folder_.write(file, document.dump()); }
  /// A run as `tenon run` writes it, with the times of its stretches as even as can be.
  void run(const std::string& file, double step_ms, double accuracy = 0.9) {
    json times = {{"p50", step_ms}, {"stretch_medians", json::array()}};
    for (int i = 0; i < 12; ++i) times["stretch_medians"].push_back(step_ms * (0.999 + 0.001 * (i % 3)));
    write(file, {{"schema_version", 1},
                 {"status", "done"},
                 {"memory", {{"peak_reserved_bytes", 1000}}},
                 {"result", {{"step_ms", times}, {"test_accuracy", accuracy}}}});
  }
  /// Six results of each side: a machine that is up to 20 % slower at one time than at another.
  static std::vector<std::string> six_each(
      const std::function<void(const std::string& file, int turn, bool is_b, double drift)>& make) {
    std::vector<std::string> words = {"compare"};
    for (const char* side : {"a", "b"}) {
      for (int i = 0; i < 6; ++i) {
        words.push_back(side + std::to_string(i) + ".json");
        make(words.back(), i, side[0] == 'b', 1 + 0.01 * ((i * 7 + (side[0] == 'a' ? 0 : 3)) % 20));
      }
      if (side[0] == 'a') words.push_back("vs");
    }
    return words;
  }
  std::vector<std::string> six_runs_each(double factor, double accuracy = 0) {
    return six_each([&](const std::string& file, int turn, bool is_b, double drift) {
      run(file, 100 * drift * (is_b ? factor : 1), 0.9 + accuracy * turn + (is_b ? 10 * accuracy : 0));
    });
  }
  std::vector<std::string> six_benches_each(double factor) {
    return six_each([&](const std::string& file, int, bool is_b, double drift) {
      bench(file, is_b ? "new/buddy.so" : "old/buddy.so", drift * (is_b ? factor : 1));
    });
  }
  Said gated(std::vector<std::string> words, const std::string& gate) {
    words.insert(words.end(), {"--fail-if", gate});
    return tenon(words);
  }
  static json bench_row(const std::string& allocator, double factor) {
    json row = {{"workload", "hot/4KiB"}, {"allocator", allocator}, {"ns_per_pair", 100 * factor}};
    for (const double ns : {99.0, 100.0, 101.0, 100.0, 99.5, 100.5, 100.0, 99.0, 101.0, 100.0})
      row["round_ns"].push_back(ns * factor);
    return row;
  }
  /// A bench of buddy.so from a folder, and of direct.
  void bench(const std::string& file, const std::string& spec, double factor) {
    const json plugin = {{"name", "buddy"}, {"path", "/plugins/of/" + spec.substr(0, spec.find(':'))}};
    write(file, {{"schema_version", 1},
                 {"kind", "bench"},
                 {"allocators",
                  {{{"name", "direct"}, {"spec", "direct"}, {"plugin", {{"name", "direct"}, {"path", "/x/direct.so"}}}},
                   {{"name", spec}, {"spec", spec}, {"plugin", plugin}}}},
                 {"rows", {bench_row("direct", 1), bench_row(spec, factor)}}});
  }
};

TEST_F(CompareSides, OneRunASideGetsNoVerdictOnSpeedAndPassesNoGateOnIt) {
  run("a.json", 100);
  run("b.json", 150);
  const Said said = tenon({"compare", "a.json", "b.json"});
  EXPECT_EQ(said.code, 0) << "nothing was asked";
  EXPECT_THAT(said.out, AllOf(HasSubstr("no verdict: one run each (+50.0 %)"), Not(HasSubstr("slower"))));
  EXPECT_THAT(said.error, HasSubstr("\n  tenon compare a-* vs b-*\n"));
  for (const char* gate : {"step_ms > +5%", "step_ms > +1000%", "step_ms < +1000%", "step_ms > +50ms",
                           "b.step_ms > 1.05 * a.step_ms", "step_ms != +0%"}) {
    const Said judged = gated({"compare", "a.json", "b.json"}, gate);
    EXPECT_EQ(judged.code, 3) << gate;
    EXPECT_THAT(judged.error, HasSubstr("step_ms cannot be judged, one run each: repeat both in turn")) << gate;
  }
  EXPECT_EQ(gated({"compare", "a.json", "b.json"}, "step_ms > 200ms").code, 0) << "this run took less";
  EXPECT_EQ(gated({"compare", "a.json", "b.json"}, "b.step_ms > 120ms").code, 3);
}

TEST_F(CompareSides, SeveralRunsASideGetAVerdictThatHoldsTheDriftBetweenThem) {
  const Said same = tenon(six_runs_each(1));
  EXPECT_EQ(same.code, 0) << same.error;
  EXPECT_THAT(same.out, AllOf(HasSubstr("no evidence of a difference"), HasSubstr("a a0.json and 5 more")));
  EXPECT_EQ(gated(six_runs_each(1), "step_ms > +5%").code, 0);
  const Said slow = tenon(six_runs_each(1.5));
  EXPECT_THAT(slow.out, HasSubstr("slower by "));
  EXPECT_EQ(gated(six_runs_each(1.5), "step_ms > +5%").code, 3);
  EXPECT_EQ(gated(six_runs_each(1.5), "b.step_ms > 1.05 * a.step_ms").code, 3);
  std::vector<std::string> words = six_runs_each(1.5);
  words.insert(words.end(), {"--format", "json"});
  const json document = parse_json(tenon(words).out);
  EXPECT_EQ(document["sets"][0], "a0.json and 5 more");
  EXPECT_EQ(document["results"][1].size(), 6U);
}

TEST_F(CompareSides, OneBenchASideGetsNoVerdictAndPassesNoGate) {
  bench("a.json", "old/buddy.so", 1);
  for (const double factor : {1.001, 1.1, 3.0}) {  // rounds within 1 %: nothing is known of the time between the files
    bench("b.json", "new/buddy.so", factor);
    const std::vector<std::string> words = {"compare", "a.json", "b.json", "--filter", "buddy"};
    const Said said = tenon(words);
    EXPECT_EQ(said.code, 0) << "nothing was asked";
    EXPECT_THAT(said.out, AllOf(HasSubstr("no verdict: one file each"), Not(HasSubstr("slower by")),
                                Not(HasSubstr("no evidence"))));
    EXPECT_THAT(said.error, AllOf(HasSubstr("needs both in one bench, where they take turns:\n  tenon bench OLD NEW\n"),
                                  HasSubstr("\n  tenon compare a-* vs b-*\n")));
    std::vector<std::string> json_words = words;
    json_words.insert(json_words.end(), {"--format", "json"});
    const json document = parse_json(tenon(json_words).out);
    EXPECT_THAT(document["rows"][0]["verdicts"][1].get<std::string>(),
                testing::StartsWith("no verdict: one file each"));
    for (const char* gate : {"b > 1.05 * a", "ns_per_pair > +5%", "ns_per_pair < +1000%", "ns_per_pair != +0%"}) {
      const Said judged = gated(words, gate);
      EXPECT_EQ(judged.code, 3) << gate;
      EXPECT_THAT(judged.error, HasSubstr("ns_per_pair cannot be judged, one file each: take both in one "
                                          "`tenon bench OLD NEW`"))
          << gate;
    }
  }
  EXPECT_EQ(gated({"compare", "a.json", "b.json"}, "a.ns_per_pair > 150ns").code, 0) << "a value is no other time";
  EXPECT_EQ(gated({"compare", "a.json", "b.json"}, "b.ns_per_pair > 150ns").code, 3);
}

TEST_F(CompareSides, SeveralBenchesASideGetAVerdictThatHoldsTheDriftBetweenThem) {
  const Said same = tenon(six_benches_each(1));
  EXPECT_THAT(same.out, AllOf(HasSubstr("no evidence of a difference"), Not(HasSubstr("slower by"))));
  EXPECT_EQ(gated(six_benches_each(1), "ns_per_pair > +5%").code, 0);
  std::vector<std::string> slow = six_benches_each(1.5);
  slow.insert(slow.end(), {"--filter", "buddy"});
  const Said said = tenon(slow);
  EXPECT_THAT(said.out, HasSubstr("slower by "));
  EXPECT_THAT(said.error, HasSubstr("these times are of several files a side"));
  EXPECT_EQ(gated(slow, "b > 1.05 * a").code, 3);
  slow.erase(slow.begin() + 1);
  EXPECT_THAT(tenon(slow).out, HasSubstr("no verdict: 5 against 6 files are too few"));
  EXPECT_THAT(gated(slow, "b > 1.05 * a").error, HasSubstr("cannot be judged, 5 against 6 files are too few: "));
}

TEST_F(CompareSides, AFigureThatDiffersBetweenRunsOfASideIsJudgedByAnIntervalToo) {
  const Said better = tenon(six_runs_each(1, 0.001));
  EXPECT_THAT(better.out, HasSubstr("better: +0."));
  EXPECT_THAT(better.out, HasSubstr(" points"));
  run("a.json", 100, 0.5);
  run("a2.json", 100, 0.6);
  run("b.json", 100, 0.7);
  const std::vector<std::string> few = {"compare", "a.json", "a2.json", "vs", "b.json"};
  EXPECT_THAT(tenon(few).out, HasSubstr("no verdict: 2 against 1 runs are too few"));
  const Said gate = gated(few, "test_accuracy < -5%");
  EXPECT_EQ(gate.code, 3);
  EXPECT_THAT(gate.error, HasSubstr("test_accuracy cannot be judged"));
  EXPECT_EQ(gated(few, "peak_reserved_bytes > +2%").code, 0) << "that is the same in every run";
}

TEST_F(CompareSides, ARunOfASideThatFailedSpoilsIt) {
  const std::vector<std::string> words = six_runs_each(1);
  write("b3.json", {{"schema_version", 1},
                    {"status", "disqualified"},
                    {"error", "it forgets"},
                    {"memory", json::object()},
                    {"result", json::object()}});
  const Said said = gated(words, "peak_reserved_bytes > +2%");
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.error, HasSubstr("b3.json: disqualified: it forgets"));
}

TEST_F(CompareSides, TheWordVsStandsBetweenResults) {
  run("a.json", 100);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"compare", "vs", "a.json"},
                                                {"compare", "a.json", "vs"},
                                                {"compare", "a.json", "vs", "vs", "a.json"}}) {
    const Said said = tenon(words);
    EXPECT_EQ(said.code, 2);
    EXPECT_THAT(said.error, HasSubstr("vs: stands between the results of two sides"));
  }
}

TEST_F(CompareSides, BenchesOfTwoBuildsOfOnePluginAreHeldAgainstEachOther) {
  bench("old.json", "old/buddy.so", 1);
  bench("new.json", "new/buddy.so", 1.5);
  const Said said = tenon({"compare", "old.json", "new.json"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(said.error, Not(HasSubstr("is not in")));
  EXPECT_THAT(said.out, AllOf(HasSubstr("hot/4KiB, buddy"), HasSubstr("(+50.0 %)"), HasSubstr("file of buddy"),
                              HasSubstr("old/buddy.so"), HasSubstr("new/buddy.so")));
  EXPECT_EQ(gated({"compare", "old.json", "new.json"}, "b.ns_per_pair > 120ns").code, 3);
}

TEST_F(CompareSides, WhatIsLeftOverOfOnePluginOnEachSideIsHeldAgainstEachOther) {
  bench("old.json", "old/buddy.so", 1);
  bench("new.json", "new/buddy.so:chunk=64MiB", 1.5);
  const Said said = tenon({"compare", "old.json", "new.json"});
  EXPECT_THAT(said.error, Not(HasSubstr("is not in")));
  EXPECT_THAT(said.out, AllOf(HasSubstr("hot/4KiB, buddy"), HasSubstr("options of buddy"), HasSubstr("chunk=64MiB"),
                              HasSubstr("file of buddy")));
  // Two of them on a side: which of them is meant is not known.
  json document = parse_json(read_bytes(folder_.path() / "new.json"));
  document["allocators"].push_back(document["allocators"][1]);
  document["allocators"][2]["name"] = document["allocators"][2]["spec"] = "new/buddy.so:chunk=8MiB";
  document["rows"].push_back(bench_row("new/buddy.so:chunk=8MiB", 1));
  write("new.json", document);
  EXPECT_THAT(tenon({"compare", "old.json", "new.json"}).error,
              AllOf(HasSubstr("hot/4KiB, buddy is not in b new.json"),
                    HasSubstr("hot/4KiB, buddy:chunk=64MiB is not in a old.json")));
}

TEST_F(CompareSides, SeveralBuildsInOneFileAreToldApartByTheEndOfTheirPaths) {
  bench("both.json", "old/buddy.so", 1);
  json document = parse_json(read_bytes(folder_.path() / "both.json"));
  document["allocators"].push_back(document["allocators"][1]);
  document["allocators"][2]["name"] = document["allocators"][2]["spec"] = "new/buddy.so";
  document["rows"].push_back(bench_row("new/buddy.so", 2));
  write("both.json", document);
  EXPECT_THAT(tenon({"compare", "both.json", "both.json", "--all"}).out,
              AllOf(HasSubstr("hot/4KiB, old/buddy.so"), HasSubstr("hot/4KiB, new/buddy.so")));
}

}  // namespace
}  // namespace tenon::test
