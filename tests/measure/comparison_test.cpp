// Which cases of results are held against each other, under which names, and what is said to differ between them.
#include <tenon/measure/compare/comparison.h>
#include <tenon/measure/compare/figure.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tenon::measure {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A replay of "t" under an allocator's SPEC: "buddy:chunk=1".
ResultCase replay_of(const std::string& spec, const std::string& file = {}) {
  const std::size_t colon = std::min(spec.find(':'), spec.size());
  ResultCase made;
  made.kind = ResultKind::kReplay;
  made.fields = {{"trace", "t"}, {kAllocatorField, spec}};
  made.name = "t, " + spec;
  made.allocator = {kAllocatorField, spec.substr(0, colon), spec.substr(std::min(colon + 1, spec.size())), file};
  return made;
}

ResultSet set_of(const std::string& path, std::vector<ResultCase> cases) {
  ResultSet set;
  set.path = path;
  set.kind = ResultKind::kReplay;
  set.cases = std::move(cases);
  return set;
}

std::vector<std::string> names(const Comparison& comparison) {
  std::vector<std::string> names;
  for (const ComparedCase& found : comparison.cases) names.push_back(found.name);
  return names;
}

TEST(ComparisonFilter, AStarStandsForAnythingAndAWordMayStandAnywhere) {
  ResultCase found;
  found.name = "resnet18";
  for (const char* filter : {"net", "resnet18", "*", "res*", "*18", "r*t*8", "r*e*18", "r*esn*8", "*net*", "resnet*18"})
    EXPECT_TRUE(passes(found, {filter})) << filter;
  for (const char* filter : {"nett", "net*", "*net", "r*x*8", "resnet18*8", "x*"})
    EXPECT_FALSE(passes(found, {filter})) << filter;
  EXPECT_TRUE(passes(found, {"nothing", "res*"})) << "one of several is enough";
}

TEST(ComparisonFilter, OfAFieldAWordStandsInThatFieldAndOfNoneInTheName) {
  ResultCase found;
  found.fields = {{"trace", "gpt2"}, {kAllocatorField, "caching"}};
  found.name = "gpt2, lr=caching";
  EXPECT_TRUE(passes(found, {"trace=gpt*"}));
  EXPECT_TRUE(passes(found, {"allocator=cach"}));
  EXPECT_FALSE(passes(found, {"trace=caching"})) << "it is another field's";
  EXPECT_TRUE(passes(found, {"lr=caching"})) << "no field is called so: the name has it";
}

TEST(Compare, WhatEachSetHasLeftOverOfOnePluginIsOneCaseByThePluginsName) {
  const Comparison comparison = compare({set_of("a", {replay_of("caching"), replay_of("buddy:chunk=1")}),
                                         set_of("b", {replay_of("caching"), replay_of("buddy:chunk=2")})},
                                        {});
  EXPECT_THAT(names(comparison), ElementsAre("t, caching", "t, buddy"));
  ASSERT_NE(comparison.cases[1].of_set[0], nullptr);
  ASSERT_NE(comparison.cases[1].of_set[1], nullptr);
  EXPECT_EQ(comparison.cases[1].of_set[0]->name, "t, buddy:chunk=1");
  EXPECT_EQ(comparison.cases[1].of_set[1]->name, "t, buddy:chunk=2");
  ASSERT_EQ(comparison.allocators.size(), 1u) << "their files are the same";
  EXPECT_EQ(comparison.allocators[0].key, "options of buddy");
  EXPECT_THAT(comparison.allocators[0].values, ElementsAre("chunk=1", "chunk=2"));
}

TEST(Compare, AFileThatIsAnotherIsSaidToBe) {
  const Comparison comparison = compare({set_of("a", {replay_of("caching"), replay_of("buddy", "old.so")}),
                                         set_of("b", {replay_of("caching"), replay_of("buddy", "new.so")})},
                                        {});
  ASSERT_EQ(comparison.allocators.size(), 1u);
  EXPECT_EQ(comparison.allocators[0].key, "file of buddy");
  EXPECT_THAT(comparison.allocators[0].values, ElementsAre("old.so", "new.so"));
  EXPECT_THAT(
      compare({set_of("a", {replay_of("buddy", "x.so")}), set_of("b", {replay_of("buddy", "x.so")})}, {}).allocators,
      IsEmpty());
}

TEST(Compare, WhatIsLeftOverKeepsItsNameWhereAnotherHasThePlugins) {
  const Comparison comparison = compare({set_of("a", {replay_of("buddy"), replay_of("buddy:chunk=1")}),
                                         set_of("b", {replay_of("buddy"), replay_of("buddy:chunk=2")})},
                                        {});
  EXPECT_THAT(names(comparison), ElementsAre("t, buddy", "t, buddy:chunk=1"));
  EXPECT_EQ(comparison.cases[1].of_set[1]->name, "t, buddy:chunk=2");
}

TEST(Compare, OfTwoThatOneSetHasLeftOverNoneIsChosen) {
  const Comparison comparison =
      compare({set_of("a", {replay_of("caching"), replay_of("buddy:chunk=1"), replay_of("buddy:chunk=3")}),
               set_of("b", {replay_of("caching"), replay_of("buddy:chunk=2")})},
              {});
  EXPECT_THAT(names(comparison), ElementsAre("t, caching", "t, buddy:chunk=1", "t, buddy:chunk=3", "t, buddy:chunk=2"));
}

TEST(Compare, AChangeOfAnAllocatorIsSaidOnceHoweverManyCasesHaveIt) {
  const auto of = [](const std::string& options) {
    std::vector<ResultCase> cases = {replay_of("buddy:" + options), replay_of("buddy:" + options)};
    cases[1].fields[0].second = "u";
    cases[1].name = "u, buddy:" + options;
    return set_of(options, std::move(cases));
  };
  EXPECT_EQ(compare({of("chunk=1"), of("chunk=2")}, {}).allocators.size(), 1u);
}

TEST(Compare, AFigureIsTheSameWhereEverySetHasItAndWithTheSameValue) {
  const FigureInfo* time = nullptr;
  for (const FigureInfo& info : known_figures())
    if (info.is_measured()) time = &info;
  ASSERT_NE(time, nullptr);
  const auto is_same = [&](std::vector<double> values) {
    std::vector<ResultCase> cases(2, replay_of("caching"));
    ComparedCase compared{"t, caching", {&cases[0], &cases[1]}};
    for (std::size_t i = 0; i < values.size(); ++i) cases[i].figures[std::string(time->key)] = {.value = values[i]};
    return is_same_figure(*time, compared);
  };
  EXPECT_TRUE(is_same({5, 5}));
  EXPECT_FALSE(is_same({5, 6}));
  EXPECT_FALSE(is_same({5})) << "the other set lacks it";
  const ResultCase one = replay_of("caching");
  EXPECT_FALSE(is_same_figure(*time, {"t, caching", {&one, nullptr}}));
}

}  // namespace
}  // namespace tenon::measure
