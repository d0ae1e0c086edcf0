// TOML text into settings with positions. The only place that includes toml++ is its source.
#pragma once

#include <tenon/runtime/config_value.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// Every leaf of the file in its order. Throws ConfigError with file, line and column.
std::vector<ConfigEntry> read_toml_file(const std::filesystem::path& path);

/// One TOML value, as on the right of a '='; empty when the text is none.
std::optional<ConfigValue> read_toml_value(std::string_view text);

/// A TOML basic string.
std::string toml_quote(std::string_view text);

}  // namespace tenon
