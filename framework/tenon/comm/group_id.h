// Numbers of groups of ranks, by which ranks mean the same one.
#pragma once

#include <cstdint>

namespace tenon {

/// The number of a group, the same on its ranks: the `count`th that was made of the one with the number `of` (0: all
/// ranks), and `first`, the run's number of its first rank. Groups of groups have numbers of their own, too.
constexpr std::int64_t id_of_group(std::int64_t of, std::int64_t count, int first) {
  const auto whole = static_cast<std::uint64_t>(of) * 1'000'003 + static_cast<std::uint64_t>(count);
  return static_cast<std::int64_t>(whole * 4'099 + static_cast<std::uint64_t>(first) + 1);  // it wraps
}

}  // namespace tenon
