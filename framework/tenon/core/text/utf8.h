// Text for formats that are UTF-8 and refuse what is not: names of files, tags and marks may be any bytes.
#pragma once

#include <tenon/core/export.h>

#include <string>
#include <string_view>

namespace tenon {

/// The text with U+FFFD in place of what is no UTF-8: one for as many bytes as begin a sequence that does not go on,
/// one for each other byte ("maximal subparts", chapter 3.9 of the Unicode standard; as Python, Rust and JSON libraries
/// do).
TENON_API std::string valid_utf8(std::string_view text);

/// The text for a message of one line: made valid, and a control character as its number, as in "\x1b".
TENON_API std::string printable(std::string_view text);

}  // namespace tenon
