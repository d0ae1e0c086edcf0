// `tenon plugins`, `tenon devices`, `tenon doctor`, and plugins that would not load: exit code 5.
#include "cli/program.h"
#include "support/json.h"

#include <tenon/report/text/display_width.h>

#include <gmock/gmock.h>

#include <sstream>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class PluginsVerb : public Program {
 protected:
  Said run_with(const std::string& plugin) {
    folder_.write("exp.toml", "[allocator]\nname = \"" + plugin + "\"\n");
    return tenon({"run", "exp.toml"});
  }
};

TEST_F(PluginsVerb, ListNamesWhatIsShipped) {
  const Said said = tenon({"plugins", "list"});
  EXPECT_EQ(said.code, 0) << said.error;
  for (const char* word : {"device cpu", "device simulated", "allocator caching", "allocator direct", "caching.so",
                           "layers: align, budget, guard"})
    EXPECT_THAT(said.out, HasSubstr(word));
  EXPECT_EQ(tenon({"plugins"}).out, said.out);
}

TEST_F(PluginsVerb, ListAsJsonFollowsTheSchema) {
  const auto json = parse_json(tenon({"plugins", "list", "--format", "json"}).out);
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_GT(json["environment"]["cores"], 0);
  EXPECT_GE(json["rows"].size(), 5U);
  EXPECT_EQ(json["rows"][0]["sha256"].get<std::string>().size(), 64U);
}

TEST_F(PluginsVerb, InfoShowsEachOption) {
  const Said said = tenon({"plugins", "info", std::string(TENON_FIXTURE_DIR "/tiny.so")});
  EXPECT_EQ(said.code, 0) << said.error;
  for (const char* word : {"[allocator.tiny]", "chunk", "size", "4KiB", "512", "1MiB", "best, first", "a whole number"})
    EXPECT_THAT(said.out, HasSubstr(word));
  EXPECT_THAT(tenon({"plugins", "info", "limit"}).out, HasSubstr("[allocator.limit]"));
  const Said unknown = tenon({"plugins", "info", "cachng"});
  EXPECT_EQ(unknown.code, 2) << "as for a test of it, and for a replay under it";
  EXPECT_THAT(unknown.error, HasSubstr("did you mean \"caching\"?"));
}

TEST_F(PluginsVerb, ABrokenPluginIsListedWithItsProblem) {
  folder_.write("plug/bad.so", "words");
  const Said said = tenon({"plugins", "list"}, {{"TENON_PLUGIN_PATH", (folder_.path() / "plug").string()}});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.out, AllOf(HasSubstr("not a shared library"), HasSubstr("caching")));
}

TEST_F(PluginsVerb, AnErrorInAConstructorNamesTheAllocatorAndItsFile) {
  const std::string file = std::string(TENON_FIXTURE_DIR "/crasher.so");
  const std::string who = "allocator 'crasher' (" + file + ") was not made: ";
  for (const auto& [how, words, code] : {std::tuple("construct_error", "the table of sizes cannot be read", 1),
                                         std::tuple("construct_refusal", "after and how do not go together", 2)}) {
    const std::string spec = file + ":how=" + how;
    const Said run = run_with(spec);
    EXPECT_EQ(run.code, code);
    EXPECT_THAT(run.error, HasSubstr(who + words));
    const Said bench = tenon({"bench", spec, "--workload", "lifo/10", "--rounds", "2"});
    EXPECT_THAT(bench.error, HasSubstr(who + words)) << bench.code;
    const Said kit = tenon({"plugins", "test", spec});
    EXPECT_THAT(kit.out + kit.error, HasSubstr(who + words)) << kit.code;
    const Said estimate = tenon({"run", "exp.toml", "--dry-run"});
    EXPECT_THAT(estimate.out + estimate.error, HasSubstr(who + words)) << estimate.code;
  }
}

TEST_F(PluginsVerb, EachThatWouldNotLoadEndsTheRunWithCodeFive) {
  const std::string fixtures = TENON_FIXTURE_DIR;
  const std::string whole = read_bytes(fixture("tiny"));
  // Before the end of its segments: what follows them is debugging information that nobody misses.
  folder_.write("cut.so", whole.substr(0, 8000));
  folder_.write("text.so", "words, not code");
  for (const auto& [plugin, words] :
       std::map<std::string, std::string>{{"./gone.so", "no such file"},
                                          {"./text.so", "not a shared library"},
                                          {"./cut.so", "truncated"},
                                          {fixtures + "/plain.so", "no Tenon plugin"},
                                          {fixtures + "/new_abi.so", "plugin ABI 99."},
                                          {fixtures + "/old_abi.so", "rebuild the plugin"},
                                          {fixtures + "/other_library.so", "same C++ standard library"},
                                          {fixtures + "/undefined.so", "undefined symbol"},
                                          {fixtures + "/throws.so", "the licence server is down"}}) {
    const Said said = run_with(plugin);
    SCOPED_TRACE(plugin);
    EXPECT_EQ(said.code, 5);
    EXPECT_EQ(said.out, "");
    EXPECT_THAT(said.error, AllOf(HasSubstr("exp.toml:2:8: "), HasSubstr(words)));
  }
}

TEST_F(PluginsVerb, WhatWouldNotLoadIsToldOnceByTheKit) {
  for (const char* plugin : {"undefined", "plain", "throws"}) {
    const Said said = tenon({"plugins", "test", fixture(plugin).string()});
    EXPECT_EQ(said.code, 5);
    const std::size_t first = said.error.find("tenon: ");
    EXPECT_NE(first, std::string::npos) << plugin;
    EXPECT_EQ(said.error.find("tenon: ", first + 1), std::string::npos) << said.error;
  }
}

TEST_F(PluginsVerb, TestRunsTheKitOnEachSpec) {
  const Said good = tenon({"plugins", "test", "direct", "caching:max_split_size=24MiB", "--only", "aligns"});
  EXPECT_EQ(good.code, 0) << good.out << good.error;
  EXPECT_THAT(good.out, AllOf(HasSubstr("direct, seed 47"), HasSubstr("caching:max_split_size=24MiB, seed 47"),
                              HasSubstr("speed: an allocation and its free take"), HasSubstr("; caching ")));
  const Said none = tenon({"plugins", "test", "direct", "--only", "algns"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.error, HasSubstr("aligns"));
}

TEST_F(PluginsVerb, TestSaysWhatDoesNotApply) {
  const Said said = tenon({"plugins", "test", fixture("tiny").string(), "--only", "shows_its_layout"});
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_THAT(said.out, AllOf(HasSubstr("  n/a     shows_its_layout"), HasSubstr("walk() shows no segments"),
                              HasSubstr("0 passed, 0 failed, 1 not applicable")));
  EXPECT_THAT(tenon({"plugins", "test", "direct", "caching", "--only", "shows_its_layout"}).out,
              Not(HasSubstr("not applicable")));
}

TEST_F(PluginsVerb, TestTriesTheEdgesOfWhatIsDeclared) {
  const std::string tiny = fixture("tiny").string();
  const Said said = tenon({"plugins", "test", tiny, "--edges", "--only", "aligns", "--format", "json"});
  std::vector<std::string> specs;
  const auto json = parse_json(said.out);
  for (const auto& row : json["rows"]) specs.push_back(row["spec"]);
  EXPECT_THAT(specs, testing::IsSupersetOf({tiny, tiny + ":chunk=512", tiny + ":chunk=1MiB", tiny + ":fit=first"}))
      << said.error;
  const Said caching = tenon({"plugins", "test", "caching", "--edges", "--only", "retries"});
  EXPECT_EQ(caching.code, 1) << "an option that lifts a promise";
  EXPECT_THAT(caching.out, AllOf(HasSubstr("caching:throw_on_cudamalloc_oom=true, seed 47\n  FAILED  retries"),
                                 HasSubstr("caching:compat=1.13, seed 47\n1 passed")));
  EXPECT_THAT(caching.error,
              AllOf(HasSubstr("not tested: caching:garbage_collection_threshold=1: allocator 'caching' ("),
                    HasSubstr("caching.so) was not made: garbage_collection_threshold must"),
                    HasSubstr("not tested: caching:per_process_memory_fraction=0: 1 x 64.0 MiB do not fit")));
}

TEST_F(PluginsVerb, ACrashEndsOneCheckAndIsNamedWithItsCallAndItsStack) {
  const Said bad = tenon({"plugins", "test", fixture("crasher").string()});
  EXPECT_EQ(bad.code, 1) << bad.error;
  EXPECT_THAT(bad.out, AllOf(HasSubstr("SIGSEGV"), HasSubstr("in allocate("),
                             HasSubstr("the shortest history that does it"), HasSubstr(" failed, ")));
  EXPECT_THAT(bad.out, HasSubstr("survives_dying_threads")) << "the checks after it ran";
}

TEST_F(PluginsVerb, TwoBuildsOfOnePluginAreTestedSideBySide) {
  const std::string old_build = fixture("tiny").string();
  std::filesystem::create_directory(folder_.path() / "new");
  std::filesystem::copy_file(old_build, folder_.path() / "new/tiny.so");
  const Said both = tenon({"plugins", "test", old_build, "new/tiny.so", "--only", "aligns", "--format", "json"});
  const auto rows = parse_json(both.out)["rows"];
  ASSERT_EQ(rows.size(), 2U) << both.error;
  EXPECT_EQ(rows[0]["spec"], old_build);
  EXPECT_EQ(rows[1]["spec"], "new/tiny.so");
}

TEST_F(PluginsVerb, TestSaysInJsonWhatHoldsForAllChecksOfASpec) {
  const Said said = tenon({"plugins", "test", "direct", "caching:max_split_size=24MiB", "--only", "aligns", "--seed",
                           "48", "--format", "json"});
  const auto runs = parse_json(said.out)["runs"];
  ASSERT_EQ(runs.size(), 2U) << said.error;
  EXPECT_EQ(runs[1]["allocator"], "caching");
  EXPECT_EQ(runs[1]["spec"], "caching:max_split_size=24MiB");
  for (const auto& run : runs) {
    EXPECT_EQ(run["seed"], 48);
    EXPECT_EQ(run["passed"], true);
    EXPECT_TRUE(run["checks_not_run"].empty()) << "no other was asked for";
    EXPECT_GT(run["speed"]["pair_ns"].get<double>(), 0);
    EXPECT_GT(run["speed"]["yardstick_ns"].get<double>(), 0);
    EXPECT_EQ(run["speed"]["yardstick"], "caching");
    EXPECT_EQ(run["speed"]["is_slow"], false);
  }
  const Said here = tenon({"plugins", "test", "direct", "--only", "aligns", "--here", "--format", "json"});
  EXPECT_TRUE(parse_json(here.out)["runs"][0]["speed"].is_null()) << "measured in a process of its own only";
}

// A promise or a failure never goes on at the margin, as if it were the next check.
TEST_F(PluginsVerb, TheKitsLinesFitANarrowScreen) {
  const std::vector<std::string> words = {"plugins", "test", fixture("buddy").string() + ":flaw=bytes_doubled",
                                          "--only", "s"};
  const Said narrow = tenon(words, {{"COLUMNS", "60"}}), wide = tenon(words, {{"COLUMNS", "120"}});
  EXPECT_THAT(narrow.out, AllOf(HasSubstr("\n  FAILED  never_overlaps\n    no two live blocks share a byte"),
                                HasSubstr("\n  passed  aligns\n"), HasSubstr("\n  after   counts\n    ")));
  EXPECT_THAT(wide.out, HasSubstr("\n" + std::string(43, ' ')));
  for (const Said* said : {&narrow, &wide}) {
    std::istringstream lines(said->out);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(display_width(line), said == &narrow ? 60U : 120U) << line;
      if (line.starts_with("  ") && line[2] != ' ') {
        EXPECT_TRUE(line.find("passed") == 2 || line.find("FAILED") == 2 || line.find("after") == 2 ||
                    line.find("as in") == 2 || line.find("the shortest history") == 2 || line.find("where") == 2)
            << line;
      }
    }
  }
}

TEST_F(PluginsVerb, DevicesListsTheCpuAndTheSimulatedOnes) {
  folder_.write("two.toml", "[device.simulated]\ncount = 2\ncapacity = \"80GiB\"\n");
  const Said said = tenon({"devices", "--config", "two.toml"});
  EXPECT_EQ(said.code, 0) << said.error;
  for (const char* word : {"cpu:0", "simulated:0", "simulated:1", "80.0 GiB"}) EXPECT_THAT(said.out, HasSubstr(word));
}

TEST_F(PluginsVerb, DoctorSaysWhatIsThereAndHowToGetTheRest) {
  const Said said = tenon({"doctor"});
  EXPECT_EQ(said.code, 0) << said.out << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("plugin caching"), HasSubstr("fashion-mnist"), HasSubstr("cuda")));
  folder_.write("plug/bad.so", "words");
  const Said sick = tenon({"doctor"}, {{"TENON_PLUGIN_PATH", (folder_.path() / "plug").string()}});
  EXPECT_EQ(sick.code, 1);
  EXPECT_THAT(sick.out, HasSubstr("broken"));
}

}  // namespace
}  // namespace tenon::test
