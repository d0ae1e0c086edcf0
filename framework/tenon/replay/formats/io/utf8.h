// Text of a recording as JSON has it: names of files and marks may be any bytes.
#pragma once

#include <string>
#include <string_view>

namespace tenon::replay {

/// The text, made valid, as a JSON string with its quotes.
std::string quoted_json(std::string_view text);

}  // namespace tenon::replay
