// Settings as they were written, each with the place it was written at. No types are checked here yet.
#pragma once

#include <tenon/core/error.h>
#include <tenon/core/export.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace tenon {

enum class Origin { kDefault, kFile, kEnvironment, kCommandLine };

/// Where a setting stands.
struct Position {
  Origin origin = Origin::kDefault;
  std::string source;   ///< the file; the variable's name; the word on the command line
  int line = 0;         ///< from 1, in a file
  int column = 0;       ///< from 1
  std::string excerpt;  ///< the file's line

  /// "mlp.toml:12:10", "environment TENON_TRAIN__EPOCHS", "command line train.epochs=3", "default".
  TENON_API std::string str() const;
};

/// A ConfigError that begins with the position; for a file it ends with the line and a mark under the column.
TENON_API ConfigError config_error(const Position& position, const std::string& message);

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
