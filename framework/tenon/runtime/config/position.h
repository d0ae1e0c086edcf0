// Where a setting stands: for messages that point at it.
#pragma once

#include <tenon/core/error.h>
#include <tenon/core/export.h>

#include <string>

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

}  // namespace tenon
