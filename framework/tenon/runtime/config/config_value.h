// Settings as they were written, each with the place it was written at. No types are checked here yet.
#pragma once

#include <tenon/runtime/config/position.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace tenon {

struct ConfigValue;
using ConfigList = std::vector<ConfigValue>;

struct ConfigValue {
  /// monostate: a kind of value that no setting has (a date, a table in a list), described by `text`.
  std::variant<std::monostate, bool, std::int64_t, double, std::string, ConfigList> value;
  Position position;
  std::string text;   ///< as TOML
  bool bare = false;  ///< from the command line or environment: `text` as typed may be meant as a string
  std::string typed;  ///< what was typed, where bare
};

struct ConfigEntry {
  std::string key;  ///< "train.batch_size"; for an empty table, its name with is_empty_table set
  Position key_position;
  ConfigValue value;
  bool is_empty_table = false;
  Position section_position = key_position;  ///< of the name of its section: [train]
};

}  // namespace tenon
