// Writing a memory history in a format that others read. A name that ends in .gz is compressed.
#pragma once

#include <tenon/replay/formats/format.h>

#include <string>

namespace tenon::replay {

/// As the file's ending says. Throws ConfigError when it says no format, Error when the file cannot be written.
inline void write_trace(const Trace& trace, const std::string& path, const WriteOptions& options = {}) {
  format_of_name(path).write(trace, path, options);
}

}  // namespace tenon::replay
