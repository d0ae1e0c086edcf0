// The script for fish: a line for each verb and option. Declared in completion.h.
#include <tenon/cli/manual/completion.h>

#include <fmt/format.h>

namespace tenon::cli {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string value_of(const OptionFacts& option) {
  switch (option.kind) {
    case ValueKind::kFile:
      return " -r -F";
    case ValueKind::kFolder:
      return " -x -a '(__fish_complete_directories)'";
    case ValueKind::kAllocator:
      return " -r -F -a '(tenon completion allocators 2>/dev/null)'";
    case ValueKind::kWords:
      return fmt::format(" -x -a {}", quoted(fmt::format("{}", fmt::join(option.words, " "))));
    case ValueKind::kText:
      return " -x";
    case ValueKind::kNone:
      break;
  }
  return "";
}

/// `condition`: the verbs before are those above this one.
void add_lines(const VerbFacts& verb, const std::string& condition, const std::string& program, std::string& out) {
  std::string names;
  for (const VerbFacts& below : verb.verbs) names += " " + below.name;
  const std::string none_below = names.empty() ? condition
                                               : fmt::format("{}not __fish_seen_subcommand_from{}",
                                                             condition.empty() ? "" : condition + "; and ", names);
  const std::string when = none_below.empty() ? "" : " -n " + quoted(none_below);
  for (const VerbFacts& below : verb.verbs)
    out += fmt::format("complete -c {}{} -a {} -d {}\n", program, when, below.name, quoted(below.help));
  for (const OptionFacts& option : verb.options) {
    if (option.is_positional) {
      if (option.kind != ValueKind::kNone) {
        const std::string words =
            option.kind == ValueKind::kWords ? fmt::format("-a '{}'", fmt::join(option.words, " ")) : "-F";
        out += fmt::format("complete -c {}{} {}\n", program, when, words);
      }
      continue;
    }
    std::string flags;
    for (const std::string& name : option.names)
      flags.append(name.starts_with("--") ? " -l " : " -s ").append(name, name.starts_with("--") ? 2 : 1);
    out += fmt::format("complete -c {}{}{}{} -d {}\n", program, when, flags, value_of(option), quoted(option.help));
  }
  for (const VerbFacts& below : verb.verbs) {
    const std::string mine = "__fish_seen_subcommand_from " + below.name;
    add_lines(below, condition.empty() ? mine : fmt::format("{}; and {}", condition, mine), program, out);
  }
}

}  // namespace

std::string fish_completion(const VerbFacts& program) {
  std::string out = fmt::format(
      "# Completion of {0} in fish; made by `{0} completion fish`.\n"
      "complete -c {0} -f\n",
      program.name);
  add_lines(program, "", program.name, out);
  return out;
}

}  // namespace tenon::cli
