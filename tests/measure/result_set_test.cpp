// What is read of the JSON that runs, sweeps, replays and benches leave, and what of it is refused.
#include "support/expect_error.h"
#include "support/scratch_folder.h"

#include <tenon/measure/compare/result_set.h>

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace tenon::measure {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

ResultSet parsed(const std::string& members) { return parse_result("{\"schema_version\": 1, " + members + "}", "x"); }
ResultSet of_rows(const std::string& rows) { return parsed("\"rows\": [" + rows + "]"); }

/// A row of a replay, with these members besides.
std::string replay_row(const std::string& more = {}) {
  return R"({"trace": "t", "allocator": "caching", "peak_reserved_bytes": 7)" + (more.empty() ? "" : ", " + more) + "}";
}
ResultCase of_replay(const std::string& more) { return of_rows(replay_row(more)).cases.at(0); }
ResultCase of_sweep(const std::string& more) {
  return of_rows(R"({"peak_reserved_bytes": 7, "train.lr": "0.1", )" + more + "}").cases.at(0);
}
/// A run whose "result" has these members, and its document those besides.
ResultCase of_run(const std::string& result, const std::string& more = R"("status": "done")") {
  return parsed(R"("memory": {}, "result": {)" + result + "}, " + more).cases.at(0);
}

std::string why_refused(const std::string& text) {
  try {
    parse_result(text, "the.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ResultSet, OfWhatIsNoResultIsRefusedWithWhatItIsInstead) {
  EXPECT_THAT(why_refused(""), HasSubstr("the.json: it is empty; compared are result.json of `tenon run`"));
  EXPECT_THAT(why_refused(R"({"schema_version": 1})"), HasSubstr(R"(it has neither "rows" nor a run's "result")"));
  EXPECT_THAT(why_refused(R"({"schema_version": 1, "rows": []})"), HasSubstr("it has no rows"));
  for (const char* row : {R"({"trace": 1, "allocator": "a"})", R"({"trace": 1, "peak_reserved_bytes": 1})",
                          R"({"allocator": "a", "peak_reserved_bytes": 1})", R"({"trace": 1})", R"({"allocator": "a"})",
                          R"({"peak_reserved_bytes": 1})", R"({"status": "done"})"})
    EXPECT_THAT(why_refused(R"({"schema_version": 1, "rows": [)" + std::string(row) + "]}"),
                HasSubstr("its rows are those of another verb"))
        << row;
}

TEST(ResultSet, IsOfTheVerbThatItsRowsAreOf) {
  EXPECT_EQ(of_rows(replay_row()).kind, ResultKind::kReplay);
  EXPECT_EQ(of_rows(R"({"status": "done", "peak_reserved_bytes": 1})").kind, ResultKind::kSweep);
  EXPECT_EQ(parsed(R"("memory": {}, "result": {})").kind, ResultKind::kRun);
  const ResultSet bench = parsed(
      R"("kind": "bench", "rows": [{"workload": "hot", "allocator": "a", "ns_per_pair": 5, "round_ns": [4, 6, 5]},
                                   {"workload": "hot", "allocator": "harness", "ns_per_pair": 1}])");
  EXPECT_EQ(bench.kind, ResultKind::kBench);
  ASSERT_THAT(bench.cases, SizeIs(1)) << "the harness is no case";
  EXPECT_EQ(bench.cases[0].name, "hot, a");
  EXPECT_EQ(bench.cases[0].figures.at("ns_per_pair").value, 5);
  EXPECT_THAT(bench.cases[0].figures.at("ns_per_pair").rounds, ElementsAre(4, 6, 5));
}

TEST(ResultSet, OfAReplayHasRunOutWhereItCountsSuchRequests) {
  EXPECT_EQ(of_replay(R"("ooms": 0)").ran_out, "");
  EXPECT_EQ(of_replay(R"("ooms": 2)").ran_out, "OOM");
  EXPECT_FALSE(of_replay(R"("ooms": 2)").is_oom_event_known);
  EXPECT_EQ(of_replay(R"("ooms": 2, "first_oom_event": 12)").ran_out, "OOM at event 12");
  EXPECT_TRUE(of_replay(R"("ooms": 2, "first_oom_event": 12)").is_oom_event_known);
}

TEST(ResultSet, OfAReplayThatWasNotTimedHasNoTimes) {
  const ResultCase timed = of_replay(R"("seconds": 2.5, "pass_seconds": [2, 3], "free_ns": {"p50": 9, "p99": 0})");
  EXPECT_EQ(timed.figures.at("seconds").value, 2.5);
  EXPECT_THAT(timed.figures.at("seconds").rounds, ElementsAre(2, 3));
  EXPECT_EQ(timed.figures.at("free_ns.p50").value, 9);
  EXPECT_EQ(timed.figures.count("free_ns.p99"), 0U);
  EXPECT_EQ(of_replay(R"("seconds": 0)").figures.count("seconds"), 0U);
}

TEST(ResultSet, OfAReplayHasACurveOverItsEvents) {
  const ResultCase found =
      of_replay(R"("timeline": [{"event": 2, "requested_bytes": 5, "reserved_bytes": 9}, {"step": 3}, {"event": 4}])");
  ASSERT_THAT(found.curves, SizeIs(2));
  EXPECT_EQ(found.curves[0].name, "requested");
  EXPECT_THAT(found.curves[0].points, ElementsAre(Pair(2, 5), Pair(4, 0)));
  EXPECT_EQ(found.curves[1].name, "reserved");
  EXPECT_THAT(found.curves[1].points, ElementsAre(Pair(2, 9), Pair(4, 0)));
}

TEST(ResultSet, OfARunHasAnExcessWhereBothPeaksAreKnown) {
  const auto of = [](const std::string& memory) {
    return parsed(R"("result": {}, "status": "done", "memory": {)" + memory + "}").cases.at(0).figures;
  };
  const std::string requested = R"("peak_requested_bytes": 100)", reserved = R"("peak_reserved_bytes": 150)";
  EXPECT_EQ(of(requested + ", " + reserved).at("excess").value, 0.5);
  EXPECT_FALSE(of(requested).contains("excess"));
  EXPECT_FALSE(of(reserved).contains("excess"));
}

TEST(ResultSet, OfASweepSaysHowEachCellEnded) {
  const ResultCase done = of_sweep(R"("status": "done", "error": "none")");
  EXPECT_EQ(done.failure, "");
  EXPECT_EQ(done.ran_out, "");
  EXPECT_EQ(done.name, "0.1");
  const ResultCase out = of_sweep(R"("status": "out_of_memory", "error": "no")");
  EXPECT_EQ(out.ran_out, "OOM");
  EXPECT_EQ(out.failure, "");
  const ResultCase failed = of_sweep(R"("status": "failed")");
  EXPECT_EQ(failed.mark, "failed");
  EXPECT_EQ(failed.failure, "failed");
  EXPECT_EQ(of_sweep(R"("status": "crashed", "error": "signal 11")").failure, "crashed: signal 11");
  const ResultCase said =
      of_sweep(R"("status": "disqualified", "error": "allocator 'x' is disqualified: it overlaps")");
  EXPECT_EQ(said.mark, "disqualified");
  EXPECT_EQ(said.failure, "allocator 'x' is disqualified: it overlaps") << "says it already";
  EXPECT_EQ(of_sweep(R"("status": "done", "cells_at_a_time": 3)").cells_at_a_time, 3);
}

TEST(ResultSet, OfARunKnowsWhetherItWentOnAndFromWhere) {
  EXPECT_TRUE(of_run("", R"("earlier_seconds": 0.5)").is_resumed);
  EXPECT_FALSE(of_run("", R"("earlier_seconds": 0)").is_resumed);
  EXPECT_FALSE(of_run("", R"("earlier_seconds": "some")").is_resumed);
  EXPECT_EQ(of_run(R"("figures": {"resumed_at_step": 4})").first_step, 4U);
  EXPECT_EQ(of_run(R"("figures": {"resumed_at_step": -4})").first_step, 0U);
  EXPECT_EQ(of_run(R"("figures": {"resumed_at_step": "four"})").first_step, 0U);
}

TEST(ResultSet, OfARunHasItsLossesItsExcessAndWhatEachPurposeHad) {
  const ResultCase run = parsed(R"("seconds": 9, "result": {"losses": [2, null], "step_ms": {"p50": 3}},
      "memory": {"peak_requested_bytes": 100, "peak_reserved_bytes": 125,
                 "peak_requested_bytes_by_purpose": {"gradient": 40}})")
                             .cases.at(0);
  EXPECT_EQ(run.name, "run");
  ASSERT_THAT(run.losses, SizeIs(2));
  EXPECT_EQ(run.losses[0], 2);
  EXPECT_TRUE(std::isnan(run.losses[1])) << "JSON has no word for it";
  EXPECT_EQ(run.figures.at("step_ms").value, 3);
  EXPECT_EQ(run.figures.at("seconds").value, 9);
  EXPECT_EQ(run.figures.at("excess").value, 0.25);
  EXPECT_EQ(run.figures.at("peak_gradient_bytes").value, 40);
}

/// A folder with these files: {path in it, text}.
std::string folder_of(const std::string& name, const std::vector<std::pair<std::string, std::string>>& files) {
  const std::filesystem::path folder = test::scratch_folder() + name;
  for (const auto& [path, text] : files) {
    std::filesystem::create_directories((folder / path).parent_path());
    std::ofstream(folder / path) << text;
  }
  return folder.string();
}

TEST(ResultSet, OfAFolderKnowsTheBuildsThatItsManifestLists) {
  const std::string plugins = R"({"plugins": [{"name": "mine", "sha256": "0123456789abcdef"}]})";
  const auto builds_of = [&](const std::string& name, const std::string& result) {
    return read_result(folder_of(name, {{"result.json", result}, {"run.json", plugins}})).plugins;
  };
  EXPECT_THAT(builds_of("run", R"({"schema_version": 1, "result": {}, "memory": {}})"),
              ElementsAre(Pair("plugin mine", "sha256:0123456789ab")));
  EXPECT_THAT(builds_of("sweep", R"({"schema_version": 1, "rows": [{"status": "done", "peak_reserved_bytes": 1}]})"),
              ElementsAre(Pair("plugin mine", "sha256:0123456789ab")));
  EXPECT_THAT(builds_of("replay", R"({"schema_version": 1, "rows": [)" + replay_row() + "]}"), IsEmpty())
      << "a replay lists its own";
}

TEST(ResultSet, OfASweepHasWhatEachCellLeftInItsFolder) {
  const auto cell = [](const std::string& step_ms, const std::string& lr) {
    return R"({"result": {"step_ms": {"p50": )" + step_ms + R"(}}, "earlier_seconds": )" + step_ms +
           R"(, "settings": {"seed": {"value": 5}, "lr": {"value": )" + lr +
           R"(}}, "timeline": [{"step": 1, "requested_bytes": )" + step_ms + "}]}";
  };
  const ResultSet sweep = read_result(folder_of(
      "cells",
      {{"result.json", R"({"schema_version": 1, "rows": [{"status": "done", "peak_reserved_bytes": 1, "step_ms": 1},
                                                                 {"status": "done", "peak_reserved_bytes": 1, "step_ms": 1},
                                                                 {"status": "done", "peak_reserved_bytes": 1}]})"},
       {"cells/001-a/result.json", cell("20", "1")},
       {"cells/002-b/result.json", cell("30", "2")},
       {"cells/004-c/result.json", cell("40", "2")}}));
  ASSERT_THAT(sweep.cases, SizeIs(3));
  EXPECT_EQ(sweep.cases[0].figures.at("step_ms").value, 20);
  EXPECT_EQ(sweep.cases[1].figures.at("step_ms").value, 30);
  EXPECT_TRUE(sweep.cases[1].is_resumed);
  ASSERT_THAT(sweep.cases[1].curves, SizeIs(2));
  EXPECT_THAT(sweep.cases[1].curves[0].points, ElementsAre(Pair(1, 30)));
  EXPECT_THAT(sweep.cases[2].curves, IsEmpty()) << "it left nothing";
  EXPECT_THAT(sweep.settings, ElementsAre(Pair("seed", "5"))) << "what all of them share";
}

TEST(ResultSet, OfADashIsWhatStandardInputHolds) {
  std::istringstream typed(R"({"schema_version": 1, "rows": [)" + replay_row() + "]}");
  std::streambuf* const before = std::cin.rdbuf(typed.rdbuf());
  const ResultSet set = read_result("-");
  std::cin.rdbuf(before);
  EXPECT_EQ(set.path, "standard input");
  ASSERT_THAT(set.cases, SizeIs(1));
  EXPECT_EQ(set.cases[0].name, "t, caching");
}

TEST(ResultSet, OfWhatIsNotThereNamesThePath) {
  test::expect_error<Error>([] { read_result(test::scratch_folder() + "absent.json"); },
                            "absent.json: cannot be opened");
  const std::string empty = folder_of("nothing", {{"inside/x", ""}});
  test::expect_error<Error>([&] { read_result(empty); }, "the folder holds no result.json");
}

}  // namespace
}  // namespace tenon::measure
