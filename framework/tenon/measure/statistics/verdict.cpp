// Sentences for intervals.
#include <tenon/measure/statistics/verdict.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tenon::measure {

namespace {

/// Whole percent, or tenths where both ends would read the same.
std::string range(double low, double high, const char* unit) {
  for (const int digits : {0, 1, 2}) {
    const std::string first = fmt::format("{:.{}f}", low, digits), last = fmt::format("{:.{}f}", high, digits);
    if (first != last || digits == 2) return fmt::format("{} to {}{}", first, last, unit);
  }
  return {};
}

/// "+1.5"; what rounds to nothing has no sign.
std::string signed_percent(double ratio) {
  const std::string text = fmt::format("{:+.1f}", 100 * (ratio - 1));
  return text == "-0.0" || text == "+0.0" ? "0.0" : text;
}

}  // namespace

Verdict verdict_on(const std::optional<Interval>& ratio) {
  if (!ratio) return Verdict::kTooFew;
  if (ratio->high < 1) return Verdict::kLess;
  return ratio->low > 1 ? Verdict::kMore : Verdict::kNoEvidence;
}

std::string speed_sentence(const std::optional<Interval>& ratio) {
  switch (verdict_on(ratio)) {
    case Verdict::kTooFew:
      return "too few rounds";
    case Verdict::kNoEvidence:
      return fmt::format("no evidence of a difference ({} to {} %)", signed_percent(ratio->low),
                         signed_percent(ratio->high));
    case Verdict::kLess:
      if (ratio->high < 0.5) return range(1 / ratio->high, 1 / ratio->low, " times as fast");
      return "faster by " + range(100 * (1 - ratio->high), 100 * (1 - ratio->low), " %");
    case Verdict::kMore:
      break;
  }
  if (ratio->low > 2) return range(ratio->low, ratio->high, " times as slow");
  return "slower by " + range(100 * (ratio->low - 1), 100 * (ratio->high - 1), " %");
}

}  // namespace tenon::measure
