// TOML text into settings with positions. The only place that includes toml++ is its source.
#pragma once

#include <tenon/runtime/config/config_value.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// Every leaf of the file in its order. Throws ConfigError with file, line and column. What is refused besides bad
/// TOML: more than a mebibyte, and keys of more than 16 parts (parser and reader recurse over them).
std::vector<ConfigEntry> read_toml_file(const std::filesystem::path& path);
/// The same from memory; `source` is what messages call it.
TENON_API std::vector<ConfigEntry> read_toml(std::string_view text, const std::string& source);

/// One TOML value, as on the right of a '='; empty when the text is none.
TENON_API std::optional<ConfigValue> read_toml_value(std::string_view text);

/// A TOML basic string.
std::string toml_quote(std::string_view text);

}  // namespace tenon
