// The script for bash. Declared in completion.h.
#include <tenon/cli/manual/completion.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tenon::cli {

namespace {

/// "/trace/info": a verb in the script's cases.
std::string key_of(const std::string& above, const VerbFacts& verb) { return above + "/" + verb.name; }

/// What the script knows, gathered over all verbs.
struct Cases {
  std::vector<std::string> verbs;             ///< "/run", "/trace", "/trace/info"
  std::map<std::string, std::string> words;   ///< of a verb: its subverbs and options
  std::map<std::string, std::string> values;  ///< "VERB:OPTION": the command that completes its value
  std::vector<std::string> with_verbs;        ///< a word there is a verb and no file
};

std::string value_command(const OptionFacts& option) {
  switch (option.kind) {
    case ValueKind::kWords:
      return fmt::format("words='{}'", fmt::join(option.words, " "));
    case ValueKind::kAllocator:
      return "words=$(\"${COMP_WORDS[0]}\" completion allocators 2>/dev/null)";
    case ValueKind::kFolder:
      return "COMPREPLY=($(compgen -d -- \"$cur\")) && return";
    case ValueKind::kText:
      return "compopt +o default +o bashdefault && return";
    case ValueKind::kFile:
    case ValueKind::kNone:
      break;
  }
  return "return";  // files, by default
}

void gather(const VerbFacts& verb, const std::string& key, Cases& cases) {
  std::string& words = cases.words[key];
  for (const VerbFacts& below : verb.verbs) words += (words.empty() ? "" : " ") + below.name;
  if (!verb.verbs.empty()) cases.with_verbs.push_back(key);
  for (const OptionFacts& option : verb.options) {
    if (option.is_positional) continue;
    for (const std::string& name : option.names) {
      if (!words.empty()) words += ' ';
      words += name;
      if (option.kind != ValueKind::kNone) cases.values[fmt::format("{}:{}", key, name)] = value_command(option);
    }
  }
  for (const OptionFacts& option : verb.options) {  // a positional of fixed words is completed like a verb
    if (option.is_positional && option.kind == ValueKind::kWords) {
      words += fmt::format(" {}", fmt::join(option.words, " "));
      cases.with_verbs.push_back(key);
    }
  }
  for (const VerbFacts& below : verb.verbs) {
    cases.verbs.push_back(key_of(key, below));
    gather(below, key_of(key, below), cases);
  }
}

}  // namespace

std::string bash_completion(const VerbFacts& program) {
  Cases cases;
  gather(program, "", cases);
  std::string out = fmt::format(
      "# Completion of {0} in bash; made by `{0} completion bash`.\n"
      "_{0}() {{\n"
      "  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}} verb='' words='' i\n"
      "  if [[ $cur == = ]]; then cur=''; elif [[ $prev == = ]]; then prev=${{COMP_WORDS[COMP_CWORD - 2]}}; fi\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case \"$verb/${{COMP_WORDS[i]}}\" in\n"
      "      {1}) verb+=\"/${{COMP_WORDS[i]}}\" ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$verb:$prev\" in\n",
      program.name, fmt::join(cases.verbs, " | "));
  std::map<std::string, std::vector<std::string>> by_command;  // options of one kind share a line
  for (const auto& [option, command] : cases.values) by_command[command].push_back(option);
  for (const auto& [command, options] : by_command)
    out += fmt::format("    {}) {} ;;\n", fmt::join(options, " | "), command);
  out += "    *)\n      case \"$verb\" in\n";
  for (const auto& [verb, words] : cases.words) out += fmt::format("        '{}') words='{}' ;;\n", verb, words);
  out += fmt::format(
      "      esac\n"
      "      case \"$verb\" in\n"
      "        {0}) ;;\n"
      "        *) [[ $cur == -* ]] || return ;; # files, by default\n"
      "      esac\n"
      "      ;;\n"
      "  esac\n"
      "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
      "}}\n"
      "complete -o bashdefault -o default -F _{1} {1}\n",
      fmt::format("'{}'", fmt::join(cases.with_verbs, "' | '")), program.name);
  return out;
}

}  // namespace tenon::cli
