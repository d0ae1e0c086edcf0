// Nearest names of verbs and options.
#include <tenon/cli/manual/mistyped.h>

#include <tenon/core/options.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::cli {

/// What is said of "tenon --capacity 8GiB replay …"; empty where the words do not begin so.
static std::string option_before_verb(const VerbFacts& program, const std::vector<std::string>& words) {
  if (words.empty() || !words.front().starts_with("-")) return {};
  const std::string option = words.front().substr(0, words.front().find('='));
  const auto has_it = [&](const OptionFacts& own) { return std::ranges::find(own.names, option) != own.names.end(); };
  if (std::ranges::any_of(program.options, has_it)) return {};
  const auto is_verb = [&](const std::string& word) {
    return std::ranges::find(program.verbs, word, &VerbFacts::name) != program.verbs.end();
  };
  const auto verb = std::ranges::find_if(words, is_verb);
  if (verb == words.end()) return {};
  return fmt::format("{} stands before its verb; options come after it: {} {} {} …", option, program.path, *verb,
                     option);
}

std::string unknown_verb(const VerbFacts& program, const std::vector<std::string>& words) {
  if (std::string problem = option_before_verb(program, words); !problem.empty()) return problem;
  const VerbFacts* verb = &program;
  for (const std::string& word : words) {
    if (word.starts_with("-") || verb->verbs.empty()) return {};
    const auto next = std::ranges::find(verb->verbs, word, &VerbFacts::name);
    if (next == verb->verbs.end()) {
      std::vector<std::string> names;
      for (const VerbFacts& below : verb->verbs) names.push_back(below.name);
      const std::string near = nearest_name(word, names);
      return fmt::format("unknown verb \"{} {}\"{} (see {} --help)", verb->path, word,
                         near.empty() ? fmt::format("; there are {}", fmt::join(names, ", "))
                                      : fmt::format("; did you mean \"{} {}\"?", verb->path, near),
                         verb->path);
    }
    verb = &*next;
  }
  return {};
}

std::string usage_message(const Parsed& refused) {
  const VerbFacts verb = facts_of(refused.verb);
  std::string message = refused.text;
  if (const std::string& given = refused.unknown_option; !given.empty()) {
    std::vector<std::string> names;
    for (const OptionFacts& option : verb.options) {
      for (const std::string& name : option.names)
        if (name.starts_with("--")) names.push_back(name);
    }
    const std::string near = nearest_name(given.substr(0, given.find('=')), names);
    message = fmt::format("unknown option {}{}", given, near.empty() ? "" : fmt::format("; did you mean {}?", near));
  }
  return fmt::format("{} (see {} --help)", message, verb.path);
}

}  // namespace tenon::cli
