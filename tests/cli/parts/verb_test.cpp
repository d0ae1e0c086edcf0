// What verbs declare of their command lines, what becomes of these, and how mistakes are answered.
#include <tenon/cli/manual/help_text.h>
#include <tenon/cli/manual/mistyped.h>
#include <tenon/cli/manual/verb_facts.h>
#include <tenon/cli/verb.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace tenon::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

/// A program with a verb that has an option of every type, and one with verbs below it.
class CommandLine : public testing::Test {
 protected:
  void SetUp() override { set_output_screen({.columns = 80, .has_colour = true}); }
  void TearDown() override { set_output_screen({}); }

  struct Values {
    std::string board, capacity, any_capacity, into;
    int count = 3;
    unsigned jobs = 4;
    std::uint64_t seed = 47;
    double depth = 0.5;
    std::vector<std::string> irons, marks;
    std::vector<int> pair;
    bool quiet = false, back = false;
    TableFormat format = TableFormat::kTable;
  };

  Parsed parse(const std::vector<std::string>& words) {
    // None is destroyed: the words of an option are known by its address.
    static std::vector<std::unique_ptr<Program>> all_programs;
    program_ = all_programs.emplace_back(std::make_unique<Program>("tenon", "smooths wood", "1.2")).get();
    values_ = {};
    ran_ = "";
    const Verb tenon = program_->verb();
    tenon.require_verb(1);
    tenon.footer("Examples:\n  tenon shave oak");
    shave_ = tenon.add_verb("shave", "take it off");
    shave_->add_option("board", values_.board, "the wood").required().type_name("FILE");
    shave_->add_option("--count,-n", values_.count, "how often").range(1, 9).type_name("N").shows_default();
    shave_->add_option("--jobs,-j", values_.jobs, "at a time").range(1, 1024).type_name("N");
    shave_->add_option("--depth", values_.depth, "of each").range(0.1, 2.5);
    const Option with = shave_->add_option("--with,-w", values_.irons, "irons").type_name("SPEC").one_at_a_time();
    shave_->add_option("--mark", values_.marks, "names").type_name("TEXT").may_be_empty();
    shave_->add_option("--pair", values_.pair, "two").expects(2).excludes(with);
    shave_->add_option("--into", values_.into, "where").type_name("DIR").words({"here", "there"});
    add_any_capacity_option(*shave_, values_.any_capacity, "room");
    add_seed_option(*shave_, values_.seed, "of chance");
    back_ = shave_->add_flag("--back", values_.back, "and back");
    bool& hidden = hidden_;
    static_cast<void>(shave_->add_flag("--parent", hidden, "ours").hidden());
    add_format_option(*shave_, values_.format);
    add_quiet_option(*shave_, values_.quiet);
    shave_->footer(example("tenon shave oak"));
    shave_->callback([this] { ran_ += "shave"; });
    iron_ = tenon.add_verb("iron", "its iron");
    iron_->require_verb(0);
    Verb sharpen = iron_->add_verb("sharpen", "make it sharp");
    add_capacity_option(sharpen, values_.capacity, "room");
    sharpen.callback([this] { ran_ += "sharpen"; });
    iron_->callback([this] { ran_ += iron_->is_alone() ? "iron " : "iron-"; });
    std::vector<std::string> all = {"tenon"};
    all.insert(all.end(), words.begin(), words.end());
    std::vector<char*> arguments;
    for (std::string& word : all) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    return program_->parse(static_cast<int>(all.size()), arguments.data());
  }
  /// Why it is refused.
  std::string refusal(std::vector<std::string> words) {
    words.insert(words.begin(), "shave");
    const Parsed parsed = parse(words);
    EXPECT_EQ(parsed.kind, Parsed::Kind::kRefused);
    EXPECT_EQ(ran_, "");
    return usage_message(parsed);
  }
  bool takes(std::vector<std::string> words) {
    words.insert(words.begin(), {"shave", "oak"});
    return parse(words).kind == Parsed::Kind::kRan;
  }

  Program* program_ = nullptr;
  std::optional<Verb> shave_, iron_;
  std::optional<Option> back_;
  Values values_;
  std::string ran_;
  bool hidden_ = false;
};

TEST_F(CommandLine, WhatIsNotGivenKeepsItsValue) {
  ASSERT_EQ(parse({"shave", "oak"}).kind, Parsed::Kind::kRan);
  EXPECT_EQ(ran_, "shave");
  EXPECT_EQ(values_.board, "oak");
  EXPECT_EQ(values_.count, 3);
  EXPECT_EQ(values_.jobs, 4U);
  EXPECT_EQ(values_.seed, 47U);
  EXPECT_EQ(values_.depth, 0.5);
  EXPECT_EQ(values_.capacity, "");
  EXPECT_THAT(values_.irons, IsEmpty());
  EXPECT_FALSE(values_.quiet);
  EXPECT_FALSE(values_.back);
  EXPECT_FALSE(back_->is_given());
  EXPECT_EQ(values_.format, TableFormat::kTable);
}

TEST_F(CommandLine, WhatIsGivenStandsInTheVariables) {
  ASSERT_EQ(parse({"shave",  "oak",      "-n",     "7",      "-j2",  "--depth=1.5", "-w", "a",
                   "--with", "b",        "--mark", "x",      "y",    "--seed",      "9",  "--back",
                   "-q",     "--format", "csv",    "--into", "here", "--capacity",  "8"})
                .kind,
            Parsed::Kind::kRan);
  EXPECT_EQ(values_.count, 7);
  EXPECT_EQ(values_.jobs, 2U);
  EXPECT_EQ(values_.depth, 1.5);
  EXPECT_THAT(values_.irons, ElementsAre("a", "b"));
  EXPECT_THAT(values_.marks, ElementsAre("x", "y"));
  EXPECT_EQ(values_.seed, 9U);
  EXPECT_TRUE(values_.back);
  EXPECT_TRUE(back_->is_given());
  EXPECT_TRUE(values_.quiet);
  EXPECT_EQ(values_.format, TableFormat::kCsv);
  EXPECT_EQ(values_.into, "here");
  EXPECT_EQ(values_.any_capacity, "8");
}

TEST_F(CommandLine, AListTakesAllWordsOneAtATimeOrSoMany) {
  EXPECT_FALSE(takes({"-w", "a", "b"})) << "each use takes one";
  EXPECT_FALSE(takes({"--pair", "1"}));
  EXPECT_FALSE(takes({"--pair", "1", "2", "3"}));
  ASSERT_TRUE(takes({"--pair", "1", "2"}));
  EXPECT_THAT(values_.pair, ElementsAre(1, 2));
  EXPECT_FALSE(takes({"--pair", "1", "2", "-w", "a"})) << "not both";
}

TEST_F(CommandLine, NumbersMayBeTheEndsOfTheirRange) {
  for (const char* count : {"1", "9"}) EXPECT_TRUE(takes({"-n", count})) << count;
  for (const char* count : {"0", "10", "-1", "2.5", "x"}) EXPECT_FALSE(takes({"-n", count})) << count;
  for (const char* depth : {"0.1", "2.5", "1"}) EXPECT_TRUE(takes({"--depth", depth})) << depth;
  for (const char* depth : {"0.09", "2.6", "-1"}) EXPECT_FALSE(takes({"--depth", depth})) << depth;
  EXPECT_THAT(refusal({"oak", "--depth", "nan"}), HasSubstr("Value nan not in range 0.1 to 2.5"));
}

TEST_F(CommandLine, AWordThatIsEmptyOrMissingIsRefused) {
  EXPECT_THAT(refusal({""}), AllOf(HasSubstr("an empty value, as of a shell variable that is not set"),
                                   Not(HasSubstr("leave the option out"))));
  EXPECT_THAT(refusal({"oak", "--into", ""}),
              HasSubstr("an empty value, as of a shell variable that is not set; leave the option out for none"));
  EXPECT_THAT(refusal({"oak", "--with", ""}),
              HasSubstr("--with: an empty value, as of a shell variable that is not set"));
  EXPECT_EQ(refusal({}), "board is required (see tenon shave --help)");
}

TEST_F(CommandLine, AWordMayBeEmptyWhereThatMeansSomething) {
  ASSERT_TRUE(takes({"--mark", "", "b"}));
  EXPECT_THAT(values_.marks, ElementsAre("", "b"));
}

TEST_F(CommandLine, ASeedHasNoSign) {
  EXPECT_THAT(refusal({"oak", "--seed=-1"}), HasSubstr("-1: a seed has no sign"));
  ASSERT_TRUE(takes({"--seed", "0"}));
  EXPECT_EQ(values_.seed, 0U);
}

TEST_F(CommandLine, ADeviceOfNoBytesIsRefusedAndSoIsASizeThatLostItsUnit) {
  for (const char* size : {"0", "0GiB"})
    EXPECT_THAT(refusal({"oak", "--capacity", size}),
                HasSubstr(std::string(size) + ": a device of 0 bytes serves nothing"));
  EXPECT_TRUE(takes({"--capacity", "8"})) << "in any unit";
  EXPECT_EQ(parse({"iron", "sharpen", "--capacity", "8"}).kind, Parsed::Kind::kRefused);
  EXPECT_EQ(parse({"iron", "sharpen", "--capacity", "8GiB"}).kind, Parsed::Kind::kRan);
  EXPECT_EQ(values_.capacity, "8GiB");
  EXPECT_EQ(parse({"iron", "sharpen", "--capacity", "0"}).kind, Parsed::Kind::kRefused);
}

TEST_F(CommandLine, TablesFitTheScreenUnlessProgramsReadThemOrAllColumnsAreWanted) {
  ASSERT_TRUE(takes({}));
  EXPECT_EQ(output_screen().columns, 80U);
  ASSERT_TRUE(takes({"--format", "table"}));
  EXPECT_EQ(output_screen().columns, 80U);
  ASSERT_TRUE(takes({"--wide"}));
  EXPECT_EQ(output_screen().columns, 0U);
  EXPECT_TRUE(output_screen().has_colour) << "all columns, and still a screen";
  SetUp();
  ASSERT_TRUE(takes({"--format", "json"}));
  EXPECT_EQ(output_screen().columns, 0U);
  EXPECT_FALSE(output_screen().has_colour);
  EXPECT_THROW(takes({"--format", "yaml"}), ConfigError);
}

TEST_F(CommandLine, AVerbAndTheOneBelowItAreBothCalled) {
  EXPECT_EQ(parse({"iron"}).kind, Parsed::Kind::kRan);
  EXPECT_EQ(ran_, "iron ");
  EXPECT_EQ(parse({"iron", "sharpen"}).kind, Parsed::Kind::kRan);
  EXPECT_THAT(ran_, AllOf(HasSubstr("sharpen"), HasSubstr("iron-")));
}

TEST_F(CommandLine, HelpAndVersionAreToldWithTheirVerb) {
  Parsed parsed = parse({"iron", "sharpen", "--help"});
  EXPECT_EQ(parsed.kind, Parsed::Kind::kHelp);
  EXPECT_EQ(facts_of(parsed.verb).path, "tenon iron sharpen");
  parsed = parse({"--version"});
  EXPECT_EQ(parsed.kind, Parsed::Kind::kVersion);
  EXPECT_EQ(parsed.text, "tenon 1.2");
  EXPECT_EQ(parse({"-V"}).text, "tenon 1.2");
}

TEST_F(CommandLine, OneThatLacksAVerbSaysNoMoreThanThat) {
  EXPECT_TRUE(parse({}).lacks_verb);
  EXPECT_FALSE(parse({"--back"}).lacks_verb) << "it has a mistake besides";
  EXPECT_FALSE(parse({"shave"}).lacks_verb);
  EXPECT_FALSE(parse({"shave", "oak", "--bakc"}).lacks_verb);
}

TEST_F(CommandLine, AnUnknownOptionIsAnsweredWithTheNearest) {
  EXPECT_EQ(refusal({"oak", "--bakc"}), "unknown option --bakc; did you mean --back? (see tenon shave --help)");
  EXPECT_EQ(refusal({"oak", "--capactiy=8GiB"}),
            "unknown option --capactiy=8GiB; did you mean --capacity? (see tenon shave --help)");
  EXPECT_EQ(refusal({"oak", "--xyzzyxyz"}), "unknown option --xyzzyxyz (see tenon shave --help)");
  EXPECT_EQ(parse({"shave", "oak", "--bakc"}).unknown_option, "--bakc");
  const Parsed surplus = parse({"shave", "oak", "ash"});
  EXPECT_EQ(surplus.unknown_option, "") << "a word is no option";
  EXPECT_THAT(usage_message(surplus), AllOf(HasSubstr("ash"), HasSubstr("(see tenon shave --help)")));
}

TEST_F(CommandLine, AnUnknownVerbIsAnsweredWithTheNearestOrAllOfThem) {
  parse({});
  const VerbFacts tenon = facts_of(program_->verb());
  EXPECT_EQ(unknown_verb(tenon, {"shvae", "oak"}),
            "unknown verb \"tenon shvae\"; did you mean \"tenon shave\"? (see tenon --help)");
  EXPECT_EQ(unknown_verb(tenon, {"xyzzyx"}), "unknown verb \"tenon xyzzyx\"; there are shave, iron (see tenon --help)");
  EXPECT_EQ(unknown_verb(tenon, {"iron", "sharpn"}),
            "unknown verb \"tenon iron sharpn\"; did you mean \"tenon iron sharpen\"? (see tenon iron --help)");
  for (const std::vector<std::string>& words : {std::vector<std::string>{},
                                                {"shave", "anything"},
                                                {"iron", "sharpen"},
                                                {"iron", "--back"},
                                                {"--help"},
                                                {"-V", "shave"},
                                                {"--odd"}})
    EXPECT_EQ(unknown_verb(tenon, words), "") << testing::PrintToString(words);
}

TEST_F(CommandLine, AnOptionBeforeItsVerbIsToldToComeAfterIt) {
  parse({});
  const VerbFacts tenon = facts_of(program_->verb());
  EXPECT_EQ(unknown_verb(tenon, {"--depth=2", "1", "shave"}),
            "--depth stands before its verb; options come after it: tenon shave --depth …");
}

TEST_F(CommandLine, FactsAreThoseOfTheHelp) {
  parse({});
  const VerbFacts tenon = facts_of(program_->verb());
  EXPECT_EQ(tenon.name, "tenon");
  EXPECT_EQ(tenon.help, "smooths wood");
  ASSERT_EQ(tenon.verbs.size(), 2U);
  const VerbFacts& shave = tenon.verbs[0];
  EXPECT_EQ(shave.path, "tenon shave");
  EXPECT_EQ(shave.help, "take it off");
  EXPECT_EQ(shave.footer, "Example:\n  tenon shave oak");
  EXPECT_EQ(tenon.verbs[1].verbs.at(0).path, "tenon iron sharpen");
  std::string lines;
  for (const OptionFacts& option : shave.options) {
    for (const std::string& name : option.names) lines += name + " ";
    lines += "|" + option.value + "|" + std::to_string(static_cast<int>(option.kind));
    for (const std::string& word : option.words) lines += " " + word;
    lines += option.is_positional ? " positional" : "";
    lines += option.is_required ? " required" : "";
    lines += option.is_repeated ? " repeated" : "";
    lines += "\n";
  }
  EXPECT_EQ(lines,
            "-h --help ||0\nboard |FILE|1 positional required\n-n --count |N|5\n-j --jobs |N|5\n--depth |FLOAT|5\n"
            "-w --with |SPEC|3 repeated\n--mark |TEXT|5 repeated\n--pair |INT|5 repeated\n--into |DIR|4 here there\n"
            "--capacity |SIZE|5\n--seed |N|5\n--back ||0\n--format |FORMAT|4 table json csv markdown\n--wide ||0\n"
            "-q --quiet ||0\n")
      << "the kinds: 0 none, 1 file, 3 allocator, 4 words, 5 text";
}

TEST_F(CommandLine, WordsLeadToAVerbAsFarAsTheyDo) {
  parse({});
  const Verb tenon = program_->verb();
  EXPECT_EQ(facts_of(tenon.below({"iron", "sharpen"})).path, "tenon iron sharpen");
  EXPECT_EQ(facts_of(tenon.below({"iron", "blunt", "sharpen"})).path, "tenon iron");
  EXPECT_EQ(facts_of(tenon.below({})).path, "tenon");
}

TEST_F(CommandLine, AHelpFitsItsColumnsBelowTheSecondOne) {
  parse({});
  const std::string wide = help_text(*shave_, 0);
  EXPECT_EQ(wide, shave_->help());
  EXPECT_THAT(wide, AllOf(StartsWith("take it off\nUsage: tenon shave "), HasSubstr("-n,--count N:INT in [1 - 9]=3"),
                          HasSubstr("Example:\n  tenon shave oak")));
  EXPECT_EQ(wide.find("--parent"), std::string::npos) << "hidden";
  const std::string narrow = help_text(*shave_, 64);
  std::istringstream lines(narrow);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 64U) << line;
  EXPECT_THAT(narrow, HasSubstr("  --wide                      all columns of tables, however\n"
                                "                              narrow the terminal is\n"));
  EXPECT_THAT(narrow, HasSubstr("Example:\n  tenon shave oak\n"));
  shave_->footer("  Remarks of a footer go on below their first letter.\n" +
                 example("tenon shave --count 9 --with first --with second"));
  EXPECT_THAT(help_text(*shave_, 40), HasSubstr("  Remarks of a footer go on below their\n  first letter.\n"));
  EXPECT_THAT(help_text(*shave_, 40), HasSubstr("  tenon shave --count 9 --with first \\\n"));
}

TEST_F(CommandLine, ASentenceHasOneColumnThoughAWordBeginsWhereTheSecondWould) {
  parse({});
  const std::string sentence = "These are the words of a long remark of more than one line.";
  ASSERT_EQ(sentence.substr(28, 3), "g r");
  shave_->footer(sentence);
  EXPECT_THAT(help_text(*shave_, 40), HasSubstr("\nThese are the words of a long remark of\nmore than one line.\n"));
}

}  // namespace
}  // namespace tenon::cli
