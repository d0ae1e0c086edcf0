// Shares and times left.
#include <tenon/report/text/progress_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tenon {

namespace {
constexpr double kTooEarly = 0.5;  // seconds before the speed of a work is known
}

std::string format_duration(double seconds) {
  const auto whole = std::lround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

std::string progress_text(std::string_view what, double share, double seconds) {
  const double done = std::clamp(share, 0.0, 1.0);
  std::string text = fmt::format("{}: {:.0f} %", what, 100 * done);
  if (seconds >= kTooEarly && done > 0) text += fmt::format(", {} left", format_duration(seconds / done * (1 - done)));
  return text;
}

std::string limited_progress_text(std::string_view what, double seconds, double limit_seconds) {
  const double left = limit_seconds - seconds;
  if (left < 1) return fmt::format("{}: about to end", what);
  return fmt::format("{}: {:.0f} %, at most {} left", what, 100 * seconds / limit_seconds, format_duration(left));
}

}  // namespace tenon
