// A number and its unit.
#include <tenon/cli/duration.h>

#include <tenon/core/error.h>

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <stdexcept>

namespace tenon::cli {

double parse_seconds(const std::string& option, const std::string& text) {
  static const std::map<std::string, double> kUnits = {{"", 1},     {"s", 1},    {"m", 60},
                                                       {"min", 60}, {"h", 3600}, {"ms", 0.001}};
  std::size_t used = 0;
  double value = -1;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const auto unit = kUnits.find(text.substr(used));
  if (used == 0 || !(value > 0) || std::isinf(value) || unit == kUnits.end())
    throw ConfigError(fmt::format("{} takes a time, for example 500ms, 30s, 2m or 1h, not \"{}\"", option, text));
  return value * unit->second;
}

}  // namespace tenon::cli
