// `tenon compare`: gates that must not look passed, and options that would change nothing.
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

namespace tenon::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class CompareGate : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    std::string text;
    for (int i = 0; i < 30; ++i) text += "a " + std::to_string(i) + " " + std::to_string(3000000 + 1000 * i) + " 0\n";
    folder_.write("one.trace", text);
    folder_.write("two.trace", text);
  }
  void replay(const std::string& file, std::vector<std::string> words) {
    words.insert(words.begin(), {"replay", "--format", "json", "--quiet"});
    folder_.write(file, tenon(words).out);
  }
  Said gated(const std::string& a, const std::string& b, const std::string& gate) {
    return tenon({"compare", a, b, "--fail-if", gate});
  }
  /// The rows of a replay that ran out at that event, and had so many device calls until then.
  void ran_out(const std::string& file, int event, int calls) {
    json row = {{"trace", "t"},
                {"allocator", "mine"},
                {"events", 100},
                {"peak_requested_bytes", 1000},
                {"ooms", 1},
                {"first_oom_event", event},
                {"retries", calls},
                {"excess", 0},
                {"device_allocations", calls},
                {"peak_reserved_bytes", 1000 + calls}};
    folder_.write(file, json{{"schema_version", 1}, {"rows", {row}}}.dump());
  }
};

TEST_F(CompareGate, ACaseThatHasVanishedTripsARelativeGate) {
  replay("two.json", {"one.trace", "-a", "direct", "-a", "caching"});
  replay("one.json", {"one.trace", "-a", "direct"});
  for (const auto& [a, b] : {std::pair("two.json", "one.json"), {"one.json", "two.json"}}) {
    for (const char* gate : {"peak_reserved_bytes > +2%", "b.ooms > a.ooms", "device_allocations > +1000"}) {
      const Said said = gated(a, b, gate);
      EXPECT_EQ(said.code, 3) << a << " " << gate;
      EXPECT_THAT(said.error,
                  AllOf(HasSubstr("one.trace, caching, " + std::string(b) + ": "),
                        HasSubstr("cannot be judged, it is not in one.json"), Not(HasSubstr("one.trace, direct"))));
    }
    EXPECT_EQ(gated(a, b, "ooms > 0").code, 0) << "each is judged by itself";
  }
  EXPECT_EQ(tenon({"compare", "two.json", "one.json", "--filter", "direct", "--fail-if", "ooms > +0"}).code, 0);
}

TEST_F(CompareGate, ACellThatHasVanishedTripsARelativeGate) {
  for (const auto& [out, sizes] : {std::pair("a", "[8, 16]"), {"b", "[8, 32]"}}) {
    folder_.write("sweep.toml", experiment("[sweep]\n\"train.batch_size\" = " + std::string(sizes) + "\n"));
    ASSERT_EQ(tenon({"run", "sweep.toml", "--out", out, "--quiet"}).code, 0);
  }
  const Said said = gated("a", "b", "peak_reserved_bytes > +2%");
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.error, AllOf(HasSubstr("16, b: peak_reserved_bytes cannot be judged, it is not in b"),
                                HasSubstr("32, b: peak_reserved_bytes cannot be judged, it is not in a")));
}

TEST_F(CompareGate, AFigureThatOneSideLacksTripsARelativeGate) {
  replay("a.json", {"one.trace", "-a", "direct"});
  json document = parse_json(read_bytes(folder_.path() / "a.json"));
  for (json& row : document["rows"]) row.erase("retries");
  folder_.write("b.json", document.dump());
  EXPECT_THAT(gated("a.json", "b.json", "retries > +0").error, HasSubstr("b.json has no retries"));
  EXPECT_THAT(gated("b.json", "a.json", "retries > +0").error, HasSubstr("b.json has no retries"));
  EXPECT_EQ(gated("b.json", "a.json", "retries > +0").code, 3);
}

TEST_F(CompareGate, ASideWithoutAFigureIsRefused) {
  replay("a.json", {"one.trace", "-a", "direct"});
  for (const char* gate : {"b > 1.05 * a", "b > 3"}) {
    const Said said = gated("a.json", "a.json", gate);
    EXPECT_EQ(said.code, 2) << gate;
    EXPECT_THAT(said.error, AllOf(HasSubstr("\"b\" alone names no figure"),
                                  HasSubstr("for example 'b.peak_reserved_bytes > 1.05 * a.peak_reserved_bytes'")));
  }
  EXPECT_EQ(gated("a.json", "a.json", "b.excess > 1.05 * a").code, 0) << "one side says it for both";
}

TEST_F(CompareGate, OfTwoThatRanOutNothingIsPraised) {
  ran_out("a.json", 40, 8);
  ran_out("b.json", 10, 0);
  const Said said = tenon({"compare", "a.json", "b.json", "--all"});
  EXPECT_THAT(said.out, AllOf(HasSubstr("not comparable: OOM at event 10"), Not(HasSubstr("better"))));
  for (const char* gate : {"device_allocations > +2%", "retries > +0", "peak_reserved_bytes > +2%"}) {
    const Said judged = gated("a.json", "b.json", gate);
    EXPECT_EQ(judged.code, 3) << gate;
    EXPECT_THAT(judged.error, HasSubstr("cannot be judged, OOM at event 10")) << gate;
  }
  ran_out("b.json", 40, 9);
  EXPECT_THAT(tenon({"compare", "a.json", "b.json"}).out, HasSubstr("worse")) << "the same end";
  EXPECT_EQ(gated("a.json", "b.json", "device_allocations > +20%").code, 0);
}

TEST_F(CompareGate, TwoRunsThatRanOutSomewhereAreNotCalledEqual) {
  const json result = {{"schema_version", 1},
                       {"status", "out_of_memory"},
                       {"memory", {{"peak_reserved_bytes", 1000}}},
                       {"result", {{"steps", 3}, {"device_calls_per_step", 0}}}};
  folder_.write("a.json", result.dump());
  EXPECT_EQ(gated("a.json", "a.json", "peak_reserved_bytes > +2%").code, 3);
  EXPECT_THAT(tenon({"compare", "a.json", "a.json", "--all"}).out,
              AllOf(HasSubstr("not comparable: OOM"), Not(HasSubstr("same"))));
  json known = result;
  known["out_of_memory"] = {{"failed_event", 7}};
  folder_.write("known.json", known.dump());
  EXPECT_EQ(gated("known.json", "known.json", "peak_reserved_bytes > +2%").code, 0) << "the same event";
  EXPECT_EQ(gated("known.json", "a.json", "steps < -50%").code, 3);
}

TEST_F(CompareGate, OneMeasurementEachIsNoMeasureOfSpeed) {
  replay("a.json", {"one.trace", "-a", "direct"});
  replay("b.json", {"one.trace", "-a", "direct"});
  for (const char* gate : {"seconds != +0%", "seconds > +1000000%", "allocate_ns.p50 > +1000000%"}) {
    const Said said = gated("a.json", "b.json", gate);
    EXPECT_EQ(said.code, 3) << gate;
    EXPECT_THAT(said.error, HasSubstr("cannot be judged, ")) << gate;
  }
  EXPECT_THAT(gated("a.json", "b.json", "seconds != +0%").error,
              HasSubstr("one file each: take both in one `tenon bench OLD NEW --history TRACE`"));
}

TEST_F(CompareGate, AnOptionThatWouldChangeNothingIsRefused) {
  ASSERT_EQ(tenon({"run", "exp.toml", "--out", "run", "--quiet"}).code, 0);
  replay("a.json", {"one.trace", "-a", "direct"});
  replay("two.json", {"one.trace", "two.trace", "-a", "direct"});
  const std::pair<std::vector<std::string>, const char*> commands[] = {
      {{"a.json", "a.json", "--html", "-", "--format", "json"}, "standard output takes one thing"},
      {{"run", "run", "--matrix", "excess"}, "run is a run, which has no histories to make a matrix of"},
      {{"a.json", "a.json", "--matrix", "excess"}, "a matrix is of two or more histories"},
      {{"two.json", "--matrix", "excess", "--format", "json"}, "JSON and CSV hold every figure and no matrix"},
  };
  for (const auto& [words, why] : commands) {
    std::vector<std::string> line = {"compare"};
    line.insert(line.end(), words.begin(), words.end());
    const Said said = tenon(line);
    EXPECT_EQ(said.code, 2) << why;
    EXPECT_EQ(said.out, "");
    EXPECT_THAT(said.error, HasSubstr(why));
  }
  EXPECT_EQ(tenon({"compare", "two.json", "--matrix", "excess"}).code, 0);
  EXPECT_EQ(tenon({"compare", "two.json", "--matrix", "excess", "--format", "json", "--html", "m.html"}).code, 0);
  EXPECT_THAT(tenon({"compare", "a.json", "a.json", "--html", "-"}).out, HasSubstr("<html"));
}

}  // namespace
}  // namespace tenon::test
