// The log, on spdlog.
#include <tenon/runtime/log.h>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <string>

namespace tenon {

namespace {

spdlog::level::level_enum level_from_environment() {
  const char* text = std::getenv("TENON_LOG");
  return text == nullptr ? spdlog::level::warn : spdlog::level::from_str(text);
}

// Heap-allocated and never destroyed: plugins may log while statics are torn down.
spdlog::logger& logger() {
  static spdlog::logger& instance = [&]() -> spdlog::logger& {
    auto* made = new spdlog::logger("tenon", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("tenon: %l: %v");
    made->set_level(level_from_environment());
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
