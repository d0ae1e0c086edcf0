// Files that hold no memory history, and what a user does with them.
#pragma once

#include <string>
#include <string_view>

namespace tenon::replay {

/// What a file is that begins like this, and what to do: "a zip archive: unpack it …". Empty when it is not known.
std::string foreign_file_advice(std::string_view head, std::string_view path);

}  // namespace tenon::replay
