// Ctrl-C in replay, tune, doctor, bench and the kit: what has been measured is printed.
#include "cli/interrupted.h"
#include "support/json.h"

#include <gmock/gmock.h>

#include <random>
#include <thread>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

class InterruptedReplay : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    heed_signals();
    std::mt19937 random(47);
    std::string lines;
    std::vector<int> live;
    for (int id = 0; id < 20'000; ++id) {
      lines += "a " + std::to_string(id) + " " + std::to_string(512 + random() % 4'000'000) + " 0\n";
      live.push_back(id);
      if (live.size() < 100) continue;
      std::swap(live[random() % live.size()], live.back());
      lines += "f " + std::to_string(live.back()) + "\n";
      live.pop_back();
    }
    folder_.write("long.trace", lines);
  }
};

TEST_F(InterruptedReplay, PrintsTheRowsThatAreMeasured) {
  StartedProgram program(folder_, {"replay", "long.trace", "-a", "caching", "-a", "direct", "-j", "1", "--repeat",
                                   "1000", "--html", "report.html", "--format", "json"});
  program.wait_until_it_catches(SIGINT);
  program.interrupt(SIGINT);
  const Said said = program.wait();
  EXPECT_EQ(said.code, 130) << said.error;
  EXPECT_THAT(said.error, AllOf(HasSubstr("ending with the rows that are measured"), HasSubstr("ended by SIGINT")));
  const auto rows = parse_json(said.out)["rows"];
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[2]["allocator"], "ideal");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "report.html")) << "no part of a report";
}

TEST_F(InterruptedReplay, RowsThatWereNotMeasuredSaySo) {
  StartedProgram program(folder_,
                         {"replay", "long.trace", "-a", "caching", "-a", "direct", "-j", "1", "--repeat", "1000"});
  program.wait_until_it_catches(SIGTERM);
  program.send(SIGTERM);
  const Said said = program.wait();
  EXPECT_EQ(said.code, 143);
  EXPECT_THAT(said.error,
              AllOf(HasSubstr("direct on long.trace was not measured: interrupted"), HasSubstr("ended by SIGTERM")));
  EXPECT_THAT(said.out, HasSubstr("ideal"));
}

TEST_F(InterruptedReplay, BenchEndsThoughAPluginHangs) {
  StartedProgram program(folder_, {"bench", std::string(TENON_FIXTURE_DIR "/crasher.so:how=hang,after=6000"),
                                   "--workload", "hot/64", "--deadline", "86400", "--format", "json"});
  program.wait_until_it_catches(SIGINT);
  program.interrupt(SIGINT);
  const Said said = program.wait();
  EXPECT_EQ(said.code, 130) << said.error;
  EXPECT_THAT(said.error, HasSubstr("ended by SIGINT"));
  EXPECT_EQ(parse_json(said.out)["interrupted"], true);
}

TEST_F(InterruptedReplay, TuneJudgesWhatItHasMeasured) {
  StartedProgram program(folder_, {"tune", "long.trace", "--capacity", "1GiB", "--budget", "10m"});
  program.wait_until_it_catches(SIGINT);
  program.interrupt(SIGINT);
  const Said said = program.wait();
  EXPECT_EQ(said.code, 130) << said.error;
  EXPECT_THAT(said.error, AllOf(HasSubstr("ended by SIGINT before the search was over"), HasSubstr("begins anew")));
  EXPECT_THAT(said.out, AnyOf(HasSubstr("PyTorch's defaults"), HasSubstr("Nothing was measured")));
}

TEST_F(InterruptedReplay, TuneEndsThoughAReplayUnderWayNeverDoes) {
  StartedProgram program(
      folder_, {"tune", "long.trace", "--capacity", "1GiB", "--budget", "10m", "-j", "1", "--format", "json"});
  program.wait_until_it_catches(SIGINT);
  for (bool is_stopped = false; !is_stopped; std::this_thread::yield()) {
    for (const pid_t replay : grandchildren()) {
      ::kill(replay, SIGSTOP);
      const std::string now = read_bytes("/proc/" + std::to_string(replay) + "/stat");
      is_stopped |= now.find(") T ") != std::string::npos;
    }
  }
  program.send(SIGINT);
  const Said said = program.wait();
  EXPECT_EQ(said.code, 130) << said.error;
  const auto json = parse_json(said.out);
  EXPECT_EQ(json["interrupted"], true);
  for (const auto& row : json["rows"]) EXPECT_GT(row["peak_reserved_bytes"], 0) << "measured to the end";
}

TEST_F(InterruptedReplay, DoctorPrintsTheSettingsThatAreReplayed) {
  StartedProgram program(folder_, {"doctor", "long.trace", "--capacity", "1GiB", "--format", "json"});
  program.wait_until_it_catches(SIGINT);
  for (bool is_stopped = false; !is_stopped; std::this_thread::yield()) {  // so that one of them never ends
    for (const pid_t replay : grandchildren()) is_stopped |= ::kill(replay, SIGSTOP) == 0;
  }
  program.send(SIGINT);
  const Said said = program.wait();
  EXPECT_EQ(said.code, 130) << said.error;
  EXPECT_THAT(said.error, HasSubstr("ended by SIGINT; the table shows what was replayed until then"));
  const auto json = nlohmann::json::parse(said.out);
  EXPECT_EQ(json["verdict"], "interrupted");
  EXPECT_EQ(json["interrupted"], true);
  EXPECT_TRUE(json["recommendation"].is_null());
}

/// A bench that would take for ever.
std::vector<std::string> endless_bench(const std::string& format) {
  return {"bench", "direct",   "caching", "-w",        "lifo/10",          "--rounds",
          "10000", "--format", format,    "--fail-if", "ns_per_pair > +5%"};
}

TEST_F(InterruptedReplay, BenchPrintsTheRoundsThatAreMeasured) {
  StartedProgram program(folder_, endless_bench("table"));
  program.wait_until_it_catches(SIGTERM);
  while (children_of(children_of(::getpid()).front()).empty()) std::this_thread::yield();
  program.send(SIGTERM);
  const Said said = program.wait();
  EXPECT_EQ(said.code, 143) << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("workload"), HasSubstr("caching"), HasSubstr("Interrupted: "),
                              HasSubstr(" of 10000 rounds of every workload were measured")));
  EXPECT_THAT(said.error, HasSubstr("ended by SIGTERM; the table shows what was measured until then, gates were not "
                                    "judged"));
}

TEST_F(InterruptedReplay, BenchWritesItsJsonToo) {
  StartedProgram program(folder_, endless_bench("json"));
  program.wait_until_it_catches(SIGINT);
  program.interrupt(SIGINT);  // its subjects get it too
  const Said said = program.wait();
  EXPECT_EQ(said.code, 130) << said.error;
  const auto json = nlohmann::json::parse(said.out);
  EXPECT_EQ(json["interrupted"], true);
  EXPECT_LT(json["method"]["rounds"], 10000);
  EXPECT_EQ(json["rows"].size(), 3U) << "with the harness";
  EXPECT_FALSE(json.contains("gates"));
}

TEST_F(InterruptedReplay, TheKitPrintsTheChecksThatAreDone) {
  StartedProgram program(folder_, {"plugins", "test", fixture("buddy").string() + ":flaw=slow"});
  program.wait_until_it_catches(SIGINT);
  program.interrupt(SIGINT);
  const Said said = program.wait();
  EXPECT_EQ(said.code, 130) << said.out << said.error;
  EXPECT_THAT(said.out, AllOf(HasSubstr("buddy:flaw=slow, seed 47"), HasSubstr(" not run")));
  EXPECT_THAT(said.out, testing::Not(HasSubstr("FAILED"))) << "the end is no crash of the check under way";
  EXPECT_THAT(said.error, HasSubstr("ended by SIGINT"));
}

TEST_F(InterruptedReplay, TheKitNamesTheChecksThatWereNotRunInItsJson) {
  StartedProgram program(folder_,
                         {"plugins", "test", fixture("buddy").string() + ":flaw=slow", "direct", "--format", "json"});
  program.wait_until_it_catches(SIGINT);
  program.interrupt(SIGINT);
  const Said said = program.wait();
  EXPECT_EQ(said.code, 130) << said.out << said.error;
  const auto json = nlohmann::json::parse(said.out);
  const std::size_t done = json["rows"].size(), all = json["runs"][1]["checks_not_run"].size();
  EXPECT_EQ(json["runs"][0]["checks_not_run"].size() + done, all);
  EXPECT_EQ(json["runs"][1]["checks_not_run"][0], "frees_all_at_the_end") << "it was not begun";
  EXPECT_EQ(json["runs"][0]["passed"], false);
}

}  // namespace
}  // namespace tenon::test
