// Text of a recording as messages and JSON have it: names of files and marks may be any bytes.
#pragma once

#include <string>
#include <string_view>

namespace tenon::replay {

/// The text for a message of one line: made valid (valid_utf8() of core/text/utf8.h), and a control character as its
/// number, as in "\x00".
std::string printable(std::string_view text);
/// The text, made valid, as a JSON string with its quotes.
std::string quoted_json(std::string_view text);

}  // namespace tenon::replay
