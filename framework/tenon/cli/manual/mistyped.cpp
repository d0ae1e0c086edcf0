// Nearest names of verbs and options.
#include <tenon/cli/manual/help_text.h>
#include <tenon/cli/manual/mistyped.h>

#include <tenon/core/options.h>

#include <fmt/format.h>

namespace tenon::cli {

namespace {

std::vector<const CLI::App*> verbs_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

const CLI::App* find(const CLI::App& app, const std::string& name) {
  for (const CLI::App* verb : verbs_of(app))
    if (verb->get_name() == name) return verb;
  return nullptr;
}

}  // namespace

std::string unknown_verb(const CLI::App& program, const std::vector<std::string>& words) {
  const CLI::App* app = &program;
  for (const std::string& word : words) {
    if (word.starts_with("-") || verbs_of(*app).empty()) return {};
    const CLI::App* const next = find(*app, word);
    if (next == nullptr) {
      std::vector<std::string> names;
      for (const CLI::App* verb : verbs_of(*app)) names.push_back(verb->get_name());
      const std::string near = nearest_name(word, names), so_far = path_of(*app);
      return fmt::format("unknown verb \"{} {}\"{} (see {} --help)", so_far, word,
                         near.empty() ? fmt::format("; there are {}", fmt::join(names, ", "))
                                      : fmt::format("; did you mean \"{} {}\"?", so_far, near),
                         so_far);
    }
    app = next;
  }
  return {};
}

const CLI::App& verb_of(const CLI::App& program, const std::vector<std::string>& words) {
  const CLI::App* app = &program;
  for (const std::string& word : words) {
    const CLI::App* const next = find(*app, word);
    if (next == nullptr) break;
    app = next;
  }
  return *app;
}

std::string usage_message(const CLI::App& verb, const CLI::ParseError& error) {
  std::string message = error.what();
  if (const auto extras = verb.remaining(true); !extras.empty() && extras.front().starts_with("-")) {
    std::vector<std::string> names;
    for (const CLI::Option* option : verb.get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    const std::string& given = extras.front();
    const std::string near = nearest_name(given.substr(0, given.find('=')), names);
    message = fmt::format("unknown option {}{}", given, near.empty() ? "" : fmt::format("; did you mean {}?", near));
  }
  return fmt::format("{} (see {} --help)", message, path_of(verb));
}

}  // namespace tenon::cli
