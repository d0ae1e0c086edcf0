// Options: what each type takes, bounds and choices, what a refusal says, names that are nearly right.
#include "../support/message_of.h"

#include <tenon/core/error.h>
#include <tenon/core/option_edges.h>
#include <tenon/core/options.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

OptionSchema schema() {
  return {OptionSpec::boolean("checks", true, "help"),
          OptionSpec::integer("count", 5, "help").range(std::int64_t{-2}, std::int64_t{8}),
          OptionSpec::real("share", 0.5, "help").range(0.25, 0.75),
          OptionSpec::size("limit", 1024, "help").range(std::size_t{512}, std::size_t{4096}),
          OptionSpec::text("order", "best", "help").one_of({"best", "first", "next"}),
          OptionSpec::text("label", "none", "help")};
}

std::string refused(const char* name, const char* text) {
  Options options(schema());
  const std::string message = message_of<ConfigError>([&] { options.set_text(name, text); });
  EXPECT_TRUE(options.is_default(name)) << "a refused value leaves the old one";
  return message;
}

TEST(Options, BeginWithTheirDefaultsAndSayWhatChanged) {
  Options options(schema());
  EXPECT_TRUE(options.boolean("checks"));
  EXPECT_EQ(options.integer("count"), 5);
  EXPECT_EQ(options.real("share"), 0.5);
  EXPECT_EQ(options.size("limit"), 1024u);
  EXPECT_EQ(options.text("order"), "best");
  EXPECT_EQ(options.spec(), "");
  EXPECT_TRUE(options.entries(true).empty());
  options.set_text("count", "-2");
  options.set_text("limit", "2KiB");
  options.set_text("checks", "true");
  EXPECT_FALSE(options.is_default("count"));
  EXPECT_TRUE(options.is_default("checks"));
  EXPECT_EQ(options.spec(), "count=-2,limit=2KiB");
  EXPECT_THAT(options.entries(false), ElementsAre(Pair("checks", "true"), Pair("count", "-2"), Pair("share", "0.5"),
                                                  Pair("limit", "2KiB"), Pair("order", "best"), Pair("label", "none")));
  Options read(schema());
  for (const auto& [name, text] : options.entries(false)) read.set_text(name, text);
  EXPECT_EQ(read.spec(), options.spec());
}

TEST(Options, TakeTextOfTheirTypeUpToTheirBounds) {
  Options options(schema());
  for (const char* yes : {"true", "TRUE", "1"}) {
    options.set_text("checks", "0");
    options.set_text("checks", yes);
    EXPECT_TRUE(options.boolean("checks")) << yes;
  }
  for (const char* no : {"false", "False", "0"}) {
    options.set_text("checks", "1");
    options.set_text("checks", no);
    EXPECT_FALSE(options.boolean("checks")) << no;
  }
  for (const std::int64_t edge : {-2, 8}) {
    options.set_text("count", std::to_string(edge));
    EXPECT_EQ(options.integer("count"), edge);
  }
  for (const char* edge : {"0.25", "0.75"}) EXPECT_NO_THROW(options.set_text("share", edge));
  for (const char* edge : {"512", "4KiB"}) EXPECT_NO_THROW(options.set_text("limit", edge));
  options.set_text("order", "next");
  EXPECT_EQ(options.text("order"), "next");
  options.set_text("label", "");
  EXPECT_EQ(options.text("label"), "");
}

TEST(Options, AreReadToTheEndOfTheirTextWhateverIsBehindIt) {
  Options options(schema());
  const std::string_view longer = "0.56x";
  options.set_text("share", longer.substr(0, 3));
  EXPECT_EQ(options.real("share"), 0.5);
  options.set_text("count", longer.substr(2, 1));
  EXPECT_EQ(options.integer("count"), 5);
}

TEST(Options, HaveEdgesWhereTheyDeclareBoundsOrChoices) {
  std::vector<std::string> edges;
  for (const OptionEdge& edge : option_edges(schema())) edges.push_back(edge.option + "=" + to_string(edge.value));
  EXPECT_THAT(edges, ElementsAre("checks=false", "count=-2", "count=8", "share=0.25", "share=0.75", "limit=512",
                                 "limit=4KiB", "order=first", "order=next"));
  EXPECT_TRUE(option_edges({OptionSpec::integer("count", 5, ""), OptionSpec::text("label", "none", "")}).empty());
}

TEST(Options, RefuseWithNameTypeAndRange) {
  EXPECT_EQ(refused("checks", "yes"), "option 'checks' expects a boolean; got \"yes\": write true or false");
  EXPECT_EQ(refused("count", "9"), "option 'count' expects an integer, from -2 to 8; got 9: too large");
  EXPECT_EQ(refused("count", "-3"), "option 'count' expects an integer, from -2 to 8; got -3: too small");
  for (const char* text : {"", "x", "1x", "1.5", " 1"})
    EXPECT_EQ(refused("count", text),
              std::string("option 'count' expects an integer, from -2 to 8; got \"") + text + "\"");
  for (const char* text : {"9223372036854775808", "-99999999999999999999"})
    EXPECT_EQ(refused("count", text),
              std::string("option 'count' expects an integer, from -2 to 8; got ") + text + ": out of range");
  EXPECT_EQ(refused("count", "99999999999999999999x"),
            "option 'count' expects an integer, from -2 to 8; got \"99999999999999999999x\"");
  EXPECT_EQ(refused("share", "0.76"), "option 'share' expects a number, from 0.25 to 0.75; got 0.76: too large");
  EXPECT_EQ(refused("share", "0.24"), "option 'share' expects a number, from 0.25 to 0.75; got 0.24: too small");
  for (const char* text : {"nan", "", "0.5x"}) EXPECT_THAT(refused("share", text), HasSubstr("expects a number"));
  EXPECT_EQ(refused("limit", "511"), "option 'limit' expects a size, from 512 to 4KiB; got 511: too small");
  EXPECT_EQ(refused("limit", "4097"), "option 'limit' expects a size, from 512 to 4KiB; got 4097: too large");
  EXPECT_THAT(refused("limit", "much"), HasSubstr("option 'limit': "));
  EXPECT_EQ(refused("order", "frist"),
            "option 'order' expects a string, one of best, first, next; got \"frist\": did you mean \"first\"?");
  EXPECT_EQ(refused("order", "zzzzzzzz"),
            "option 'order' expects a string, one of best, first, next; got \"zzzzzzzz\"");
}

TEST(Options, HaveAWordInPlaceOfAnInteger) {
  Options options({OptionSpec::integer("count", 5, "").range(std::int64_t{1}, std::int64_t{8}).or_word("auto")});
  options.set_text("count", "auto");
  EXPECT_EQ(options.integer("count"), 0);
  EXPECT_EQ(options.spec(), "count=auto");
  options.set("count", std::int64_t{3});
  EXPECT_EQ(options.spec(), "count=3");
  options.set("count", std::string("auto"));
  EXPECT_EQ(options.integer("count"), 0);
  EXPECT_EQ(message_of<ConfigError>([&] { options.set_text("count", "0"); }),
            "option 'count' expects an integer, from 1 to 8, or \"auto\"; got 0: too small");
  EXPECT_EQ(message_of<ConfigError>([&] { options.set("count", std::string("all")); }),
            "option 'count' expects an integer, from 1 to 8, or \"auto\"; got a string (all)");
  EXPECT_EQ(message_of<ConfigError>([&] { options.set("count", std::int64_t{0}); }),
            "option 'count' expects an integer, from 1 to 8, or \"auto\"; got 0: too small");
}

TEST(Options, TakeTypedValuesAndIntegersWhereTheyMeanTheSame) {
  Options options(schema());
  options.set("limit", std::int64_t{600});
  EXPECT_EQ(options.size("limit"), 600u);
  options.set("limit", std::string("1KiB"));
  EXPECT_EQ(options.size("limit"), 1024u);
  Options open({OptionSpec::real("x", 0.5, ""), OptionSpec::size("bytes", 1, "")});
  open.set("x", std::int64_t{2});
  EXPECT_EQ(open.real("x"), 2);
  open.set("bytes", std::int64_t{0});
  EXPECT_EQ(open.size("bytes"), 0u);
  EXPECT_EQ(message_of<ConfigError>([&] { open.set("bytes", std::int64_t{-1}); }),
            "option 'bytes' expects a size; got -1: a size is not negative");
  EXPECT_EQ(message_of<ConfigError>([&] { options.set("count", std::string("5")); }),
            "option 'count' expects an integer, from -2 to 8; got a string (5)");
  EXPECT_EQ(message_of<ConfigError>([&] { options.set("count", 2.0); }),
            "option 'count' expects an integer, from -2 to 8; got a number (2)");
  EXPECT_EQ(message_of<ConfigError>([&] { options.set("limit", 600.0); }),
            "option 'limit' expects a size, from 512 to 4KiB; got a number (600)");
  EXPECT_EQ(message_of<ConfigError>([&] { options.set("checks", std::int64_t{1}); }),
            "option 'checks' expects a boolean; got an integer (1)");
  EXPECT_THROW(options.set("count", std::int64_t{9}), ConfigError);
}

TEST(Options, ThatAreNotThereAreNamedWithTheNearest) {
  Options options(schema());
  EXPECT_EQ(message_of<ConfigError>([&] { options.set_text("cuont", "1"); }),
            "unknown option 'cuont'; did you mean 'count'?");
  EXPECT_EQ(message_of<ConfigError>([&] { options.set_text("xyzxyz", "1"); }),
            "unknown option 'xyzxyz'; known: checks, count, share, limit, order, label");
  EXPECT_EQ(message_of<ConfigError>([] { Options().set_text("a", "1"); }),
            "unknown option 'a': there are no options here");
  EXPECT_EQ(message_of([&] { options.integer("cuont"); }),
            "the option 'cuont' is read, but not declared: options() declares checks, count, share, limit, order, "
            "label; add it there");
  EXPECT_EQ(message_of([&] { options.integer("share"); }),
            "the option 'share' is read as a integer, but declared as a number");
}

TEST(NearestName, IsTheOneWithTheFewestEditsOrWithTheSameBeginning) {
  const std::vector<std::string> names{"caching", "direct", "expandable"};
  EXPECT_EQ(nearest_name("cahcing", names), "caching");
  EXPECT_EQ(nearest_name("direkt", names), "direct");
  EXPECT_EQ(nearest_name("expendible", names), "expandable");
  EXPECT_EQ(nearest_name("exp", names), "expandable") << "the beginning of one";
  EXPECT_EQ(nearest_name("caching_of_mine", names), "caching") << "begun by one";
  EXPECT_EQ(nearest_name("float16", {"float32", "bfloat16", "float16-mixed"}), "float16-mixed") << "one that goes on";
  EXPECT_EQ(nearest_name("tlsf", names), "");
  EXPECT_EQ(nearest_name("", names), "");
  EXPECT_EQ(nearest_name("x", {}), "");
  EXPECT_EQ(nearest_name("ab", {"cd", "ad"}), "ad");
  EXPECT_EQ(nearest_name("abcdefghi", {"abcxyzghi"}), "abcxyzghi") << "a third of it may differ";
  EXPECT_EQ(nearest_name("abcdefghi", {"xbcxyzgzi"}), "");
  EXPECT_EQ(nearest_name("abc", {"abcd", "abcx"}), "abcd") << "of equals the first";
}

}  // namespace
}  // namespace tenon::test
