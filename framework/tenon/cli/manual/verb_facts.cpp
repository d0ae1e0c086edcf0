// Reading CLI11's table.
#include <tenon/cli/manual/verb_facts.h>

#include <CLI/CLI.hpp>

#include <map>
#include <set>

namespace tenon::cli {

namespace {

std::map<const CLI::Option*, std::vector<std::string>>& words_of_options() {
  static std::map<const CLI::Option*, std::vector<std::string>> words;
  return words;
}

ValueKind kind_of(const std::string& value) {
  static const std::set<std::string> kFiles = {"FILE", "TRACE", "IN", "OUT", "HTML", "A", "B"};
  if (value.empty()) return ValueKind::kNone;
  if (kFiles.contains(value)) return ValueKind::kFile;
  if (value == "DIR") return ValueKind::kFolder;
  if (value == "SPEC") return ValueKind::kAllocator;
  return ValueKind::kText;
}

OptionFacts facts_of(const CLI::Option& option) {
  OptionFacts facts{.help = option.get_description(),
                    .is_positional = option.get_positional(),
                    .is_required = option.get_required(),
                    .is_repeated = option.get_expected_max() > 1};
  if (facts.is_positional) {
    facts.names.push_back(option.get_name(true));
  } else {
    for (const std::string& name : option.get_snames()) facts.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) facts.names.push_back("--" + name);
  }
  if (option.get_type_size() != 0) {
    const std::string type = option.get_type_name();  // "N:INT in [1 - 1000]": the name, then its check
    facts.value = type.substr(0, type.find(':'));
  }
  facts.kind = kind_of(facts.value);
  if (const auto words = words_of_options().find(&option); words != words_of_options().end()) {
    facts.kind = ValueKind::kWords;
    facts.words = words->second;
  }
  return facts;
}

VerbFacts facts_of(const CLI::App& app) {
  VerbFacts facts{.name = app.get_name(), .path = app.get_name(), .help = app.get_description()};
  for (const CLI::App* above = app.get_parent(); above != nullptr; above = above->get_parent())
    facts.path = above->get_name() + " " + facts.path;
  facts.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) facts.options.push_back(facts_of(*option));
  }
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App* it) { return !it->get_group().empty(); }))
    facts.verbs.push_back(facts_of(*verb));
  return facts;
}

}  // namespace

void set_words(const CLI::Option* option, std::vector<std::string> words) {
  words_of_options()[option] = std::move(words);
}

VerbFacts facts_of(Verb verb) { return facts_of(verb.app()); }

}  // namespace tenon::cli
