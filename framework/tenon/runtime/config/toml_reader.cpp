// toml++ is used here and nowhere else: its nodes become plain settings at once.
#include <tenon/runtime/config/toml_reader.h>

#include <tenon/core/files/nearest_file.h>

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

namespace tenon {

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxKeyParts = 16;
/// Every value keeps its line for messages: a long line with many values would cost its square.
constexpr std::size_t kMaxExcerptBytes = 160;

/// toml++ bounds how deep values nest, not how deep a dotted key does, and tables are walked and destroyed recursively.
bool has_deep_key(std::string_view line) {
  std::size_t parts = 1;
  char last = 0;
  for (const char c : line) {
    const bool is_in_key = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == ' ' ||
                           c == '\t' || c == '"' || c == '\'' || c == '.';
    if (!is_in_key || (c == '.' && last == '.')) parts = 1;
    last = c;
    if (c == '.' && ++parts > kMaxKeyParts) return true;
  }
  return false;
}

struct Reader {
  std::string source;
  std::vector<std::string> lines;
  std::vector<ConfigEntry> entries;

  Position at(const toml::source_region& region) const {
    Position position;
    position.origin = Origin::kFile;
    position.source = source;
    position.line = static_cast<int>(region.begin.line);
    position.column = static_cast<int>(region.begin.column);
    if (region.begin.line >= 1 && region.begin.line <= lines.size() &&
        lines[region.begin.line - 1].size() <= kMaxExcerptBytes) {
      position.excerpt = lines[region.begin.line - 1];
    }
    return position;
  }

  ConfigValue value_of(const toml::node& node) const {
    ConfigValue value;
    value.position = at(node.source());
    if (!node.is_array()) {
      std::ostringstream text;
      node.visit([&](const auto& held) { text << held; });
      value.text = text.str();
    }
    if (const auto* flag = node.as_boolean()) value.value = flag->get();
    if (const auto* whole = node.as_integer()) value.value = whole->get();
    if (const auto* real = node.as_floating_point()) {
      value.value = real->get();
      if (std::isfinite(real->get())) {  // toml++ writes 17 digits: 0.050000000000000003
        value.text = fmt::format("{}", real->get());
        if (value.text.find_first_of(".e") == std::string::npos) value.text += ".0";
      }
    }
    if (const auto* word = node.as_string()) {
      value.value = word->get();
      value.text = toml_quote(word->get());
    }
    if (const auto* array = node.as_array()) {
      ConfigList items;
      value.text = "[";
      for (const toml::node& item : *array) {
        items.push_back(value_of(item));
        value.text += (value.text.size() == 1 ? "" : ", ") + items.back().text;
      }
      value.text += "]";
      value.value = std::move(items);
    }
    return value;
  }

  /// `section`: where the table's own name stands.
  void walk(const toml::table& table, const std::string& prefix, const std::optional<Position>& section) {
    for (auto&& [key, node] : table) {
      const std::string name = prefix + std::string(key.str());
      if (const auto* inner = node.as_table(); inner != nullptr && !inner->empty()) {
        walk(*inner, name + ".", at(key.source()));
        continue;
      }
      ConfigEntry entry;
      entry.key = name;
      entry.key_position = at(key.source());
      entry.section_position = section.value_or(entry.key_position);
      entry.is_empty_table = node.is_table();
      if (!entry.is_empty_table) entry.value = value_of(node);
      entries.push_back(std::move(entry));
    }
  }
};

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

std::vector<ConfigEntry> read_toml_file(const std::filesystem::path& path) {
  std::error_code ignored;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path, ignored)) {
    throw ConfigError(fmt::format("{}: cannot be read: {}{}", path.string(),
                                  file ? "it is a folder" : std::strerror(errno), nearest_file_hint(path)));
  }
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return read_toml(text, path.string());
}

std::vector<ConfigEntry> read_toml(std::string_view text, const std::string& source) {
  if (text.size() > kMaxFileBytes) {
    throw ConfigError(fmt::format("{}: larger than a mebibyte, so not a configuration", source));
  }
  Reader reader{source, split_lines(text), {}};
  for (std::size_t i = 0; i < reader.lines.size(); ++i) {
    if (!has_deep_key(reader.lines[i])) continue;
    throw ConfigError(fmt::format("{}:{}:1: a key of more than {} parts", source, i + 1, kMaxKeyParts));
  }
  try {
    reader.walk(toml::parse(text, source), "", std::nullopt);
  } catch (const toml::parse_error& error) {
    throw config_error(reader.at(error.source()), fmt::format("not TOML: {}", error.description()));
  }
  // toml++ keeps tables sorted by key; people expect the file's order.
  std::stable_sort(reader.entries.begin(), reader.entries.end(), [](const ConfigEntry& a, const ConfigEntry& b) {
    return std::pair(a.key_position.line, a.key_position.column) <
           std::pair(b.key_position.line, b.key_position.column);
  });
  return std::move(reader.entries);
}

std::optional<ConfigValue> read_toml_value(std::string_view text) {
  if (text.find_first_of("\r\n") != std::string_view::npos || has_deep_key(text)) return std::nullopt;
  try {
    const toml::table table = toml::parse(fmt::format("value = {}", text));
    const toml::node* node = table.get("value");
    if (table.size() != 1 || node == nullptr || node->is_table()) return std::nullopt;
    ConfigValue value = Reader{}.value_of(*node);
    value.position = {};
    return value;
  } catch (const toml::parse_error&) {
    return std::nullopt;
  }
}

std::string toml_quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += fmt::format("\\u{:04X}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace tenon
