// A number and what it counts, in the singular or the plural.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace tenon {

/// "1 block", "2 blocks"; `several` where the plural does not end in s alone: "2 micro-batches".
template <std::integral Count>
std::string counted(Count count, std::string_view one, std::string_view several = {}) {
  std::string text = std::to_string(count) + ' ';
  text += count == 1 || several.empty() ? one : several;
  if (count != 1 && several.empty()) text += 's';
  return text;
}

}  // namespace tenon
