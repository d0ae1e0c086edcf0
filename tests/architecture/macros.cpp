// Expanding macros: a definition is taken apart once, an invocation gets its arguments into the body.
#include "architecture/macros.h"

#include <algorithm>
#include <cctype>
#include <regex>

namespace tenon::test {
namespace {

std::string_view word_at(std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_word);
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

std::string trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\n\\");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t\n\\") - begin + 1));
}

/// Splits "(a, f(b, c)) …" at the commas of its own level. Returns the length up to the closing parenthesis, 0 where
/// there is none.
std::size_t split(std::string_view text, std::vector<std::string>& parts) {
  int depth = 0;
  std::size_t begin = 1;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
      continue;
    }
    if (c == '"') quote = c;
    const bool closes = c == ')' || c == '}' || c == ']';
    depth += c == '(' || c == '{' || c == '[';
    depth -= closes;
    if ((c == ',' && depth == 1) || (closes && depth == 0)) {
      parts.push_back(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    }
    if (closes && depth == 0) return i + 1;
  }
  return 0;
}

}  // namespace

void Macros::read_directive(std::string_view directive) {
  static const std::regex verb(R"(^\s*#\s*(define|undef)\s+)");
  std::match_results<std::string_view::const_iterator> match;
  if (!std::regex_search(directive.begin(), directive.end(), match, verb)) return;
  const std::string_view rest = directive.substr(static_cast<std::size_t>(match.length()));
  const std::string name{word_at(rest)};
  if (match[1] == "undef") {
    macros_.erase(name);
    return;
  }
  Macro macro;
  std::string_view body = rest.substr(name.size());
  if (body.starts_with("(")) {
    body.remove_prefix(split(body, macro.parameters));
  } else {
    macro.is_other_name = true;
  }
  macro.body = std::regex_replace(trimmed(body), std::regex(R"(\\\n)"), " ");
  if (macro.is_other_name && !macros_.contains(macro.body)) return;
  macros_.try_emplace(name, std::move(macro));
}

std::optional<Macros::Expansion> Macros::expand(std::string_view text) const {
  const std::string_view name = word_at(text);
  const auto found = macros_.find(name);
  if (found == macros_.end()) return std::nullopt;
  const Macro& macro = found->second;
  if (macro.is_other_name) return Expansion{found->first, macro.body, name.size()};
  const std::size_t opens = text.find_first_not_of(" \t\n", name.size());
  if (opens == std::string_view::npos || text[opens] != '(') return std::nullopt;
  std::vector<std::string> arguments;
  const std::size_t length = split(text.substr(opens), arguments);
  if (length == 0) return std::nullopt;
  return Expansion{found->first, substituted(macro, arguments), opens + length};
}

std::string Macros::substituted(const Macro& macro, const std::vector<std::string>& arguments) {
  std::map<std::string, std::string, std::less<>> values;
  for (std::size_t i = 0; i < macro.parameters.size(); ++i) {
    if (macro.parameters[i] != "...") {
      values[macro.parameters[i]] = i < arguments.size() ? arguments[i] : "";
      continue;
    }
    std::string& rest = values["__VA_ARGS__"];
    for (std::size_t j = i; j < arguments.size(); ++j) rest += (j == i ? "" : ", ") + arguments[j];
  }
  std::string text;
  for (std::size_t i = 0; i < macro.body.size();) {
    const std::string_view word = word_at(std::string_view(macro.body).substr(i));
    const auto value = values.find(word);
    if (word.empty()) {
      text += macro.body[i++];
    } else {
      text += value == values.end() ? std::string(word) : value->second;
      i += word.size();
    }
  }
  text = std::regex_replace(text, std::regex(R"(\s*##\s*)"), "");
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace tenon::test
