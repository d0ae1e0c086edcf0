// Writing to a descriptor until all is written.
#pragma once

#include <tenon/core/export.h>

#include <string_view>

namespace tenon {

/// False where the file, the pipe or the terminal takes no more: errno says why, and a part may be written.
TENON_API bool write_all(int descriptor, std::string_view bytes) noexcept;

}  // namespace tenon
