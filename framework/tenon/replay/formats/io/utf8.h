// Text of a recording for formats that are UTF-8: names of files and marks may be any bytes.
#pragma once

#include <string>
#include <string_view>

namespace tenon::replay {

/// The text with each byte that is no UTF-8 as U+FFFD.
std::string valid_utf8(std::string_view text);
/// The text for a message of one line: valid_utf8, and a control character as its number, as in "\x00".
std::string printable(std::string_view text);
/// The text, made valid, as a JSON string with its quotes.
std::string quoted_json(std::string_view text);

}  // namespace tenon::replay
