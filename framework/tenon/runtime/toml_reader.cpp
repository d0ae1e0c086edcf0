// toml++ is used here and nowhere else: its nodes become plain settings at once.
#include <tenon/runtime/toml_reader.h>

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace tenon {

namespace {

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
    if (region.begin.line >= 1 && region.begin.line <= lines.size()) position.excerpt = lines[region.begin.line - 1];
    return position;
  }

  ConfigValue value_of(const toml::node& node) const {
    ConfigValue value;
    value.position = at(node.source());
    std::ostringstream text;
    node.visit([&](const auto& held) { text << held; });
    value.text = text.str();
    if (const auto* flag = node.as_boolean()) value.value = flag->get();
    if (const auto* whole = node.as_integer()) value.value = whole->get();
    if (const auto* real = node.as_floating_point()) value.value = real->get();
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

  void walk(const toml::table& table, const std::string& prefix) {
    for (auto&& [key, node] : table) {
      const std::string name = prefix + std::string(key.str());
      if (const auto* inner = node.as_table(); inner != nullptr && !inner->empty()) {
        walk(*inner, name + ".");
        continue;
      }
      ConfigEntry entry;
      entry.key = name;
      entry.key_position = at(key.source());
      entry.is_empty_table = node.is_table();
      if (!entry.is_empty_table) entry.value = value_of(node);
      entries.push_back(std::move(entry));
    }
  }
};

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
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
    throw ConfigError(
        fmt::format("{}: cannot be read: {}", path.string(), file ? "it is a folder" : std::strerror(errno)));
  }
  std::ostringstream buffer;
  buffer << file.rdbuf();
  const std::string text = buffer.str();
  Reader reader{path.string(), split_lines(text), {}};
  try {
    reader.walk(toml::parse(text, path.string()), "");
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
  if (text.find_first_of("\r\n") != std::string_view::npos) return std::nullopt;
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
