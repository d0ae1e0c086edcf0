// Environment and command line into settings.
#include <tenon/runtime/config/config_sources.h>
#include <tenon/runtime/config/toml_reader.h>

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon {

namespace {

/// A list's items stand where the list was typed: a relative path among them is relative to the same folder.
void place(ConfigValue& value, const Position& position) {
  value.position = position;
  if (auto* const items = std::get_if<ConfigList>(&value.value)) {
    for (ConfigValue& item : *items) place(item, position);
  }
}

ConfigValue value_from_words(const std::string& typed, const Position& position) {
  ConfigValue value = read_toml_value(typed).value_or(ConfigValue{});
  if (std::holds_alternative<std::monostate>(value.value)) {
    value.value = typed;
    value.text = toml_quote(typed);
  }
  place(value, position);
  value.bare = true;
  value.typed = typed;
  return value;
}

/// sweep."allocator.name" as in a file.
std::string without_quotes(std::string key) {
  std::erase_if(key, [](char c) { return c == '"' || c == '\''; });
  return key;
}

}  // namespace

std::vector<ConfigEntry> settings_from_environment() {
  std::vector<ConfigEntry> entries;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const std::size_t equals = text.find('=');
    if (!text.starts_with("TENON_") || equals == std::string::npos) continue;
    std::string key = text.substr(6, equals - 6);
    if (key.find("__") == std::string::npos) continue;
    std::transform(key.begin(), key.end(), key.begin(), [](unsigned char c) { return std::tolower(c); });
    for (std::size_t at = 0; (at = key.find("__", at)) != std::string::npos;) key.replace(at, 2, ".");
    Position position;
    position.origin = Origin::kEnvironment;
    position.source = text.substr(0, equals);
    entries.push_back({key, position, value_from_words(text.substr(equals + 1), position)});
  }
  std::sort(entries.begin(), entries.end(), [](const ConfigEntry& a, const ConfigEntry& b) { return a.key < b.key; });
  return entries;
}

ConfigEntry setting_from_argument(const std::string& argument) {
  Position position;
  position.origin = Origin::kCommandLine;
  position.source = argument;
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw config_error(position, fmt::format("expected KEY=VALUE, as in train.batch_size=64, not \"{}\"", argument));
  }
  return {without_quotes(argument.substr(0, equals)), position,
          value_from_words(argument.substr(equals + 1), position)};
}

}  // namespace tenon
