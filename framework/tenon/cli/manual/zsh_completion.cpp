// The script for zsh: a function for each verb. Declared in completion.h.
#include <tenon/cli/manual/completion.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::cli {

namespace {

/// A text within single quotes of _arguments: its own marks are escaped.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out;
}

std::string action_of(const OptionFacts& option) {
  switch (option.kind) {
    case ValueKind::kFile:
      return "_files";
    case ValueKind::kFolder:
      return "_files -/";
    case ValueKind::kAllocator:
      return "_tenon_allocators";
    case ValueKind::kWords:
      return fmt::format("({})", fmt::join(option.words, " "));
    case ValueKind::kText:
      return option.is_positional ? "_files" : " ";
    case ValueKind::kNone:
      break;
  }
  return "";
}

std::string argument_of(const OptionFacts& option) {
  const std::string value =
      option.kind == ValueKind::kNone ? "" : fmt::format(":{}:{}", zsh_text(option.value), action_of(option));
  if (option.is_positional) return fmt::format("'{}{}'", option.is_repeated ? "*" : "", value);
  const std::string help = fmt::format("[{}]", zsh_text(option.help));
  const std::string repeated = option.is_repeated ? "*" : "";
  if (option.names.size() == 1) return fmt::format("'{}{}{}{}'", repeated, option.names[0], help, value);
  const std::string others = option.is_repeated ? repeated : fmt::format("({})", fmt::join(option.names, " "));
  return fmt::format("'{}'{{{}}}'{}{}'", others, fmt::join(option.names, ","), help, value);
}

std::string function_of(const VerbFacts& verb) {
  std::string name = "_" + verb.path;
  std::ranges::replace(name, ' ', '_');
  return name;
}

void add_functions(const VerbFacts& verb, std::string& out) {
  for (const VerbFacts& below : verb.verbs) add_functions(below, out);
  std::string arguments;
  for (const OptionFacts& option : verb.options) arguments += " \\\n    " + argument_of(option);
  if (verb.verbs.empty()) {
    out += fmt::format("{}() {{\n  _arguments -s{}\n}}\n\n", function_of(verb), arguments);
    return;
  }
  std::string list, cases;
  for (const VerbFacts& below : verb.verbs) {
    list += fmt::format(" \\\n        '{}:{}'", below.name, zsh_text(below.help));
    cases += fmt::format("        {}) {} ;;\n", below.name, function_of(below));
  }
  out += fmt::format(
      "{}() {{\n"
      "  local state line\n"
      "  _arguments -s -C{} \\\n    '1:verb:->verb' '*::rest:->rest'\n"
      "  case $state in\n"
      "    verb)\n"
      "      local -a verbs=({})\n"
      "      _describe verb verbs ;;\n"
      "    rest)\n"
      "      case $line[1] in\n{}      esac ;;\n"
      "  esac\n"
      "}}\n\n",
      function_of(verb), arguments, list, cases);
}

}  // namespace

std::string zsh_completion(const VerbFacts& program) {
  std::string out = fmt::format(
      "#compdef {0}\n"
      "# Completion of {0} in zsh; made by `{0} completion zsh`.\n"
      "_{0}_allocators() {{ _values allocator ${{(f)\"$({0} completion allocators 2>/dev/null)\"}} || _files; }}\n\n",
      program.name);
  add_functions(program, out);
  return out +
         fmt::format(
             "if [[ $funcstack[1] == _{0} ]]; then _{0} \"$@\"; else compdef _{0} {0}; fi  # autoloaded, or sourced\n",
             program.name);
}

}  // namespace tenon::cli
