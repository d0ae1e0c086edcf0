// One line on stderr for each decision: loaded X from Y. Data goes to traces and statistics, not here.
#pragma once

#include <tenon/core/export.h>
#include <tenon/plugin/host.h>

#include <string_view>

namespace tenon {

/// Shown when the environment variable TENON_LOG asks for it: "debug", "info", "warning" (the default) or "off".
TENON_API void log_line(plugin::LogLevel level, std::string_view message);

}  // namespace tenon
