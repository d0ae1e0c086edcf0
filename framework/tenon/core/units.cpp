// Byte sizes from and to text.
#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace tenon {

namespace {

struct Unit {
  std::string_view name;
  std::size_t bytes;
};
constexpr std::array<Unit, 5> kUnits = {{{"B", 1}, {"KiB", KiB}, {"MiB", MiB}, {"GiB", GiB}, {"TiB", TiB}}};
constexpr std::array<std::string_view, 4> kDecimal = {"KB", "MB", "GB", "TB"};

bool same_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

struct Parsed {
  std::size_t bytes = 0;
  std::string problem;  // empty: fine
};

Parsed parse(std::string_view original) {
  const std::string_view text = trimmed(original);
  std::size_t digits = 0;
  while (digits < text.size() && ((text[digits] >= '0' && text[digits] <= '9') || text[digits] == '.')) ++digits;
  const std::string_view number = text.substr(0, digits);
  const std::string_view unit = trimmed(text.substr(digits));
  if (number.empty()) return {0, "expected a number with a unit, as in \"128MiB\""};

  std::size_t scale = 1;
  if (!unit.empty()) {
    scale = 0;
    for (const Unit& known : kUnits) {
      if (same_ignoring_case(unit, known.name)) scale = known.bytes;
    }
    for (std::size_t i = 0; i < kDecimal.size(); ++i) {
      if (same_ignoring_case(unit, kDecimal[i])) return {0, fmt::format("units are binary here: write {}", kUnits[i + 1].name)};
    }
    if (scale == 0) return {0, fmt::format("unknown unit \"{}\"; known: B, KiB, MiB, GiB, TiB", unit)};
  }

  std::size_t whole = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), whole);
  if (error == std::errc() && end == number.data() + number.size()) {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(whole, scale, &bytes)) return {0, "more than 2^64 bytes"};
    return {bytes, {}};
  }
  double fraction = 0;
  const auto [fraction_end, fraction_error] = std::from_chars(number.data(), number.data() + number.size(), fraction);
  if (fraction_error != std::errc() || fraction_end != number.data() + number.size()) {
    return {0, fmt::format("\"{}\" is not a number", number)};
  }
  const double bytes = fraction * static_cast<double>(scale);
  if (!(bytes < 9.2e18)) return {0, "more than 2^63 bytes"};
  if (bytes != std::floor(bytes)) return {0, "not a whole number of bytes"};
  return {static_cast<std::size_t>(bytes), {}};
}

}  // namespace

std::size_t parse_size(std::string_view text) {
  const Parsed parsed = parse(text);
  if (!parsed.problem.empty()) throw ConfigError(fmt::format("\"{}\" is not a size: {}", text, parsed.problem));
  return parsed.bytes;
}

std::optional<std::size_t> try_parse_size(std::string_view text) noexcept {
  try {
    const Parsed parsed = parse(text);
    if (parsed.problem.empty()) return parsed.bytes;
  } catch (...) {  // out of host memory while wording the problem
  }
  return std::nullopt;
}

std::string format_bytes(std::size_t bytes) {
  if (bytes < KiB) return fmt::format("{} B", bytes);
  std::size_t unit = 1;
  double value = static_cast<double>(bytes) / static_cast<double>(KiB);
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024.0;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : 1, kUnits[unit].name);
}

std::string format_size_exact(std::size_t bytes) {
  for (std::size_t i = kUnits.size() - 1; i > 0; --i) {
    if (bytes != 0 && bytes % kUnits[i].bytes == 0) return fmt::format("{}{}", bytes / kUnits[i].bytes, kUnits[i].name);
  }
  return fmt::format("{}", bytes);
}

}  // namespace tenon
