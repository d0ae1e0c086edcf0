// Settings that do not come from a file: the environment and the command line.
#pragma once

#include <tenon/runtime/config/config_value.h>

#include <string>
#include <vector>

namespace tenon {

/// TENON_TRAIN__BATCH_SIZE=64 -> train.batch_size. Variables without a double underscore (TENON_PLUGIN_PATH) are not
/// settings.
std::vector<ConfigEntry> settings_from_environment();

/// "train.batch_size=64" with a TOML value, or a bare word where a string is wanted. Throws ConfigError.
ConfigEntry setting_from_argument(const std::string& argument);

}  // namespace tenon
