// Standard output kept for what the program itself says: what plugins and libraries print goes to standard error, so
// that it never stands in a table or a JSON document.
#pragma once

#include <tenon/core/export.h>

#include <string>

namespace tenon {

/// From here on for the rest of the process and its forks: descriptor 1 leads to standard error. Changes nothing where
/// either of the two is closed.
TENON_API void keep_standard_output() noexcept;

/// Where the program's own output goes: descriptor 1, or the one that was kept.
TENON_API int standard_output() noexcept;

/// `path`; where it names standard output ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"), the one that was kept.
TENON_API std::string path_of_output(const std::string& path);

}  // namespace tenon
