// `tenon plan`: problems and histories in, plans and proofs out, and what is refused.
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

#include <random>

namespace tenon::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class PlanVerb : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    // minimalloc's own example in spirit: 8 at once, and 8 is enough.
    folder_.write("problem.csv", "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\n");
    folder_.write("x.trace", "a 0 1048576 0\na 1 2097152 0\nf 0\na 2 3145728 0\nf 1\nf 2\n");
  }
  json row_of(const Said& said) { return parse_json(said.out).at("rows").at(0); }
};

TEST_F(PlanVerb, PacksAProblemAndProvesIt) {
  const Said said = tenon({"plan", "problem.csv", "--format", "json", "-q"});
  EXPECT_EQ(said.code, 0) << said.error;
  const json row = row_of(said);
  EXPECT_EQ(row["name"], "problem.csv");
  EXPECT_EQ(row["blocks"], 3);
  EXPECT_EQ(row["height_bytes"], 8);
  EXPECT_EQ(row["lower_bound_bytes"], 8);
  EXPECT_EQ(row["proof"], "optimal");
  EXPECT_EQ(parse_json(said.out)["schema_version"], 1);
}

TEST_F(PlanVerb, ItsHelpSaysWhatEachProofMeans) {
  EXPECT_THAT(tenon({"plan", "--help"}).out, AllOf(HasSubstr("\"optimal\""), HasSubstr("\"bracket\"")));
}

TEST_F(PlanVerb, WritesTheRowsWithTheirOffsetsWhichAreThenKept) {
  ASSERT_EQ(tenon({"plan", "problem.csv", "-o", "solved.csv", "-q"}).code, 0);
  const std::string solved = read_bytes(folder_.path() / "solved.csv");
  EXPECT_THAT(solved, testing::StartsWith("id,lower,upper,size,offset\nb1,0,3,4,"));
  const Said again = tenon({"plan", "solved.csv", "-o", "again.csv", "-q"});
  EXPECT_EQ(again.code, 0) << again.error;
  EXPECT_EQ(read_bytes(folder_.path() / "again.csv"), solved);
}

TEST_F(PlanVerb, KeepsTheColumnsOfTheProblem) {
  folder_.write("more.csv",
                "buffer,start,end,size,alignment,hint,gaps\na,0,8,8,4,-1,2-3 5-6@0:4\nb,3,4,4,4,0,\nc,0,1,0,1,-1,\n");
  ASSERT_EQ(tenon({"plan", "more.csv", "-o", "out.csv", "-q"}).code, 0);
  EXPECT_EQ(read_bytes(folder_.path() / "out.csv"),
            "id,lower,upper,size,alignment,hint,gaps,offset\na,0,9,8,4,-1,2-4 5-7@0:4,0\nb,3,5,4,4,0,,8\n"
            "c,0,2,0,1,-1,,0\n");
}

TEST_F(PlanVerb, ACapacityThatIsTooSmallHasItsCodeAndItsNumbers) {
  const Said said = tenon({"plan", "problem.csv", "--capacity", "7", "-o", "none.csv", "-q"});
  EXPECT_EQ(said.code, 4);
  EXPECT_THAT(said.error, AllOf(HasSubstr("tenon: problem.csv: does not fit in 7 bytes"),
                                HasSubstr("8 bytes live at once"), HasSubstr("no plan is lower than 8 bytes")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "none.csv"));
  EXPECT_EQ(tenon({"plan", "problem.csv", "--capacity", "8", "-q"}).code, 0);
}

TEST_F(PlanVerb, ACapacityBelowAFixedOffsetIsNotPutDownToWhatLives) {
  folder_.write("fixed.csv", "id,lower,upper,size,offset\na,0,5,10,0\nb,0,5,10,100\n");
  const Said said = tenon({"plan", "fixed.csv", "--capacity", "50", "-q"});
  EXPECT_EQ(said.code, 4);
  EXPECT_THAT(said.error, AllOf(HasSubstr("every packing was ruled out, so that no plan is lower than 110 bytes"),
                                testing::Not(HasSubstr("live at once"))));
}

TEST_F(PlanVerb, RowsOfAHistoryAreNamedByTheNumbersOfItsRequests) {
  ASSERT_EQ(tenon({"plan", "x.trace", "-o", "x.csv", "-q"}).code, 0);
  EXPECT_THAT(
      read_bytes(folder_.path() / "x.csv"),
      testing::MatchesRegex("id,lower,upper,size,alignment,offset\n0,0,2,1048576,64,[0-9]+\n1,1,3,2097152,64,[0-9]+\n"
                            "2,2,3,3145728,64,[0-9]+\n"));
}

TEST_F(PlanVerb, ItsPlanServesAReplay) {
  const Said plan = tenon({"plan", "x.trace", "-o", "x.plan"});
  ASSERT_EQ(plan.code, 0) << plan.error;
  EXPECT_THAT(plan.error, HasSubstr("tenon replay x.trace -a planned:plan=x.plan"));
  const Said said = tenon({"replay", "x.trace", "-a", "planned:plan=x.plan", "--format", "json", "-q"});
  ASSERT_EQ(said.code, 0) << said.error;
  EXPECT_EQ(row_of(said)["peak_reserved_bytes"], 6 << 20) << "5 MiB in pages of 2 MiB";
}

TEST_F(PlanVerb, APlanOfAProblemServesItsReplay) {
  ASSERT_EQ(tenon({"plan", "problem.csv", "-o", "problem.plan", "-q"}).code, 0);
  const Said said = tenon({"replay", "problem.csv", "-a", "planned:plan=problem.plan", "-q"});
  EXPECT_EQ(said.code, 0) << said.error;
}

TEST_F(PlanVerb, DrawsThePlan) {
  ASSERT_EQ(tenon({"plan", "x.trace", "--html", "x.html", "-q"}).code, 0);
  const std::string page = read_bytes(folder_.path() / "x.html");
  EXPECT_THAT(page, AllOf(HasSubstr("<svg"), HasSubstr("1.00 MiB at "), HasSubstr("no plan is lower")));
}

TEST_F(PlanVerb, BadInputIsNamedWithItsLine) {
  folder_.write("wrong.csv", "id,lower,upper,size\na,0,3,4\nb,5,5,4\n");
  const Said wrong = tenon({"plan", "wrong.csv"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.error, HasSubstr("wrong.csv:3: a buffer whose life ends at 5"));
  folder_.write("fixed.csv", "id,lower,upper,size,offset\na,0,3,4,0\nb,1,5,4,2\n");
  EXPECT_THAT(tenon({"plan", "fixed.csv"}).error, HasSubstr("buffers 0 and 1 overlap"));
  EXPECT_EQ(tenon({"plan", "none.csv"}).code, 2);
  EXPECT_EQ(tenon({"plan", "problem.csv", "-o", "plan.txt"}).code, 2);
  EXPECT_EQ(tenon({"plan", "problem.csv", "-o", "problem.csv"}).code, 2);
  EXPECT_EQ(tenon({"plan", "problem.csv", "--budget", "soon"}).code, 2);
}

TEST_F(PlanVerb, AnInterruptedSearchLeavesItsBest) {
  // A thousand buffers that nearly all live together: no search packs them as low as their sum.
  std::string rows = "id,lower,upper,size\n";
  std::mt19937 draw(47);
  for (int i = 0; i < 1000; ++i) {
    const unsigned lower = draw() % 1000;
    const unsigned upper = lower + 1 + draw() % 900, size = 1 + draw() % 1000;
    for (const unsigned number : {static_cast<unsigned>(i), lower, upper}) rows += std::to_string(number) + ",";
    rows += std::to_string(size) + "\n";
  }
  folder_.write("hard.csv", rows);
  StartedProgram running(folder_, {"plan", "hard.csv", "--budget", "1h", "-o", "best.csv"});
  running.wait_until_it_catches(SIGINT);
  running.interrupt(SIGINT);
  const Said said = running.wait();
  EXPECT_EQ(said.code, 130) << said.error;
  EXPECT_THAT(said.error, HasSubstr("ended by SIGINT; the plan is the best until then"));
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "best.csv"));
}

}  // namespace
}  // namespace tenon::test
