// Choosing the unit, and writing a size in it.
#include <tenon/core/units.h>
#include <tenon/report/text/byte_unit.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

namespace tenon {

namespace {

constexpr std::array<std::string_view, 5> kNames = {"B", "KiB", "MiB", "GiB", "TiB"};
constexpr double kMostBeforeThePoint = 9999.95;

double scaled(double bytes, std::size_t unit) { return bytes / std::pow(1024.0, static_cast<double>(unit)); }

}  // namespace

ByteUnit::ByteUnit(std::span<const std::int64_t> sizes) {
  double smallest = std::numeric_limits<double>::infinity();
  double largest = 0;
  for (const std::int64_t size : sizes) {
    if (size == 0) continue;
    smallest = std::min(smallest, std::abs(static_cast<double>(size)));
    largest = std::max(largest, std::abs(static_cast<double>(size)));
  }
  if (largest == 0) return;
  // As format_bytes: 1023.95 and more is the next unit's.
  while (unit_ + 1 < kNames.size() &&
         (scaled(smallest, unit_) >= 1023.95 || scaled(largest, unit_) >= kMostBeforeThePoint)) {
    ++unit_;
  }
  if (unit_ != 0) digits_ = scaled(smallest, unit_) < 10 ? 2 : 1;
}

std::string ByteUnit::show(std::int64_t bytes) const {
  const double value = scaled(static_cast<double>(bytes), unit_);
  const std::string text = fmt::format("{:.{}f} {}", value, digits_, kNames[unit_]);
  const bool seems_zero = bytes != 0 && text.find_first_of("123456789") == std::string::npos;
  return seems_zero ? (bytes < 0 ? "-" : "") + format_bytes(static_cast<std::size_t>(std::abs(bytes))) : text;
}

}  // namespace tenon
