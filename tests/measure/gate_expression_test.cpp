// Gates over several subjects: what is read, what is refused, what trips.
#include "support/expect_error.h"

#include <tenon/measure/statistics/gate_expression.h>

#include <gmock/gmock.h>

namespace tenon::measure {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// One case; the subjects' figures are exact, or intervals of +-1 %. A figure of 0 cannot be judged.
class Figures final : public GateFigures {
 public:
  Figures(std::vector<double> values, bool exact, std::size_t cases = 1)
      : values_(std::move(values)), exact_(exact), cases_(cases) {}
  std::size_t cases() const override { return cases_; }
  std::string case_name(std::size_t which) const override { return which == 0 ? "case" : "another"; }
  std::string subject_name(std::size_t subject) const override { return names().subjects[subject]; }
  std::size_t subjects() const override { return values_.size(); }
  std::string why_unjudged(const GateQuestion& question) const override {
    for (const std::size_t subject : {question.subject, question.against.value_or(question.subject)})
      if (values_[subject] == 0) return "one run each";
    return {};
  }
  std::optional<Interval> figure(std::size_t, std::size_t subject, const std::string& metric) const override {
    if (metric == "excess") return std::nullopt;
    const double value = values_[subject], reach = exact_ ? 0 : 0.01 * value;
    return Interval{value - reach, value, value + reach};
  }
  static GateNames names() {
    return {.subjects = {"old.so:fit=best", "./new.so"}, .metrics = {"ns_per_pair", "peak_reserved_bytes", "excess"}};
  }

 private:
  std::vector<double> values_;
  bool exact_;
  std::size_t cases_;
};

std::vector<std::string> judge(const std::string& text, std::vector<double> values, bool exact = true) {
  return tripped(parse_gate_expression(text, Figures::names()), Figures(std::move(values), exact));
}

TEST(GateExpression, HoldsTwoSubjectsAgainstEachOther) {
  EXPECT_THAT(judge("b.ns_per_pair > 1.05 * a.ns_per_pair", {100, 104}), IsEmpty());
  EXPECT_THAT(judge("b.ns_per_pair > 1.05 * a", {100, 106}), ElementsAre(HasSubstr("tripped 'b.ns_per_pair")));
  EXPECT_THAT(judge("./new.so >= old.so:fit=best.ns_per_pair", {100, 100}), testing::SizeIs(1));
  EXPECT_THAT(judge("a.peak_reserved_bytes < b.peak_reserved_bytes", {1, 2}), testing::SizeIs(1));
  EXPECT_THAT(judge("a<b.ns_per_pair", {1, 2}), testing::SizeIs(1)) << "without spaces";
}

TEST(GateExpression, ASubjectAloneMeansTheFigureOfTheOtherSideOrTheOnlyOneThereIs) {
  const GateNames only = {.subjects = {"old", "new"}, .metrics = {"ns_per_pair"}};
  EXPECT_EQ(parse_gate_expression("b > 1.05 * a", only).left.metric, "ns_per_pair");
  EXPECT_EQ(parse_gate_expression("b > 1.05 * a", only).right->metric, "ns_per_pair");
  const GateExpression right = parse_gate_expression("b.excess > 1.05 * a", Figures::names());
  EXPECT_EQ(right.right->metric, "excess");
  const GateExpression left = parse_gate_expression("b > 1.05 * a.excess", Figures::names());
  EXPECT_EQ(left.left.metric, "excess");
  const std::string why =
      "\"b\" alone names no figure: say which is meant, of ns_per_pair, peak_reserved_bytes, excess; for example "
      "'b.peak_reserved_bytes > 1.05 * a.peak_reserved_bytes' or 'peak_reserved_bytes > +5%'";
  for (const char* text : {"b > 1.05 * a", "b > 3"})
    test::expect_error<ConfigError>([&] { parse_gate_expression(text, Figures::names()); }, why);
}

TEST(GateExpression, WhatCannotBeJudgedTrips) {
  EXPECT_THAT(judge("ns_per_pair > +5%", {100, 0}),
              ElementsAre("case, ./new.so: ns_per_pair cannot be judged, one run each: tripped 'ns_per_pair > +5%'"));
  EXPECT_THAT(judge("b.ns_per_pair > 1000 * a.ns_per_pair", {0, 100}), testing::SizeIs(1));
  EXPECT_THAT(judge("excess > 1", {100, 100}), ElementsAre(HasSubstr("no case has excess in every result")));
}

TEST(GateExpression, HoldsTheOthersAgainstTheFirst) {
  EXPECT_THAT(judge("ns_per_pair > +5%", {100, 104}), IsEmpty());
  EXPECT_THAT(judge("ns_per_pair > +5%", {100, 106}), testing::SizeIs(1));
  EXPECT_THAT(judge("peak_reserved_bytes > +1KiB", {1000, 2025}), testing::SizeIs(1));
  EXPECT_THAT(judge("peak_reserved_bytes > +1KiB", {1000, 2024}), IsEmpty());
  EXPECT_THAT(judge("peak_reserved_bytes < -5", {100, 90}), testing::SizeIs(1));
  EXPECT_THAT(judge("peak_reserved_bytes < -5", {100, 96}), IsEmpty());
}

TEST(GateExpression, HoldsFiguresAgainstValuesWithUnits) {
  EXPECT_THAT(judge("ns_per_pair > 50ns", {40, 60}), ElementsAre(HasSubstr("./new.so")));
  EXPECT_THAT(judge("ns_per_pair > 1us", {40, 60}), IsEmpty());
  EXPECT_THAT(judge("a.peak_reserved_bytes > 1KiB", {2048, 2048}), testing::SizeIs(1)) << "of one subject";
  EXPECT_THAT(judge("peak_reserved_bytes == 2048", {2048, 2047}), testing::SizeIs(1));
}

TEST(GateExpression, IsAskedOfEveryCaseAndSaysWhichOneTrippedIt) {
  const GateExpression gate = parse_gate_expression("ns_per_pair > +5%", Figures::names());
  EXPECT_THAT(
      tripped(gate, Figures({100, 150}, true, 2)),
      ElementsAre("case, ./new.so: ns_per_pair is 1.5 times that of old.so:fit=best: tripped 'ns_per_pair > +5%'",
                  "another, ./new.so: ns_per_pair is 1.5 times that of old.so:fit=best: tripped 'ns_per_pair > +5%'"));
}

TEST(GateExpression, WhatMustDifferTripsWhereItDoesSoForCertain) {
  EXPECT_THAT(judge("a.peak_reserved_bytes != 2048", {2048, 1}), IsEmpty());
  EXPECT_THAT(judge("a.peak_reserved_bytes != 2048", {2049, 1}), testing::SizeIs(1));
  EXPECT_THAT(judge("a.peak_reserved_bytes != 2048", {2040, 1}, false), IsEmpty()) << "within what may be noise";
  EXPECT_THAT(judge("a.peak_reserved_bytes != 2048", {1000, 1}, false), testing::SizeIs(1));
}

TEST(GateExpression, IsNotTrippedByWhatMayBeNoise) {
  EXPECT_THAT(judge("b > 1.05 * a.ns_per_pair", {100, 106}, false), IsEmpty());
  EXPECT_THAT(judge("b > 1.05 * a.ns_per_pair", {100, 108}, false), testing::SizeIs(1));
  EXPECT_THAT(judge("ns_per_pair > 100", {90, 100.5}, false), IsEmpty());
  EXPECT_THAT(judge("peak_reserved_bytes > +5", {100, 106.5}, false), IsEmpty()) << "the first is not exact either";
  EXPECT_THAT(judge("peak_reserved_bytes > +5", {100, 108}, false), testing::SizeIs(1));
}

TEST(GateExpression, AMistakeIsToldWithWhatWasExpected) {
  const auto refuse = [](const std::string& text, const std::string& why) {
    test::expect_error<ConfigError>([&] { parse_gate_expression(text, Figures::names()); }, why);
  };
  refuse("b", "no comparison in it");
  refuse("c > a", "\"c\" is neither a subject nor a figure");
  refuse("ns_per_piar > 3", "did you mean ns_per_pair?");
  refuse("b.ns_per_pair > x * a", "is neither a number, a size nor a percentage");
  refuse("b.ns_per_pair > 3GiB", "is a size, which ns_per_pair is not");
  refuse("a.ns_per_pair > +5%", "the first subject is what the others are held against");
  refuse("b > ns_per_pair", "the right side names no subject");
  refuse("b.ns_per_pair >", "nothing to compare with");
}

}  // namespace
}  // namespace tenon::measure
