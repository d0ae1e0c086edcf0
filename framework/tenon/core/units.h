// Byte sizes: constants, parsing ("128MiB"), printing. Binary units everywhere.
#pragma once

#include <tenon/core/export.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon {

inline constexpr std::size_t KiB = std::size_t{1} << 10;
inline constexpr std::size_t MiB = std::size_t{1} << 20;
inline constexpr std::size_t GiB = std::size_t{1} << 30;
inline constexpr std::size_t TiB = std::size_t{1} << 40;

/// Parses "128MiB", "14.7 GiB" (rounded down to whole bytes) and "512"; refuses "4KB", naming the binary unit, and a
/// fraction of bytes, as "1.5" is. Throws ConfigError that quotes the text and says what would have done.
TENON_API std::size_t parse_size(std::string_view text);

/// Like parse_size, empty on any mistake.
TENON_API std::optional<std::size_t> try_parse_size(std::string_view text) noexcept;

/// Of the size of a device as somebody typed it: a number without a unit of at most 512 KiB, of which a device of as
/// many MiB can be had, has most likely lost it. "8 is 8 bytes, less than a page of the device; did you mean 8GiB? 8B
/// if not". Empty: it has not.
TENON_API std::string forgotten_unit(std::string_view text);

/// "15.2 GiB", "512 B": at most four significant digits, for people.
TENON_API std::string format_bytes(std::size_t bytes);

/// The shortest exact spelling that parse_size reads back: "128MiB", "1536KiB", "1000".
TENON_API std::string format_size_exact(std::size_t bytes);

constexpr std::size_t align_up(std::size_t value, std::size_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}
constexpr bool is_power_of_two(std::size_t value) { return value != 0 && (value & (value - 1)) == 0; }

}  // namespace tenon
