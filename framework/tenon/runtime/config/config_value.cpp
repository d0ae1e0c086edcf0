// Positions in messages.
#include <tenon/runtime/config/config_value.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon {

std::string Position::str() const {
  switch (origin) {
    case Origin::kDefault:
      return "default";
    case Origin::kFile:
      return line > 0 ? fmt::format("{}:{}:{}", source, line, column) : source;
    case Origin::kEnvironment:
      return "environment " + source;
    case Origin::kCommandLine:
      return "command line " + source;
  }
  return {};
}

ConfigError config_error(const Position& position, const std::string& message) {
  std::string text = fmt::format("{}: {}", position.str(), message);
  if (position.origin == Origin::kFile && !position.excerpt.empty()) {
    const std::string number = fmt::format("{}", position.line);
    std::string indent = position.excerpt.substr(0, static_cast<std::size_t>(std::max(position.column - 1, 0)));
    for (char& c : indent) c = c == '\t' ? '\t' : ' ';
    text += fmt::format("\n  {} | {}\n  {:{}} | {}^", number, position.excerpt, "", number.size(), indent);
  }
  return ConfigError(text);
}

}  // namespace tenon
