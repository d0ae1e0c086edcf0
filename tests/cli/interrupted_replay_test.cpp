// Ctrl-C in replay and tune: what has been measured is printed.
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

}  // namespace
}  // namespace tenon::test
