// Byte sizes from and to text.
#include <tenon/core/error.h>
#include <tenon/core/text/counted.h>
#include <tenon/core/text/trimmed.h>
#include <tenon/core/units.h>

#include <fmt/format.h>

#include <array>
#include <charconv>

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
      if (same_ignoring_case(unit, kDecimal[i]))
        return {0, fmt::format("units are binary here: write {}", kUnits[i + 1].name)};
    }
    constexpr std::array<std::string_view, 4> kLetters = {"K", "M", "G", "T"};
    for (std::size_t i = 0; i < kLetters.size(); ++i) {
      if (same_ignoring_case(unit, kLetters[i]))
        return {0, fmt::format("write {}{}, since units are binary here", number, kUnits[i + 1].name)};
    }
    if (scale == 0) return {0, fmt::format("unknown unit \"{}\"; known: B, KiB, MiB, GiB, TiB", unit)};
  }

  const std::size_t point = number.find('.');
  const std::string_view whole_digits = number.substr(0, point);
  const std::string_view fraction_digits = point == number.npos ? "" : number.substr(point + 1);
  if (fraction_digits.find('.') != number.npos || whole_digits.size() + fraction_digits.size() == 0) {
    return {0, fmt::format("\"{}\" is not a number", number)};
  }
  std::size_t whole = 0;
  const auto error = std::from_chars(number.data(), number.data() + whole_digits.size(), whole).ec;
  if (error == std::errc::result_out_of_range) return {0, "more than 2^64 bytes"};
  // From the last digit to the first: rounding down at each step is rounding down once at the end.
  std::size_t part = 0;
  for (std::size_t i = fraction_digits.size(); i-- > 0;) {
    part = (static_cast<std::size_t>(fraction_digits[i] - '0') * scale + part) / 10;
  }
  const bool has_fraction = fraction_digits.find_first_not_of('0') != number.npos;
  if (has_fraction && scale == 1) {
    return {0, "not a whole number of bytes; a fraction needs a larger unit, as in \"1.5GiB\""};
  }
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(whole, scale, &bytes) || __builtin_add_overflow(bytes, part, &bytes)) {
    return {0, "more than 2^64 bytes"};
  }
  if (has_fraction && bytes == 0) return {0, "less than one byte"};
  return {bytes, {}};
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

std::string forgotten_unit(std::string_view text) {
  constexpr std::size_t kMostForgotten = 512 * KiB, kMostGiB = 1024;
  const std::string_view number = trimmed(text);
  const std::optional<std::size_t> bytes = try_parse_size(number);
  const bool has_unit = !number.empty() && (number.back() < '0' || number.back() > '9');
  if (has_unit || !bytes || *bytes == 0 || *bytes > kMostForgotten) return {};
  return fmt::format("{0} is {1}, less than a page of the device; did you mean {0}{2}? {0}B if not", *bytes,
                     counted(*bytes, "byte"), *bytes <= kMostGiB ? "GiB" : "MiB");
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
