// Text without the blanks around it.
#pragma once

#include <algorithm>
#include <string_view>

namespace tenon {

/// `text` without the characters of `blanks` at its beginning and at its end.
constexpr std::string_view trimmed(std::string_view text, std::string_view blanks = " \t") {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

}  // namespace tenon
