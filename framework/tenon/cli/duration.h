// Times on a command line.
#pragma once

#include <string>

namespace tenon::cli {

/// "60", "60s", "2m", "1h", "500ms". Throws ConfigError naming the option.
double parse_seconds(const std::string& option, const std::string& text);

}  // namespace tenon::cli
