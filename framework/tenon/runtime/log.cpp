// The log, on spdlog.
#include <tenon/runtime/log.h>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <string_view>

namespace tenon {

namespace {

constexpr std::string_view kVariable = "TENON_LOG";

/// Says which words there are where it has another one: spdlog would take that for "off".
void set_level_from_environment(spdlog::logger& logger) {
  logger.set_level(spdlog::level::warn);
  const char* const text = std::getenv(kVariable.data());
  if (text == nullptr || *text == '\0') return;
  const spdlog::level::level_enum level = spdlog::level::from_str(text);
  if (level == spdlog::level::off && std::string_view(text) != "off") {
    logger.warn("{}=\"{}\" is none of debug, info, warning, off: warnings are shown", kVariable, text);
  } else {
    logger.set_level(level);
  }
}

// Heap-allocated and never destroyed: plugins may log while statics are torn down.
spdlog::logger& logger() {
  static spdlog::logger& instance = [&]() -> spdlog::logger& {
    auto* made = new spdlog::logger("tenon", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("tenon: %l: %v");
    set_level_from_environment(*made);
    return *made;
  }();
  return instance;
}

}  // namespace

void log_line(plugin::LogLevel level, std::string_view message) {
  switch (level) {
    case plugin::LogLevel::kDebug:
      logger().debug(message);
      break;
    case plugin::LogLevel::kInfo:
      logger().info(message);
      break;
    case plugin::LogLevel::kWarning:
      logger().warn(message);
      break;
  }
}

}  // namespace tenon
